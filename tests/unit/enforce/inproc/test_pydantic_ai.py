"""What the doors table does not ask of Pydantic AI: late toolsets, MCP servers, prefixes, provider-run tools."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import pytest
from fastmcp import FastMCP
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import Tool
from pydantic_ai.toolsets import FunctionToolset

from extgate.core.extension import Extension
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.pydantic_ai import GateCapability, GateToolset
from extgate.enforce.sinks import Memory
from tests.doors.driver import Hits
from tests.doors.policies import profile
from tests.doors.table import STOCK


class Plays:
    """Plays one turn after the other: a call of a name, or `done`."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.offered: list[list[str]] = []
        self.told: list[str] = []
        self.instructions: list[str | None] = []

    def respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.offered.append(sorted(tool.name for tool in info.function_tools))
        self.instructions.append(getattr(messages[-1], "instructions", None))
        self.told += [str(part.content) for part in messages[-1].parts if hasattr(part, "tool_call_id")]  # type: ignore[union-attr]
        name = self.names.pop(0) if self.names else None
        part = ToolCallPart(name, {}, tool_call_id=f"c{len(self.offered)}") if name else TextPart("done")
        return ModelResponse(parts=[part])


def gate(text: str = "{}", **more: Any) -> Gate:
    return Gate(profile(text), STOCK, door="test", **more)


def tool(name: str, hits: Hits) -> Tool[Any]:
    ext = Extension(kind="tool", name=name, source="native")

    async def run(**args: Any) -> str:
        return hits.of(ext)()

    return Tool.from_schema(run, name=name, description="", json_schema={"type": "object"})


def play(door: Gate, model: Plays, **agent: Any) -> None:
    capabilities = [*agent.pop("capabilities", ()), GateCapability(door)]
    asyncio.run(Agent(FunctionModel(model.respond), capabilities=capabilities, retries=3, **agent).run("go"))


def test_tools_given_in_any_way_are_judged() -> None:
    hits, door, model = Hits(), gate("tools: {disabled: [bash]}"), Plays("bash", "read", "edit")

    class Brings(AbstractCapability[Any]):
        def get_toolset(self) -> Any:
            return FunctionToolset([tool("edit", hits)])

    toolset = FunctionToolset([tool("bash", hits)])
    play(door, model, tools=[tool("read", hits)], toolsets=[toolset], capabilities=[Brings()])
    assert model.offered[0] == ["edit", "read"]
    assert hits.by_id == {"tool:read": 1, "tool:edit": 1}


def test_a_toolset_that_is_made_at_each_step_is_judged() -> None:
    hits, door, model = Hits(), gate("tools: {disabled: [bash]}"), Plays("bash")
    agent = Agent(FunctionModel(model.respond), capabilities=[GateCapability(door)])

    @agent.toolset
    def late(ctx: RunContext[Any]) -> FunctionToolset[Any]:
        return FunctionToolset([tool("bash", hits), tool("read", hits)])

    asyncio.run(agent.run("go"))
    assert model.offered == [["read"], ["read"]]
    assert not hits.by_id


def test_a_call_of_something_hidden_is_answered_with_the_reason_and_recorded_each_time() -> None:
    memory = Memory()
    door, model = gate("tools: {disabled: [bash]}", sink=memory), Plays("bash", "bash", "nothing")
    play(door, model, tools=[tool("bash", Hits()), tool("read", Hits())])
    assert model.told == ["'bash' is disabled for this agent."] * 2 + ["'nothing' is not installed."]
    assert [e.extension for e in memory.events if e.question == "use"] == ["tool:bash", "tool:bash", "tool:nothing"]


def test_a_tool_of_unknown_name_is_not_offered() -> None:
    hits, model = Hits(), Plays("surprise")
    play(gate(), model, tools=[tool("surprise", hits)])
    assert model.offered[0] == []
    assert not hits.by_id


def test_a_child_agent_takes_a_gate_under_its_parents() -> None:
    hits, door, model = Hits(), gate("tools: {disabled: [bash]}"), Plays("bash", "read")
    play(door.child(agent="child"), model, tools=[tool("bash", hits), tool("read", hits)])
    assert model.offered[0] == ["read"]
    door.swap(profile=profile("tools: {disabled: [read]}"))
    after = Plays()
    play(door.child(agent="child"), after, tools=[tool("bash", hits), tool("read", hits)])
    assert after.offered[0] == ["bash"]


# ---------------------------------------------------------------------------------------------------------- MCP servers


