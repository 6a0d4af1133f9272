"""Glob patterns: `fnmatch.fnmatchcase` or equal text; one name against many patterns, or many names against few.

`tokens` is the one reading of a pattern; all else is an index over it, and how each works is told in docs/matching.md.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from itertools import accumulate, chain, groupby, pairwise
from typing import Final, Literal
from unicodedata import combining, normalize

from extgate.errors import PatternError

MAX_PATTERN: Final = 1024
"""Characters in a pattern; a longer one raises PatternError."""

_LONG: Final = 256  # characters from which runs of marks are sorted here: `normalize` alone is quadratic in a run
_MEMO: Final = 16_384  # names that one set remembers
_FEW: Final = 8  # rows up to which trying each beats looking for pieces of them
_MANY: Final = 64  # patterns with wildcards from which the accelerator is worth its import
_WIDEST: Final = 3  # characters in a piece
_BROAD: Final = 64  # rest patterns, and rows found for each name, up to which an index over the names pays
_NONE: Final = 1 << 62  # no pattern: more than any index

# Possessive, so that `[!]` and `[]` are not closed by their own bracket.
_PIECE = re.compile(r"\*+|\?|\[!?+\]?+[^]]*\]|[^*?\[]+|\[")


def nfc(text: str) -> str:
    """The text in Unicode normal form C."""
    if text.isascii():
        return text
    return normalize("NFC", text if len(text) <= _LONG else "".join(_with_marks_sorted(text)))


def _with_marks_sorted(text: str) -> Iterator[str]:
    characters = chain.from_iterable(map(partial(normalize, "NFD"), text))
    for is_mark, run in groupby(characters, lambda character: combining(character) > 0):
        yield from sorted(run, key=combining if is_mark else lambda _: 0)


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
    """Whether some `[` has no closing `]`, so that it stands for itself."""
    return "[" in _PIECE.findall(pattern)


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
        return len(self.text) if self.text else int(self is not STAR)

    @property
    def regex(self) -> str:
        """The same for `re` with DOTALL; not for `star`."""
        if self.text:
            return re.escape(self.text)
        if self is ANY:
            return "."
        ranges = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in self.ranges)
        return f"[{'^' * self.negated}{ranges}]" if ranges else "(?!)"

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
    chunks = _chunks(body)
    for k in range(len(chunks) - 1, 0, -1):
        if chunks[k - 1][-1] > chunks[k][0]:
            chunks[k - 1 : k + 1] = [chunks[k - 1][:-1] + chunks[k][1:]]
    if chunks == ["!"]:
        return ANY
    negated = chunks[0].startswith("!")
    if negated:
        chunks[0] = chunks[0][1:]
    ranges = [(character, character) for character in "".join(chunks)]
    ranges += [(left[-1], right[0]) if left else ("-", "-") for left, right in pairwise(chunks)]
    merged = _merged(ranges)
    if len(merged) == 1 and merged[0][0] == merged[0][1] and not negated:
        return Token(kind="text", text=merged[0][0])
    return Token(kind="class", negated=negated, ranges=merged)


def _chunks(body: str) -> list[str]:
    """The body cut at the hyphens that make a range: not the first character, nor one too near to the last such."""
    chunks, start = [], 0
    hyphen = body.find("-", 2 if body[0] == "!" else 1)
    while hyphen >= 0:
        chunks.append(body[start:hyphen])
        start, hyphen = hyphen + 1, body.find("-", hyphen + 3)
    if start < len(body):
        return [*chunks, body[start:]]
    return [*chunks[:-1], chunks[-1] + "-"]


def _merged(ranges: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    merged: list[tuple[str, str]] = []
    for low, high in sorted(ranges):
        if merged and ord(low) <= ord(merged[-1][1]) + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


class _Part:
    """What stands before, between or behind stars; it takes `width` characters."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.width = sum(token.width for token in tokens)
        self.text = tokens[0].text if len(tokens) == 1 else ""

    def fits(self, name: str, at: int) -> bool:
        """Whether it matches there; as many characters must be left."""
        for token in self.tokens:
            if not (name.startswith(token.text, at) if token.text else token.admits(name[at])):
                return False
            at += token.width
        return True

    def stop(self, name: str, at: int, end: int) -> int:
        """Where its first match between `at` and `end` stops, or -1."""
        if self.text:
            start = name.find(self.text, at, end)
            return start if start < 0 else start + self.width
        match = self._regex.search(name, at, end)
        return match.end() if match else -1

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile("".join(token.regex for token in self.tokens), re.DOTALL)


