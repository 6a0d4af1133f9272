"""Is there something that lies in one box of each of some unions, and in no box of another?

A box says of each of a few texts (a server's name, an item's) which globs it must be in and which not. A witness is
looked for text by text; where a forbidden box still holds it, one of the box's conditions has to fail, and each is
tried in turn. That is exact, and it ends, because every turn rules a condition out for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from extgate.analysis.alphabet import Alphabet
from extgate.analysis.antichain import shortest
from extgate.analysis.budget import BudgetSpent, Meter
from extgate.analysis.globs import Glob, everything
from extgate.analysis.merging import merged
from extgate.analysis.pile import Pile, broadest, narrowest

Letters = tuple[int, ...]

_POLISH = 20_000  # units spent at most on making one witness shorter
_DEEPEST = 400  # conditions ruled out one after the other, before it is taken for too much work
_NO_LIMIT = 1 << 30
_TRIED = 300  # boxes that are asked for names before any search
_FEW = 200  # globs up to which comparing each with each pays


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One of the texts that a thing has. is_optional: it may be missing, and is then in no glob."""

    name: str
    min_length: int = 1
    max_length: int = 256
    is_optional: bool = False

    def admits(self, word: Letters) -> bool:
        """Whether it is neither too short nor too long."""
        return self.min_length <= len(word) <= self.max_length


class Condition(NamedTuple):
    """The text is in the glob, or with `is_not` is not in it."""

    text: str
    glob: Glob
    is_not: bool = False


Box = tuple[Condition, ...]
"""Conditions that all hold. Without any it holds everything."""

Words = Mapping[str, Letters]


class Limits(NamedTuple):
    """What a text of a cell must be in, and not."""

    inside: tuple[Glob, ...] = ()
    outside: tuple[Glob, ...] = ()

    def plus(self, condition: Condition) -> Limits:
        if condition.is_not:
            return self if condition.glob in self.outside else Limits(self.inside, (*self.outside, condition.glob))
        return Limits(narrowest((*self.inside, condition.glob)), self.outside)


Cell = Mapping[str, Limits]


@dataclass(frozen=True, slots=True)
class Found:
    """A witness, text by text; a text that is missing here may be anything, or is absent."""

    words: Words
    is_shortest: bool

    @property
    def length(self) -> int:
        return sum(map(len, self.words.values()))


class _Indexed:
    """Boxes filed by one glob of each that has one."""

    def __init__(self, boxes: Sequence[Box], alphabet: Alphabet) -> None:
        self.boxes = boxes
        self._rest: list[int] = []
        rows: dict[str, list[tuple[int, Glob]]] = {}
        for at, box in enumerate(boxes):
            key = max((one for one in box if not one.is_not), key=lambda one: len(one.glob.cells), default=None)
            if key is None:
                self._rest.append(at)
            else:
                rows.setdefault(key.text, []).append((at, key.glob))
        self._piles = {}
        for text, found in rows.items():
            owners: dict[Glob, list[int]] = {}
            for at, glob in found:
                owners.setdefault(glob, []).append(at)
            self._piles[text] = (Pile(list(owners), alphabet), list(owners.values()))

    def holding(self, words: Words) -> Iterator[Box]:
        """The boxes that the words lie in."""
        near = [*self._rest]
        for text, (pile, owners) in self._piles.items():
            if text in words:
                near += [at for row in pile.holding(words[text]) for at in owners[row]]
        return (self.boxes[at] for at in near if all(_holds(condition, words) for condition in self.boxes[at]))

    def covers(self, cell: Cell) -> bool:
        """Whether some box by its text holds all of the cell."""
        near = [*self._rest]
        for text, (pile, owners) in self._piles.items():
            for glob in cell[text].inside if text in cell else ():
                near += [at for row in pile.covering(glob) for at in owners[row]]
        return any(all(_is_sure(condition, cell) for condition in self.boxes[at]) for at in near)

    def meeting(self, cell: Cell) -> Iterable[Box]:
        """Boxes that may share something with the cell; all that do are among them."""
        if self._rest or len(self._piles) != 1:
            return self.boxes
        ((text, (pile, owners)),) = self._piles.items()
        if text not in cell or not cell[text].inside:
            return self.boxes
        near = pile.meeting(max(cell[text].inside, key=lambda glob: len(glob.cells)))
        return [self.boxes[at] for row in near for at in owners[row]]


