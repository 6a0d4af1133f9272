"""Boxes mean what the spellings of real things do."""

from __future__ import annotations

import random

import pytest

from extgate.analysis.alphabet import Alphabet
from extgate.analysis.boxes import Box, Letters
from extgate.analysis.encoding import Encoder
from extgate.analysis.spellings import Slot, apart, letters_of, shapes
from extgate.analysis.worlds import World
from extgate.core.extension import KINDS
from extgate.core.glob import tokens
from extgate.core.names import Naming
from extgate.core.patterns import matches, nfc
from extgate.core.policy import Test as EntryTest

_TEXTS = ["mcp", "a", "b", "_", "__", "-", ".", "/", " ", "é", "mcp_", "x", "工", "A", ":"]
_PATTERNS = [
    "a",
    "b",
    "_",
    "__",
    "*",
    "?",
    "*",
    "/",
    "mcp_",
    "mcp__",
    "[!a]",
    "[a-b_]",
    "é",
    ".",
    "-",
    "x",
    ":",
    "default",
]


def _values(rng: random.Random, world: World) -> dict[str, str] | None:
    values = {}
    for text in world.texts:
        if text.is_optional and rng.random() < 0.4:
            continue
        word = "".join(rng.choices(_TEXTS, k=rng.randint(1, 4))).strip() or "a"
        values[text.name] = "" if not text.min_length and rng.random() < 0.3 else word
    values |= {text: rng.choice(names) for text, names in world.one_of.items()}
    clashes = any(matches(values[text], pattern) for text, pattern in world.never if text in values)
    return None if clashes else values


def _is_in(box: Box, words: dict[str, Letters]) -> bool:
    return all((c.text in words and c.glob.accepts(words[c.text])) != c.is_not for c in box)


@pytest.mark.parametrize("kind", KINDS)
def test_a_thing_lies_in_a_box_exactly_when_a_spelling_matches(kind: str) -> None:
    rng = random.Random(kind)
    hits = 0
    for _ in range(150):
        world, shape = rng.choice(list(shapes(kind)))
        values = _values(rng, world)
        if values is None:
            continue
        patterns = ["".join(rng.choices(_PATTERNS, k=rng.randint(1, 6))) for _ in range(2)]
        also = letters_of(kind) + "".join(values.values())
        alphabet = Alphabet(map(tokens, patterns), also=also, apart=apart)
        encoder = Encoder(shape, alphabet)
        words = {name: letters for name, text in values.items() if (letters := alphabet.read(nfc(text))) is not None}
        assert len(words) == len(values)
        ext, others = world.build(values)
        for facet, spellings in Naming((ext, *others)).of(ext).items():
            for pattern in patterns:
                if pattern in spellings and "[" in pattern:
                    continue  # a name that spells a class out is left out of every universe
                for is_exact in (False, True):
                    boxes = encoder.boxes(EntryTest(facets=(facet,), pattern=pattern, is_exact=is_exact))
                    real = pattern in spellings if is_exact else any(matches(name, pattern) for name in spellings)
                    assert any(_is_in(box, words) for box in boxes) == real, (values, facet, pattern, is_exact)
                    hits += real
    assert hits > 15


def test_every_wire_name_of_the_core_is_learned() -> None:
    from extgate.core.names import wire_names

    server, item = "srv.é-1", "it em.é-2"
    (world, shape), *_ = shapes("mcp_tool")
    spelled = Naming(()).of(world.build({"server": server, "item": item})[0])["item_any"]
    assert set(map(nfc, wire_names(server, item))) <= set(spelled)
    joined = [form for form in shape.forms["item_any"] if sum(isinstance(part, Slot) for part in form.template) == 2]
    assert len(joined) == len(spelled)


def test_names_that_bring_their_prefix_along_are_known() -> None:
    (_, shape), *_ = shapes("mcp_tool")
    assert len(shape.absorbing) == 1
