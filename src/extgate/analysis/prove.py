"""Whether a workspace's statements hold: over every name, and of a `never` over every road."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from extgate.analysis.budget import WORK
from extgate.analysis.policies import Outcome, compare, differing
from extgate.analysis.roads import State, reach_of
from extgate.analysis.statements import Statement, Thing
from extgate.analysis.witness import Witness
from extgate.core.decide import Decision, holds
from extgate.core.explain import Decider
from extgate.core.extension import KINDS, Extension, Inventory
from extgate.core.names import Facet, shown_name
from extgate.core.patterns import is_literal, matches
from extgate.core.policy import Entry, Inherit, Policy, Profile, Rule, Test, inherit

Verdict = Literal["proved", "refuted", "undecided"]

MAX_CHILDREN = 50
"""Sub-agents that are followed from one agent; more are undecided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One agent that statements can be about. children: ids of those it may ask for, as far as its file says.

    inventory: what it has installed; None: what the workspace has. error: why its profile cannot be read; nothing is
    then reachable, and nothing is there for `always`.
    """

    profile: Profile
    children: tuple[str, ...] = ()
    mode: Inherit = "ceiling"
    inventory: Inventory | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Road:
    """One way to a thing. via: the sub-agents or the tool it leads through, outermost first."""

    state: State
    via: tuple[str, ...]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What became of one statement for one agent (or pair).

    installed: things that are there and refute it. witness: one that could be. roads: those that were looked at.
    undecided: what could not be told. notes: what else is worth knowing.
    """

    statement: Statement
    agent: str
    installed: tuple[Decision, ...] = ()
    witness: Witness | None = None
    roads: tuple[Road, ...] = ()
    undecided: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        counted = [road for road in self.roads if road.state != "closed"]
        if self.statement.roads == "gate":
            counted = [road for road in counted if road.state == "open"]
        if self.installed or self.witness or counted:
            return "refuted"
        return "undecided" if self.undecided else "proved"


