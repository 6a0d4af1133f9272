"""What the entries of an Anthropic request offer: tools, toolsets, servers' items, skills of a container.

Source: the types of the official SDK, anthropic 2.14.0 (2026-11-30).
"""

from __future__ import annotations

from collections.abc import Iterable

from extgate.enforce.wire import spans
from extgate.enforce.wire.judge import Entry
from extgate.enforce.wire.spans import Fields, Span, UnclearError

TOOLSET = "toolset"
"""The namespace under which a toolset's members are called."""
_PLAIN = ("", "custom")


def tool_entry(data: bytes, found: Fields) -> tuple[Entry, list[tuple[str, str]]]:
    """What one entry of `tools` is, but for a toolset of a server, with the names by which it may be called.

    A tool of the provider's own is what its type says, without the version, and what its name says where that is
    another. A toolset's members are called in its namespace. Raises UnclearError when it cannot be known.
    """
    kind = type_of(data, found)
    name = spans.text_of(data, found, "name", "a tool's name")
    base = without_version(kind)
    if kind in _PLAIN:
        if name is None:
            raise UnclearError("a tool has no name")
        return Entry(name), [("", name)]
    if name is None:
        family = base.removesuffix("_toolset")
        if family == base:
            raise UnclearError(f"a tool of the type `{kind[:60]}` has no name")
        return Entry(base, alias=kind, also=(family,)), [(TOOLSET, called) for called in (kind, base, family)]
    return Entry(name, alias=kind, also=() if name == base else (base,)), [("", name)]


def type_of(data: bytes, found: Fields) -> str:
    """An entry's type; empty without one."""
    return "" if "type" not in found or _is_null(data, found, "type") else spans.text_of(data, found, "type") or ""


def without_version(kind: str) -> str:
    """A type's name without the date at its end: `bash` of `bash_20250124`."""
    parts = kind.split("_")
    while len(parts) > 1 and parts[-1].isdigit():
        parts.pop()
    return "_".join(parts)


def skill_entry(data: bytes, found: Fields) -> Entry:
    """A skill that is loaded into a container."""
    name = spans.text_of(data, found, "skill_id")
    if not name:
        raise UnclearError("a skill of the container has no `skill_id`")
    return Entry(name, ("skill",))


def enabled(data: bytes, found: Fields, key: str = "enabled", *, otherwise: bool = True) -> bool:
    """Whether a switch is on. Raises UnclearError when it is no switch."""
    if key not in found or _is_null(data, found, key):
        return otherwise
    said = spans.value(data, found[key].span)
    if not isinstance(said, bool):
        raise UnclearError(f"`{key}` is neither true nor false")
    return said


def inner(data: bytes, found: Fields, key: str) -> Fields:
    """The keys of an object below a key; none without it."""
    return {} if key not in found or _is_null(data, found, key) else spans.fields(data, found[key].span, f"`{key}`")


def listed(data: bytes, found: Fields, key: str) -> list[Span]:
    """The rows of a list below a key; none without it."""
    return [] if key not in found or _is_null(data, found, key) else spans.rows(data, found[key].span, f"`{key}`")


def texts(data: bytes, found: Fields, key: str) -> list[str] | None:
    """The texts of a list below a key; None without it."""
    if key not in found or _is_null(data, found, key):
        return None
    return [spans.text(data, row, f"an entry of `{key}`") for row in listed(data, found, key)]


def items_of(names: Iterable[str], server: str, address: str) -> list[Entry]:
    """Items of a server that the provider calls."""
    return [Entry(name, ("mcp_tool",), server=server, address=address) for name in names]


def _is_null(data: bytes, found: Fields, key: str) -> bool:
    return spans.is_null(data, found[key].span)
