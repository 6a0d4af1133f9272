"""Conditions on a call's arguments, as boxes over texts, and arguments that a call could have.

An argument is one text; read in some way (`Reading`) it is some texts, one or more, or cannot be told. Each reading is
taken for free: any texts may be read together, and what one reading says of an argument binds no other. So where no
such call can differ, none does. Where one could, calls are made up that read like it, and each is tried.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any, ClassVar, Protocol, runtime_checkable

from extgate.analysis.alphabet import Alphabet
from extgate.analysis.boxes import Box, Condition, Search, Text
from extgate.analysis.budget import Meter
from extgate.analysis.globs import read_glob
from extgate.analysis.regions import Case
from extgate.core.glob import clean
from extgate.core.policy import ArgTest, Reading

LONGEST = 16_384
"""Characters of an argument, at most."""

_WORD = "word"
_TRIED = 200  # calls that are made up for one answer of the search


@runtime_checkable
class Writable(Protocol):
    """A reading that can be turned around. least: the fewest characters of a text that it gives."""

    least: ClassVar[int]

    def written(self, texts: Sequence[str]) -> Iterable[object]:
        """Arguments that may read as these texts, or as these and others, the plainest first; without texts, and at
        the end, some that cannot be told."""
        ...


@dataclass(frozen=True, slots=True)
class _Literal:
    """One condition that holds, or with `is_not` does not."""

    test: ArgTest
    in_doubt: bool
    is_not: bool

    @property
    def is_true_in_doubt(self) -> bool:
        return self.in_doubt != self.is_not


@dataclass(frozen=True, slots=True)
class Argument:
    """What is asked of one argument. reading: as which it is read; None: it is one text. words: names of its texts;
    none: it cannot be told."""

    name: str
    reading: Reading | None
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Word:
    """One text of an argument: in a box of each of some unions, in no forbidden one. is_optional: it may be missing."""

    unions: tuple[tuple[Box, ...], ...]
    forbidden: tuple[Box, ...]
    least: int = 0
    is_optional: bool = False


@dataclass(slots=True)
class Way:
    """One way in which all conditions of a case can hold. No condition is about two words."""

    words: dict[str, Word] = field(default_factory=dict)
    arguments: list[Argument] = field(default_factory=list)

    @property
    def is_doubtful(self) -> bool:
        """Whether some argument cannot be told."""
        return any(not argument.words for argument in self.arguments)


class Speller:
    """Words once found. Raises BudgetSpent when the meter runs out."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        self._known: dict[Word, str | None] = {}

    def spelled(self, way: Way, meter: Meter) -> dict[str, str] | None:
        """Texts for the words of a way, those that are missing left out; None where some word can be nothing."""
        found = {}
        for name, word in way.words.items():
            meter.spend()
            if word.is_optional and not word.unions:
                continue
            if word not in self._known:
                self._known[word] = self._new(word, meter)
            text = self._known[word]
            if text is None:
                return None
            found[name] = text
        return found

    def _new(self, word: Word, meter: Meter) -> str | None:
        text = Text(name=_WORD, min_length=word.least, max_length=LONGEST)
        found = Search([text], word.forbidden, self.alphabet, meter).find(word.unions)
        return self.alphabet.spell(found.words[_WORD]) if found else None


def ways(case: Case, alphabet: Alphabet) -> Iterator[Way]:
    """Every way in which the conditions of a case can hold; the first reads all arguments."""
    groups: dict[tuple[str, Reading | None], list[_Literal]] = {}
    for is_not, atoms in ((False, case.inside), (True, case.outside)):
        for atom in sorted((atom for atom in atoms if atom.when), key=repr):
            (test,) = atom.when
            groups.setdefault((test.name, test.reading), []).append(_Literal(test, atom.in_doubt, is_not))
    options = [list(_options(*key, literals, alphabet)) for key, literals in groups.items()]
    for chosen in product(*options):
        way = Way()
        for words, argument in chosen:
            way.words |= words
            way.arguments.append(argument)
        yield way


_Option = tuple[dict[str, Word], Argument]


