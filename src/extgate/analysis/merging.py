"""Globs that together are one: `t_[a-m]*` and `t_[n-z]*` are `t_[a-z]*`, `t` and `t?*` are `t*`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from extgate.analysis.globs import Glob, bits

_ROUNDS = 4  # times that what was merged is merged again
_MANY = 4  # new globs for each given one, at most


def merged(globs: Iterable[Glob]) -> list[Glob]:
    """New globs, each of which holds just what some of these together do: they differ in one cell only, or one is the
    other with at least one more character in one place."""
    known = dict.fromkeys(glob for glob in globs if glob.cells and not glob.is_empty)
    most, first = len(known) * (1 + _MANY), len(known)
    for _ in range(_ROUNDS):
        before = len(known)
        more = [made for near in _alike(tuple(known)) for made in _joined(*near)]
        for made in (*more, *_starred(known)):
            known.setdefault(made)
            if len(known) >= most:
                return list(known)[first:]
        if len(known) == before:
            break
    return list(known)[first:]


def _alike(globs: Sequence[Glob]) -> Iterator[tuple[Sequence[Glob], range]]:
    """Globs that are equal in one half, and the places of the other: two that differ in one cell are among them."""
    halves: dict[tuple[object, ...], list[Glob]] = {}
    for glob in globs:
        middle = len(glob.cells) // 2
        halves.setdefault((len(glob.cells), glob.loops, True, glob.cells[:middle]), []).append(glob)
        halves.setdefault((len(glob.cells), glob.loops, False, glob.cells[middle:]), []).append(glob)
    for (size, _, is_first, _), found in halves.items():
        assert isinstance(size, int)
        if len(found) > 1:
            yield found, range(size // 2, size) if is_first else range(size // 2)


def _joined(globs: Sequence[Glob], places: range) -> Iterator[Glob]:
    """One glob for each group that is equal but for one of the places."""
    for at in places:
        groups: dict[tuple[int, ...], list[Glob]] = {}
        for glob in globs:
            groups.setdefault(glob.cells[:at] + glob.cells[at + 1 :], []).append(glob)
        for group in groups.values():
            mask = 0
            for glob in group:
                mask |= glob.cells[at]
            if all(glob.cells[at] != mask for glob in group):
                cells = group[0].cells
                yield Glob((*cells[:at], mask, *cells[at + 1 :]), group[0].loops, group[0].full)


def _starred(known: Mapping[Glob, None]) -> list[Glob]:
    """`t*x` for each `t?*x` where there is `tx` as well."""
    found = []
    for glob in known:
        for at in bits(glob.loops >> 1):
            if glob.cells[at] == glob.full:
                cells = glob.cells[:at] + glob.cells[at + 1 :]
                below, above = glob.loops & (1 << at) - 1, glob.loops >> at + 2 << at + 1
                if Glob(cells, below | above, glob.full) in known:
                    found.append(Glob(cells, below | 1 << at | above, glob.full))
    return found
