"""Sub-agents under the inheritance law: no road to one gives what its parent is denied."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from deepagents import create_deep_agent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.tools import StructuredTool
from pydantic import BaseModel

from extgate.core.extension import Extension
from extgate.core.policy import Profile
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.factory import AgentFactory, Child
from extgate.enforce.inproc.langchain import GateMiddleware
from extgate.enforce.inproc.langchain_children import gated_subagents
from extgate.enforce.inproc.langchain_identity import Registry
from extgate.enforce.inproc.langchain_mcp import McpAnswer
from extgate.enforce.inproc.langchain_subagents import MAX_DEPTH
from extgate.enforce.sinks import Memory
from tests.doors.policies import profile
from tests.unit.enforce.inproc.hosts import Marks, Scripted, call, gate, mcp, results, run, stock, tool

NAMES = ["deploy", "notes", "search"]
APP = stock(*map(tool, NAMES))
BOTH_WAYS = pytest.mark.parametrize("how", ["invoke", "ainvoke"])


def everything() -> Any:
    """Calls of every tool of the application."""
    return [part for name in NAMES for part in call(name)]


def spawn(name: str, word: str) -> Any:
    return call("task", description=word, subagent_type=name)


def family(parent: Gate, model: Any, marks: Marks, *specs: Mapping[str, Any], **more: Any) -> Any:
    """A deep agent with the application's tools and these sub-agents behind gates."""
    registry = Registry()
    tools = [registry.add(marks.tool(name), tool(name)) for name in NAMES]
    made, spawns = gated_subagents(parent, specs, registry=registry, **more)
    wall = GateMiddleware(parent, registry=registry, spawns=spawns)
    return create_deep_agent(model, tools, middleware=[wall], subagents=made)


HELPER = {"name": "helper", "description": "helps", "system_prompt": "help"}


@BOTH_WAYS
@pytest.mark.parametrize("name", ["helper", "general-purpose"])
def test_a_sub_agent_neither_sees_nor_runs_what_its_parent_is_denied(name: str, how: str) -> None:
    marks, model = Marks(), Scripted(by_word={"main": [spawn(name, "work")], "work": [everything()]})
    parent = gate("tools: {disabled: [deploy, execute, 'write_*']}", APP)
    run(family(parent, model, marks, HELPER), "main", how=how)
    assert marks.by_name == {"notes": 1, "search": 1}
    assert not {"deploy", "execute", "write_file"} & set(model.offers[1].names)
    assert {"notes", "ls"} <= set(model.offers[1].names)


def test_a_sub_agents_own_profile_takes_more_away() -> None:
    marks, model = Marks(), Scripted(by_word={"main": [spawn("helper", "work")], "work": [everything()]})
    own = {"helper": profile("tools: {disabled: [notes]}", id_="helper")}
    run(family(gate("tools: {disabled: [deploy]}", APP), model, marks, HELPER, profiles=own), "main")
    assert marks.by_name == {"search": 1}


@pytest.mark.parametrize(("mode", "ran"), [("ceiling", set()), ("own", {"deploy"}), ("union", set(NAMES))])
def test_a_parents_file_may_say_how_sub_agents_inherit(mode: str, ran: set[str]) -> None:
    marks, model = Marks(), Scripted(by_word={"main": [spawn("helper", "work")], "work": [everything()]})
    own = {"helper": profile("tools: {allowed: [deploy]}", id_="helper")}
    parent = gate(f"inherit: {mode}\ntools: {{disabled: [deploy]}}", APP)
    run(family(parent, model, marks, HELPER, profiles=own), "main")
    assert set(marks.by_name) == ran


def test_an_unavailable_sub_agent_is_not_spawned() -> None:
    model = Scripted(by_word={"main": [spawn("helper", "work")]})
    own = {"helper": profile("mcp: {required: [k8s]}", id_="helper")}
    messages = run(family(gate("{}", APP), model, Marks(), HELPER, profiles=own), "main")
    status, text = results(messages)[0]
    assert status == "error"
    assert "k8s" in text
    assert len(model.offers) == 2


@pytest.mark.parametrize("name", ["helper", "stranger", ""])
def test_a_denied_or_unknown_sub_agent_is_not_spawned(name: str) -> None:
    model, memory = Scripted(by_word={"main": [spawn(name, "work")]}), Memory()
    parent = gate("subagents: {disabled: [helper]}", APP, sink=memory)
    messages = run(family(parent, model, Marks(), HELPER), "main")
    assert results(messages)[0][0] == "error"
    assert "general-purpose" not in results(messages)[0][1], "the framework's own words would list all"
    assert len(model.offers) == 2
    assert [e.action for e in memory.events if e.outcome == "refused" and e.question == "use"] == ["spawn"]


