"""Not one difference of two profiles, but one for each rule that makes one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from extgate.analysis.ground import Ground
from extgate.analysis.hunt import Asked
from extgate.analysis.policies import Outcome, differing
from extgate.analysis.witness import Direction, Witness
from extgate.core.decide import Step
from extgate.core.policy import Entry, Profile, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A witness, and the rule and entry of the stricter side that it is about, where an entry decides it there."""

    witness: Witness
    rule: Rule | None = None
    entry: Entry | None = None


def each(
    old: Profile,
    new: Profile,
    kind: str,
    direction: Direction,
    *,
    most: int,
    budget: int,
    asked: Asked = "all",
    ground: Ground | None = None,
) -> Iterator[Difference | Outcome]:
    """A difference for each rule, then an outcome when it is not sure that these are all.

    What the entry of one holds is left out when the next is looked for; without an entry there is no next one. budget:
    units of work for each. most: differences that are looked for. ground: as for `differing`.
    """
    told: dict[Entry, None] = {}
    ground = ground or Ground(old, new, kind)
    for _ in range(most):
        rules = (_denial(kind, tuple(told)),) if told else ()
        outcome = differing(old, new, kind, direction, budget=budget, ground=ground, asked=asked, told=rules)
        witness = outcome.witness
        if witness is None:
            if outcome.undecided:
                yield outcome
            return
        strict, lenient = (old, witness.before), (new, witness.after)
        if direction == "narrower":
            strict, lenient = lenient, strict
        rule, entry = entry_of(strict[0], strict[1].step)
        yield Difference(witness=witness, rule=rule, entry=entry)
        left_out = entry or entry_of(lenient[0], lenient[1].step)[1]
        if left_out is None or left_out in told:
            return
        told[left_out] = None
    yield Outcome(undecided=f"more than {most} rules say otherwise; those that are told are sure")


def _denial(kind: str, entries: tuple[Entry, ...]) -> Rule:
    return Rule(text="told", effect="deny", kinds=frozenset({kind}), entries=entries)


def entry_of(profile: Profile, step: Step) -> tuple[Rule | None, Entry | None]:
    """The rule and the entry that a step of a decision is about."""
    for policy in profile.policies if step.pattern is not None else ():
        for rule in policy.rules:
            if rule.text == step.text:
                for entry in rule.entries:
                    if (entry.text, entry.line) == (step.pattern, step.line):
                        return rule, entry
    return None, None
