"""A call in a Chat Completions answer, whole or a piece of it."""

from __future__ import annotations

from typing import NamedTuple

from extgate.enforce.wire import parts, spans
from extgate.enforce.wire.spans import Span, UnclearError

_KINDS = ("function", "custom")
_ROW = frozenset({"function", "custom", "type", "id", "index", "name", "arguments", "input"})
_CALL = frozenset({"name", "arguments", "input"})
CHOICE = frozenset({"message", "delta", "finish_reason", "index", "tool_calls"})
MESSAGE = frozenset({"tool_calls", "function_call", "content", "role"})


class Piece(NamedTuple):
    """name: empty in pieces behind the first; its place is None without one. arguments: empty for none."""

    name: str
    name_at: Span | None
    arguments: bytes
    is_custom: bool
    id: str = ""


def piece(data: bytes, row: Span) -> Piece:
    """What one entry of `tool_calls` says. Raises UnclearError."""
    found = parts.exact(data, row, _ROW, "a call of the answer")
    kinds = [kind for kind in _KINDS if parts.has(data, found, kind)]
    if len(kinds) > 1 or "name" in found or "arguments" in found or "input" in found:
        raise UnclearError("a call of the answer says in two ways what it is")
    id = parts.word(data, found, "id")
    if not kinds:
        return Piece("", None, b"", is_custom=False, id=id)
    return inner(data, found[kinds[0]].span, is_custom=kinds[0] == "custom")._replace(id=id)


def inner(data: bytes, span: Span, *, is_custom: bool = False) -> Piece:
    """What the object with the name says: of a call, or the older `function_call`."""
    found = parts.exact(data, span, _CALL, "a call of the answer")
    name = parts.word(data, found, "name")
    if len(given := [key for key in ("arguments", "input") if parts.has(data, found, key)]) > 1:
        raise UnclearError("a call of the answer has its arguments twice")
    arguments = parts.piece(data, found, given[0]) if given else b""
    return Piece(name, found["name"].span if name else None, arguments, is_custom or given == ["input"])


def as_object(arguments: bytes, *, is_custom: bool, limit: int) -> bytes | None:
    """Arguments as rules read them: free text as an object's `input`; None when there are too many."""
    if len(arguments) > limit:
        return None
    return spans.encode({"input": arguments.decode("utf-8", "replace")}) if is_custom else arguments
