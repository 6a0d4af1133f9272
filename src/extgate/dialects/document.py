"""A file handed to a dialect, and its text as nodes that know their line.

YAML is read from PyYAML's events, TOML by `tomllib`; JSON (and JSON with comments) by `json_nodes`, because no
well-kept library gives JSON values their lines. All three end in the same `Node`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from extgate.dialects.json_nodes import read_json
from extgate.dialects.node import MAX_DEPTH, MAX_NODES, Node, plain
from extgate.errors import DocumentError

MAX_CHARS = 4 * 1024 * 1024
"""A longer text is refused before it is parsed."""

Form = Literal["yaml", "json", "toml"]
_FORM_BY_SUFFIX: dict[str, Form] = {"yaml": "yaml", "yml": "yaml", "json": "json", "jsonc": "json", "toml": "toml"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One file's path, as messages should print it, and its text. A byte-order mark is dropped."""

    path: str
    text: str
    facts: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of_bytes(path: str, data: bytes) -> Document:
        """A document from a file's bytes. Raises DocumentError when they are not UTF-8 or too many."""
        if len(data) > MAX_CHARS:
            raise DocumentError(f"holds more than {MAX_CHARS:,} bytes", file=path, fix="split the file")
        try:
            return Document(path=path, text=data.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise DocumentError("is not UTF-8 text", file=path, line=line, fix="save it as UTF-8") from None

    def parse(self, form: Form | None = None) -> Node:
        """The text as one node. Raises DocumentError with the line."""
        return parse(self.text, self.path, form)


def parse(text: str, path: str, form: Form | None = None) -> Node:
    """The one document in `text`, by the suffix of `path` unless `form` says otherwise.

    Duplicate keys, several YAML documents, too deep or too many nodes are errors. An empty YAML file is a null node.
    """
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_CHARS:
        raise DocumentError(
            f"holds {len(text):,} characters, the most is {MAX_CHARS:,}", file=path, fix="split the file"
        )
    form = form or _FORM_BY_SUFFIX.get(path.rpartition(".")[2].lower(), "yaml")
    if form == "json":
        return read_json(text, path)
    return _read_toml(text, path) if form == "toml" else _read_yaml(text, path)


_FENCE = re.compile(r"---[ \t]*(?:\n|$)")


def frontmatter(text: str, path: str) -> tuple[Node | None, str]:
    """The header between `---` lines as a mapping node (None when there is none), and the body after it.

    Lines are those of the whole file. Raises DocumentError for an unclosed or ill-formed header.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not _FENCE.match(text):
        return None, text
    lines = text.split("\n")
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        raise DocumentError("the header is never closed", file=path, line=1, fix="end it with a line `---`")
    # The empty first line stands for the fence, so that positions are the file's own.
    header = parse("\n" + "\n".join(lines[1:end]), path, "yaml")
    if header.kind == "scalar" and header.scalar is None:
        header = Node(file=path, line=1, kind="map", items={})
    return header, "\n".join(lines[end + 1 :])


# --------------------------------------------------------------------------------------------- YAML


def _read_yaml(text: str, path: str) -> Node:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _YamlReader(path).read(yaml.parse(text, Loader=loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        raise DocumentError(f"is not valid YAML: {error.problem or error.context}", file=path, line=line) from None
    except yaml.YAMLError as error:
        raise DocumentError(f"is not valid YAML: {' '.join(str(error).split())}", file=path, line=1) from None


_COLLECTION_TAGS = (None, "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_TEXT_TAGS = frozenset({"str", "timestamp", "merge", "value"})
"""Scalars that stay the text that was written. Not `!`: in `- ! name` it would be lost, and with it the deny."""


class _YamlReader:
    """Builds nodes from events without recursion, so that depth is a number and not a crash."""

    def __init__(self, path: str) -> None:
        import yaml

        self.path = path
        self.yaml = yaml
        self.resolver: Any = yaml.resolver.Resolver()
        self.constructor = yaml.constructor.SafeConstructor()
        self.anchors: dict[str, Node] = {}
        self.count = 0

    def read(self, events: Iterator[Any]) -> Node:
        yaml = self.yaml
        root: Node | None = None
        frames: list[_Frame] = []
        for event in events:
            if isinstance(event, yaml.events.DocumentStartEvent) and root is not None:
                raise self.error("holds more than one YAML document", event, "keep one document a file")
            node: Node | None = None
            if isinstance(event, yaml.events.MappingStartEvent | yaml.events.SequenceStartEvent):
                is_map = isinstance(event, yaml.events.MappingStartEvent)
                if event.tag not in _COLLECTION_TAGS:
                    raise self.error(f"uses the tag `{event.tag}`, which has no meaning here", event)
                frames.append(_Frame(is_map, event.start_mark.line + 1, event.anchor))
                if len(frames) > MAX_DEPTH:
                    raise self.error(f"is nested deeper than {MAX_DEPTH} levels", event)
            elif isinstance(event, yaml.events.MappingEndEvent | yaml.events.SequenceEndEvent):
                frame = frames.pop()
                node = frame.node(self.path)
                self.keep(frame.anchor, node)
            elif isinstance(event, yaml.events.ScalarEvent):
                node = self.scalar(event)
                self.keep(event.anchor, node)
            elif isinstance(event, yaml.events.AliasEvent):
                node = self.alias(event, len(frames))
            if node is not None:
                if frames:
                    self.add(frames[-1], node, event)
                else:
                    root = node
        return root if root is not None else Node(file=self.path, line=1, kind="scalar", scalar=None)

    def keep(self, anchor: str | None, node: Node) -> None:
        self.count += 1
        if self.count > MAX_NODES:
            raise DocumentError(f"holds more than {MAX_NODES:,} values", file=self.path, line=node.line)
        if anchor:
            self.anchors[anchor] = node

    def alias(self, event: Any, depth: int) -> Node:
        if event.anchor not in self.anchors:
            raise self.error(f"uses `*{event.anchor}`, which nothing defines", event)
        node = self.anchors[event.anchor]
        self.count += node.size  # what the alias stands for, not the one word: a bomb runs into the bound
        if depth + node.depth > MAX_DEPTH:
            raise self.error(f"is nested deeper than {MAX_DEPTH} levels once its aliases are followed", event)
        if self.count > MAX_NODES:
            raise self.error(f"holds more than {MAX_NODES:,} values once its aliases are followed", event)
        return node

    def scalar(self, event: Any) -> Node:
        line = event.start_mark.line + 1
        text: str = event.value
        tag: str = event.tag or self.resolver.resolve(self.yaml.ScalarNode, text, event.implicit)
        value: str | int | float | bool | None = text
        kind = tag.removeprefix("tag:yaml.org,2002:")
        if kind in ("null", "bool", "int", "float"):
            node = self.yaml.ScalarNode(tag, text)
            try:
                value = getattr(self.constructor, f"construct_yaml_{kind}")(node)
            except (ValueError, LookupError, OverflowError, TypeError):
                raise self.error(f"`{text}` is not a YAML {kind}", event) from None
        elif kind not in _TEXT_TAGS:
            raise self.error(f"uses the tag `{tag}`, which has no meaning here", event, "write plain text, in quotes")
        return Node(file=self.path, line=line, kind="scalar", scalar=value, text=text)

    def add(self, frame: _Frame, node: Node, event: Any) -> None:
        if not frame.is_map:
            frame.children.append(node)
        elif frame.key is None:
            if node.kind != "scalar":
                raise self.error("a key must be plain text", event)
            frame.key = node
        else:
            key, frame.key = frame.key, None
            name = key.text
            if name == "<<" and not isinstance(key.scalar, bool):
                self.merge(frame, node, event)
            elif name in frame.items and name not in frame.merged:
                first = frame.key_lines[name]
                raise DocumentError(
                    f"`{name}` stands twice (first on line {first})", file=self.path, line=key.line, fix="keep one"
                )
            else:
                frame.merged.discard(name)
                frame.items[name] = node
                frame.key_lines[name] = key.line

    def merge(self, frame: _Frame, node: Node, event: Any) -> None:
        for source in node.children if node.kind == "list" else (node,):
            if source.kind != "map":
                raise self.error("`<<` must name a mapping", event)
            for name, value in source.items.items():
                if name not in frame.items:
                    frame.items[name] = value
                    frame.key_lines[name] = source.key_line(name)
                    frame.merged.add(name)

    def error(self, message: str, event: Any, fix: str = "") -> DocumentError:
        return DocumentError(message, file=self.path, line=event.start_mark.line + 1, fix=fix)


class _Frame:
    """A mapping or sequence that is still open."""

    def __init__(self, is_map: bool, line: int, anchor: str | None) -> None:
        self.is_map, self.line, self.anchor = is_map, line, anchor
        self.key: Node | None = None
        self.items: dict[str, Node] = {}
        self.key_lines: dict[str, int] = {}
        self.merged: set[str] = set()
        self.children: list[Node] = []

    def node(self, path: str) -> Node:
        if self.is_map:
            return Node(file=path, line=self.line, kind="map", items=self.items, key_lines=self.key_lines)
        return Node(file=path, line=self.line, kind="list", children=tuple(self.children))


# --------------------------------------------------------------------------------------------- TOML

_TOML_HEAD = re.compile(r"^\s*\[{1,2}\s*([^\]]+?)\s*\]{1,2}\s*(?:#.*)?$")
_TOML_KEY = re.compile(
    r"""^\s*((?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+))*)\s*="""
)


def _read_toml(text: str, path: str) -> Node:
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        raise DocumentError(
            f"is not valid TOML: {str(error).partition(' (at')[0]}", file=path, line=int(found[1]) if found else 1
        ) from None
    except RecursionError:
        raise DocumentError(f"is nested deeper than {MAX_DEPTH} levels", file=path, line=1) from None
    return plain(value, path, _toml_lines(text))


def _toml_lines(text: str) -> dict[tuple[str, ...], int]:
    """Line by key path, as far as headers and `key =` at line starts tell; `tomllib` itself keeps no positions.

    The tables of an array share their header's first line. Used for messages only, never for meaning.
    """
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        if head := _TOML_HEAD.match(line):
            table = _toml_path(head[1])
            lines.setdefault(table, number)
        elif key := _TOML_KEY.match(line):
            lines.setdefault(table + _toml_path(key[1]), number)
    return lines


def _toml_path(dotted: str) -> tuple[str, ...]:
    parts = re.findall(r""""([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)""", dotted)
    return tuple(a or b or c for a, b, c in parts)
