"""Matching by generation: `fnmatchcase` or equal text, whichever way a set or an index finds its answer."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extgate.core import patterns as module
from extgate.core.glob import MAX_PATTERN, STAR, Token, clean, nfc, tokens
from extgate.core.patterns import NameIndex, PatternSet, matches

HOSTILE = "ab-]![^*?\\&|~.(\n\0\u2028\u00e9e\u0301\u0323\U0001f600\ud800\udc00"
IN_CLASSES = "abc!-]^[\\"
ALPHABETS = ("ab", "abc*?", "a[]!^-b*?\n\0\u2028\U0001f600\ud800\u0301e", "abc_/:", HOSTILE)

names = st.one_of(st.text(HOSTILE, max_size=12), st.text(max_size=12), st.text("ab", max_size=30))
classes = st.text(IN_CLASSES, max_size=6).map(lambda body: f"[{body}]")
wildcards = st.sampled_from(["*", "?", "**", "[", "[!"])
globs = st.lists(st.one_of(st.text("ab\u00e9\n", min_size=1, max_size=3), classes, wildcards), max_size=6).map("".join)
patterns = st.one_of(globs, st.text(HOSTILE, max_size=12), st.text(max_size=12))


def expected(name: str, pattern: str) -> bool:
    """The law, word by word."""
    name, pattern = unicodedata.normalize("NFC", name), unicodedata.normalize("NFC", pattern.strip())
    return name == pattern or fnmatchcase(name, pattern)


def walk(parts: Sequence[Token], name: str) -> bool:
    """What the tokens say, tried in the most obvious way."""
    if not parts:
        return not name
    head, *rest = parts
    if head is STAR:
        return any(walk(rest, name[at:]) for at in range(len(name) + 1))
    if head.text:
        return name.startswith(head.text) and walk(rest, name[len(head.text) :])
    return bool(name) and head.admits(name[0]) and walk(rest, name[1:])


def near(pattern: str, draw: random.Random, alphabet: str) -> str:
    """A name that the pattern may well match."""
    filled = "".join(
        draw.choice(alphabet) if c == "?" else draw.choice(["", "a", alphabet[:2]]) if c == "*" else c for c in pattern
    )
    return filled if draw.random() < 0.7 else filled + draw.choice(alphabet)


def some_patterns(count: int, draw: random.Random, alphabet: str) -> list[str]:
    """All kinds of patterns over one alphabet, so that many match and share their texts."""
    plain = alphabet.translate({ord(c): None for c in "*?["})
    shapes: list[Callable[[str], str]] = [
        lambda text: text,
        lambda text: text + "*",
        lambda text: "*" + text,
        lambda text: f"*{text}*",
        lambda text: text + draw.choice(["?", "[a-c]", "[!a]", "[b-a]", "[]]"]) + text[:2],
        lambda text: draw.choice(["*", ""]) + text + draw.choice(["?", "[a-c]*", "*[!a]*", "*"]) + text[:1] + "*",
    ]
    made = []
    for _ in range(count):
        letters = plain if draw.random() < 0.8 else alphabet
        text = "".join(draw.choice(letters) for _ in range(draw.choice([0, 1, 2, 4, 6, 12])))
        made.append(draw.choice(shapes)(text))
    return made


def some_names(count: int, draw: random.Random, alphabet: str, made: Sequence[str]) -> list[str]:
    """Random names, names that patterns may match, and the patterns' own texts."""
    free = ["".join(draw.choice(alphabet) for _ in range(draw.choice([0, 1, 3, 8, 20]))) for _ in range(count)]
    return [
        *free,
        *(near(draw.choice(made), draw, alphabet) for _ in range(count)),
        *draw.sample(made, min(3, len(made))),
    ]


def stand_in(texts: list[str]) -> Callable[[str, bool], list[str]]:
    """An obvious automaton, as strict about text as the real one."""
    for text in texts:
        assert text, "the real one takes no empty text"
        text.encode()

    def search(name: str, overlapping: bool) -> list[str]:
        assert overlapping
        name.encode()
        return [text for at in range(len(name)) for text in texts if name.startswith(text, at)]

    return search