def slack(hits: Hits, **more: Any) -> Any:
    """A real MCP toolset of this version, on a server in memory."""
    server: FastMCP[Any] = FastMCP("whatever it says", instructions="SLACK INSTRUCTIONS")
    for ext in STOCK.of_kind("mcp_tool"):
        if ext.server == "slack":
            server.tool(hits.of(ext), name=ext.name)
    mcp = importlib.import_module("pydantic_ai.mcp")
    if hasattr(mcp, "MCPToolset"):
        return mcp.MCPToolset(server, id="slack", **more)
    return importlib.import_module("pydantic_ai.toolsets.fastmcp").FastMCPToolset(server, id="slack")


@pytest.mark.parametrize("prefix", ["", "x"])
def test_the_tools_of_a_server_are_its_own_under_any_prefix(prefix: str) -> None:
    hits, door = Hits(), gate("mcp: {disabled: ['slack/send']}")
    toolset = slack(hits).prefixed(prefix) if prefix else slack(hits)
    name = f"{prefix}_send" if prefix else "send"
    model = Plays(name, name.replace("send", "find"))
    play(door, model, toolsets=[toolset])
    assert model.offered[0] == [name.replace("send", "find")]
    assert hits.by_id == {"mcp_tool:slack/find": 1}


def test_the_instructions_of_a_server_go_with_the_last_of_it() -> None:
    hits = Hits()
    mcp = importlib.import_module("pydantic_ai.mcp")
    sends = {"include_instructions": True} if hasattr(mcp, "MCPToolset") else {}
    toolset = slack(hits, **sends)
    shown, hidden = Plays(), Plays()
    play(gate("mcp: {disabled: [slack]}"), hidden, toolsets=[toolset])
    play(gate(), shown, toolsets=[toolset])
    assert "SLACK" not in str(hidden.instructions)
    assert ("SLACK" in str(shown.instructions)) == bool(sends), "older versions never send them"
    assert hidden.offered[0] == []
    assert shown.offered[0] == ["find", "send"]


def test_one_toolset_can_be_guarded_alone() -> None:
    hits, door = Hits(), gate("mcp: {disabled: ['slack/send']}")
    model = Plays("find")
    agent = Agent(FunctionModel(model.respond), toolsets=[GateToolset(slack(hits), door, server="slack")])
    asyncio.run(agent.run("go"))
    assert model.offered[0] == ["find"]
    assert hits.by_id == {"mcp_tool:slack/find": 1}


# --------------------------------------------------------------------------------------------------- provider-run tools


def native(name: str, **values: Any) -> Any:
    try:
        module = importlib.import_module("pydantic_ai.native_tools")
    except ImportError:
        module = importlib.import_module("pydantic_ai.builtin_tools")
    return getattr(module, name)(**values)


def offered(door: Gate, *tools: Any) -> list[Any]:
    """What is left of the tools in a request, by the capability's own hook."""
    from pydantic_ai.models import ModelRequestContext, ModelRequestParameters

    names = set(ModelRequestParameters.__dataclass_fields__)
    (field,) = names & {"native_tools", "builtin_tools"}
    context = ModelRequestContext(
        model=FunctionModel(Plays().respond), messages=[], model_settings=None,
        model_request_parameters=ModelRequestParameters(**{field: list(tools)}),
    )  # fmt: skip
    nothing: Any = None
    made = asyncio.run(GateCapability(door).before_model_request(nothing, context))
    left: list[Any] = getattr(made.model_request_parameters, field)
    return left


def test_a_provider_run_tool_is_offered_while_it_is_visible() -> None:
    search = native("WebSearchTool")
    door = gate()
    assert offered(door, search) == [], "nothing installed has its name"
    door.swap(inventory=type(STOCK)(extensions=(Extension(kind="tool", name="web_search", source="native"),)))
    assert offered(door, search) == [search]
    door.swap(profile=profile("tools: {disabled: ['web_*']}"))
    assert offered(door, search) == []


@pytest.mark.parametrize(("own", "left"), [(None, ["find"]), (["send", "find"], ["find"]), (["send"], None)])
def test_of_a_server_that_the_provider_calls_only_what_is_allowed_is_left(own: Any, left: Any) -> None:
    server = native("MCPServerTool", id="slack", url="http://x", allowed_tools=own)
    found = offered(gate("mcp: {disabled: ['slack/send']}"), server)
    assert [tool.allowed_tools for tool in found] == ([left] if left else [])
