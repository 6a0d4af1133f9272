"""A whole Chat Completions answer without the calls that may not run: the message says why instead.

When no call of a choice is left, it ends as an answer does.
"""

from __future__ import annotations

from collections.abc import Iterable

from extgate.enforce.wire import chat_calls, parts, spans
from extgate.enforce.wire.chat_calls import CHOICE, MESSAGE, Piece
from extgate.enforce.wire.spans import Edits, Fields, Span, UnclearError
from extgate.enforce.wire.turn import Turn

_ENDS = (b'"tool_calls"', b'"function_call"')


def answer(data: bytes, turn: Turn) -> bytes:
    """The whole answer; the very same bytes when every call may run. Raises UnclearError."""
    top = parts.exact(data, spans.checked(data), {"choices"}, "the answer")
    edits = Edits(data)
    for row in parts.listed(data, top, "choices"):
        choice = parts.exact(data, row, CHOICE, "a choice")
        if "delta" in choice or "tool_calls" in choice:
            raise UnclearError("a choice of a whole answer comes in pieces")
        if parts.has(data, choice, "message"):
            _choice(data, choice, turn, edits)
    return edits.applied()


def _choice(data: bytes, choice: Fields, turn: Turn, edits: Edits) -> None:
    message = parts.exact(data, choice["message"].span, MESSAGE, "a message")
    rows = parts.listed(data, message, "tool_calls")
    reasons = [_why(turn, chat_calls.piece(data, row)) for row in rows]
    stopped, gone = [at for at, why in enumerate(reasons) if why], []
    if stopped and len(stopped) == len(rows):
        gone.append("tool_calls")
    elif stopped:
        edits.drop(rows, stopped)
    if parts.has(data, message, "function_call"):
        reasons.append(_why(turn, chat_calls.inner(data, message["function_call"].span)))
        gone += ["function_call"] if reasons[-1] else []
    if any(reasons):
        say(data, message, edits, filter(None, reasons), gone)
    if any(reasons) and all(reasons):
        end(data, choice, edits)


def _why(turn: Turn, call: Piece) -> str:
    if not call.name:
        raise UnclearError("a call of the answer has no name")
    given = chat_calls.as_object(call.arguments, is_custom=call.is_custom, limit=turn.max_arguments)
    return turn.finish(call.name, given)


def say(data: bytes, message: Fields, edits: Edits, reasons: Iterable[str], gone: list[str]) -> None:
    """Puts the reasons behind what the message says, and takes keys out of it."""
    text, at = "\n\n".join(reasons), list(message)
    if parts.has(data, message, "content"):
        edits.put(message["content"].span, _with(data, message["content"].span, text))
    elif "content" in message:
        edits.put(message["content"].span, spans.encode(text))
    else:
        first, row = gone.pop(0) if gone else "", b'"content":' + spans.encode(text)
        if first:  # in the place of the first that goes
            edits.put(Span(message[first].at, message[first].end), row)
        else:
            first_at = next(iter(message.values())).at
            edits.put(Span(first_at, first_at), row + b",")
    edits.drop(list(message.values()), [at.index(key) for key in gone])


def _with(data: bytes, span: Span, text: str) -> bytes:
    said = spans.value(data, span)
    if isinstance(said, list):
        return spans.encode([*said, {"type": "text", "text": text}])
    if not isinstance(said, str):
        raise UnclearError("a message of the answer is neither text nor parts")
    return spans.encode(f"{said}\n\n{text}" if said else text)


def end(data: bytes, choice: Fields, edits: Edits) -> None:
    """Ends a choice of which no call is left as an answer ends."""
    if "finish_reason" in choice and parts.cut(data, choice["finish_reason"].span) in _ENDS:
        edits.put(choice["finish_reason"].span, b'"stop"')
