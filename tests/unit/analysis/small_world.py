"""Every name of up to five letters over a, b, c, and what patterns mean there by trying each name."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from itertools import product

from extgate.analysis.alphabet import Universe
from extgate.analysis.space import Signed

LETTERS = "abc"
LONGEST = 5
WORLD = Universe(characters=LETTERS, max_length=LONGEST)
NAMES = ["".join(letters) for n in range(1, LONGEST + 1) for letters in product(LETTERS, repeat=n)]

_PIECES = ["a", "b", "c", "a", "b", "*", "*", "?", "[ab]", "[!a]", "[bc]", "[!c-z]"]


@cache
def names_of(pattern: str) -> frozenset[str]:
    return frozenset(name for name in NAMES if fnmatchcase(name, pattern))


def all_of(patterns: Sequence[str]) -> frozenset[str]:
    return frozenset().union(*map(names_of, patterns))


def admitted(policy: Signed) -> frozenset[str]:
    return all_of(policy.allow) - all_of(policy.deny)


def pattern(rng: random.Random) -> str:
    return "".join(rng.choice(_PIECES) for _ in range(rng.randint(1, 5)))


def patterns(rng: random.Random, most: int) -> tuple[str, ...]:
    return tuple(pattern(rng) for _ in range(rng.randint(0, most)))


def pair(rng: random.Random) -> tuple[Signed, Signed]:
    """Two policies; often the second holds what the first does, and more."""
    first = Signed(allow=patterns(rng, 6), deny=patterns(rng, 4))
    allow = patterns(rng, 6) + (first.allow if rng.random() < 0.6 else ())
    deny = patterns(rng, 2) + (first.deny if rng.random() < 0.3 else ())
    return first, Signed(allow=allow, deny=deny)
