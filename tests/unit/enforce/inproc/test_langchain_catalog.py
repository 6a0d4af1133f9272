"""The catalog inside an agent: tools and skills that are fetched, shown and run by other tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from extgate.core.extension import Extension
from extgate.core.policy import Profile
from extgate.dialects.document import Document
from extgate.dialects.registry import read_agent
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.factory import AgentFactory
from extgate.enforce.inproc.langchain_mcp import McpAnswer
from extgate.enforce.sinks import Memory
from tests.doors.policies import layer, profile, rule
from tests.unit.enforce.inproc.hosts import Scripted, call, mcp, results, run, skill, stock

SKILLS = (skill("pdf", description="Reads PDF"), skill("deploy", description="Ships"))
STOCK = stock(mcp("csv", "count"), mcp("csv", "wipe"), *SKILLS, servers=["csv"])
OPEN = "['impl:deepagents:*', 'mcp:csv:*', '!mcp:csv:wipe', '!impl:deepagents:write_file']"
CATALOG = {"fetch_tools", "get_tool", "run_tool", "fetch_skills", "get_skill"}
BOTH_WAYS = pytest.mark.parametrize("how", ["invoke", "ainvoke"])


def patterns(tools: str = OPEN, skills: str = "['default:pdf']", uses_catalog: bool = True) -> Profile:
    flag = f"use_catalog: {str(uses_catalog).lower()}"
    text = f"tools: {{patterns: {tools}, {flag}}}\nskills: {{patterns: {skills}, {flag}}}"
    policy = read_agent(Document(path=".msagent/agents/a.yml", text=text))
    return Profile(id="a", layers=(policy,), dialect="patterns")


class Host:
    """One agent of the factory: what it called, and how its last turn went."""

    def __init__(self, under: Profile, root: Path, *turns: Any, **more: Any) -> None:
        self.called: list[str] = []
        self.model = Scripted(turns=list(turns))
        self.memory = Memory()
        self.gate = Gate(under, STOCK, door="langchain", sink=self.memory, **more)
        factory = AgentFactory(call=self._call, read_skill=lambda ext: f"Body of {ext.name}.")
        self.graph = factory.create_behind(self.gate, model=self.model, root=root).graph

    async def _call(self, ext: Extension, arguments: dict[str, Any]) -> McpAnswer:
        self.called.append(ext.name)
        return McpAnswer(content=({"type": "text", "text": f"ran {ext.name} {json.dumps(arguments)}"},))

    def run(self, how: str = "ainvoke") -> list[tuple[str, str]]:
        return results(run(self.graph, how=how))


def run_tool(name: str, **args: Any) -> Any:
    return call("run_tool", tool_name=name, tool_args=args)


def test_with_the_catalog_the_request_holds_its_tools_alone(tmp_path: Path) -> None:
    host = Host(patterns(), tmp_path)
    host.run()
    assert set(host.model.offers[0].names) == CATALOG
    assert "pdf" not in host.model.offers[0].system


def test_without_it_tools_and_skills_are_in_the_request(tmp_path: Path) -> None:
    host = Host(patterns(uses_catalog=False), tmp_path)
    host.run()
    assert set(host.model.offers[0].names) >= CATALOG | {"csv_count", "ls", "read_file"}
    assert not {"csv_wipe", "write_file"} & set(host.model.offers[0].names)
    assert "- **pdf**: Reads PDF" in host.model.offers[0].system
    assert "deploy" not in host.model.offers[0].system


@BOTH_WAYS
def test_a_built_in_is_run_through_the_catalog_as_if_it_was_called(tmp_path: Path, how: str) -> None:
    (tmp_path / "work.txt").write_text("hello\n")
    host = Host(patterns(), tmp_path, run_tool("read_file", file_path="/work.txt"))
    ((status, text),) = host.run(how)
    assert status == "success"
    assert "hello" in text


def test_a_servers_tool_is_run_through_the_catalog(tmp_path: Path) -> None:
    host = Host(patterns(), tmp_path, run_tool("csv_count", path="a.csv"))
    assert host.run() == [("success", 'ran count {"path": "a.csv"}')]
    uses = [(e.extension, e.outcome) for e in host.memory.events if e.question == "use"]
    assert uses == [("tool:run_tool", "allowed"), ("mcp_tool:csv/count", "allowed")]


@BOTH_WAYS
@pytest.mark.parametrize("name", ["csv_wipe", "write_file", "nothing", "run_tool"])
def test_run_tool_runs_nothing_that_the_agent_may_not_have(tmp_path: Path, name: str, how: str) -> None:
    host = Host(patterns(), tmp_path, run_tool(name, file_path="/x.txt", content="x"))
    ((status, text),) = host.run(how)
    assert status == "error"
    answer = json.loads(text)
    assert set(answer) == {"error", "available_tools"}
    assert name.replace("csv_", "csv/") in answer["error"]
    assert not {"csv_wipe", "write_file"} & set(answer["available_tools"])
    assert {"csv_count", "ls"} <= set(answer["available_tools"])
    assert host.called == []
    assert not (tmp_path / "x.txt").exists()


@pytest.mark.parametrize("args", [{}, {"tool_name": 7}, {"tool_name": None, "tool_args": []}, {"tool_args": "x"}])
def test_a_call_of_run_tool_that_names_nothing_is_answered(tmp_path: Path, args: dict[str, Any]) -> None:
    host = Host(patterns(), tmp_path, call("run_tool", **args))
    ((status, text),) = host.run()
    assert status == "error"
    assert "not found" in json.loads(text)["error"]


def test_run_tool_needs_its_own_rule(tmp_path: Path) -> None:
    host = Host(patterns("['mcp:csv:*']"), tmp_path, run_tool("csv_count"))
    ((status, _),) = host.run()
    assert status == "error"
    assert host.called == []


def test_a_sub_agent_is_not_reached_through_the_catalog_either(tmp_path: Path) -> None:
    host = Host(patterns(), tmp_path, run_tool("task", description="x", subagent_type="general-purpose"))
    ((status, text),) = host.run()
    assert status == "error"
    assert "general-purpose" in json.loads(text)["error"]


class Says:
    name = "ann"

    def __init__(self, said: bool) -> None:
        self.said, self.asked = said, list[str]()

    def __call__(self, decision: Any, args: Mapping[str, Any]) -> bool:
        self.asked.append(f"{decision.extension.id} {dict(args)}")
        return self.said


@pytest.mark.parametrize("said", [True, False])
def test_approval_is_asked_for_the_inner_tool(tmp_path: Path, said: bool) -> None:
    approver = Says(said)
    asking = Profile(
        id="a", layers=(*patterns().layers, layer(rule("ask", "csv/count", kind="mcp_tool"))), dialect="patterns"
    )
    host = Host(asking, tmp_path, run_tool("csv_count", path="x"), approver=approver)
    ((status, _),) = host.run()
    assert approver.asked == ["mcp_tool:csv/count {'path': 'x'}"]
    assert (status, host.called) == (("success", ["count"]) if said else ("error", []))


def test_a_tool_is_shown_with_its_own_schema_and_not_what_the_framework_injects(tmp_path: Path) -> None:
    host = Host(
        patterns(), tmp_path, call("get_tool", tool_name="read_file") + call("get_tool", tool_name="write_file")
    )
    shown, hidden = (json.loads(text) for _, text in host.run())
    assert shown["name"] == "read_file"
    assert "file_path" in shown["parameters"]["properties"]
    assert "runtime" not in shown["parameters"]["properties"]
    assert hidden["error"] == "Tool 'write_file' not found"


def test_skills_are_fetched_and_read(tmp_path: Path) -> None:
    calls = call("fetch_skills") + call("get_skill", name="pdf") + call("get_skill", name="deploy")
    host = Host(patterns(), tmp_path, calls + call("fetch_skills", pattern="("))
    listed, read, denied, bad = host.run()
    assert [row["name"] for row in json.loads(listed[1])] == ["pdf"]
    assert read == ("success", "Body of pdf.")
    assert denied == ("error", "'deploy' matches no rule that allows it.")
    assert bad[0] == "error"
    assert bad[1].startswith("Invalid regex pattern: ")


def test_a_second_agent_does_not_change_the_first_ones_catalog(tmp_path: Path) -> None:
    first = Host(patterns(), tmp_path, call("fetch_tools") + run_tool("csv_count") + call("fetch_skills"))
    second = Host(patterns("['impl:deepagents:*']", "['default:deploy']"), tmp_path, call("fetch_tools"))
    second.run()
    tools, ran, skills = first.run()
    assert "csv_count" in tools[1].split("\n")
    assert ran[0] == "success"
    assert [row["name"] for row in json.loads(skills[1])] == ["pdf"]
    assert "csv_count" not in second.run()[0][1]


def test_an_agent_of_the_other_dialect_has_the_skill_tools_alone(tmp_path: Path) -> None:
    host = Host(profile("{}"), tmp_path, run_tool("csv_count"))
    host.run()
    assert set(host.model.offers[0].names) & CATALOG == {"fetch_skills", "get_skill"}
    assert host.called == []


def test_a_prompt_says_how_to_read_a_skill_by_what_the_agent_has(tmp_path: Path) -> None:
    said = {}
    for policy in ("{}", "tools: {disabled: [get_skill]}", "tools: {allowed: [ls]}"):
        host = Host(profile(policy), tmp_path)
        host.run()
        said[policy] = host.model.offers[0].system.partition("## Skills")[2]
    texts = list(said.values())
    assert ["`get_skill`" in text for text in texts] == [True, False, False]
    assert ["`read_file`" in text for text in texts] == [False, True, False]
    assert all("- **pdf**: Reads PDF" in text for text in texts)
