"""Law 3: old forms keep working, and no later key brings back what `disabled` took."""

from __future__ import annotations

import pytest

from tests.build import inventory, server, tools
from tests.dialects.adapter import decide_case
from tests.dialects.requirement import requirement
from tests.laws.asking import refused, sees

STOCK = inventory(
    tools("bash", "read", "grep", "web_search"),
    ["pdf", "notes"],
    [server("slack", "send", resources=["s://1"]), server("gh", "push")],
)
MCP = ["mcp_resource:slack/s://1", "mcp_tool:gh/push", "mcp_tool:slack/send"]
SKILLS = ["skill:notes", "skill:pdf"]


@requirement("profile:old-skills-list")
def test_a_list_of_skills_means_disabled_with_a_finding() -> None:
    answer = decide_case({"skills": ["pdf"]}, STOCK)
    assert [i for i in answer.visible if i.startswith("skill")] == ["skill:notes"]
    assert answer.findings
    assert sees({"skills": []}, STOCK) == sees({}, STOCK)


@requirement("profile:old-tools-list")
def test_a_list_of_tools_means_only_these_with_a_finding() -> None:
    answer = decide_case({"tools": ["bash", "read"]}, STOCK)
    assert answer.visible == [*SKILLS, "tool:bash", "tool:read"]
    assert answer.findings
    assert sees({"tools": ["read", "slack__send"]}, STOCK) == ["mcp_tool:slack/send", *SKILLS, "tool:read"]


@requirement("profile:old-tools-empty")
def test_an_empty_list_of_tools_means_none_mcp_tools_included() -> None:
    assert sees({"tools": []}, STOCK) == SKILLS
    with_mcp = sees({"tools": [], "mcp": {"allowed": ["*"]}}, STOCK)
    assert [i for i in with_mcp if i.startswith(("tool:", "mcp_tool:"))] == []


@requirement("profile:old-mcp-list")
@pytest.mark.parametrize("value", [["slack"], [], "slack"])
@pytest.mark.parametrize("block", ["mcp", "resources", "prompts", "subagents"])
def test_a_list_of_mcp_or_of_a_younger_block_is_an_error(block: str, value: object) -> None:
    refused({block: value})


@requirement("profile:old-disabled-only")
def test_the_one_key_form_is_what_it_always_was() -> None:
    assert sees({"skills": {"disabled": ["pdf"]}}, STOCK) == [i for i in sees({}, STOCK) if i != "skill:pdf"]


@requirement("profile:mode")
@pytest.mark.parametrize(
    ("block", "seen"),
    [
        ({"mode": "automatic"}, ["tool:bash", "tool:grep", "tool:read", "tool:web_search", *MCP]),
        ({"mode": "automatic", "allowed": ["read"]}, ["tool:read"]),
        ({"mode": "automatic", "disabled": ["bash"]}, ["tool:grep", "tool:read", "tool:web_search", *MCP]),
        ({"mode": "selected", "allowed": ["r*"]}, ["tool:read"]),
        ({"mode": "selected", "allowed": []}, []),
        ({"mode": "selected"}, []),
        ({"mode": "none"}, []),
        ({"mode": "none", "allowed": ["read"]}, []),
        ({"mode": "none", "web_search": True}, []),
        ({"mode": "none", "enabled": ["read"]}, []),
        ({"enabled": ["read", "bash"]}, ["tool:bash", "tool:read"]),
        ({"enabled": ["read", "bash"], "allowed": ["read"]}, ["tool:read"]),
        ({"enabled": ["read", "bash"], "disabled": ["bash"]}, ["tool:read"]),
        ({"enabled": ["read", "gh__push"]}, ["mcp_tool:gh/push", "tool:read"]),
        ({"enabled": ["builtin/read", "b*"]}, ["tool:read"]),
        ({"toolset": "safe"}, ["tool:grep", "tool:read", "tool:web_search"]),
        ({"toolset": "safe", "disabled": ["web_*"]}, ["tool:grep", "tool:read"]),
        ({"toolset": "safe", "allowed": ["read", "bash"]}, ["tool:read"]),
        ({"toolset": "none"}, []),
        ({"web_search": True, "disabled": ["web_search"]}, ["tool:bash", "tool:grep", "tool:read", *MCP]),
        ({"web_search": True, "allowed": ["read"]}, ["tool:read"]),
    ],
)
def test_openprograms_later_keys_only_narrow(block: object, seen: list[str]) -> None:
    assert [i for i in sees({"tools": block}, STOCK) if not i.startswith("skill")] == sorted(seen)


@requirement("profile:mode-none-mcp")
@pytest.mark.parametrize("block", [{"mode": "none"}, {"mode": "selected"}, {"toolset": "none"}])
def test_no_tools_means_no_mcp_tools_even_beside_an_mcp_allow_list(block: object) -> None:
    seen = sees({"tools": block, "mcp": {"allowed": ["*"]}}, STOCK)
    assert [i for i in seen if i.startswith(("tool:", "mcp_tool:"))] == []


@requirement("profile:unknown-toolset")
@pytest.mark.parametrize("toolset", ["no-such-set", "", "default", None, 3, True, {"safe": 1}, ["safe"]])
def test_an_unknown_toolset_is_an_error_never_the_default_set(toolset: object) -> None:
    refused({"tools": {"toolset": toolset}})
