"""Glob patterns: `fnmatch.fnmatchcase` or equal text; one name against many patterns, or many names against few.

How each index works, and what it costs, is told in docs/matching.md.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import accumulate, chain, pairwise
from typing import Final

from extgate.core.glob import ANY, MAX_PATTERN, STAR, Token, clean, is_literal, nfc, tokens, unclosed_bracket

__all__ = ["ANY", "MAX_PATTERN", "STAR", "NameIndex", "PatternSet", "Token", "clean", "is_literal", "matches", "nfc"]
__all__ += ["tokens", "unclosed_bracket"]

_MEMO: Final = 16_384  # names that one set remembers
_FEW: Final = 8  # rows up to which trying each beats looking for pieces of them
_MANY: Final = 64  # patterns with wildcards from which the accelerator is worth its import
_SMALL: Final = 10_000  # characters of text up to which the faster kind of automaton is quick to build
_WIDEST: Final = 3  # characters in a piece
_BROAD: Final = 64  # scanned patterns, and rows found for each name, up to which an index over the names pays
_NONE: Final = 1 << 62  # no pattern: more than any index


class _Glob:
    """One pattern, cut at its stars.

    start, end, need: what every match starts with, ends with, and the longest text that it holds; each may be empty.
    form: `exact`, `prefix`, `suffix` or `infix` if the place of `need` alone decides, `rest` if not.
    """

    def __init__(self, pattern: str) -> None:
        read = tokens(pattern)
        texts = [token.text for token in read] or [""]
        self.start, self.need, self.end = texts[0], max(texts, key=len), texts[-1]
        forms = {self.need: "exact", f"{self.need}*": "prefix", f"*{self.need}": "suffix", f"*{self.need}*": "infix"}
        self.form = forms.get(pattern, "rest")
        stars = [at for at, token in enumerate(read) if token is STAR]
        self._head, *self._middle = (read[at + 1 : end] for at, end in pairwise([-1, *stars, len(read)]))
        self._tail = self._middle.pop() if stars else None
        self._before, self._after = (sum(token.width for token in part or ()) for part in (self._head, self._tail))

    def accepts(self, name: str) -> bool:
        """Whether the pattern matches, in work of at most its own length times the name's."""
        at, end = self._before, len(name) - self._after
        if at > end or not _fits(self._head, name, 0):
            return False
        if self._tail is None:
            return at == end
        return _fits(self._tail, name, end) and (not self._middle or self._inner.match(name, at, end) is not None)

    @cached_property
    def _inner(self) -> re.Pattern[str]:
        """What stands between stars: each part where it is found first, and never given back."""
        parts = ("".join(map(_regex, part)) for part in self._middle)
        return re.compile("".join(f"(?>.*?{part})" for part in parts), re.DOTALL)


def _fits(part: Iterable[Token], name: str, at: int) -> bool:
    for token in part:
        if not (name.startswith(token.text, at) if token.text else token.admits(name[at])):
            return False
        at += token.width
    return True


def _regex(token: Token) -> str:
    if token.text or token is ANY:
        return re.escape(token.text) or "."
    ranges = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in token.ranges)
    return f"[{'^' * token.negated}{ranges}]" if ranges else "(?!)"


_glob = lru_cache(maxsize=1024)(_Glob)


def matches(name: str, pattern: str) -> bool:
    """Whether this one pattern matches the name or equals it."""
    name, pattern = nfc(name), clean(pattern)
    return name == pattern or _glob(pattern).accepts(name)


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


# Index, a text that matches need, and what a name that holds it must pass (None: nothing more).
_Row = tuple[int, str, Callable[[str], bool] | None]
# Rows that may match a name, each group ascending; all that do match are among them.
_Groups = Callable[[str], Iterable[Sequence[_Row]]]
# Which of many texts a name holds, overlapping ones too if that is true.
_Search = Callable[[str, bool], list[str]]


def _row(index: int, glob: _Glob) -> _Row:
    need = glob.need
    if glob.form == "prefix":
        return index, need, lambda name: name.startswith(need)
    if glob.form == "suffix":
        return index, need, lambda name: name.endswith(need)
    return index, need, None if glob.form == "infix" else glob.accepts


