"""What one gate is under while things change: policies and inventories are offered, and bind as the mode says.

`auto` puts what is offered in force at once. `narrow` puts in force the stricter of what is offered and what was last
accepted, so that no proof is needed: laying a policy over another never loosens it. The rest waits for `accept`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from extgate.core.decide import Decision
from extgate.core.explain import Decider
from extgate.core.extension import KINDS, Extension, Inventory
from extgate.core.policy import Either, Entry, Policy, Profile, Rule, Test
from extgate.enforce.gate import Gate

Mode = Literal["auto", "narrow"]

_Key = tuple[str, str]
"""An item's id and source."""
_Layers = tuple[Policy | Either, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One gate before and after something was offered to it, as decisions.

    gained, lost: items that the model may now learn of, or no longer; changed: an approval that came or went.
    gone: items that were visible and are not installed any more. waiting: items that `accept` would give.
    is_waiting: whether `accept` could change anything, for names not installed as well.
    """

    agent: str
    policy_version: str
    inventory_version: str
    gained: tuple[Decision, ...] = ()
    lost: tuple[Decision, ...] = ()
    changed: tuple[Decision, ...] = ()
    gone: tuple[Extension, ...] = ()
    waiting: tuple[Decision, ...] = ()
    is_waiting: bool = False
    was_available: bool = True
    is_available: bool = True

    def __bool__(self) -> bool:
        """Whether an answer became another."""
        moved = self.gained or self.lost or self.changed or self.gone
        return bool(moved) or self.was_available != self.is_available


class InForce:
    """Holds one gate's accepted state. Safe for threads; the gate itself answers throughout.

    own: of a child gate, the profile of its own that `Gate.child` was given; the gate lays it under its parent's.
    """

    def __init__(self, gate: Gate, *, mode: Mode = "auto", own: Profile | None = None) -> None:
        self.gate = gate
        self.profile_id = own.id if own else gate.agent
        self.mode: Mode = mode
        self._lock = threading.RLock()
        profile = own or gate.profile
        self._offered = self._bound = profile
        self._inventory = gate.inventory
        self._withdrawn = ""
        # No layer denies everything; laid under others it must go on doing so.
        self._layers = profile.layers or (_nothing("its policy waits for `extgate reload`"),)
        self._ceiling = profile.ceiling
        self._seen: set[_Key] = set()
        self._awaited: set[str] = set()
        self._note_seen()

    @property
    def withdrawn(self) -> str:
        """Why the agent has no policy now; empty when it has one."""
        return self._withdrawn

    def set_mode(self, mode: Mode) -> None:
        """Sets the mode for what is offered from now on; when it becomes `narrow`, what is in force is accepted."""
        with self._lock:
            if mode == "narrow" and self.mode == "auto":
                self._inventory = self.gate.inventory
                self._note_seen()
            self.mode = mode

    def offer(self, *, profile: Profile | None = None, inventory: Inventory | None = None) -> Change:
        """Puts in force what the mode lets through. When it returns, the next question is answered under it."""
        with self._lock:
            if profile is not None:
                self._offered, self._withdrawn = profile, ""
                is_auto = self.mode == "auto"
                self._layers = profile.layers if is_auto else _stacked(self._layers, profile.layers)
                self._ceiling = profile.ceiling if is_auto else _stacked(self._ceiling, profile.ceiling)
            self._inventory = inventory or self.gate.inventory
            return self._put()

    def withdraw(self, reason: str) -> Change:
        """Takes the policy away: everything is denied, with this reason, until another is offered."""
        with self._lock:
            self._withdrawn = reason
            self._inventory = self.gate.inventory
            return self._put()

    def accept(self) -> Change:
        """Puts in force what waits."""
        with self._lock:
            self._inventory = self.gate.inventory
            self._layers, self._ceiling = self._offered.layers, self._offered.ceiling
            self._note_seen()
            return self._put()

    def _put(self) -> Change:
        before = _visible(self.gate.decisions)
        was_available = self.gate.availability.is_available
        before_it, self._bound = self._bound, self._profile()
        # The same object: what it was compiled to goes on.
        self.gate.swap(profile=None if self._bound is before_it else self._bound, inventory=self._inventory)
        return self._change(before, was_available)

    def _profile(self) -> Profile:
        if self._withdrawn:
            return replace(self._offered, layers=(_nothing(self._withdrawn),))
        profile = self._offered
        if self.mode == "auto":
            return profile
        profile = replace(profile, layers=self._layers, ceiling=self._ceiling)
        held = self._held(self._decider(profile))
        return replace(profile, layers=(*self._layers, _held_back(held))) if held else profile

    def _held(self, decider: Decider) -> list[Extension]:
        """The items that nobody has accepted. A configured server's first listing is accepted with the server."""
        new = [d.extension for d in decider.decisions if d.effect != "deny" and _key(d.extension) not in self._seen]
        first = {ext.server for ext in new if ext.server in self._awaited}
        self._seen |= {_key(ext) for ext in new if ext.server in first}
        self._awaited -= {name for name in first if name is not None}
        return [ext for ext in new if ext.server not in first]

    def _note_seen(self) -> None:
        decider = self._decider(self._offered)
        self._seen |= {_key(d.extension) for d in decider.decisions if d.effect != "deny"}
        listed = {ext.server for ext in self._inventory.extensions}
        self._awaited = {server.name for server in self._inventory.servers} - listed

    def _decider(self, profile: Profile) -> Decider:
        return Decider(profile, self._inventory, has_approver=self.gate.approver is not None)

    def _change(self, before: dict[_Key, Decision], was_available: bool) -> Change:
        gate, after = self.gate, {_key(d.extension): d for d in self.gate.decisions}
        moved = [(before.get(key), decision) for key, decision in after.items()]
        waiting = self._waiting(after)
        return Change(
            agent=gate.agent,
            policy_version=gate.profile.version,
            inventory_version=gate.inventory.version,
            gained=tuple(new for old, new in moved if new.visible and not old),
            lost=tuple(new for old, new in moved if old and not new.visible),
            changed=tuple(new for old, new in moved if old and new.visible and old.approval != new.approval),
            gone=tuple(old.extension for key, old in before.items() if key not in after),
            waiting=waiting,
            is_waiting=bool(waiting) or (not self._withdrawn and self._bound.version != self._offered.version),
            was_available=was_available,
            is_available=gate.availability.is_available and not self._withdrawn,
        )

    def _waiting(self, after: dict[_Key, Decision]) -> tuple[Decision, ...]:
        if self._withdrawn or self._bound.version == self._offered.version:
            return ()
        wanted = _visible(self._decider(self._offered).decisions)
        return tuple(d for key, d in wanted.items() if key in after and not after[key].visible)


def _stacked(old: _Layers, new: _Layers) -> _Layers:
    """Both, each once. The old stay first: what a first layer says beside its rules waits as well."""
    return tuple({layer.version: layer for layer in (*old, *new)}.values())


def _key(ext: Extension) -> _Key:
    return (ext.id, ext.source)


def _visible(decisions: Iterable[Decision]) -> dict[_Key, Decision]:
    return {_key(d.extension): d for d in decisions if d.visible}


_ANY = Entry(text="*", tests=(Test(facets=("any",), pattern="*"),))


def _nothing(reason: str) -> Policy:
    """A layer that denies everything. Braces are taken out of the reason, which is a template."""
    text = f"this agent is unavailable: {reason}".replace("{", "(").replace("}", ")")
    rule = Rule(text="unavailable", effect="deny", kinds=frozenset(KINDS), entries=(_ANY,), reason=text)
    return Policy(dialect="default", id="unavailable", rules=(rule,), default="deny")


def _held_back(held: Iterable[Extension]) -> Policy:
    """A layer with no opinion but on these items, which it denies."""
    by_kind: dict[str, list[Entry]] = {}
    for ext in held:
        name = f"{ext.server}/{ext.name}" if ext.server is not None else ext.name
        if ext.server is None and ext.kind != "skill" and ext.source:
            name = f"{ext.source}/{ext.name}"
        test = Test(facets=("name", "sourced"), pattern=name, is_exact=True)
        by_kind.setdefault(ext.kind, []).append(Entry(text=name, tests=(test,)))
    reason = "'{name}' is new and waits for `extgate reload`."
    rules = tuple(
        Rule(text="reload: narrow", effect="deny", kinds=frozenset({kind}), entries=tuple(entries), reason=reason)
        for kind, entries in sorted(by_kind.items())
    )
    return Policy(dialect="default", id="reload", rules=rules, default=None)
