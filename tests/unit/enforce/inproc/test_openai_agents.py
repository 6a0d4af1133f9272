"""What the doors table does not ask of the OpenAI Agents SDK: late tools, children, local and hosted tools."""

from __future__ import annotations

import asyncio
import itertools
import json
from types import SimpleNamespace
from typing import Any

import pytest
from agents import (
    Agent,
    ApplyPatchTool,
    CustomTool,
    FunctionTool,
    Handoff,
    HostedMCPTool,
    LocalShellTool,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    ShellTool,
    Tool,
    Usage,
    WebSearchTool,
    set_tracing_disabled,
)
from agents.editor import ApplyPatchOperation
from mcp.types import GetPromptResult, ListPromptsResult, ListResourcesResult, ListResourceTemplatesResult
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from extgate.core.extension import Extension, Inventory
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.openai_agents import GatedAgent, guard, run_config
from extgate.enforce.inproc.openai_agents_mcp import GatedServer
from extgate.enforce.inproc.openai_agents_tools import offered
from extgate.enforce.sinks import Memory
from tests.doors.driver import Hits
from tests.doors.driver_openai_agents import Server
from tests.doors.policies import profile
from tests.doors.table import STOCK

set_tracing_disabled(True)
Turn = tuple[str, Any] | str
_NUMBERS = itertools.count()


class Plays(Model):
    """Plays one turn after the other: a call as (name, arguments), or a text."""

    def __init__(self, *turns: Turn) -> None:
        self.turns = list(turns)
        self.offered: list[list[str]] = []
        self.told: list[str] = []

    async def get_response(self, **request: Any) -> ModelResponse:
        self.offered.append([t.name for t in request["tools"]] + [h.tool_name for h in request["handoffs"]])
        items = [i for i in request["input"] if isinstance(i, dict)]
        self.told = [str(i["output"]) for i in items if i.get("type") == "function_call_output"]
        turn = self.turns.pop(0) if self.turns else "done"
        return ModelResponse(output=[_item(turn)], usage=Usage(), response_id=None)

    async def stream_response(self, *given: Any, **named: Any) -> Any:
        keys = ("system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs")
        made = await self.get_response(**dict(zip(keys, given, strict=False)), **named)
        response = Response(
            id="r", created_at=0, model="m", object="response", output=made.output, tool_choice="auto", tools=[],
            parallel_tool_calls=False,
        )  # fmt: skip
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=0)


def _item(turn: Turn) -> Any:
    if isinstance(turn, str):
        text = ResponseOutputText(type="output_text", text=turn, annotations=[])
        return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
    name, args = turn
    number = next(_NUMBERS)
    text_args = args if isinstance(args, str) else json.dumps(args)
    return ResponseFunctionToolCall(
        type="function_call", id=f"f{number}", call_id=f"c{number}", name=name, arguments=text_args
    )


def tool(name: str, hits: Hits) -> FunctionTool:
    ext = Extension(kind="tool", name=name, source="native")

    async def invoke(context: Any, text: str) -> str:
        return hits.of(ext)()

    return FunctionTool(name=name, description="", params_json_schema={"type": "object"}, on_invoke_tool=invoke,
                        strict_json_schema=False)  # fmt: skip


def gate(text: str = "{}", **more: Any) -> Gate:
    own = [Extension(kind="tool", name=n, source="native") for n in
           ("shell", "local_shell", "apply_patch", "notes", "web_search", "code_interpreter")]  # fmt: skip
    stock = Inventory(extensions=(*STOCK.extensions, *own), servers=STOCK.servers)
    return Gate(profile(text), stock, door="test", **more)


def run(agent: Agent[Any], gate: Gate, config: RunConfig | None = None) -> Any:
    return asyncio.run(Runner.run(agent, "go", run_config=run_config(gate, config)))


def test_a_tool_that_is_added_after_the_agent_was_guarded_is_judged_as_any() -> None:
    hits, door, model = Hits(), gate("tools: {disabled: [bash]}"), Plays(("bash", {}), ("read", {}))
    agent = guard(Agent(name="a", model=model), door)
    agent.tools.append(tool("bash", hits))
    agent.tools.append(tool("read", hits))
    run(agent, door)
    assert model.offered[0] == ["read"]
    assert hits.by_id == {"tool:read": 1}


