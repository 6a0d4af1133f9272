"""EG093: the profile, or what is installed, changed since `extgate apply`, and the runtime's own lists did not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from extgate.applied import skills_view
from extgate.applied.account import Entry, FilePlan, text_of
from extgate.applied.drift.hooks import STATE
from extgate.applied.drift.look import Look
from extgate.applied.jsonc_text import MISSING
from extgate.applied.puts import Done, Put
from extgate.core.extension import Finding
from extgate.core.names import show

CODES = ("EG093",)


def check(look: Look) -> Iterator[Finding]:
    """One finding a file: the first thing that it lacks, or holds and should not."""
    entries = {entry.path: entry for entry in look.account.entries}
    planned = {Path(plan.path.resolve()): plan for plan in look.plan.files}
    for path in dict.fromkeys((*entries, *planned)):
        if what := _what(look, entries.get(path), planned.get(path)):
            message = f"the profile of `{show(look.agent)}`, or what is installed, changed since: {what}"
            yield look.finding("EG093", message, path, severity="warning")
    links = {str(path): str(target) for path, target in skills_view.links(look.ground).items()}
    then = look.account.facts.get("links", {})
    if links.keys() != then.keys():
        message = f"the skills that `{show(look.agent)}` may see are others than those that its runtime finds"
        path = Path(next(iter(sorted(links.keys() ^ then.keys()))))
        yield look.finding("EG093", message, path, severity="warning")


def _what(look: Look, entry: Entry | None, plan: FilePlan | None) -> str:
    if entry is None or plan is None:
        return "nothing is written there" if plan else "nothing belongs there any more"
    if plan.text is not None:
        return "" if text_of(entry.path) == plan.text else "it is of another version of extgate"
    wanted = {put.keys: put for put in plan.puts if put.keys[:2] != STATE}
    lacks = next((keys for keys, put in wanted.items() if not _holds(look.value(entry, keys), put)), None)
    if lacks:
        return f"`{show('.'.join(lacks))}` lacks what is denied now"
    done = (one for one in entry.done if one.keys[:2] != STATE)
    much = next((one.keys for one in done if _is_left(one, wanted.get(one.keys))), None)
    return f"`{show('.'.join(much))}` holds what is not denied any more" if much else ""


def _holds(now: Any, put: Put) -> bool:
    if put.how == "union":
        return not put.value or (isinstance(now, list) and all(item in now for item in put.value))
    return now is not MISSING and now == put.value


def _is_left(done: Done, put: Put | None) -> bool:
    return put is None or (done.how == "union" and any(item not in put.value for item in done.value))
