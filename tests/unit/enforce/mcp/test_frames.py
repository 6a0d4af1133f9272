"""Frames that nobody well-behaved would send: refused, answered once or passed, and never the end of a session."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from extgate.enforce.mcp import envelope
from extgate.enforce.mcp.call import Ask, Reply
from extgate.enforce.mcp.envelope import EnvelopeError
from extgate.enforce.mcp.http_client import Events
from extgate.enforce.mcp.link import Link
from tests.unit.enforce.mcp.cores import World

LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
VALUE = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)
METHODS = st.sampled_from(
    ["initialize", "ping", "tools/list", "tools/call", "prompts/get", "resources/read", "resources/subscribe"]
    + ["resources/unsubscribe", "completion/complete", "logging/setLevel", "server/discover"]
    + [f"notifications/{word}" for word in ("cancelled", "progress", "roots/list_changed")]
    + ["subscriptions/listen", "x", ""]
)
KEYS = st.sampled_from(
    ["name", "uri", "arguments", "_meta", "cursor", "ref", "requestId", "progressToken", "level", "notifications"]
)
META = st.fixed_dictionaries(
    {"io.modelcontextprotocol/protocolVersion": st.just("2026-07-28") | LEAF},
    optional={"io.modelcontextprotocol/clientCapabilities": VALUE, "progressToken": LEAF},
)
KNOWN = st.sampled_from(["slack__send", "slack__triage", "wiki://public/a", "wiki://page/{name}"])
PARAMS = st.dictionaries(KEYS, VALUE | META | KNOWN, max_size=4) | VALUE
MESSAGE = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={"id": LEAF, "method": METHODS | VALUE, "params": PARAMS, "result": VALUE, "error": VALUE},
)


@settings(max_examples=300, deadline=None)
@given(st.lists(MESSAGE, max_size=8))
def test_every_request_is_answered_once_or_waits_for_its_server(messages: list[dict[str, Any]]) -> None:
    session = World().client().session
    for message in messages:
        try:
            read = envelope.read(json.dumps(message).encode())
        except EnvelopeError:
            continue
        waiting = set(session.in_flight)
        actions = session.receive(read)
        last = [action for action in actions if isinstance(action, Reply) and action.is_last]
        asked = [action for action in actions if isinstance(action, Ask)]
        for action in actions:
            if isinstance(action, Reply):
                assert json.loads(action.data)["jsonrpc"] == "2.0"
        if not read.is_request:
            assert not last
            assert not asked
        elif read.method != "subscriptions/listen":
            assert len(last) + len(asked) == 1, message
            assert not asked or set(session.in_flight) - waiting == {read.key}


@settings(max_examples=300, deadline=None)
@given(st.lists(MESSAGE.map(lambda m: json.dumps(m).encode()) | st.binary(max_size=40), max_size=8))
def test_nothing_that_a_server_says_breaks_its_session(lines: list[bytes]) -> None:
    client = World().client({"sampling": {}, "elicitation": {}, "roots": {}})
    link = client.links["slack"] = Link("slack")
    for line in lines:
        client.call("slack__send")
        event: Any = link.receive(line)
        for name, handle in (("Asked", client.session.asked), ("Noted", client.session.noted)):
            if type(event).__name__ == name:
                client.run(handle("slack", event.message, link))


@given(st.binary(max_size=200), st.integers(1, 7))
def test_a_stream_of_events_reads_the_same_however_it_is_cut(data: bytes, size: int) -> None:
    whole, cut = Events(10_000), Events(10_000)
    found = [event for start in range(0, len(data), size) for event in cut.feed(data[start : start + size])]
    assert found == whole.feed(data)
