"""Whether a workspace's statements hold: over every name, and of a `never` over every road."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from extgate.analysis.alphabet import Alphabet
from extgate.analysis.budget import WORK
from extgate.analysis.globs import read_glob
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

MAX_WAYS = 300
"""Ways to ask for sub-agents that are followed from one agent; more are undecided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One agent that statements can be about. children: ids of those it may ask for, as far as its file says.

    inventory: what it has installed; None: what the workspace has. error: why its profile cannot be read; an earlier
    one may be in force then. name: what others ask for it as, where that is not its id. is_guarded: whether its own
    file tools are behind the gate, which a runtime that reads its own files does not see to.
    """

    profile: Profile
    children: tuple[str, ...] = ()
    mode: Inherit = "ceiling"
    inventory: Inventory | None = None
    error: str = ""
    name: str = ""
    is_guarded: bool = True


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
        if subject.error:
            found.undecided.append(f"its profile cannot be read, and an earlier one may be in force: {subject.error}")
        for thing in statement.things:
            decider = self._decider(name, subject.profile)
            self._through(statement, decider, thing, (), found)
            found.roads += self._by_tools(name, decider, thing, ())
            found.notes += _unknown(decider, thing)
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
        if statement.over == "installed":
            there += [d for d in decider.decisions if _gives(thing, d.extension) and d not in there]
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

    def _by_tools(self, name: str, decider: Decider, thing: Thing, via: tuple[str, ...]) -> Iterator[Road]:
        """Roads through tools that the agent has and that can do more than they say."""
        files = sorted({e.file for e in decider.inventory.extensions if e.file and _is(thing, e, decider)})
        for decision in decider.decisions:
            reach = reach_of(decision.extension) if decision.effect != "deny" else None
            if reach is None or not reach.kinds & set(thing.kinds) or (reach.only_files and not files):
                continue
            if _is(thing, decision.extension, decider):
                continue  # the thing itself is no road to itself
            is_loose = reach.by_host and not self.subjects[name].is_guarded
            state: State = "residual" if is_loose else reach.state
            does = "files of this machine, which this runtime opens by itself" if is_loose else reach.does
            target = f"; {files[0]} lies open to it" if files and state == "residual" else ""
            tool = f"{decision.extension.kind} {shown_name(decision.extension)}"
            yield Road(state=state, via=(*via, tool), detail=f"{does}{target}")

    def _by_children(self, statement: Statement, name: str, thing: Thing, found: _Found) -> None:
        """Roads through sub-agents, to any depth, each under the profile it would really run under.

        One that may be asked for by several roads can have other rights on each: those it brings along are kept.
        """
        todo = [_Asked(name, self._decider(name, self.subjects[name].profile), (), frozenset({name}), False)]
        seen: dict[str, list[_Asked]] = {name: todo[:]}
        while todo:
            asking = todo.pop()
            for child in self.subjects[asking.agent].children:
                asked = self._asked(asking, child, found) if child in self.subjects else None
                known = seen.setdefault(child, [])
                if asked is None or any(asked.is_within(other) for other in known):
                    continue
                if sum(map(len, seen.values())) > MAX_WAYS:
                    found.undecided.append(f"more than {MAX_WAYS} ways to ask for sub-agents")
                    return
                known.append(asked)
                todo.append(asked)
                if asked.is_limited:
                    found.roads.append(Road(state="closed", via=asked.via, detail=_LIMITED))
                else:
                    self._through(statement, asked.decider, thing, asked.via, found)
                    found.roads += self._by_tools(child, asked.decider, thing, asked.via)

    def _asked(self, asking: _Asked, child: str, found: _Found) -> _Asked | None:
        """A sub-agent as this one would get it; None when it may not ask for it."""
        path = (*asking.via, f"sub-agent {child}")
        name = self.subjects[child].name or child
        if all(asking.decider.decide(ext).effect == "deny" for ext in _subagents(name, asking.decider.inventory)):
            found.roads.append(Road(state="closed", via=path, detail="it may not ask for this sub-agent"))
            return None
        decider, mode = self._below(asking.agent, child, asking.decider)
        rights = frozenset({child}) | (asking.rights if mode == "union" else frozenset())
        # What is below a ceiling can't be wider than the agent that it is a ceiling of, whatever it inherits.
        is_limited = asking.is_limited or mode == "ceiling"
        return _Asked(child, decider, path, rights, is_limited)

    def _below(self, parent: str, child: str, decider: Decider) -> tuple[Decider, Inherit]:
        """A sub-agent under the profile it really runs under, and how it came to that."""
        subject = self.subjects[child]
        own = None if subject.error else subject.profile
        mode = self.subjects[parent].mode if own else "ceiling"
        return self._decider(child, inherit(decider.profile, own, child_id=child, mode=mode)), mode

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


_LIMITED = "it runs under this agent's own limits"


@dataclass(frozen=True, slots=True)
class _Asked:
    """An agent at the end of a chain of sub-agents. rights: agents whose profiles it may use either of."""

    agent: str
    decider: Decider
    via: tuple[str, ...]
    rights: frozenset[str]
    is_limited: bool

    def is_within(self, other: _Asked) -> bool:
        """Whether the other, the same agent, could do all that this one can."""
        return self.is_limited or (not other.is_limited and self.rights <= other.rights)


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


def _subagents(name: str, inventory: Inventory) -> tuple[Extension, ...]:
    """Those of that name that are installed, and the workspace's own."""
    found = (ext for ext in inventory.of_kind("subagent") if ext.name == name)
    return (*found, Extension(kind="subagent", name=name, source="project"))


