"""A value of a document that knows the file and line it came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

MAX_DEPTH = 64
MAX_NODES = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A mapping, a list or a scalar, with its place.

    items: a mapping's values by key text, in file order. children: a list's entries.
    scalar: str, int, float, bool or None. text: the scalar as written.
    """

    file: str
    line: int
    kind: Literal["map", "list", "scalar"]
    items: Mapping[str, Node] = field(default_factory=dict)
    key_lines: Mapping[str, int] = field(default_factory=dict)
    children: tuple[Node, ...] = ()
    scalar: str | int | float | bool | None = None
    text: str = ""

    @property
    def value(self) -> Any:
        """The plain JSON-like value: dict, list or scalar."""
        if self.kind == "map":
            return {key: node.value for key, node in self.items.items()}
        return [node.value for node in self.children] if self.kind == "list" else self.scalar

    @property
    def places(self) -> tuple[tuple[str, int, int], ...]:
        """Of a list's entries: file, line, and which it is, from 1 on."""
        return tuple((self.file, child.line, number) for number, child in enumerate(self.children, 1))

    @property
    def size(self) -> int:
        """How many nodes it stands for, itself included."""
        return 1 + sum(node.size for node in (*self.items.values(), *self.children))

    @property
    def depth(self) -> int:
        """How many levels it is deep; 1 for a scalar."""
        return 1 + max((node.depth for node in (*self.items.values(), *self.children)), default=0)

    @property
    def is_null(self) -> bool:
        return self.kind == "scalar" and self.scalar is None

    @property
    def shown(self) -> str:
        """What it is, for a message: the text of a scalar (cut at 60 characters), else its kind."""
        if self.kind != "scalar":
            return "a mapping" if self.kind == "map" else "a list"
        text = self.text or ("null" if self.scalar is None else str(self.scalar))
        return f"`{text[:60]}…`" if len(text) > 60 else f"`{text}`"

    def get(self, key: str) -> Node | None:
        return self.items.get(key)

    def key_line(self, key: str) -> int:
        """The line on which a mapping's key stands."""
        return self.key_lines.get(key, self.line)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.children)


def plain(value: object, file: str, lines: Mapping[tuple[str, ...], int], path: tuple[str, ...] = ()) -> Node:
    """A node of a plain value; a key path without a line of its own takes its parent's."""
    line = next((lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in lines), 1)
    if isinstance(value, dict):
        items = {str(key): plain(item, file, lines, (*path, str(key))) for key, item in value.items()}
        return Node(file=file, line=line, kind="map", items=items, key_lines={k: n.line for k, n in items.items()})
    if isinstance(value, list):
        return Node(file=file, line=line, kind="list", children=tuple(plain(item, file, lines, path) for item in value))
    scalar = value if value is None or isinstance(value, str | int | float | bool) else str(value)
    return Node(file=file, line=line, kind="scalar", scalar=scalar, text=scalar if isinstance(scalar, str) else "")
