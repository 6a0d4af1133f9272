"""Listings between tags or under headings, as Codex, opencode, Gemini CLI and Hermes put them into prompts.

Seen in the requests of Codex 0.171.0, opencode 1.18.33, Gemini CLI 0.61.0 and hermes-agent 0.19.0 against a scripted
model, 2026-11-30. Other text is left as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from extgate.enforce.wire import spans
from extgate.enforce.wire.judge import Entry
from extgate.enforce.wire.listings import HINTS, Listed, Section, sections
from extgate.enforce.wire.pieces import Piece, between, named, tree, with_blanks
from extgate.enforce.wire.reading import Reading
from extgate.enforce.wire.spans import Span

_SKILL, _AGENT = ("skill",), ("subagent",)


_Find = Callable[[str, int, int], Iterable[Piece]]


@dataclass(frozen=True, slots=True)
class _Block:
    """begin, end: what stands around it; items: its entries, each with its name."""

    begin: str
    end: str
    items: _Find
    kinds: tuple[str, ...] = ()
    is_server: bool = False


def _tagged(tag: str) -> _Find:
    """`<tag>…<name>NAME</name>…</tag>` with its line."""
    return lambda text, start, end: named(text, (tag,), start, end)


def _matched(pattern: re.Pattern[str]) -> _Find:
    return lambda text, start, end: (Piece(m.start(), m["name"], m.end()) for m in pattern.finditer(text, start, end))


def _skills(text: str, start: int, end: int) -> Iterable[Piece]:
    """Skills between tags, or in Hermes' index."""
    is_tagged = text.find("<skill>", start, end) >= 0
    return named(text, ("skill",), start, end) if is_tagged else tree(text, start, end)


def _servers(text: str, start: int, end: int) -> Iterable[Piece]:
    return with_blanks(text, between(text, _SERVER, _SERVER_END, start, end), start, end)


_BULLET = re.compile(r"^[ \t]*- (?P<name>[^\s`:][^\n]*?): [^\n]*\n?", re.MULTILINE)
_QUOTED = re.compile(r"'(?P<name>[^'\n]+)'(?:, (?='))?")
_ARROW = re.compile(r"^- (?P<name>\S+) -> (?:(?!^- \S+ -> ).)*", re.MULTILINE | re.DOTALL)
_SERVER, _SERVER_END = re.compile(r"<server name=\"(?P<name>[^\"<>]*)\">"), re.compile("</server>")
_TOLD = re.compile(
    r"The following are instructions provided by the tool server '(?P<name>[^'\n]*)':\n"
    r"---\[start of server instructions\]---\n"
)
_TOLD_END = re.compile(r"\n---\[end of server instructions\]---\n*")

_BLOCKS = (
    _Block("<available_skills>", "</available_skills>", _skills, _SKILL),
    _Block("<skills_instructions>", "</skills_instructions>", _matched(_BULLET), _SKILL),
    _Block("<available_subagents>", "</available_subagents>", _tagged("subagent"), _AGENT),
    _Block("<available_agents>", "</available_agents>", _tagged("agent"), _AGENT),
    _Block("The following sub-agents are available:\n", "\n\nRemember", _matched(_ARROW), _AGENT),
    _Block("<mcp_instructions>", "</mcp_instructions>", _servers, is_server=True),
)
HINTS_TAGGED = (
    b"available_s",
    b"available_a",
    b"skills_instructions",
    b"mcp_instructions",
    b"by the tool server '",
    b"sub-agents are available",
)
"""What a text with one of the listings holds, however JSON spells `<`."""


def tagged(text: str) -> list[Section]:
    """The listings of these forms in a text, in order and apart."""
    found: list[Section] = []
    for block in _BLOCKS:
        for start, end in _between(text, block):
            items = tuple(_items(text, block, start, end))
            if items:
                found.append(Section(items, items[0].start, items[-1].end))
    for told in between(text, _TOLD, _TOLD_END, 0, len(text)):
        item = Listed(Entry(told.name, ()), told.start, told.end, is_server=True)
        found.append(Section((item,), told.start, told.end))
    return _apart(sorted(found, key=lambda section: section.start))


def quoted(text: str, kinds: tuple[str, ...]) -> list[Section]:
    """The names of `(Available: 'a', 'b')` in the description of a tool that starts them (Gemini CLI)."""
    found, end = [], 0
    for start in (match.end() for match in _AVAILABLE.finditer(text)):
        if start < end or end < 0:  # inside the one before, or behind the last bracket
            continue
        end = text.find(")", start)
        items = [Listed(Entry(q["name"], kinds), q.start(), q.end()) for q in _QUOTED.finditer(text, start, end)]
        found += [Section(tuple(items), items[0].start, items[-1].end)] if items else []
    return found


_AVAILABLE = re.compile(r"\(Available: (?=')")


def _between(text: str, block: _Block) -> Iterator[tuple[int, int]]:
    at = text.find(block.begin)
    while at >= 0:
        start = at + len(block.begin)
        end = text.find(block.end, start)
        end = len(text) if end < 0 else end
        yield start, end
        at = text.find(block.begin, end)


def _items(text: str, block: _Block, start: int, end: int) -> Iterator[Listed]:
    for item in block.items(text, start, end):
        yield Listed(Entry(item.name.strip(), block.kinds), item.start, item.end, block.is_server)


def _apart(found: list[Section]) -> list[Section]:
    made: list[Section] = []
    for section in found:
        if not made or section.start >= made[-1].end:
            made.append(section)
    return made


def all_sections(text: str) -> list[Section]:
    """The listings of every form in a text."""
    return _apart(sorted([*tagged(text), *sections(text)], key=lambda section: section.start))


def read_text(reading: Reading, span: Span) -> None:
    """Adds a text's listings to a reading, where it holds any."""
    data, start, end = reading.data, span.start, span.end
    for hint in _ALL_HINTS:
        if data.find(hint, start, end) >= 0:
            text = spans.text(data, span, "a text")
            reading.add_text(span, text, all_sections(text))
            return


_ALL_HINTS = (*HINTS_TAGGED, *HINTS, b"\\u00")
