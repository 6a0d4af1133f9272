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
from extgate.enforce.answer import denial

MAX_ID = 512
"""Longest id or name of something not installed that is kept, in characters."""

NOT_INSTALLED = "(not installed)"
"""The source of what a name stands for when nothing installed has it; an item of this source is always denied."""


@dataclass(frozen=True, slots=True)
class State:
    """Everything an answer depends on, replaced as one by `Gate.swap`. owners: installed items by exact name."""

    decider: Decider
    owners: dict[str, tuple[Extension, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One use that a door asks about. items: all that the name could mean; is_read: by the URI of a resource."""

    items: tuple[Extension, ...]
    args: Mapping[str, Any]
    action: str
    session: str
    is_read: bool = False
    started: float = field(default_factory=time.perf_counter)


def decided(state: State, ext: Extension, args: Mapping[str, Any] | None = None) -> Decision:
    """The decision; one that cannot be made is a deny."""
    if ext.source == NOT_INSTALLED:
        return denial(ext, "'{name}' is not installed.", "name")
    try:
        return state.decider.decide(ext, args)
    except Exception as error:  # doubt denies
        return denial(ext, f"'{{name}}' could not be judged ({type(error).__name__}).", "gate")


def judged(state: State, asked: Asked) -> Decision:
    """The strictest of the decisions on all that was asked for."""
    if not asked.is_read:
        return strictest([decided(state, ext, asked.args) for ext in asked.items])
    ext = asked.items[0]
    try:
        return state.decider.decide_uri(ext.server or "", ext.name)
    except Exception as error:  # doubt denies
        return denial(ext, f"'{{name}}' could not be judged ({type(error).__name__}).", "gate")


def strictest(decisions: Sequence[Decision]) -> Decision:
    """The one that lets least through; the first of equals."""
    return max(decisions, key=lambda d: (not d.callable, STRICTNESS[d.effect]))


def unknown(name: str, kind: str) -> Extension:
    """What stands for a name that nothing installed has."""
    return Extension(kind=kind, name=name[:MAX_ID], source=NOT_INSTALLED)


def owners(state: State, name: str, kinds: Sequence[str] = ()) -> tuple[Extension, ...]:
    """The installed items that some door knows by this exact name; empty kinds: of any kind."""
    return tuple(ext for ext in state.owners.get(nfc(name), ()) if not kinds or ext.kind in kinds)


def meant(state: State, name: str, kinds: Sequence[str]) -> tuple[Extension, ...]:
    """The owners of a name, else the one stand-in that is always denied."""
    return owners(state, name, kinds) or (unknown(name, kinds[0] if kinds else "tool"),)


def reading(server: str, uri: str, session: str) -> Asked:
    """The use that is reading one resource of a server."""
    ext = Extension(kind="mcp_resource", server=server, name=uri)
    return Asked(items=(ext,), args={"uri": uri}, action="read", session=session, is_read=True)


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
