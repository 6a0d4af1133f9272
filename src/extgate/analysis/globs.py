"""One pattern as an automaton: cells that take one letter each, and states that may repeat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from extgate.analysis.alphabet import Alphabet, Pattern, parsed
from extgate.core.glob import STAR

GAP, WIDE = "\ud800", "\ud801"
"""What stands for a star, and for a cell of several letters, in a sketch. No name holds half a surrogate pair."""


class Glob:
    """cells: the letters that each place takes, as masks. loops: bit k is set when any text may stand before cell k,
    the last bit when any may follow. full: the mask of all letters.

    Written in one way only: `*?` reads as `?*`. Equal globs hold equal names.
    """

    __slots__ = ("__dict__", "_hash", "_rows", "cells", "full", "loops", "sketched")

    def __init__(self, cells: Sequence[int], loops: int, full: int) -> None:
        self.cells = tuple(cells)
        self.full = full
        self.loops = _pushed(self.cells, loops, full)
        self.sketched = ""
        self._rows: dict[int, int] = {}
        self._hash = hash((self.cells, self.loops))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Glob) and self.cells == other.cells and self.loops == other.loops

    def __hash__(self) -> int:
        return self._hash

    @property
    def is_empty(self) -> bool:
        """Whether no name of this alphabet is in it."""
        return 0 in self.cells

    @property
    def is_all(self) -> bool:
        return not self.cells and self.loops == 1

    @cached_property
    def symbols(self) -> tuple[int, ...]:
        """The cells in order, with 0 where a star stands."""
        found: list[int] = []
        for at, cell in enumerate(self.cells):
            found += (0, cell) if self.loops >> at & 1 else (cell,)
        return tuple([*found, 0] if self.loops >> len(self.cells) & 1 else found)

    def sketch(self, alphabet: Alphabet) -> str:
        """The pattern as text, GAP for a star, WIDE for a cell of several letters."""
        if not self.sketched:
            letters = alphabet.characters
            parts = (GAP if not s else WIDE if s & (s - 1) else letters[s.bit_length() - 1] for s in self.symbols)
            self.sketched = "".join(parts)
        return self.sketched

    def row(self, letters: int) -> int:
        """The cells that take every one of these letters, as bits."""
        found = self._rows.get(letters)
        if found is None:
            found = 0
            for at, cell in enumerate(self.cells):
                if letters & ~cell == 0:
                    found |= 1 << at
            self._rows[letters] = found
        return found

    def accepts(self, letters: Sequence[int]) -> bool:
        """Whether a name, as letters, is in it."""
        return self._runs(letters, self.loops) if len(letters) >= len(self.cells) else False

    def covers(self, other: Glob) -> bool:
        """Whether every name of the other is in this one, as far as their texts tell: False may be wrong."""
        mine, theirs = self.cells, other.cells
        if len(mine) > len(theirs):
            return False
        if not self.loops:
            return (
                not other.loops
                and len(mine) == len(theirs)
                and all(b & ~a == 0 for a, b in zip(mine, theirs, strict=True))
            )
        if mine:
            first, last = self._spread & 1, self.loops >> len(mine)
            if not first and (other.loops & 1 or theirs[0] & ~mine[0]):
                return False
            if not last and (other.loops >> len(theirs) or theirs[-1] & ~mine[-1]):
                return False
        return self._runs(other.symbols, self._spread)

    @cached_property
    def _spread(self) -> int:
        """The loops with a star wherever it may stand without a change: `??*` as `*?*?*`, which covers by its text
        what the short form does not."""
        loops = self.loops
        for at in reversed(range(len(self.cells))):
            if loops >> at + 1 & 1 and self.cells[at] == self.full:
                loops |= 1 << at
        return loops

    def _runs(self, symbols: Sequence[int], loops: int) -> bool:
        state = 1
        for symbol in symbols:
            stays = state & loops
            state = (state & self.row(symbol)) << 1 | stays if symbol else stays
            if not state:
                return False
        return bool(state >> len(self.cells) & 1)

    def meets(self, other: Glob) -> bool:
        """Whether some text is in both."""
        if self.is_empty or other.is_empty or not _ends_meet(self, other):
            return False
        mine, others = len(self.cells), len(other.cells)
        seen, todo = {(0, 0)}, [(0, 0)]
        while todo:
            i, j = todo.pop()
            if i == mine and j == others:
                return True
            for pair in self._steps(other, i, j):
                if pair not in seen:
                    seen.add(pair)
                    todo.append(pair)
        return False

    def _steps(self, other: Glob, i: int, j: int) -> Iterator[tuple[int, int]]:
        mine, others = i < len(self.cells), j < len(other.cells)
        if mine and others and self.cells[i] & other.cells[j]:
            yield i + 1, j + 1
        if mine and other.loops >> j & 1:
            yield i + 1, j
        if others and self.loops >> i & 1:
            yield i, j + 1

    # ------------------------------------------------------------------------------------------ derived globs

    def part(self, start: int, stop: int) -> Glob:
        """What leads from one state to another."""
        return Glob(self.cells[start:stop], self.loops >> start & (1 << (stop - start + 1)) - 1, self.full)

    def states_after(self, letters: Sequence[int], start: int) -> int:
        """The states that these letters lead to from one, as bits."""
        state = 1 << start
        for letter in letters:
            state = (state & self.row(letter)) << 1 | state & self.loops
        return state


def read_glob(pattern: str, alphabet: Alphabet, read: Pattern | None = None) -> Glob:
    """The pattern over this alphabet; names that spell a class out are left out. read: the pattern as `parsed`."""
    read = parsed(pattern) if read is None else read
    bit = alphabet.bit
    if isinstance(read, str):
        glob = Glob(tuple(map(bit.__getitem__, read)), 0, alphabet.full)
        glob.sketched = read
        return glob
    cells: list[int] = []
    sketch: list[str] = []
    loops = 0
    for token in read:
        if token is STAR:
            loops |= 1 << len(cells)
            sketch.append(GAP)
        elif token.text:
            cells += map(bit.__getitem__, token.text)
            sketch.append(token.text)
        else:
            cells.append(alphabet.mask(token))
            sketch.append(WIDE if cells[-1] & (cells[-1] - 1) else alphabet.spell(cells[-1:]))
    glob = Glob(cells, loops, alphabet.full)
    if glob.loops == loops:
        glob.sketched = "".join(sketch)
    return glob


def everything(alphabet: Alphabet) -> Glob:
    """The glob of all texts."""
    return Glob((), 1, alphabet.full)


def _pushed(cells: tuple[int, ...], loops: int, full: int) -> int:
    """The loops with each star moved behind the cells beside it that take every letter."""
    if not loops or full not in cells:
        return loops
    for at in range(len(cells)):
        if cells[at] == full and loops >> at & 1:
            loops = loops & ~(1 << at) | 1 << (at + 1)
    # A star behind a run of such cells says all; one inside the run was moved there by the loop above.
    return loops


def _ends_meet(one: Glob, other: Glob) -> bool:
    """A quick look at what stands before the first star of both, and behind the last."""
    for a, b in zip(_head(one), _head(other), strict=False):
        if not a & b:
            return False
    return all(a & b for a, b in zip(_tail(one), _tail(other), strict=False))


def _head(glob: Glob) -> tuple[int, ...]:
    loops = glob.loops
    return glob.cells[: (loops & -loops).bit_length() - 1] if loops else glob.cells


def _tail(glob: Glob) -> tuple[int, ...]:
    return glob.cells[glob.loops.bit_length() - 1 :][::-1] if glob.loops else glob.cells[::-1]


def bits(state: int) -> Iterator[int]:
    """The places of the bits that are set, ascending."""
    while state:
        lowest = state & -state
        yield lowest.bit_length() - 1
        state ^= lowest