def _options(name: str, reading: Reading | None, literals: list[_Literal], alphabet: Alphabet) -> Iterator[_Option]:
    if reading is None:
        text = f"argument:{name}"
        yield {text: _word(literals, alphabet, is_optional=True)}, Argument(name, None, (text,))
    else:
        yield _read(name, reading, literals, alphabet)
    if all(literal.is_true_in_doubt for literal in literals):
        yield {}, Argument(name, reading, ())


def _read(name: str, reading: Reading, literals: list[_Literal], alphabet: Alphabet) -> _Option:
    """Some word for each condition on some; all of them, and one at least, as the conditions on all want them."""
    every = [literal for literal in literals if literal.test.every != literal.is_not]
    some = [[literal] for literal in literals if literal.test.every == literal.is_not]
    least = reading.least if isinstance(reading, Writable) else 0
    found = {
        f"{name} {reading!r} {at}": _word([*wanted, *every], alphabet, least=least)
        for at, wanted in enumerate(some or [[]])
    }
    return found, Argument(name, reading, tuple(found))


def _word(literals: Iterable[_Literal], alphabet: Alphabet, *, least: int = 0, is_optional: bool = False) -> Word:
    unions: dict[tuple[Box, ...], None] = {}
    forbidden: dict[Box, None] = {}
    for literal in literals:
        boxes = _boxes(literal.test, alphabet)
        if literal.is_not:
            forbidden |= dict.fromkeys(boxes)
        else:
            unions[boxes] = None
    return Word(tuple(unions), tuple(forbidden), least, is_optional)


def _boxes(test: ArgTest, alphabet: Alphabet) -> tuple[Box, ...]:
    """What a word may be that the condition wants."""
    but = [read_glob(clean(pattern), alphabet) for pattern in test.but]
    globs = [read_glob(pattern, alphabet) for pattern in dict.fromkeys(map(clean, (test.pattern, *test.also)))]
    return tuple(
        (Condition(_WORD, glob), *(Condition(_WORD, other, is_not=True) for other in but if other.meets(glob)))
        for glob in globs
    )


# ---------------------------------------------------------------------------------------------- calls


def made(way: Way, values: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Arguments of calls that may read as the values say, the plainest first."""
    by_name: dict[str, list[Argument]] = {}
    for argument in way.arguments:
        by_name.setdefault(argument.name, []).append(argument)
    names = sorted(by_name)
    choices = [list(islice(_values(by_name[name], values), _TRIED)) for name in names]
    for chosen in islice(product(*choices), _TRIED):
        found = _nested(dict(zip(names, chosen, strict=True)))
        if found is not None:
            yield found


@dataclass(frozen=True, slots=True)
class _Given:
    """An argument's value; is_doubtful: under a name that only lenient parsers take for it."""

    value: object
    is_doubtful: bool = False


def _values(asked: Sequence[Argument], values: Mapping[str, str]) -> Iterator[_Given | None]:
    """What one argument may be; None: it is not there."""
    plain = [values.get(argument.words[0]) for argument in asked if argument.reading is None and argument.words]
    texts = tuple(dict.fromkeys(values[word] for a in asked if a.reading for word in a.words))
    if plain:
        yield None if plain[0] is None else _Given(plain[0])
    seen: list[object] = []
    readings: list[object] = [argument.reading for argument in asked]
    for writable in readings:
        written: Iterable[object] = writable.written(texts) if isinstance(writable, Writable) else ()
        for value in written:
            if value not in seen:
                seen.append(value)
                yield _Given(value)
    if any(not argument.words for argument in asked):
        yield from (_Given(value, is_doubtful=True) for value in (*(text for text in plain if text), *texts, "x"))
        yield None


def _nested(given: Mapping[str, _Given | None]) -> dict[str, Any] | None:
    """The arguments whose values are given by dotted path; under the empty path all of them as JSON."""
    found: Any = {}
    whole = given.get("")
    if whole is not None:
        try:
            found = json.loads(str(whole.value))
        except ValueError:
            return None
    for path, given_value in given.items():
        if given_value is None or not path:
            continue
        *outer, last = path.split(".")
        place = found
        for part in outer:
            place = place.setdefault(part, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict):
            return None
        place[_alike(last) if given_value.is_doubtful else last] = given_value.value
    return found if isinstance(found, dict) else None


def _alike(name: str) -> str:
    """Another name that lenient parsers take for this one."""
    return name.capitalize() if name.capitalize() != name else f"{name}_"
