"""What `apply` tells of its work: lines for people, and the dict of `--json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extgate.applied.account import Change
from extgate.applied.walls import standings
from extgate.applied.work import Work, diff


def lines(work: Work) -> Iterator[str]:
    """One line a file, a leak and a thing to do."""
    for change in work.made:
        yield f"{change.path}: {_what(change)}"
        for name in change.kept:
            yield f"{change.path}: `{name}` was edited since, and is left as it is"
    if work.ground is None or work.plan is None:
        return
    for path in sorted(work.links):
        yield f"{path}: leads to the view of the visible skills"
    for row in standings(work.ground, work.plan):
        if row.by:
            yield f"closed by {', '.join(row.by)}: {row.text}"
        elif row.is_denied:
            yield f"OPEN: {row.text}"
        if row.left:
            yield f"left: {row.text}: {row.left}"
    for server in work.ground.untold:
        told = "was never asked what it offers, so its tools are refused; run `extgate trust`, then this again"
        yield f"`{server}` {told}"
    yield from work.plan.needs


def _what(change: Change) -> str:
    if not change.is_one:
        return "as it was"
    return "removed" if change.then is None else "made" if change.now is None else "changed"


def _change_dict(change: Change) -> dict[str, Any]:
    shown = "\n".join(diff(change))
    return {"path": str(change.path), "change": _what(change), "kept": list(change.kept), "diff": shown}


def work_dict(work: Work) -> dict[str, Any]:
    """Files with their diffs, walls, and what is left to do."""
    found: dict[str, Any] = {
        "files": [_change_dict(change) for change in work.made]
    }  # fmt: skip
    if work.ground is not None and work.plan is not None:
        rows = standings(work.ground, work.plan)
        found["runtime"], found["agent"] = work.ground.view.runtime, work.ground.agent.id
        found["walls"] = [{"leak": r.id, "text": r.text, "by": list(r.by), "left": r.left} for r in rows]
        found["open"] = list(open_leaks(work))
        found["needs"] = list(work.plan.needs)
        found["skills"] = {str(path): str(target) for path, target in sorted(work.links.items())}
    return found


def open_leaks(work: Work) -> tuple[str, ...]:
    """What is denied and has no wall."""
    if work.ground is None or work.plan is None:
        return ()
    return tuple(row.id for row in standings(work.ground, work.plan) if row.is_denied and not row.by)
