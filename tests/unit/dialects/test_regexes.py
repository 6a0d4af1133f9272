"""Regular expressions as globs: where there are some, they match what the expression is found in."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extgate.core.patterns import matches
from extgate.dialects.regexes import as_globs

PIECES = ["a", "b", "ab", ".", ".*", ".+", "[ab]", "[^a]", "(a|b)", "(?:ab|c)", r"\.", r"\*", r"\[", "x|y", "|"]


@given(st.booleans(), st.lists(st.sampled_from(PIECES), max_size=4), st.booleans(), st.text("abcxy.*[", max_size=6))
def test_globs_match_what_the_expression_is_found_in(start: bool, pieces: list[str], end: bool, text: str) -> None:
    pattern = ("^" if start else "") + "".join(pieces) + ("$" if end else "")
    globs = as_globs(pattern)
    if globs is not None:
        assert any(matches(text, glob) for glob in globs) == bool(re.search(pattern, text))


@pytest.mark.parametrize(
    "pattern", ["a{3}", r"\d+", "a*", "(a", "a)", "[a", "(?=a)", "(a|b)*", r"\1", "a??", "(a|b)" * 8]
)
def test_what_a_glob_cannot_say_is_none(pattern: str) -> None:
    assert as_globs(pattern) is None
