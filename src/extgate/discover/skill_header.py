"""The header of a SKILL.md: read so that no limit in it is ever lost.

Sources: the Agent Skills format (agentskills.io, keys `name`, `description`, `allowed-tools`) and Claude Code's docs
"Skills" (`disable-model-invocation`, `disallowed-tools`), both seen 2026-11-30.
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass, field

from extgate.core.extension import Finding
from extgate.dialects.document import frontmatter, parse
from extgate.dialects.node import Node
from extgate.discover.codes import finding
from extgate.errors import DocumentError

_KEYS = ("name", "description", "category", "allowed-tools", "disallowed-tools", "disable-model-invocation")
_LIMITS = _KEYS[3:]
_TOP_LINES = 40
"""How far down a limit outside any header is looked for."""


class HeaderError(Exception):
    """A header that keeps its skill from being loaded; `found` is the one problem."""

    def __init__(self, found: Finding) -> None:
        super().__init__(found.message)
        self.found = found


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a SKILL.md says of its skill. None: it does not say; `allowed_tools=()`: it says none."""

    declared_name: str | None = None
    description: str = ""
    category: str | None = None
    allowed_tools: tuple[str, ...] | None = None
    disallowed_tools: tuple[str, ...] = ()
    disable_model_invocation: bool = False
    problems: tuple[Finding, ...] = field(default=())


def read_header(data: bytes, path: str) -> Header:
    """The header of a SKILL.md's bytes. Raises HeaderError where any of it would be lost.

    A byte-order mark and any of the three line endings change nothing. A colon in `name` or `description`, which YAML
    refuses, is mended with a problem; no other line is.
    """
    text = skill_text(data, path)
    node, problems = _parse(text, path)
    if node is None:
        _refuse_misplaced(text, path)
        return Header(problems=(finding("EG211", "has no header", file=path, line=1),))
    _refuse_swallowed(text, node, path)
    return _values(node, path, problems)