def test_a_new_deny_of_the_parent_binds_a_running_sub_agent() -> None:
    marks, parent = Marks(), gate("{}", APP)

    def change(offer: Any) -> None:
        if "work" in offer.messages[-1].text:
            parent.swap(profile=profile("tools: {disabled: [deploy]}"))

    model = Scripted(by_word={"main": [spawn("helper", "work")], "work": [everything()]}, before=change)
    run(family(parent, model, marks, HELPER), "main")
    assert marks.by_name == {"notes": 1, "search": 1}


# ---------------------------------------------------------------------------------------------------- built elsewhere


@BOTH_WAYS
def test_a_compiled_sub_agent_behind_no_gate_is_refused(how: str) -> None:
    marks, model = Marks(), Scripted(by_word={"main": [spawn("wild", "work")], "work": [everything()]})
    wild = create_agent(model, [marks.tool(name) for name in NAMES])
    specs = {"name": "wild", "description": "runs free", "runnable": wild}
    messages = run(family(gate("{}", APP), model, marks, specs), "main", how=how)
    assert results(messages) == [("error", "'wild' runs behind no gate.")]
    assert "wild" not in model.offers[0].description("task")
    assert not marks.by_name


@BOTH_WAYS
@pytest.mark.parametrize("is_deep", [True, False])
def test_a_compiled_sub_agent_with_a_gate_of_its_own_is_held_to_its_parents(how: str, is_deep: bool) -> None:
    marks, model = Marks(), Scripted(by_word={"main": [spawn("mine", "work")], "work": [everything()]})
    own = GateMiddleware(gate("tools: {disabled: [notes]}", APP))
    tools = [marks.tool(name) for name in NAMES]
    make: Any = create_deep_agent if is_deep else create_agent
    spec = {"name": "mine", "description": "x", "runnable": make(model, tools, middleware=[own])}
    run(family(gate("tools: {disabled: [deploy]}", APP), model, marks, spec), "main", how=how)
    assert marks.by_name == {"search": 1}
    assert not {"deploy", "notes"} & set(model.offers[1].names)


@BOTH_WAYS
def test_an_agent_inside_a_tool_is_held_to_the_gates_above_it(how: str) -> None:
    marks = Marks()
    model = Scripted(by_word={"main": [call("ask_expert")], "work": [everything()]})
    expert = create_agent(
        model, [marks.tool(name) for name in NAMES], middleware=[GateMiddleware(gate("{}", APP, agent="expert"))]
    )

    def ask_expert() -> str:
        """Asks the expert."""
        return str(expert.invoke({"messages": [("user", "work")]})["messages"][-1].text)

    async def aask_expert() -> str:
        """Asks the expert."""
        return str((await expert.ainvoke({"messages": [("user", "work")]}))["messages"][-1].text)

    asking = StructuredTool.from_function(ask_expert, aask_expert)
    parent = gate("tools: {disabled: [deploy, search]}", stock(*map(tool, [*NAMES, "ask_expert"])))
    run(create_agent(model, [asking], middleware=[GateMiddleware(parent)]), "main", how=how)
    assert marks.by_name == {"notes": 1}
    assert model.offers[1].names == ["notes"]
    # The same expert, asked by itself, has what its own gate gives.
    run(expert, "work", how=how)
    assert marks.by_name == {"notes": 2, "deploy": 1, "search": 1}


def test_sub_agents_that_nobody_put_behind_gates_are_not_spawned() -> None:
    model = Scripted(by_word={"main": [spawn("general-purpose", "work")]})
    messages = run(create_deep_agent(model, middleware=[GateMiddleware(gate("{}", APP))]), "main")
    assert results(messages) == [("error", "'general-purpose' is no sub-agent of this agent.")]


def remote(name: str) -> dict[str, Any]:
    # A port of this machine that nobody listens on: what gets so far fails at once.
    return {"name": name, "description": "far away", "graph_id": "g", "url": "http://127.0.0.1:9"}


def has_remote() -> bool:
    try:
        from deepagents.middleware.async_subagents import AsyncSubAgent  # noqa: F401
    except ImportError:
        return False
    return True


needs_remote = pytest.mark.skipif(not has_remote(), reason="this deepagents has no asynchronous sub-agents")


