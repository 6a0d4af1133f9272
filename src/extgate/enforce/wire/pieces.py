"""Pieces of a text between marks, found in one pass: what somebody writes must not cost more time than its length."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

_NAME = re.compile(r"<name>([^<]*)</name>")
_BLANKS = " \t"
_ITEM = "    - "


class Piece(NamedTuple):
    """Where a piece begins and ends, and the name of what it speaks of."""

    start: int
    name: str
    end: int


class Ahead:
    """The first match of a pattern from a place on. Places must not fall: nothing is looked for twice."""

    def __init__(self, pattern: re.Pattern[str], text: str, end: int) -> None:
        self._pattern, self._text, self._end = pattern, text, end
        self._found: re.Match[str] | None = None
        self._is_over = False

    def after(self, place: int) -> re.Match[str] | None:
        """That match; None when there is none."""
        if not self._is_over and (self._found is None or self._found.start() < place):
            self._found = self._pattern.search(self._text, place, self._end)
            self._is_over = self._found is None
        return self._found


def named(text: str, tags: Sequence[str], start: int, end: int) -> Iterator[Piece]:
    """Every `<tag>…<name>NAME</name>…</tag>`, the blanks before it and its line end with it."""
    opening = re.compile(f"<({'|'.join(tags)})>")
    names = Ahead(_NAME, text, end)
    closings = {tag: Ahead(re.compile(f"</{tag}>"), text, end) for tag in tags}
    at = least = start
    while (found := opening.search(text, at, end)) is not None:
        at = found.end()
        name, closing = names.after(at), closings[found[1]].after(at)
        if name is not None and closing is not None and name.end() <= closing.start():
            at = _line_end(text, closing.end(), end)
            yield Piece(_before_blanks(text, found.start(), least), name[1], at)
            least = at


def between(text: str, opening: re.Pattern[str], closing: re.Pattern[str], start: int, end: int) -> Iterator[Piece]:
    """Every piece from an opening, with its `name`, to the first closing behind it."""
    closings = Ahead(closing, text, end)
    at = start
    while (found := opening.search(text, at, end)) is not None and (last := closings.after(found.end())) is not None:
        at = last.end()
        yield Piece(found.start(), found["name"], at)


def with_blanks(text: str, pieces: Iterable[Piece], start: int, end: int) -> Iterator[Piece]:
    """The pieces, each with the blanks before it and its line end."""
    least = start
    for piece in pieces:
        begin, least = _before_blanks(text, piece.start, least), _line_end(text, piece.end, end)
        yield Piece(begin, piece.name, least)


def _before_blanks(text: str, at: int, least: int) -> int:
    while at > least and text[at - 1] in _BLANKS:
        at -= 1
    return at


def _line_end(text: str, at: int, end: int) -> int:
    while at < end and text[at] in _BLANKS:
        at += 1
    return at + 1 if at < end and text[at] == "\n" else at


def tree(text: str, start: int, end: int) -> Iterator[Piece]:
    """Hermes' index: every line `    - NAME: …`, with the line of its category where it is alone in that."""
    before: tuple[int, int] | None = None
    at = start
    while (stop := text.find("\n", at, end)) >= 0:
        is_line = at == 0 or text[at - 1] == "\n"
        if is_line and text.startswith(_ITEM, at) and stop > at + len(_ITEM):
            name_at = at + len(_ITEM)
            colon = text.find(": ", name_at + 1, stop)
            is_alone = before is not None and not text.startswith(_ITEM, stop + 1, end) and _is_category(text, *before)
            begin = before[0] if before is not None and is_alone else at
            yield Piece(begin, text[name_at : colon if colon >= 0 else stop], stop + 1)
        before = (at, stop) if is_line else None
        at = stop + 1


def _is_category(text: str, at: int, stop: int) -> bool:
    return text.startswith("  ", at) and not text[at + 2].isspace() and text.find(":", at + 3, stop) >= 0
