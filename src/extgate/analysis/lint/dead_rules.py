"""EG040 to EG043: entries without which every decision would be the same."""

from __future__ import annotations

from collections.abc import Iterator

from extgate.analysis.dead_entries import DeadEntry, dead_entries
from extgate.analysis.lint.context import Context
from extgate.core.extension import Finding
from extgate.core.names import show

CODES = ("EG040", "EG041", "EG042", "EG043")


def check(context: Context) -> Iterator[Finding]:
    """One finding for each entry that decides nothing, with the entry that makes it needless where it is one."""
    for row in dead_entries(context.policy, context.inventory):
        if row.rule.file:
            yield _finding(context, row)


def _finding(context: Context, row: DeadEntry) -> Finding:
    text, fix = f"{row.rule.text}: `{show(row.entry.text)}`", "remove it"
    if row.why == "covered together":
        message = f"{text} changes nothing: the other entries of the list cover it together"
        return context.warn("EG041", message, at=row.entry, fix=fix)
    if row.why == "no effect":
        message = f"{text} changes nothing: the other lists already decide all that it matches, in the same way"
        return context.warn("EG042", message, at=row.entry, fix="remove it, or keep it as a reminder", severity="info")
    by = f"`{show(row.by.text)}`" if row.by else "another entry"
    place = f" in {row.by_rule.text}" if row.by_rule and row.by_rule.text != row.rule.text else ""
    place += f" (line {row.by.line})" if row.by and row.by.line else ""
    if row.why == "never reached":
        message = f"{text} never decides: {by}{place} is asked before it, and decides otherwise"
        return context.warn("EG043", message, at=row.entry, fix="remove one of the two")
    return context.warn("EG040", f"{text} changes nothing: {by}{place} covers it", at=row.entry, fix=fix)
