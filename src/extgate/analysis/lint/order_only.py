"""EG044: rules that overlap, with only their order to decide between them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from extgate.analysis.alphabet import Alphabet
from extgate.analysis.entries import EntryIndex, read_tests
from extgate.analysis.lint.context import Context
from extgate.core.extension import KINDS, Finding
from extgate.core.names import show
from extgate.core.policy import STRICTNESS, Entry

CODES = ("EG044",)

_MOST = 200  # entries up to which each is held against each


def check(context: Context) -> Iterator[Finding]:
    """One finding for each two entries of different effect that share names, neither holding all of the other's.

    Where every deny is asked before every ask, and that before every allow, the order in which rules are written does
    not count, and nothing is said.
    """
    rules = [rule for rule in context.policy.rules if rule.file and not rule.unless and not rule.when]
    ranks = [STRICTNESS[rule.effect] for rule in rules]
    places = [(rule, entry) for rule in rules for entry in rule.entries if len(entry.tests) == 1]
    if ranks == sorted(ranks, reverse=True) or len(places) > _MOST:
        return
    alphabet = Alphabet(read_tests(entry.tests[0] for _, entry in places))
    index = EntryIndex([entry for _, entry in places], alphabet, KINDS)
    for (rule, entry), (later, other) in combinations(places, 2):
        if rule.effect != later.effect and rule.kinds & later.kinds and _overlap(index, entry, other):
            message = f"{rule.text}: `{show(entry.text)}` ({rule.effect}) and `{show(other.text)}` ({later.effect})"
            message += f" share names, and only their order decides: {rule.effect}"
            fix = "write the shared names as a rule of their own"
            yield context.warn("EG044", message, at=_second(entry, other), fix=fix, severity="info")


def _overlap(index: EntryIndex, one: Entry, other: Entry) -> bool:
    first, second = one.tests[0], other.tests[0]
    a, b = index.glob(first), index.glob(second)
    return bool(set(first.facets) & set(second.facets)) and a.meets(b) and not a.covers(b) and not b.covers(a)


def _second(one: Entry, other: Entry) -> Entry:
    """Whichever is written further down."""
    return max(one, other, key=lambda entry: entry.line or 0)
