"""What a conversion claims of all names, held against asking both policies about many things."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extgate.conversion import Conversion, convert
from extgate.core.policy import Profile
from extgate.dialects.convert import read_back
from extgate.dialects.registry import NATIVE
from extgate.discover.builtins import builtin_tools
from tests.dialects.adapter import run
from tests.dialects.folders import put
from tests.dialects.written import PAIRS, SOURCES, read, stock
from tests.unit.analysis import items
from tests.unit.analysis.items import differences

QUICK = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
MANY = settings(max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
ANY_PAIR = st.sampled_from(PAIRS).flatmap(lambda pair: st.tuples(st.just(pair), SOURCES[pair[0]]))
THINGS = items.things()[::17]


def check(drawn: object, budget: int) -> None:
    (source, target), documents = drawn  # type: ignore[misc]
    policy = read(source, documents)
    if policy is None:
        return
    tools = builtin_tools(target) if target in NATIVE else ()
    found = convert(policy, target, stock(source), target_tools=tools, budget=budget)
    back = read_back(target, found.converted.documents)
    seen = differences(Profile(id="a", layers=(policy,)), Profile(id="a", layers=(back,)), THINGS)
    for kind, direction in seen:
        if kind != "tool" or not tools:
            assert is_told(found, kind, direction), (documents[0].text, seen[kind, direction])


def is_told(found: Conversion, kind: str, direction: str) -> bool:
    row = next(row for row in found.rows if row.kind == kind)
    losses = [loss for loss in found.losses if loss.is_wider == (direction == "wider")]
    return row.state == "undecided" or (
        row.state == "losses" and any(loss.witness.startswith(f"{kind}:") for loss in losses)
    )


@QUICK
@given(ANY_PAIR)
def test_what_differs_after_a_conversion_is_a_loss_or_undecided(drawn: object) -> None:
    check(drawn, budget=300)


@pytest.mark.e2e
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("half", [0, 1])
def test_of_ten_thousand_conversions_no_difference_is_called_equal(half: int) -> None:
    """In two halves, one for each process of `pytest -n 2`."""
    pairs = st.sampled_from(PAIRS[half::2]).flatmap(lambda pair: st.tuples(st.just(pair), SOURCES[pair[0]]))

    @MANY
    @given(pairs)
    def differences_are_told(drawn: object) -> None:
        check(drawn, budget=1000)

    differences_are_told()


def converted(text: dict[str, Any], target: str) -> Conversion:
    (policy,) = items.profile(text).policies
    tools = builtin_tools(target) if target in NATIVE else ()
    return convert(policy, target, stock("profile"), target_tools=tools)


def test_a_policy_that_its_own_dialect_says_again_is_equal_over_all_names() -> None:
    text = {"id": "a", "tools": {"disabled": ["bash", "mem*"]}, "skills": {"allowed": ["deploy*"]}}
    found = converted(text, "profile")
    assert {row.state for row in found.rows} == {"equal"}
    assert found.losses == ()


def test_a_list_that_admits_nothing_admits_no_name_at_all() -> None:
    found = converted({"dialect": "patterns", "name": "a", "tools": {"patterns": []}}, "profile")
    assert [loss for loss in found.losses if loss.is_wider] == []


def test_a_pattern_that_is_lost_has_the_shortest_witness() -> None:
    found = converted({"id": "a", "skills": {"disabled": ["ops-*"]}}, "codex")
    (loss,) = [loss for loss in found.losses if loss.key == "pattern/ops-*"]
    assert (loss.is_wider, loss.witness) == (True, "skill:ops-")


def test_prompts_that_the_target_cannot_close_are_a_loss_that_widens() -> None:
    found = converted({"dialect": "patterns", "name": "a", "tools": {"patterns": []}}, "codex")
    assert "unknown/mcp_prompt:*/*" in {loss.key for loss in found.errors}


def test_a_deny_under_another_spelling_is_told_and_stops_nothing() -> None:
    found = converted({"id": "a", "tools": {"disabled": ["agent_browser"]}}, "patterns")
    (loss,) = [loss for loss in found.losses if loss.is_wider]
    assert (loss.code, loss.witness) == ("spelling", "mcp_tool:agent/browser")
    assert found.errors == ()


def test_what_a_budget_does_not_settle_is_undecided_and_never_equal() -> None:
    text = {"id": "a", "mcp": {"disabled": [f"*{a}?{b}*" for a in "abc" for b in "abc"]}}
    (policy,) = items.profile(text).policies
    found = convert(policy, "patterns", stock("profile"), budget=5)
    assert "undecided" in {row.state for row in found.rows}
    assert all(row.why for row in found.undecided)


def test_rules_on_commands_go_over_to_another_runtime_with_a_proof(root: Path) -> None:
    put(root, ".claude/settings.json", {"permissions": {"deny": ["Bash(rm:*)"], "ask": ["Bash"]}})
    _, out, _ = run("convert", "claude-code/main", "--to", "codex", "-w", str(root), "--json")
    found = json.loads(out)
    assert {row["kind"]: row["state"] for row in found["proof"]}["calls"] != "undecided"
    assert [loss["witness"] for loss in found["losses"] if loss["witness"].startswith("exec_command(rm")] == []


def test_a_line_that_two_runtimes_read_differently_is_a_loss_with_that_line(root: Path) -> None:
    put(root, ".claude/settings.json", {"permissions": {"deny": ["Bash(rm:*)"], "allow": ["Bash(git log:*)"]}})
    _, out, _ = run("convert", "claude-code/main", "--to", "opencode", "-w", str(root), "--json")
    found = [(loss["direction"], loss["witness"]) for loss in json.loads(out)["losses"]]
    assert ("wider", "bash(echo > x)") in found  # what a redirection writes is asked about here, and not there
    assert ("narrower", "bash(nice git log)") in found


def test_a_deny_of_a_path_that_the_target_cannot_say_is_an_error(root: Path) -> None:
    put(root, ".claude/settings.json", {"permissions": {"deny": ["Edit(./.env)"]}})
    code, out, _ = run("convert", "claude-code/main", "--to", "codex", "-w", str(root), "--json")
    errors = [loss["witness"] for loss in json.loads(out)["losses"] if loss["is_error"]]
    assert code == 1
    assert any(witness.startswith("apply_patch(") and ".env" in witness for witness in errors)


def test_the_command_says_what_is_equal(root: Path) -> None:
    put(root, "agents/a.json", {"id": "a", "skills": {"disabled": ["x*"]}})
    put(root, "stock.json", {})
    code, _, err = run("convert", "a", "--to", "profile", "-w", str(root), "--inventory", str(root / "stock.json"))
    kinds = "tool, skill, mcp_tool, mcp_resource, mcp_prompt, subagent"
    assert (code, err) == (0, f"equal over all names: {kinds}\n")
