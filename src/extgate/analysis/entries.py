"""Entries of lists, compared by their texts alone: which hold all that another does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from extgate.analysis.alphabet import Alphabet
from extgate.analysis.globs import Glob, read_glob
from extgate.analysis.pile import Pile
from extgate.core.glob import Token, nfc, tokens
from extgate.core.names import Facet
from extgate.core.policy import Entry, Test


def glob_of(test: Test, alphabet: Alphabet) -> Glob:
    """What a test's pattern, or its one literal name, holds."""
    pattern = nfc(test.pattern)
    if not test.is_exact:
        return read_glob(pattern, alphabet)
    return Glob([alphabet.bit.get(character, 0) for character in pattern], 0, alphabet.full)


def read_tests(tests: Iterable[Test]) -> Iterator[tuple[Token, ...]]:
    """The patterns as tokens, for an alphabet that tells all apart that they do."""
    for test in tests:
        pattern = nfc(test.pattern)
        if not test.is_exact:
            yield tokens(pattern)
        elif pattern:
            yield (Token(kind="text", text=pattern),)


class EntryIndex:
    """Entries in their order. One covers another when each of its tests follows from a test of the other: the same
    spellings or more, and a pattern that holds as much or more."""

    def __init__(self, entries: Sequence[Entry], alphabet: Alphabet) -> None:
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
                if set(test.facets) <= set(facets):
                    yield from (
                        at
                        for row in pile.covering(glob)
                        for at in owners[row]
                        if all(self._follows(other, entry) for other in self.entries[at].tests)
                    )

    def _follows(self, test: Test, entry: Entry) -> bool:
        return any(
            set(mine.facets) <= set(test.facets) and self.glob(test).covers(self.glob(mine)) for mine in entry.tests
        )
