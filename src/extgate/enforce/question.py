"""What a door asks a gate, and the decision on it under one policy and one inventory. Never raises: doubt denies."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from extgate.core.decide import Decision
from extgate.core.explain import Decider
from extgate.core.extension import Extension
from extgate.core.names import Naming
from extgate.core.patterns import nfc
from extgate.core.policy import STRICTNESS
from extgate.core.require import Availability
from extgate.enforce.answer import denial

MAX_ID = 512
"""Longest name of something not installed that is kept, in characters."""

MAX_TOLD = 10_000
"""Most sessions, and most hidden ids of one, that are remembered; past it they are recorded again."""


@dataclass(frozen=True, slots=True)
class State:
    """Everything an answer depends on, replaced as one by `Gate.swap`. owners: installed items by exact name.

    named: decisions already made by name and kinds. told: what was recorded as hidden, by (session, action).
    """

    decider: Decider
    available: Availability
    owners: dict[str, tuple[Extension, ...]]
    named: dict[tuple[str, tuple[str, ...]], Decision] = field(default_factory=dict)
    told: dict[tuple[str, str], Told] = field(default_factory=dict)

    def told_of(self, session: str, action: str) -> Told:
        """What that session was already told by that action."""
        if len(self.told) >= MAX_TOLD:
            self.told.clear()
        return self.told.setdefault((session, action), Told())


@dataclass(slots=True)
class Told:
    """The hidden items that were recorded: their ids, and the list of the last time for a quick look."""

    ids: set[str] = field(default_factory=set)
    last: list[Decision] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One use that a door asks about.

    items: what is asked for; empty when nothing installed has the name; None: whatever has it when it is judged.
    is_read: the one item is a resource, asked for by its URI. refused: why the door itself refuses it, whatever the
    rules say; empty when it does not.
    """

    name: str
    kinds: tuple[str, ...] = ()
    items: tuple[Extension, ...] | None = None
    args: Mapping[str, Any]
    action: str
    session: str
    is_read: bool = False
    refused: str = ""
    started: float = field(default_factory=time.perf_counter)


def by_item(ext: Extension, args: Mapping[str, Any] | None, action: str, session: str) -> Asked:
    """The use of one known item."""
    return Asked(name=ext.name, items=(ext,), args=args or {}, action=action, session=session)


def by_name(
    name: str,
    kinds: Sequence[str],
    args: Mapping[str, Any] | None,
    action: str,
    session: str,
    *,
    is_known: bool = True,
    refused: str = "",
) -> Asked:
    """The use of whatever has this name; is_known: False when the door knows that nothing has."""
    items = None if is_known else ()
    return Asked(
        name=name, kinds=tuple(kinds), items=items, args=args or {}, action=action, session=session, refused=refused
    )


def by_uri(server: str, uri: str, session: str) -> Asked:
    """The use that is reading one resource of a server."""
    ext = Extension(kind="mcp_resource", server=server, name=uri)
    return Asked(name=uri, items=(ext,), args={"uri": uri}, action="read", session=session, is_read=True)


def decided(state: State, ext: Extension, args: Mapping[str, Any] | None = None) -> Decision:
    """The decision; one that cannot be made is a deny."""
    try:
        return state.decider.decide(ext, args)
    except Exception as error:  # doubt denies
        return _undecided(ext, error)


def decided_by_name(state: State, name: str, kinds: tuple[str, ...]) -> Decision:
    """The decision on whatever has this name, without arguments."""
    key = (nfc(name), kinds)
    found = state.named.get(key)
    if found is None:
        items = owners(state, name, kinds)
        if not items:
            return _unknown(name, kinds)
        found = state.named[key] = strictest([decided(state, ext) for ext in items])
    return found


def judged(state: State, asked: Asked) -> Decision:
    """The strictest of the decisions on all that was asked for; a question that makes no sense is a deny."""
    try:
        items = owners(state, asked.name, asked.kinds) if asked.items is None else asked.items
        if not items:
            return _unknown(asked.name, asked.kinds)
        if asked.is_read:
            return state.decider.decide_uri(items[0].server or "", asked.name)
        found = strictest([decided(state, ext, asked.args) for ext in items])
        if asked.refused and found.effect != "deny":
            return denial(found.extension, f"'{{name}}' {asked.refused}.", "door")
        return found
    except Exception as error:  # doubt denies
        return _undecided(Extension(kind="tool", name=repr(asked.name)[:MAX_ID], source="unknown"), error)


def strictest(decisions: Sequence[Decision]) -> Decision:
    """The one that lets least through; the first of equals."""
    return max(decisions, key=lambda d: (not d.callable, STRICTNESS[d.effect]))


def _unknown(name: str, kinds: Sequence[str]) -> Decision:
    ext = Extension(kind=kinds[0] if kinds else "tool", name=name[:MAX_ID], source="unknown")
    return denial(ext, "'{name}' is not installed.", "name")


def _undecided(ext: Extension, error: Exception) -> Decision:
    return denial(ext, f"'{{name}}' could not be judged ({type(error).__name__}).", "gate")


def owners(state: State, name: str, kinds: Sequence[str] = ()) -> tuple[Extension, ...]:
    """The installed items that some door knows by this exact name; empty kinds: of any kind."""
    return tuple(ext for ext in state.owners.get(nfc(name), ()) if not kinds or ext.kind in kinds)


def by_exact_name(extensions: Iterable[Extension], naming: Naming) -> dict[str, tuple[Extension, ...]]:
    """Installed items by every exact name that a door could know them by."""
    found: dict[str, list[Extension]] = {}
    for ext in extensions:
        names = naming.of(ext)
        aliases = () if ext.server is not None else tuple(nfc(str(alias)) for alias in ext.facts.get("aliases", ()))
        spelled = {ext.id, nfc(ext.name), *names["name"], *names.get("item_any", ()), *names.get("own", ()), *aliases}
        for name in spelled:
            found.setdefault(name, []).append(ext)
    return {name: tuple(items) for name, items in found.items()}
