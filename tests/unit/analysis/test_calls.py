"""Rules on arguments that are read in a runtime's own way, held against asking about many lines."""

from __future__ import annotations

import random

from extgate.analysis.policies import differing
from extgate.analysis.witness import DIRECTIONS
from extgate.core.decide import CompiledProfile, judge
from extgate.core.extension import Extension
from extgate.core.names import Naming
from extgate.core.policy import STRICTNESS, ArgTest, Policy, Profile, Rule
from extgate.dialects.commands import Commands

TOOL = Extension(kind="tool", name="bash", source="builtin")
COMMANDS = [
    "a",
    "b",
    "a x",
    "ab",
    "b a",
    "nice a",
    "sudo b",
    "LANG=C a",
    "/bin/a x",
    "'a' x",
    "a > x",
    "a $(b)",
    "a 2>&1",
]
LINES = [
    *COMMANDS,
    *(f"{one}; {other}" for one in COMMANDS for other in ("a x", "b", "nice b")),
    "a '",
    "$x a",
    "*a",
    "''",
]
CALLS = [{}, {"Command": "a"}, {"command": 3}, *({"command": line} for line in LINES)]
PATTERNS = ["a", "a *", "b", "b *", "ab", "*", "?", "a?*", "[ab]*", "*x"]
READINGS = [None, Commands(), Commands(is_strict=True), Commands(unwraps=False)]


def policy(rng: random.Random) -> Profile:
    rules = tuple(_rule(rng) for _ in range(rng.randint(0, 4)))
    return Profile(id="p", layers=(Policy(dialect="x", rules=rules, default=rng.choice(["allow", "ask", "deny"])),))


def _rule(rng: random.Random) -> Rule:
    pattern, *also = rng.sample(PATTERNS, rng.randint(1, 3))
    but = tuple(rng.sample(PATTERNS, 1)) if rng.random() < 0.3 else ()
    reading, every = rng.choice(READINGS), rng.random() < 0.4
    when = ArgTest(name="command", pattern=pattern, also=tuple(also), but=but, every=every, reading=reading)
    effect = rng.choice(["allow", "ask", "deny"])
    return Rule(text="r", effect=effect, kinds=frozenset({"tool"}), unless=True, when=(when,))


def seen(old: Profile, new: Profile) -> set[str]:
    """The directions in which some line tried is answered otherwise."""
    sides, naming, found = [CompiledProfile(old), CompiledProfile(new)], Naming((TOOL,)), set()
    for arguments in CALLS:
        before, after = (STRICTNESS[judge(side, naming, TOOL, arguments).effect or "deny"] for side in sides)
        found |= {"wider"} if after < before else {"narrower"} if after > before else set()
    return found


def test_lines_are_answered_alike_where_no_call_is_said_to_differ() -> None:
    rng = random.Random(5)
    settled = 0
    for _ in range(60):
        old, new = policy(rng), policy(rng)
        differ = seen(old, new)
        for direction in DIRECTIONS:
            found = differing(old, new, "tool", direction, asked="calls", budget=20_000)
            assert direction not in differ or found.witness or found.undecided, (old, new)
            settled += not found.undecided
    assert settled > 105


def test_the_same_rules_in_another_order_and_merged_are_equal_over_all_lines() -> None:
    def deny(*patterns: str) -> Rule:
        pattern, *also = patterns
        when = ArgTest(name="command", pattern=pattern, also=tuple(also), reading=Commands())
        return Rule(text="r", effect="deny", kinds=frozenset({"tool"}), unless=True, when=(when,))

    one, other = (
        Profile(id="p", layers=(Policy(dialect="x", rules=rules, default="allow"),))
        for rules in ((deny("rm *", "rm"), deny("curl *")), (deny("curl *", "rm *"), deny("rm")))
    )
    outcomes = [differing(one, other, "tool", direction, asked="calls") for direction in DIRECTIONS]
    assert [(row.witness, row.undecided) for row in outcomes] == [(None, ""), (None, "")]


def test_a_pattern_with_a_character_that_no_name_holds_counts_for_arguments() -> None:
    when = ArgTest(name="command", pattern="a\tb")
    rule = Rule(text="r", effect="deny", kinds=frozenset({"tool"}), unless=True, when=(when,))
    one, other = (
        Profile(id="p", layers=(Policy(dialect="x", rules=rules, default="allow"),)) for rules in ((rule,), ())
    )
    found = differing(one, other, "tool", "wider", asked="calls").witness
    assert found
    assert found.arguments == {"command": "a\tb"}
