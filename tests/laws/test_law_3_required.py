"""Law 3: `required` is a check apart; an agent whose servers are not there is unavailable, and says why."""

from __future__ import annotations

import pytest

from tests.build import inventory, server, tools
from tests.dialects.adapter import decide_case
from tests.dialects.requirement import requirement

GITHUB = server("github-mcp", "get_issue", "push")


def missing(mcp: object, *servers: dict[str, object], tools_block: object | None = None) -> list[str]:
    """What is missing under this `mcp` block; checks what an unavailable agent shows on the way."""
    profile = {"mcp": mcp} if tools_block is None else {"mcp": mcp, "tools": tools_block}
    answer = decide_case(profile, inventory(tools("bash"), mcp=servers))
    assert answer.readable, answer.error
    assert answer.available == (not answer.missing)
    if not answer.available:
        assert (answer.visible, answer.callable) == ([], [])
    return list(answer.missing)


@requirement("profile:required-met")
@pytest.mark.parametrize(
    "pattern",
    ["github*", "github-mcp", " github-mcp ", "git[h]ub-?cp", "github-mcp/*", "github-mcp/get_issue", "git*/get_*"],
)
def test_a_connected_server_meets_a_pattern_by_its_name_or_by_a_visible_item(pattern: str) -> None:
    assert missing({"required": [pattern]}, GITHUB) == []


@requirement("profile:required-unmet")
@pytest.mark.parametrize("pattern", ["k8s*", "GitHub*", "github", "github-mcp/delete_*", "get_issue", "!github*", ""])
def test_a_pattern_that_nothing_meets_makes_the_agent_unavailable(pattern: str) -> None:
    assert missing({"required": [pattern]}, GITHUB) == [pattern]


@requirement("profile:required-state")
@pytest.mark.parametrize("state", ["configured", "untrusted", "failed", "disabled"])
def test_a_server_that_is_not_connected_meets_nothing_and_its_state_is_said(state: str) -> None:
    down = server("github-mcp", state=state, error="exit code 7" if state == "failed" else "")
    assert missing({"required": ["github*"]}, down) == ["github*"]
    answer = decide_case({"mcp": {"required": ["github*"]}}, inventory(mcp=[down]))
    said = answer.output + answer.error
    assert "github-mcp" in said
    assert state in said or {"configured": "not connected", "untrusted": "not trusted"}.get(state, "?") in said
    assert state != "failed" or "exit code 7" in said


@requirement("profile:required-empty-server")
def test_a_connected_server_that_lists_nothing_meets_its_name() -> None:
    assert missing({"required": ["github*"]}, server("github-mcp")) == []
    assert missing({"required": ["github-mcp/*"]}, server("github-mcp")) == []
    assert missing({"required": ["github-mcp/x"]}, server("github-mcp")) == ["github-mcp/x"]


@requirement("profile:required-removed")
@pytest.mark.parametrize(
    "mcp",
    [
        {"disabled": ["github-mcp"]},
        {"disabled": ["git*"]},
        {"disabled": ["github_mcp"]},
        {"disabled": ["github-mcp/*"]},
        {"disabled": ["github-mcp/get_*", "*__push"]},
        {"allowed": ["slack"]},
        {"allowed": ["github-mcp/nothing"]},
    ],
)
def test_a_server_that_the_mcp_block_removes_does_not_meet_and_is_reported(mcp: dict[str, list[str]]) -> None:
    answer = decide_case({"mcp": {**mcp, "required": ["github*"]}}, inventory(mcp=[GITHUB]))
    assert answer.missing == ("github*",)
    assert "github" in answer.output + answer.error
    assert answer.findings, "a contradiction is reported at load"


@requirement("profile:required-removed-empty")
@pytest.mark.parametrize("mcp", [{"disabled": ["github-mcp/*"]}, {"disabled": ["*"]}, {"allowed": ["slack"]}])
def test_a_server_that_lists_nothing_is_removed_as_a_whole_too(mcp: dict[str, list[str]]) -> None:
    assert missing({**mcp, "required": ["github*"]}, server("github-mcp")) == ["github*"]


@requirement("profile:required-partly-removed")
def test_a_server_that_keeps_one_visible_item_meets_its_name_but_not_the_item_taken() -> None:
    assert missing({"required": ["github*"], "disabled": ["github-mcp/push"]}, GITHUB) == []
    assert missing({"required": ["github-mcp/push"], "disabled": ["github-mcp/push"]}, GITHUB) == ["github-mcp/push"]
    assert missing({"required": ["github-mcp/push"], "allowed": ["github-mcp/get_*"]}, GITHUB) == ["github-mcp/push"]


@requirement("profile:required-partly-removed")
def test_an_item_that_its_own_block_hides_is_no_visible_item() -> None:
    offer = server("s", prompts=["ask"], resources=["r://1"])
    for block, item in (("prompts", "ask"), ("resources", "r://1")):
        profile = {"mcp": {"required": [f"s/{item}"]}}
        assert decide_case(profile, inventory(mcp=[offer])).available
        assert not decide_case({**profile, block: {"disabled": ["*"]}}, inventory(mcp=[offer])).available


@requirement("profile:required-once")
def test_each_missing_pattern_is_named_once() -> None:
    assert missing({"required": ["k8s*", "drawio*", "k8s*", " k8s* "]}, GITHUB) == ["k8s*", "drawio*"]


@requirement("profile:required-whatever-tools")
@pytest.mark.parametrize(
    "block", [{"mode": "none"}, [], {"allowed": ["read"]}, {"disabled": ["*"]}, {"disabled": ["github-mcp__*"]}]
)
def test_required_is_checked_whatever_tools_says(block: object) -> None:
    assert missing({"required": ["github*"]}, GITHUB, tools_block=block) == []
    assert missing({"required": ["github-mcp/push"]}, GITHUB, tools_block=block) == []
    assert missing({"required": ["k8s*"]}, GITHUB, tools_block=block) == ["k8s*"]


@requirement("profile:required-not-configured")
def test_a_pattern_without_any_server_is_said_to_be_not_configured() -> None:
    answer = decide_case({"mcp": {"required": ["drawio*"]}}, inventory(tools("bash")))
    assert answer.missing == ("drawio*",)
    assert "not configured" in answer.output + answer.error


@requirement("profile:unavailable-keeps-decisions")
def test_while_unavailable_every_decision_keeps_its_effect_and_rule() -> None:
    profile = {"tools": {"disabled": ["bash"]}, "mcp": {"required": ["k8s*"]}}
    stock = inventory(tools("bash", "read"))
    down, up = decide_case(profile, stock), decide_case({"tools": profile["tools"]}, stock)
    assert [(d["id"], d["effect"], d["rule"]["pattern"]) for d in down.decisions] == [
        (d["id"], d["effect"], d["rule"]["pattern"]) for d in up.decisions
    ]
    assert not any(d["visible"] or d["callable"] for d in down.decisions)


@requirement("profile:comes-back")
def test_an_agent_comes_back_by_itself_when_the_server_does() -> None:
    profile = {"mcp": {"required": ["github*"]}}
    assert not decide_case(profile, inventory(mcp=[server("github-mcp", "push", state="failed")])).available
    assert decide_case(profile, inventory(mcp=[server("github-mcp", "push", state="connected")])).available
