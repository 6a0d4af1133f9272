"""Listings that agent programs put into texts for the model: tools to be loaded, agents, skills, servers' instructions.

Known forms: of Claude Code 2.1.332 (its requests against a scripted model, 2026-11-30), and entries `- name: …` in the
description of a tool that starts skills or agents, as several programs write them. Other text is left as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from extgate.enforce.wire.clients import CALLABLE
from extgate.enforce.wire.judge import Entry
from extgate.enforce.wire.pieces import named

Cut = tuple[int, int, str]
"""A piece of a text, in characters, and what takes its place."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One entry of a listing. server: it is the instructions of the server `entry.name`."""

    entry: Entry
    start: int
    end: int
    is_server: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """One listing. start, end: all of it, with its heading. announces: whether what it lists can be called by name."""

    items: tuple[Listed, ...]
    start: int
    end: int
    announces: bool = False


@dataclass(frozen=True, slots=True)
class _Form:
    """heading: the line above; item: where an entry begins, with its name; tail: what comes behind the last entry."""

    heading: re.Pattern[str]
    item: re.Pattern[str]
    kinds: tuple[str, ...]
    tail: re.Pattern[str]
    announces: bool = False
    is_server: bool = False


_NAME = re.compile(r"^(?P<name>[^\s<>`\"']+)$", re.MULTILINE)
_BULLET = re.compile(r"^- (?P<name>[^\n]+?)(?=: |:?$)", re.MULTILINE)
_AGENT = re.compile(r"(?<=[:)]\n)- (?P<name>[^\n]+?)(?=: )")
"""Behind the heading, or the tools with which the entry before ends; a description may hold lines like entries."""
_SERVER = re.compile(r"^## (?P<name>[^\n]+)$", re.MULTILINE)
_BLANK = re.compile(r"\n[ \t]*\n(?!- )")

_FORMS = (
    _Form(re.compile(r"^The following deferred tools [^\n]*:$", re.MULTILINE), _NAME, CALLABLE,
          re.compile(r"\n[ \t]*\n"), announces=True),
    _Form(re.compile(r"^Available agent types[^\n]*:$", re.MULTILINE), _AGENT, ("subagent",),
          re.compile(r"\n[ \t]*\n(?=When you launch |When using the )")),
    _Form(re.compile(r"^The following skills are available[^\n]*:$", re.MULTILINE), _BULLET, ("skill",), _BLANK),
    _Form(re.compile(r"^# MCP Server Instructions$", re.MULTILINE), _SERVER, (), re.compile(r"\n(?=# )"),
          is_server=True),
)  # fmt: skip
_ANY_HEADING = re.compile("|".join(f"(?:{form.heading.pattern})" for form in _FORMS), re.MULTILINE)
_CLOSE = "</system-reminder>"
HINTS = (
    b"The following deferred tools ",
    b"Available agent types",
    b"The following skills are ",
    b"# MCP Server Instr",
)
"""What a text with one of the listings holds, however JSON spells it: a quick look before it is read."""


def sections(text: str) -> list[Section]:
    """The listings of known forms in a text, in order and apart."""
    headings = list(_ANY_HEADING.finditer(text))
    found = []
    for at, heading in enumerate(headings):
        form = next(form for form in _FORMS if form.heading.fullmatch(heading[0]))
        limit = headings[at + 1].start() if at + 1 < len(headings) else len(text)
        close = text.find(_CLOSE, heading.end(), limit)
        limit = close if close >= 0 else limit
        items = tuple(_items(text, form, heading.end(), limit))
        if items:
            found.append(Section(items, heading.start(), items[-1].end, form.announces))
    return found


def _items(text: str, form: _Form, start: int, limit: int) -> Iterator[Listed]:
    first = form.item.search(text, start, limit)
    if first is None:
        return
    tail = form.tail.search(text, first.start(), limit)
    limit = tail.start() if tail else limit
    begins = list(form.item.finditer(text, start, limit))
    for at, begin in enumerate(begins):
        end = begins[at + 1].start() if at + 1 < len(begins) else limit
        entry = Entry(begin["name"].strip(), form.kinds)
        yield Listed(entry, begin.start(), end, form.is_server)


def entries_of(text: str, kinds: tuple[str, ...], but: Collection[str] = ()) -> list[Section]:
    """The entries `- name: …`, `<name>…</name>` of a tool's description, as one listing; none without any.

    but: names that are the tool's own arguments.
    """
    blocks = list(named(text, ("skill", "agent", "tool"), 0, len(text)))
    if blocks:
        items = [Listed(Entry(block.name.strip(), kinds), block.start, block.end) for block in blocks]
    else:
        begins = list(_BULLET.finditer(text))
        ends = [_entry_end(text, begin.end(), begins[at + 1].start() if at + 1 < len(begins) else len(text))
                for at, begin in enumerate(begins)]  # fmt: skip
        items = [Listed(Entry(_plain(b["name"]), kinds), b.start(), end) for b, end in zip(begins, ends, strict=True)]
        items = [item for item in items if " " not in item.entry.name and item.entry.name not in but]
    return [Section(tuple(items), items[0].start, items[-1].end)] if items else []


def _plain(name: str) -> str:
    return name.strip().strip("*`\"'").strip()


def _entry_end(text: str, at: int, limit: int) -> int:
    blank = _BLANK.search(text, at, limit)
    return blank.start() + 1 if blank else limit


def cuts(text: str, found: Sequence[Section], is_hidden: Callable[[Listed], bool]) -> list[Cut]:
    """What has to go out of a text for the hidden entries to be gone; a listing of which nothing is left goes whole."""
    made: list[Cut] = []
    for section in found:
        hidden = [item for item in section.items if is_hidden(item)]
        if hidden and len(hidden) == len(section.items):
            made.append((section.start, section.end, ""))
        else:
            made += [_with_its_line(text, cut) for cut in _merged(hidden)]
    return made


def _with_its_line(text: str, cut: Cut) -> Cut:
    """A piece that ends without its line feed takes the one before it."""
    start, end, new = cut
    is_whole = end == start or text[end - 1] == "\n" or text[start - 1 : start] != "\n"
    return cut if is_whole else (start - 1, end, new)


def _merged(items: Sequence[Listed]) -> list[Cut]:
    made: list[Cut] = []
    for item in items:
        if made and made[-1][1] == item.start:
            made[-1] = (made[-1][0], item.end, "")
        else:
            made.append((item.start, item.end, ""))
    return made


DESCRIBED: Mapping[str, tuple[str, ...]] = {
    "Skill": ("skill",), "skill": ("skill",), "activate_skill": ("skill",), "load_skill": ("skill",),
    "Task": ("subagent",), "Agent": ("subagent",), "task": ("subagent",), "invoke_agent": ("subagent",),
    "spawn_agent": ("subagent",), "delegate_task": ("subagent",),
}  # fmt: skip
"""Tools whose description lists what they start, and of which kinds that is."""