def test_a_clone_stays_behind_the_gate() -> None:
    hits, door, model = Hits(), gate("tools: {disabled: [bash]}"), Plays(("bash", {}))
    run(guard(Agent(name="a", model=model), door).clone(tools=[tool("bash", hits)]), door)
    assert model.offered[0] == []
    assert not hits.by_id


def test_a_tool_that_nothing_installed_has_the_name_of_is_not_offered_and_does_not_run() -> None:
    hits, door, model = Hits(), gate(), Plays(("surprise", {}))
    run(guard(Agent(name="a", model=model, tools=[tool("surprise", hits)]), door), door)
    assert model.offered[0] == []
    assert model.told == ["'surprise' is not installed."]
    assert not hits.by_id


@pytest.mark.parametrize("text", ["[1]", "{broken", '"x"'])
def test_arguments_that_are_no_object_are_refused_and_recorded(text: str) -> None:
    memory = Memory()
    hits, door, model = Hits(), gate(sink=memory), Plays(("read", text))
    run(guard(Agent(name="a", model=model, tools=[tool("read", hits)]), door), door)
    assert not hits.by_id
    assert [e.outcome for e in memory.events if e.question == "use"] == ["refused"]
    assert "not a JSON object" in model.told[0]


def test_an_agent_without_a_gate_of_its_own_class_offers_nothing() -> None:
    model = Plays()
    agent = GatedAgent(name="a", model=model, tools=[tool("read", Hits())], handoffs=[Agent(name="helper")])
    asyncio.run(Runner.run(agent, "go"))
    assert model.offered == [[]]


def test_two_agents_on_one_server_see_different_tools() -> None:
    hits = Hits()
    server = Server("slack", list(STOCK.of_kind("mcp_tool"))[-2:], hits)
    names = sorted(server.tools)
    seen = {}
    for denied in names:
        model, door = Plays(), gate(f"mcp: {{disabled: ['slack/{denied}']}}")
        run(guard(Agent(name="a", model=model, mcp_servers=[server]), door), door)
        seen[denied] = model.offered[0]
    assert seen == {denied: [name for name in names if name != denied] for denied in names}


def test_a_streamed_run_is_judged_in_the_same_way() -> None:
    hits, door, model = Hits(), gate("tools: {disabled: [bash]}"), Plays(("bash", {}), ("read", {}))
    agent = guard(Agent(name="a", model=model, tools=[tool("bash", hits), tool("read", hits)]), door)

    async def stream() -> None:
        async for _ in Runner.run_streamed(agent, "go", run_config=run_config(door)).stream_events():
            pass

    asyncio.run(stream())
    assert model.offered[0] == ["read"]
    assert model.told[0] == "'bash' is disabled for this agent."
    assert hits.by_id == {"tool:read": 1}


def test_a_hundred_turns_side_by_side_never_meet_each_others_tools() -> None:
    hits = Hits()
    tools: list[Tool] = [tool("bash", hits), tool("read", hits)]
    doors = {name: gate(f"tools: {{disabled: [{name}]}}") for name in ("bash", "read")}
    models = [(name, Plays(("bash", {}), ("read", {}))) for name in doors for _ in range(50)]

    async def turns() -> None:
        runs = [
            Runner.run(guard(Agent(name="a", model=m, tools=tools), doors[n]), "go", run_config=run_config(doors[n]))
            for n, m in models
        ]
        await asyncio.gather(*runs)

    asyncio.run(turns())
    for denied, model in models:
        assert model.offered == [[name for name in ("bash", "read") if name != denied]] * 3
        assert sum("disabled" in text for text in model.told) == 1
    assert hits.by_id == {"tool:bash": 50, "tool:read": 50}


def test_a_server_that_is_assigned_later_is_gated_too() -> None:
    door, model = gate("mcp: {disabled: ['*']}"), Plays()
    agent = guard(Agent(name="a", model=model), door)
    agent.mcp_servers = [Server("slack", [e for e in STOCK.of_kind("mcp_tool") if e.server == "slack"], Hits())]
    run(agent, door)
    assert model.offered == [[]]


# ------------------------------------------------------------------------------------------------------------- children


def handoff_name(name: str) -> str:
    return Handoff.default_tool_name(Agent(name=name))


