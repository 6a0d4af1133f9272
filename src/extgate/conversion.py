"""A policy carried to another runtime, and the proof: what was written is read back and compared over all names.

A runtime's own tools have other names in each; they are compared one by one, as what does the same, and left out of the
comparison of names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from extgate.analysis.budget import WORK
from extgate.analysis.each import Difference, each
from extgate.analysis.policies import Outcome, differing
from extgate.analysis.witness import DIRECTIONS, Direction, Witness
from extgate.core.decide import holds
from extgate.core.explain import Decider
from extgate.core.extension import KINDS, Extension, Inventory
from extgate.core.names import Facet, Naming
from extgate.core.policy import Effect, Entry, Policy, Profile, Rule, Test
from extgate.dialects.convert import Converted, read_back, tool_of_source, write
from extgate.dialects.outline import CLASSES, Loss, Outline
from extgate.dialects.registry import NATIVE

PART = WORK // 5
"""Units of work for one direction of one kind."""
MOST = 12
"""Losses of one kind and direction that are looked for; whether there are more is then undecided."""

_CALLS = 10  # calls are searched with so many times less: most are settled at once, or not at all

State = Literal["equal", "losses", "undecided"]
TOLD = ("spelling", "default")
"""Codes of losses that widen and are told, but need not be accepted: the source denies the thing under another spelling
only (a server `a` with an item `b`, for a tool `a_b`), or by a rule that nobody wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the comparison of one kind came to; `calls` stands for what rules say of arguments."""

    kind: str
    state: State
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What was written, and all that it says otherwise, with a shortest witness each: first what widens."""

    converted: Converted
    losses: tuple[Loss, ...]
    rows: tuple[Row, ...]

    @property
    def errors(self) -> tuple[Loss, ...]:
        """The losses that have to be accepted."""
        return tuple(loss for loss in self.losses if loss.is_wider and loss.code not in TOLD)

    @property
    def undecided(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.state == "undecided")


def convert(
    policy: Policy,
    target: str,
    stock: Inventory,
    *,
    target_tools: Sequence[Extension] = (),
    name: str = "agent",
    budget: int = PART,
) -> Conversion:
    """The policy in the target's dialect, and the proof. budget: units of work for one direction of one kind."""
    converted = write(policy, target, stock, target_tools=target_tools, name=name)
    found = read_back(target, converted.documents)
    outline = Outline(policy=policy, stock=stock, name=name, target=target)
    proof = _Proof(policy, found, _own_tools(target, stock, target_tools), budget)
    losses, rows = list(converted.losses), []
    for kind in KINDS:
        row, more = proof.of_kind(kind)
        rows.append(row)
        for loss, witness in more:
            losses = _told(losses, loss, witness, kind)
    rows += _calls(outline, proof, target_tools)
    rows = [replace(row, state="losses") if row.state == "equal" and _is_told(losses, row) else row for row in rows]
    order = sorted(dict.fromkeys(losses), key=lambda loss: (not loss.is_wider, loss.code, loss.name))
    return Conversion(converted=converted, losses=tuple(order), rows=tuple(rows))


def _own_tools(target: str, stock: Inventory, target_tools: Sequence[Extension]) -> frozenset[str]:
    """Names of runtimes' own tools, which are compared as what does the same; none where both name them alike."""
    if target not in NATIVE:
        return frozenset()
    return frozenset().union(*CLASSES, (ext.name for ext in (*stock.of_kind("tool"), *target_tools)))


def _is_told(losses: Sequence[Loss], row: Row) -> bool:
    return any(loss.witness.startswith(f"{row.kind}:") for loss in losses)


def _told(losses: list[Loss], loss: Loss, witness: Witness, kind: str) -> list[Loss]:
    """The losses with one more; where it is among them already, with its witness."""
    same = [other for other in losses if _is_same(other, loss, kind)]
    if not same:
        return [*losses, loss]
    shorter = {
        id(other): replace(other, witness=loss.witness) for other in same if other.code in ("pattern", "unknown")
    }
    return [shorter.get(id(other), other) for other in losses]


def _is_same(one: Loss, other: Loss, kind: str) -> bool:
    if one.is_wider != other.is_wider or not one.witness.startswith(f"{kind}:"):
        return False
    return one.key == other.key or one.witness == other.witness or (one.code == other.code == "unknown")


