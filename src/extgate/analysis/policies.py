"""Two profiles, kind by kind: what does one let through that the other does not?

Every witness is confirmed by `core/decide.py` before it is told. Equality is told only where no thing of any world can
differ; what neither settles is undecided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from extgate.analysis.budget import WORK, BudgetSpent, Meter
from extgate.analysis.ground import Ground
from extgate.analysis.hunt import Asked, Hunt
from extgate.analysis.spellings import family
from extgate.analysis.witness import DIRECTIONS, Direction, Witness
from extgate.core.extension import KINDS
from extgate.core.policy import Profile, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One direction: a witness, or none; when nothing was decided, `undecided` says why. spent: units of work."""

    witness: Witness | None = None
    undecided: str = ""
    spent: int = 0


def differing(
    old: Profile,
    new: Profile,
    kind: str,
    direction: Direction,
    *,
    budget: int = WORK,
    ground: Ground | None = None,
    asked: Asked = "all",
    told: Sequence[Rule] = (),
    among: Sequence[Rule] = (),
) -> Outcome:
    """Something of a kind that `new` answers more leniently than `old` (`wider`), or more strictly (`narrower`).

    ground: that of these profiles and this kind, made before. told: rules; what they hold is left out.
    among: rules; only what some of them holds is looked at, where there are any.
    """
    meter = Meter(budget)
    ground = ground or Ground(old, new, kind)
    question = Hunt(old, new, kind, direction, meter, ground, asked=asked, told=told, among=among)
    try:
        witness = question.answer()
    except BudgetSpent as error:
        return Outcome(undecided=error.message, spent=meter.spent)
    if witness is None and question.doubt:
        return Outcome(undecided=question.doubt, spent=meter.spent)
    return Outcome(witness=witness, spent=meter.spent)


# ---------------------------------------------------------------------------------------------- all kinds

_LEAST = 20  # the part of a budget that is left for each question, whatever others cost

Verdicts = Literal["equal", "wider", "narrower", "both", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One kind under two profiles: what the new one gains and what it loses."""

    kind: str
    wider: Outcome
    narrower: Outcome

    @property
    def verdict(self) -> Verdicts:
        """What is sure. A direction that is undecided shows in its own outcome."""
        if self.wider.witness and self.narrower.witness:
            return "both"
        if self.wider.witness or self.narrower.witness:
            return "wider" if self.wider.witness else "narrower"
        return "undecided" if self.wider.undecided or self.narrower.undecided else "equal"


def compare(old: Profile, new: Profile, *, kinds: Iterable[str] = tuple(KINDS), budget: int = WORK) -> list[Comparison]:
    """Each kind over all things that there could be.

    budget: units of work for one direction of one kind. All together cost at most twice that, and a little for each.
    """
    grounds: dict[str, Ground] = {}
    left, found = 2 * budget, []
    for kind in kinds:
        ground = grounds.get(family(kind)) or Ground(old, new, kind)
        grounds[family(kind)] = ground
        sides = []
        for direction in DIRECTIONS:
            most = max(min(budget, left), budget // _LEAST)
            sides.append(differing(old, new, kind, direction, budget=most, ground=ground))
            left -= sides[-1].spent
        found.append(Comparison(kind=kind, wider=sides[0], narrower=sides[1]))
    return found
