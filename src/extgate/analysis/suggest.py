"""Things that an entry itself suggests, tried as witnesses before anything is searched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product

from extgate.analysis.alphabet import Alphabet
from extgate.analysis.boxes import guesses
from extgate.analysis.entries import glob_of
from extgate.analysis.spellings import PLAIN, Shape, Slot, Template
from extgate.analysis.worlds import Values
from extgate.core.policy import Entry, Test

_EACH = 24  # things tried for one entry in one world


def suggestions(entries: Iterable[Entry], shape: Shape, alphabet: Alphabet) -> Iterator[Values]:
    """Texts of things that the entries speak of, in their order; first, and with no entry, of anything."""
    seen: set[frozenset[tuple[str, str]]] = set()
    for values in _suggestions(entries, shape, alphabet):
        key = frozenset(values.items())
        if key not in seen:
            seen.add(key)
            yield values


def _suggestions(entries: Iterable[Entry], shape: Shape, alphabet: Alphabet) -> Iterator[Values]:
    fillers = [_filler(shape, letter, alphabet) for letter in dict.fromkeys((1, alphabet.fresh))]
    yield from fillers
    for entry in entries:
        parts = [_readings(test, shape, alphabet) for test in entry.tests]
        for chosen in islice(product(*parts), _EACH):
            values: dict[str, str] = {}
            if all(values.setdefault(name, word) == word for part in chosen for name, word in part.items()):
                yield from (filler | values for filler in fillers)


def _filler(shape: Shape, letter: int, alphabet: Alphabet) -> dict[str, str]:
    """The texts of a thing that nothing is said of; an optional one is absent."""
    word = alphabet.spell((letter,))
    return {text.name: word if text.min_length else "" for text in shape.texts if not text.is_optional}


def _readings(test: Test, shape: Shape, alphabet: Alphabet) -> list[Values]:
    """Texts whose spelling the test matches; then such where one of them alone is what it speaks of, as it may be."""
    glob = glob_of(test, alphabet)
    words = dict.fromkeys(alphabet.spell(letters) for letters in islice(guesses(glob, alphabet), 2))
    templates = [form.template for facet in test.facets for form in shape.forms.get(facet, ())]
    found: list[Values] = [
        read for template in templates for word in words if (read := _read(word, template)) is not None
    ]
    slots = dict.fromkeys(part.text for t in templates for part in reversed(t) if isinstance(part, Slot) and len(t) > 1)
    found += [{slot: word} for slot in slots for word in words if word]
    return [] if glob.is_empty else found


def _read(word: str, template: Template) -> dict[str, str] | None:
    """The texts of a template that make it this word; None where it can't be, or is cleaned first."""
    found: dict[str, str] = {}
    parts: Sequence[str | Slot] = template
    while parts:
        first, parts = parts[0], parts[1:]
        if isinstance(first, str):
            if not word.startswith(first):
                return None
            word = word[len(first) :]
        elif first.way != PLAIN:
            return None
        elif not parts:
            found[first.text], word = word, ""
        else:
            found[first.text], joint, word = word.partition(str(parts[0]))
            if not joint:
                return None
            parts = parts[1:]
    return found if not word and all(found.values()) else None
