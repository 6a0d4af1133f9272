"""How the things of a world are spelled: what stands around their texts, and what becomes of each character.

It is learned from `core/names.py` itself: things with marked texts are named, and the rest is read off around and
between the marks. So a new wire name is known here at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

from extgate.analysis.alphabet import READABLE
from extgate.analysis.boxes import Text
from extgate.analysis.worlds import World, worlds
from extgate.core.extension import KINDS
from extgate.core.names import Facet, Naming
from extgate.core.patterns import matches

_MARKS = ("Qq", "Ww", "Zz", "Yy", "Kk", "Jj")
PLAIN = ".é-! :~"
"""Characters that the known ways to clean a name treat differently. What becomes of them is the way's name; where they
stay as they are, nothing is cleaned."""

CUTS = tuple(f"cut{at}" for at in (1, 2, 3))
"""Stand-ins for what runtimes make of names that are too long for them: they may be anything."""
CUT_TO = (63, 64)
"""Characters that a name has once it is cut: the fewest and the most."""
LONG = "long"
"""A stand-in that is there when names are too long for a runtime, and else absent."""


class Slot(NamedTuple):
    """A text within a spelling. way: what became of the probe's characters, which names the way it is cleaned."""

    text: str
    way: str = PLAIN


Template = tuple[str | Slot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One spelling, and where there is none: when one of these texts matches its pattern."""

    template: Template
    unless: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a world's things are spelled, by facet. absorbing: templates that do not repeat their first words.

    cuts: facets in which long names have further spellings, or with True only others.
    """

    forms: Mapping[Facet, tuple[Form, ...]]
    absorbing: frozenset[Template]
    texts: tuple[Text, ...]
    cuts: Mapping[Facet, bool] = field(default_factory=dict)


@cache
def _shape(kind: str, at: int) -> Shape:
    return _learned(worlds(kind)[at])


def family(kind: str) -> str:
    """The kind whose things are spelled in the same way: one for all that servers offer."""
    return "mcp_tool" if KINDS[kind].is_mcp else kind


def shapes(kind: str) -> Iterator[tuple[World, Shape]]:
    """Each world of a kind with its shape."""
    return ((world, _shape(family(kind), at)) for at, world in enumerate(worlds(kind)))


@cache
def wider_facets(kind: str) -> Mapping[Facet, frozenset[Facet]]:
    """By facet those that hold all its spellings, of every thing of the kind; itself among them."""
    found: dict[Facet, set[Facet]] = {}
    for at, (world, shape) in enumerate(shapes(kind)):
        samples = list(_samples(world))
        for facet, forms in shape.forms.items():
            rows = {(form.template, form.unless) for form in forms}
            wider = {
                other
                for other, more in shape.forms.items()
                if all(any(t == f.template and set(f.unless) <= set(u) for f in more) for t, u in rows)
                and all(set(spelled[facet]) <= set(spelled[other]) for spelled in samples)
            }
            found[facet] = wider if not at else found.get(facet, set()) & wider
    return {facet: frozenset(wider) for facet, wider in found.items()}


def _samples(world: World) -> Iterator[Mapping[Facet, tuple[str, ...]]]:
    """How things are spelled that have more names than a world's things do: long ones, and one with an alias."""
    values = {text.name: text.name[0] * 60 for text in world.texts}
    yield _spellings(world, values)
    ext, others = world.build(values)
    aliased = replace(ext, facts={**ext.facts, "aliases": ("another-name",)})
    yield Naming((aliased, *others)).of(aliased)


def _marked(world: World, character: str, before: Mapping[str, str] | None = None) -> dict[str, str]:
    return {
        text.name: (before or {}).get(text.name, "") + mark[0] + PLAIN + character + mark[1]
        for text, mark in zip(world.texts, _MARKS, strict=False)
    }


def _spellings(world: World, values: Mapping[str, str]) -> Mapping[Facet, tuple[str, ...]]:
    ext, others = world.build(values)
    return Naming((ext, *others)).of(ext)


def _learned(world: World) -> Shape:
    found = _spellings(world, _marked(world, "a"))
    templates = {facet: tuple(_template(world, name) for name in names) for facet, names in found.items()}
    absorbing = {t for rows in templates.values() for t in rows if _absorbs(world, t)}
    probes = list(_features(world, templates))
    forms = {facet: tuple(_form(t, facet, probes) for t in rows) for facet, rows in templates.items()}
    cuts = _cuts(world, templates) if any(text.name == "server" for text in world.texts) else {}
    loose = [Text(name=cut, min_length=CUT_TO[0], max_length=CUT_TO[1], is_optional=True) for cut in CUTS]
    loose.append(Text(name=LONG, max_length=1, is_optional=True))
    texts = (*world.texts, *(loose if cuts else ()))
    return Shape(forms=forms, absorbing=frozenset(absorbing), texts=texts, cuts=cuts)


_Probe = tuple[str, str, Mapping[str, str], Mapping[Facet, tuple[str, ...]]]
"""A text, a pattern that it matches, a thing whose text does, and how that is spelled."""


def _features(world: World, templates: Mapping[Facet, tuple[Template, ...]]) -> Iterator[_Probe]:
    """Things with something in one of their texts that may take a spelling away."""
    joints = {part for rows in templates.values() for t in rows for part in t[1:] if isinstance(part, str)}
    plain = {text.name: text.name[0] * 3 for text in world.texts}
    for text in world.texts:
        word = plain[text.name]
        samples = [("", "")] if not text.min_length else []
        for joint in sorted(joints):
            samples += [(f"*{joint}*", word[0] + joint + word[1:])]
            samples += [(f"*{joint}", word + joint), (f"{joint}*", joint + word)]
        for pattern, sample in samples:
            if not any(name == text.name and matches(sample, never) for name, never in world.never):
                values = plain | {text.name: sample}
                yield text.name, pattern, values, _spellings(world, values)


def _form(template: Template, facet: Facet, probes: Iterable[_Probe]) -> Form:
    unless: list[tuple[str, str]] = []
    for text, pattern, values, spelled in probes:
        is_known = any(name == text and matches(values[text], more) for name, more in unless)
        if not is_known and spell(template, values) not in spelled.get(facet, ()):
            unless.append((text, pattern))
    return Form(template=template, unless=tuple(unless))


def spell(template: Template, values: Mapping[str, str]) -> str:
    """The spelling of a thing with these texts, as far as no further rule of its facet speaks of it."""
    return "".join(
        part if isinstance(part, str) else "".join(image(character, part.way) for character in values[part.text])
        for part in template
    )


def _cuts(world: World, templates: Mapping[Facet, tuple[Template, ...]]) -> dict[Facet, bool]:
    """The facets in which a thing with long texts has other spellings than its templates give; True: only others."""
    values = {text.name: text.name[0] * 60 for text in world.texts}
    found: dict[Facet, bool] = {}
    for facet, names in _spellings(world, values).items():
        whole = {spell(template, values) for template in templates[facet]}
        if set(names) != whole:
            found[facet] = not whole <= set(names)
    return found


def _template(world: World, name: str) -> Template:
    texts = {mark[0]: text.name for text, mark in zip(world.texts, _MARKS, strict=False)}
    parts: list[str | Slot] = []
    at, width = 0, len(PLAIN)
    while at < len(name):
        if name[at] in texts:
            parts.append(Slot(texts[name[at]], name[at + 1 : at + 1 + width]))
            at += width + 3
        else:
            parts[-1:] = [parts[-1] + name[at]] if parts and isinstance(parts[-1], str) else [*parts[-1:], name[at]]
            at += 1
    return tuple(parts)


def _absorbs(world: World, template: Template) -> bool:
    """Whether a text that begins with the template's first words makes them stand there only once."""
    if len(template) < 2 or not isinstance(template[0], str) or not isinstance(template[1], Slot):
        return False
    first, slot = template[0], template[1]
    names = _spellings(world, _marked(world, "a", {slot.text: first}))
    twice = (first + first, *template[1:])
    return twice not in {_template(world, name) for spelled in names.values() for name in spelled}


@cache
def _images(character: str) -> Mapping[str, str]:
    """What each way to clean a name makes of a character; without a row where it has no single image."""
    world = worlds("mcp_tool")[0]
    marks = {mark[0]: mark[1] for mark in _MARKS}
    width, images = len(PLAIN), {PLAIN: character}
    for names in _spellings(world, _marked(world, character)).values():
        for name in names:
            for at, first in enumerate(name):
                body = name[at + 1 : at + 1 + width]
                end = at + 2 + width
                if first in marks and name[end : end + 1] == marks[first]:
                    images.setdefault(body, name[end - 1])
    return images


def image(character: str, way: str) -> str:
    """What a way to clean names makes of a character; empty when that is no single one."""
    return _images(character).get(way, "")


def apart(character: str) -> tuple[tuple[str, str], ...]:
    """What tells a character apart for spellings: its images, itself left out."""
    return tuple((way, "" if image == character else image) for way, image in _images(character).items())


@cache
def letters_of(kind: str) -> str:
    """Characters that spellings of a kind bring in, and those that cleaning leaves behind."""
    words = {
        part
        for _, shape in shapes(kind)
        for rows in shape.forms.values()
        for row in rows
        for part in row.template
        if isinstance(part, str)
    }
    images = {image for character in READABLE + PLAIN for _, image in apart(character)}
    return "".join(sorted({*"".join(words), *images}))
