"""Regular expressions that runtimes' rules hold, as globs, where a glob can say the same."""

from __future__ import annotations

import re

from extgate.dialects.commands import literal

MAX_GLOBS = 64
_CLASS = re.compile(r"\[(\^?)([^\]\\]+)\]")


def as_globs(pattern: str) -> tuple[str, ...] | None:
    """Globs that together match the texts in which the expression is found; None when none can say it.

    Read: literal text, escaped punctuation, `.`, `.*`, `.+`, `[abc]`, `(a|b)`, `^`, `$`, alternatives.
    """
    found: list[str] = []
    for way in _alternatives(pattern) or []:
        start, end = way.startswith("^"), way.endswith("$") and not way.endswith("\\$")
        globs = _sequence(way[1 if start else 0 : len(way) - 1 if end else None])
        if globs is None:
            return None
        found += [("" if start else "*") + glob + ("" if end else "*") for glob in globs]
    return tuple(dict.fromkeys(found)) if 0 < len(found) <= MAX_GLOBS else None


def _alternatives(text: str) -> list[str] | None:
    """The text cut at `|` outside groups and classes; None when brackets do not close."""
    found, depth, start, at = [], 0, 0, 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
            continue
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth < 0:
            return None
        if char == "|" and depth == 0:
            found.append(text[start:at])
            start = at + 1
        at += 1
    return [*found, text[start:]] if depth == 0 else None


def _sequence(text: str) -> list[str] | None:
    globs, at = [""], 0
    while at < len(text):
        piece, at = _piece(text, at)
        if piece is None:
            return None
        globs = [glob + part for glob in globs for part in piece]
        if len(globs) > MAX_GLOBS:
            return None
    return globs


def _piece(text: str, at: int) -> tuple[list[str] | None, int]:
    """The globs of one part, and where the next begins."""
    char = text[at]
    after = at + 1
    if char == "\\" and at + 1 < len(text) and not text[at + 1].isalnum():
        part, after = [literal(text[at + 1])], at + 2
    elif char == ".":
        quantifier = text[after : after + 1]
        if quantifier in ("*", "+"):
            lazy = text[after + 1 : after + 2] == "?"
            return ["*" if quantifier == "*" else "?*"], after + 1 + lazy
        part = ["?"]
    elif char == "[" and (found := _CLASS.match(text, at)):
        part, after = [f"[{'!' if found[1] else ''}{found[2]}]"], found.end()
    elif char == "(":
        end = _closing(text, at)
        inner = _alternatives(text[at + 1 : end].removeprefix("?:")) if end else None
        ways = [_sequence(way) for way in inner or []]
        if not ways or end is None or any(way is None for way in ways):
            return None, at
        part, after = [glob for way in ways for glob in way or ()], end + 1
    elif char in "\\*+?{}[]()^$|":
        return None, at
    else:
        part = [literal(char)]
    return (None, at) if text[after : after + 1] in ("*", "+", "?", "{") and text[after : after + 1] else (part, after)


def _closing(text: str, at: int) -> int | None:
    depth = 0
    for place in range(at, len(text)):
        if text[place - 1 : place] == "\\" and place > at:
            continue
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return None
