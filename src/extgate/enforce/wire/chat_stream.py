"""A streamed Chat Completions answer without the calls that may not run.

A call is known once its name is whole: when its arguments begin, or the next call does, or its choice ends. From a
call's first piece until it is decided all that follows waits, so that what goes on keeps its order and its bytes.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import TypeVar

from extgate.enforce.wire import chat_answer, chat_calls, parts, spans
from extgate.enforce.wire.chat_calls import CHOICE, MESSAGE, Piece
from extgate.enforce.wire.events import Frame, Frames, frame
from extgate.enforce.wire.provider import MAX_EVENT
from extgate.enforce.wire.spans import Edits, Fields, Span, UnclearError
from extgate.enforce.wire.turn import Turn

_MAY_CALL = re.compile(rb"tool_calls|function_call|\\u00", re.IGNORECASE)
_SPEAKS = re.compile(rb'"content"[ \t]*:[ \t]*"[^"]')
_OLD = -1
"""The number of the older `function_call`, which has none."""
_T = TypeVar("_T")


@dataclass(slots=True)
class _Call:
    """One call. whole: its name is; why: None until it is decided, empty when it goes on. at: the number it goes on
    with. names: the pieces of its name. is_out: its first piece, or the reason, has gone out. is_respelled: its name
    came in pieces or again, and is said once."""

    number: int
    id: str = ""
    names: list[str] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)
    size: int = 0
    is_custom: bool = False
    whole: bool = False
    over: bool = False
    why: str | None = None
    at: int = 0
    is_out: bool = False
    is_respelled: bool = False

    @property
    def name(self) -> str:
        return "".join(self.names)


@dataclass(slots=True)
class _Choice:
    calls: dict[int, _Call] = field(default_factory=dict)
    last: _Call | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether there were calls, and none of them goes on."""
        return bool(self.calls) and all(call.why for call in self.calls.values())

    @property
    def has_stopped(self) -> bool:
        return any(call.why for call in self.calls.values())


@dataclass(slots=True)
class _Waiting:
    """A frame. places: the calls that it brings pieces of."""

    one: Frame
    places: list[_Call]
    is_read: bool


