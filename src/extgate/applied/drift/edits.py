"""EG090: what `extgate apply` wrote is gone, or somebody changed it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extgate.applied.account import digest, text_of
from extgate.applied.drift.look import Look
from extgate.applied.jsonc_text import MISSING
from extgate.applied.puts import Done
from extgate.core.extension import Finding
from extgate.core.names import show
from extgate.errors import WorkspaceError

CODES = ("EG090",)


def check(look: Look) -> Iterator[Finding]:
    """One finding a file that is gone or unreadable, else one for each thing in it that is not as it was put."""
    for entry in look.account.entries:
        try:
            editor = look.editor(entry)
        except WorkspaceError as error:
            yield look.finding("EG090", f"cannot be read any more: {error.message}", entry.path)
            continue
        if editor is None and text_of(entry.path) is None:
            yield look.finding("EG090", "`extgate apply` wrote this file, and it is gone", entry.path)
        elif entry.is_whole:
            if digest(text_of(entry.path)) != entry.digest:
                yield look.finding("EG090", "`extgate apply` wrote this file, and it is another now", entry.path)
        else:
            for done in entry.done:
                if what := _what(done, look.value(entry, done.keys)):
                    message = f"`{show('.'.join(done.keys))}` is not as `extgate apply` wrote it: {what}"
                    yield look.finding("EG090", message, entry.path, done.keys)


def _what(done: Done, now: Any) -> str:
    """What became of it; empty when it stands."""
    if now is MISSING:
        return "it is gone"
    if done.how == "union":
        lost = [item for item in done.value if not isinstance(now, list) or item not in now]
        return f"{len(lost)} of its {len(done.value)} entries are gone" if lost else ""
    if now == done.value or (done.keys == ("permission",) and _is_last(done, now)):
        return ""
    return "it was changed"


def _is_last(done: Done, now: Any) -> bool:
    """Whether opencode's permissions end with those that were put: the last that matches wins."""
    if not isinstance(now, dict) or not isinstance(done.value, dict):
        return False
    before = done.previous if isinstance(done.previous, dict) else {}
    ours = [(key, value) for key, value in done.value.items() if before.get(key) != value]
    return not ours or list(now.items())[-len(ours) :] == ours
