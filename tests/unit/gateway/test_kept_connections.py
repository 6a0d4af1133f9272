"""Kept connections to servers, and lines of the record: fast, and nothing is taken for what it is not."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from extgate.audit.event import Event
from extgate.enforce.mcp.http_client import Connection, Origin, Request
from extgate.enforce.mcp.record import _line
from extgate.enforce.sinks import line_of

EVENT = Event(
    when=datetime(2026, 11, 30, tzinfo=UTC), agent="a", door="mcp", question="use", action="call",
    extension="mcp_tool:x/y", outcome="allowed", effect="allow", reason="r", rule={"text": "default"},
    policy_version="p", inventory_version="i", took_us=12.34, arguments=("text",), session="s",
)  # fmt: skip


@pytest.mark.parametrize("text", ["plain", 'a "b" \\ \n\x1b', "caf\u00e9 \u202e\x9b31m", "\ud800", "\x7f"])
def test_a_line_of_the_record_says_the_same_and_never_what_a_terminal_obeys(text: str) -> None:
    event = replace(EVENT, extension=text, reason=text)
    line = _line(event)
    assert json.loads(line) == json.loads(line_of(event))
    assert line.isascii()
    assert line.count(b"\n") == 1


class _Wire(asyncio.Transport):
    is_aborted = False

    def write(self, data: object) -> None: ...

    def abort(self) -> None:
        self.is_aborted = True

    def is_closing(self) -> bool:
        return self.is_aborted


class _Answer:
    def __init__(self) -> None:
        self.body, self.is_ended = b"", False

    def on_head(self, status: int, headers: object) -> None: ...

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_end(self) -> None:
        self.is_ended = True

    def on_lost(self, reason: str) -> None:
        raise AssertionError(reason)


def _answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body


def test_a_kept_connection_carries_one_answer_after_the_other_and_none_that_nobody_asked_for() -> None:
    origin, wire = Origin("http://127.0.0.1:1/mcp"), _Wire()
    connection = Connection(origin)
    connection.connection_made(wire)
    for body in (b"one", b"two"):
        answer = _Answer()
        connection.begin(Request(answer), b"")
        connection.data_received(_answer(body)[:20])
        connection.data_received(_answer(body)[20:])
        assert (answer.body, answer.is_ended) == (body, True)
        assert origin.take() is connection
    connection.data_received(_answer(b"for whoever asks next"))
    assert wire.is_aborted


def test_a_second_answer_in_one_piece_closes_the_connection() -> None:
    origin, wire, answer = Origin("http://127.0.0.1:1/mcp"), _Wire(), _Answer()
    connection = Connection(origin)
    connection.connection_made(wire)
    connection.begin(Request(answer), b"")
    connection.data_received(_answer(b"mine") + _answer(b"for whoever asks next"))
    assert (answer.body, wire.is_aborted) == (b"mine", True)
    assert origin.take() is None