class Prover:
    """Statements about the agents of one workspace over one inventory. budget: units of work for one question."""

    def __init__(self, subjects: Mapping[str, Subject], inventory: Inventory, *, budget: int = WORK) -> None:
        self.subjects = subjects
        self.inventory = inventory
        self.budget = budget

    def prove(self, statement: Statement) -> tuple[Proof, ...]:
        """One proof for each agent that the statement is about; a name that no agent has is undecided."""
        if statement.claim in ("equal", "subset"):
            return (self._related(statement),)
        names = [name for name in self.subjects if any(matches(name, glob) for glob in statement.agents)]
        if not names:
            missing = f"no agent is called {' or '.join(statement.agents)}"
            return (Proof(statement=statement, agent=", ".join(statement.agents), undecided=(missing,)),)
        judge = self._never if statement.claim == "never" else self._always
        return tuple(judge(statement, name) for name in names)

    # ------------------------------------------------------------------------------------------ never

    def _never(self, statement: Statement, name: str) -> Proof:
        subject = self.subjects[name]
        found = _Found()
        for thing in statement.things:
            decider = self._decider(name, subject.profile)
            self._through(statement, decider, thing, (), found)
            found.roads += self._by_tools(decider, thing, ())
            self._by_children(statement, name, thing, found)
        return Proof(
            statement=statement,
            agent=name,
            installed=tuple(found.installed),
            witness=found.witness,
            roads=tuple(dict.fromkeys(found.roads)),
            undecided=tuple(dict.fromkeys(found.undecided)),
            notes=tuple(dict.fromkeys(found.notes)),
        )

    def _decider(self, name: str, profile: Profile) -> Decider:
        return Decider(profile, self.subjects[name].inventory or self.inventory)

    def _through(
        self, statement: Statement, decider: Decider, thing: Thing, via: tuple[str, ...], found: _Found
    ) -> None:
        """What of the thing the gate lets through: of what is installed, else of all that there could be."""
        there = [decision for decision in decider.decisions if _is(thing, decision.extension, decider)]
        through = [decision for decision in there if decision.effect != "deny"]
        if via:
            found.roads += [Road(state="open", via=via, detail=f"{d.extension.id} is let through") for d in through]
        else:
            found.installed += through
        if through or statement.over == "installed" or found.witness:
            return
        is_as_it_is = statement.over is None and bool(there) and is_literal(thing.pattern)
        nobody = Profile(id="nobody")
        for kind in thing.kinds:
            outcome = differing(nobody, _only(decider.profile, thing, kind), kind, "wider", budget=self.budget)
            if is_as_it_is:
                found.note(outcome.witness)
            elif outcome.witness and via:
                found.roads.append(Road(state="open", via=via, detail=f"{outcome.witness.extension.id} could be used"))
            elif outcome.witness:
                found.witness = outcome.witness
            elif outcome.undecided:
                found.undecided.append(f"{kind}: {outcome.undecided}")

    def _by_tools(self, decider: Decider, thing: Thing, via: tuple[str, ...]) -> Iterator[Road]:
        """Roads through tools that the agent has and that can do more than they say."""
        files = sorted({e.file for e in decider.inventory.extensions if e.file and _is(thing, e, decider)})
        for decision in decider.decisions:
            reach = reach_of(decision.extension) if decision.effect != "deny" else None
            if reach is None or not reach.kinds & set(thing.kinds) or (reach.only_files and not files):
                continue
            if _is(thing, decision.extension, decider):
                continue  # the thing itself is no road to itself
            target = f"; {files[0]} lies open to it" if files and reach.state == "residual" else ""
            tool = f"{decision.extension.kind} {shown_name(decision.extension)}"
            yield Road(state=reach.state, via=(*via, tool), detail=f"{reach.does}{target}")

    def _by_children(self, statement: Statement, name: str, thing: Thing, found: _Found) -> None:
        """Roads through sub-agents, to any depth, each under the profile it would really run under."""
        todo: list[tuple[str, Decider, tuple[str, ...]]] = [
            (name, self._decider(name, self.subjects[name].profile), ())
        ]
        seen = {name}
        while todo:
            at, decider, via = todo.pop()
            for child in self.subjects[at].children:
                if child in seen or child not in self.subjects:
                    continue
                path = (*via, f"sub-agent {child}")
                if decider.decide(_subagent(child, decider.inventory)).effect == "deny":
                    found.roads.append(Road(state="closed", via=path, detail="it may not ask for this sub-agent"))
                    continue
                if len(seen) > MAX_CHILDREN:
                    found.undecided.append(f"more than {MAX_CHILDREN} sub-agents")
                    return
                seen.add(child)
                below, is_limited = self._below(at, child, decider)
                todo.append((child, below, path))
                if is_limited:
                    found.roads.append(Road(state="closed", via=path, detail="it runs under this agent's own limits"))
                else:
                    self._through(statement, below, thing, path, found)
                    found.roads += self._by_tools(below, thing, path)

    def _below(self, parent: str, child: str, decider: Decider) -> tuple[Decider, bool]:
        """A sub-agent under the profile it really runs under, and whether that can't be wider than its parent's."""
        subject = self.subjects[child]
        own = None if subject.error else subject.profile
        mode = self.subjects[parent].mode if own else "ceiling"
        return self._decider(child, inherit(decider.profile, own, child_id=child, mode=mode)), mode == "ceiling"

    # ------------------------------------------------------------------------------------------ the others

    def _always(self, statement: Statement, name: str) -> Proof:
        subject = self.subjects[name]
        decider = self._decider(name, subject.profile)
        denied: list[Decision] = []
        witness: Witness | None = None
        undecided: list[str] = [f"its profile cannot be read: {subject.error}"] if subject.error else []
        notes = []
        for thing in statement.things:
            there = [d for d in decider.decisions if _is(thing, d.extension, decider, is_allow=True)]
            denied += [d for d in there if d.effect == "deny"]
            notes += [] if there else [f"nothing that is installed is {thing}"]
            is_as_it_is = statement.over is None and bool(there) and is_literal(thing.pattern)
            is_closed = bool(denied) or statement.over == "installed" or is_as_it_is
            for kind in () if is_closed else thing.kinds:
                outcome = differing(_ideal(thing, kind), subject.profile, kind, "narrower", budget=self.budget)
                witness = witness or outcome.witness
                undecided += [f"{kind}: {outcome.undecided}"] if outcome.undecided else []
        return Proof(
            statement=statement,
            agent=name,
            installed=tuple(denied),
            witness=witness,
            undecided=tuple(undecided),
            notes=tuple(notes),
        )

    def _related(self, statement: Statement) -> Proof:
        """`equal`, or with `subset` that the first may use no more than the second."""
        missing = [name for name in statement.agents if name not in self.subjects]
        pair = " and ".join(statement.agents)
        if missing:
            return Proof(statement=statement, agent=pair, undecided=(f"no agent is called {' or '.join(missing)}",))
        one, other = (self.subjects[name].profile for name in statement.agents)
        inventory = self.subjects[statement.agents[0]].inventory or self.inventory
        first, second = (Decider(profile, inventory).decisions for profile in (one, other))
        is_equal = statement.claim == "equal"
        installed = [a for a, b in zip(first, second, strict=True) if _differs(a, b, is_equal)]
        outcomes: list[Outcome] = []
        for found in compare(other, one, budget=self.budget) if not installed else ():
            outcomes += (found.wider, found.narrower) if is_equal else (found.wider,)
        return Proof(
            statement=statement,
            agent=pair,
            installed=tuple(installed),
            witness=next((outcome.witness for outcome in outcomes if outcome.witness), None),
            undecided=tuple(dict.fromkeys(outcome.undecided for outcome in outcomes if outcome.undecided)),
        )


