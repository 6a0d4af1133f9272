"""Globs that are merged hold just what they held before, together."""

from __future__ import annotations

import random

from extgate.analysis.alphabet import Alphabet
from extgate.analysis.globs import read_glob
from extgate.analysis.merging import merged
from extgate.analysis.policies import compare
from tests.unit.analysis.items import profile

NAMES = [a + b + c for a in ("", "a", "b", "c") for b in ("", "a", "b", "c") for c in ("", "a", "b", "c")]


def test_what_is_merged_holds_nothing_that_none_of_the_globs_held() -> None:
    rng = random.Random(3)
    count = 0
    for _ in range(10):
        texts = ["".join(rng.choice(["a", "b", "c", "[ab]", "[!a]", "?", "*"]) for _ in range(3)) for _ in range(20)]
        alphabet = Alphabet.of(texts)
        globs = [read_glob(text, alphabet) for text in texts]
        for glob in merged(globs):
            count += 1
            for name in NAMES:
                letters = alphabet.read(name)
                if letters is not None and glob.accepts(letters):
                    assert any(one.accepts(letters) for one in globs), (texts, name)
    assert count > 20


def test_a_class_split_in_two_is_one_again() -> None:
    alphabet = Alphabet.of(("t_[a-m]*", "t_[n-z]*", "t_[a-z]*"))
    halves = [read_glob(text, alphabet) for text in ("t_[a-m]*", "t_[n-z]*")]
    assert merged(halves) == [read_glob("t_[a-z]*", alphabet)]


def test_hundreds_of_split_classes_are_equal_for_work_in_proportion_to_their_number() -> None:
    whole = {"mcp": {"disabled": [f"t{at}/[a-z]*" for at in range(200)]}}
    parts = {"mcp": {"disabled": [f"t{at}/[{part}]*" for at in range(200) for part in ("a-m", "n-z")]}}
    (found,) = compare(profile(whole), profile(parts), kinds=["mcp_tool"])
    assert found.verdict == "equal"
    assert found.wider.spent + found.narrower.spent < 2000


def test_one_with_at_least_one_character_more_and_one_without_it_are_a_star() -> None:
    texts = ["t", "t?*", "a_z", "a_?*z", "b?", "b??*"]
    alphabet = Alphabet.of([*texts, "t*", "a_*z", "b?*"])
    found = merged([read_glob(text, alphabet) for text in texts])
    assert set(found) >= {read_glob(text, alphabet) for text in ("t*", "a_*z", "b?*")}


def test_servers_by_name_and_by_all_their_items_are_told_apart_for_little_work() -> None:
    names = [f"server{at}_*" for at in range(200)]
    sides = [{"mcp": {"disabled": [f"{name}{tail}" for name in names]}} for tail in ("", "/*")]
    (found,) = compare(*map(profile, sides), kinds=["mcp_tool"])
    assert found.verdict == "wider"
    assert not found.narrower.undecided
    assert found.wider.spent + found.narrower.spent < 1000
