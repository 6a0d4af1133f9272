"""Searching with a model's pattern: as `re` does, but never for longer than pattern times text."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from extgate.enforce.bounded_regex import MAX_PATTERN, MAX_TEXT, BadPatternError, Regex

atoms = st.sampled_from(
    ["a", "b", ".", r"\w", r"\d", r"\s", r"\W", "[ab]", "[^a]", "[a-c0-9]", "^", "$", r"\b", r"\B", " ", r"\."]
)
quantifiers = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "*?", "{2,}", "{,2}"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("({}|{})".format, inner, inner),
        st.builds("(?:{})".format, inner),
        st.builds("({}){}".format, inner, quantifiers),
    ),
    max_leaves=8,
)


@given(st.sampled_from(["", "(?i)", "(?s)"]), patterns, st.text("abcAB1 .\n_é", max_size=8))
@example("", ".*a.*", "xxaxx")
@example("", r"a\.*", "b")
@example("(?i)", "É|ß", "é")
def test_it_finds_what_re_finds(flags: str, pattern: str, text: str) -> None:
    try:
        expected = re.search(flags + pattern, text) is not None
    except re.error:
        with pytest.raises(BadPatternError):
            Regex(flags + pattern)
        return
    assert Regex(flags + pattern).search(text) == expected


@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")
@given(st.text("ab().*+?[]{}|\\^$,1", max_size=12), st.text("ab1", max_size=6))
def test_a_pattern_is_searched_as_re_would_or_said_to_be_bad(pattern: str, text: str) -> None:
    try:
        regex = Regex(pattern)
    except BadPatternError:
        return
    assert regex.search(text) == (re.search(pattern, text) is not None)


def steps(pattern: str, text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many characters were put to a test."""
    count = 0
    regex = Regex(pattern)

    def counted(test: object) -> object:
        def run(character: str) -> bool:
            nonlocal count
            count += 1
            return bool(test(character))  # type: ignore[operator]

        return run if callable(test) else test

    monkeypatch.setattr(regex, "_program", [counted(step) for step in regex._program])
    regex.search(text)
    return count


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", r"(\w*)*x", r"\w*\w*\w*\w*z", "(a*)*(a*)*(a*)*b"])
def test_a_pattern_that_backtracks_without_end_is_searched_in_bounded_work(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(Regex(pattern)._program)
    assert steps(pattern, "a" * 3000 + "!", monkeypatch) <= size * 3001


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "unterminated"),
        ("[", "unterminated"),
        ("*a", "nothing to repeat"),
        ("(?=a)", "assert"),
        (r"(a)\1", "groupref"),
        ("(((a{40}){40}){40})", "too large"),
        ("a" * (MAX_PATTERN + 1), "longer"),
        ("(" * 150 + ")" * 50, "unterminated"),
    ],
)
def test_what_is_not_searched_says_why(pattern: str, why: str) -> None:
    with pytest.raises(BadPatternError, match=why):
        Regex(pattern)


def test_what_lies_behind_the_bound_is_not_found() -> None:
    assert Regex("z").search("a" * (MAX_TEXT - 1) + "z")
    assert not Regex("z").search("a" * MAX_TEXT + "z")
