"""A pattern on a spelling, as boxes over the texts that the spelling is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from extgate.analysis.alphabet import Alphabet
from extgate.analysis.boxes import Box, Condition
from extgate.analysis.entries import glob_of
from extgate.analysis.globs import Glob, bits, read_glob
from extgate.analysis.spellings import CUTS, LONG, PLAIN, Form, Shape, Slot, Template, image
from extgate.core.names import Facet
from extgate.core.policy import Test

_KEPT = 30  # characters at the beginning of a name that no runtime cuts away
_FEW = 400  # boxes up to which comparing each with each pays

Span = tuple[Slot, int, int]
"""A text, and the states of a glob between which it is read."""


class Encoder:
    """Boxes of a shape for the tests of entries, over one alphabet. Each test is worked out once."""

    def __init__(self, shape: Shape, alphabet: Alphabet) -> None:
        self.shape, self.alphabet = shape, alphabet
        self._optional = {text.name for text in shape.texts if text.is_optional}
        self._memo: dict[tuple[tuple[Facet, ...], str, bool], tuple[Box, ...]] = {}
        self._cells: dict[str, dict[int, int]] = {}
        self._spelled: dict[str, list[int]] = {}
        self._without: dict[tuple[tuple[str, str], ...], list[Condition]] = {}
        self._absorbed: dict[Template, tuple[Box, ...]] = {}
        self.work = 0
        """Templates read so far."""

    def boxes(self, test: Test) -> tuple[Box, ...]:
        """Boxes that together hold what the test holds: any spelling of any of its facets matches."""
        key = (test.facets, test.pattern, test.is_exact)
        if key not in self._memo:
            reading = _Reading(glob_of(test, self.alphabet), self._mapped)
            self._memo[key] = largest({box for facet in test.facets for box in self._of_facet(reading, facet)})
        return self._memo[key]

    def name(self, text: str, name: str) -> Box:
        """The text is exactly this name."""
        return (Condition(text, Glob(self._letters(name), 0, self.alphabet.full)),)

    def pattern(self, text: str, pattern: str) -> Box:
        """The text matches the pattern."""
        return (Condition(text, read_glob(pattern, self.alphabet)),)

    def _of_facet(self, reading: _Reading, facet: Facet) -> Iterator[Box]:
        is_replaced = self.shape.cuts.get(facet, False)
        always = Glob((), 1, self.alphabet.full)
        for form in self._distinct(reading, facet):
            for box in self._of_form(reading, form):
                yield (*box, Condition(LONG, always, is_not=True)) if is_replaced else box
        if facet in self.shape.cuts:
            for box in self._of_cuts(reading.glob, facet):
                yield (*box, Condition(LONG, always)) if is_replaced else box

    def _distinct(self, reading: _Reading, facet: Facet) -> Iterable[Form]:
        """The facet's spellings without those that read the same here: most patterns hold nothing that is cleaned."""
        found: dict[object, Form] = {}
        for form in self.shape.forms.get(facet, ()):
            parts = (part if isinstance(part, str) else (part.text, reading.cells(part.way)) for part in form.template)
            found.setdefault((*parts, form.unless, form.template in self.shape.absorbing), form)
        return found.values()

    def _of_cuts(self, glob: Glob, facet: Facet) -> Iterator[Box]:
        """Boxes for names that a runtime has cut. They begin as the whole name does, so far as the server goes."""
        length = min(_KEPT, (glob.loops & -glob.loops).bit_length() - 1 if glob.loops else len(glob.cells))
        begins = _Reading(Glob(glob.cells[:length], 1 << length, self.alphabet.full), self._mapped)
        joined = (form for form in self._distinct(begins, facet) if len(form.template) > 1)
        servers = {
            tuple(condition for condition in box if condition.text == "server")
            for form in joined
            for box in self._of_form(begins, form)
        }
        for box in largest(servers):
            for cut in CUTS:
                yield (*box, Condition(cut, glob))

    def _letters(self, text: str) -> list[int]:
        found = self._spelled.get(text)
        if found is None:
            found = self._spelled[text] = [self.alphabet.bit.get(character, 0) for character in text]
        return found

    # ------------------------------------------------------------------------------------------ one template

    def _of_form(self, reading: _Reading, form: Form) -> Iterator[Box]:
        self.work += 1
        unless = self._without.get(form.unless)
        if unless is None:
            unless = [Condition(text, read_glob(pattern, self.alphabet), is_not=True) for text, pattern in form.unless]
            self._without[form.unless] = unless
        for parts, more in self._variants(form.template):
            for spans in self._match(reading.glob, 0, parts):
                read = (Condition(slot.text, reading.part(slot, start, stop)) for slot, start, stop in spans)
                box = self._tidy((*read, *more, *unless))
                if box is not None:
                    yield box

    def _variants(self, template: Template) -> Iterator[tuple[Template, tuple[Condition, ...]]]:
        """The template, or where its texts may bring its first words along, one variant for each case."""
        if template not in self.shape.absorbing:
            yield template, ()
            return
        first, rest = template[0], template[1:]
        assert isinstance(first, str)
        if template not in self._absorbed:
            begins = _Reading(Glob(self._letters(first), 1 << len(first), self.alphabet.full), self._mapped)
            self._absorbed[template] = largest(set(self._of_form(begins, Form(template=rest))))
        brought = self._absorbed[template]
        for box in brought:
            yield rest, box
        assert all(len(box) == 1 for box in brought)
        yield template, tuple(condition._replace(is_not=True) for box in brought for condition in box)

    def _match(self, glob: Glob, start: int, parts: Sequence[str | Slot]) -> Iterator[tuple[Span, ...]]:
        """Every way for the glob, read from a state on, to match the parts: where each text is read."""
        end = len(glob.cells)
        if not parts:
            if start == end:
                yield ()
            return
        first, rest = parts[0], parts[1:]
        if isinstance(first, str):
            for at in bits(glob.states_after(self._letters(first), start)):
                yield from self._match(glob, at, rest)
        elif not rest:
            yield ((first, start, end),)
        else:
            joint = rest[0]
            assert isinstance(joint, str)
            letters = self._letters(joint)
            for cut in bits((glob.row(letters[0]) | glob.loops) >> start << start):
                for at in bits(glob.states_after(letters, cut)):
                    for spans in self._match(glob, at, rest[1:]):
                        yield ((first, start, cut), *spans)

    def _mapped(self, way: str, cell: int) -> int:
        """The letters whose image lies in the cell."""
        if way == PLAIN:
            return cell
        known = self._cells.setdefault(way, {})
        if cell not in known:
            known[cell] = self.alphabet.mapped(cell, lambda character: image(character, way))
        return known[cell]

    def _tidy(self, box: Box) -> Box | None:
        """The box without conditions that always hold; None when one never does."""
        kept: dict[Condition, None] = {}
        for condition in box:
            is_optional = condition.text in self._optional
            if condition.is_not and condition.glob.is_empty:
                continue
            if condition.glob.is_empty or (condition.is_not and condition.glob.is_all and not is_optional):
                return None
            if condition.is_not or not condition.glob.is_all or is_optional:
                kept[condition] = None
        return tuple(kept)


