"""What is put into a runtime's file, and taken out again: only what was put, whatever else has changed meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from extgate.applied.jsonc_text import MISSING
from extgate.applied.trees import Editor
from extgate.errors import WorkspaceError


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """`set`: the value at the keys. `union`: the items that its list must hold besides others. Values are JSON's."""

    keys: tuple[str, ...]
    value: Any
    how: Literal["set", "union"] = "set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """One put, as it came out. value: what was really put. previous: what was there; had: whether anything was.

    made: how many of the keys had to be made, counted from the end.
    """

    keys: tuple[str, ...]
    value: Any
    how: Literal["set", "union"]
    had: bool
    previous: Any = None
    made: int = 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Done:
        return cls(**{**row, "keys": tuple(row["keys"])})


def put_all(editor: Editor, puts: Iterable[Put]) -> list[Done]:
    """Puts each, and returns what was done. Raises WorkspaceError where something else is in the way."""
    return [done for put in puts if (done := _put(editor, put)) is not None]


def _put(editor: Editor, put: Put) -> Done | None:
    before = editor.get(put.keys)
    made = sum(editor.get(put.keys[:n]) is MISSING for n in range(1, len(put.keys) + 1))
    had = before is not MISSING
    if put.how == "union":
        if had and not isinstance(before, list):
            raise WorkspaceError(f"`{'.'.join(put.keys)}` is no list", fix="write it as one")
        added = [item for item in put.value if not had or item not in before]
        if not added:
            return None
        if had:
            editor.append(put.keys, added)
        else:
            editor.put(put.keys, added)
        return Done(keys=put.keys, value=added, how="union", had=had, made=made)
    if before == put.value and had:
        return None
    editor.put(put.keys, put.value)
    return Done(keys=put.keys, value=put.value, how="set", had=had, previous=before if had else None, made=made)


def take_back(editor: Editor, done: Sequence[Done]) -> list[str]:
    """Takes out what was put, the last first. Returns what somebody has changed since, and which therefore stays."""
    kept = []
    for one in reversed(done):
        now = editor.get(one.keys)
        if now is MISSING:
            continue
        if one.how == "union":
            if not isinstance(now, list):
                kept.append(".".join(one.keys))
                continue
            editor.drop(one.keys, one.value)
            if not one.had and editor.get(one.keys) == []:
                editor.remove(one.keys)
        elif now != one.value:
            kept.append(".".join(one.keys))
            continue
        elif one.had:
            editor.put(one.keys, one.previous)
        else:
            editor.remove(one.keys)
        _prune(editor, one)
    return kept


def _prune(editor: Editor, one: Done) -> None:
    """Removes the mappings that were made for it, as far as nothing else is in them."""
    for length in range(len(one.keys) - 1, max(len(one.keys) - one.made, 0), -1):
        if editor.get(one.keys[:length]) == {}:
            editor.remove(one.keys[:length])