@needs_remote
@pytest.mark.parametrize("tool_name", ["start_async_task", "update_async_task"])
def test_a_remote_sub_agent_is_out_of_reach_and_refused(tool_name: str) -> None:
    args = {"description": "work", "subagent_type": "far"}
    if tool_name == "update_async_task":
        args = {"task_id": "t1", "message": "more"}
    model = Scripted(turns=[call(tool_name, **args)])
    parent = gate("{}", APP)
    task = {"task_id": "t1", "agent_name": "far", "thread_id": "t1", "run_id": "r", "status": "running"}
    times = dict.fromkeys(("created_at", "last_checked_at", "last_updated_at"), "2026-11-30T00:00:00Z")
    messages = run(family(parent, model, Marks(), remote("far")), how="invoke", async_tasks={"t1": {**task, **times}})
    status, text = results(messages)[0]
    assert status == "error"
    assert "runs on another server" in text
    assert "far" not in model.offers[0].description("start_async_task")


@needs_remote
def test_a_remote_sub_agent_may_be_spawned_where_the_parents_file_lets_it_run_on_its_own() -> None:
    model = Scripted(turns=[call("start_async_task", description="work", subagent_type="far")])
    own = {"far": profile("{}", id_="far")}
    messages = run(family(gate("inherit: own", APP), model, Marks(), remote("far"), profiles=own), how="invoke")
    assert "Failed to launch" in results(messages)[0][1], "it got as far as the framework"


def subagents_module() -> Any:
    import deepagents.middleware.subagents as module

    return module


needs_dynamic = pytest.mark.skipif(
    not hasattr(subagents_module(), "SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY"),
    reason="this deepagents makes no sub-agents anew, and forks none",
)


class Found(BaseModel):
    """What was found."""

    text: str = ""


@needs_dynamic
def test_a_sub_agent_that_is_made_anew_for_a_call_is_under_the_same_gate() -> None:
    marks = Marks()
    model = Scripted(by_word={"main": [spawn("helper", "work")], "work": [everything(), call("Found", text="x")]})
    agent = family(gate("tools: {disabled: [deploy, Found]}", APP), model, marks, HELPER)
    key = subagents_module().SUBAGENT_RESPONSE_FORMAT_CONFIG_KEY
    config = {"configurable": {key: ToolStrategy(Found)}}
    asyncio.run(agent.ainvoke({"messages": [("user", "main")]}, config))
    assert marks.by_name == {"notes": 1, "search": 1}
    assert not {"deploy", "Found"} & {name for offer in model.offers for name in offer.names}


@needs_dynamic
@pytest.mark.filterwarnings("ignore")
def test_a_fork_of_its_parent_is_under_a_gate_of_its_own() -> None:
    marks, memory = Marks(), Memory()
    fork = {"name": "helper", "description": "helps", "mode": "fork"}
    model = Scripted(turns=[spawn("helper", "work"), everything() + spawn("helper", "again")])
    # A fork inherits the conversation without the call that made it, so it plays the same turns.
    own = {"helper": profile("tools: {disabled: [notes]}", id_="helper")}
    parent = gate("tools: {disabled: [deploy]}", APP, sink=memory)
    run(family(parent, model, marks, fork, profiles=own), "main")
    refused = {(e.agent, e.extension) for e in memory.events if e.question == "use" and e.outcome == "refused"}
    assert marks.by_name["deploy"] == 0
    assert ("agent", "tool:deploy") in refused
    asked_below = [offer for offer in model.offers if "work" in offer.messages[-1].text]
    assert asked_below
    assert all(not {"deploy", "notes"} & set(offer.names) for offer in asked_below)


# ---------------------------------------------------------------------------------------------------- at random, deep

SERVED = [mcp("slack", "send"), mcp("slack", "find"), mcp("wiki", "read")]
DEEP = stock(*SERVED, *(Extension(kind="subagent", name=name) for name in "abc"), servers=["slack", "wiki"])
WRITES = ["one.txt", "two.txt", "three.txt", "four.txt"]


def texts(tools: list[str], allowed: list[str], servers: list[str], only: list[str]) -> str:
    blocks = {"tools": (tools, allowed), "mcp": (servers, only)}
    return "\n".join(f"{name}: {{disabled: {d}, allowed: {a}}}" for name, (d, a) in blocks.items())


profiles = st.builds(
    texts,
    st.lists(st.sampled_from(["write_file", "ls", "slack_*", "wr*"]), max_size=2),
    st.just([]) | st.just(["*"]) | st.just(["task", "write_file", "slack__send"]),
    st.lists(st.sampled_from(["slack", "wiki/*", "slack/se*", "*"]), max_size=2),
    st.just([]) | st.just(["slack"]) | st.just(["wiki", "slack/find"]),
)