def test_an_agent_handed_to_has_nothing_that_its_parent_is_denied_at_depth_three() -> None:
    hits, door = Hits(), gate("tools: {disabled: [bash]}")
    tools: list[Tool] = [tool("bash", hits), tool("read", hits)]
    last = Plays(("bash", {}), ("read", {}))
    third = Agent(name="third", model=last, tools=tools)
    second = Agent(name="second", model=Plays((handoff_name("third"), {})), tools=tools, handoffs=[third])
    first = Agent(name="first", model=Plays((handoff_name("second"), {})), tools=tools, handoffs=[second])
    result = run(guard(first, door), door)
    assert result.last_agent.name == "third"
    assert last.offered[0] == ["read"]
    assert hits.by_id == {"tool:read": 1}
    assert last.told[-2] == "'bash' is disabled for this agent."


def test_an_agent_handed_to_under_a_gate_of_its_own_choice_is_put_under_the_parents() -> None:
    hits, door = Hits(), gate("tools: {disabled: [bash]}")
    model = Plays(("bash", {}))
    wide = guard(Agent(name="helper", model=model, tools=[tool("bash", hits)]), gate("{}"))
    run(guard(Agent(name="a", model=Plays((handoff_name("helper"), {})), handoffs=[wide]), door), door)
    assert model.offered[0] == []
    assert not hits.by_id


def test_a_refused_handoff_leaves_the_turn_where_it_is_with_the_reason() -> None:
    door, child = gate(), Plays()
    model = Plays((handoff_name("helper"), {}))
    agent = guard(Agent(name="a", model=model, handoffs=[Agent(name="helper", model=child)]), door)
    seen = model.get_response

    async def deny_first(**request: Any) -> ModelResponse:
        door.swap(profile=profile("subagents: {disabled: [helper]}"))
        return await seen(**request)

    model.get_response = deny_first  # type: ignore[method-assign]
    result = run(agent, door)
    assert result.last_agent.name == "a"
    assert child.offered == []
    assert model.told == ["'helper' is disabled for this agent."]
    assert model.offered[-1] == []


def test_an_unavailable_agent_is_not_handed_to() -> None:
    door, child = gate(), Plays()
    helper = guard(Agent(name="helper", model=child), door.child(profile("mcp: {required: [k8s]}", id_="helper")))
    model = Plays((handoff_name("helper"), {}))
    run(guard(Agent(name="a", model=model, handoffs=[helper]), door), door)
    assert child.offered == []
    assert "'helper' is unavailable" in model.told[0]


def test_an_agent_as_a_tool_is_the_sub_agent_and_is_under_its_own_gate() -> None:
    hits, door = Hits(), gate("tools: {disabled: [bash]}")
    child = Plays(("bash", {}), ("read", {}))
    helper = guard(
        Agent(name="helper", model=child, tools=[tool("bash", hits), tool("read", hits)]), door.child(agent="helper")
    )
    model = Plays(("ask_helper", {"input": "x"}))
    spawn = helper.as_tool("ask_helper", "asks")
    run(guard(Agent(name="a", model=model, tools=[spawn]), door), door)
    assert model.offered[0] == ["ask_helper"]
    assert child.offered[0] == ["read"]
    assert hits.by_id == {"tool:read": 1}
    denied, shut = gate("subagents: {disabled: [helper]}"), Plays(("ask_helper", {"input": "x"}))
    helper = guard(Agent(name="helper", model=Plays(), tools=[]), denied.child(agent="helper"))
    run(guard(Agent(name="a", model=shut, tools=[helper.as_tool("ask_helper", "asks")]), denied), denied)
    assert shut.offered[0] == []


@pytest.mark.parametrize("is_gated", [False, True])
def test_an_agent_as_a_tool_without_a_gate_under_this_one_is_not_offered(is_gated: bool) -> None:
    hits, door = Hits(), gate()
    helper: Agent[Any] = Agent(name="helper", model=Plays(("bash", {})), tools=[tool("bash", hits)])
    if is_gated:
        helper = guard(helper, gate())
    model = Plays(("ask_helper", {"input": "x"}))
    run(guard(Agent(name="a", model=model, tools=[helper.as_tool("ask_helper", "asks")]), door), door)
    assert model.offered[0] == []
    assert not hits.by_id


# ------------------------------------------------------------------------------------------- local and hosted tools


