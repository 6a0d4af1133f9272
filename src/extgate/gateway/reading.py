"""Values below `gateway:` as they are read: each of its type, or an error at its line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from extgate.core.patterns import unclosed_bracket
from extgate.dialects.node import Node
from extgate.errors import DialectError


def error(node: Node, key: str, expected: str) -> DialectError:
    """The error of a value that has no meaning."""
    return DialectError(f"{key}: expected {expected}, got {node.shown}", file=node.file, line=node.line)


def mapping(node: Node, key: str, known: Iterable[str]) -> Node:
    """A mapping of known keys."""
    if node.kind != "map":
        raise error(node, key, "a mapping")
    names = tuple(known)
    for name in node.items:
        if name not in names:
            message, fix = f"{key}.{name}: no such key", f"the keys here are {', '.join(names)}"
            raise DialectError(message, file=node.file, line=node.key_line(name), fix=fix)
    return node


def rows(node: Node, key: str) -> tuple[Node, ...]:
    """The entries of a list; one that is not in a list is its only one."""
    return node.children if node.kind == "list" else (node,)


def text(node: Node | None, key: str, expected: str = "a text") -> str:
    """A text; the empty one where there is none."""
    if node is None:
        return ""
    if not isinstance(node.scalar, str) or not node.scalar.strip():
        raise error(node, key, expected)
    return node.scalar.strip()


def texts(node: Node | None, key: str) -> tuple[str, ...]:
    """A list of texts, or one text; the empty list where there is none."""
    found = [] if node is None else [child.scalar for child in rows(node, key)]
    if node is not None and not all(isinstance(entry, str) and entry.strip() for entry in found):
        raise error(node, key, "a list of texts")
    return tuple(str(entry).strip() for entry in found)


def patterns(node: Node | None, key: str) -> tuple[str, ...]:
    """A list of patterns. An unclosed bracket would match nothing, and so limit nothing."""
    found = texts(node, key)
    if node is not None and any(unclosed_bracket(pattern) for pattern in found):
        raise error(node, key, "patterns whose brackets are closed")
    return found


def number(node: Node | None, key: str, *, is_whole: bool = False, least: float = 0.0) -> float | None:
    """A number above `least`, at most 2**31; None where there is none."""
    if node is None:
        return None
    value = node.scalar
    is_number = isinstance(value, int if is_whole else int | float) and not isinstance(value, bool)
    if not is_number or not isinstance(value, int | float) or not least < value <= 2**31:
        raise error(node, key, f"a {'whole ' if is_whole else ''}number above {least:g}")
    return value


def path(node: Node | None, key: str, root: Path) -> Path | None:
    """The path of a file, from the workspace; None where there is none."""
    found = text(node, key, "the path of a file")
    return root / Path(found).expanduser() if found else None
