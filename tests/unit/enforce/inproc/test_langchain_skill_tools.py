"""Tools that a skill discloses once it was read: late, in the request or inside its messages, and judged."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.middleware.skills import SkillsMiddleware
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import SystemMessage

from extgate.enforce.inproc.langchain import GateMiddleware
from tests.unit.enforce.inproc.hosts import Marks, Scripted, call, gate, results, run, skill, stock, tool

discloses = pytest.mark.skipif(
    "tools" not in inspect.signature(SkillsMiddleware).parameters, reason="this deepagents discloses no tools by skills"
)
POLICY = "tools: {disabled: [ship]}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "skills" / "ops"
    folder.mkdir(parents=True)
    header = "name: ops\ndescription: d\nmetadata:\n  include_tools: ship look"
    (folder / "SKILL.md").write_text(f"---\n{header}\n---\nShip it.\n")
    return tmp_path


@discloses
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_a_disclosed_tool_that_is_denied_is_neither_offered_nor_run(root: Path, how: str) -> None:
    marks, backend = Marks(), FilesystemBackend(root_dir=root, virtual_mode=True)
    found = stock(skill("ops", file=str(root / "skills/ops/SKILL.md")), tool("ship"), tool("look"))
    model = Scripted(
        turns=[
            call("ship") + call("look"),
            call("read_file", file_path="/skills/ops/SKILL.md", limit=1000),
            call("ship") + call("look"),
        ]
    )
    tools = [marks.tool("ship"), marks.tool("look")]
    skills = SkillsMiddleware(backend=backend, sources=["/skills"], tools=tools)
    agent = create_deep_agent(model, backend=backend, middleware=[skills, GateMiddleware(gate(POLICY, found))])
    messages = run(agent, how=how)
    offered = [{"ship", "look"} & set(offer.names) for offer in model.offers]
    assert offered == [set(), set(), {"look"}, {"look"}]
    assert [status for status, _ in results(messages)] == ["error", "error", "success", "error", "success"]
    assert marks.by_name == {"look": 1}
    assert "try one of" not in "".join(text for _, text in results(messages)), "the framework would list all it has"


@discloses
def test_a_skill_that_is_denied_discloses_nothing(root: Path) -> None:
    marks, backend = Marks(), FilesystemBackend(root_dir=root, virtual_mode=True)
    found = stock(skill("ops", file=str(root / "skills/ops/SKILL.md")), tool("ship"), tool("look"))
    mine = gate("skills: {disabled: [ops]}", found)
    model = Scripted(turns=[call("look")])
    skills = SkillsMiddleware(backend=backend, sources=["/skills"], tools=[marks.tool("look")])
    messages = run(create_deep_agent(model, backend=backend, middleware=[skills, GateMiddleware(mine)]))
    assert results(messages) == [("error", "'look' is not installed.")]
    assert "**ops**" not in model.offers[0].system


def definition(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}}


BLOCKS = [
    lambda name: {"type": "additional_tools", "role": "developer", "tools": [definition(name)]},
    lambda name: {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"name": name}}},
]


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
@pytest.mark.parametrize("block", BLOCKS, ids=["openai", "anthropic"])
def test_a_definition_inside_a_message_is_taken_out_when_it_is_denied(block: Any, how: str) -> None:
    class Inserts(AgentMiddleware[Any, Any, Any]):
        def _with(self, request: Any) -> Any:
            note = SystemMessage(content=[block("ship"), block("look"), {"type": "text", "text": "hello"}])
            return request.override(messages=[*request.messages, note])

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(self._with(request))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(self._with(request))

    mine = gate(POLICY, stock(tool("ship"), tool("look")))
    model = Scripted()
    run(create_agent(model, middleware=[GateMiddleware(mine), Inserts()]), how=how)
    assert model.offers[0].messages[-1].content == [block("look"), {"type": "text", "text": "hello"}]