@pytest.fixture(params=["pure", "stand-in", "installed"])
def accelerator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way that a large set can find its rows; small sets go the accelerated way too where there is one."""
    real = module._aho_corasick()
    if request.param == "installed" and real is None:
        pytest.skip("ahocorasick_rs is not installed; pip install extgate[fast]")
    build = {"pure": None, "stand-in": stand_in, "installed": real}[request.param]
    monkeypatch.setattr(module, "_aho_corasick", lambda: build)
    monkeypatch.setattr(module, "_MANY", 3)
    return str(request.param)


@settings(max_examples=1500)
@given(names, patterns)
def test_one_pattern_matches_what_fnmatchcase_or_equal_text_matches(name: str, pattern: str) -> None:
    assert matches(name, pattern) is expected(name, pattern)
    assert matches(pattern.strip(), pattern)


@settings(max_examples=1000)
@given(st.one_of(classes, globs), st.text(IN_CLASSES + "xz\n", max_size=4))
def test_tokens_mean_what_fnmatch_makes_of_the_pattern(pattern: str, name: str) -> None:
    parts = tokens(pattern)
    assert walk(parts, name) is fnmatchcase(name, pattern)
    for character in IN_CLASSES + "xz\n":
        assert walk(parts, character) is fnmatchcase(character, pattern)


def test_every_short_class_means_what_fnmatch_makes_of_it() -> None:
    for size in range(1, 6):
        for body in map("".join, product("!-]ac", repeat=size)):
            pattern = f"[{body}]"
            for name in ("!", "-", "]", "a", "b", "c", "^", "a]", "-]"):
                assert matches(name, pattern) is fnmatchcase(name, pattern), (name, pattern)


@given(patterns)
def test_tokens_are_in_one_form(pattern: str) -> None:
    parts = tokens(pattern)
    assert all(token.text for token in parts if token.kind == "text")
    assert not any(left.kind == right.kind and left.kind in ("text", "star") for left, right in pairwise(parts))
    for token in parts:
        bounds = [ord(bound) for span in token.ranges for bound in span]
        assert bounds == sorted(bounds)
        assert all(ord(left[1]) + 1 < ord(right[0]) for left, right in pairwise(token.ranges))


def check_set(seed: int, count: int, alphabet: str) -> None:
    """First, all, and the index over names, against the loop."""
    draw = random.Random(seed)
    made = some_patterns(count, draw, alphabet)
    asked = some_names(12, draw, alphabet, made)
    compiled, index = PatternSet(made), NameIndex(asked)
    every = [tuple(at for at, pattern in enumerate(made) if expected(name, pattern)) for name in asked]
    first = [hits[0] if hits else -1 for hits in every]
    assert [compiled.first(name) for name in asked] == first
    assert [compiled.first(name) for name in asked] == first, "the second time, from memory"
    assert [compiled.all(name) for name in asked] == every
    assert compiled.first_of(asked) == min((at for at in first if at >= 0), default=-1)
    assert index.first(compiled) == first
    for pattern in draw.sample(made, min(4, count)):
        assert index.rows(pattern) == [row for row, name in enumerate(asked) if expected(name, pattern)]


SIZES = st.one_of(st.integers(1, 20), st.integers(1, 600), st.sampled_from([8, 9, 64, 65, 300, 600]))


def test_the_first_pattern_in_the_list_decides_however_many_and_however_found(accelerator: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 2**32), SIZES, st.sampled_from(ALPHABETS))
    def law(seed: int, count: int, alphabet: str) -> None:
        check_set(seed, count, alphabet)

    law()


@pytest.mark.parametrize("widest", [1, 2, 3, 5])
@pytest.mark.parametrize("few", [0, 8])
def test_no_size_at_which_the_way_changes_changes_the_answer(
    widest: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"_WIDEST": widest, "_FEW": few, "_BROAD": few, "_aho_corasick": lambda: None}.items():
        monkeypatch.setattr(module, name, value)
    for seed, count in enumerate((1, 2, 8, 9, 10, 17, 63, 64, 65, 130)):
        check_set(seed * 31 + widest, count, ALPHABETS[seed % len(ALPHABETS)])


def test_an_answer_is_the_same_with_and_without_the_accelerator_on_lone_surrogates(accelerator: str) -> None:
    made = ["*\ud800*", "a\udc00*", "*b", "*[!a]\ud83d\ude00*", "*\U0001f600*", "*ab*", "x*", "*"]
    for name in ("\ud800", "a\udc00b", "b", "\ud83d\ude00", "\U0001f600", "ab\ud800", "", "x" * 3000):
        assert PatternSet(made).all(name) == tuple(at for at, pattern in enumerate(made) if expected(name, pattern))


def test_names_may_be_very_long(accelerator: str) -> None:
    made = [
        *("a" * count + "*" for count in range(1, 200, 9)),
        *(f"*{'a' * count}b*" for count in range(1, 90)),
        "*a*b?*",
    ]
    compiled = PatternSet(made)
    for name in ("a" * 10_000, "a" * 9_999 + "b", "\n" * 10_000, "\ud800" * 10_000, "ab\0" * 3_000):
        assert compiled.all(name) == tuple(at for at, pattern in enumerate(made) if expected(name, pattern))
        assert compiled.first(name) == next(iter(compiled.all(name)), -1)


@given(st.text(max_size=40))
def test_a_clean_pattern_stays_as_it_is(pattern: str) -> None:
    assert clean(clean(pattern)) == clean(pattern) == unicodedata.normalize("NFC", pattern.strip())


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from("ae\u0301\u0323\u0344\u0f73\u0f71\u1ea5\u3099\uac00\u1100\u1161\U0001d160\ud800"), max_size=12
    ),
    st.integers(1, 60),
)
def test_text_of_any_length_comes_out_in_nfc(characters: list[str], times: int) -> None:
    text = "".join(characters) * times
    assert nfc(text) == unicodedata.normalize("NFC", text)


@given(st.text("ab*?[]", min_size=MAX_PATTERN - 3, max_size=MAX_PATTERN), st.text("ab", max_size=50))
@settings(max_examples=25, deadline=None)
def test_the_longest_patterns_are_still_read_and_matched(pattern: str, name: str) -> None:
    assert matches(name, pattern) is expected(name, pattern)
    assert PatternSet([pattern]).first(name) == (0 if expected(name, pattern) else -1)
