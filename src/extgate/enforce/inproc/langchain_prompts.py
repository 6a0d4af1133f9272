"""Listings in a prompt without what the agent may not know of: skills, tools and sub-agents.

Known forms, of deepagents 0.4.8 to 0.7.32 and langchain's TodoListMiddleware (seen 2026-11-30): an entry ``- name: …``,
``- **name**: …`` or ``- `name`: …`` with its lines up to the next or a blank one; a heading that names tools in
backticks, with its section; a whole block that begins with such a heading. Free text is left as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_ENTRY = re.compile(r"\s*[-*] (?:\*\*|`)?(?P<name>[^`*:\s][^`*:]*?)(?:\*\*|`)?:")
_HEADING = re.compile(r"(?P<level>#+) ")
_NAMED = re.compile(r"`([^`]+)`")


def reduced(text: str, hidden: frozenset[str]) -> str:
    """One block of a prompt without the listings of the hidden names; empty when all of it is about them."""
    if not hidden:
        return text
    lines = text.split("\n")
    first = next((line for line in lines if line.strip()), "")
    if _is_about(first, hidden):
        return ""
    return "\n".join(_kept(lines, hidden))


def _kept(lines: list[str], hidden: frozenset[str]) -> Iterator[str]:
    section = 0  # the level of the heading whose section is left out; 0: none is
    is_inside = False  # an entry that is left out, whose further lines go with it
    for line in lines:
        heading = _HEADING.match(line)
        if heading:
            level = len(heading["level"])
            if not section or level <= section:
                section = level if _is_about(line, hidden) else 0
            is_inside = bool(section)
            line = _without_names(line, hidden)
        elif not section:
            entry = _ENTRY.match(line)
            is_inside = entry["name"] in hidden if entry else is_inside and bool(line.strip())
        if not is_inside:
            yield line


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
