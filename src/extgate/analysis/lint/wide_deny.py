"""EG033: a deny that means some server and reaches every MCP item, because all of them are also spelled `mcp__…`."""

from __future__ import annotations

from collections.abc import Iterator

from extgate.analysis.lint.context import Context
from extgate.core.extension import Finding
from extgate.core.names import full_names, show
from extgate.core.patterns import matches

CODES = ("EG033",)

_ANY = (full_names("zz", "zz")[1], full_names("0", "0")[1], full_names("q-q", "w-w")[1])


def check(context: Context) -> Iterator[Finding]:
    """One finding for each deny that matches any full name, unless it is written as `*` or begins as they do."""
    for spot in context.spots:
        text = spot.entry.text
        is_mcp = any(kind.startswith("mcp_") for rule, _ in spot.rules for kind in rule.kinds)
        if not spot.is_deny or not is_mcp or not text.strip("*?") or text.startswith("mcp_") or ":" in text:
            continue
        if all(matches(name, text) for name in _ANY):
            message = f"{spot.list}: `{show(text)}` denies every MCP item, as all of them are also called `mcp__…`"
            yield context.warn("EG033", message, at=spot.entry, fix="name the servers one by one, or write `*`")
