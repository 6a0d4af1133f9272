"""Client loops: what is left of a request, what of an answer may run, and what a refused call is answered."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest

from extgate.core.extension import Extension, Inventory
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.loops import Api, ajudge, calls, judge, visible
from extgate.enforce.sinks import Memory
from tests.doors.driver_loops import answer, offered, tool
from tests.doors.policies import layer, profile, rule
from tests.doors.table import STOCK

APIS: tuple[Api, ...] = ("chat", "responses", "messages")
apis = pytest.mark.parametrize("api", APIS)


def gate(text: str = "tools: {disabled: [bash]}", *more: str, **options: Any) -> Gate:
    own = [Extension(kind="tool", name=name, source="native") for name in more]
    stock = Inventory(extensions=(*STOCK.extensions, *own), servers=STOCK.servers)
    return Gate(profile(text), stock, door="test", **options)


def request(api: Api, *names: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "tools": [tool(api, name) for name in names], **more}


@apis
def test_a_request_keeps_its_visible_tools_in_order_and_the_original_stays_as_it_is(api: Api) -> None:
    given = request(api, "read", "bash", "mcp__slack__send", "unknown", temperature=0)
    before = copy.deepcopy(given)
    made = visible(gate(), given)
    assert offered(made) == ["read", "mcp__slack__send"]
    assert made["temperature"] == 0
    assert given == before


@apis
def test_a_request_without_any_visible_tool_says_nothing_of_tools(api: Api) -> None:
    made = visible(gate(), request(api, "bash", tool_choice="auto", parallel_tool_calls=True))
    assert made == {"model": "m"}


@pytest.mark.parametrize(
    ("choice", "is_kept"),
    [
        ("auto", True),
        ({"type": "any"}, True),
        ({"type": "function", "function": {"name": "read"}}, True),
        ({"type": "function", "function": {"name": "bash"}}, False),
        ({"type": "function", "name": "bash"}, False),
        ({"type": "tool", "name": "bash"}, False),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "bash"}]}, False),
        ({"type": "web_search"}, False),
    ],
)
def test_a_choice_that_names_a_hidden_tool_goes(choice: Any, is_kept: bool) -> None:
    made = visible(gate(), request("chat", "read", "bash", tool_choice=choice))
    assert ("tool_choice" in made) == is_kept


@apis
def test_of_several_calls_each_is_judged_and_the_refused_ones_are_answered(api: Api) -> None:
    door = gate()
    sent = visible(door, request(api, "read", "bash", "edit"))
    said = answer(api, "read", {"path": "x"})
    for name in ("bash", "surprise", "edit"):
        _merge(api, said, answer(api, name, {}), name)
    verdict = judge(door, sent, said)
    assert [call.name for call in verdict.calls] == ["read", "edit"]
    assert verdict.calls[0].args == {"path": "x"}
    told = [str(result.get("content") or result.get("output")) for result in verdict.results]
    assert told == ["'bash' is disabled for this agent.", "'surprise' is not installed."]
    assert all(result.get("is_error") for result in verdict.results) == (api == "messages")


def _merge(api: Api, into: dict[str, Any], more: dict[str, Any], id_: str) -> None:
    if api == "chat":
        (row,) = more["choices"][0]["message"]["tool_calls"]
        into["choices"][0]["message"]["tool_calls"].append(row | {"id": id_})
    elif api == "responses":
        into["output"].append(more["output"][0] | {"call_id": id_})
    else:
        into["content"].append(more["content"][0] | {"id": id_})


@apis
def test_a_call_of_something_that_was_not_offered_is_refused_although_the_rules_would_let_it_run(api: Api) -> None:
    memory = Memory()
    door = gate(sink=memory)
    verdict = judge(door, request(api, "edit"), answer(api, "read", {}))
    assert verdict.calls == ()
    (event,) = [event for event in memory.events if event.question == "use"]
    assert (event.extension, event.outcome) == ("tool:read", "refused")
    assert event.reason == "'read' was not offered to this agent."


@apis
@pytest.mark.parametrize("name", ["Bash", "bash ", "BASH", "mcp__slack__Send", "ba\u200bsh", "", "read\n"])
def test_a_near_miss_of_a_name_runs_nothing(api: Api, name: str) -> None:
    door = gate("{}")
    assert judge(door, visible(door, request(api, "bash", "read")), answer(api, name, {})).calls == ()


@pytest.mark.parametrize("text", ["[1]", "{broken", '"x"', "null", "[" * 100_000])
def test_arguments_that_are_no_object_are_refused(text: str) -> None:
    door = gate()
    said = answer("chat", "read", {})
    said["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = text
    verdict = judge(door, request("chat", "read"), said)
    assert verdict.calls == ()
    assert "not a JSON object" in verdict.results[0]["content"]


def test_calls_of_every_choice_are_judged() -> None:
    said = answer("chat", "read", {})
    said["choices"].append(answer("chat", "bash", {})["choices"][0])
    door = gate()
    verdict = judge(door, visible(door, request("chat", "read", "bash")), said)
    assert [call.name for call in verdict.calls] == ["read"]
    assert len(verdict.results) == 1


def test_an_answer_without_calls_has_none() -> None:
    assert calls({"choices": [{"message": {"role": "assistant", "content": "hi", "tool_calls": None}}]}) == ()
    assert calls({"content": [{"type": "text", "text": "hi"}, {"type": "server_tool_use", "id": "x"}]}) == ()
    assert calls({"output": [{"type": "message"}, {"type": "web_search_call", "id": "w", "status": "completed"}]}) == ()


def test_custom_tools_and_shell_calls_are_judged_by_name_and_by_what_they_are() -> None:
    door = gate("tools: {disabled: [shell]}", "notes", "shell")
    tools = [{"type": "custom", "custom": {"name": "notes"}}]
    said = {"choices": [{"message": {"tool_calls": [
        {"id": "c", "type": "custom", "custom": {"name": "notes", "input": "free text"}}]}}]}  # fmt: skip
    verdict = judge(door, visible(door, {"tools": tools}), said)
    assert [(call.name, call.args) for call in verdict.calls] == [("notes", {"input": "free text"})]
    shell = {"output": [{"type": "shell_call", "call_id": "s", "action": {"commands": ["rm -rf /"]}}]}
    verdict = judge(door, {"tools": [{"type": "shell"}]}, shell)
    assert verdict.calls == ()
    assert verdict.results == (
        {"type": "shell_call_output", "call_id": "s", "output": "'shell' is disabled for this agent."},
    )


def test_an_argument_rule_decides_by_the_arguments_of_the_call() -> None:
    door = Gate(profile("{}", layer(rule("deny", "bash", when=(("command", "rm *"),)))), STOCK, door="test")
    sent = visible(door, request("messages", "bash"))
    assert judge(door, sent, answer("messages", "bash", {"command": "ls"})).calls
    assert not judge(door, sent, answer("messages", "bash", {"command": "rm -rf /"})).calls


def test_an_approver_that_must_be_awaited_is_awaited() -> None:
    class Later:
        name = "ann"

        async def __call__(self, decision: object, args: object) -> bool:
            return True

    door = Gate(profile("{}", layer(rule("ask", "deploy"))), STOCK, door="test", approver=Later())
    sent, said = visible(door, request("chat", "deploy")), answer("chat", "deploy", {})
    assert asyncio.run(ajudge(door, sent, said)).calls
    assert not judge(door, sent, said).calls
    assert not asyncio.run(ajudge(door, {"tools": []}, said)).calls


# -------------------------------------------------------------------------------------------- what the provider runs


def test_a_tool_that_the_provider_runs_is_left_while_its_name_is_visible() -> None:
    tools = [
        {"type": "web_search"},
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "code_interpreter"},
    ]
    assert visible(gate("{}", "web_search"), {"tools": tools})["tools"] == tools[:2]
    assert "tools" not in visible(gate("tools: {disabled: ['web_*']}", "web_search"), {"tools": tools})


@pytest.mark.parametrize("own", [None, ["send", "find"], {"tool_names": ["send", "find"]}])
def test_of_a_hosted_server_only_what_is_allowed_is_left(own: Any) -> None:
    hosted = {"type": "mcp", "server_label": "slack", "server_url": "http://x"} | (
        {"allowed_tools": own} if own else {}
    )
    (left,) = visible(gate("mcp: {disabled: ['slack/send']}"), {"tools": [hosted]})["tools"]
    assert left["allowed_tools"] == ["find"]
    assert "tools" not in visible(gate("mcp: {disabled: [slack]}"), {"tools": [hosted]})


def test_of_an_anthropic_toolset_only_what_is_allowed_is_switched_on() -> None:
    servers = [{"type": "url", "name": name, "url": "http://x"} for name in ("slack", "github")]
    toolsets = [{"type": "mcp_toolset", "mcp_server_name": name} for name in ("slack", "github")]
    made = visible(gate("mcp: {disabled: ['slack/send', github]}"), {"mcp_servers": servers, "tools": toolsets})
    assert made["mcp_servers"] == servers[:1]
    (left,) = made["tools"]
    assert left["default_config"] == {"enabled": False}
    assert left["configs"] == {"find": {"enabled": True}}
    off = {"type": "mcp_toolset", "mcp_server_name": "slack", "default_config": {"enabled": False}}
    assert "tools" not in visible(gate("{}"), {"tools": [off]})


def test_an_anthropic_server_of_the_older_form_keeps_the_allowed_tools_and_another_goes() -> None:
    servers = [{"type": "url", "name": name, "url": "http://x"} for name in ("slack", "github", "unknown")]
    made = visible(gate("mcp: {disabled: ['slack/send', github]}"), {"mcp_servers": servers})
    (left,) = made["mcp_servers"]
    assert left["tool_configuration"] == {"allowed_tools": ["find"]}


def test_what_must_be_asked_for_is_not_left_to_the_provider() -> None:
    class Yes:
        name = "ann"

        def __call__(self, decision: object, args: object) -> bool:
            return True

    policy = profile("{}", layer(rule("ask", "slack/send", kind="mcp_tool")))
    door = Gate(policy, STOCK, door="test", approver=Yes())
    (left,) = visible(door, {"tools": [{"type": "mcp", "server_label": "slack"}]})["tools"]
    assert left["allowed_tools"] == ["find"]


@apis
def test_an_event_names_the_arguments_and_not_their_values(api: Api) -> None:
    memory = Memory()
    door = gate(sink=memory)
    judge(door, visible(door, request(api, "read")), answer(api, "read", {"path": "hunter2"}))
    rows = json.dumps([event.as_dict() for event in memory.events])
    assert '"arguments": ["path"]' in rows
    assert "hunter2" not in rows
