"""What a profile lets through, as a formula over its lists, and the formula as cases to be searched one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from extgate.analysis.budget import BudgetSpent
from extgate.core.policy import STRICTNESS, ArgTest, Effect, Either, Entry, Policy, Profile, Rule

MAX_CASES = 4000
"""Cases of one formula; more are not looked at, and the question is undecided."""


@dataclass(frozen=True, slots=True)
class Atom:
    """Holds when any entry does, or without entries when the one condition on an argument does.

    in_doubt: what the condition is taken for when its argument cannot be told.
    """

    entries: tuple[Entry, ...] | None = None
    when: tuple[ArgTest, ...] = ()
    in_doubt: bool = False
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        # Lists are long and looked up often.
        object.__setattr__(self, "_hash", hash((self.entries, self.when, self.in_doubt)))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Is:
    atom: Atom
    is_not: bool = False


@dataclass(frozen=True, slots=True)
class All:
    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    parts: tuple[Formula, ...] = ()


Formula = Is | All | Some
TRUE, FALSE = All(), Some()


@dataclass(frozen=True, slots=True)
class Case:
    """Something lies here when it is in every one of `inside` and in none of `outside`."""

    inside: frozenset[Atom] = frozenset()
    outside: frozenset[Atom] = frozenset()


def region(profile: Profile, kind: str, most: Effect, *, of_calls: bool = False) -> Formula:
    """What of a kind the profile answers with `most` or something more lenient.

    of_calls: each call with its arguments; else each thing, which gets the most lenient answer of its calls.
    """
    opinions, bounds = [], []
    for layer in profile.layers:
        if isinstance(layer, Either):
            found = _some(region(side, kind, most, of_calls=of_calls) for side in (layer.first, layer.second))
            opinion: Formula = TRUE
        else:
            found, opinion = _layer(layer, kind, most, of_calls), _speaks(layer, kind, of_calls)
        opinions.append(opinion)
        bounds.append(_some((found, negated(opinion))))
    return _all((*bounds, _some(opinions)))


def _layer(policy: Policy, kind: str, most: Effect, of_calls: bool) -> Formula:
    default = policy.default
    found: Formula = TRUE if default is not None and STRICTNESS[default] <= STRICTNESS[most] else FALSE
    for rule in reversed(policy.rules):
        if kind not in rule.kinds:
            continue
        passes = STRICTNESS[rule.effect] <= STRICTNESS[most]
        holds = _holds(rule, of_calls)
        if passes:
            found = _some((holds, found))
        elif of_calls or not rule.when:
            found = _all((negated(holds), found))
    return found


def _speaks(policy: Policy, kind: str, of_calls: bool) -> Formula:
    if policy.default is not None:
        return TRUE
    return _some(_holds(rule, of_calls) for rule in policy.rules if kind in rule.kinds)


def _holds(rule: Rule, of_calls: bool) -> Formula:
    entries: Formula = Is(Atom(tuple(map(_bare, rule.entries)))) if rule.entries else FALSE
    entries = negated(entries) if rule.unless else entries
    in_doubt = rule.effect != "allow"
    return _all((entries, *(Is(Atom(when=(test,), in_doubt=in_doubt)) for test in rule.when if of_calls)))


def part_of(told: Iterable[Rule], among: Sequence[Rule], *, of_calls: bool) -> Formula:
    """What no rule of `told` holds, and some rule of `among`, where it has any."""
    rest = _all(negated(_holds(rule, of_calls)) for rule in told)
    return _all((rest, _some(_holds(rule, of_calls) for rule in among))) if among else rest


def _bare(entry: Entry) -> Entry:
    """The entry without its place: what decides."""
    return Entry(text="", tests=entry.tests)


# ---------------------------------------------------------------------------------------------- formulas


def negated(formula: Formula) -> Formula:
    if isinstance(formula, Is):
        return Is(formula.atom, not formula.is_not)
    parts = tuple(map(negated, formula.parts))
    return Some(parts) if isinstance(formula, All) else All(parts)


def both(one: Formula, other: Formula) -> Formula:
    return _all((one, other))


def _all(parts: Iterable[Formula]) -> Formula:
    kept: dict[Formula, None] = {}
    for part in parts:
        if part == FALSE:
            return FALSE
        kept |= dict.fromkeys(part.parts if isinstance(part, All) else (part,))
    found = _together(kept, is_not=True)
    return found[0] if len(found) == 1 else All(found)


def _some(parts: Iterable[Formula]) -> Formula:
    kept: dict[Formula, None] = {}
    for part in parts:
        if part == TRUE:
            return TRUE
        kept |= dict.fromkeys(part.parts if isinstance(part, Some) else (part,))
    found = _together(kept, is_not=False)
    return found[0] if len(found) == 1 else Some(found)


def _together(parts: Iterable[Formula], *, is_not: bool) -> tuple[Formula, ...]:
    """The parts, with conditions that ask for some text of one argument as one that has all their patterns: some text
    is in one of two sets when some is in both together."""
    rest: list[Formula] = []
    alike: dict[tuple[object, ...], list[ArgTest]] = {}
    for part in parts:
        if isinstance(part, Is) and part.atom.when and part.is_not == is_not and not part.atom.when[0].every:
            (test,) = part.atom.when
            alike.setdefault((test.name, test.reading, test.but, part.atom.in_doubt), []).append(test)
        else:
            rest.append(part)
    for (*_, in_doubt), tests in alike.items():
        pattern, *also = sorted({pattern for test in tests for pattern in (test.pattern, *test.also)})
        test = replace(tests[0], pattern=pattern, also=tuple(also))
        rest.append(Is(Atom(when=(test,), in_doubt=bool(in_doubt)), is_not))
    return tuple(rest)


def cases(formula: Formula) -> tuple[Case, ...]:
    """Cases that together are the formula. Raises BudgetSpent for more than MAX_CASES."""
    found: dict[Case, None] = {}
    for case in _cases(formula):
        found[case] = None
        if len(found) > MAX_CASES:
            raise BudgetSpent(f"more than {MAX_CASES:,} cases", fix="compare smaller policies")
    return tuple(sorted(found, key=lambda case: len(case.inside)))


def _cases(formula: Formula) -> Iterator[Case]:
    if isinstance(formula, Is):
        atoms = frozenset({formula.atom})
        if formula.atom.entries == () and not formula.is_not:
            return  # an empty list holds nothing
        yield Case(outside=atoms) if formula.is_not else Case(inside=atoms)
    elif isinstance(formula, Some):
        for part in formula.parts:
            yield from _cases(part)
    else:
        found = [Case()]
        for part in formula.parts:
            more = list(_cases(part))
            found = list(dict.fromkeys(case for one in found for other in more if (case := _joined(one, other))))
            if len(found) > MAX_CASES:
                raise BudgetSpent(f"more than {MAX_CASES:,} cases", fix="compare smaller policies")
        yield from found


def _joined(one: Case, other: Case) -> Case | None:
    """What lies in both; None when nothing can."""
    inside, outside = one.inside | other.inside, one.outside | other.outside
    return None if inside & outside else Case(inside, outside)
