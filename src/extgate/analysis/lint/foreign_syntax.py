"""EG013 to EG016, EG030: syntax of other matchers, which here is plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from extgate.analysis.lint.context import Context
from extgate.core.extension import Finding
from extgate.core.names import show

CODES = ("EG013", "EG014", "EG015", "EG016", "EG030")

_HABITS = (
    ("EG013", re.compile(r"\[\^"), "`[^…]` does not negate here", "write [!…]"),
    ("EG014", re.compile(r"\{[^{}]*,[^{}]*\}"), "`{a,b}` is not an alternative here", "write one entry each"),
    ("EG015", re.compile(r"\\"), "a backslash does not escape here", "write [*], [?] or [[] for the literal character"),
    ("EG015", re.compile(r"\.\*|\(\?|^\^|\$$"), "this is not a regular expression", "write `*` for any text"),
    (
        "EG030",
        re.compile(r"\[(?:([^\]\[!])-([^\]\[]))\]"),
        "the range runs backwards and matches nothing",
        "swap its ends",
    ),
)


def check(context: Context) -> Iterator[Finding]:
    """A finding for each entry that seems to speak another language."""
    for spot in context.spots:
        text = spot.entry.text
        for code, habit, message, fix in _HABITS:
            found = habit.search(text)
            if found and (code != "EG030" or found[1] > found[2]):
                yield context.warn(code, f"{spot.list}: `{show(text)}`: {message}", at=spot.entry, fix=fix)
        if context.policy.dialect == "profile" and text.startswith("!"):
            message = f"{spot.list}: `{show(text)}`: `!` does not negate in this dialect"
            yield context.warn("EG016", message, at=spot.entry, fix="put the name into `disabled`")
