"""Regular expressions from a model, searched in work of at most pattern times text: a model must not hang its host.

`re` backtracks, which a pattern such as `(a+)+$` makes endless. A pattern with at most one repeat of single characters
goes to `re`, the others are simulated, all alternatives at a time. Back-references and look-arounds are refused.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable
from typing import Any

parser: Any = importlib.import_module("re._parser")
op: Any = importlib.import_module("re._constants")
"""The standard library's own reading of a pattern, where it lies since Python 3.11."""

MAX_PATTERN = 200
MAX_STATES = 2_000
MAX_TEXT = 4_000
"""Characters that are searched; what lies behind them is not found."""

_Test = Callable[[str], bool]
_Split = tuple[int, ...]

_CATEGORIES: dict[Any, _Test] = {
    op.CATEGORY_DIGIT: str.isdecimal,
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_WORD: lambda c: c.isalnum() or c == "_",
    op.CATEGORY_NOT_DIGIT: lambda c: not c.isdecimal(),
    op.CATEGORY_NOT_SPACE: lambda c: not c.isspace(),
    op.CATEGORY_NOT_WORD: lambda c: not (c.isalnum() or c == "_"),
}


_EMPTY_HAS_NO_EDGE = re.search(r"\B", "") is not None
"""Python 3.14 has changed it."""


class BadPatternError(ValueError):
    """A pattern that is no regular expression, or one that is not searched here."""


class Regex:
    """A compiled pattern. Raises BadPatternError."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MAX_PATTERN:
            raise BadPatternError(f"longer than {MAX_PATTERN} characters")
        try:
            # Found anywhere: what stands for anything at either end says nothing.
            bare = re.sub(r"^(?:\.\*)+(?![*+?{])|(?<!\\)(?:\.\*)+$", "", pattern)
            tree = parser.parse(bare)
            self._quick = re.compile(bare) if _is_quick(tree) else None
        except (re.error, RecursionError, OverflowError) as error:
            raise BadPatternError(str(error)) from None
        self._flags = int(tree.state.flags)
        self._program: list[_Test | _Split | Any] = []
        if self._quick is None:
            self._sequence(tree)

    def search(self, text: str) -> bool:
        """Whether the pattern is found anywhere in the text."""
        text = text[:MAX_TEXT]
        if self._quick is not None:
            return self._quick.search(text) is not None
        live: set[int] = set()
        for at in range(len(text) + 1):
            live = self._reached({*live, 0}, text, at)
            if len(self._program) in live:
                return True
            if at < len(text):
                live = {s + 1 for s in live if callable(test := self._program[s]) and test(text[at])}
        return False

    def _reached(self, starts: Iterable[int], text: str, at: int) -> set[int]:
        """The states that are reached without taking a character."""
        seen: set[int] = set()
        todo = list(starts)
        while todo:
            state = todo.pop()
            if state in seen:
                continue
            seen.add(state)
            step = self._program[state] if state < len(self._program) else None
            if isinstance(step, tuple):
                todo += step
            elif step is not None and not callable(step) and _stands(step, text, at):
                todo.append(state + 1)
        return seen

    # ------------------------------------------------------------------------------------------ compiling

    def _sequence(self, tree: Any) -> None:
        for kind, value in tree:
            self._item(kind, value)
            if len(self._program) > MAX_STATES:
                raise BadPatternError("too large")

    def _item(self, kind: Any, value: Any) -> None:
        if kind is op.BRANCH:
            self._branch(value[1])
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT, getattr(op, "POSSESSIVE_REPEAT", None)):
            self._repeat(*value)
        elif kind is op.SUBPATTERN and not value[1] and not value[2]:
            self._sequence(value[3])
        elif kind is op.AT:
            self._program.append(value)
        else:
            self._program.append(self._test(kind, value))

    def _branch(self, branches: list[Any]) -> None:
        ends = []
        for tree in branches[:-1]:
            split = self._hole()
            self._sequence(tree)
            ends.append(self._hole())
            self._program[split] = (split + 1, len(self._program))
        self._sequence(branches[-1])
        for end in ends:
            self._program[end] = (len(self._program),)

    def _repeat(self, least: int, most: int, tree: Any) -> None:
        for _ in range(least):
            self._sequence(tree)
        if most == op.MAXREPEAT:
            split = self._hole()
            self._sequence(tree)
            self._program.append((split,))
            self._program[split] = (split + 1, len(self._program))
            return
        splits = []
        for _ in range(most - least):
            splits.append(self._hole())
            self._sequence(tree)
        for split in splits:
            self._program[split] = (split + 1, len(self._program))

    def _hole(self) -> int:
        self._program.append(())
        return len(self._program) - 1

    def _test(self, kind: Any, value: Any) -> _Test:
        """What one character must pass."""
        folds = bool(self._flags & re.IGNORECASE)
        if kind is op.LITERAL:
            wanted = {chr(value), *((chr(value).lower(), chr(value).upper()) if folds else ())}
            return wanted.__contains__
        if kind is op.NOT_LITERAL:
            return _opposite(self._test(op.LITERAL, value))
        if kind is op.ANY:
            return (lambda c: True) if self._flags & re.DOTALL else (lambda c: c != "\n")
        if kind is op.CATEGORY:
            return _CATEGORIES[value]
        if kind is op.RANGE:
            low, high = value
            return lambda c: any(low <= ord(x) <= high for x in ({c, *c.lower(), *c.upper()} if folds else c))
        if kind is op.IN:
            is_negated = value[0][0] is op.NEGATE
            tests = [self._test(*part) for part in value[is_negated:]]
            return (lambda c: not any(t(c) for t in tests)) if is_negated else (lambda c: any(t(c) for t in tests))
        raise BadPatternError(f"`{str(kind).lower()}` is not searched here")


def _opposite(test: _Test) -> _Test:
    return lambda c: not test(c)


def _is_quick(tree: Any) -> bool:
    """Whether `re` takes no more than the square of the text: one repeat at most, and of single characters."""
    kinds = [kind for kind, _ in tree]
    single = (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN)
    repeats = [value for kind, value in tree if kind in (op.MAX_REPEAT, op.MIN_REPEAT)]
    is_plain = all(kind in (*single, op.AT, op.MAX_REPEAT, op.MIN_REPEAT) for kind in kinds)
    return is_plain and len(repeats) <= 1 and all(len(v[2]) == 1 and v[2][0][0] in single for v in repeats)


def _stands(place: Any, text: str, at: int) -> bool:
    """Whether an anchor holds there."""
    before, after = text[at - 1 : at] if at else "", text[at : at + 1]
    if place in (op.AT_BEGINNING, op.AT_BEGINNING_STRING):
        return at == 0
    if place is op.AT_END_STRING:
        return not after
    if place is op.AT_END:
        return not after or (after == "\n" and at == len(text) - 1)
    if not text:
        return place is op.AT_NON_BOUNDARY and _EMPTY_HAS_NO_EDGE
    is_word = _CATEGORIES[op.CATEGORY_WORD]
    is_edge = (bool(before) and is_word(before)) != (bool(after) and is_word(after))
    return is_edge == (place is op.AT_BOUNDARY)
