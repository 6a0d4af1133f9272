"""Law 5 and 6: one ordered policy underneath, the deciding rule, three answers."""

from __future__ import annotations

import random

import pytest

from tests.build import inventory, server, skill, tools
from tests.dialects.adapter import decide_case, decide_text
from tests.dialects.layers import visible_under_all
from tests.dialects.requirement import requirement

STOCK = inventory(
    tools("bash", "read"),
    [skill("deploy", "devops"), skill("notes")],
    [server("slack", "send", resources=["s://1"], prompts=["p"])],
    ["explorer"],
)

PROFILE = """\
id: x
tools:
  disabled:
    - zsh
    - "b*"
skills:
  allowed: [notes, deploy]
  categories: ["devops"]
mcp:
  disabled: ["slack/*"]
"""


@requirement("profile:deciding-rule")
@pytest.mark.parametrize(
    ("id_", "text", "pattern", "line"),
    [
        ("tool:bash", "tools.disabled", "b*", 5),
        ("skill:notes", "skills.categories", None, 8),
        ("mcp_tool:slack/send", "mcp.disabled", "slack/*", 10),
        ("mcp_resource:slack/s://1", "mcp.disabled", "slack/*", 10),
        ("mcp_prompt:slack/p", "mcp.disabled", "slack/*", 10),
    ],
)
def test_every_denial_names_its_rule_pattern_file_and_line(id_: str, text: str, pattern: str | None, line: int) -> None:
    decision = decide_text(PROFILE, STOCK, ".yaml").decision(id_)
    assert decision["effect"] == "deny"
    assert decision["reason"]
    assert decision["rule"]["text"] == text
    assert decision["rule"]["pattern"] == pattern
    assert decision["rule"]["file"].endswith("agent.yaml")
    assert decision["rule"]["line"] == line


@requirement("profile:deciding-rule-json")
def test_a_json_profile_has_lines_too() -> None:
    text = '{\n "tools": {\n  "disabled": [\n   "zsh",\n   "bash"\n  ]\n }\n}\n'
    assert decide_text(text, STOCK, ".json").decision("tool:bash")["rule"]["line"] == 5


@requirement("profile:first-match")
def test_the_first_matching_pattern_in_the_order_of_the_list_decides() -> None:
    for patterns in (["b*", "bash", "*"], ["bash", "b*"], ["x", "ba?h", "bash"]):
        rule = decide_case({"tools": {"disabled": patterns}}, STOCK).decision("tool:bash")["rule"]
        assert rule["pattern"] == next(p for p in patterns if p != "x")


@requirement("profile:default-is-a-rule")
def test_an_extension_that_no_rule_speaks_of_is_allowed_by_the_stated_default() -> None:
    answer = decide_case({}, STOCK)
    assert {d["effect"] for d in answer.decisions} == {"allow"}
    assert all(d["rule"] and d["rule"]["text"] for d in answer.decisions), (
        "allowing everything shows in every explanation"
    )


@requirement("profile:three-answers")
def test_each_decision_answers_visible_callable_and_approval() -> None:
    for profile in (
        {},
        {"tools": {"disabled": ["bash"]}},
        {"dialect": "patterns", "tools": {"patterns": ["impl:*:*"]}},
    ):
        for decision in decide_case(profile, STOCK).decisions:
            assert isinstance(decision["visible"], bool)
            assert decision["visible"] == decision["callable"]
            assert decision["approval"] == "auto"
            assert decision["visible"] == (decision["effect"] == "allow")


@requirement("profile:order-of-output")
def test_the_order_of_the_output_is_a_function_of_the_set() -> None:
    first = decide_case({"tools": {"disabled": ["bash"]}}, STOCK)
    shuffled = {key: rows[::-1] for key, rows in STOCK.items()}
    again = decide_case({"tools": {"disabled": ["bash"]}}, shuffled)
    assert [d["id"] for d in first.decisions] == [d["id"] for d in again.decisions]
    assert first.decisions == again.decisions


@requirement("profile:list-order-is-free")
@pytest.mark.parametrize("seed", range(5))
def test_the_order_within_a_list_changes_no_effect(seed: int) -> None:
    patterns = ["b*", "slack__send", "re?d", "*/x", "zsh"]
    shuffled = random.Random(seed).sample(patterns, len(patterns))
    for key in ("disabled", "allowed"):
        assert (
            decide_case({"tools": {key: patterns}}, STOCK).allowed
            == decide_case({"tools": {key: shuffled}}, STOCK).allowed
        )


@requirement("profile:layers")
@pytest.mark.parametrize(
    ("profiles", "seen"),
    [
        ([{"tools": {"disabled": ["bash"]}}, {"tools": {"allowed": ["bash", "read"]}}], ["tool:read"]),
        ([{"tools": {"allowed": ["read"]}}, {"tools": {"allowed": ["bash"]}}], []),
        ([{"tools": {"disabled": ["bash"]}}, {"tools": {"disabled": []}}], ["mcp_tool:slack/send", "tool:read"]),
        ([{"tools": {"mode": "none"}}, {"tools": ["bash"]}], []),
        (
            [{"tools": {"allowed": ["read"]}}, {"dialect": "patterns", "tools": {"patterns": ["impl:*:*"]}}],
            ["tool:read"],
        ),
        ([{"dialect": "patterns"}, {}], []),
        ([{"tools": {"allowed": ["read"]}}, {"mcp": {"allowed": ["*"]}}], ["tool:read"]),
        ([{"tools": {"allowed": ["read"]}, "mcp": {"allowed": ["*"]}}, {}], ["mcp_tool:slack/send", "tool:read"]),
    ],
)
def test_of_stacked_layers_the_strictest_wins_so_adding_one_never_loosens(
    profiles: list[object], seen: list[str]
) -> None:
    stock = inventory(tools("bash", "read"), mcp=[server("slack", "send")])
    assert visible_under_all(profiles, stock) == seen
    assert visible_under_all(profiles[::-1], stock) == seen
    for profile in profiles:
        assert set(seen) <= set(visible_under_all([profile], stock))
