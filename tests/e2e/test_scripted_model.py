"""The scripted model answers on every wire, and plays the turn that the request asks for."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.e2e.clients import wires
from tests.e2e.clients.model import ScriptedModel
from tests.e2e.clients.verdicts import verdict
from tests.e2e.clients.wires import Call

TOOL = {"name": "run", "description": "", "parameters": {"type": "object"}}
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic": ("/v1/messages", {"messages": [{"role": "user", "content": "go"}], "tools": [TOOL]}),
    "chat": (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "go"}], "tools": [{"type": "function", "function": TOOL}]},
    ),
    "responses": ("/v1/responses", {"input": "go", "tools": [{"type": "function", **TOOL}]}),
    "gemini": (
        "/v1beta/models/m:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "go"}]}], "tools": [{"functionDeclarations": [TOOL]}]},
    ),
}
ANSWERED: dict[str, dict[str, Any]] = {
    "anthropic": {"messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": []}]},
    "chat": {"messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": None}]},
    "responses": {"input": [{"role": "user", "content": "go"}, {"type": "function_call", "name": "run"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "go"}]}, {"role": "model", "parts": []}]},
}


def ask(model: ScriptedModel, wire: str, **more: Any) -> str:
    path, body = ASKED[wire]
    request = Request(model.url + path, data=json.dumps(body | more).encode(), method="POST")
    with urlopen(request) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("wire", list(ASKED))
def test_each_wire_calls_the_tool_and_then_says_done(wire: str) -> None:
    with ScriptedModel({"": [[Call("run", {"command": "id"})]]}) as model:
        first, second = ask(model, wire), ask(model, wire, **ANSWERED[wire])
    assert '"run"' in first
    assert "id" in first
    assert "done" not in first
    assert "done" in second
    assert model.offered == ["run"]


@pytest.mark.parametrize("wire", ["anthropic", "chat", "responses"])
def test_a_stream_carries_the_same_call(wire: str) -> None:
    with ScriptedModel({"": [[Call("run", {"command": "id"})]]}) as model:
        events = ask(model, wire, stream=True)
    assert events.startswith(("event: ", "data: "))
    assert "command" in events
    assert "run" in events


def test_a_mark_in_what_was_asked_chooses_the_turns() -> None:
    body = {"messages": [{"role": "user", "content": "CHILD go"}]}
    with ScriptedModel({"": ["main"], "CHILD": ["child"]}) as model:
        assert "main" in ask(model, "chat")
        assert "child" in ask(model, "chat", **body)


def test_a_conversation_waits_for_a_tool_and_then_begins() -> None:
    other = [{"type": "function", "function": TOOL | {"name": "late"}}]
    call = {"role": "assistant", "tool_calls": [{"function": {"name": "nothing_1", "arguments": "{}"}}]}
    later = {"messages": [{"role": "user", "content": "go"}, call]}
    with ScriptedModel({"": [[Call("run")]]}, awaited="late") as model:
        assert "nothing_1" in ask(model, "chat")
        assert "run" in ask(model, "chat", **later, tools=other)


def test_a_request_without_tools_plays_no_turn() -> None:
    with ScriptedModel({"": [[Call("run")]]}) as model:
        assert "done" in ask(model, "chat", tools=[])


def test_a_namespace_is_a_part_of_the_offered_name() -> None:
    tools = [{"type": "namespace", "name": "mcp__a", "tools": [TOOL]}]
    assert wires.offered("responses", {"tools": tools}) == ["mcp__a.run"]
    (call,) = wires.whatever_is_offered("responses", "run")({"tools": tools})  # type: ignore[operator]
    assert call == Call("run", {"q": "1"}, namespace="mcp__a")


SEEN = {"happened": True, "canary": True, "requests": 2, "note": ""}
QUIET = {"happened": False, "canary": True, "requests": 2, "note": ""}


@pytest.mark.parametrize(
    ("cell", "native", "after"),
    [
        ({"control": SEEN, "native": SEEN, "open": SEEN, "after": QUIET}, "leaked", "held"),
        ({"control": SEEN, "native": QUIET, "open": SEEN, "after": SEEN}, "held", "leaked"),
        (
            {"control": SEEN, "native": {"why": "x"}, "open": SEEN, "after": SEEN | {"told": "EG011"}},
            "no words",
            "told",
        ),
        ({"control": QUIET, "native": QUIET, "open": SEEN, "after": QUIET}, "broken", "broken"),
        ({"control": SEEN, "native": QUIET, "open": QUIET, "after": QUIET}, "held", "broken"),
        ({"control": SEEN, "native": SEEN, "open": SEEN, "after": QUIET | {"canary": False}}, "leaked", "broken"),
        ({"control": {"why": "x"}}, "not there", "not there"),
        ({}, "not run", "not run"),
    ],
)
def test_a_cell_counts_only_where_the_call_would_have_run(cell: dict[str, Any], native: str, after: str) -> None:
    found = verdict("codex", "builtin", cell)
    assert (found.native, found.after) == (native, after)
