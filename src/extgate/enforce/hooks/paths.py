"""Paths that a hook's call is about to open: policy files, and what belongs to hidden skills, stay closed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from extgate.enforce.gate import Gate
from extgate.enforce.guarded_paths import Action, Closed, GuardedPaths, skill_folders
from extgate.enforce.hooks.call import Args, Call, Shape

MAX_PATHS = 1000
"""Paths of one call that are looked at; a call with more is refused."""
_PATCHED = re.compile(
    r"^[^\S\n]*\*\*\* (?:Add File|Update File|Delete File|Move to|Rename File): ?(.+)$"
    r"|^(?:\+\+\+|---) (?:[ab]/)?(.+)$",
    re.MULTILINE,
)


_WILD = re.compile(r"[*?\[{]")


class CallPaths:
    """Judges the paths of calls for one runtime. root: where calls are that do not say their folder."""

    def __init__(self, shape: Shape, closed: Closed, root: Path) -> None:
        self._shape, self._closed, self._root = shape, closed, root

    def refusal(self, gate: Gate, tools: Iterable[str], call: Call) -> str:
        """Why the call's paths are refused, recorded; empty when they are not."""
        tools = [tool for tool in tools if tool in {*self._shape.files, *self._shape.searches, *self._shape.patches}]
        if not tools:
            return ""
        base = Path(call.cwd) if os.path.isabs(call.cwd) and "\0" not in call.cwd else self._root
        why = next((why for tool in tools if (why := self._why(gate, tool, call.args, base))), "")
        return (
            gate.refuse(call.tool, ("tool",), why=f"is refused here: {why}", session=call.session).message
            if why
            else ""
        )

    def _why(self, gate: Gate, tool: str, args: Args, base: Path) -> str:
        guarded = [self._guarded(gate, base), *([self._guarded(gate, self._root)] if base != self._root else [])]
        found = list(self._opened(tool, args))
        if len(found) > MAX_PATHS:
            return "it opens too many files at once"
        if not found and tool in self._shape.patches and tool not in self._shape.files:
            return "its patch names no file"
        for path, action in found:
            for paths in guarded:
                if why := paths.refusal(path, action):
                    return why.rstrip(".")
            plain = _plain_part(path)
            if plain is not None and (why := self._search(gate, base, plain)):
                return why
        keys = self._shape.searches.get(tool)
        below = next((args[key] for key in keys if args.get(key)), ".") if keys else None
        return self._search(gate, base, below) if below is not None else ""

    def _opened(self, tool: str, args: Args) -> Iterator[tuple[object, Action]]:
        action, keys = self._shape.files.get(tool, ("read", ()))
        for key in (*keys, *self._shape.searches.get(tool, ())):
            value = args.get(key)
            for path in value if isinstance(value, list) else [value] if value is not None else []:
                yield path, action
        for key in self._shape.patches.get(tool, ()):
            if isinstance(patch := args.get(key), str):
                for match in _PATCHED.finditer(patch):
                    found = match[1] or match[2]
                    yield found.rstrip() or found, "write"

    def _search(self, gate: Gate, base: Path, below: object) -> str:
        """A search cannot be filtered here, so one that would look into a hidden skill is refused."""
        hidden = Closed(root=self._closed.root)
        paths = GuardedPaths(hidden, base=base, skills=lambda: skill_folders(gate))
        if not isinstance(below, str) or paths.reaches_closed(below):
            return "a skill that this agent may not use lies below that folder; search a folder without it"
        return ""

    def _guarded(self, gate: Gate, base: Path) -> GuardedPaths:
        return GuardedPaths(self._closed, base=base, skills=lambda: skill_folders(gate))


def _plain_part(path: object) -> str | None:
    """The folder that a path with wildcards looks below; None for a path without any."""
    wild = _WILD.search(path) if isinstance(path, str) else None
    if not isinstance(path, str) or wild is None:
        return None
    head = path[: wild.start()]
    return head.rpartition("/")[0] or ("/" if head.startswith("/") else ".")