class _Found:
    """What one `never` has met so far."""

    def __init__(self) -> None:
        self.installed: list[Decision] = []
        self.witness: Witness | None = None
        self.roads: list[Road] = []
        self.undecided: list[str] = []
        self.notes: list[str] = []

    def note(self, witness: Witness | None) -> None:
        """Keeps what would be let through under the same name, were it made otherwise."""
        if witness:
            ext = witness.extension
            facts = [f"of category {ext.category}"] if ext.category else []
            facts += [f"from {ext.source}"] if ext.source else []
            self.notes.append(f"another {ext.kind} {' '.join([shown_name(ext), *facts])} would be let through")


def _differs(one: Decision, other: Decision, is_equal: bool) -> bool:
    order = ("deny", "ask", "allow")
    return one.effect != other.effect if is_equal else order.index(one.effect) > order.index(other.effect)


def _subagent(name: str, inventory: Inventory) -> Extension:
    found = (ext for ext in inventory.of_kind("subagent") if ext.name == name)
    return next(found, Extension(kind="subagent", name=name, source="project"))


# ---------------------------------------------------------------------------------------------- things as entries


def _entry(thing: Thing, *, is_allow: bool = False) -> Entry:
    """The thing as an entry of a list: for a `never` under every spelling, for an `always` under those that allow."""
    facets: tuple[Facet, ...] = ("any", "sourced") if "/" in thing.pattern else ("any",)
    if is_allow and set(thing.kinds) <= {kind.name for kind in KINDS.values() if kind.is_mcp}:
        facets = ("item",) if "/" in thing.pattern else ("server",)
    elif is_allow:
        facets = ("name", "sourced") if "/" in thing.pattern else ("name",)
    return Entry(text=str(thing), tests=(Test(facets=facets, pattern=thing.pattern),))


def _is(thing: Thing, ext: Extension, decider: Decider, *, is_allow: bool = False) -> bool:
    if ext.kind not in thing.kinds:
        return False
    return all(holds(test, decider.naming.of(ext)) for test in _entry(thing, is_allow=is_allow).tests)


def _only(profile: Profile, thing: Thing, kind: str) -> Profile:
    """The profile with everything but the thing denied."""
    rule = Rule(text="assert", effect="deny", kinds=frozenset({kind}), entries=(_entry(thing),), unless=True)
    return Profile(id=profile.id, layers=(*profile.layers, Policy(dialect="assert", rules=(rule,))))


def _ideal(thing: Thing, kind: str) -> Profile:
    """What lets the thing through, after asking if need be, and nothing else."""
    entries = (_entry(thing, is_allow=True),)
    rule = Rule(text="assert", effect="ask", kinds=frozenset({kind}), entries=entries)
    return Profile(id="assert", layers=(Policy(dialect="assert", rules=(rule,), default="deny"),))
