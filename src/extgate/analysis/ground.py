"""What all questions about two profiles and one family of kinds have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from extgate.analysis.alphabet import Alphabet, parsed
from extgate.analysis.boxes import Box
from extgate.analysis.budget import BudgetSpent, Meter
from extgate.analysis.calls import Speller
from extgate.analysis.encoding import Encoder
from extgate.analysis.entries import EntryIndex, glob_of, read_tests
from extgate.analysis.regions import Atom, Case, Formula
from extgate.analysis.spellings import Shape, apart, family, letters_of, shapes
from extgate.analysis.witness import Witness
from extgate.core.decide import EntryMatcher
from extgate.core.extension import KINDS
from extgate.core.glob import clean, tokens
from extgate.core.policy import Entry, Profile, Rule

PLAIN_URIS = (("item", "*[%.\\]*"),)
"""What is left out where URIs are wanted that can be written in one way only."""

_MADE = 5  # units for one box that is made, and one spelling that is looked at for it
_HEAD = 3  # letters at a pattern's beginning that tell which others are near


def rules_for(profile: Profile, kind: str) -> Iterator[Rule]:
    """The rules of all layers that speak of a kind."""
    return (rule for policy in profile.policies for rule in policy.rules if kind in rule.kinds)


class Ground:
    """What all questions about two profiles and one family of kinds have in common: letters, and boxes once made."""

    def __init__(self, old: Profile, new: Profile, kind: str) -> None:
        kinds = [name for name in KINDS if family(name) == family(kind)]
        self._kinds = kinds
        rules = {id(rule): rule for side in (old, new) for name in kinds for rule in rules_for(side, name)}
        entries = [entry for rule in rules.values() for entry in rule.entries]
        when = [test for rule in rules.values() for test in rule.when]
        never = [pattern for world, _ in shapes(kind) for _, pattern in (*world.never, *PLAIN_URIS)]
        names = [name for world, _ in shapes(kind) for found in world.one_of.values() for name in found]
        read = [*read_tests(test for entry in entries for test in entry.tests), *map(tokens, never)]
        texts = [clean(pattern) for test in when for pattern in (test.pattern, *test.also, *test.but)]
        read += map(parsed, texts)
        self.alphabet = Alphabet(
            read, apart=apart, also=letters_of(kind) + "".join(names), hidden={c for text in texts for c in text}
        )
        self.speller = Speller(self.alphabet)
        self.answers: dict[tuple[Formula, Formula, bool], Witness | str | BudgetSpent] = {}
        """By question: a witness, or none with what is in doubt, or that there was no answer."""
        self._encoders: dict[int, tuple[Shape, Encoder]] = {}
        self._indexes: dict[frozenset[Atom], EntryIndex] = {}
        self._boxes: dict[tuple[int, Entry], list[Box]] = {}
        self._matchers: dict[frozenset[Atom], tuple[Sequence[Entry], EntryMatcher]] = {}
        self._heads: dict[Entry, tuple[int, ...]] = {}

    def encoder(self, shape: Shape) -> Encoder:
        return self._encoders.setdefault(id(shape), (shape, Encoder(shape, self.alphabet)))[1]

    def index(self, atoms: frozenset[Atom]) -> EntryIndex:
        if atoms not in self._indexes:
            entries = [entry for atom in atoms if not atom.when for entry in atom.entries or ()]
            self._indexes[atoms] = EntryIndex(entries, self.alphabet, self._kinds)
        return self._indexes[atoms]

    def outside(self, case: Case) -> tuple[Sequence[Entry], EntryMatcher]:
        """The entries that nothing of a case is in, and a look-up among them."""
        if case.outside not in self._matchers:
            entries = [entry for atom in case.outside for entry in atom.entries or ()]
            self._matchers[case.outside] = (entries, EntryMatcher(entries))
        return self._matchers[case.outside]

    def boxes(self, atom: Atom, shape: Shape, meter: Meter) -> list[Box]:
        """Boxes that together hold what an atom with entries does; those made now cost the meter."""
        boxes = (box for entry in atom.entries or () for box in self.entry_boxes(entry, shape, meter))
        return list(dict.fromkeys(boxes))

    def entry_boxes(self, entry: Entry, shape: Shape, meter: Meter) -> list[Box]:
        """A box for every way in which all tests of the entry can hold."""
        key = (id(shape), entry)
        if key not in self._boxes:
            encoder = self.encoder(shape)
            before = encoder.work
            found = product(*(encoder.boxes(test) for test in entry.tests))
            boxes = [tuple(dict.fromkeys(part for box in chosen for part in box)) for chosen in found]
            meter.spend(_MADE * (len(boxes) + encoder.work - before))
            self._boxes[key] = boxes
        return self._boxes[key]

    def near(self, case: Case) -> dict[Entry, None]:
        """Entries outside that by their first letters may hold something of the case; others may matter as well."""
        heads = Heads(self._head(entry) for atom in case.inside for entry in atom.entries or ())
        outside = (entry for atom in case.outside if not atom.when for entry in atom.entries or ())
        return {entry: None for entry in outside if heads.meet(self._head(entry))}

    def _head(self, entry: Entry) -> tuple[int, ...]:
        """What a name must begin with, in letters: of the entry's longest pattern, at most three."""
        if entry not in self._heads:
            glob = glob_of(max(entry.tests, key=lambda test: len(test.pattern)), self.alphabet)
            first = (glob.loops & -glob.loops).bit_length() - 1 if glob.loops else len(glob.cells)
            self._heads[entry] = glob.cells[: min(first, _HEAD)]
        return self._heads[entry]


class Heads:
    """What names begin with: tells of another beginning whether one name can have both."""

    def __init__(self, heads: Iterable[tuple[int, ...]]) -> None:
        plain: set[tuple[int, ...]] = set()
        self._odd: list[tuple[int, ...]] = []
        for head in dict.fromkeys(heads):
            if all(cell & (cell - 1) == 0 for cell in head):
                plain.add(head)
            else:
                self._odd.append(head)
        self._plain = plain
        self._begun = {head[:size] for head in plain for size in range(len(head) + 1)}

    def meet(self, head: tuple[int, ...]) -> bool:
        if any(cell & (cell - 1) for cell in head):
            return any(_meet(head, other) for other in (*self._plain, *self._odd))
        if head in self._begun or any(head[:size] in self._plain for size in range(len(head))):
            return True
        return any(_meet(head, other) for other in self._odd)


def _meet(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(a & b for a, b in zip(one, other, strict=False))
