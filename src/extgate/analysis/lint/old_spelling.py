"""EG024: module and tool names that the patterns dialect no longer knows."""

from __future__ import annotations

from collections.abc import Iterator

from extgate.analysis.lint.context import Context, Spot
from extgate.core.extension import Finding
from extgate.core.names import show

CODES = ("EG024",)

_OLD_MODULES = frozenset({"file_system", "grep_search", "terminal"})
_OLD_NAMES = {
    "run_command": "execute",
    "grep_search": "grep",
    "list_dir": "ls",
    "edit": "edit_file",
    "read": "read_file",
}


def check(context: Context) -> Iterator[Finding]:
    """A finding for each pattern with an old spelling; there are no aliases."""
    for spot in context.spots if context.policy.dialect == "patterns" else ():
        yield from _old_spelling(context, spot)


def _old_spelling(context: Context, spot: Spot) -> Iterator[Finding]:
    parts = [test.pattern for test in spot.entry.tests]
    if len(parts) != 3:
        return
    text = f"{spot.list}: `{show(spot.entry.text)}`"
    if parts[1] in _OLD_MODULES:
        message = f"{text}: `{parts[1]}` is no module now"
        yield context.warn("EG024", message, at=spot.entry, fix="write `impl:deepagents:…`")
    if parts[2] in _OLD_NAMES and not context.hits(spot):
        fix = f"write `{_OLD_NAMES[parts[2]]}`; there are no aliases"
        yield context.warn("EG024", f"{text} uses an old name", at=spot.entry, fix=fix)
