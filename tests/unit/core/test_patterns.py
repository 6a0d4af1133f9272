"""core/glob.py and core/patterns.py by example."""

from __future__ import annotations

import subprocess
import sys
from time import process_time

import pytest

from extgate.core import patterns as module
from extgate.core.glob import ANY, MAX_PATTERN, STAR, Token, clean, is_literal, nfc, tokens, unclosed_bracket
from extgate.core.patterns import NameIndex, PatternSet, matches
from extgate.errors import PatternError


@pytest.mark.parametrize("value", [None, 7, True, ["a"], {"a": 1}, b"a"])
def test_a_pattern_that_is_not_a_string_is_an_error(value: object) -> None:
    with pytest.raises(PatternError, match="expected a pattern"):
        clean(value)


def test_a_pattern_may_be_as_long_as_the_limit_and_no_longer() -> None:
    assert clean(" " + "a" * MAX_PATTERN + "\n") == "a" * MAX_PATTERN
    with pytest.raises(PatternError, match="at most 1024 characters"):
        clean("a" * (MAX_PATTERN + 1))


def test_a_pattern_that_is_too_long_only_after_normalising_is_an_error_too() -> None:
    grows = "\U0001d160" * (MAX_PATTERN // 2)  # a musical note of three characters in NFC
    with pytest.raises(PatternError):
        clean(grows)


def test_white_space_around_a_pattern_is_dropped_and_white_space_inside_stays() -> None:
    assert clean("\t a b\u00a0\n") == "a b"


def test_names_and_patterns_meet_in_nfc() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    assert matches(composed, decomposed)
    assert matches(decomposed, composed)
    assert matches(decomposed, "caf?")
    assert PatternSet([decomposed]).first(composed) == 0
    assert NameIndex([decomposed]).rows("caf\u00e9*") == [0]


def test_literal_means_without_any_wildcard() -> None:
    assert is_literal("a]b!c-d^{x}\\")
    assert not any(map(is_literal, ["a*", "?", "a[b"]))


@pytest.mark.parametrize("pattern", ["[", "a[", "[!", "[a", "[a][b", "[!]a[", "x[*", "[]["])
def test_a_bracket_without_its_end_is_unclosed(pattern: str) -> None:
    assert unclosed_bracket(pattern)


@pytest.mark.parametrize(
    "pattern", ["", "a", "]", "[a]", "[]]", "[!]]", "[!a]", "[[]", "[a][b]", "[]a]", "*?", "[]", "[!]"]
)
def test_a_bracket_with_its_end_is_closed(pattern: str) -> None:
    assert not unclosed_bracket(pattern)


def in_class(*ranges: str, negated: bool = False) -> Token:
    return Token(kind="class", negated=negated, ranges=tuple((span[0], span[-1]) for span in ranges))


def text(characters: str) -> Token:
    return Token(kind="text", text=characters)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", ()),
        ("ab", (text("ab"),)),
        ("a**b", (text("a"), STAR, text("b"))),
        ("a[b", (text("a[b"),)),
        ("a[[]b", (text("a[b"),)),
        ("?[a-c]", (ANY, in_class("ac"))),
        ("[!a-cx]", (in_class("ac", "x", negated=True),)),
        ("[c-ea-d]", (in_class("ae"),)),
        ("[abc]", (in_class("ac"),)),
        ("[b-a]", (in_class(),)),
        ("[b-a!]", (ANY,)),
        ("[!b-a]", (ANY,)),
        ("[b-a!x]", (in_class("x", negated=True),)),
        ("[b-a!-z]", (in_class("-", "z", negated=True),)),
        ("[]]", (text("]"),)),
        ("[]a]", (in_class("]", "a"),)),
        ("[!]]", (in_class("]", negated=True),)),
        ("[a-]", (in_class("-", "a"),)),
        ("[--x]", (in_class("-x"),)),
        ("[^a]", (in_class("^", "a"),)),
        ("[!-a]", (in_class("-", "a", negated=True),)),
        ("[!--a]", (in_class("-a", negated=True),)),
        ("[a-c-e]", (in_class("-", "ac", "e"),)),
        ("[\\]", (text("\\"),)),
    ],
)
def test_tokens_say_what_fnmatch_reads(pattern: str, expected: tuple[Token, ...]) -> None:
    assert tokens(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*", ["", "a", "a\nb", "\x00", "\ud800"], []),
        ("a*", ["a", "ab", "a/b:c__d", "a\n"], ["", "ba", "A"]),
        ("*a", ["a", "ba", "\na"], ["ab", "a\n"]),
        ("*a*", ["a", "bab", "\na\n"], ["", "b"]),
        ("a?", ["ab", "a\n", "a\U0001f600", "a?"], ["a", "abc"]),
        ("a*b*c", ["abc", "axbxc", "abbcc"], ["acb", "ab"]),
        ("a*ab", ["aab", "axab"], ["ab"]),
        ("[x]", ["x", "[x]"], ["y", "[y]"]),
        ("a[b", ["a[b"], ["ab", "a"]),
        ("*[0-9]*", ["a1b", "7"], ["ab", ""]),
        ("*[!a]b*", ["xb", "axbc"], ["ab", "b", "aab"]),
        ("[b-a]", ["[b-a]"], ["a", "b", ""]),
        ("[b-a!]", ["a", "!", "\n", "[b-a!]"], ["", "ab"]),
        ("*[b-a]*", ["*[b-a]*"], ["a", "b"]),
        (" a ", ["a"], [" a ", "a "]),
        ("", [""], ["a", " "]),
    ],
)
def test_every_way_to_match_agrees_with_these_examples(pattern: str, yes: list[str], no: list[str]) -> None:
    for name in yes + no:
        assert matches(name, pattern) is (name in yes), name
        assert PatternSet([pattern]).first(name) == (0 if name in yes else -1), name
    assert NameIndex(yes + no).rows(pattern) == list(range(len(yes)))


