"""An Anthropic answer, whole or streamed, without the calls that may not run: each becomes a text that says why.

A call's block goes on as it came as soon as its name is allowed; only where its arguments decide is it held back, and
what comes behind it waits. When no call is left, the answer ends the turn instead of waiting for a tool.
"""

from __future__ import annotations

import re

from extgate.enforce.wire import spans
from extgate.enforce.wire.anthropic_entries import TOOLSET
from extgate.enforce.wire.events import Frame, Frames, frame
from extgate.enforce.wire.provider import MAX_EVENT
from extgate.enforce.wire.spans import Edits, Fields, UnclearError
from extgate.enforce.wire.turn import Turn

_PROVIDERS = frozenset({"server_tool_use", "mcp_tool_use"})
"""Calls that the provider has run itself, of what the request offered it."""
_OTHERS = frozenset(
    {"text", "thinking", "redacted_thinking", "container_upload", "compaction", "fallback", "mcp_tool_listing"}
)


_PIECE = re.compile(
    rb'\{\s*"type":\s*"content_block_delta",\s*"index":\s*(\d{1,9}),\s*"delta":\s*\{\s*"type":\s*'
    rb'"(?:text_delta|thinking_delta|input_json_delta)",\s*"(?:text|thinking|partial_json)":\s*'
    rb'"[^"\\\n\t]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\n\t]*)*"\s*\}\s*\}',
)
"""Most events of an answer: a piece of a block, with nothing else in it that a parser could read otherwise."""


def is_call(kind: str, found: Fields) -> bool:
    """Whether the client would run something for a block: of a type not known, whatever has a name and an input."""
    if kind == "tool_use":
        return True
    if kind in _PROVIDERS or kind in _OTHERS or kind.endswith("_result"):
        return False
    return kind.endswith(("_use", "_call")) or {"name", "input"} <= found.keys()


def answer(data: bytes, turn: Turn) -> bytes:
    """The whole answer; the very same bytes when every call may run. Raises UnclearError."""
    top = spans.fields(data, spans.checked(data), "the answer")
    if "content" not in top:
        return data
    edits, stopped, kept = Edits(data), 0, 0
    for row in spans.rows(data, top["content"].span, "the answer's content"):
        found = spans.fields(data, row, "a block of the answer")
        kind = spans.text_of(data, found, "type") or ""
        if not is_call(kind, found):
            continue
        name, namespace = _name(data, found)
        arguments = data[slice(*found["input"].span)] if "input" in found else b""
        why = turn.finish(name, arguments if len(arguments) <= turn.max_arguments else None, namespace)
        if why:
            edits.put(row, _text(why))
            stopped += 1
        else:
            kept += 1
    if stopped and not kept:
        _end_turn(data, top, edits)
    return edits.applied()


def _name(data: bytes, found: Fields) -> tuple[str, str]:
    """What is called: a tool, or a toolset for a call of one of its members."""
    toolset = None
    if "toolset_name" in found and not spans.is_null(data, found["toolset_name"].span):
        toolset = spans.text_of(data, found, "toolset_name")
    name = toolset or spans.text_of(data, found, "name")
    if name is None:
        raise UnclearError("a call of the answer has no name")
    return name, TOOLSET if toolset else ""


def _text(why: str) -> bytes:
    return spans.encode({"type": "text", "text": why})


def _end_turn(data: bytes, found: Fields, edits: Edits) -> None:
    if "stop_reason" in found and data[slice(*found["stop_reason"].span)] == b'"tool_use"':
        edits.put(found["stop_reason"].span, b'"end_turn"')