def skill_text(data: bytes, path: str) -> str:
    """The text of a SKILL.md without byte-order mark, lines ended by `\\n`. Raises HeaderError when it is no text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise HeaderError(finding("EG203", "is not UTF-8 text", file=path, line=line)) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise HeaderError(finding("EG203", "holds a NUL character: it is no text", file=path, line=line))
    return text.replace("\r\n", "\n").replace("\r", "\n")


def body_of(text: str) -> str:
    """What follows the header in the text of a SKILL.md; all of it when there is none."""
    lines = text.split("\n")
    return "\n".join(lines[_header_end(lines) + 1 :])


def _header_end(lines: list[str]) -> int:
    """The index of the line that closes the header; -1 when there is no header."""
    if lines[0].rstrip() != "---":
        return -1
    return next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), -1)


def _parse(text: str, path: str) -> tuple[Node | None, list[Finding]]:
    """The header as a mapping node (None: there is none), and what had to be mended."""
    problems: list[Finding] = []
    try:
        node = frontmatter(text, path)[0]
    except DocumentError as error:
        mended, problems = _mend(text, path)
        node = _parse_mended(mended, path, error)
    if node is not None and node.kind != "map":
        raise HeaderError(
            finding("EG204", f"the header is {node.shown}, expected `key: value` lines", file=path, line=2)
        )
    return node, problems


def _parse_mended(text: str, path: str, first: DocumentError) -> Node | None:
    try:
        return frontmatter(text, path)[0]
    except DocumentError:
        raise HeaderError(finding("EG204", first.message, file=path, line=first.line, fix=first.fix)) from None


def _mend(text: str, path: str) -> tuple[str, list[Finding]]:
    """The text with each `name:` and `description:` line of the header that is no YAML by itself put in quotes."""
    lines = text.split("\n")
    problems = []
    for index in range(1, max(_header_end(lines), 1)):
        key, colon, value = lines[index].partition(":")
        is_prose = colon and key in ("name", "description") and not _has_controls(value)
        if is_prose and not _is_yaml(lines[index], path):
            lines[index] = f"{key}: {json.dumps(value.strip(), ensure_ascii=False)}"
            problems.append(finding("EG210", f"`{key}` was read as plain text", file=path, line=index + 1))
    return "\n".join(lines), problems


def _has_controls(text: str) -> bool:
    return any(unicodedata.category(char) == "Cc" and char != "\t" for char in text)


def _is_yaml(line: str, path: str) -> bool:
    try:
        parse(line, path, "yaml")
    except DocumentError:
        return False
    return True


def _refuse_misplaced(text: str, path: str) -> None:
    """Refuses a file whose header does not start on its first line, or that has a limit outside any header."""
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip("\ufeff\u200b \t")), 0)
    if lines[first].strip("\ufeff\u200b \t").startswith("---"):
        message = "the header must start on line 1 with `---` alone"
        raise HeaderError(finding("EG204", message, file=path, line=first + 1))
    for number, line in enumerate(lines[:_TOP_LINES], 1):
        if (key := _limit_on(line)) is not None:
            raise HeaderError(finding("EG206", f"`{key}` stands outside any header", file=path, line=number))


def _refuse_swallowed(text: str, node: Node, path: str) -> None:
    """Refuses a header in which a limit at the start of a line became part of another value."""
    lines = text.split("\n")
    read = {_canonical(key) for key in node.items}
    for number, line in enumerate(lines[1 : _header_end(lines)], 2):
        key = _limit_on(line)
        if key is not None and _canonical(key) not in read:
            raise HeaderError(finding("EG206", f"`{key}` is read as part of another value", file=path, line=number))


def _limit_on(line: str) -> str | None:
    """The limit key that a line starts with, if it does."""
    key, colon, _ = line.partition(":")
    if not colon or not key or key[0] in " \t#":
        return None
    return next((limit for limit in _LIMITS if _canonical(limit) == _canonical(key)), None)


def _canonical(key: str) -> str:
    """Letters and digits only, without case: `allowed-tools`, `allowedTools` and `Allowed_Tools` are one."""
    return "".join(c for c in key if c.isalnum()).casefold()


def _values(node: Node, path: str, problems: list[Finding]) -> Header:
    found = _known(node, path, problems)
    name = _text(found.get("name"), "name", path)
    description = _text(found.get("description"), "description", path)
    if name is None:
        problems.append(finding("EG212", "the header has no `name`", file=path, line=1))
    if description is None:
        problems.append(finding("EG214", "the header has no `description`", file=path, line=1))
    return Header(
        declared_name=name,
        description=description or "",
        category=_category(found.get("category"), path),
        allowed_tools=_tools(found.get("allowed-tools"), "allowed-tools", path),
        disallowed_tools=_tools(found.get("disallowed-tools"), "disallowed-tools", path) or (),
        disable_model_invocation=_flag(found.get("disable-model-invocation"), "disable-model-invocation", path),
        problems=tuple(problems),
    )


def _known(node: Node, path: str, problems: list[Finding]) -> dict[str, Node]:
    """The values that discovery reads, by their proper key, whatever way the key is written."""
    proper = {_canonical(key): key for key in _KEYS}
    found: dict[str, Node] = {}
    for key, value in node.items.items():
        name = proper.get(_canonical(key))
        if name is None:
            continue
        line = node.key_line(key)
        if name in found:
            raise HeaderError(finding("EG205", f"`{name}` stands twice, once as `{key}`", file=path, line=line))
        if key != name:
            problems.append(finding("EG215", f"`{key}` is read as `{name}`", file=path, line=line))
        found[name] = value
    return found


def _fault(node: Node, key: str, expected: str, path: str) -> HeaderError:
    return HeaderError(finding("EG205", f"`{key}`: expected {expected}, got {node.shown}", file=path, line=node.line))


def _text(node: Node | None, key: str, path: str) -> str | None:
    """A text as it is written, so that `name: 007` stays `007`; None for an absent or empty one."""
    if node is None or node.is_null:
        return None
    if node.kind != "scalar":
        raise _fault(node, key, "a text", path)
    return (node.scalar if isinstance(node.scalar, str) else node.text).strip() or None


def _category(node: Node | None, path: str) -> str | None:
    if node is None:
        return None
    if not isinstance(node.scalar, str):
        raise _fault(node, "category", "one text", path)
    return node.scalar.strip()


def _tools(node: Node | None, key: str, path: str) -> tuple[str, ...] | None:
    """A list of tool rules: YAML list, or one text split at commas and spaces outside parentheses."""
    if node is None:
        return None
    if node.is_null:
        return ()
    if node.kind == "list" and all(isinstance(child.scalar, str) for child in node):
        return tuple(entry for child in node if (entry := str(child.scalar).strip()))
    if not isinstance(node.scalar, str):
        raise _fault(node, key, "a list of tool names", path)
    return _split(node, key, path)


def _split(node: Node, key: str, path: str) -> tuple[str, ...]:
    entries, depth = [""], 0
    for char in str(node.scalar):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth < 0:
            break
        if depth == 0 and (char == "," or char.isspace()):
            entries.append("")
        else:
            entries[-1] += char
    if depth:
        raise _fault(node, key, "closed parentheses", path)
    return tuple(filter(None, entries))


def _flag(node: Node | None, key: str, path: str) -> bool:
    if node is None:
        return False
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    value = node.scalar if isinstance(node.scalar, bool) else words.get(str(node.scalar).strip().casefold())
    if node.kind != "scalar" or value is None:
        raise _fault(node, key, "true or false", path)
    return value