def test_the_first_match_in_list_order_decides_and_all_are_listed_in_order() -> None:
    patterns = PatternSet(["b*", "*c", "abc", "a*", "*b*", "?bc", "a*"])
    assert patterns.first("abc") == 1
    assert patterns.all("abc") == (1, 2, 3, 4, 5, 6)
    assert patterns.first("x") == -1
    assert patterns.all("x") == ()
    assert len(patterns) == 7


def test_the_lowest_index_over_several_spellings_decides() -> None:
    patterns = PatternSet(["github/*", "github", "*"])
    assert patterns.first_of(["github", "github/x"]) == 0
    assert PatternSet(["a"]).first_of(["b", "c"]) == -1
    assert patterns.first_of([]) == -1


def test_an_empty_set_matches_nothing_and_an_empty_index_has_no_rows() -> None:
    assert PatternSet([]).first("") == -1
    assert PatternSet([]).all("a") == ()
    assert NameIndex([]).rows("*") == []
    assert NameIndex([]).first(PatternSet(["*"])) == []
    assert NameIndex(["a", "a"]).first(PatternSet([])) == [-1, -1]


def test_a_text_that_spans_two_neighbouring_names_is_in_neither() -> None:
    assert NameIndex(["ab", "", "cd", "bcd"]).rows("*bc*") == [3]


def test_equal_names_all_have_their_row() -> None:
    assert NameIndex(["a", "b", "a"]).rows("a") == [0, 2]


def test_a_set_forgets_names_rather_than_grow_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MEMO", 10)
    patterns = PatternSet(["a*"])
    for count in range(100):
        assert patterns.first(f"a{count}") == 0
        assert len(patterns._memo) <= 10
    patterns.first("b" * 10_000)
    assert all(len(name) < 10_000 for name in patterns._memo)


def test_a_small_set_never_loads_the_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(module, "_aho_corasick", lambda: asked.append(1))
    PatternSet([f"a{count}*" for count in range(module._MANY - 1)] + [f"a{count}" for count in range(500)])
    assert not asked
    PatternSet([f"a{count}*" for count in range(module._MANY)])
    assert asked


def test_importing_the_matcher_loads_neither_fnmatch_nor_the_accelerator() -> None:
    code = (
        "import sys, extgate.core.patterns as p; p.PatternSet(['a*', 'b?']).first('a');"
        "print([m for m in ('fnmatch', 'ahocorasick_rs') if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-S", "-c", f"import sys; sys.path[:0]={sys.path!r}; {code}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        == "[]\n"
    )


def least_time(action: object, times: int) -> float:
    """CPU seconds of the quickest of seven goes."""
    best = float("inf")
    for _ in range(7):
        start = process_time()
        for _ in range(times):
            action()  # type: ignore[operator]
        best = min(best, process_time() - start)
    return best


LONGER = 8
"""How much longer the long name is. Work in its square would be 64 times the short one's; linear work is 8 times."""


@pytest.mark.parametrize(
    "pattern",
    [
        "*a*a*a*a*b",
        "*a*a*a*a*a*a*a*a*[b]*",
        "*a?a?a?b*",
        "*" + "a?" * 40 + "b*",
        "*[ab][ab]c",
        "a*" * 100 + "b",
        "*" + "a" * 200 + "b*",
        "?" * 20 + "*b",
    ],
)
def test_work_grows_with_the_length_of_a_name_and_no_faster(pattern: str) -> None:
    patterns = PatternSet([pattern] + [f"*a{'?' * k}a{k}*" for k in range(60)])
    short, long = "a" * 10_000, "a" * 10_000 * LONGER
    assert patterns.first(short) == patterns.first(long) == -1
    assert least_time(lambda: patterns.first(long), 1) < least_time(lambda: patterns.first(short), 1) * LONGER * 4


def test_patterns_that_share_all_their_pieces_are_each_tried_a_few_times_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []
    accepts = module._Glob.accepts
    monkeypatch.setattr(module._Glob, "accepts", lambda glob, name: tried.append(name) or accepts(glob, name))
    patterns = PatternSet([f"*{'a' * 9}[{'b' * count}c]*" for count in range(1, 200)])
    assert patterns.first("a" * 900) == -1
    assert 199 <= len(tried) <= 199 * module._WIDEST


def test_work_grows_with_a_run_of_marks_and_no_faster() -> None:
    short, long = ("a" + "\u0301\u0323" * count for count in (2_000, 2_000 * LONGER))
    assert least_time(lambda: nfc(long), 1) < least_time(lambda: nfc(short), 1) * LONGER * 4


def test_nested_prefixes_cost_one_chain_not_a_search_each() -> None:
    patterns = PatternSet([f"{'a' * count}*" for count in range(1000, 0, -1)])
    assert patterns.first("a" * 500 + "b") == 500
    assert patterns.first("a" * 2000) == 0
    assert patterns.first("b") == -1
    assert len(patterns.all("a" * 500 + "b")) == 500