class Stream:
    """A streamed answer. Raises UnclearError."""

    def __init__(self, turn: Turn) -> None:
        self._turn, self._frames = turn, Frames(MAX_EVENT)
        self._stopped: set[int] = set()
        self._held: _Held | None = None
        self._kept = self._refused = 0

    def feed(self, data: bytes) -> bytes:
        return b"".join([self._take(one) for one in self._frames.feed(data)])

    def close(self) -> bytes:
        rest = b"".join([self._take(one) for one in self._frames.close()])
        if self._held is not None:
            raise UnclearError("the answer ended inside a call")
        return rest

    def _take(self, one: Frame) -> bytes:
        if not one.data:
            return self._queued(one.raw)
        if self._held is None and (piece := _PIECE.fullmatch(one.data)) and one.kind in ("", "content_block_delta"):
            return b"" if int(piece[1]) in self._stopped else one.raw
        found = spans.fields(one.data, spans.checked(one.data), "an event of the answer")
        kind = spans.text_of(one.data, found, "type")
        if kind is None or (one.kind and one.kind != kind):
            raise UnclearError("an event of the answer says in two ways what it is")
        if kind == "content_block_start":
            return self._start(one, found)
        if kind in ("content_block_delta", "content_block_stop"):
            return self._go_on(one, found, kind)
        if kind == "message_delta":
            if self._held is not None:
                raise UnclearError("the answer ended inside a call")
            return self._queued(self._ended(one, found))
        if kind == "message_start":
            self._begin(one.data, found)
        elif "content_block" in found or "content" in found:
            raise UnclearError(f"an event of the type `{kind[:60]}` brings content, and is not known")
        return self._queued(one.raw)

    def _queued(self, raw: bytes) -> bytes:
        """The bytes now, or once the call before them is judged."""
        if self._held is None:
            return raw
        self._held.add(raw, self._turn.max_arguments + MAX_EVENT)
        return b""

    # ------------------------------------------------------------------------------------------ blocks

    def _begin(self, data: bytes, found: Fields) -> None:
        message = spans.fields(data, found["message"].span, "the answer") if "message" in found else {}
        if "content" in message and spans.rows(data, message["content"].span, "the answer's content"):
            raise UnclearError("the answer begins with content")

    def _start(self, one: Frame, found: Fields) -> bytes:
        data, at = one.data, _index(one.data, found)
        self._stopped.discard(at)
        block = spans.fields(data, found["content_block"].span, "a block") if "content_block" in found else {}
        if not is_call(spans.text_of(data, block, "type") or "", block):
            return self._queued(one.raw)
        if self._held is not None:
            raise UnclearError("a call of the answer begins inside another")
        name, namespace = _name(data, block)
        why = self._turn.begin(name, namespace)
        if why is None:
            given = data[slice(*block["input"].span)] if "input" in block else b""
            self._held = _Held(at, name, namespace, one, b"" if given.translate(None, b" \t\r\n") == b"{}" else given)
            return b""
        if not why:
            self._kept += 1
            return one.raw
        return self._stop(at, why)

    def _go_on(self, one: Frame, found: Fields, kind: str) -> bytes:
        at, held = _index(one.data, found), self._held
        if at in self._stopped:
            return b""
        if held is None or held.at != at:
            return self._queued(one.raw)
        held.add(one.raw, self._turn.max_arguments + MAX_EVENT)
        if kind == "content_block_delta":
            held.take(one.data, found, self._turn.max_arguments)
            return b""
        self._held = None
        why = self._turn.finish(held.name, held.arguments(self._turn.max_arguments), held.namespace)
        if not why:
            self._kept += 1
            return b"".join(held.raw)
        return self._stop(at, why) + held.behind()

    def _stop(self, at: int, why: str) -> bytes:
        """A block of text in the place of a call."""
        self._refused += 1
        self._stopped.add(at)
        said = {"type": "text_delta", "text": why}
        events: tuple[tuple[str, dict[str, object]], ...] = (
            ("content_block_start", {"content_block": {"type": "text", "text": ""}}),
            ("content_block_delta", {"delta": said}),
            ("content_block_stop", {}),
        )
        return b"".join(frame(kind, spans.encode({"type": kind, "index": at} | rest)) for kind, rest in events)

    def _ended(self, one: Frame, found: Fields) -> bytes:
        if not self._refused or self._kept or "delta" not in found:
            return one.raw
        edits = Edits(one.data)
        _end_turn(one.data, spans.fields(one.data, found["delta"].span, "the end of the answer"), edits)
        return frame(one.kind, edits.applied()) if edits.applied() is not one.data else one.raw


class _Held:
    """A call that waits for its arguments, with the frames since it began."""

    def __init__(self, at: int, name: str, namespace: str, first: Frame, given: bytes) -> None:
        self.at, self.name, self.namespace = at, name, namespace
        self.raw = [first.raw]
        self._own = {0}
        self._parts: list[bytes] = []
        self._given, self._size, self._bytes = given, len(given), len(first.raw)

    def add(self, raw: bytes, limit: int) -> None:
        """A frame that waits."""
        self._bytes += len(raw)
        if self._bytes > limit:
            raise UnclearError("more of the answer waits behind a call than is held back")
        self.raw.append(raw)

    def take(self, data: bytes, found: Fields, limit: int) -> None:
        """A piece of the call itself."""
        self._own.add(len(self.raw) - 1)
        delta = spans.fields(data, found["delta"].span, "a piece of the answer") if "delta" in found else {}
        piece = (spans.text_of(data, delta, "partial_json") or "").encode()
        self._size += len(piece)
        if self._size <= limit:
            self._parts.append(piece)

    def arguments(self, limit: int) -> bytes | None:
        """What it is called with; None when that is more than the limit."""
        if self._given and self._parts:
            raise UnclearError("a call of the answer has its arguments twice")
        return None if self._size > limit else self._given or b"".join(self._parts)

    def behind(self) -> bytes:
        """The frames that came in between and are not the call's."""
        return b"".join(raw for at, raw in enumerate(self.raw[:-1]) if at not in self._own)


def _index(data: bytes, found: Fields) -> int:
    at = spans.value(data, found["index"].span) if "index" in found else None
    if not isinstance(at, int) or isinstance(at, bool):
        raise UnclearError("an event of the answer has no index")
    return at