class _Reading:
    """A glob, and its parts as each way to clean a name sees them; every part is made once."""

    def __init__(self, glob: Glob, mapped: Callable[[str, int], int]) -> None:
        self.glob = glob
        self._mapped = mapped
        self._cells: dict[str, tuple[int, ...]] = {}
        self._parts: dict[tuple[str, int, int], Glob] = {}

    def cells(self, way: str) -> tuple[int, ...]:
        """The glob's cells, as letters before they were cleaned in this way."""
        if way not in self._cells:
            self._cells[way] = tuple(self._mapped(way, cell) for cell in self.glob.cells)
        return self._cells[way]

    def part(self, slot: Slot, start: int, stop: int) -> Glob:
        """What a slot is read by between two states."""
        key = (slot.way, start, stop)
        if key not in self._parts:
            loops = self.glob.loops >> start & (1 << (stop - start + 1)) - 1
            self._parts[key] = Glob(self.cells(slot.way)[start:stop], loops, self.glob.full)
        return self._parts[key]


def largest(boxes: set[Box]) -> tuple[Box, ...]:
    """The boxes without those that another holds by its text; where they are very many, all of them."""
    if len(boxes) > _FEW:
        return tuple(boxes)
    kept: list[tuple[frozenset[tuple[str, bool]], Box]] = []
    for box in sorted(boxes, key=len):
        keys = frozenset((condition.text, condition.is_not) for condition in box)
        if not any(others <= keys and _within(box, other) for others, other in kept):
            kept.append((keys, box))
    return tuple(box for _, box in kept)


def _within(box: Box, other: Box) -> bool:
    return all(any(_implies(mine, condition) for mine in box) for condition in other)


def _implies(one: Condition, other: Condition) -> bool:
    if one.text != other.text or one.is_not != other.is_not:
        return False
    return one.glob.covers(other.glob) if one.is_not else other.glob.covers(one.glob)
