"""The engine under `diff`, `prove` and `lint`, held against trying every name of a small world."""

from __future__ import annotations

import random
import string
import tracemalloc
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extgate.analysis.alphabet import Alphabet, Universe
from extgate.analysis.globs import read_glob
from extgate.analysis.space import Signed, dead, outside
from tests.unit.analysis import small_world
from tests.unit.analysis.small_world import WORLD, admitted, all_of, names_of


def test_a_thousand_random_pairs_agree_with_trying_every_name() -> None:
    rng = random.Random(20261130)
    verdicts = {"witness": 0, "none": 0}
    for _ in range(1000):
        a, b = small_world.pair(rng)
        difference = admitted(a) - admitted(b)
        answer = outside(a, b, universe=WORLD)
        verdicts[answer.verdict] += 1
        if answer.verdict == "none":
            assert not difference
        else:
            assert answer.witness in difference
            assert answer.is_shortest
            assert len(answer.witness or "") == min(map(len, difference))
    assert min(verdicts.values()) > 300


def test_without_its_dead_patterns_a_list_holds_the_same_and_every_other_pattern_is_needed() -> None:
    rng = random.Random(7)
    found = 0
    for _ in range(500):
        patterns = list(small_world.patterns(rng, 8)) or ["a"]
        patterns += [rng.choice(patterns)] if rng.random() < 0.5 else []
        gone = {row.index for row in dead(patterns, universe=WORLD)}
        kept = [p for at, p in enumerate(patterns) if at not in gone]
        assert all_of(kept) == all_of(patterns)
        for at, pattern in enumerate(patterns):
            others = [p for i, p in enumerate(patterns) if i != at and i not in gone]
            assert at in gone or not names_of(pattern) or not names_of(pattern) <= all_of(others)
        found += len(gone)
    assert found > 500


def test_a_pattern_is_shadowed_exactly_when_earlier_ones_hold_all_its_names() -> None:
    rng = random.Random(8)
    for _ in range(500):
        patterns = small_world.patterns(rng, 8)
        shadowed = {row.index for row in dead(patterns, universe=WORLD, in_order=True)}
        for at, pattern in enumerate(patterns):
            is_shadowed = bool(names_of(pattern)) and names_of(pattern) <= all_of(patterns[:at])
            assert (at in shadowed) == is_shadowed, (patterns, at)


def test_the_one_pattern_that_covers_a_dead_one_is_named() -> None:
    rows = dead(["github_*", "slack_send", "github_get_*", "slack_?end", "*_mail"])
    assert {row.index: row.by for row in rows} == {1: 3, 2: 0}


def test_a_pattern_that_only_several_cover_is_dead_without_a_name() -> None:
    (row,) = dead(["a?*", "a", "a*"], in_order=True)
    assert (row.index, row.by) == (2, None)


def test_of_equal_patterns_the_later_is_the_dead_one() -> None:
    assert [(row.index, row.by) for row in dead(["read", "write", "read"])] == [(2, 0)]


# ---------------------------------------------------------------------------------------------- what people ask