def _by_pieces(rows: Sequence[_Row]) -> _Groups:
    """Rows found by small pieces of the texts they need.

    A text of `2 * width - 1` characters, wherever it lies in a name cut every `width` characters, covers one whole
    piece. So for each way to lie one piece of it is filed, and a name is cut and looked up once for each width.
    """
    by_width: dict[int, list[_Row]] = {}
    for row in rows:
        by_width.setdefault(min((len(row[1]) + 1) // 2, _WIDEST), []).append(row)
    few = [width for width in by_width if not width or len(by_width[width]) <= _FEW]
    always = sorted(chain.from_iterable(map(by_width.pop, few)))
    tables = [(width, _table(width, some)) for width, some in by_width.items()]

    def groups(name: str) -> Iterable[Sequence[_Row]]:
        found: dict[str, Sequence[_Row]] = {"": always}
        for width, table in tables:
            for at in range(0, len(name) - width + 1, width):
                piece = name[at : at + width]
                if piece in table:
                    found[piece] = table[piece]
        return found.values()

    return groups if tables else lambda name: (always,)


def _table(width: int, rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    cuts = [[need[at : at + width] for at in range(len(need) - width + 1)] for _, need, _ in rows]
    uses = Counter(chain.from_iterable(cuts))
    table: dict[str, list[_Row]] = {}
    for row, pieces in zip(rows, cuts, strict=True):
        for piece in {min(pieces[lag::width], key=uses.__getitem__) for lag in range(width)}:
            table.setdefault(piece, []).append(row)
    return table


@cache
def _aho_corasick() -> Callable[[list[str]], _Search] | None:
    """The optional accelerator, imported when a set is first large enough for it; None if it is not installed."""
    try:
        from ahocorasick_rs import AhoCorasick, Implementation  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None

    def build(texts: list[str]) -> _Search:
        how = Implementation.DFA if sum(map(len, texts)) <= _SMALL else Implementation.ContiguousNFA
        search: _Search = AhoCorasick(texts, implementation=how, store_patterns=True).find_matches_as_strings
        return search

    return build


def _by_texts(rows: Sequence[_Row], build: Callable[[list[str]], _Search]) -> _Groups:
    """Rows found by all the texts they need, in one pass over the name. Lone surrogates, which it refuses, go round."""
    by_text: dict[str, list[_Row]] = {}
    for row in rows:
        is_utf8 = row[1].encode("utf-8", "replace").decode() == row[1]
        by_text.setdefault(row[1] if is_utf8 else "", []).append(row)
    always = by_text.pop("", [])
    nothing = (always,) if always else ()
    search, rows_of = build(list(by_text)), by_text.__getitem__

    def groups(name: str) -> Iterable[Sequence[_Row]]:
        if len(name) > MAX_PATTERN:  # nested texts could be found as often as its length squared
            return (rows,)
        try:
            texts = search(name, True)
        except UnicodeEncodeError:
            return (rows,)
        return chain(nothing, map(rows_of, set(texts))) if texts else nothing

    return groups


class PatternSet:
    """Patterns in an order that counts, compiled once: which is the first that matches a name?"""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = tuple(map(clean, patterns))
        self.scanned = 0  # patterns that are neither literal nor a mere prefix or suffix
        self._memo: dict[str, int] = {}
        wild = sum(not is_literal(pattern) for pattern in self.patterns)
        build = _aho_corasick() if wild >= _MANY else None
        tables: dict[str, dict[str, list[int]]] = {"exact": {}, "prefix": {}, "suffix": {}}
        rows: list[_Row] = []
        for index, pattern in enumerate(self.patterns):
            glob = None if is_literal(pattern) else _Glob(pattern)
            if not glob or "[" in pattern:
                tables["exact"].setdefault(pattern, []).append(index)
            if glob and glob.form in ("prefix", "suffix") and wild > _FEW and not build:
                tables[glob.form].setdefault(glob.need, []).append(index)
            elif glob:
                rows.append(_row(index, glob))
            self.scanned += glob is not None and glob.form in ("infix", "rest")
        self._equal = tables["exact"]
        self._exact = {text: indexes[0] for text, indexes in self._equal.items()}
        self._heads = _Prefixes(tables["prefix"])
        self._tails = _Prefixes({text[::-1]: indexes for text, indexes in tables["suffix"].items()})
        self._has_affixes = bool(tables["prefix"] or tables["suffix"])
        self._groups = _by_texts(rows, build) if build else _by_pieces(rows)

    def __len__(self) -> int:
        return len(self.patterns)

    def first(self, name: str) -> int:
        """The index of the first pattern in the list that matches, or -1."""
        memo = self._memo
        known = memo.get(name)
        if known is not None:
            return known
        text = name if name.isascii() else nfc(name)
        best = self._exact.get(text, _NONE)
        if self._has_affixes:
            best = min(best, self._heads.first(text), self._tails.first(text[::-1]))
        for group in self._groups(text):
            for index, need, test in group:
                if index >= best:
                    break
                if need in text and (test is None or test(text)):
                    best = index
                    break
        if best == _NONE:
            best = -1
        if len(memo) >= _MEMO:
            memo.clear()
        if len(name) <= MAX_PATTERN:
            memo[name] = best
        return best

    def first_of(self, names: Iterable[str]) -> int:
        """The lowest index over several spellings, or -1."""
        return min((index for index in map(self.first, names) if index >= 0), default=-1)

    def all(self, name: str) -> tuple[int, ...]:
        """The indexes of all patterns that match, ascending."""
        name = nfc(name)
        found = {*self._equal.get(name, ()), *self._heads.all(name), *self._tails.all(name[::-1])}
        for index, need, test in chain.from_iterable(self._groups(name)):
            if need in name and (test is None or test(name)):
                found.add(index)
        return tuple(sorted(found))


class NameIndex:
    """Names, of which patterns ask: each costs a search or one scan, and its answer, not a look at every name."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(map(nfc, names))
        self._ahead = _ordered(self._names)
        self._behind = _ordered([name[::-1] for name in self._names])
        self._joined, self._ends = "".join(self._names), list(accumulate(map(len, self._names)))

    def rows(self, pattern: str) -> Sequence[int]:
        """The positions of the names that match, ascending."""
        return sorted(self._rows(clean(pattern)))

    def first(self, patterns: PatternSet) -> list[int]:
        """For each name the index of the first pattern that matches, or -1."""
        first = [-1] * len(self._names)
        few = len(patterns) <= len(first) and patterns.scanned <= _BROAD
        room = _BROAD * len(first) if few else -1
        for index in range(len(patterns) - 1, -1, -1):
            rows = self._rows(patterns.patterns[index]) if room >= 0 else ()
            room -= len(rows)
            if room < 0:  # so much to find that each name on its own is cheaper
                return list(map(patterns.first, self._names))
            for row in rows:
                first[row] = index
        return first

    def _rows(self, pattern: str) -> Collection[int]:
        glob = _glob(pattern)
        rows = self._near(glob)
        if glob.form in ("exact", "rest"):
            rows = [row for row in rows if glob.accepts(self._names[row])]
        if "[" in pattern:
            return {*rows, *(row for row in _starting(self._ahead, pattern) if self._names[row] == pattern)}
        return rows

    def _near(self, glob: _Glob) -> Sequence[int]:
        """Rows that may match, told by one text of the pattern; all that do are among them."""
        if glob.start:
            return _starting(self._ahead, glob.start)
        if glob.end:
            return _starting(self._behind, glob.end[::-1])
        return self._holding(glob.need) if glob.need else range(len(self._names))

    def _holding(self, text: str) -> list[int]:
        rows: list[int] = []
        at = self._joined.find(text)
        while at >= 0:
            row = bisect_right(self._ends, at)
            if at + len(text) <= self._ends[row]:
                rows.append(row)
                at = self._ends[row] - 1
            at = self._joined.find(text, at + 1)
        return rows


_Ordered = tuple[list[str], list[int]]  # sorted texts, and the row of each


def _ordered(texts: Sequence[str]) -> _Ordered:
    rows = sorted(range(len(texts)), key=texts.__getitem__)
    return [texts[row] for row in rows], rows


def _starting(order: _Ordered, text: str) -> list[int]:
    texts, rows = order
    low = bisect_left(texts, text)
    return rows[low : bisect_right(texts, text, low, key=lambda found: found[: len(text)])]