class Stream:
    """A streamed answer. Raises UnclearError."""

    def __init__(self, turn: Turn) -> None:
        self._turn, self._frames = turn, Frames(MAX_EVENT)
        self._choices: dict[int, _Choice] = {}
        self._queue: deque[_Waiting] = deque()
        self._bytes = 0
        self._loose = 0
        self._speaks = False

    def feed(self, data: bytes) -> bytes:
        return b"".join([self._take(one) for one in self._frames.feed(data)])

    def close(self) -> bytes:
        out = [self._take(one) for one in self._frames.close()]
        for choice in self._choices.values():
            self._end(choice)
        return b"".join([*out, self._released()])

    # ------------------------------------------------------------------------------------------ what comes

    def _take(self, one: Frame) -> bytes:
        is_read = bool(one.data) and one.data != b"[DONE]" and self._must_read(one.data)
        if one.data == b"[DONE]":
            for choice in self._choices.values():
                self._end(choice)
        places = self._read(one.data) if is_read else []
        if not self._queue and not is_read:
            self._speaks = self._speaks or _SPEAKS.search(one.data) is not None
            return one.raw
        self._bytes += len(one.raw)
        if self._bytes > self._turn.max_arguments + MAX_EVENT:
            raise UnclearError("more of the answer waits behind a call than is held back")
        self._queue.append(_Waiting(one, places, is_read))
        return self._released()

    def _must_read(self, data: bytes) -> bool:
        return bool(self._choices) or _MAY_CALL.search(data) is not None

    def _read(self, data: bytes) -> list[_Call]:
        """The calls that it brings pieces of, which are noted."""
        found: list[_Call] = []
        for choice, delta in _choices(data):
            at = _number(data, choice, "index", 0)
            state = self._choices.get(at)
            pieces = list(_pieces(data, delta))
            if pieces and state is None:
                state = self._choices[at] = _Choice()
            for number, piece in pieces:
                assert state is not None
                found.append(self._note(state, number, piece))
            if state is not None and parts.has(data, choice, "finish_reason"):
                self._end(state)
        return found

    def _note(self, state: _Choice, number: int | None, piece: Piece) -> _Call:
        if number is None:  # without a number each is a call of its own
            self._loose += 1
            number = -1 - self._loose
        call = state.calls.get(number)
        if call is None:
            if not piece.name:
                raise UnclearError("a call of the answer begins without a name")
            if state.last is not None:
                self._close_call(state.last)
            call = state.calls[number] = _Call(number)
        state.last = call
        self._add(call, piece)
        return call

    def _add(self, call: _Call, piece: Piece) -> None:
        if piece.id and call.id and piece.id != call.id:
            raise UnclearError("two calls of the answer have one number")
        call.id = call.id or piece.id
        if call.over and (piece.name or piece.arguments):
            raise UnclearError("a call of the answer goes on after its end")
        call.is_custom, was_whole = call.is_custom or piece.is_custom, call.whole
        if piece.name and not call.whole:
            call.names.append(piece.name)
        elif piece.name and piece.name != call.name:
            raise UnclearError("a call of the answer has its name in pieces, with arguments between them")
        call.is_respelled = call.is_respelled or len(call.names) > 1 or (bool(piece.name) and was_whole)
        if (piece.arguments or not piece.name) and not call.whole:
            call.whole = True
            call.why = self._turn.begin(call.name)
        call.size += len(piece.arguments)
        if call.why is None and call.size <= self._turn.max_arguments:
            call.parts.append(piece.arguments)

    def _close_call(self, call: _Call) -> None:
        """Nothing more comes of it."""
        if not call.whole:
            call.whole = True
            call.why = self._turn.begin(call.name)
        if call.why is None:
            limit = self._turn.max_arguments
            given = chat_calls.as_object(b"".join(call.parts), is_custom=call.is_custom, limit=limit)
            call.why = self._turn.finish(call.name, given if call.size <= limit else None)
            call.over = True

    def _end(self, choice: _Choice) -> None:
        for call in choice.calls.values():
            self._close_call(call)

    # ------------------------------------------------------------------------------------------ what goes

    def _released(self) -> bytes:
        out = []
        while self._queue and all(call.why is not None for call in self._queue[0].places):
            first = self._queue.popleft()
            self._bytes -= len(first.one.raw)
            out.append(self._written(first.one) if first.is_read else first.one.raw)
        return b"".join(out)

    def _written(self, one: Frame) -> bytes:
        """The frame as it goes on; nothing when only pieces of stopped calls were in it."""
        if not any(choice.has_stopped or _is_split(choice) for choice in self._choices.values()):
            return one.raw
        data, edits, is_gone = one.data, Edits(one.data), []
        for choice, delta in _choices(data):
            state = self._choices.get(_number(data, choice, "index", 0))
            if state is None:
                is_gone.append(False)
                continue
            is_gone.append(self._rewrite(data, delta, state, edits) and not parts.has(data, choice, "finish_reason"))
            if state.is_stopped:
                chat_answer.end(data, choice, edits)
        top = spans.fields(data, Span(0, len(data)), "an event of the answer")
        if is_gone and all(is_gone) and not parts.has(data, top, "usage"):
            return b""
        made = edits.applied()
        return one.raw if made is data else frame(one.kind, made.replace(b"\n", b" "))

    def _rewrite(self, data: bytes, delta: Fields, state: _Choice, edits: Edits) -> bool:
        """Takes stopped calls out, and says whether nothing is left that was not of them."""
        reasons: list[str] = []
        gone: list[str] = []
        rows = parts.listed(data, delta, "tool_calls")
        dropped = [at for at, row in enumerate(rows) if self._is_out(data, row, state, edits, reasons)]
        if rows and len(dropped) == len(rows):
            gone.append("tool_calls")
        else:
            edits.drop(rows, dropped)
        old = state.calls.get(_OLD)
        if old is not None and old.why and parts.has(data, delta, "function_call"):
            gone.append("function_call")
            _tell(old, reasons)
        if reasons:
            chat_answer.say(data, delta, edits, reasons if not self._speaks else ["", *reasons], gone)
            self._speaks = True
            return False
        edits.drop(list(delta.values()), [list(delta).index(key) for key in gone])
        return bool(gone) and not any(parts.has(data, delta, key) for key in delta if key not in gone)

    def _is_out(self, data: bytes, row: Span, state: _Choice, edits: Edits, reasons: list[str]) -> bool:
        found = spans.fields(data, row, "a call of the answer")
        number = _number(data, found, "index", None)
        piece = chat_calls.piece(data, row)
        call = state.calls.get(number) if number is not None else _loose(state, piece)
        if call is None:
            raise UnclearError("a call of the answer has lost its place")
        if call.why:
            _tell(call, reasons)
            return True
        first = not call.is_out
        if first:
            call.is_out = True
            call.at = call.number - sum(bool(c.why) for c in state.calls.values() if 0 <= c.number < call.number)
        if number is not None and call.at != number:
            edits.put(found["index"].span, str(call.at).encode())
        if piece.name_at is not None and (not first or len(call.names) > 1):
            edits.put(piece.name_at, spans.encode(call.name) if first else b"null")
        return False


def _tell(call: _Call, reasons: list[str]) -> None:
    if not call.is_out:
        reasons.append(call.why or "")
    call.is_out = True


def _loose(state: _Choice, piece: Piece) -> _Call | None:
    """A call without a number: the first of that name whose turn has not come."""
    mine = (call for call in state.calls.values() if call.number < _OLD and not call.is_out and call.name == piece.name)
    return next(mine, None)


def _is_split(choice: _Choice) -> bool:
    return any(call.is_respelled for call in choice.calls.values())


def _choices(data: bytes) -> list[tuple[Fields, Fields]]:
    """The choices of an event, each with its delta."""
    top = parts.exact(data, spans.checked(data), {"choices"}, "an event of the answer")
    found = []
    for row in parts.listed(data, top, "choices"):
        choice = parts.exact(data, row, CHOICE, "a choice")
        if "message" in choice or "tool_calls" in choice:
            raise UnclearError("a choice of a streamed answer comes whole")
        has = parts.has(data, choice, "delta")
        found.append((choice, parts.exact(data, choice["delta"].span, MESSAGE, "a delta") if has else {}))
    return found


def _pieces(data: bytes, delta: Fields) -> list[tuple[int | None, Piece]]:
    """The pieces of calls in a delta, each with the call's number; None without one."""
    found: list[tuple[int | None, Piece]] = []
    for row in parts.listed(data, delta, "tool_calls"):
        number = _number(data, spans.fields(data, row, "a call of the answer"), "index", None)
        if number is not None and number < 0:
            raise UnclearError("a call of the answer has a number below zero")
        found.append((number, chat_calls.piece(data, row)))
    if parts.has(data, delta, "function_call"):
        found.append((_OLD, chat_calls.inner(data, delta["function_call"].span)))
    return found


def _number(data: bytes, found: Fields, key: str, otherwise: _T) -> int | _T:
    if not parts.has(data, found, key):
        return otherwise
    said = spans.value(data, found[key].span)
    if not isinstance(said, int) or isinstance(said, bool):
        raise UnclearError(f"`{key}` of the answer is no number")
    return said
