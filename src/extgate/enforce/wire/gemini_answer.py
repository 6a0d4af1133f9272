"""A Gemini answer without the calls that may not run: a part of text says why in the place of each.

Every event of a stream is a whole answer of its own, but for a call whose arguments come in pieces.
"""

from __future__ import annotations

from extgate.enforce.wire import parts, spans
from extgate.enforce.wire.events import Frame, Frames, frame
from extgate.enforce.wire.gemini_keys import keys, some
from extgate.enforce.wire.provider import MAX_EVENT
from extgate.enforce.wire.spans import Edits, Fields, Span, UnclearError
from extgate.enforce.wire.turn import Turn

_CALL = frozenset({"name", "args", "id", "partial_args", "will_continue"})


class Calls:
    """Reads the answers of one turn, in order."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._goes_on: dict[int, str] = {}
        """By candidate: why the call is stopped of which more pieces come; empty when it is not."""

    def rewrite(self, data: bytes, span: Span, edits: Edits) -> None:
        """Takes the calls that may not run out of one answer."""
        top = keys(data, span, {"candidates"}, "the answer")
        for at, row in enumerate(some(data, top, "candidates")):
            candidate = keys(data, row, {"content", "index"}, "a candidate")
            number = spans.value(data, candidate["index"].span) if parts.has(data, candidate, "index") else at
            if not isinstance(number, int):
                raise UnclearError("a candidate of the answer has no number")
            if parts.has(data, candidate, "content"):
                content = keys(data, candidate["content"].span, {"parts"}, "a content of the answer")
                self._parts(data, some(data, content, "parts"), number, edits)

    def _parts(self, data: bytes, rows: list[Span], number: int, edits: Edits) -> None:
        for row in rows:
            part = keys(data, row, {"function_call"}, "a part of the answer")
            if not parts.has(data, part, "function_call"):
                continue
            call = keys(data, part["function_call"].span, _CALL, "a call of the answer")
            is_first = parts.has(data, call, "name") or number not in self._goes_on
            why = self._why(data, call) if is_first else self._goes_on[number]
            if _is_on(data, call):
                self._goes_on[number] = why
            else:
                self._goes_on.pop(number, None)
            if why:
                edits.put(row, spans.encode({"text": why if is_first else ""}))

    def _why(self, data: bytes, call: Fields) -> str:
        name = parts.word(data, call, "name")
        if not name:
            raise UnclearError("a call of the answer has no name")
        if _is_on(data, call) or parts.has(data, call, "partial_args"):
            why = self._turn.begin(name)
            if why is None:
                raise UnclearError("a call of the answer has its arguments in pieces, where they have to be judged")
            return why
        given = parts.cut(data, call["args"].span) if parts.has(data, call, "args") else b""
        return self._turn.finish(name, given if len(given) <= self._turn.max_arguments else None)


def _is_on(data: bytes, call: Fields) -> bool:
    return "will_continue" in call and spans.value(data, call["will_continue"].span) is True


def answer(data: bytes, turn: Turn) -> bytes:
    """A whole answer, or a list of them; the very same bytes when every call may run. Raises UnclearError."""
    span, edits, calls = spans.checked(data), Edits(data), Calls(turn)
    start = next((at for at, byte in enumerate(data[:1024]) if byte not in b" \t\r\n"), 0)
    for row in spans.rows(data, span, "the answer") if data[start : start + 1] == b"[" else [span]:
        calls.rewrite(data, row, edits)
    return edits.applied()


class Stream:
    """A streamed answer. Raises UnclearError."""

    def __init__(self, turn: Turn) -> None:
        self._frames, self._calls = Frames(MAX_EVENT), Calls(turn)

    def feed(self, data: bytes) -> bytes:
        return b"".join([self._take(one) for one in self._frames.feed(data)])

    def close(self) -> bytes:
        return b"".join([self._take(one) for one in self._frames.close()])

    def _take(self, one: Frame) -> bytes:
        if not one.data or one.data == b"[DONE]":
            return one.raw
        edits = Edits(one.data)
        self._calls.rewrite(one.data, spans.checked(one.data), edits)
        made = edits.applied()
        return one.raw if made is one.data else frame(one.kind, made.replace(b"\n", b" "))
