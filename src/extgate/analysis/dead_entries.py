"""Which entries of a policy change nothing: take them out, and everything is decided as before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from extgate.analysis.alphabet import NAMES, Alphabet
from extgate.analysis.budget import Meter
from extgate.analysis.entries import EntryIndex, read_tests
from extgate.analysis.policies import compare
from extgate.analysis.space import Scan
from extgate.core.decide import CompiledProfile, judge
from extgate.core.extension import Inventory
from extgate.core.names import Facet, Naming
from extgate.core.policy import Entry, Policy, Profile, Rule

WORK = 400_000
"""Budget for what several entries cover together, and for one entry's effect on the whole."""
MAX_TRIED = 40
"""Entries of a policy up to which each is taken out in turn to see whether anything changes."""

_Spot = tuple[str, str, int | None, int]
"""A list, an entry's text, its line, and which of equal ones: the entry as written, whatever rules it is part of."""

Why = Literal["covered", "covered together", "never reached", "no effect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadEntry:
    """An entry of a rule that decides nothing. Where it is the last one of an allow-list, the list admits nothing; to
    take it out would lift the list's limit.

    why: `covered` by the entry `by` of its own list, or of an earlier one of the same effect; `covered together` by
    several of its list; `never reached`, since `by` decides all of it before, and otherwise; `no effect`, since the
    other lists decide all of it in the same way.
    """

    rule: Rule
    entry: Entry
    why: Why
    by: Entry | None = None
    by_rule: Rule | None = None


def dead_entries(policy: Policy, inventory: Inventory) -> tuple[DeadEntry, ...]:
    """Every entry that is dead in all rules that it became part of, in file order; of equal ones the later.

    inventory: what is installed, whose further names (aliases) count as well.
    """
    found: dict[_Spot, DeadEntry] = {}
    alive: set[_Spot] = set()
    for at, rule in enumerate(policy.rules):
        dead = {id(row.entry): row for row in _of_rule(policy.rules[:at], rule)}
        for spot, entry in _spots(rule):
            if id(entry) in dead:
                found.setdefault(spot, dead[id(entry)])
            else:
                alive.add(spot)
    kept = {spot: row for spot, row in found.items() if spot not in alive}
    kept |= _without_effect(policy, kept, inventory)
    return tuple(sorted(kept.values(), key=lambda row: (row.entry.line or 0, row.rule.text)))


def _spots(rule: Rule) -> Iterator[tuple[_Spot, Entry]]:
    """The rule's entries, each with what it is in the file; one written twice is two, one read as several is one."""
    uses: Counter[Entry] = Counter()
    for entry in rule.entries:
        yield (rule.text, entry.text, entry.line, uses[entry]), entry
        uses[entry] += 1


def _of_rule(before: Sequence[Rule], rule: Rule) -> Iterator[DeadEntry]:
    """The dead entries of one rule, given those before it."""
    if rule.when or not rule.entries:
        return
    earlier = [r for r in before if rule.kinds <= r.kinds and not r.unless and not r.when]
    places = [(r, entry) for r in (*earlier, rule) for entry in r.entries]
    entries = [entry for _, entry in places]
    alphabet = Alphabet(read_tests(test for entry in entries for test in entry.tests), NAMES.characters)
    index = EntryIndex(entries, alphabet, rule.kinds)
    own = range(len(entries) - len(rule.entries), len(entries))
    covered: set[int] = set()
    for at in own:
        by = next((row for row in index.covering(entries[at]) if row != at and row not in covered), None)
        if by is not None and (by < at or entries[at].tests != entries[by].tests):
            covered.add(at)
            yield _row(rule, entries[at], *places[by])
    left = [at for at in own if at not in covered]
    for at in _together(index, entries, left, alphabet):
        yield DeadEntry(rule=rule, entry=entries[at], why="covered together")


def _row(rule: Rule, entry: Entry, by_rule: Rule, by: Entry) -> DeadEntry:
    is_same = by_rule is rule or (by_rule.effect == rule.effect and not rule.unless)
    return DeadEntry(rule=rule, entry=entry, why="covered" if is_same else "never reached", by=by, by_rule=by_rule)


def _together(index: EntryIndex, entries: Sequence[Entry], left: Sequence[int], alphabet: Alphabet) -> Iterator[int]:
    """Entries that others on the same spellings cover, several at a time."""
    groups: dict[tuple[Facet, ...], list[int]] = {}
    for at in left:
        if len(entries[at].tests) == 1:
            groups.setdefault(entries[at].tests[0].facets, []).append(at)
    for rows in groups.values():
        globs = [index.glob(entries[at].tests[0]) for at in rows]
        for found in Scan(globs, alphabet, NAMES).run(Meter(WORK), in_order=False):
            if found.by is None:
                yield rows[found.index]


def _without_effect(policy: Policy, known: Mapping[_Spot, DeadEntry], inventory: Inventory) -> dict[_Spot, DeadEntry]:
    """Entries without which nothing changes because other lists decide the same; only in a policy of few entries."""
    places = {spot: (rule, entry) for rule in policy.rules if rule.file for spot, entry in _spots(rule)}
    kinds: dict[_Spot, set[str]] = {}
    for rule in policy.rules:
        for spot, _ in _spots(rule):
            kinds.setdefault(spot, set()).update(rule.kinds)
    needed = {id(row.by) for row in known.values()}
    found: dict[_Spot, DeadEntry] = {}
    for spot, (rule, entry) in places.items() if len(places) <= MAX_TRIED else ():
        is_open = spot not in known and id(entry) not in needed
        rest = _without(policy, {*known, *found, spot}) if is_open else None
        if rest and _is_equal(policy, rest, sorted(kinds[spot]), inventory):
            found[spot] = DeadEntry(rule=rule, entry=entry, why="no effect")
    return found


def _is_equal(one: Policy, other: Policy, kinds: Sequence[str], inventory: Inventory) -> bool:
    sides = tuple(Profile(id="a", layers=(policy,)) for policy in (one, other))
    if any(row.verdict != "equal" for row in compare(*sides, kinds=kinds, budget=WORK)):
        return False
    naming = Naming(inventory.extensions)
    before, after = map(CompiledProfile, sides)
    things = inventory.of_kind(*kinds)
    return all(judge(before, naming, ext).effect == judge(after, naming, ext).effect for ext in things)


def _without(policy: Policy, spots: set[_Spot]) -> Policy | None:
    """The policy without these entries; None where that would empty a list that admits, and so lift its limit."""
    rules = []
    for rule in policy.rules:
        entries = tuple(entry for spot, entry in _spots(rule) if spot not in spots)
        if rule.entries and not entries and (rule.unless or rule.effect == "allow"):
            return None
        if entries or not rule.entries:
            rules.append(replace(rule, entries=entries))
    return replace(policy, rules=tuple(rules))
