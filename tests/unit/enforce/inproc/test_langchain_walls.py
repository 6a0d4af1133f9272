"""The three walls of the LangChain door: what is built in, what leaves in a request, what runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from extgate.core.decide import Decision
from extgate.core.extension import Extension, Inventory
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.langchain import GateMiddleware, visible_tools
from extgate.enforce.inproc.langchain_identity import Registry
from extgate.enforce.sinks import Memory
from tests.doors.policies import layer, profile, rule
from tests.unit.enforce.inproc.hosts import Marks, Scripted, call, gate, mcp, results, run, stock, tool

BOTH_WAYS = pytest.mark.parametrize("how", ["invoke", "ainvoke"])


class Adds(AgentMiddleware[Any, Any, Any]):
    """Somebody's middleware that puts something into each request, and runs what it has put there."""

    def __init__(
        self, tools: list[Any] | None = None, settings: Mapping[str, Any] | None = None, name: str = "Adds"
    ) -> None:
        super().__init__()
        self.added, self.settings, self._name = tools or [], dict(settings or {}), name

    @property
    def name(self) -> str:
        return self._name

    def _with(self, request: Any) -> Any:
        settings = {**request.model_settings, **self.settings}
        return request.override(tools=[*request.tools, *self.added], model_settings=settings)

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(self._with(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(self._with(request))

    def _found(self, request: Any) -> Any:
        found = [t for t in self.added if getattr(t, "name", None) == request.tool_call["name"]]
        return request.override(tool=found[0]) if found and request.tool is None else request

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(self._found(request))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(self._found(request))


# ---------------------------------------------------------------------------------------------------- built-in tools


@BOTH_WAYS
def test_a_denied_built_in_is_neither_offered_nor_run(how: str, tmp_path: Any) -> None:
    model = Scripted(turns=[call("write_file", file_path="/x.txt", content="x"), call("ls", path="/")])
    memory = Memory()
    agent = create_deep_agent(model, middleware=[GateMiddleware(gate("tools: {disabled: ['write_*']}", sink=memory))])
    messages = run(agent, how=how)
    assert "write_file" not in model.offers[0].names
    assert "ls" in model.offers[0].names
    assert results(messages)[0] == ("error", "'write_file' is disabled for this agent.")
    assert results(messages)[1][0] == "success"
    assert [(e.extension, e.outcome) for e in memory.events if e.question == "use"] == [
        ("tool:write_file", "refused"),
        ("tool:ls", "allowed"),
    ]


@BOTH_WAYS
def test_a_name_that_nothing_has_is_refused_without_naming_what_there_is(how: str) -> None:
    model = Scripted(turns=[call("wipe_disk")])
    agent = create_deep_agent(model, middleware=[GateMiddleware(gate("tools: {disabled: [grep]}"))])
    assert results(run(agent, how=how)) == [("error", "'wipe_disk' is not installed.")]


def test_what_is_asked_is_what_runs_whatever_the_case() -> None:
    model = Scripted(turns=[call("LS", path="/")])
    agent = create_deep_agent(model, middleware=[GateMiddleware(gate("{}"))])
    assert results(run(agent)) == [("error", "'LS' is not installed.")]


# ---------------------------------------------------------------------------------------------------- the host's tools


def app_gate(policy: str, *more: Extension, **options: Any) -> Gate:
    return gate(policy, stock(tool("deploy"), tool("notes"), *more), **options)


def test_the_first_wall_hands_over_what_is_visible() -> None:
    marks = Marks()
    tools = [marks.tool("deploy"), marks.tool("notes"), {"type": "web_search"}]
    assert [t.name for t in visible_tools(app_gate("tools: {allowed: [notes]}"), tools)] == ["notes"]


@BOTH_WAYS
def test_a_call_of_a_hidden_tool_runs_nothing(how: str) -> None:
    marks, model = Marks(), Scripted(turns=[call("deploy") + call("notes")])
    tools = [marks.tool("deploy"), marks.tool("notes")]
    agent = create_agent(model, tools, middleware=[GateMiddleware(app_gate("tools: {disabled: [deploy]}"))])
    assert results(run(agent, how=how)) == [("error", "'deploy' is disabled for this agent."), ("success", "ran")]
    assert model.offers[0].names == ["notes"]
    assert marks.by_name == {"notes": 1}


def test_a_new_deny_binds_the_next_call_of_a_running_turn() -> None:
    marks = Marks()
    mine = app_gate("{}")

    def change(offer: Any) -> None:
        mine.swap(profile=profile("tools: {disabled: [deploy]}"))

    model = Scripted(turns=[call("deploy")], before=change)
    agent = create_agent(model, [marks.tool("deploy")], middleware=[GateMiddleware(mine)])
    assert results(run(agent))[0][0] == "error"
    assert model.offers[0].names == ["deploy"]
    assert model.offers[1].names == []
    assert not marks.by_name


def test_an_allow_that_comes_later_is_in_the_next_request() -> None:
    marks, mine = Marks(), app_gate("tools: {disabled: [deploy]}")
    model = Scripted(turns=[call("notes")], before=lambda offer: mine.swap(profile=profile("{}")))
    agent = create_agent(model, [marks.tool("deploy"), marks.tool("notes")], middleware=[GateMiddleware(mine)])
    run(agent)
    assert [offer.names for offer in model.offers] == [["notes"], ["deploy", "notes"]]


def test_a_tool_with_a_servers_prefix_in_its_name_is_native_when_it_was_registered_so() -> None:
    marks, registry = Marks(), Registry()
    (native,) = registry.native([marks.tool("slack_send")], "app")
    mine = gate("mcp: {disabled: [slack]}", stock(mcp("slack", "send"), servers=["slack"]))
    model = Scripted(turns=[call("slack_send")])
    agent = create_agent(model, [native], middleware=[GateMiddleware(mine, registry=registry)])
    assert results(run(agent)) == [("success", "ran")]


def test_an_unregistered_tool_with_a_wire_name_is_the_servers_item() -> None:
    marks = Marks()
    mine = gate("mcp: {disabled: [slack]}", stock(mcp("slack", "send"), servers=["slack"]))
    model = Scripted(turns=[call("slack_send")])
    agent = create_agent(model, [marks.tool("slack_send")], middleware=[GateMiddleware(mine)])
    assert results(run(agent))[0][0] == "error"
    assert not marks.by_name


@pytest.mark.parametrize(
    "policy",
    [
        "mcp: {disabled: ['*']}",
        "mcp: {allowed: [github]}",
        "tools: {allowed: [notes]}",
        "tools: {disabled: ['lo*']}",
    ],
)
def test_a_tool_of_unknown_origin_must_pass_every_block(policy: str) -> None:
    marks, model = Marks(), Scripted(turns=[call("lookup")])
    agent = create_agent(model, [marks.tool("lookup")], middleware=[GateMiddleware(gate(policy))])
    assert results(run(agent))[0][0] == "error"
    assert model.offers[0].names == []
    assert not marks.by_name


def test_a_tool_of_unknown_origin_that_points_to_a_server_is_judged_as_its_item() -> None:
    marks, model = Marks(), Scripted(turns=[call("slack_wipe")])
    mine = gate("mcp: {disabled: ['slack/wi*']}", stock(servers=["slack"]))
    agent = create_agent(model, [marks.tool("slack_wipe")], middleware=[GateMiddleware(mine)])
    assert results(run(agent))[0][0] == "error"
    assert not marks.by_name


def test_a_tool_that_takes_a_built_ins_name_is_of_unknown_origin() -> None:
    marks, model = Marks(), Scripted(turns=[call("ls")])
    agent = create_agent(model, [marks.tool("ls")], middleware=[GateMiddleware(gate("mcp: {disabled: ['*']}"))])
    assert results(run(agent))[0][0] == "error"
    assert not marks.by_name


# ---------------------------------------------------------------------------------------------------- late additions


@BOTH_WAYS
@pytest.mark.parametrize("is_behind", [False, True], ids=["before the gate", "behind the gate"])
def test_a_tool_that_middleware_adds_is_judged_wherever_it_stands(how: str, is_behind: bool) -> None:
    marks, model = Marks(), Scripted(turns=[call("deploy") + call("notes")])
    adds = Adds([marks.tool("deploy"), marks.tool("notes")])
    wall = GateMiddleware(app_gate("tools: {disabled: [deploy]}"))
    agent = create_agent(model, [], middleware=[wall, adds] if is_behind else [adds, wall])
    messages = run(agent, how=how)
    assert model.offers[0].names == ["notes"]
    assert results(messages) == [("error", "'deploy' is disabled for this agent."), ("success", "ran")]
    assert marks.by_name == {"notes": 1}


@pytest.mark.parametrize("is_behind", [False, True], ids=["before the gate", "behind the gate"])
@pytest.mark.parametrize(
    ("definition", "is_hidden"),
    [
        ({"type": "web_search_20250305", "name": "web_search"}, True),
        ({"type": "web_search_preview"}, True),
        ({"google_search": {}}, False),
        ({"type": "code_interpreter", "container": {"type": "auto"}}, True),
        ({"type": "function", "function": {"name": "web_search"}}, True),
        ({"name": "weather", "input_schema": {}}, False),
        ({"type": "mcp", "server_label": "slack", "server_url": "https://x.example"}, True),
        ({"type": "mcp", "server_label": "github", "allowed_tools": ["get_issue"]}, False),
        ({"type": "mcp", "server_label": "slack", "allowed_tools": ["send"]}, True),
        ({"type": "mcp_toolset", "mcp_server_name": "slack"}, True),
        ({"function_declarations": [{"name": "weather"}, {"name": "web_search"}]}, True),
        ({"type": "namespace", "name": "x", "tools": [{"type": "function", "name": "weather"}]}, False),
        ({"description": "no name"}, True),
        ({}, True),
    ],
)
def test_a_tool_that_the_provider_runs_is_judged_by_what_it_declares(
    definition: dict[str, Any], is_hidden: bool, is_behind: bool
) -> None:
    policy = "tools: {disabled: ['web_search*', 'code_*']}\nmcp: {disabled: [slack]}"
    model, wall = Scripted(), GateMiddleware(app_gate(policy))
    agent = create_agent(model, [], middleware=[wall, Adds([definition])] if is_behind else [Adds([definition]), wall])
    run(agent)
    assert (definition not in model.offers[0].definitions) == is_hidden


@pytest.mark.parametrize("is_behind", [False, True], ids=["before the gate", "behind the gate"])
def test_tools_in_the_models_settings_are_judged_too(is_behind: bool) -> None:
    settings = {
        "tools": [{"type": "function", "function": {"name": name}} for name in ("deploy", "notes")],
        "functions": [{"name": "deploy"}],
        "mcp_servers": [{"type": "url", "name": "slack", "url": "https://x.example"}],
    }
    model, wall = Scripted(), GateMiddleware(app_gate("tools: {disabled: [deploy]}"))
    adds = Adds(settings=settings)
    run(create_agent(model, [], middleware=[wall, adds] if is_behind else [adds, wall]))
    assert model.offers[0].names == ["notes"]
    assert not {"functions", "mcp_servers"} & model.offers[0].settings.keys()


@pytest.mark.parametrize("choice", ["deploy", {"type": "function", "function": {"name": "deploy"}}, "any"])
def test_a_choice_of_a_hidden_tool_is_dropped(choice: Any) -> None:
    class Chooses(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(tool_choice=choice))

    model, marks = Scripted(), Marks()
    wall = GateMiddleware(app_gate("tools: {disabled: [deploy]}"))
    run(create_agent(model, [marks.tool("deploy")], middleware=[Chooses(), wall]), how="invoke")
    assert "tool_choice" not in model.offers[0].settings
    assert "tools" not in model.offers[0].settings


class Findings(BaseModel):
    """What was found."""

    text: str = ""


@BOTH_WAYS
@pytest.mark.parametrize("is_denied", [True, False])
def test_a_schema_for_structured_output_is_a_tool_like_any_other(how: str, is_denied: bool) -> None:
    model = Scripted(turns=[call("Findings", text="secret"), "plain"])
    policy = "tools: {disabled: [Findings]}" if is_denied else "tools: {allowed: [Findings]}"
    agent = create_agent(
        model, [Marks().tool("notes")], middleware=[GateMiddleware(app_gate(policy))],
        response_format=ToolStrategy(Findings),
    )  # fmt: skip
    given: dict[str, Any] = {"messages": [("user", "go")]}
    state = agent.invoke(given) if how == "invoke" else asyncio.run(agent.ainvoke(given))
    assert ("Findings" in model.offers[0].names) != is_denied
    found = state.get("structured_response")
    assert found is None if is_denied else found == Findings(text="secret")
    assert not is_denied or results(state["messages"]) == [("error", "'Findings' is disabled for this agent.")]


# ---------------------------------------------------------------------------------------------------- failing


@BOTH_WAYS
def test_an_unavailable_agent_sends_nothing(how: str) -> None:
    model = Scripted(turns=[call("ls", path="/")])
    agent = create_deep_agent(model, middleware=[GateMiddleware(gate("mcp: {required: [k8s]}"))])
    messages = run(agent, how=how)
    assert model.offers == []
    assert "k8s" in messages[-1].text
    assert isinstance(messages[-1], AIMessage)


@BOTH_WAYS
def test_an_agent_that_becomes_unavailable_sends_nothing_more(how: str) -> None:
    mine, marks = app_gate("{}"), Marks()

    def change(offer: Any) -> None:
        mine.swap(profile=profile("mcp: {required: [k8s]}"))

    model = Scripted(turns=[call("deploy")], before=change)
    messages = run(create_agent(model, [marks.tool("deploy")], middleware=[GateMiddleware(mine)]), how=how)
    assert len(model.offers) == 1
    assert results(messages)[0][0] == "error"
    assert "unavailable" in messages[-1].text
    assert not marks.by_name


class Broken(Gate):
    """A gate whose look-up of names fails."""

    def owners(self, name: str, kinds: Any = ()) -> Any:
        raise OSError("no disk")


@BOTH_WAYS
def test_a_gate_that_fails_sends_nothing(how: str) -> None:
    model, marks = Scripted(), Marks()
    wall = GateMiddleware(Broken(profile("{}"), stock(), door="langchain"))
    messages = run(create_agent(model, [marks.tool("notes")], middleware=[wall]), how=how)
    assert model.offers == []
    assert messages[-1].text == "The gate failed (OSError); no request was sent."


@BOTH_WAYS
def test_a_gate_that_fails_at_a_call_runs_nothing_and_records_it(how: str) -> None:
    memory, marks = Memory(), Marks()
    wall = GateMiddleware(app_gate("{}", sink=memory))

    def change(offer: Any) -> None:
        wall._calls = None  # type: ignore[assignment]

    model = Scripted(turns=[call("deploy")], before=change)
    messages = run(create_agent(model, [marks.tool("deploy")], middleware=[wall]), how=how)
    assert results(messages) == [("error", "the gate failed (AttributeError); nothing was run.")]
    assert [e.outcome for e in memory.events if e.question == "use"] == ["refused"]
    assert not marks.by_name


def test_a_use_that_cannot_be_recorded_does_not_happen() -> None:
    def full(event: Any) -> None:
        if event.question == "use":
            raise OSError("disk full")

    model, marks = Scripted(turns=[call("deploy")]), Marks()
    agent = create_agent(model, [marks.tool("deploy")], middleware=[GateMiddleware(app_gate("{}", sink=full))])
    assert results(run(agent))[0][0] == "error"
    assert not marks.by_name


def test_a_tools_own_error_is_the_frameworks_business() -> None:
    def fails() -> str:
        """Fails."""
        raise RuntimeError("of its own")

    model = Scripted(turns=[call("fails")])
    agent = create_agent(model, [fails], middleware=[GateMiddleware(gate("{}", Inventory()))])
    with pytest.raises(RuntimeError, match="of its own"):
        run(agent)


# ---------------------------------------------------------------------------------------------------- approvals


class Says:
    """Answers an `ask` and keeps what it was asked; at once, or when it is awaited."""

    name = "ann"

    def __init__(self, said: bool, *, is_awaited: bool) -> None:
        self.said, self.is_awaited = said, is_awaited
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def __call__(self, decision: Decision, args: Mapping[str, Any]) -> Any:
        self.asked.append((decision.extension.name, args))

        async def later() -> bool:
            return self.said

        return later() if self.is_awaited else self.said


ASK = profile("{}", layer(rule("ask", "deploy")))


@pytest.mark.parametrize("said", [True, False])
@pytest.mark.parametrize(("how", "is_awaited"), [("invoke", False), ("ainvoke", False), ("ainvoke", True)])
def test_an_approval_is_asked_for_the_call(how: str, is_awaited: bool, said: bool) -> None:
    approver, marks = Says(said, is_awaited=is_awaited), Marks()
    mine = Gate(ASK, stock(tool("deploy")), door="langchain", approver=approver)
    model = Scripted(turns=[call("deploy", to="prod")])
    messages = run(create_agent(model, [marks.tool("deploy")], middleware=[GateMiddleware(mine)]), how=how)
    assert approver.asked == [("deploy", {"to": "prod"})]
    assert marks.by_name == ({"deploy": 1} if said else {})
    assert results(messages)[0][0] == ("success" if said else "error")


def test_an_approver_that_must_be_awaited_cannot_answer_a_synchronous_call() -> None:
    marks, mine = Marks(), Gate(ASK, stock(tool("deploy")), door="x", approver=Says(True, is_awaited=True))
    agent = create_agent(Scripted(turns=[call("deploy")]), [marks.tool("deploy")], middleware=[GateMiddleware(mine)])
    assert results(run(agent, how="invoke"))[0][0] == "error"
    assert not marks.by_name


def test_an_ask_with_nobody_there_is_hidden_and_refused() -> None:
    marks, model = Marks(), Scripted(turns=[call("deploy")])
    mine = Gate(ASK, stock(tool("deploy")), door="langchain")
    messages = run(create_agent(model, [marks.tool("deploy")], middleware=[GateMiddleware(mine)]))
    assert model.offers[0].names == []
    assert "Nobody is here to approve it." in results(messages)[0][1]
    assert not marks.by_name


# ---------------------------------------------------------------------------------------------------- what stays


def test_the_gated_model_is_still_an_instance_of_its_class() -> None:
    seen: list[Any] = []

    class Looks(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Callable[..., Any]) -> Any:
            seen.append(request.model)
            return handler(request)

    model = Scripted()
    run(create_agent(model, [], middleware=[GateMiddleware(gate("{}")), Looks()]), how="invoke")
    assert isinstance(seen[0], Scripted)
    assert type(seen[0]).__name__ == "Scripted"
    assert seen[0] == model or seen[0].turns is model.turns
    assert type(model) is Scripted


def test_equal_sets_give_equal_requests_whatever_the_order_of_arrival() -> None:
    offers = []
    for names in (["deploy", "notes"], ["notes", "deploy"]):
        inventory = Inventory(extensions=tuple(tool(name) for name in names))
        model = Scripted()
        tools = visible_tools(gate("{}", inventory), [Marks().tool(name) for name in ("deploy", "notes")])
        run(create_agent(model, tools, middleware=[GateMiddleware(gate("{}", inventory))]))
        offers.append(model.offers[0].definitions)
    assert offers[0] == offers[1]