class Search:
    """Witnesses outside of the forbidden boxes.

    texts: the texts that boxes speak of, and others. accept: a last word on each witness; those it turns down are
    counted in `rejected`, and then no witness does not mean that there is none. Raises BudgetSpent when the meter runs
    out.
    """

    def __init__(
        self,
        texts: Sequence[Text],
        forbidden: Iterable[Box],
        alphabet: Alphabet,
        meter: Meter,
        accept: Callable[[Words], bool] | None = None,
    ) -> None:
        self._accept = accept
        self.rejected = 0
        self.texts = {text.name: text for text in texts}
        self.alphabet = alphabet
        self.meter = meter
        single: dict[str, list[Glob]] = {text.name: [] for text in texts}
        joint: list[Box] = []
        for box in dict.fromkeys(forbidden):
            if len(box) == 1 and not box[0].is_not:
                single[box[0].text].append(box[0].glob)
            else:
                joint.append(box)
        self._single = {name: Pile(globs, alphabet) for name, globs in single.items()}
        self._joint = _Indexed(joint, alphabet)
        self._limit = _NO_LIMIT
        self._letters = tuple(alphabet.bit.values())
        self._memo: dict[tuple[str, Limits], tuple[Letters | None, bool]] = {}

    def find(self, unions: Sequence[Sequence[Box]], best: Found | None = None) -> Found | None:
        """The shortest witness that is in a box of each union and shorter than `best`, else `best`.

        Once there is one, only a little more work goes into a shorter one; `is_shortest` tells whether that was enough.
        """
        if any(not box for box in self._joint.boxes):
            return best
        is_sure = len(self.texts) == 1 and (best is None or best.is_shortest)
        whole = self.meter
        best = self._instance(unions, best) if len(unions) > 1 else best
        self.meter = whole.part(_POLISH) if best else whole
        self._limit = best.length if best else _NO_LIMIT
        try:
            for cell in self._ordered(unions):
                found = self._accepted(self._solve(cell))
                if found is None:
                    continue
                is_sure = is_sure and found.is_shortest
                if best is None:
                    self.meter = whole.part(_POLISH)
                if best is None or found.length < best.length:
                    best, self._limit = found, found.length
        except BudgetSpent:
            if best is None:
                raise
            is_sure = False
        finally:
            if self.meter is not whole:
                whole.join(self.meter)
                self.meter = whole
        return Found(best.words, is_sure) if best else None

    def _accepted(self, found: Found | None) -> Found | None:
        if found is None or self._accept is None or self._accept(found.words):
            return found
        self.rejected += 1
        return None

    def _instance(self, unions: Sequence[Sequence[Box]], best: Found | None) -> Found | None:
        """The shortest of a few names that each box itself suggests, where one of them is a witness."""
        indexed = [_Indexed(union, self.alphabet) for union in unions]
        boxes = {box: None for union in sorted(unions, key=len) for box in union}
        for box in islice(boxes, _TRIED):
            if best and _least(box) >= best.length:
                continue
            for words in self._suggested(box):
                self.meter.spend()
                found = Found(words, is_shortest=False)
                if (best is None or found.length < best.length) and self._is_witness(words, indexed):
                    best = self._accepted(found) or best
        return best

    def _suggested(self, box: Box) -> Iterator[Words]:
        globs = {condition.text: condition.glob for condition in box if not condition.is_not}
        texts = [text for text in self.texts.values() if text.name in globs or not text.is_optional]
        words = [
            guesses(globs.get(text.name, everything(self.alphabet)), self.alphabet, text.min_length) for text in texts
        ]
        for chosen in zip(*words, strict=True):
            if all(text.admits(word) for text, word in zip(texts, chosen, strict=True)):
                yield {text.name: word for text, word in zip(texts, chosen, strict=True)}

    def _is_witness(self, words: Words, unions: Sequence[_Indexed]) -> bool:
        return (
            all(any(True for _ in union.holding(words)) for union in unions)
            and all(self._is_free(name, word, Limits()) for name, word in words.items())
            and not any(True for _ in self._joint.holding(words))
        )

    def _ordered(self, unions: Sequence[Sequence[Box]]) -> Iterator[Cell]:
        """The cells that may hold a witness below the limit, the smallest first."""
        ordered = sorted(unions, key=len)
        rest = [_Indexed(union, self.alphabet) for union in ordered[1:]]
        for box in sorted(ordered[0], key=_least) if ordered else [()]:
            if _least(box) >= self._limit:
                return
            yield from (cell for cell in self._cells(box, rest) if self._least(cell) < self._limit)

    def _cells(self, box: Box, rest: Sequence[_Indexed]) -> Iterator[Cell]:
        """Every way to choose a box of each union, as one cell; those that are surely empty left out."""
        cell = self._plus({}, box)
        todo = [(cell, 0)] if cell is not None else []
        while todo:
            cell, depth = todo.pop()
            self.meter.spend()
            if depth == len(rest):
                yield cell
                continue
            more = (self._plus(cell, other) for other in rest[depth].meeting(cell))
            todo += [(each, depth + 1) for each in more if each is not None]

    def _plus(self, cell: Cell, box: Box) -> Cell | None:
        """The cell with a box's conditions; None when nothing can be left of it."""
        self.meter.spend(1 + len(box) // 4)
        result = dict(cell)
        for condition in box:
            result[condition.text] = result.get(condition.text, Limits()).plus(condition)
        for name in {condition.text for condition in box}:
            if not self._is_open(name, result[name]):
                return None
        return None if self._joint.covers(result) else result

    def _is_open(self, name: str, limits: Limits) -> bool:
        """Whether the text can still be something, as far as one look tells."""
        inside, outside = limits
        for at, glob in enumerate(inside):
            if glob.is_empty or any(other.covers(glob) for other in outside):
                return False
            if any(True for _ in self._single[name].covering(glob)):
                return False
            if not all(glob.meets(other) for other in inside[:at]):
                return False
        return True

    def _least(self, cell: Cell) -> int:
        lengths = (
            max(self.texts[name].min_length, *(len(glob.cells) for glob in limits.inside))
            for name, limits in cell.items()
            if limits.inside
        )
        return sum(lengths)

    # ------------------------------------------------------------------------------------------ one cell

    def _solve(self, cell: Cell, depth: int = 0) -> Found | None:
        self.meter.spend(1 if depth < _DEEPEST else self.meter.limit)
        words: dict[str, Letters] = {}
        is_shortest = True
        for name, text in self.texts.items():
            limits = cell.get(name, Limits())
            if text.is_optional and not limits.inside:
                continue
            word, is_exact = self._word(text, limits)
            if word is None:
                return None
            words[name] = word
            is_shortest = is_shortest and is_exact
        hit = next(self._joint.holding(words), None)
        if hit is None:
            return Found(words, is_shortest and len(self.texts) == 1)
        for condition in hit:
            less = self._plus(cell, (condition._replace(is_not=not condition.is_not),))
            found = self._solve(less, depth + 1) if less is not None else None
            if found:
                return found
        return None

    def _word(self, text: Text, limits: Limits) -> tuple[Letters | None, bool]:
        """The shortest word for one text, or one that may not be it, and which of the two."""
        key = (text.name, limits)
        if key not in self._memo:
            self._memo[key] = self._new_word(text, limits)
        return self._memo[key]

    def _new_word(self, text: Text, limits: Limits) -> tuple[Letters | None, bool]:
        inside, outside = limits
        pile = self._single[text.name]
        if not self._is_open(text.name, limits):
            return None, True
        least = max([text.min_length, *(len(glob.cells) for glob in inside)])
        guess = self._guess(text, limits)
        if guess is not None and len(guess) == least:
            return guess, True
        self.meter.spend(1 + len(pile.index) // 8)
        near = pile.meeting(inside[0]) if inside else list(pile.index.values())
        against = [*(pile.globs[at] for at in near), *outside]
        against = list(broadest((*against, *merged(against)))) if len(against) <= _FEW else against
        if any(other.covers(glob) for glob in inside for other in against):
            return None, True
        lengths = (text.min_length, text.max_length if guess is None else len(guess) - 1)
        part = self.meter if guess is None else self.meter.part(_POLISH)
        try:
            word = shortest(inside, against, self._letters, part, lengths)
        except BudgetSpent:
            if guess is None:
                raise
            return guess, False
        return (guess if word is None else word), True

    def _guess(self, text: Text, limits: Limits) -> Letters | None:
        """A word tried before any search."""
        if len(limits.inside) > 1:
            return None
        glob = limits.inside[0] if limits.inside else everything(self.alphabet)
        for word in guesses(glob, self.alphabet, text.min_length):
            self.meter.spend()
            if text.admits(word) and self._is_free(text.name, word, limits):
                return word
        return None

    def _is_free(self, name: str, word: Letters, limits: Limits) -> bool:
        if any(glob.accepts(word) for glob in limits.outside):
            return False
        return next(self._single[name].holding(word), None) is None


def guesses(glob: Glob, alphabet: Alphabet, least: int = 0) -> Iterator[Letters]:
    """Names of the glob with nothing, then with little for its stars, a letter that no pattern names among it.

    least: characters to fill it up to, in one of them.
    """
    missing = max(least - len(glob.cells), 0)
    for fill in ((), (1,), (alphabet.fresh,), (alphabet.fresh,) * 2, (alphabet.fresh,) * missing):
        parts = ((symbol & -symbol,) if symbol else fill for symbol in glob.symbols)
        yield tuple(letter for part in parts for letter in part)


def _least(box: Box) -> int:
    return sum(len(condition.glob.cells) for condition in box if not condition.is_not)


def _holds(condition: Condition, words: Words) -> bool:
    word = words.get(condition.text)
    return (word is not None and condition.glob.accepts(word)) != condition.is_not


def _is_sure(condition: Condition, cell: Cell) -> bool:
    """Whether the cell's own conditions make this one hold."""
    limits = cell.get(condition.text)
    if limits is None:
        return False
    if condition.is_not:
        return any(not glob.meets(condition.glob) for glob in limits.inside) or any(
            other.covers(condition.glob) for other in limits.outside
        )
    return any(condition.glob.covers(glob) for glob in limits.inside)
