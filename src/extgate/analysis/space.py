"""Is there a name that one set of patterns admits and another does not? A witness, none, or undecided.

Exact over all names of a universe, within a stated amount of work. Names that are known (installed) are tried first,
then the patterns themselves with little put for their stars; what one pattern covers is closed by its text alone, and
only the rest is searched (`antichain.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from extgate.analysis.alphabet import NAMES, Alphabet, Pattern, Universe, parsed
from extgate.analysis.boxes import Box, Condition, Found, Search, Text, guesses
from extgate.analysis.budget import WORK, BudgetSpent, Meter
from extgate.analysis.globs import Glob, read_glob
from extgate.analysis.pile import Pile
from extgate.core.patterns import PatternSet, clean, nfc


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """Patterns that admit, but for those that refuse. Empty `allow` admits nothing."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """witness: the name, when there is one. is_shortest: no name of fewer characters is one. spent: units of work."""

    verdict: Literal["witness", "none", "undecided"]
    witness: str | None = None
    is_shortest: bool = False
    spent: int = 0


def outside(
    a: Signed, b: Signed, *, universe: Universe = NAMES, budget: int = WORK, known: Iterable[str] = ()
) -> Answer:
    """A name that `a` admits and `b` does not.

    known: names to try first, in order; a witness among them is given as it is, be there a shorter one or not.
    """
    name = _known(a, b, universe, known)
    if name is not None:
        return Answer(verdict="witness", witness=name)
    meter = Meter(budget)
    allow, deny, other_allow, other_deny = (
        tuple(dict.fromkeys(map(clean, patterns))) for patterns in (a.allow, a.deny, b.allow, b.deny)
    )
    read = {text: parsed(text) for text in (*allow, *deny, *other_allow, *other_deny)}
    # What both sides say goes first, because it costs nothing.
    alone = _besides(allow, other_allow, read)
    denied = _besides(other_deny, deny, read)
    if not alone and not denied:
        return Answer(verdict="none")
    alphabet = Alphabet(read.values(), universe.characters)
    boxes: dict[str, Box] = {}

    def boxed(texts: Iterable[str]) -> list[Box]:
        for text in texts:
            if text not in boxes:
                boxes[text] = (Condition("name", read_glob(text, alphabet, read[text])),)
        return [boxes[text] for text in texts]

    name_text = Text(name="name", min_length=universe.min_length, max_length=universe.max_length)
    best: Found | None = None
    try:
        if alone:
            best = Search([name_text], boxed((*deny, *other_allow)), alphabet, meter).find([boxed(alone)])
        if denied:
            best = Search([name_text], boxed(deny), alphabet, meter).find([boxed(allow), boxed(denied)], best)
    except BudgetSpent:
        return Answer(verdict="undecided", spent=meter.spent)
    return _answer(best, alphabet, meter)


def _besides(texts: Iterable[str], others: Iterable[str], read: Mapping[str, Pattern]) -> list[str]:
    known = {read[text] for text in others}
    return [text for text in texts if read[text] not in known]


def _known(a: Signed, b: Signed, universe: Universe, known: Iterable[str]) -> str | None:
    names = tuple(known)
    if not names:
        return None
    sets = [PatternSet(patterns) for patterns in (a.allow, a.deny, b.allow, b.deny)]
    for name in map(nfc, names):
        if universe.characters and not set(name) <= set(universe.characters):
            continue
        allow, deny, other_allow, other_deny = (patterns.first(name) >= 0 for patterns in sets)
        if allow and not deny and not (other_allow and not other_deny):
            return name
    return None


def _answer(best: Found | None, alphabet: Alphabet, meter: Meter) -> Answer:
    if best is None:
        return Answer(verdict="none", spent=meter.spent)
    name = alphabet.spell(best.words["name"])
    return Answer(verdict="witness", witness=name, is_shortest=best.is_shortest, spent=meter.spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """A pattern that others make needless. by: the one pattern that covers it; None when only several together do."""

    index: int
    by: int | None


def dead(
    patterns: Sequence[str], *, universe: Universe = NAMES, budget: int = WORK, in_order: bool = False
) -> tuple[Dead, ...]:
    """The patterns without which the list matches the same names, ascending; of equal ones the later.

    in_order: only earlier patterns count, as where the first match decides. A pattern for which the budget does not
    suffice is taken to be alive.
    """
    texts = tuple(map(clean, patterns))
    read = [parsed(text) for text in texts]
    alphabet = Alphabet(read, universe.characters)
    return Scan([read_glob(t, alphabet, r) for t, r in zip(texts, read, strict=True)], alphabet, universe).run(
        Meter(budget), in_order
    )


class Scan:
    """Which of some globs the others make needless."""

    def __init__(self, globs: Sequence[Glob], alphabet: Alphabet, universe: Universe) -> None:
        self.globs = globs
        self.alphabet = alphabet
        self.text = Text(name="name", min_length=universe.min_length, max_length=universe.max_length)
        self.pile = Pile(globs, alphabet)
        self.gone: set[int] = set()
        self.coverer: dict[int, int | None] = {}

    def run(self, meter: Meter, in_order: bool) -> tuple[Dead, ...]:
        """They, ascending. in_order: only earlier globs count."""
        for at, glob in enumerate(self.globs):
            if glob.is_empty:
                continue
            by = next((row for row in self.pile.covering(glob) if row < at or (row > at and not in_order)), None)
            if by is not None:
                self.coverer[at] = by
        for at in reversed(range(len(self.globs))):
            if at not in self.coverer and not self.globs[at].is_empty and self._is_covered(at, meter, in_order):
                self.gone.add(at)
        return tuple(Dead(index=at, by=self.coverer.get(at)) for at in sorted({*self.coverer, *self.gone}))

    def _is_covered(self, at: int, meter: Meter, in_order: bool) -> bool:
        """Whether the others that are left hold all of it together."""
        glob = self.globs[at]

        def counts(row: int) -> bool:
            return row != at and row not in self.gone and row not in self.coverer and (row < at or not in_order)

        for word in guesses(glob, self.alphabet):
            if self.text.admits(word) and not any(map(counts, self.pile.holding(word))):
                return False
        near = [row for row in self.pile.meeting(glob) if counts(row)]
        meter.spend(1 + len(near))
        others = [(Condition("name", self.globs[row]),) for row in near]
        part = meter.part(_SUSPECT)
        try:
            found = Search([self.text], others, self.alphabet, part).find([[(Condition("name", glob),)]])
        except BudgetSpent:
            return False
        finally:
            meter.join(part)
        return found is None


_SUSPECT = 20_000  # units spent at most on one pattern