SAME = [
    (Signed(allow=("read", "write")), Signed(allow=("write", "read"))),
    (Signed(allow=("github_get_*", "github_*")), Signed(allow=("github_*",))),
    (Signed(allow=("[Bb]ash",)), Signed(allow=("bash", "Bash"))),
    (Signed(allow=("*",), deny=("a*", "ab*")), Signed(allow=("*",), deny=("a*",))),
    (Signed(allow=("*a*",)), Signed(allow=("a*", "?*a*"))),
    (Signed(allow=("[!a]*",)), Signed(allow=("*",), deny=("a*",))),
    (Signed(allow=("x*y*",)), Signed(allow=("x*y*", "x*?y*", "xy*"))),
    (Signed(allow=("*?",)), Signed(allow=("?*",))),
    (Signed(allow=("read",), deny=("write",)), Signed(allow=("read",))),
    (Signed(), Signed(allow=("read",), deny=("*",))),
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_policies_written_differently_are_found_equal(a: Signed, b: Signed) -> None:
    assert outside(a, b).verdict == outside(b, a).verdict == "none"


@pytest.mark.parametrize(
    ("before", "after", "witness"),
    [
        (("github_get_*",), ("github_*",), "github_"),
        (("read",), ("read", "write"), "write"),
        (("a*",), ("*",), "x"),
        (("slack_*", "jira_get_*"), ("slack_*", "jira_*"), "jira_"),
        (("data_?",), ("data_*",), "data_"),
        (("[a-y]*",), ("[a-z]*",), "z"),
        (("*_read",), ("*_read", "*_readme"), "_readme"),
        (("caf?",), ("caf*",), "caf"),
    ],
)
def test_one_changed_pattern_gives_the_shortest_witness(
    before: tuple[str, ...], after: tuple[str, ...], witness: str
) -> None:
    answer = outside(Signed(allow=after), Signed(allow=before))
    assert (answer.witness, answer.is_shortest) == (witness, True)


def test_an_installed_name_is_the_witness_before_any_other() -> None:
    answer = outside(Signed(allow=("github_*",)), Signed(allow=("slack_*",)), known=("slack_send", "github_get_issue"))
    assert answer.witness == "github_get_issue"


def test_a_known_name_that_is_no_witness_changes_nothing() -> None:
    assert outside(Signed(allow=("a*",)), Signed(allow=("a*", "b")), known=("a", "b", "c")).verdict == "none"


def test_an_answer_holds_for_characters_that_no_pattern_names() -> None:
    answer = outside(Signed(allow=("*",)), Signed(allow=("[ -~]*",)))
    assert answer.verdict == "witness"
    assert answer.witness
    assert not answer.witness.isascii()


def test_a_narrow_universe_is_kept_to() -> None:
    universe = Universe(characters=string.ascii_letters)
    assert outside(Signed(allow=("*",)), Signed(allow=("[A-z]*",)), universe=universe).verdict == "none"


def test_a_name_longer_than_the_universe_allows_is_no_witness() -> None:
    assert outside(Signed(allow=("?" * 9,)), Signed(), universe=Universe(max_length=8)).verdict == "none"


def test_the_empty_name_is_left_out() -> None:
    assert outside(Signed(allow=("*",)), Signed(allow=("?*",))).verdict == "none"


@given(st.text("ab*?[]!-é", max_size=7), st.text("abé-!]", min_size=1, max_size=5))
def test_a_glob_holds_the_names_that_its_pattern_matches(pattern: str, name: str) -> None:
    alphabet = Alphabet.of([pattern, name])
    letters = alphabet.read(name)
    assert letters is not None
    assert read_glob(pattern, alphabet).accepts(letters) == fnmatchcase(name, pattern)


# ---------------------------------------------------------------------------------------------- bounds


def _hard(depth: int) -> tuple[Signed, Universe]:
    """`*` against two globs that an antichain cannot thin out, over two letters; short names are denied."""
    short = tuple("?" * length for length in range(1, 2 * depth + 4))
    deny = (f"*a{'?' * depth}b*", f"*b{'?' * depth}a*", *short)
    return Signed(allow=("*",), deny=deny), Universe(characters="ab", max_length=64)


@pytest.mark.parametrize("depth", [8, 12, 16])
def test_a_hard_question_is_undecided_within_its_budget_and_little_memory(depth: int) -> None:
    policy, universe = _hard(depth)
    tracemalloc.start()
    answer = outside(policy, Signed(), universe=universe, budget=100_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.verdict == "undecided"
    assert answer.witness is None
    assert answer.spent < 110_000
    assert peak < 8_000_000


def test_the_same_question_with_enough_budget_has_its_answer() -> None:
    policy, universe = _hard(6)
    answer = outside(policy, Signed(), universe=universe)
    assert (answer.verdict, len(answer.witness or "")) == ("witness", 16)


def test_many_infix_patterns_stay_within_budget_and_memory() -> None:
    rng = random.Random(3)
    infix = tuple("*" + "*".join(rng.choices("abcdef", k=3)) + "*" for _ in range(400))
    tracemalloc.start()
    answer = outside(Signed(allow=infix[:200]), Signed(allow=infix[200:], deny=infix[:50]), budget=200_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.spent < 210_000
    assert peak < 32_000_000


@pytest.mark.parametrize("depth", [4, 8, 12])
def test_a_union_that_holds_all_only_together_is_seen_through(depth: int) -> None:
    tail = "?" * depth
    assert outside(Signed(allow=(f"*a?{tail}",)), Signed(allow=(f"*a[a-m]{tail}", f"*a[!a-m]{tail}"))).verdict == "none"


def test_large_equal_policies_cost_work_in_proportion_to_their_size() -> None:
    rng = random.Random(1)
    spent = {}
    for size in (50, 500):
        names = [f"server{rng.randint(1, 99)}__tool_{rng.randint(1, 999)}" for _ in range(size)]
        allow = tuple(name if rng.random() < 0.6 else name[:12] + "*" for name in names)
        spent[size] = outside(Signed(allow=allow), Signed(allow=allow[::-1])).spent
    assert spent[500] <= 12 * spent[50]
