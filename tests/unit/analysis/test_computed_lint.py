"""Lint rules that compute: what is dead, contradicts, can't be met, asks for too much, or is not tested."""

from __future__ import annotations

import random
from typing import Any

import pytest

from extgate.analysis.dead_entries import dead_entries
from extgate.analysis.lint.table import lint
from extgate.analysis.mentions import mentioned
from extgate.core.decide import CompiledProfile, judge
from extgate.core.explain import Decider
from extgate.core.extension import Extension, Finding, Inventory, Server
from extgate.core.policy import Entry, Policy, Profile, Rule
from extgate.core.policy import Test as EntryTest
from tests.unit.analysis import items
from tests.unit.analysis.items import profile

COMPUTED = tuple(f"EG04{n}" for n in range(10))


def found(document: dict[str, Any], *installed: Extension, servers: tuple[str, ...] = ()) -> list[Finding]:
    inventory = Inventory(extensions=installed, servers=tuple(Server(name=name) for name in servers))
    return [row for row in lint(Decider(profile(document), inventory)) if row.code in COMPUTED]


def codes(document: dict[str, Any], *installed: Extension) -> list[str]:
    return [row.code for row in found(document, *installed)]


# ---------------------------------------------------------------------------------------------- dead entries


def test_an_entry_that_another_covers_is_told_with_its_name() -> None:
    (row,) = found({"tools": {"disabled": ["execute_code", "execute_*"]}})
    assert (row.code, row.severity) == ("EG040", "warning")
    assert "`execute_code` changes nothing: `execute_*` (line 1) covers it" in row.message


@pytest.mark.parametrize("lines", [["bash", "bash"], ["[Bb]ash", "bash"], ["*sh", "ba*sh"], ["?*", "*?"]])
def test_the_later_of_equal_entries_or_the_narrower_is_dead(lines: list[str]) -> None:
    (row,) = found({"tools": {"disabled": lines}})
    assert f"`{lines[1]}` changes nothing" in row.message or lines[0] == "?*"


def test_an_entry_that_others_cover_only_together_is_told_without_a_name() -> None:
    (row,) = found({"tools": {"disabled": ["[ad]c", "[be]c", "[ab]c"]}})
    assert (row.code, row.message) == (
        "EG041",
        "tools.disabled: `[ab]c` changes nothing: the other entries of the list cover it together",
    )


def test_a_deny_outside_an_allow_list_changes_nothing() -> None:
    assert codes({"tools": {"allowed": ["read"], "disabled": ["write"]}}) == ["EG042"]


def test_a_deny_of_an_alias_that_is_installed_does_change_something() -> None:
    ext = Extension(kind="tool", name="read", source="builtin", facts={"aliases": ("write",)})
    assert codes({"tools": {"allowed": ["read"], "disabled": ["write"]}}, ext) == []


def test_an_allow_that_a_deny_takes_away_is_a_contradiction() -> None:
    (row,) = found({"mcp": {"allowed": ["slack/get_*", "arxiv*"], "disabled": ["slack*"]}})
    assert row.code == "EG043"
    assert "`slack/get_*` never decides: `slack*` in mcp.disabled (line 1)" in row.message


def test_a_deny_that_narrows_an_allow_is_none() -> None:
    assert codes({"mcp": {"allowed": ["slack*"], "disabled": ["slack/delete_*"]}}) == []


def test_the_last_entry_of_an_allow_list_is_never_dead() -> None:
    assert codes({"tools": {"allowed": ["*"]}}) == []


def test_an_entry_that_became_part_of_two_rules_is_dead_only_in_both() -> None:
    assert codes({"tools": {"disabled": ["github/*", "github/get_*"]}}) == ["EG040"]
    assert codes({"tools": {"disabled": ["*", "github/get_*"]}}) == []  # `*` stays among native tools


