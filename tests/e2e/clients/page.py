"""The page of `docs` that shows the table, made of the record alone."""

from __future__ import annotations

import json

from tests.e2e.clients.install import CLIENTS
from tests.e2e.clients.intents import INTENTS
from tests.e2e.clients.record import Record
from tests.e2e.clients.verdicts import Verdict, counts, verdicts

HEAD = """# Real runtimes, by intent: natively and behind extgate

Written by `python -m tests.e2e.table`, which `make e2e` runs; do not edit. Observed {date}.

Each cell is four runs of the real client against a scripted model on loopback, with every approval given: without a
deny, with the runtime's own deny, and under extgate without and with the deny. What ran is told by side effects: a file
that the command touches, the MCP server's own log, or, for listings and texts, what the model was sent. A cell counts
only when both runs without a deny show that the call would have run, and when under extgate a tool of another server,
which nothing denies, was called as well.

* **held**: nothing ran. **leaked**: it ran all the same. **told**: it ran, as the rule is written, and `extgate check`
  names the rule.
* **no words**: the runtime's configuration cannot say it. **-**: the runtime has nothing that the intent is about.
* **wire**: gateway and hooks cannot see it; it held behind the model wire (`extgate run`).
* **impossible**: no wall of extgate's reaches it; below is which would, and why the host makes it impossible.

Before the arrow: natively. After it: after `extgate apply`, with gateway and hooks, or behind the in-process door
(deepagents, openai-agents, pydantic-ai).
"""


def page(record: Record) -> str:
    """The page, as Markdown."""
    rows = verdicts(record)
    names = [name for name in CLIENTS if any(row.runtime == name for row in rows)]
    by_cell = {(row.runtime, row.intent): row for row in rows}
    versions = " | ".join(f"{name} {record.versions.get(name, '')}".strip() for name in names)
    lines = [HEAD.format(date=record.date), f"| intent | {versions} |", "|---|" + "---|" * len(names)]
    for intent in INTENTS.values():
        cells = " | ".join(_cell(by_cell[name, intent.id]) for name in names)
        lines.append(f"| **{intent.id}**: {intent.text} | {cells} |")
    lines += ["", _counted(rows), "", *_reasons(record, rows), "## The denies", "", *_denies(record, names)]
    return "\n".join(lines).rstrip() + "\n"


def _cell(row: Verdict) -> str:
    if row.native == row.after != "held":
        return "-" if row.native == "not there" else _bold(row.native)
    return (
        f"{row.native} → {row.after}"
        if row.native == row.after == "held"
        else f"{_bold(row.native)} → {_bold(row.after)}"
    )


def _bold(word: str) -> str:
    return f"**{word}**" if word in ("leaked", "impossible", "broken") else word


def _counted(rows: list[Verdict]) -> str:
    found = counts(rows)
    said = ", ".join(f"{name}: {number}" for name, number in sorted(found.items()) if name != "cells")
    return f"{found['cells']} cells; {said}."


def _reasons(record: Record, rows: list[Verdict]) -> list[str]:
    lines: list[str] = []
    for title, word in (
        ("Which wall would be needed", "impossible"),
        ("Held by the wire alone", "wire"),
        ("Leaks", "leaked"),
        ("Broken", "broken"),
        ("Not run", "not run"),
        ("Not there", "not there"),
        ("Skipped", "skipped"),
    ):
        found = [row for row in rows if row.after == word]
        if word == "skipped":
            found = list({row.runtime: row for row in found}.values())
        if found:
            lines += [f"## {title}", ""]
            lines += [f"* {row.runtime}, {row.intent}: {_why(record, row)}" for row in found] + [""]
    return lines


def _why(record: Record, row: Verdict) -> str:
    return record.unfinished.get(row.runtime, "") if row.after == "not run" else row.why or "it ran"


def _denies(record: Record, names: list[str]) -> list[str]:
    lines = ["What was configured: natively, and as the profile of the agent.", ""]
    for name in names:
        cells = record.cells.get(name, {})
        lines += [f"### {name}", "", "| intent | its own | extgate's |", "|---|---|---|"]
        for intent in INTENTS:
            deny = cells.get(intent, {}).get("deny")
            if deny:
                own = json.dumps(deny["native"]) if deny["native"] is not None else "no words"
                profile = deny["profile"].replace("\n", "; ")
                lines.append(f"| {intent} | {_code(own)} | {_code(profile)} |")
        lines.append("")
    return lines


def _code(text: str) -> str:
    return text if text == "no words" else "`" + text.replace("|", "\\|") + "`"
