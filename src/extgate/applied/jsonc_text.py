"""JSON with comments and trailing commas, edited in its text: what an edit does not touch stays as it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from extgate.errors import WorkspaceError

MAX_DEPTH = 64
MISSING = object()
"""What `get` returns where nothing is."""
_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/|\ufeff)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"', re.DOTALL)
_WORD = re.compile(r"[-+.\w]+")


@dataclass(slots=True)
class _Node:
    """One value in the text, from `start` to `end`. members: of an object, key to (where the key starts, value)."""

    start: int
    end: int = 0
    value: Any = None
    members: dict[str, tuple[int, _Node]] | None = None
    items: list[_Node] | None = None
    parts: list[tuple[int, int]] = field(default_factory=list)
    """Of a container, from where to where each member or item goes."""


class JsoncText:
    """A document under edit. Raises WorkspaceError when the text is none."""

    def __init__(self, text: str, file: str) -> None:
        self._file = file
        self._text = text if text.strip("\ufeff \t\r\n") else "{}\n"
        self._root = self._parse()
        if self._root.members is None:
            raise WorkspaceError("is no mapping", file=file)

    @property
    def text(self) -> str:
        return self._text

    def get(self, keys: Sequence[str]) -> Any:
        """The value at the keys; MISSING without one."""
        node = self._find(keys)
        return MISSING if node is None else node.value

    def put(self, keys: Sequence[str], value: object) -> None:
        """Sets a value, making the objects on the way. Raises WorkspaceError when one of them is something else."""
        node = self._find(keys)
        if node is not None:
            self._splice(node.start, node.end, self._dump(value, len(keys)))
            return
        depth = len(keys) - 1
        while (parent := self._find(keys[:depth])) is None:
            depth -= 1
        for key in reversed(keys[depth + 1 :]):
            value = {key: value}
        if parent.members is None:
            raise WorkspaceError(f"`{'.'.join(keys[:depth])}` is no mapping", file=self._file)
        self._add(parent, f"{json.dumps(keys[depth], ensure_ascii=False)}: {self._dump(value, depth + 1)}", depth)

    def remove(self, keys: Sequence[str]) -> None:
        """Takes a member out; nothing happens when it is not there."""
        parent = self._find(keys[:-1])
        if parent is not None and parent.members and keys[-1] in parent.members:
            self._cut(parent, list(parent.members).index(keys[-1]))

    def append(self, keys: Sequence[str], items: Iterable[object]) -> None:
        """Adds to a list, which is there. Raises WorkspaceError when it is something else."""
        for item in items:
            node = self._find(keys)
            if node is None or node.items is None:
                raise WorkspaceError(f"`{'.'.join(keys)}` is no list", file=self._file)
            self._add(node, self._dump(item, len(keys) + 1), len(keys))

    def drop(self, keys: Sequence[str], items: Iterable[object]) -> None:
        """Takes each of the items out of a list, once."""
        for item in items:
            node = self._find(keys)
            found = [at for at, part in enumerate(node.items) if part.value == item] if node and node.items else []
            if node and found:
                self._cut(node, found[-1])

    # ------------------------------------------------------------------------------------------ text

    def _splice(self, start: int, end: int, new: str) -> None:
        self._text = self._text[:start] + new + self._text[end:]
        self._root = self._parse()

    def _add(self, parent: _Node, text: str, depth: int) -> None:
        if parent.parts:
            first, last = parent.parts[0][0], parent.parts[-1][1]
            lead = self._text[parent.start + 1 : first]
            gap = "\n" + self._indent(depth + 1) if "\n" in lead else " "
            self._splice(last, last, f",{gap}{text}")
        else:
            inner, outer = self._indent(depth + 1), self._indent(depth)
            self._splice(parent.start, parent.end, self._text[parent.start : parent.end - 1].rstrip(" \t\r\n")
                         + f"\n{inner}{text}\n{outer}" + self._text[parent.end - 1])  # fmt: skip

    def _cut(self, parent: _Node, at: int) -> None:
        start, end = parent.parts[at]
        if at > 0:
            self._splice(parent.parts[at - 1][1], end, "")
        elif len(parent.parts) > 1:
            self._splice(start, parent.parts[1][0], "")
        else:
            comma = _SPACE.match(self._text, end)
            after = comma.end() if comma else end
            end = after + 1 if self._text[after : after + 1] == "," else end
            left = self._text[parent.start + 1 : start] + self._text[end : parent.end - 1]
            self._splice(parent.start + 1, parent.end - 1, left if left.strip() else "")

    def _indent(self, depth: int) -> str:
        found = re.search(r"^[{\[][^\S\n]*\n([ \t]+)\S", self._text.lstrip("\ufeff"), re.MULTILINE)
        return (found[1] if found else "  ") * depth

    def _dump(self, value: object, depth: int) -> str:
        unit = self._indent(1)
        text = json.dumps(value, indent=unit, ensure_ascii=False)
        return text.replace("\n", "\n" + self._indent(depth))

    def _find(self, keys: Sequence[str]) -> _Node | None:
        node = self._root
        for key in keys:
            if node.members is None or key not in node.members:
                return None
            node = node.members[key][1]
        return node

    # ------------------------------------------------------------------------------------------ parsing

    def _parse(self) -> _Node:
        node = self._value(self._skip(0), 0)
        if self._skip(node.end) != len(self._text):
            raise self._wrong(node.end)
        return node

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def _wrong(self, at: int) -> WorkspaceError:
        line = self._text.count("\n", 0, at) + 1
        return WorkspaceError("is not JSON, with or without comments", file=f"{self._file}:{line}", fix="mend it first")

    def _value(self, at: int, depth: int) -> _Node:
        if depth > MAX_DEPTH:
            raise self._wrong(at)
        char = self._text[at : at + 1]
        if char in ("{", "["):
            return self._container(at, depth, char == "{")
        found = _STRING.match(self._text, at) if char == '"' else _WORD.match(self._text, at)
        if not found:
            raise self._wrong(at)
        try:
            return _Node(at, found.end(), json.loads(found[0]))
        except ValueError:
            raise self._wrong(at) from None

    def _container(self, at: int, depth: int, is_map: bool) -> _Node:
        node, close = _Node(at), "}" if is_map else "]"
        members: dict[str, tuple[int, _Node]] = {}
        items: list[_Node] = []
        at = self._skip(at + 1)
        while self._text[at : at + 1] != close:
            start, child = at, self._value(at, depth + 1)
            if is_map:
                colon = self._skip(child.end)
                if (
                    not isinstance(child.value, str)
                    or child.members is not None
                    or self._text[colon : colon + 1] != ":"
                ):
                    raise self._wrong(at)
                key, child = child.value, self._value(self._skip(colon + 1), depth + 1)
                if key in members:
                    fix = "remove one of them"
                    raise WorkspaceError(f"the key `{key}` stands twice", file=self._file, fix=fix)
                members[key] = (start, child)
            else:
                items.append(child)
            node.parts.append((start, child.end))
            at = self._skip(child.end)
            if self._text[at : at + 1] == ",":
                at = self._skip(at + 1)
            elif self._text[at : at + 1] != close:
                raise self._wrong(at)
        node.end = at + 1
        node.members, node.items = (members, None) if is_map else (None, items)
        node.value = {k: c.value for k, (_, c) in members.items()} if is_map else [c.value for c in items]
        return node
