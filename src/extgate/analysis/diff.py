"""What two versions of a profile decide differently: over what is installed, and over all that there could be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from extgate.analysis.budget import WORK
from extgate.analysis.each import Difference, each
from extgate.analysis.policies import Comparison, Verdicts, compare
from extgate.analysis.witness import DIRECTIONS, Direction, Witness
from extgate.core.decide import Decision
from extgate.core.explain import Decider
from extgate.core.extension import KINDS, Inventory
from extgate.core.policy import STRICTNESS, Profile
from extgate.core.require import Availability

Status = Literal["changed", "equal", "undecided", "added", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One version of an agent. error: why its profile cannot be read, which denies everything."""

    profile: Profile
    file: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One installed thing that is answered differently."""

    before: Decision
    after: Decision

    @property
    def is_wider(self) -> bool:
        return STRICTNESS[self.after.effect] < STRICTNESS[self.before.effect]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindDiff:
    """One kind of one agent. installed: every installed thing that changes. names: all that there could be.

    examples: by direction one for each rule that makes a difference, as far as they were looked for.
    """

    installed: tuple[Changed, ...]
    names: Comparison
    examples: Mapping[Direction, tuple[Witness, ...]] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return self.names.kind

    @property
    def verdict(self) -> Verdicts:
        wider = self.names.wider.witness is not None or any(row.is_wider for row in self.installed)
        narrower = self.names.narrower.witness is not None or any(not row.is_wider for row in self.installed)
        if wider or narrower:
            return "both" if wider and narrower else "wider" if wider else "narrower"
        return self.names.verdict


@dataclass(frozen=True, kw_only=True)
class AgentDiff:
    """One agent, before and after; None for a side on which there is no such agent."""

    agent: str
    before: Side | None
    after: Side | None
    kinds: tuple[KindDiff, ...]
    availability: tuple[Availability, Availability]

    @property
    def has_new_availability(self) -> bool:
        """Whether it is available on one side only, or lacks other things."""
        return _lacks(self.availability[0]) != _lacks(self.availability[1])

    @property
    def has_new_requirements(self) -> bool:
        return _required(self.before) != _required(self.after)

    @cached_property
    def status(self) -> Status:
        if self.before is None or self.after is None:
            return "added" if self.before is None else "removed"
        verdicts = {kind.verdict for kind in self.kinds}
        errors = self.before.error != self.after.error
        if verdicts - {"equal", "undecided"} or errors or self.has_new_availability or self.has_new_requirements:
            return "changed"
        return "undecided" if "undecided" in verdicts else "equal"

    @property
    def verdict(self) -> Verdicts:
        """All kinds together."""
        verdicts = {kind.verdict for kind in self.kinds} - {"equal"}
        if not verdicts:
            return "equal"
        sure = verdicts - {"undecided"}
        if not sure:
            return "undecided"
        return sure.pop() if len(sure) == 1 else "both"


def required(side: Side | None) -> tuple[str, ...]:
    """The patterns that some connected server must meet, sorted."""
    return tuple(sorted(_required(side)))


def _required(side: Side | None) -> frozenset[str]:
    policies = side.profile.policies if side else ()
    return frozenset(need.pattern for policy in policies for need in policy.requirements)


def _lacks(availability: Availability) -> tuple[bool, frozenset[str]]:
    return availability.is_available, frozenset(missing.pattern for missing in availability.missing)


def diff(
    before: Mapping[str, Side],
    after: Mapping[str, Side],
    inventory: Inventory,
    *,
    kinds: Iterable[str] = tuple(KINDS),
    budget: int = WORK,
) -> tuple[AgentDiff, ...]:
    """Every agent of either side, sorted. budget: units of work for one direction of one kind."""
    names = sorted({*before, *after})
    return tuple(_agent(name, before.get(name), after.get(name), inventory, tuple(kinds), budget) for name in names)


def _agent(
    name: str, before: Side | None, after: Side | None, inventory: Inventory, kinds: tuple[str, ...], budget: int
) -> AgentDiff:
    nobody = Side(profile=Profile(id=name))
    old, new = before or nobody, after or nobody
    deciders = Decider(old.profile, inventory), Decider(new.profile, inventory)
    changed = [
        Changed(before=one, after=other)
        for one, other in zip(deciders[0].decisions, deciders[1].decisions, strict=True)
        if one.effect != other.effect
    ]
    return AgentDiff(
        agent=name,
        before=before,
        after=after,
        kinds=tuple(
            KindDiff(
                installed=tuple(row for row in changed if row.before.extension.kind == found.kind),
                names=found,
                examples=_examples(old.profile, new.profile, found, budget) if before and after else {},
            )
            for found in compare(old.profile, new.profile, kinds=kinds, budget=budget)
        ),
        availability=(_available(old, deciders[0]), _available(new, deciders[1])),
    )


MOST_EXAMPLES, MOST_ENTRIES = 5, 1000
"""Examples of one kind and direction, and entries of two profiles up to which more than one is looked for."""


def _examples(old: Profile, new: Profile, found: Comparison, budget: int) -> dict[Direction, tuple[Witness, ...]]:
    """By direction one example for each rule; where the profiles are large the one that is known."""
    policies = (*old.policies, *new.policies)
    is_small = sum(len(rule.entries) for policy in policies for rule in policy.rules) <= MOST_ENTRIES
    examples: dict[Direction, tuple[Witness, ...]] = {}
    for direction, outcome in zip(DIRECTIONS, (found.wider, found.narrower), strict=True):
        if outcome.witness:
            part = budget // (MOST_EXAMPLES * len(KINDS))
            rows = each(old, new, found.kind, direction, most=MOST_EXAMPLES, budget=part) if is_small else ()
            more = (row.witness for row in rows if isinstance(row, Difference))
            told = {(w.extension, repr(w.arguments)): w for w in (outcome.witness, *more)}
            examples[direction] = tuple(told.values())[:MOST_EXAMPLES]
    return examples


def _available(side: Side, decider: Decider) -> Availability:
    return Availability(error=side.error) if side.error else decider.availability
