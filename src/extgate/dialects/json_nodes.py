"""JSON, and JSON with comments and trailing commas, as nodes with lines."""

from __future__ import annotations

import json
import re
from bisect import bisect_right

from extgate.dialects.node import MAX_DEPTH, MAX_NODES, Node
from extgate.errors import DocumentError

_SPACE = re.compile(r"(?:[ \t\n\r]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


def read_json(text: str, path: str) -> Node:
    """The one JSON value in `text`. Comments and a comma before a closing bracket are accepted.

    Raises DocumentError at the line: not well-formed, a key that stands twice, too deep, too many values.
    """
    reader = _Reader(text, path)
    node = reader.value(0)
    reader.skip()
    if reader.at < len(text):
        raise reader.error("something follows the JSON value")
    return node


class _Reader:
    def __init__(self, text: str, path: str) -> None:
        self.text, self.path, self.at, self.count = text, path, 0, 0
        self.starts = [0, *(m.end() for m in re.finditer("\n", text))]

    @property
    def line(self) -> int:
        return bisect_right(self.starts, self.at)

    def error(self, message: str, fix: str = "") -> DocumentError:
        return DocumentError(f"is not valid JSON: {message}", file=self.path, line=self.line, fix=fix)

    def skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def take(self, token: str) -> bool:
        self.skip()
        found = self.text.startswith(token, self.at)
        self.at += len(token) if found else 0
        return found

    def value(self, depth: int) -> Node:
        self.skip()
        self.count += 1
        if depth > MAX_DEPTH:
            raise DocumentError(f"is nested deeper than {MAX_DEPTH} levels", file=self.path, line=self.line)
        if self.count > MAX_NODES:
            raise DocumentError(f"holds more than {MAX_NODES:,} values", file=self.path, line=self.line)
        line = self.line
        if self.take("{"):
            return self.mapping(line, depth)
        if self.take("["):
            return self.sequence(line, depth)
        return self.scalar(line)

    def mapping(self, line: int, depth: int) -> Node:
        items: dict[str, Node] = {}
        key_lines: dict[str, int] = {}
        while not self.take("}"):
            if items and not self.take(","):
                raise self.error("expected `,` or `}`")
            if items and self.take("}"):
                break
            self.skip()
            key_line, key = self.line, self.string()
            if key in items:
                raise DocumentError(
                    f"`{key[:60]}` stands twice (first on line {key_lines[key]})",
                    file=self.path, line=key_line, fix="keep one",
                )  # fmt: skip
            if not self.take(":"):
                raise self.error("expected `:`")
            items[key], key_lines[key] = self.value(depth + 1), key_line
        return Node(file=self.path, line=line, kind="map", items=items, key_lines=key_lines)

    def sequence(self, line: int, depth: int) -> Node:
        children: list[Node] = []
        while not self.take("]"):
            if children and not self.take(","):
                raise self.error("expected `,` or `]`")
            if children and self.take("]"):
                break
            children.append(self.value(depth + 1))
        return Node(file=self.path, line=line, kind="list", children=tuple(children))

    def string(self) -> str:
        if not self.text.startswith('"', self.at):
            what = self.text[self.at : self.at + 12].split("\n")[0]
            raise self.error(f"expected text in double quotes, got `{what}`" if what else "it ends too early")
        try:
            value, self.at = json.decoder.scanstring(self.text, self.at + 1, True)  # type: ignore[attr-defined]
        except json.JSONDecodeError as error:
            self.at = error.pos
            raise self.error(error.msg.lower()) from None
        return str(value)

    def scalar(self, line: int) -> Node:
        if self.text.startswith('"', self.at):
            text = self.string()
            return Node(file=self.path, line=line, kind="scalar", scalar=text, text=text)
        if match := _NUMBER.match(self.text, self.at):
            self.at = match.end()
            return Node(file=self.path, line=line, kind="scalar", scalar=self.number(match), text=match[0])
        for word, value in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return Node(file=self.path, line=line, kind="scalar", scalar=value, text=word)
        what = self.text[self.at : self.at + 12].split("\n")[0]
        raise self.error(f"expected a value, got `{what}`" if what else "it ends too early")

    def number(self, match: re.Match[str]) -> int | float:
        if match[1] or match[2]:
            return float(match[0])
        if len(match[0]) > 400:
            raise self.error("a number of more than 400 digits")
        return int(match[0])


MAX_LARGE_CHARS = 512 * 1024 * 1024


def read_large_json(text: str, path: str) -> Node:
    """The same for strict JSON of any size, in a tenth of the time; the nodes have line 0, which means unknown.

    Raises DocumentError with the line where the text is not well-formed.
    """
    if len(text) > MAX_LARGE_CHARS:
        raise DocumentError(f"holds more than {MAX_LARGE_CHARS:,} characters", file=path, fix="split the file")
    try:
        return _node(json.loads(text, object_pairs_hook=_pairs), path)
    except json.JSONDecodeError as error:
        raise DocumentError(f"is not valid JSON: {error.msg.lower()}", file=path, line=error.lineno) from None
    except RecursionError:
        raise DocumentError("is nested too deep", file=path) from None
    except ValueError:
        raise DocumentError("is not valid JSON: a number with too many digits", file=path) from None
    except _TwiceError as error:
        raise DocumentError(f"`{error.args[0][:60]}` stands twice in one object", file=path, fix="keep one") from None


class _TwiceError(Exception):
    """A key that stands twice in one object."""


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        raise _TwiceError(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return found


def _node(value: object, path: str) -> Node:
    if isinstance(value, dict):
        return Node(file=path, line=0, kind="map", items={key: _node(item, path) for key, item in value.items()})
    if isinstance(value, list):
        return Node(file=path, line=0, kind="list", children=tuple(_node(item, path) for item in value))
    assert value is None or isinstance(value, str | int | float)
    return Node(file=path, line=0, kind="scalar", scalar=value, text=value if isinstance(value, str) else "")