class _Proof:
    """The source's policy against the one that was read back."""

    def __init__(self, source: Policy, found: Policy, own: frozenset[str], budget: int) -> None:
        self.source, self.found, self.budget = source, found, budget
        entries = tuple(_named(name) for name in sorted(own))
        rule = Rule(text="own tools", effect="deny", kinds=frozenset({"tool"}), entries=entries)
        self._own = Policy(dialect="convert", rules=(rule,), default=None)

    def of_kind(self, kind: str) -> tuple[Row, list[tuple[Loss, Witness]]]:
        """What became of one kind, and its losses."""
        losses: list[tuple[Loss, Witness]] = []
        why = ""
        for direction in DIRECTIONS:
            why = self._search(kind, direction, losses) or why
        state: State = "undecided" if why else "losses" if losses else "equal"
        return Row(kind=kind, state=state, why=why), losses

    def _search(self, kind: str, direction: Direction, losses: list[tuple[Loss, Witness]]) -> str:
        """Adds one loss for each rule that says otherwise; why it is not sure that these are all."""
        old, new = (Profile(id="a", layers=(side, self._own)) for side in (self.source, self.found))
        for found in each(old, new, kind, direction, most=MOST, budget=self.budget, calls=False):
            if isinstance(found, Outcome):
                return found.undecided
            losses.append((_loss(kind, direction, found), found.witness))
        return ""

    def of_calls(self, kind: str, tool: str = "", effect: Effect | None = None) -> Iterator[str]:
        """Why calls are not sure to be answered alike: of all things of a kind, or of one tool that the source answers
        with one effect whatever its arguments."""
        source = self.source if effect is None else Policy(dialect="convert", default=effect)
        only = (_named(tool),) if tool else ()
        rule = Rule(text="only", effect="deny", kinds=frozenset({kind}), entries=only, unless=True)
        layers = (Policy(dialect="convert", rules=(rule,) if tool else (), default=None),)
        old, new = (Profile(id="a", layers=(side, *layers)) for side in (source, self.found))
        for direction in DIRECTIONS:
            outcome = differing(old, new, kind, direction, budget=self.budget // _CALLS)
            witness = outcome.witness
            if witness and witness.arguments is not None:
                before, after = (side.effect or "deny" for side in (witness.before, witness.after))
                yield f"{witness.extension.id} with {dict(witness.arguments)}: {before} here, {after} there"
            elif outcome.undecided:
                yield outcome.undecided


def _named(name: str) -> Entry:
    return Entry(text=name, tests=(Test(facets=("any",), pattern=name, is_exact=True),))


def _loss(kind: str, direction: Direction, found: Difference) -> Loss:
    witness = found.witness
    step = (witness.before if direction == "wider" else witness.after).step
    code, name = "unknown", f"{kind}:{'*/*' if KINDS[kind].is_mcp else '*'}"
    if found.entry is not None:
        code, name = "pattern", found.entry.text
        if not _is_meant(found.entry, witness):
            code = "spelling"
        elif found.rule is not None and not found.rule.file:
            code = "default"
    before, after = (side.effect or "deny" for side in (witness.before, witness.after))
    return Loss(
        code=code,
        name=name,
        message=f"{before} here, {after} there",
        witness=witness.extension.id + "".join(_facts(witness.extension)),
        rule=step.text,
        file=step.file,
        line=step.line,
        is_wider=direction == "wider",
    )


def _facts(ext: Extension) -> Iterator[str]:
    """What else tells the witness apart, as words."""
    if ext.category:
        yield f" of category {ext.category}"
    if ext.declared_name:
        yield f" that calls itself {ext.declared_name}"
    if ext.kind in ("tool", "subagent") and ext.source:
        yield f" from {ext.source}"
    yield from (f" ({key})" for key, value in ext.facts.items() if value is True and key != "builtin")


def _is_meant(entry: Entry, witness: Witness) -> bool:
    """Whether the entry speaks of the thing itself, and not of a name that some runtime makes of it."""
    ext = witness.extension
    facets = dict(Naming((ext, *witness.beside)).of(ext))
    if ext.server is None:
        return True
    if "/" in ext.server:
        return False
    full: tuple[Facet, ...] = ("name", "full")
    plain = tuple(name for facet in full for name in facets.get(facet, ()))
    facets |= {"any": (*facets["server"], *plain), "item_any": plain}
    return all(holds(test, facets) for test in entry.tests)


# ---------------------------------------------------------------------------------------------- calls


def _calls(outline: Outline, proof: _Proof, target_tools: Sequence[Extension]) -> list[Row]:
    """One row on what rules say of arguments; none where no rule looks at any."""
    source, found = map(_with_conditions, (proof.source, proof.found))
    if not source and not found:
        return []
    if outline.is_at_home:
        whys = [why for kind in ("tool", "mcp_tool") for why in proof.of_calls(kind)]
    elif source:
        whys = ["what rules say of arguments was tried on samples, and is not proved"]
    else:
        loose = Decider(Profile(id="a", layers=(outline.policy,)), outline.stock, has_approver=True)
        tools = [ext for ext in target_tools if ext.name in found or "*" in found]
        effects = [(ext.name, tool_of_source(outline, loose, ext).effect) for ext in tools]
        whys = [why for name, effect in effects for why in proof.of_calls("tool", name, effect)]
    return [Row(kind="calls", state="undecided" if whys else "equal", why=next(iter(whys), ""))]


def _with_conditions(policy: Policy) -> frozenset[str]:
    """Patterns of what the policy has rules on arguments for."""
    rules = (rule for rule in policy.rules if rule.when)
    return frozenset(test.pattern for rule in rules for entry in rule.entries for test in entry.tests)
