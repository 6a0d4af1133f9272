"""What a cell's observations come to, and the counts of a table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tests.e2e.clients.install import CLIENTS
from tests.e2e.clients.intents import INTENTS
from tests.e2e.clients.record import Record
from tests.e2e.clients.walls import IMPOSSIBLE

Json = dict[str, Any]


HOOK_SEES = (
    "the runtime mends the name before its hooks and the gateway see the call; the wire sees what the model said"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One cell. native: held, leaked, no words, not there, skipped, broken, not run. why: the reason, if there is one.

    after: the same, or told, or impossible, or wire: held there alone.
    """

    runtime: str
    intent: str
    native: str
    after: str
    why: str = ""


def verdict(runtime: str, intent: str, cell: Json, skipped: str = "") -> Verdict:
    """Broken: the control did not show that the call would have run, or a run did not come as far as the model."""
    say = {"runtime": runtime, "intent": intent}
    if skipped:
        return Verdict(**say, native="skipped", after="skipped", why=skipped)
    if "control" not in cell:
        return Verdict(**say, native="not run", after="not run")
    control = cell["control"]
    if "why" in control:
        return Verdict(**say, native="not there", after="not there", why=control["why"])
    if not control.get("happened"):
        return Verdict(**say, native="broken", after="broken", why=f"control: {control.get('note') or 'nothing ran'}")
    after, why = _after(runtime, intent, cell)
    return Verdict(**say, native=_native(cell.get("native", {})), after=after, why=why)


def _native(seen: Json) -> str:
    if "why" in seen:
        return "no words"
    return "broken" if not seen.get("requests") else "leaked" if seen["happened"] else "held"


def _after(runtime: str, intent: str, cell: Json) -> tuple[str, str]:
    if "open" not in cell or "after" not in cell:
        return "not run", ""
    opened, after = cell["open"], cell["after"]
    impossible = IMPOSSIBLE.get((runtime, intent), "")
    if not opened.get("happened"):
        return "broken", f"open: {opened.get('note') or 'nothing ran'}"
    if not (opened.get("canary") and after.get("canary")):
        return "broken", f"the canary did not arrive: {after.get('note') or opened.get('note')}"
    if not after["happened"]:
        return ("held", "") if not impossible else ("broken", f"held, though it is said to be impossible: {impossible}")
    if after.get("told"):
        return "told", after["told"]
    wire = cell.get("wire", {})
    if wire.get("canary") and not wire["happened"]:
        return "wire", HOOK_SEES
    return ("impossible", impossible) if impossible else ("leaked", "")


def verdicts(record: Record) -> list[Verdict]:
    """Every cell of the table, those that were not run as well."""
    return [
        verdict(runtime, intent, record.cells.get(runtime, {}).get(intent, {}), record.skipped.get(runtime, ""))
        for runtime in CLIENTS
        for intent in INTENTS
    ]


def counts(rows: list[Verdict]) -> dict[str, int]:
    """Cells in all, and by what they came to: `native leaked`, `after held`, …"""
    found = Counter({"cells": len(rows)})
    for row in rows:
        found[f"native {row.native}"] += 1
        found[f"after {row.after}"] += 1
    return dict(found)