def test_what_runs_on_this_machine_asks_before_it_runs() -> None:
    ran: list[str] = []

    class Editor:
        def create_file(self, operation: Any) -> str:
            ran.append("patch")
            return "ok"

        update_file = delete_file = create_file

    async def custom(context: Any, text: str) -> str:
        ran.append("notes")
        return "ok"

    def shell(request: Any) -> str:
        ran.append("shell")
        return "ok"

    tools: list[Tool] = [
        ShellTool(executor=shell),
        LocalShellTool(executor=shell),
        ApplyPatchTool(editor=Editor()),
        CustomTool(name="notes", description="", on_invoke_tool=custom),
    ]
    door = gate()
    ready: list[Any] = list(offered(tools, door))

    request = SimpleNamespace(data=SimpleNamespace(action=SimpleNamespace(commands=["ls"], command=["ls"])))

    async def use() -> list[str]:
        patch = ApplyPatchOperation(type="create_file", path="a", diff="")
        return [
            await ready[0].executor(request),
            await ready[1].executor(request),
            await ready[2].editor.create_file(patch),
            await ready[3].on_invoke_tool(None, "x"),
        ]

    assert asyncio.run(use()) == ["ok"] * 4
    assert ran == ["shell", "shell", "patch", "notes"]
    door.swap(profile=profile("tools: {disabled: ['*']}"))
    assert all("disabled for this agent" in text for text in asyncio.run(use()))
    assert len(ran) == 4
    assert offered(tools, door) == []


def test_hosted_tools_are_offered_while_they_are_visible() -> None:
    tools: list[Tool] = [WebSearchTool()]
    assert offered(tools, gate()) == tools
    assert offered(tools, gate("tools: {disabled: [web_search]}")) == []


@pytest.mark.parametrize("own", [None, ["send"], {"tool_names": ["find", "send"]}])
def test_of_a_hosted_server_only_what_is_allowed_is_left(own: Any) -> None:
    config: Any = {"type": "mcp", "server_label": "slack", "server_url": "http://x", "require_approval": "never"}
    hosted = HostedMCPTool(tool_config=config | ({"allowed_tools": own} if own else {}))
    (left,) = offered([hosted], gate("mcp: {disabled: ['slack/find']}"))
    assert isinstance(left, HostedMCPTool)
    assert left.tool_config["allowed_tools"] == ["send"]
    assert offered([hosted], gate("mcp: {disabled: [slack]}")) == []


def test_prompts_and_resources_of_a_server_are_gated() -> None:
    class Wiki(Server):
        async def list_prompts(self) -> Any:
            return ListPromptsResult.model_validate({"prompts": [{"name": "triage"}]})

        async def get_prompt(self, name: str, arguments: Any = None) -> Any:
            return GetPromptResult.model_validate({"messages": []})

        async def list_resources(self, cursor: str | None = None) -> Any:
            rows = [{"uri": f"wiki://{name}", "name": "x"} for name in ("public/a", "secret/b")]
            return ListResourcesResult.model_validate({"resources": rows})

        async def list_resource_templates(self, cursor: str | None = None) -> Any:
            rows = [{"uriTemplate": "wiki://page/{name}", "name": "x"}]
            return ListResourceTemplatesResult.model_validate({"resourceTemplates": rows})

        async def read_resource(self, uri: str) -> Any:
            return f"read {uri}"

    text = "prompts: {disabled: ['wiki/*']}\nresources: {disabled: ['wiki/wiki://secret/*', 'wiki/wiki://page/*']}"
    server = GatedServer(Wiki("wiki", [], Hits()), gate(text))

    async def look() -> tuple[Any, ...]:
        templates = (await server.list_resource_templates()).model_dump(by_alias=True)
        return (
            (await server.list_prompts()).prompts,
            [str(row.uri) for row in (await server.list_resources()).resources],
            templates["resourceTemplates"],
            await server.read_resource("wiki://public/a"),
            (await server.get_prompt("triage")).messages[0].content.text,
        )

    prompts, resources, templates, read, refused = asyncio.run(look())
    assert (prompts, resources, templates) == ([], ["wiki://public/a"], [])
    assert read == "read wiki://public/a"
    assert refused == "'wiki/triage' is disabled for this agent."
    for uri in ("wiki://secret/b", "wiki://public/../secret/b", "wiki://%73ecret/b", "wiki://unknown"):
        with pytest.raises(PermissionError):
            asyncio.run(server.read_resource(uri))


def test_the_hosts_own_formatter_goes_on_for_other_errors() -> None:
    config = run_config(gate(), RunConfig(tool_error_formatter=lambda error: f"own: {error.kind}"))

    class Error:
        kind = "approval_rejected"

    assert config.tool_error_formatter is not None
    assert config.tool_error_formatter(Error()) == "own: approval_rejected"  # type: ignore[arg-type]