def test_taking_dead_entries_out_of_the_file_changes_no_decision() -> None:
    rng = random.Random(77)
    tried = items.things()[::7]
    dead = 0
    for _ in range(60):
        document = items.document(rng)
        (policy,) = profile(document).policies
        for row in dead_entries(policy, Inventory()):
            block, _, key = row.rule.text.partition(".")
            entries = document[block][key]
            if len(entries) > 1 or key == "disabled":  # without its last entry an allow-list would lift its limit
                del entries[len(entries) - 1 - entries[::-1].index(row.entry.text)]
                dead += 1
        kept = profile(document)
        before, after = (CompiledProfile(one) for one in (Profile(id="a", layers=(policy,)), kept))
        for ext, naming in tried:
            assert judge(before, naming, ext).effect == judge(after, naming, ext).effect
    assert dead > 10


# ---------------------------------------------------------------------------------------------- order


def _rule(effect: Any, pattern: str, line: int) -> Rule:
    entry = Entry(text=pattern, tests=(EntryTest(facets=("any",), pattern=pattern),), file="f", line=line)
    return Rule(text="permission", effect=effect, kinds=frozenset({"tool"}), entries=(entry,), file="f", line=line)


def _order(*rules: Rule) -> list[str]:
    policy = Policy(dialect="x", rules=rules, default="ask", file="f")
    return [row.message for row in lint(Decider(Profile(id="a", layers=(policy,)), Inventory())) if row.code == "EG044"]


def test_two_overlapping_rules_that_only_their_order_decides_are_told() -> None:
    (message,) = _order(_rule("allow", "*_read", 1), _rule("deny", "db_*", 2))
    assert "`*_read` (allow) and `db_*` (deny) share names" in message


def test_an_exception_from_a_rule_is_no_such_overlap() -> None:
    assert _order(_rule("allow", "db_read", 1), _rule("deny", "db_*", 2)) == []


def test_rules_in_order_of_strictness_do_not_depend_on_where_they_stand() -> None:
    assert _order(_rule("deny", "db_*", 1), _rule("allow", "*_read", 2)) == []


# ---------------------------------------------------------------------------------------------- needs and texts


def test_a_requirement_that_the_profile_closes_is_an_error_though_nothing_is_installed() -> None:
    (row,) = found({"mcp": {"allowed": ["arxiv*"], "required": ["github*"]}})
    assert (row.code, row.severity) == ("EG045", "error")


@pytest.mark.parametrize(
    "block",
    [
        {"allowed": ["github/get_*"], "required": ["github*"]},
        {"allowed": ["git*"], "required": ["github*"]},
        {"disabled": ["github/delete_*"], "required": ["github*"]},
        {"disabled": ["github_old"], "required": ["github*"]},
    ],
)
def test_a_requirement_that_some_server_could_meet_is_none(block: dict[str, Any]) -> None:
    assert "EG045" not in codes({"mcp": block})


def test_tools_limits_do_not_make_a_requirement_hopeless() -> None:
    assert "EG045" not in codes({"tools": {"allowed": ["read"]}, "mcp": {"required": ["github*"]}})


BASH = Extension(kind="tool", name="Bash", source="builtin")
READ = Extension(kind="tool", name="Read", source="builtin")


def skill(**facts: Any) -> Extension:
    return Extension(kind="skill", name="release", source="project", file="skills/release/SKILL.md", **facts)


def test_a_skill_that_asks_for_a_denied_tool_is_told() -> None:
    asks = skill(facts={"allowed_tools": ("Bash(git:*)", "Read", "Unknown")})
    (row,) = found({"tools": {"disabled": ["Bash"]}}, BASH, READ, asks)
    assert (row.code, row.file) == ("EG046", "skills/release/SKILL.md")
    assert "asks for `Bash` in" in row.message
    assert "EG046" not in codes(
        {"tools": {"disabled": ["Bash"]}, "skills": {"disabled": ["release"]}}, BASH, READ, asks
    )


def test_a_prompt_that_names_a_hidden_tool_is_told() -> None:
    document = {"prompt": "Use `Bash` to look around.", "tools": {"disabled": ["Bash"]}}
    (row,) = found(document, BASH, READ)
    assert (row.code, row.message) == ("EG047", "prompt speaks of `Bash`, which this agent may not use")
    assert codes(document | {"prompt": "Read what you need."}, BASH, READ) == []


