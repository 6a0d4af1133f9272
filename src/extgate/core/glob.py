"""What a pattern says: cleaned text, and the tokens that `fnmatch` reads in it. Matching is in core/patterns.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from typing import Final, Literal
from unicodedata import combining, normalize

from extgate.errors import PatternError

MAX_PATTERN: Final = 1024
"""Characters in a pattern; a longer one raises PatternError."""

_LONG: Final = 256  # characters from which marks are put in order here: `normalize` is quadratic in a run of them

# Possessive, so that `[!]` and `[]` are not closed by their own bracket.
_PIECE = re.compile(r"\*+|\?|\[!?+\]?+[^]]*\]|[^*?\[]+|\[")
_CLASS_ITEM = re.compile(r"\A!|.-.|.", re.DOTALL)


def nfc(text: str) -> str:
    """The text in Unicode normal form C."""
    if text.isascii():
        return text
    return normalize("NFC", text if len(text) <= _LONG else "".join(_with_marks_in_order(text)))


def _with_marks_in_order(text: str) -> Iterator[str]:
    characters = chain.from_iterable(map(partial(normalize, "NFD"), text))
    for _, run in groupby(characters, lambda character: combining(character) == 0):
        yield from sorted(run, key=combining)


def clean(pattern: object) -> str:
    """The pattern without white space around it, in NFC.

    Raises PatternError for anything but a string, and for more than MAX_PATTERN characters.
    """
    if not isinstance(pattern, str):
        raise PatternError(f"expected a pattern, got `{pattern!r:.60}`", fix="write it as a string, in quotes")
    text = pattern.strip()
    if len(text) <= MAX_PATTERN:
        text = nfc(text)
    if len(text) > MAX_PATTERN:
        raise PatternError(f"expected at most {MAX_PATTERN} characters, got `{text[:40]}…`", fix="shorten the pattern")
    return text


def is_literal(pattern: str) -> bool:
    """Whether it holds no `*`, `?` or `[`."""
    return not ("*" in pattern or "?" in pattern or "[" in pattern)


def unclosed_bracket(pattern: str) -> bool:
    """Whether some `[` has no closing `]`, so that it stands for itself.

    `[]` and `[!]` stand for themselves too, but are closed to the eye: an empty set, which is no mistake of typing.
    """
    found = (m for m in _PIECE.finditer(pattern) if m[0] == "[")
    return any(not pattern.startswith(("]", "!]"), m.end()) for m in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One part of a pattern: `text` stands for itself, `star` for any characters, `any` and `class` for one.

    text: for `text` only, never empty. Neither two `text` nor two `star` tokens follow each other.
    negated, ranges: for `class`, a character that is (not) in a range; ranges are inclusive, sorted and apart. Without
    ranges it matches nothing. A class of one character reads as `text`, one of all characters as `any`.
    """

    kind: Literal["text", "star", "any", "class"]
    text: str = ""
    negated: bool = False
    ranges: tuple[tuple[str, str], ...] = ()

    @property
    def width(self) -> int:
        """How many characters it takes; 0 for `star`, which takes any number."""
        return len(self.text) if self.text else int(self.kind != "star")

    def admits(self, character: str) -> bool:
        """Whether `any` or `class` takes this character."""
        for low, high in self.ranges:
            if low <= character <= high:
                return not self.negated
        return self.negated


STAR: Final = Token(kind="star")
ANY: Final = Token(kind="any", negated=True)


def tokens(pattern: str) -> tuple[Token, ...]:
    """The pattern as `fnmatch` reads it, oddities of its classes included."""
    found: list[Token] = []
    for piece in _PIECE.findall(pattern):
        if piece[0] == "*":
            token = STAR
        elif piece == "?":
            token = ANY
        elif piece[0] == "[" and len(piece) > 1:
            token = _class(piece[1:-1])
        else:
            token = Token(kind="text", text=piece)
        if token.text and found and found[-1].text:
            token = Token(kind="text", text=found.pop().text + token.text)
        found.append(token)
    return tuple(found)


def _class(body: str) -> Token:
    """What stands between `[` and `]`.

    `fnmatch` takes empty ranges out of the text before it looks for a `!`: `[b-a!x]` means `[!x]`, and `[b-a!]` `?`.
    """
    items = [item for item in _CLASS_ITEM.findall(body) if item[0] <= item[-1]]
    negated = bool(items) and items[0][0] == "!"
    if negated:
        items[:1] = items[0][1:]  # no `!`; what it began, as in `[b-a!-z]`, is no range any more
    ranges: list[tuple[str, str]] = []
    for low, high in sorted((item[0], item[-1]) for item in items):
        if ranges and ord(low) <= ord(ranges[-1][1]) + 1:
            low, high = ranges[-1][0], max(high, ranges.pop()[1])
        ranges.append((low, high))
    if negated and not ranges:
        return ANY
    if not negated and len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return Token(kind="text", text=ranges[0][0])
    return Token(kind="class", negated=negated, ranges=tuple(ranges))
