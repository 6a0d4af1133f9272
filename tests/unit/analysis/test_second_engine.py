"""The same questions put to z3, an engine that shares nothing with ours."""

from __future__ import annotations

import random
from collections.abc import Sequence

import z3

from extgate.analysis.alphabet import Universe
from extgate.analysis.space import Signed, outside
from extgate.core.glob import STAR, tokens
from tests.unit.analysis import small_world

_WORK = 3_000_000  # z3's own units; far more than these questions need, and no clock
_SORT = z3.ReSort(z3.StringSort())


def _union(parts: Sequence[z3.ReRef]) -> z3.ReRef:
    return z3.Union(*parts) if len(parts) > 1 else parts[0] if parts else z3.Empty(_SORT)


def _one_of(characters: str) -> z3.ReRef:
    return _union([z3.Re(character) for character in characters])


def _regex(pattern: str) -> z3.ReRef:
    parts = []
    for token in tokens(pattern):
        if token is STAR:
            parts.append(z3.Star(_one_of(small_world.LETTERS)))
        elif token.text:
            parts.append(z3.Re(token.text))
        else:
            parts.append(_one_of("".join(c for c in small_world.LETTERS if token.admits(c))))
    return z3.Concat(*parts) if len(parts) > 1 else parts[0]


def _z3_outside(a: Signed, b: Signed) -> z3.CheckSatResult:
    solver, name = z3.Solver(), z3.String("name")
    solver.set("rlimit", _WORK)

    def held(patterns: Sequence[str]) -> z3.BoolRef:
        return z3.InRe(name, _union([_regex(pattern) for pattern in patterns]))

    solver.add(z3.InRe(name, z3.Plus(_one_of(small_world.LETTERS))))
    solver.add(held(a.allow), z3.Not(held(a.deny)), z3.Not(z3.And(held(b.allow), z3.Not(held(b.deny)))))
    return solver.check()


def test_a_thousand_random_pairs_have_z3s_verdict_over_names_of_any_length() -> None:
    rng = random.Random(1130)
    universe = Universe(characters=small_world.LETTERS)
    answered = 0
    for _ in range(1000):
        a, b = small_world.pair(rng)
        second = _z3_outside(a, b)
        if second == z3.unknown:
            continue
        answered += 1
        assert outside(a, b, universe=universe).verdict == ("witness" if second == z3.sat else "none"), (a, b)
    assert answered >= 990
