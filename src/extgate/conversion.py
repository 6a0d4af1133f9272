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
from extgate.analysis.ground import Ground
from extgate.analysis.policies import Outcome
from extgate.analysis.spellings import family
from extgate.analysis.witness import DIRECTIONS, Direction, Witness
from extgate.conversion_calls import SHELLS, Pair, call_differences, call_losses, members_of
from extgate.core.decide import holds
from extgate.core.extension import KINDS, Extension, Inventory
from extgate.core.names import Facet, Naming
from extgate.core.policy import Entry, Policy, Profile, Rule, Test
from extgate.dialects.convert import Converted, read_back, write
from extgate.dialects.outline import CLASSES, SHELL, Loss, Outline
from extgate.dialects.registry import NATIVE

PART = WORK // 5
"""Units of work for one direction of one kind."""
MOST = 12
"""Losses of one kind and direction that are looked for; whether there are more is then undecided."""

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
    calls, more_losses = _calls(outline, found, target_tools, budget)
    for loss in more_losses:
        losses += [] if any(_is_alike(loss, other) for other in losses) else [loss]
    rows += calls
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


def _is_alike(one: Loss, other: Loss) -> bool:
    """Whether two losses on calls are about one rule, or the other about the whole tool."""
    if other.witness == f"tool:{one.witness.partition('(')[0]}":
        return (one.is_wider, one.message) == (other.is_wider, other.message)
    return (one.code, one.is_wider, one.message, one.rule, one.file, one.line) == (
        other.code, other.is_wider, other.message, other.rule, other.file, other.line
    )  # fmt: skip


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
        self.budget = budget
        entries = tuple(_named(name) for name in sorted(own))
        rule = Rule(text="own tools", effect="deny", kinds=frozenset({"tool"}), entries=entries)
        layer = Policy(dialect="convert", rules=(rule,), default=None)
        self._sides = tuple(Profile(id="a", layers=(side, layer)) for side in (source, found))
        self._grounds: dict[str, Ground] = {}

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
        old, new = self._sides
        if family(kind) not in self._grounds:
            self._grounds[family(kind)] = Ground(old, new, kind)
        ground = self._grounds[family(kind)]
        for found in each(old, new, kind, direction, most=MOST, budget=self.budget, asked="things", ground=ground):
            if isinstance(found, Outcome):
                return found.undecided
            losses.append((_loss(kind, direction, found), found.witness))
        return ""


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


def _calls(
    outline: Outline, found: Policy, target_tools: Sequence[Extension], budget: int
) -> tuple[list[Row], list[Loss]]:
    """One row on what rules say of arguments, and its losses; none where no rule looks at any."""
    source, here = outline.policy, outline.stock
    if not any(rule.when for policy in (source, found) for rule in policy.rules):
        return [], []
    own = () if outline.target in NATIVE else here.of_kind("tool")
    there = replace(here, extensions=(*(ext for ext in here.extensions if ext.kind != "tool"), *(target_tools or own)))
    tools = [ext for ext in there.of_kind("tool") if ext.name not in SHELL or ext.name in SHELLS]
    pairs = [Pair(tool=ext, members=members_of(outline, ext)) for ext in tools]
    told: list[Loss] = []
    whys: list[str] = []
    namings = Naming(here.extensions), Naming(there.extensions)
    answers = (each for pair in pairs for each in call_losses((source, found), pair, namings, budget))
    for answer in (*answers, *_other_calls(source, found, budget)):
        if isinstance(answer, str):
            whys.append(answer)
        else:
            told.append(answer)
    state: State = "undecided" if whys else "losses" if told else "equal"
    return [Row(kind="calls", state=state, why=next(iter(whys), ""))], told


def _other_calls(source: Policy, found: Policy, budget: int) -> Iterator[Loss | str]:
    """Calls of what is called alike on both sides."""
    sides = [Profile(id="a", layers=(side,)) for side in (source, found)]
    for kind in KINDS:
        rules = (rule for side in (source, found) for rule in side.rules if kind in rule.kinds)
        if kind != "tool" and any(rule.when for rule in rules):
            yield from call_differences(sides[0], sides[1], kind, budget)
