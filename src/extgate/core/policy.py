"""What a file says: rules in order, first match wins; policies in layers, the strictest wins."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol

from extgate.core.extension import Finding
from extgate.core.names import Facet

Effect = Literal["allow", "ask", "deny"]
Inherit = Literal["ceiling", "own", "union"]

STRICTNESS: Mapping[Effect, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """Holds when any spelling of any of these facets matches the pattern.

    is_exact: the pattern is one literal name, its wildcards included.
    """

    facets: tuple[Facet, ...]
    pattern: str
    is_exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a list: holds when all its tests hold. `text` is the entry as written."""

    text: str
    tests: tuple[Test, ...]
    file: str | None = None
    line: int | None = None


class Reading(Protocol):
    """What an argument says, as texts; None when it cannot be told. Hashable, and equal when it reads alike."""

    def __call__(self, value: object) -> tuple[str, ...] | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgTest:
    """A condition on one call: the named argument, as text, matches the pattern. No argument: it does not hold. A name
    that lenient parsers take for it (`Command`) is a doubt, which holds for a deny or an ask and never for an allow.

    name: a dotted path into the arguments; empty means the arguments' canonical JSON.
    reading: cuts the argument into texts (the commands of a shell line), of which some must match, or all with `every`.
    What it cannot read, or is not there, holds for a deny or an ask and never for an allow. Its `repr` is its identity.
    also: further patterns that will do. but: patterns that a text must not match.
    """

    name: str
    pattern: str
    also: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    every: bool = False
    reading: Reading | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is one pattern on the argument as it stands."""
        return not (self.also or self.but or self.every or self.reading)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An effect for the kinds, when any entry holds; with `unless`, when none does.

    text: the list it comes from (`tools.disabled`). reason: shown for its effect; `{name}` and `{category}` are
    filled in. when: conditions on the call's arguments, all of which must hold.
    """

    text: str
    effect: Effect
    kinds: frozenset[str]
    entries: tuple[Entry, ...] = ()
    unless: bool = False
    when: tuple[ArgTest, ...] = ()
    reason: str = ""
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A pattern that some connected server must meet, or the agent is unavailable."""

    pattern: str
    text: str = "mcp.required"
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, kw_only=True)
class Policy:
    """One layer: one authority's ordered rules, then its default. None as default: no opinion.

    id: the agent's, as the file says. file: where it came from. notes: what the reader has to say of it.
    facts: what else of the agent matters (`model`, `inherit`, `subagents`, `catalog` by kind, `approver`).
    """

    dialect: str
    rules: tuple[Rule, ...] = ()
    default: Effect | None = "allow"
    requirements: tuple[Requirement, ...] = ()
    id: str = ""
    file: str | None = None
    notes: tuple[Finding, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def version(self) -> str:
        """16 hex digits over all that decides; the same in every process."""
        # A set prints in the order of its hashes, which each process has of its own.
        rules = [(sorted(rule.kinds), replace(rule, kinds=frozenset())) for rule in self.rules]
        text = repr((self.dialect, rules, self.default, self.requirements))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Either:
    """A layer that is as lenient as the more lenient of two finished profiles."""

    first: Profile
    second: Profile

    @property
    def version(self) -> str:
        return f"{self.first.version}|{self.second.version}"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What one agent is under: layers, of which the strictest that has an opinion wins.

    No layer at all denies everything. ceiling: those of the layers that hold for every sub-agent below as well,
    whatever inheritance it asks for.
    """

    id: str
    layers: tuple[Policy | Either, ...] = ()
    dialect: str = "profile"
    ceiling: tuple[Policy | Either, ...] = ()

    @cached_property
    def version(self) -> str:
        """16 hex digits over all layers."""
        text = "+".join(layer.version for layer in self.layers)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def policies(self) -> tuple[Policy, ...]:
        """Every policy in it, those inside a union included."""
        found: list[Policy] = []
        for layer in self.layers:
            found += [layer] if isinstance(layer, Policy) else [*layer.first.policies, *layer.second.policies]
        return tuple(found)


ALLOW_ALL = Policy(dialect="default", id="default", default="allow")
"""What somebody who configures nothing is under: everything installed, the model picks."""


def inherit(parent: Profile, child: Profile | None, *, child_id: str = "", mode: Inherit = "ceiling") -> Profile:
    """The profile a sub-agent of `parent`, as the parent really runs, runs under.

    ceiling: what both allow. own: the child's alone. union: what either allows. A ceiling that already holds above
    the parent holds below it too. A child without a profile of its own is under its parent's, whatever the mode.
    """
    if child is None:
        return Profile(id=child_id or parent.id, layers=parent.layers, dialect=parent.dialect, ceiling=parent.layers)
    if not child.layers:
        # A profile that could not be read: it stays one that denies everything, whoever spawns it.
        return Profile(id=child.id, dialect=child.dialect, ceiling=parent.layers)
    if mode == "ceiling":
        layers = (*child.layers, *parent.layers)
        return Profile(id=child.id, layers=layers, dialect=child.dialect, ceiling=parent.layers)
    own = child.layers if mode == "own" else (Either(first=child, second=parent),)
    return Profile(id=child.id, layers=(*own, *parent.ceiling), dialect=child.dialect, ceiling=parent.ceiling)