class _Glob:
    """One pattern, cut at its stars.

    start, end, need: the text that every match starts with, ends with, and the longest that it holds; may be empty.
    """

    def __init__(self, pattern: str) -> None:
        read = tokens(pattern)
        self.need = max((token.text for token in read), key=len, default="")
        self.width = sum(token.width for token in read)
        self.start, self.end = (read[0].text, read[-1].text) if read else ("", "")
        cut: list[list[Token]] = [[]]
        for token in read:
            if token is STAR:
                cut.append([])
            else:
                cut[-1].append(token)
        self.head, *self.middle = map(_Part, cut)
        self.tail = self.middle.pop() if self.middle else None

    def accepts(self, name: str) -> bool:
        """Whether the pattern matches, in work of at most its own length times the name's.

        What stands between two stars is taken where it is found first and never given back.
        """
        end = len(name)
        if end < self.width or not self.head.fits(name, 0):
            return False
        if self.tail is None:
            return end == self.width
        end -= self.tail.width
        if not self.tail.fits(name, end):
            return False
        at = self.head.width
        for part in self.middle:
            at = part.stop(name, at, end)
            if at < 0:
                return False
        return True


_glob = lru_cache(maxsize=4096)(_Glob)


def matches(name: str, pattern: str) -> bool:
    """Whether this one pattern matches the name or equals it."""
    name, pattern = nfc(name), clean(pattern)
    return name == pattern or _glob(pattern).accepts(name)


def _form(pattern: str) -> tuple[Literal["exact", "prefix", "suffix", "infix", "rest"], str]:
    """What kind of pattern it is and, except for `rest`, the only text in it."""
    text = pattern.strip("*")
    if not is_literal(text):
        return "rest", ""
    if text == pattern:
        return "exact", text
    if not text or pattern[0] != "*":
        return "prefix", text
    return ("infix" if pattern[-1] == "*" else "suffix"), text


_Row = tuple[int, str, Callable[[str], bool] | None]
"""A pattern's index, a text it needs, and what a name that holds this text must pass, unless holding it is enough."""
_Groups = Collection[Sequence[_Row]]


def _row(index: int, pattern: str) -> _Row:
    form, text = _form(pattern)
    if form == "prefix":
        return index, text, lambda name: name.startswith(text)
    if form == "suffix":
        return index, text, lambda name: name.endswith(text)
    if form == "infix":
        return index, text, None
    glob = _Glob(pattern)
    return index, glob.need, glob.accepts


class _Prefixes:
    """Texts that names may start with: the longest by one search in a sorted list, the shorter ones by links."""

    def __init__(self, indexes: Mapping[str, Sequence[int]]) -> None:
        self._texts = sorted(indexes)
        self._indexes = [indexes[text] for text in self._texts]
        self._shorter: list[int] = []
        self._first: list[int] = []
        nested: list[int] = []
        for at, text in enumerate(self._texts):
            while nested and not text.startswith(self._texts[nested[-1]]):
                nested.pop()
            self._shorter.append(nested[-1] if nested else -1)
            self._first.append(min(self._indexes[at][0], self._first[nested[-1]] if nested else _NONE))
            nested.append(at)
        self._first.append(_NONE)  # for -1

    def _longest(self, name: str) -> int:
        at = bisect_right(self._texts, name) - 1
        while at >= 0 and not name.startswith(self._texts[at]):
            at = self._shorter[at]
        return at

    def first(self, name: str) -> int:
        """The lowest index whose text starts the name."""
        return self._first[self._longest(name)]

    def all(self, name: str) -> Iterator[int]:
        """Every index whose text starts the name, in no order."""
        at = self._longest(name)
        while at >= 0:
            yield from self._indexes[at]
            at = self._shorter[at]


