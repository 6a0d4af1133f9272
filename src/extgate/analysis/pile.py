"""Many globs under one index: which of them hold a name, hold all of another glob, or share a name with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from extgate.analysis.alphabet import Alphabet
from extgate.analysis.globs import GAP, WIDE, Glob

_WIDEST = 3  # characters in a piece


class Pile:
    """Globs in their order; equal ones are filed once, empty ones never.

    Each is filed under one piece of up to three characters that all its names hold, the one that fewest others hold,
    and a glob of a single name under that name; and all once more under what their names begin with.
    """

    def __init__(self, globs: Sequence[Glob], alphabet: Alphabet) -> None:
        self.globs = globs
        self.alphabet = alphabet
        self.index: dict[Glob, int] = {}
        self._names: dict[str, int] = {}
        self._always: list[int] = []
        self._tables: tuple[dict[str, list[int]], ...] = ({}, {}, {})
        self._heads: dict[str, list[int]] = {}
        rows = []
        for at, glob in enumerate(globs):
            if glob.is_empty or self.index.setdefault(glob, at) != at:
                continue
            sketch = glob.sketch(alphabet)
            self._heads.setdefault(_head(sketch), []).append(at)
            if glob.loops or WIDE in sketch:
                rows.append((at, sketch))
            else:
                self._names[sketch] = at
        self._file(rows)

    def _file(self, rows: list[tuple[int, str]]) -> None:
        pieces = [(at, _pieces(sketch)) for at, sketch in rows]
        uses = Counter(piece for _, found in pieces for piece in found)
        for at, found in pieces:
            if found:
                piece = min(found, key=uses.__getitem__)
                self._tables[len(piece) - 1].setdefault(piece, []).append(at)
            else:
                self._always.append(at)

    def __bool__(self) -> bool:
        return bool(self.index)

    def _candidates(self, sketch: str) -> Iterator[int]:
        if sketch in self._names:
            yield self._names[sketch]
        yield from self._always
        for width, table in enumerate(self._tables, 1):
            if table:
                for piece in {sketch[at : at + width] for at in range(len(sketch) - width + 1)}:
                    yield from table.get(piece, ())

    def holding(self, letters: Sequence[int]) -> Iterator[int]:
        """The globs that a name, as letters, is in."""
        for at in self._candidates(self.alphabet.spell(letters)):
            if self.globs[at].accepts(letters):
                yield at

    def covering(self, glob: Glob) -> Iterator[int]:
        """The globs that by their text hold all of this one: not every one that does."""
        equal = self.index.get(glob)
        if equal is not None:
            yield equal
        for at in self._candidates(glob.sketch(self.alphabet)):
            if at != equal and self.globs[at].covers(glob):
                yield at

    def meeting(self, glob: Glob) -> list[int]:
        """The globs that share a name with this one, ascending."""
        sketch = glob.sketch(self.alphabet)
        if not glob.loops and WIDE not in sketch:
            return sorted(self.holding(glob.cells))
        head = _head(sketch)
        if len(head) == _WIDEST:
            near = [at for width in range(_WIDEST + 1) for at in self._heads.get(head[:width], ())]
        else:
            near = list(self.index.values())
        return sorted(at for at in near if self.globs[at].meets(glob))


def _head(sketch: str) -> str:
    """What every name begins with, as far as it is told; at most three characters."""
    head = sketch[:_WIDEST]
    return head.partition(GAP)[0].partition(WIDE)[0]


def _pieces(sketch: str) -> list[str]:
    """Pieces of the longest width that some run of single letters has."""
    runs = sketch.replace(WIDE, GAP).split(GAP)
    width = min(max(map(len, runs)), _WIDEST)
    if not width:
        return []
    return [run[at : at + width] for run in runs for at in range(len(run) - width + 1)]


def narrowest(globs: Iterable[Glob]) -> tuple[Glob, ...]:
    """The globs without those that hold all of another one: what they have in common stays the same."""
    kept: list[Glob] = []
    for glob in dict.fromkeys(globs):
        if not any(glob.covers(other) for other in kept):
            kept = [*(other for other in kept if not other.covers(glob)), glob]
    return tuple(kept)


def broadest(globs: Iterable[Glob]) -> tuple[Glob, ...]:
    """The globs without those that another holds all of: together they hold the same."""
    kept: list[Glob] = []
    for glob in dict.fromkeys(globs):
        if not any(other.covers(glob) for other in kept):
            kept = [*(other for other in kept if not glob.covers(other)), glob]
    return tuple(kept)
