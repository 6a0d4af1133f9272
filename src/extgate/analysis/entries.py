"""Entries of lists, compared by their texts alone: which hold all that another does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from extgate.analysis.alphabet import Alphabet, Pattern, parsed
from extgate.analysis.globs import Glob, read_glob
from extgate.analysis.pile import Pile
from extgate.analysis.spellings import family, wider_facets
from extgate.core.glob import nfc
from extgate.core.names import Facet
from extgate.core.policy import Entry, Test


def glob_of(test: Test, alphabet: Alphabet) -> Glob:
    """What a test's pattern, or its one literal name, holds."""
    pattern = nfc(test.pattern)
    return read_glob(pattern, alphabet, pattern if test.is_exact else None)


def read_tests(tests: Iterable[Test]) -> Iterator[Pattern]:
    """The patterns as read, for an alphabet that tells all apart that they do."""
    for test in tests:
        pattern = nfc(test.pattern)
        yield pattern if test.is_exact else parsed(pattern)


class EntryIndex:
    """Entries in their order. One covers another when each of its tests follows from a test of the other: the same
    spellings or more, and a pattern that holds as much or more.

    kinds: those that the entries are about, which tells what spellings are among others.
    """

    def __init__(self, entries: Sequence[Entry], alphabet: Alphabet, kinds: Iterable[str]) -> None:
        self._wider = [wider_facets(kind) for kind in {family(kind) for kind in kinds}]
        self.entries = entries
        self.alphabet = alphabet
        self._globs: dict[tuple[str, bool], Glob] = {}
        rows: dict[tuple[Facet, ...], dict[Glob, list[int]]] = {}
        for at, entry in enumerate(entries):
            key = max(entry.tests, key=lambda test: len(test.pattern.strip("*")))
            rows.setdefault(key.facets, {}).setdefault(self.glob(key), []).append(at)
        self._piles = [(facets, Pile(list(found), alphabet), list(found.values())) for facets, found in rows.items()]

    def glob(self, test: Test) -> Glob:
        key = (test.pattern, test.is_exact)
        if key not in self._globs:
            self._globs[key] = glob_of(test, self.alphabet)
        return self._globs[key]

    def covering(self, entry: Entry) -> Iterator[int]:
        """The entries that by their text hold all that this one does, itself among them."""
        for test in entry.tests:
            glob = self.glob(test)
            if glob.is_empty:
                continue
            for facets, pile, owners in self._piles:
                if self._are_within(test.facets, facets):
                    yield from (
                        at
                        for row in pile.covering(glob)
                        for at in owners[row]
                        if all(self._follows(other, entry) for other in self.entries[at].tests)
                    )

    def _follows(self, test: Test, entry: Entry) -> bool:
        return any(
            self._are_within(mine.facets, test.facets) and self.glob(test).covers(self.glob(mine))
            for mine in entry.tests
        )

    def _are_within(self, facets: tuple[Facet, ...], others: tuple[Facet, ...]) -> bool:
        """Whether every spelling under the facets is one under the others, whatever the thing."""
        if set(facets) <= set(others):
            return True
        return all(not wider.get(facet, frozenset()).isdisjoint(others) for facet in facets for wider in self._wider)
