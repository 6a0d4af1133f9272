"""MCP tools of a LangChain agent: named once and for all, known by server, there as long as their server is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent

from extgate.core.extension import Extension, Inventory, Server
from extgate.core.names import MAX_WIRE, unique_wire_names
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.factory import AgentFactory
from extgate.enforce.inproc.langchain import GateMiddleware
from extgate.enforce.inproc.langchain_identity import Registry
from extgate.enforce.inproc.langchain_mcp import McpAnswer, Toolbox
from tests.doors.policies import profile
from tests.unit.enforce.inproc.hosts import Scripted, call, gate, mcp, results, run, stock, tool

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
SERVED = stock(mcp("slack", "send", schema=SCHEMA), mcp("slack", "find"), servers=["slack"])


class Caller:
    """A server: keeps what it was called with, and answers the same each time."""

    def __init__(self, answer: McpAnswer | Exception) -> None:
        self.answer, self.calls = answer, list[tuple[str, dict[str, Any]]]()

    async def __call__(self, ext: Extension, arguments: dict[str, Any]) -> McpAnswer:
        self.calls.append((ext.id, arguments))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def text(*lines: str, **more: Any) -> McpAnswer:
    return McpAnswer(content=tuple({"type": "text", "text": line} for line in lines), **more)


def host(mine: Gate, model: Scripted, caller: Any) -> Any:
    registry = Registry()
    toolbox = Toolbox(mine, (), caller, registry)
    return create_agent(model, middleware=[toolbox, GateMiddleware(mine, registry=registry)])


def test_a_servers_tools_are_offered_with_their_schemas_and_called_by_server_and_item() -> None:
    model, caller = Scripted(turns=[call("slack_send", to="all")]), Caller(text("sent", "twice", structured={"n": 2}))
    messages = run(host(gate("{}", SERVED), model, caller))
    assert model.offers[0].names == ["slack_find", "slack_send"]
    assert model.offers[0].definitions[1]["function"]["parameters"] == SCHEMA
    assert caller.calls == [("mcp_tool:slack/send", {"to": "all"})]
    assert results(messages) == [("success", "sent\ntwice")]
    assert messages[-2].artifact == {"n": 2}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "policy", ["mcp: {disabled: ['slack/send']}", "mcp: {disabled: [slack]}", "tools: {disabled: ['slack_*']}"]
)
def test_a_denied_tool_of_a_server_is_neither_offered_nor_called(policy: str) -> None:
    model, caller = Scripted(turns=[call("slack_send", to="all")]), Caller(text("sent"))
    messages = run(host(gate(policy, SERVED), model, caller))
    assert "slack_send" not in model.offers[0].names
    assert caller.calls == []
    assert results(messages)[0][0] == "error"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (text("no such channel", is_error=True), "no such channel"),
        (McpAnswer(is_error=True), "the server answered with an error that says nothing"),
        (ConnectionError("it hung up"), "the server 'slack' did not answer: it hung up"),
    ],
)
def test_a_servers_error_is_an_answer_that_the_model_can_read(answer: Any, said: str) -> None:
    messages = run(host(gate("{}", SERVED), Scripted(turns=[call("slack_find")]), Caller(answer)))
    assert results(messages) == [("error", said)]


def test_what_is_no_text_keeps_its_form() -> None:
    blocks = (
        {"type": "text", "text": "a picture"},
        {"type": "image", "data": "QUJD", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "s://1", "text": "inside"}},
        {"type": "resource_link", "uri": "s://2"},
    )
    messages = run(host(gate("{}", SERVED), Scripted(turns=[call("slack_find")]), Caller(McpAnswer(content=blocks))))
    assert messages[-2].content == [
        {"type": "text", "text": "a picture"},
        {"type": "image", "base64": "QUJD", "mime_type": "image/png"},
        {"type": "text", "text": "inside"},
        {"type": "text", "text": "[resource_link s://2]"},
    ]


def test_a_tool_that_a_server_lists_later_is_in_the_next_request_and_obeys() -> None:
    mine = gate("mcp: {disabled: ['slack/wipe']}", SERVED)
    more = stock(mcp("slack", "send"), mcp("slack", "wipe"), mcp("slack", "more"), servers=["slack"])
    model = Scripted(turns=[call("slack_find"), call("slack_more") + call("slack_wipe") + call("slack_find")])
    model.before = lambda offer: mine.swap(inventory=more)
    caller = Caller(text("ok"))
    messages = run(host(mine, model, caller))
    assert [offer.names for offer in model.offers[:2]] == [["slack_find", "slack_send"], ["slack_more", "slack_send"]]
    assert [status for status, _ in results(messages)] == ["error", "success", "error", "error"], "slack_find is gone"
    assert [ext for ext, _ in caller.calls] == ["mcp_tool:slack/more"]


def test_a_tool_goes_on_being_the_same_object_while_its_definition_is_the_same() -> None:
    mine, registry = gate("{}", SERVED), Registry()
    toolbox = Toolbox(mine, (), Caller(text()), registry)
    before = toolbox.by_name()
    same = mcp("slack", "send", schema=SCHEMA)
    mine.swap(inventory=stock(same, mcp("slack", "find", schema=SCHEMA), servers=["slack"]))
    after = toolbox.by_name()
    assert after["slack_send"] is before["slack_send"]
    assert after["slack_find"] is not before["slack_find"]


def test_a_server_cannot_take_the_name_of_a_native_tool() -> None:
    mine = gate("{}", stock(mcp("read", "file"), mcp("app", "x"), tool("app_x"), servers=["read", "app"]))
    names = set(Toolbox(mine, (), Caller(text()), Registry()).by_name())
    assert not names & {"read_file", "app_x"}
    assert len(names) == 2


servers = st.text("ab_.-工 ", min_size=1, max_size=5) | st.just("s" * 70)
items = st.lists(st.builds(mcp, servers, servers), max_size=8, unique_by=lambda e: e.id)


@given(items, st.sets(st.sampled_from(["a_b", "a_a", "b_a"])), st.randoms())
def test_wire_names_are_one_to_one_fit_the_wire_and_do_not_depend_on_order(
    extensions: list[Extension], taken: set[str], random: Any
) -> None:
    names = unique_wire_names(extensions, taken)
    assert len(set(names.values())) == len(extensions)
    assert not taken & set(names.values())
    assert all(len(name) <= MAX_WIRE and name.isascii() and " " not in name for name in names.values())
    shuffled = list(extensions)
    random.shuffle(shuffled)
    assert unique_wire_names(shuffled, taken) == names


def test_two_servers_whose_names_meet_are_called_apart(tmp_path: Path) -> None:
    inventory = stock(mcp("a", "b_c"), mcp("a_b", "c"), servers=["a", "a_b"])
    names = {ext.id: name for ext, name in unique_wire_names(inventory.of_kind("mcp_tool")).items()}
    model = Scripted(turns=[[c for name in names.values() for c in call(name)]])
    caller = Caller(text("ok"))
    mine = Gate(profile("mcp: {disabled: ['a_b']}"), inventory, door="langchain")
    factory = AgentFactory(call=caller, read_skill=lambda ext: "")
    run(factory.create_behind(mine, model=model, root=tmp_path).graph)
    assert [ext for ext, _ in caller.calls] == ["mcp_tool:a/b_c"]


def test_a_server_that_went_takes_its_tools_with_it(tmp_path: Path) -> None:
    mine = gate("{}", SERVED)
    gone = Inventory(extensions=stock().extensions, servers=(Server(name="slack", state="failed"),))
    model = Scripted(turns=[call("slack_find")], before=lambda offer: mine.swap(inventory=gone))
    caller = Caller(text("ok"))
    messages = run(host(mine, model, caller))
    assert caller.calls == []
    assert results(messages) == [("error", "'slack_find' is not installed.")]