def _unknown(decider: Decider, thing: Thing) -> Iterator[str]:
    """What the agent may call of which nobody knows what it can reach."""
    through = (d.extension for d in decider.decisions if d.effect != "deny" and not _is(thing, d.extension, decider))
    tools = [ext for ext in through if ext.kind == "mcp_tool" and reach_of(ext) is None]
    servers = sorted({ext.server or "" for ext in tools})
    if servers:
        of = ", ".join(servers[:5]) + ", …" * (len(servers) > 5)
        count = f"{len(tools)} tool{'s' * (len(tools) > 1)}"
        yield f"what {count} of {of} can reach is not known to anybody but their servers"
    for server in decider.inventory.servers:
        made = Extension(kind="mcp_tool", server=server.name, name="x")
        if server.state != "connected" and decider.decide(made).effect != "deny":
            yield f"what {server.name} offers is not known: it is {server.state}"


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


def _gives(thing: Thing, ext: Extension) -> bool:
    """Whether a template of an installed resource can give such a URI."""
    if ext.kind not in thing.kinds or not ext.facts.get("template"):
        return False
    literal = re.sub(r"[*?\[]", lambda m: f"[{m[0]}]", ext.name)
    template = re.sub(r"\{[^{}]*\}", "*", literal)
    forms = (thing.pattern, thing.pattern.partition("/")[2])
    alphabet = Alphabet.of((template, *forms))
    return any(read_glob(template, alphabet).meets(read_glob(form, alphabet)) for form in forms if form)


def _only(profile: Profile, thing: Thing, kind: str) -> Profile:
    """The profile with everything but the thing denied."""
    rule = Rule(text="assert", effect="deny", kinds=frozenset({kind}), entries=(_entry(thing),), unless=True)
    return Profile(id=profile.id, layers=(*profile.layers, Policy(dialect="assert", rules=(rule,))))


def _ideal(thing: Thing, kind: str) -> Profile:
    """What lets the thing through, after asking if need be, and nothing else."""
    entries = (_entry(thing, is_allow=True),)
    rule = Rule(text="assert", effect="ask", kinds=frozenset({kind}), entries=entries)
    return Profile(id="assert", layers=(Policy(dialect="assert", rules=(rule,), default="deny"),))
