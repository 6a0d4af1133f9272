"""Entries of lists, compared by their texts alone: which hold all that another does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from extgate.analysis.alphabet import Alphabet, Pattern, parsed
from extgate.analysis.globs import Glob, read_glob
from extgate.analysis.merging import merged
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


Row = tuple[tuple[tuple[Facet, ...], Glob], ...]
"""An entry's tests: the spellings that each looks at, and what it holds of them."""


Within = Callable[[tuple[Facet, ...], tuple[Facet, ...]], bool]
"""Whether all spellings under some facets are among those under others."""


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
        self._rows = list(map(self._row, entries))
        self._filed = _Filed(self._rows, alphabet)

    def glob(self, test: Test) -> Glob:
        key = (test.pattern, test.is_exact)
        if key not in self._globs:
            self._globs[key] = glob_of(test, self.alphabet)
        return self._globs[key]

    def covering(self, entry: Entry) -> Iterator[int]:
        """The entries that by their text hold all that this one does, itself among them."""
        return self._filed.covering(self._row(entry), self._are_within)

    def covers(self, entry: Entry) -> bool:
        """Whether some entry by its text holds all that this one does."""
        return next(self.covering(entry), None) is not None

    def holds(self, entry: Entry) -> bool:
        """Whether one does, or several that differ in one place only."""
        together = self._together.covering(self._row(entry), self._are_within)
        return self.covers(entry) or next(together, None) is not None

    @cached_property
    def _together(self) -> _Filed:
        """Rows that stand for several of the entries."""
        groups: dict[tuple[object, ...], tuple[Row, tuple[Facet, ...], list[Glob]]] = {}
        for row in self._rows:
            for at, (facets, glob) in enumerate(row):
                rest = (*row[:at], *row[at + 1 :])
                groups.setdefault((rest, facets), (rest, facets, []))[2].append(glob)
        rows = [(*rest, (facets, glob)) for rest, facets, globs in groups.values() for glob in merged(globs)]
        return _Filed(rows, self.alphabet)

    def _row(self, entry: Entry) -> Row:
        return tuple((test.facets, self.glob(test)) for test in entry.tests)

    def _are_within(self, facets: tuple[Facet, ...], others: tuple[Facet, ...]) -> bool:
        """Whether every spelling under the facets is one under the others, whatever the thing; a facet that no thing of
        the kinds has is within any."""
        if set(facets) <= set(others):
            return True
        return all(
            facet not in wider or not wider[facet].isdisjoint(others) for facet in facets for wider in self._wider
        )


class _Filed:
    """Rows by the test of each that says most."""

    def __init__(self, rows: Sequence[Row], alphabet: Alphabet) -> None:
        self.rows = rows
        found: dict[tuple[Facet, ...], dict[Glob, list[int]]] = {}
        for at, row in enumerate(rows):
            facets, glob = max(row, key=lambda test: len(test[1].cells))
            found.setdefault(facets, {}).setdefault(glob, []).append(at)
        self._piles = [(facets, Pile(list(globs), alphabet), list(globs.values())) for facets, globs in found.items()]

    def covering(self, row: Row, are_within: Within) -> Iterator[int]:
        """Places of the rows that hold all of this one."""
        for mine, glob in row:
            if glob.is_empty:
                continue
            for facets, pile, owners in self._piles:
                if are_within(mine, facets):
                    near = (at for found in pile.covering(glob) for at in owners[found])
                    yield from (at for at in near if _follows(self.rows[at], row, are_within))


def _follows(other: Row, row: Row, are_within: Within) -> bool:
    """Whether each test of the other holds where all of the row's do."""
    return all(any(are_within(mine, facets) and glob.covers(own) for mine, own in row) for facets, glob in other)
