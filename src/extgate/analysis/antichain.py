"""The hard part: is there a name in every one of some globs, and in none of many others?

All the others run at once over the name, their states as the bits of one number. A search by length keeps, for each
state of the first globs, only the sets of states of the others that no smaller set found before makes needless: where
a name has left fewer of the others alive, all that can follow is refused less. (De Wulf, Doyen, Henzinger, Raskin:
"Antichains: a new algorithm for checking universality of finite automata", 2006.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from extgate.analysis.budget import Meter
from extgate.analysis.globs import Glob

_WORD = 512  # bits that cost about as much as one step


class Union:
    """Many globs as one set of bits: a bit for each state of each."""

    def __init__(self, globs: Sequence[Glob]) -> None:
        self.start = self.loops = self.ends = self.doomed = 0
        self.below: dict[int, int] = {}
        offset = 0
        for glob in globs:
            size = len(glob.cells)
            self.start |= 1 << offset
            self.loops |= glob.loops << offset
            self.ends |= 1 << offset + size
            for at in range(size + 1):
                if glob.loops >> at & 1:
                    self.below[1 << offset + at] = (1 << offset + at) - (1 << offset)
                    if at == size:
                        self.doomed |= 1 << offset + at
            offset += size + 1
        self.size = offset
        self._globs = globs

    def row(self, letter: int) -> int:
        """The states that take this letter."""
        found = offset = 0
        for glob in self._globs:
            found |= glob.row(letter) << offset
            offset += len(glob.cells) + 1
        return found

    def settled(self, state: int, before: int) -> int:
        """The state without what a star reached later makes needless: all that led to it."""
        fresh = state & self.loops & ~before
        while fresh:
            lowest = fresh & -fresh
            fresh ^= lowest
            state &= ~self.below[lowest]
        return state


def shortest(
    inside: Sequence[Glob], outside: Sequence[Glob], letters: Sequence[int], meter: Meter, lengths: tuple[int, int]
) -> tuple[int, ...] | None:
    """The shortest text, as letters, in all of `inside` and none of `outside`; None when there is none.

    letters: single letters, preferred ones first. lengths: the fewest and the most letters it may have.
    Raises BudgetSpent when the meter runs out.
    """
    union = Union(outside)
    moves = _moves(inside, union, letters)
    goal = tuple(len(glob.cells) for glob in inside)
    first = ((0,) * len(inside), union.settled(union.start, 0))
    if first[1] & union.doomed:
        return None
    trail: list[tuple[int, int]] = [(-1, 0)]
    layer = [(*first, 0)]
    kept: dict[tuple[int, ...], list[int]] = {first[0]: [first[1]]}
    for length in range(lengths[1] + 1):
        for places, state, at in layer:
            if places == goal and not state & union.ends and length >= lengths[0]:
                return _spelled(trail, at)
        if length < lengths[0]:
            kept = {}  # a short name that is too short yet is no better than a long one
        layer = _next(layer, moves, union, inside, kept, trail, meter)
        if not layer:
            return None
    return None


_Move = tuple[int, int, tuple[int, ...]]
"""A letter, the states of the union that take it, the states of each inner glob that do."""


def _moves(inside: Sequence[Glob], union: Union, letters: Iterable[int]) -> list[_Move]:
    """One move for all letters that nothing here tells apart."""
    found: dict[tuple[int, tuple[int, ...]], int] = {}
    for letter in letters:
        found.setdefault((union.row(letter), tuple(glob.row(letter) for glob in inside)), letter)
    return [(letter, row, rows) for (row, rows), letter in found.items()]


def _next(
    layer: list[tuple[tuple[int, ...], int, int]],
    moves: list[_Move],
    union: Union,
    inside: Sequence[Glob],
    kept: dict[tuple[int, ...], list[int]],
    trail: list[tuple[int, int]],
    meter: Meter,
) -> list[tuple[tuple[int, ...], int, int]]:
    found = []
    cost = 1 + union.size // _WORD
    for places, state, at in layer:
        stays = state & union.loops
        for letter, row, rows in moves:
            ahead = _ahead(inside, rows, places)
            meter.spend(cost)
            if not ahead:
                continue
            after = union.settled((state & row) << 1 | stays, state)
            if after & union.doomed:
                continue
            for there in ahead:
                smaller = kept.setdefault(there, [])
                meter.spend(1 + len(smaller) * cost // 8)
                if any(other & ~after == 0 for other in smaller):
                    continue
                smaller[:] = [other for other in smaller if after & ~other]
                smaller.append(after)
                meter.spend(3 * cost)
                trail.append((at, letter))
                found.append((there, after, len(trail) - 1))
    return found


def _ahead(inside: Sequence[Glob], rows: tuple[int, ...], places: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Where the inner globs may be after a letter, the furthest first."""
    found: list[tuple[int, ...]] = [()]
    for glob, row, place in zip(inside, rows, places, strict=True):
        steps = ([place + 1] if row >> place & 1 else []) + ([place] if glob.loops >> place & 1 else [])
        found = [(*before, step) for before in found for step in steps]
        if not found:
            return []
    return found


def _spelled(trail: list[tuple[int, int]], at: int) -> tuple[int, ...]:
    letters: list[int] = []
    while at > 0:
        at, letter = trail[at]
        letters.append(letter)
    return tuple(reversed(letters))
