"""Listings in a prompt without what the agent may not know of: skills, tools and sub-agents.

Known forms, of deepagents 0.4.8 to 0.7.32 and langchain's TodoListMiddleware (seen 2026-11-30): an entry ``- name: …``,
``- **name**: …`` or ``- `name`: …``, with any mark of a list, with its lines up to the next or a blank one and all that
is indented below it; a heading that names tools in backticks, with its section; a whole block that begins with such a
heading. Free text is left as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_ENTRY = re.compile(r"(?P<indent>\s*)(?:[-*+\u2022]|\d{1,9}[.)])[ \t]+(?P<rest>\S.*)")
_QUOTED = re.compile(r"(?P<quote>[*_`\"']{1,4})(?P<name>[^*`\"\s](?:[^*`\"]*?[^*`\"\s])??)(?:[*_`\"']{1,4})(?=\W|$)")
_END = re.compile(r"\s*:|\s+[-\u2013\u2014(]|\s*$")
_LONGEST = 600
"""Characters at the begin of an entry in which its name ends."""
_HEADING = re.compile(r"(?P<level>#+) ")
_NAMED = re.compile(r"`([^`]+)`")


IsMeant = Callable[[str, str], bool]
"""Whether an entry, given with its name, is about a hidden item of that name and not about a visible one."""


def reduced(text: str, hidden: frozenset[str], is_meant: IsMeant = lambda name, entry: True) -> str:
    """One block of a prompt without the listings of the hidden names; empty when all of it is about them."""
    if not hidden:
        return text
    lines = text.split("\n")
    first = next((line for line in lines if line.strip()), "")
    if _is_about(first, hidden):
        return ""
    return "\n".join(_kept(lines, hidden, is_meant))


def _kept(lines: list[str], hidden: frozenset[str], is_meant: IsMeant) -> Iterator[str]:
    section = 0  # the level of the heading whose section is left out; 0: none is
    until = 0  # the line where an entry that is left out ends
    for at, line in enumerate(lines):
        heading = _HEADING.match(line)
        if heading:
            level = len(heading["level"])
            if not section or level <= section:
                section = level if _is_about(line, hidden) else 0
            line = _without_names(line, hidden)
        elif not section and at >= until and (named := hidden.intersection(_names(line))):
            end = _end(lines, at)
            entry = "\n".join(lines[at:end])
            until = end if any(is_meant(name, entry) for name in named) else until
        if not section and at >= until:
            yield line


def _names(line: str) -> Iterator[str]:
    """What an entry could be about: what stands in quotes at its begin, else every begin that something ends."""
    entry = _ENTRY.match(line)
    if entry is None:
        return
    rest = entry["rest"][:_LONGEST]
    quoted = _QUOTED.match(rest)
    if quoted:
        yield from (quoted["name"], quoted["name"].rstrip(": "))
    yield from (rest[: end.start()] for end in _END.finditer(rest))


def _end(lines: list[str], at: int) -> int:
    """Where the entry that begins at a line ends: all that is indented below it belongs to it, blank lines or not."""
    first = _ENTRY.match(lines[at])
    own, end, was_blank = len(first["indent"]) if first else 0, at + 1, False
    for number, line in enumerate(lines[at + 1 :], at + 1):
        is_deeper = len(line) - len(line.lstrip()) > own
        if line.strip() and not is_deeper and (was_blank or _ENTRY.match(line) or _HEADING.match(line)):
            break
        was_blank = not line.strip()
        end = end if was_blank else number + 1
    return end


def _is_about(line: str, hidden: frozenset[str]) -> bool:
    """Whether a heading names tools, and hidden ones only."""
    names = _NAMED.findall(line) if _HEADING.match(line) else []
    return bool(names) and hidden.issuperset(names)


def _without_names(line: str, hidden: frozenset[str]) -> str:
    """A heading that names several tools, without the hidden ones."""
    names = _NAMED.findall(line)
    if len(names) < 2 or hidden.isdisjoint(names):
        return line
    left = ", ".join(f"`{name}`" for name in names if name not in hidden)
    return line[: line.index("`")] + left + line[line.rindex("`") + 1 :]
