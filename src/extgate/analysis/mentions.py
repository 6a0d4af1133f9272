"""Names in free text: which hidden things does a text tell a model to use?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from extgate.core.explain import Decider

MAX_TEXT = 200_000
"""Characters of one text that are looked at."""

_SPAN = re.compile(r"`([^`\n]{1,120})`")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]{2,119}")
_TELLING = re.compile(r"\b(?:use|call|run|invoke|load|start|with|via|tool|skill|server)\s+(?:the\s+)?$", re.IGNORECASE)


def hidden_names(decider: Decider) -> Mapping[str, str]:
    """What an agent may not use, as a text may call it, with its id; but for what something visible is called too."""
    hidden: dict[str, str] = {}
    visible: set[str] = set()
    for decision in decider.decisions:
        ext = decision.extension
        names = {name for facet in ("any", "own") for name in decider.naming.of(ext).get(facet, ())}
        names -= {ext.server} if ext.server else set()
        if decision.effect == "deny":
            hidden |= dict.fromkeys(names, ext.id)
        else:
            visible |= names
    return {name: owner for name, owner in hidden.items() if name not in visible}


def mentioned(text: str, names: Mapping[str, str]) -> Iterator[tuple[int, str, str]]:
    """Line, name and id of each hidden thing that the text speaks of, once each.

    A plain word counts in backticks or behind a word such as `use`; one with `_`, `-`, `/` or `.` inside always.
    """
    seen: set[str] = set()
    for number, line in enumerate(text[:MAX_TEXT].split("\n"), 1):
        spans = [span.strip().removesuffix("()").lstrip("/@") for span in _SPAN.findall(line)]
        words = [match[0].rstrip(".,") for match in _WORD.finditer(line) if _counts(line, match)]
        for name in (*spans, *words):
            owner = names.get(name)
            if owner and owner not in seen:
                seen.add(owner)
                yield number, name, owner


def _counts(line: str, match: re.Match[str]) -> bool:
    name = match[0].rstrip(".,")
    return bool(re.search(r"[_/.-]", name) or _TELLING.search(line[: match.start()]))
