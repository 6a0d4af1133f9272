"""Which names there are, and a finite alphabet that stands for all their characters.

Two characters that no pattern tells apart are one letter here, so that an answer over a few letters holds for all
of Unicode. A letter's character is the most readable of those it stands for.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from unicodedata import combining, is_normalized

from extgate.core.glob import Token, is_literal, tokens
from extgate.core.names import refusal

READABLE = "x" + "abcdefghijklmnopqrstuvwyz" + string.digits + string.ascii_uppercase + "_-./:"
"""Name characters, the most readable first."""

_OTHERS = "".join(c for c in map(chr, range(32, 127)) if c not in READABLE) + "é工ß§！"
_SCAN = 4096  # characters of one stretch of Unicode that are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Universe:
    """The names that a question is about.

    characters: those that names are made of; empty means every character that a name may hold.
    max_length: in characters. A name that spells out a class pattern (`[ab]*` itself) is left out.
    """

    characters: str = ""
    min_length: int = 1
    max_length: int = 256


NAMES = Universe()
"""All names: one to 256 characters, any that a name may hold."""


Pattern = tuple[Token, ...] | str
"""A pattern's tokens; of one with a single name that name."""


def parsed(pattern: str) -> Pattern:
    """A pattern, read: equal ones mean the same."""
    if is_literal(pattern):
        return pattern
    found = tokens(pattern)
    return found[0].text if len(found) == 1 and found[0].text else found


class _Bits(dict[str, int]):
    """A mask by character, 0 for any that is no letter."""

    def __missing__(self, character: str) -> int:
        return 0


class Alphabet:
    """The letters; a set of them is a bit mask, a single one a mask with one bit.

    read: patterns as `parsed` gives them. fresh: a letter that no pattern names, where there is one.
    apart: what else tells characters apart, besides the patterns. also: characters to keep as letters. hidden: those to
    keep though no name may hold them, because arguments may.
    """

    def __init__(
        self,
        read: Iterable[Pattern],
        characters: str = "",
        apart: Callable[[str], Hashable] | None = None,
        also: str = "",
        hidden: Collection[str] = (),
    ) -> None:
        named: set[str] = set(also)
        classes: set[Token] = set()
        for pattern in read:
            if isinstance(pattern, str):
                named.update(pattern)
                continue
            for token in pattern:
                if token.text:
                    named.update(token.text)
                elif token.ranges:
                    classes.add(token)
        found = dict.fromkeys(_letters(named, tuple(classes), characters, apart))
        self.characters = "".join(found | dict.fromkeys(sorted(hidden)))
        unnamed = [at for at, character in enumerate(self.characters) if character not in named]
        self.fresh = 1 << unnamed[0] if unnamed else 1
        self.bit = _Bits((character, 1 << at) for at, character in enumerate(self.characters))
        self.full = (1 << len(self.characters)) - 1
        self._masks: dict[Token, int] = {}

    @classmethod
    def of(cls, patterns: Iterable[str], universe: Universe = NAMES) -> Alphabet:
        return cls(map(parsed, patterns), universe.characters)

    def mask(self, token: Token) -> int:
        """The letters that `any` or a class takes."""
        found = self._masks.get(token)
        if found is None:
            found = sum(bit for character, bit in self.bit.items() if token.admits(character))
            self._masks[token] = found
        return found

    def spell(self, letters: Iterable[int]) -> str:
        """The text of single letters; of a set its most readable one."""
        return "".join(self.characters[(mask & -mask).bit_length() - 1] for mask in letters)

    def read(self, text: str) -> tuple[int, ...] | None:
        """The text as letters; None when it holds a character that is none of them."""
        letters = tuple(self.bit.get(character, 0) for character in text)
        return letters if all(letters) else None

    def mapped(self, mask: int, image: Callable[[str], str]) -> int:
        """The letters whose image lies in the set."""
        return sum(bit for character, bit in self.bit.items() if self.bit.get(image(character), 0) & mask)


def _letters(
    named: set[str], classes: tuple[Token, ...], characters: str, apart: Callable[[str], Hashable] | None
) -> Iterator[str]:
    if characters:
        pool: Iterable[str] = dict.fromkeys(characters)
        named = named & set(characters)
    else:
        pool = [*READABLE, *_OTHERS, *_stretches(classes)]
        named = {character for character in named if _is_sound(character)}
    kept: dict[Hashable, str] = {}
    for character in pool:
        if character not in named:
            sides = tuple(token.admits(character) for token in classes)
            kept.setdefault((sides, apart(character) if apart else None), character)
    yield from sorted({*named, *kept.values()}, key=lambda c: (_ORDER.get(c, 1 << 20), c))


_ORDER = {character: at for at, character in enumerate(READABLE + _OTHERS)}


@cache
def _is_sound(character: str) -> bool:
    return not refusal(f"x{character}")


def _stretches(classes: tuple[Token, ...]) -> Iterator[str]:
    """Characters outside ASCII, from each stretch between two ends of ranges: a word's and another."""
    ends = {end for token in classes for low, high in token.ranges for end in (ord(low), ord(high) + 1)}
    cuts = sorted({0x80, *(end for end in ends if 0x80 <= end < 0x110000)})
    for start, stop in zip(cuts, [*cuts[1:], 0x110000], strict=True):
        yield from _stretch(start, stop)
    for token in classes:
        for low, high in token.ranges:
            near = (chr(n) for n in (ord(low), ord(high), ord(low) - 1, ord(high) + 1) if 0 < n < 0x110000)
            yield from (character for character in near if _stands_alone(character))


@lru_cache(1024)
def _stretch(start: int, stop: int) -> str:
    """A character of a word, and one of none, between two."""
    found: dict[bool, str] = {}
    for character in map(chr, range(start, min(stop, start + _SCAN))):
        if character.isalnum() not in found and _stands_alone(character):
            found[character.isalnum()] = character
            if len(found) == 2:
                break
    return "".join(found.values())


@lru_cache(4096)
def _stands_alone(character: str) -> bool:
    """Whether a name may hold it, and it stays itself beside others when names are brought into NFC."""
    return _is_sound(character) and not combining(character) and is_normalized("NFC", character)