def test_a_skills_description_that_names_a_hidden_item_is_told() -> None:
    item = Extension(kind="mcp_tool", server="slack", name="send_message")
    text = skill(description="Posts the notes with slack_send_message.")
    assert codes({"mcp": {"disabled": ["slack"]}}, item, text) == ["EG047"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("call send_mail.", ["send_mail"]),
        ("run `edit` now", ["edit"]),
        ("edit the text, please", []),
        ("use the edit tool", ["edit"]),
        ("`edit()` and `edit` again", ["edit"]),
        ("no-such_name", []),
        ("see devops/prod-deploy", ["devops/prod-deploy"]),
    ],
)
def test_plain_words_count_only_where_a_text_tells_to_use_them(text: str, names: list[str]) -> None:
    hidden = {"edit": "tool:edit", "send_mail": "tool:send_mail", "devops/prod-deploy": "skill:devops/prod-deploy"}
    assert [name for _, name, _ in mentioned(text, hidden)] == names


# ---------------------------------------------------------------------------------------------- tests of policies


def reported(*rows: Any, **blocks: Any) -> list[tuple[str, str]]:
    document = {"tools": {"disabled": ["Bash", "w*"]}, **blocks, "tests": list(rows)}
    return [(row.code, row.message) for row in found(document, BASH, READ)]


def test_tests_that_hold_and_exercise_every_rule_say_nothing() -> None:
    assert (
        reported({"given": ["tool:Bash", "tool:write"], "expect": "deny"}, {"given": "tool:Read", "expect": "allow"})
        == []
    )


def test_a_test_that_fails_is_an_error_with_both_answers() -> None:
    rows = reported({"given": ["tool:Bash", "tool:write"], "expect": "deny"}, {"given": "tool:Bash", "expect": "allow"})
    assert rows == [
        (
            "EG048",
            "tests: row 2: `tool:Bash`: expected allow, got deny: 'Bash' is disabled for this agent.",
        )
    ]


def test_rules_that_no_test_exercises_are_counted_and_named() -> None:
    ((code, message),) = reported({"given": "tool:Bash", "expect": "deny"})
    assert (code, message) == ("EG049", "tests: 1 of 2 rules are exercised; not tools.disabled `w*`")


def test_a_test_can_give_the_facts_of_a_thing_that_is_not_installed() -> None:
    rows = (
        {"given": "skill:notes", "category": "research", "expect": "allow"},
        {"given": "skill:notes", "category": "ops", "expect": "deny"},
        {"given": ["tool:Bash", "tool:write"], "expect": "deny"},
    )
    assert reported(*rows, skills={"categories": ["research"]}) == []


def test_an_item_of_a_server_is_given_by_both_names() -> None:
    rows = ({"given": ["mcp:slack/send", "prompt:slack/p"], "expect": "deny"}, {"given": "tool:Bash", "expect": "deny"})
    assert [code for code, _ in reported(*rows, mcp={"disabled": ["slack"]})] == ["EG049"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"given": "Bash", "expect": "deny"}, "is no name"),
        ({"given": "tool:Bash", "expect": "no"}, "is no answer"),
        ({"given": "tool:Bash", "expects": "deny"}, "is no key of a test"),
        ({"given": 3, "expect": "deny"}, "is no text"),
        ({"given": "mcp:slack", "expect": "deny"}, "names no item"),
        ({"given": "tool:Bash", "expect": "deny", "args": 1}, "no mapping"),
        ("tool:Bash", "no mapping"),
    ],
)
def test_a_row_that_is_no_test_is_an_error_that_says_why(row: Any, said: str) -> None:
    assert any(code == "EG048" and "row 1" in message and said in message for code, message in reported(row))


def test_a_profile_without_tests_is_not_asked_for_any() -> None:
    assert codes({"tools": {"disabled": ["Bash"]}}, BASH) == []
