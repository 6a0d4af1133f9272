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
from typing import Any, Protocol, runtime_checkable

from extgate.analysis.alphabet import Alphabet
from extgate.analysis.boxes import Box, Condition, Text
from extgate.analysis.globs import read_glob
from extgate.analysis.regions import Case
from extgate.core.glob import clean
from extgate.core.policy import ArgTest, Reading

LONGEST = 16_384
"""Characters of an argument, at most."""

_TRIED = 200  # calls that are made up for one answer of the search


@runtime_checkable
class Writable(Protocol):
    """A reading that can be turned around."""

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


@dataclass(slots=True)
class Way:
    """One way in which all conditions of a case can hold: texts with what they must be in, and must not."""

    texts: list[Text] = field(default_factory=list)
    unions: list[list[Box]] = field(default_factory=list)
    forbidden: list[Box] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)

    def plus(self, other: Way) -> Way:
        return Way(
            [*self.texts, *other.texts],
            [*self.unions, *other.unions],
            [*self.forbidden, *other.forbidden],
            [*self.arguments, *other.arguments],
        )


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
        for part in chosen:
            way = way.plus(part)
        yield way


def _options(name: str, reading: Reading | None, literals: list[_Literal], alphabet: Alphabet) -> Iterator[Way]:
    yield _read(name, reading, literals, alphabet) if reading else _plain(name, literals, alphabet)
    if all(literal.is_true_in_doubt for literal in literals):
        yield Way(arguments=[Argument(name, reading, ())])


def _plain(name: str, literals: list[_Literal], alphabet: Alphabet) -> Way:
    text = f"argument:{name}"
    way = Way([Text(name=text, min_length=0, max_length=LONGEST, is_optional=True)])
    way.arguments.append(Argument(name, None, (text,)))
    for literal in literals:
        boxes = _boxes(text, literal.test, alphabet)
        if literal.is_not:
            way.forbidden += boxes
        else:
            way.unions.append(boxes)
    return way


def _read(name: str, reading: Reading | None, literals: list[_Literal], alphabet: Alphabet) -> Way:
    """Some text for each condition on some; all of them, and one at least, as the conditions on all want them."""
    every = [literal for literal in literals if literal.test.every != literal.is_not]
    some = [literal for literal in literals if literal.test.every == literal.is_not]
    way = Way()
    words = tuple(f"{name} {reading!r} {at}" for at in range(len(some) or 1))
    for at, text in enumerate(words):
        way.texts.append(Text(name=text, min_length=0, max_length=LONGEST))
        for literal in (*some[at : at + 1], *every):
            boxes = _boxes(text, literal.test, alphabet)
            if literal.is_not:
                way.forbidden += boxes
            else:
                way.unions.append(boxes)
    way.arguments.append(Argument(name, reading, words))
    return way


def _boxes(text: str, test: ArgTest, alphabet: Alphabet) -> list[Box]:
    """What a text may be that the condition wants."""
    but = tuple(Condition(text, read_glob(clean(pattern), alphabet), is_not=True) for pattern in test.but)
    patterns = dict.fromkeys(map(clean, (test.pattern, *test.also)))
    return [(Condition(text, read_glob(pattern, alphabet)), *but) for pattern in patterns]


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
