"""A streamed Responses answer without the calls that may not run: the events of a message take the place of each.

A call is judged when its item is added, and goes on as it comes; only where its arguments decide all waits until it is
done. The answer that the last event holds agrees with the events before it. Numbers of events are kept as they come,
because a client may resume by them; those of a message in a call's place all have the number of the event that they
replace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from extgate.enforce.wire import parts, responses_answer, responses_items, spans
from extgate.enforce.wire.events import Frame, Frames, frame
from extgate.enforce.wire.provider import MAX_EVENT
from extgate.enforce.wire.responses_items import Item
from extgate.enforce.wire.spans import Edits, Fields, UnclearError
from extgate.enforce.wire.turn import Turn

_MUST_READ = re.compile(rb'"item"|"response"|"output"|"name"|_call|\\u00', re.IGNORECASE)
_WANTED = frozenset({"type", "item", "response", "output", "name", "output_index", "sequence_number"})
_ADDED, _DONE = "response.output_item.added", "response.output_item.done"


@dataclass(slots=True)
class _Call:
    """One call. why: None while it is held. begin: the event that added it; pieces: what has been given so far."""

    item: Item
    why: str | None
    number: int
    pieces: list[bytes] = field(default_factory=list)
    size: int = 0
    is_judged_whole: bool = False


class Stream:
    """A streamed answer. is_kept: it was kept by the provider, and says itself what it was offered."""

    def __init__(self, turn: Turn, *, is_kept: bool = False) -> None:
        self._turn, self._is_kept = turn, is_kept
        self._frames = Frames(MAX_EVENT)
        self._calls: dict[int, _Call] = {}
        self._held: int | None = None
        self._waiting: list[tuple[int | None, bytes]] = []
        self._bytes = 0

    def feed(self, data: bytes) -> bytes:
        return b"".join([self._take(one) for one in self._frames.feed(data)])

    def close(self) -> bytes:
        rest = b"".join([self._take(one) for one in self._frames.close()])
        if self._held is not None:
            raise UnclearError("the answer ended inside a call")
        return rest

    def _take(self, one: Frame) -> bytes:
        if not one.data or one.data == b"[DONE]":
            return self._queued(None, one.raw)
        if not self._calls and not _MUST_READ.search(one.data):
            return self._queued(None, one.raw)
        data = one.data
        found = parts.exact(data, spans.checked(data), _WANTED, "an event of the answer")
        kind = parts.word(data, found, "type")
        if one.kind and one.kind != kind:
            raise UnclearError("an event of the answer says in two ways what it is")
        if kind in (_ADDED, _DONE):
            return self._item(one, found, is_done=kind == _DONE)
        if parts.has(data, found, "item") or (parts.has(data, found, "output") and _is_list(data, found, "output")):
            raise UnclearError(f"an event of the type `{kind[:60]}` brings an item, and is not known")
        if parts.has(data, found, "response") and spans.is_object(data, found["response"].span):
            return self._whole(one, found)
        return self._piece(one, found)

    def _queued(self, at: int | None, raw: bytes) -> bytes:
        """The bytes now, or once the call before them is judged."""
        if self._held is None:
            return raw
        self._bytes += len(raw)
        if self._bytes > self._turn.max_arguments + MAX_EVENT:
            raise UnclearError("more of the answer waits behind a call than is held back")
        self._waiting.append((at, raw))
        return b""

    # ------------------------------------------------------------------------------------------ items

    def _item(self, one: Frame, found: Fields, *, is_done: bool) -> bytes:
        data, at = one.data, _number(one.data, found, "output_index")
        call = responses_items.item(data, found["item"].span) if "item" in found else None
        known = self._calls.get(at)
        if known is None and call is None:
            return self._queued(None, one.raw)
        if call is None or (known is not None and not call.is_same(known.item)) or (known and not is_done):
            raise UnclearError("an item of the answer becomes another one")
        if known is None:
            return self._begin(one, found, at, call, is_done=is_done)
        return self._end(one, at, known, call)

    def _begin(self, one: Frame, found: Fields, at: int, call: Item, *, is_done: bool) -> bytes:
        if self._held is not None:
            raise UnclearError("a call of the answer begins inside another")
        turn = self._turn
        why = responses_items.finished(turn, call) if is_done else responses_items.begun(turn, call)
        known = self._calls[at] = _Call(call, why, _number(one.data, found, "sequence_number", 0))
        known.is_judged_whole = is_done
        if why is None:
            self._held = at
            return self._queued(at, one.raw)
        return self._instead(at, known) if why else one.raw

    def _end(self, one: Frame, at: int, known: _Call, call: Item) -> bytes:
        if known.why:
            return b""
        if self._held != at:
            return self._queued(None, one.raw)
        self._queued(at, one.raw)
        self._check(known, call)
        known.item, known.is_judged_whole = call, True
        known.why = responses_items.finished(self._turn, call)
        waiting, self._waiting, self._held, self._bytes = self._waiting, [], None, 0
        if not known.why:
            return b"".join(raw for _, raw in waiting)
        return self._instead(at, known) + b"".join(raw for place, raw in waiting if place != at)

    def _check(self, known: _Call, call: Item) -> None:
        """What came in pieces must be what is there in the end: clients run either."""
        given = b"".join(known.pieces)
        if call.kind == "custom_tool_call":
            given = spans.encode({"input": given.decode("utf-8", "replace")})
        if known.pieces and known.size <= self._turn.max_arguments and given != call.given:
            raise UnclearError("a call of the answer has its arguments twice, and they differ")

    # ------------------------------------------------------------------------------------------ pieces

    def _piece(self, one: Frame, found: Fields) -> bytes:
        data = one.data
        at = _number(data, found, "output_index") if parts.has(data, found, "output_index") else None
        known = self._calls.get(at) if at is not None else None
        name = parts.word(data, found, "name")
        if name and (known is None or name != known.item.name):
            raise UnclearError("an event of the answer names another call than the one it is of")
        if known is None:
            return self._queued(None, one.raw)
        if known.why:
            return b""
        if self._held == at:
            self._gather(data, found, known)
            return self._queued(at, one.raw)
        return self._queued(None, one.raw)

    def _gather(self, data: bytes, found: Fields, known: _Call) -> None:
        kind = parts.word(data, found, "type")
        if kind.endswith(("_arguments.delta", "_input.delta")):
            piece = parts.piece(data, found, "delta")
            known.size += len(piece)
            if known.size <= self._turn.max_arguments:
                known.pieces.append(piece)
        elif kind.endswith(("_arguments.done", "_input.done")):
            key = "arguments" if "arguments" in found else "input"
            if known.size <= self._turn.max_arguments:
                given = parts.piece(data, found, key)
                if known.pieces and given != b"".join(known.pieces):
                    raise UnclearError("a call of the answer has its arguments twice, and they differ")
                known.pieces, known.size = [given], len(given)

    # ------------------------------------------------------------------------------------------ the whole answer

    def _whole(self, one: Frame, found: Fields) -> bytes:
        if self._held is not None:
            raise UnclearError("the answer ended inside a call")
        data, span, edits = one.data, found["response"].span, Edits(one.data)
        if self._is_kept:
            responses_answer.offer_again(data, spans.fields(data, span, "the answer"), self._turn)
        responses_answer.filtered(data, span, self._turn, edits, self._judged)
        made = edits.applied()
        return one.raw if made is data else frame(one.kind, made.replace(b"\n", b" "))

    def _judged(self, call: Item) -> str:
        """What was decided of it before, else now."""
        for known in self._calls.values():
            if call.is_same(known.item) and (known.why or not known.is_judged_whole or known.item.given == call.given):
                return known.why or ""
        return responses_items.finished(self._turn, call)

    # ------------------------------------------------------------------------------------------ in a call's place

    def _instead(self, at: int, known: _Call) -> bytes:
        message = responses_items.message(known.item, known.why or "")
        events = _told(message, at)
        number = {"sequence_number": known.number}
        return b"".join(frame(kind, spans.encode({"type": kind, **number, **rest})) for kind, rest in events)


def _told(message: dict[str, Any], at: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a message with one text."""
    [part], where = message["content"], {"item_id": message["id"], "output_index": at, "content_index": 0}
    yield _ADDED, {"output_index": at, "item": {**message, "status": "in_progress", "content": []}}
    yield "response.content_part.added", {**where, "part": {**part, "text": ""}}
    yield "response.output_text.delta", {**where, "delta": part["text"], "logprobs": []}
    yield "response.output_text.done", {**where, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**where, "part": part}
    yield _DONE, {"output_index": at, "item": message}


def _is_list(data: bytes, found: Fields, key: str) -> bool:
    return spans.is_array(data, found[key].span)


def _number(data: bytes, found: Fields, key: str, otherwise: int | None = None) -> int:
    if not parts.has(data, found, key) and otherwise is not None:
        return otherwise
    said = spans.value(data, found[key].span) if key in found else None
    if not isinstance(said, int) or isinstance(said, bool):
        raise UnclearError(f"an event of the answer has no `{key}`")
    return said