class Deep:
    """main, and below it a, b and c, each asked by the one above to use everything and to ask the next."""

    def __init__(self, *own: Profile) -> None:
        self.called: list[tuple[str, str]] = []
        self.memory = Memory()
        self.own = own

    async def call(self, ext: Extension, arguments: dict[str, Any]) -> McpAnswer:
        self.called.append((arguments["by"], ext.id))
        return McpAnswer(content=({"type": "text", "text": "ran"},))

    async def run(self, root: Path, chain: list[str]) -> Scripted:
        turns: dict[str, list[Any]] = {}
        for at, name in enumerate(["main", *chain]):
            uses = [{"name": f"{e.server}_{e.name}", "args": {"by": name}} for e in SERVED]
            uses += call("write_file", file_path=f"/{WRITES[at]}", content="x") + call("ls", path="/")
            further = [spawn(chain[at], f"word-{chain[at]}-{at}")] if at < len(chain) else []
            turns[f"word-{name}-{at - 1}"] = [uses, *further]
        model = Scripted(by_word=turns)
        factory = AgentFactory(call=self.call, read_skill=lambda ext: "", sink=self.memory)
        subagents = {name: Child(profile=p) for name, p in zip("abc", self.own[1:], strict=True)}
        agent = await factory.create(self.own[0], DEEP, model=model, root=root, subagents=subagents)
        await agent.graph.ainvoke({"messages": [("user", "word-main--1")]})
        return model


chains = st.lists(st.sampled_from(["a", "b", "c", "general-purpose"]), min_size=3, max_size=3)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(profiles, min_size=4, max_size=4), chains)
def test_nothing_below_has_what_somebody_above_is_denied(policies: list[str], chain: list[str]) -> None:
    own = [profile(text, id_=name) for text, name in zip(policies, ["main", "a", "b", "c"], strict=True)]
    deep = Deep(*own)
    by_name = {"main": own[0], **dict(zip("abc", own[1:], strict=True))}
    with TemporaryDirectory() as folder:
        model = asyncio.run(deep.run(Path(folder), chain))
        written = {path.name for path in Path(folder).iterdir()}
    write, ls = (next(e for e in DEEP.extensions if e.kind == "tool" and e.name == n) for n in ("write_file", "ls"))

    def is_allowed(name: str, at: int, ext: Extension) -> bool:
        """By the agent's own profile, and by everybody's above it in the chain."""
        above = [by_name[n] for n in ["main", *chain[:at]] if n in by_name]
        return all(Gate(p, DEEP, door="x").is_visible(ext) for p in above)

    by_id = {ext.id: ext for ext in SERVED}
    for at, name in enumerate(["main", *chain]):
        for who, what in deep.called:
            if who == name and (["main", *chain].count(name)) == 1:
                assert is_allowed(name, at, by_id[what]), (name, what)
        assert WRITES[at] not in written or is_allowed(name, at, write), name
    offered: dict[str, set[str]] = {}
    for offer in model.offers:
        word = next(m.text for m in offer.messages if m.type == "human")
        offered.setdefault(word, set()).update(offer.names)
    for at, name in enumerate(["main", *chain]):
        names = offered.get(f"word-{name}-{at - 1}", set())
        hidden = {f"{e.server}_{e.name}" for e in SERVED if not is_allowed(name, at, e)}
        hidden |= {e.name for e in (write, ls) if not is_allowed(name, at, e)}
        assert not names & hidden, (name, names & hidden)


def test_three_deep_everything_is_there_that_nobody_denies() -> None:
    deep = Deep(*(profile("{}", id_=name) for name in ("main", "a", "b", "c")))
    with TemporaryDirectory() as folder:
        asyncio.run(deep.run(Path(folder), ["a", "b", "c"]))
        assert {path.name for path in Path(folder).iterdir()} == set(WRITES)
    assert sorted(deep.called) == sorted((who, e.id) for who in ("main", "a", "b", "c") for e in SERVED)
    assert {e.agent for e in deep.memory.events} == {"main", "main/a", "main/a/b", "main/a/b/c"}


def test_agents_that_spawn_each_other_in_circles_come_to_an_end() -> None:
    asked = {f"n{at}": [spawn("a", f"n{at + 1}")] for at in range(MAX_DEPTH + 3, -1, -1)}
    model = Scripted(by_word={f"{word} ": turns for word, turns in asked.items()})
    for turns in model.by_word.values():
        turns[0][0]["args"]["description"] += " "

    async def no_call(ext: Extension, arguments: dict[str, Any]) -> McpAnswer:
        raise AssertionError

    async def main(root: Path) -> None:
        factory = AgentFactory(call=no_call, read_skill=lambda ext: "", sink=memory)
        open_ = profile("{}", id_="main")
        agent = await factory.create(open_, DEEP, model=model, root=root, subagents={"a": Child()})
        await agent.graph.ainvoke({"messages": [("user", "n0 ")]})

    memory = Memory()
    with TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
    refused = [e.reason for e in memory.events if e.question == "use" and e.outcome == "refused"]
    assert refused == [f"'a' would run more than {MAX_DEPTH} agents deep."]