class _Pieces:
    """Which of many patterns may match a name, told by small pieces of the texts they need.

    A text of `2 * width - 1` characters, wherever it lies in a name cut every `width` characters, covers one whole
    piece. So for each way to lie one piece of the text is filed, the one that fewest texts share, and a name is cut
    and looked up once for each width.
    """

    def __init__(self, rows: Sequence[_Row]) -> None:
        by_width: dict[int, list[_Row]] = {}
        for row in rows:
            by_width.setdefault(min((len(row[1]) + 1) // 2, _WIDEST), []).append(row)
        few = [width for width in by_width if not width or len(by_width[width]) <= _FEW]
        self._always = sorted(chain.from_iterable(by_width.pop(width) for width in few))
        self._tables = [(width, self._table(width, rows)) for width, rows in by_width.items()]

    @staticmethod
    def _table(width: int, rows: Sequence[_Row]) -> dict[str, list[_Row]]:
        cuts = [[need[at : at + width] for at in range(len(need) - width + 1)] for _, need, _ in rows]
        uses = Counter(chain.from_iterable(cuts))
        table: dict[str, list[_Row]] = {}
        for row, pieces in zip(rows, cuts, strict=True):
            for piece in {min(pieces[lag::width], key=uses.__getitem__) for lag in range(width)}:
                table.setdefault(piece, []).append(row)
        return table

    def groups(self, name: str) -> _Groups:
        """Rows that may match, each group ascending; all that do are among them."""
        groups = {"": self._always}
        for width, table in self._tables:
            for at in range(0, len(name) - width + 1, width):
                piece = name[at : at + width]
                if piece in table:
                    groups[piece] = table[piece]
        return groups.values()


_Search = Callable[[str, bool], list[tuple[int, int, int]]]


@cache
def _aho_corasick() -> Callable[[list[str]], _Search] | None:
    """The optional accelerator: from texts to what finds them all in a name. Imported when a set first needs it."""
    try:
        from ahocorasick_rs import AhoCorasick  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    return lambda texts: AhoCorasick(texts).find_matches_as_indexes


class _Automaton:
    """The same by Aho-Corasick: all texts in one pass over the name. It knows no lone surrogates: these go round it."""

    def __init__(self, rows: Sequence[_Row], build: Callable[[list[str]], _Search]) -> None:
        self._rows = rows
        by_text: dict[str, list[_Row]] = {}
        for row in rows:
            text = row[1].encode("utf-8", "replace").decode()
            by_text.setdefault(text if text == row[1] else "", []).append(row)
        self._always = by_text.pop("", [])
        self._by_text = list(by_text.values())
        self._search = build(list(by_text))

    def groups(self, name: str) -> _Groups:
        """Rows that may match, each group ascending; all that do are among them."""
        try:
            hits = self._search(name, True)
        except UnicodeEncodeError:
            return (self._rows,)
        groups = [self._always]
        if hits:
            groups += [self._by_text[text] for text in {hit[0] for hit in hits}]
        return groups


class PatternSet:
    """Patterns in an order that counts, compiled once: which is the first that matches a name?"""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = tuple(map(clean, patterns))
        self._memo: dict[str, int] = {}
        build = _aho_corasick() if sum(not is_literal(pattern) for pattern in self.patterns) >= _MANY else None
        tables: dict[str, dict[str, list[int]]] = {"exact": {}} if build else {"exact": {}, "prefix": {}, "suffix": {}}
        rows: list[_Row] = []
        self.rest = 0
        for index, pattern in enumerate(self.patterns):
            form, text = _form(pattern)
            if form in tables:
                tables[form].setdefault(text, []).append(index)
            else:
                rows.append(_row(index, pattern))
            if form == "rest":
                tables["exact"].setdefault(pattern, []).append(index)
        self._exact = tables["exact"]
        heads = tables.get("prefix")
        tails = {text[::-1]: indexes for text, indexes in tables.get("suffix", {}).items()}
        self._heads = _Prefixes(heads) if heads else None
        self._tails = _Prefixes(tails) if tails else None
        self._groups: Callable[[str], _Groups] = lambda name: (rows,)
        if build:
            self._groups = _Automaton(rows, build).groups
        elif len(rows) > _FEW:
            self._groups = _Pieces(rows).groups

    def __len__(self) -> int:
        return len(self.patterns)

    def first(self, name: str) -> int:
        """The index of the first pattern in the list that matches, or -1."""
        index = self._memo.get(name)
        if index is None:
            index = self._first(nfc(name))
            if len(self._memo) >= _MEMO:
                self._memo.clear()
            if len(name) <= MAX_PATTERN:
                self._memo[name] = index
        return index

    def first_of(self, names: Iterable[str]) -> int:
        """The lowest index over several spellings, or -1."""
        return min((index for index in map(self.first, names) if index >= 0), default=-1)

    def all(self, name: str) -> tuple[int, ...]:
        """The indexes of all patterns that match, ascending."""
        name = nfc(name)
        found = set(self._exact.get(name, ()))
        if self._heads:
            found.update(self._heads.all(name))
        if self._tails:
            found.update(self._tails.all(name[::-1]))
        for index, need, test in chain.from_iterable(self._groups(name)):
            if need in name and (test is None or test(name)):
                found.add(index)
        return tuple(sorted(found))

    def _first(self, name: str) -> int:
        exact = self._exact.get(name)
        best = exact[0] if exact else _NONE
        if self._heads:
            best = min(best, self._heads.first(name))
        if self._tails:
            best = min(best, self._tails.first(name[::-1]))
        for group in self._groups(name):
            for index, need, test in group:
                if index >= best:
                    break
                if need in name and (test is None or test(name)):
                    best = index
                    break
        return best if best < _NONE else -1


class _Sorted:
    """Texts in order, with the row each came from."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._rows = sorted(range(len(texts)), key=texts.__getitem__)
        self._texts = [texts[row] for row in self._rows]

    def equal_to(self, text: str) -> list[int]:
        low = bisect_left(self._texts, text)
        return self._rows[low : bisect_right(self._texts, text, low)]

    def starting_with(self, text: str) -> list[int]:
        low = bisect_left(self._texts, text)
        return self._rows[low : bisect_right(self._texts, text, low, key=lambda name: name[: len(text)])]


class NameIndex:
    """Names, of which many patterns ask: each costs a search or a scan and its answer, not a look at every name."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(map(nfc, names))

    def rows(self, pattern: str) -> Sequence[int]:
        """The positions of the names that match, ascending."""
        return sorted(self._rows(clean(pattern)))

    def first(self, patterns: PatternSet) -> list[int]:
        """For each name the index of the first pattern that matches, or -1."""
        most = _BROAD * len(self._names)
        if len(patterns) > len(self._names) or patterns.rest > _BROAD:
            return list(map(patterns.first, self._names))
        first = [-1] * len(self._names)
        for index in range(len(patterns) - 1, -1, -1):
            rows = self._rows(patterns.patterns[index])
            most -= len(rows)
            if most < 0:
                return list(map(patterns.first, self._names))
            for row in rows:
                first[row] = index
        return first

    @cached_property
    def _ahead(self) -> _Sorted:
        return _Sorted(self._names)

    @cached_property
    def _behind(self) -> _Sorted:
        return _Sorted([name[::-1] for name in self._names])

    @cached_property
    def _joined(self) -> tuple[str, list[int]]:
        return "".join(self._names), list(accumulate(map(len, self._names)))

    def _rows(self, pattern: str) -> Collection[int]:
        form, text = _form(pattern)
        if form == "exact":
            return self._ahead.equal_to(text)
        if form == "prefix":
            return self._ahead.starting_with(text)
        if form == "suffix":
            return self._behind.starting_with(text[::-1])
        if form == "infix":
            return self._holding(text)
        glob = _glob(pattern)
        found = {row for row in self._near(glob) if glob.accepts(self._names[row])}
        return found.union(self._ahead.equal_to(pattern))

    def _near(self, glob: _Glob) -> Iterable[int]:
        """The rows that are left to look at, by one text of the pattern."""
        if glob.start:
            return self._ahead.starting_with(glob.start)
        if glob.end:
            return self._behind.starting_with(glob.end[::-1])
        return self._holding(glob.need) if glob.need else range(len(self._names))

    def _holding(self, text: str) -> list[int]:
        joined, ends = self._joined
        rows: list[int] = []
        at = joined.find(text)
        while at >= 0:
            row = bisect_right(ends, at)
            if at + len(text) <= ends[row]:
                rows.append(row)
                at = ends[row] - 1
            at = joined.find(text, at + 1)
        return rows
