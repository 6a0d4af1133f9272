"""Keys and rows below a key, as every dialect reads them; what is absent or `null` has none."""

from __future__ import annotations

from collections.abc import Collection

from extgate.enforce.wire import spans
from extgate.enforce.wire.spans import Fields, Span, UnclearError


def has(data: bytes, found: Fields, key: str) -> bool:
    """Whether something else than `null` stands there."""
    return key in found and not spans.is_null(data, found[key].span)


def inner(data: bytes, found: Fields, key: str) -> Fields:
    """The keys of an object below a key."""
    return spans.fields(data, found[key].span, f"`{key}`") if has(data, found, key) else {}


def listed(data: bytes, found: Fields, key: str) -> list[Span]:
    """The rows of a list below a key."""
    return spans.rows(data, found[key].span, f"`{key}`") if has(data, found, key) else []


def word(data: bytes, found: Fields, key: str) -> str:
    """The text below a key; empty without one. Raises UnclearError when it is something else."""
    return spans.text(data, found[key].span, f"`{key}`") if has(data, found, key) else ""


def piece(data: bytes, found: Fields, key: str) -> bytes:
    """What is given below a key: a text's bytes, and anything else as it stands."""
    if not has(data, found, key):
        return b""
    span = found[key].span
    return spans.text(data, span).encode() if spans.is_text(data, span) else data[slice(*span)]


def texts(data: bytes, found: Fields, key: str) -> list[str] | None:
    """The texts of a list below a key; None without it."""
    if not has(data, found, key):
        return None
    return [spans.text(data, row, f"an entry of `{key}`") for row in listed(data, found, key)]


def exact(data: bytes, span: Span, wanted: Collection[str], where: str) -> Fields:
    """An object's keys, none of which is one of the wanted in other letters: some parsers take it for that one."""
    found = spans.fields(data, span, where)
    for key in found:
        if key not in wanted and key.upper().casefold() in wanted:
            raise UnclearError(f"{where} has the key `{key[:60]}`, a known one in other letters")
    return found


def cut(data: bytes, span: Span) -> bytes:
    """The bytes that stand there."""
    return data[span.start : span.end]
