"""Law 3: dialect A, the agent profile, step by step."""

from __future__ import annotations

import pytest

from tests.build import inventory, server, skill, tools
from tests.dialects.adapter import decide_case, decide_text
from tests.dialects.requirement import requirement
from tests.laws.asking import assert_refused, refused, refused_text, sees

STOCK = inventory(
    tools("bash", "read", "write"),
    [skill("survey", "research"), skill("deploy", "devops"), skill("notes")],
    [server("slack", "send", resources=["slack://1"], prompts=["greet"])],
    ["explorer"],
)
EVERYTHING = sorted(
    [
        *("tool:bash", "tool:read", "tool:write", "skill:survey", "skill:deploy", "skill:notes", "subagent:explorer"),
        *("mcp_tool:slack/send", "mcp_resource:slack/slack://1", "mcp_prompt:slack/greet"),
    ]
)


def without(*ids: str) -> list[str]:
    return [i for i in EVERYTHING if i not in ids]


# -- the three steps ---------------------------------------------------------------------------------------------


@requirement("profile:disabled-first")
def test_disabled_rejects_outright_whatever_else_admits() -> None:
    assert sees(
        {"tools": {"disabled": ["ba*"], "allowed": ["bash", "read"]}, "mcp": {"allowed": ["*"]}}, STOCK
    ) == without("tool:bash", "tool:write")
    assert sees({"tools": {"disabled": ["*"], "allowed": ["*"]}, "mcp": {"allowed": ["*"]}}, STOCK) == without(
        "tool:bash", "tool:read", "tool:write"
    )


@requirement("profile:allowed-second")
def test_a_non_empty_allowed_rejects_what_it_does_not_match() -> None:
    assert sees({"skills": {"allowed": ["survey"]}}, STOCK) == without("skill:deploy", "skill:notes")


@requirement("profile:categories-third")
def test_non_empty_categories_reject_a_skill_of_another_category() -> None:
    assert sees({"skills": {"categories": ["research"]}}, STOCK) == without("skill:deploy", "skill:notes")
    assert sees({"skills": {"categories": ["research", "devops"], "disabled": ["survey"]}}, STOCK) == without(
        "skill:survey", "skill:notes"
    )
    assert sees({"skills": {"allowed": ["deploy"], "categories": ["research"]}}, STOCK) == without(
        "skill:survey", "skill:deploy", "skill:notes"
    )


@requirement("profile:reasons")
@pytest.mark.parametrize(
    ("block", "id_", "reason"),
    [
        ({"tools": {"disabled": ["b*"]}}, "tool:bash", "'bash' is disabled for this agent."),
        ({"tools": {"allowed": ["read"]}}, "tool:bash", "'bash' is not in this agent's allowed list."),
        ({"mcp": {"allowed": ["x"]}}, "mcp_tool:slack/send", "'slack/send' is not in this agent's allowed list."),
        ({"skills": {"categories": ["a", "b"]}}, "skill:deploy", "category 'devops' is not permitted (allowed: a, b)."),
    ],
)
def test_a_rejection_gives_the_reason_of_its_step(block: object, id_: str, reason: str) -> None:
    assert decide_case(block, STOCK).decision(id_)["reason"] == reason


@requirement("profile:uncategorised")
@pytest.mark.parametrize(
    ("categories", "admitted"),
    [
        ([""], ["skill:notes"]),
        ([" "], ["skill:notes"]),
        (["*"], ["skill:deploy", "skill:notes", "skill:survey"]),
        (["**"], ["skill:deploy", "skill:survey"]),
        (["?*"], ["skill:deploy", "skill:survey"]),
        (["[!x]*"], ["skill:deploy", "skill:survey"]),
        (["default"], []),
        (["", "dev*"], ["skill:deploy", "skill:notes"]),
    ],
)
def test_an_uncategorised_skill_fits_the_empty_text_and_a_lone_star_only(
    categories: list[str], admitted: list[str]
) -> None:
    assert [i for i in sees({"skills": {"categories": categories}}, STOCK) if i.startswith("skill")] == admitted


@requirement("profile:category-from-header")
def test_a_skills_folder_never_supplies_a_category_for_allowing() -> None:
    stock = inventory(skills=[skill("research/a"), skill("x/b", "research")])
    assert sees({"skills": {"categories": ["research"]}}, stock) == ["skill:x/b"]
    assert sees({"skills": {"categories": [""]}}, stock) == ["skill:research/a"]


# -- absent, empty, null -----------------------------------------------------------------------------------------


@requirement("profile:no-constraint")
@pytest.mark.parametrize(
    "profile",
    [
        {},
        {"id": "x", "name": "y", "model": "z", "description": "d", "temperature": 0.2},
        {"tools": {}, "skills": {}, "mcp": {}, "resources": {}, "prompts": {}, "subagents": {}},
        {
            "tools": {"disabled": [], "allowed": []},
            "skills": {"categories": [], "allowed": []},
            "mcp": {"required": [], "allowed": []},
        },
        {"tools": {"mode": "automatic"}},
        {"tools": {"enabled": []}},
        {"dialect": "profile"},
    ],
)
def test_absent_and_empty_put_no_constraint(profile: object) -> None:
    assert sees(profile, STOCK) == EVERYTHING


@requirement("profile:null-is-an-error")
@pytest.mark.parametrize("block", ["tools", "skills", "mcp", "resources", "prompts", "subagents"])
@pytest.mark.parametrize("value", [None, {"disabled": None}, {"allowed": None}])
def test_a_null_block_or_list_is_an_error(block: str, value: object) -> None:
    assert block in refused({block: value}).error


@requirement("profile:not-a-mapping")
@pytest.mark.parametrize(
    "text", ["", "null", "[]", "- a\n- b\n", "7", "word", '"tools"', "true", "# only a comment\n", "---\n---\n"]
)
def test_a_document_that_is_no_mapping_is_an_error(text: str) -> None:
    refused_text(text)


@requirement("profile:wrong-place")
@pytest.mark.parametrize("block", ["tools", "skills", "mcp", "resources", "prompts", "subagents"])
@pytest.mark.parametrize(
    "key", ["categories", "required", "disable", "Allowed", "denied", "patterns", "mode", "enabled", "toolset", ""]
)
def test_a_key_outside_its_block_or_unknown_is_an_error_with_its_line(block: str, key: str) -> None:
    if key == "patterns" and block in ("tools", "skills"):
        return  # a mixture of dialects, refused for that reason
    if (block, key) in {
        ("skills", "categories"),
        ("mcp", "required"),
        ("tools", "mode"),
        ("tools", "enabled"),
        ("tools", "toolset"),
    }:
        return
    written = key or '""'
    answer = decide_text(f"id: x\n{block}:\n  disabled: []\n  {written}: [x]\n", STOCK, ".yaml")
    assert_refused(answer)
    assert "agent.yaml:4" in answer.error


@requirement("profile:unknown-mode")
@pytest.mark.parametrize("mode", ["Automatic", "all", "", "off", 1, None, ["none"], True])
def test_an_unknown_mode_is_an_error(mode: object) -> None:
    refused({"tools": {"mode": mode}})


@requirement("profile:near-miss")
@pytest.mark.parametrize("key", ["tool", "mpc", "skill", "skils", "Tools", "MCP", "resource", "promts", "subagent"])
def test_a_near_miss_of_a_blocks_name_is_an_error(key: str) -> None:
    answer = refused({key: {"disabled": ["bash"]}})
    assert key in answer.error


@requirement("profile:ill-shaped")
@pytest.mark.parametrize(
    "value", [1, True, 1.5, [["bash"]], {"disabled": {"bash": True}}, {"disabled": 3}, {"allowed": True}]
)
@pytest.mark.parametrize("block", ["tools", "skills", "mcp", "subagents"])
def test_a_block_of_the_wrong_shape_is_an_error(block: str, value: object) -> None:
    refused({block: value})


@requirement("profile:scalar")
@pytest.mark.parametrize(
    ("profile", "hidden"),
    [
        ({"tools": {"disabled": "bash"}}, ["tool:bash"]),
        ({"tools": {"disabled": "ba*"}}, ["tool:bash"]),
        ({"skills": {"allowed": "survey"}}, ["skill:deploy", "skill:notes"]),
        ({"skills": {"categories": "research"}}, ["skill:deploy", "skill:notes"]),
        ({"subagents": {"disabled": "explorer"}}, ["subagent:explorer"]),
        ({"mcp": {"required": "slack"}}, []),
        ({"skills": "survey"}, ["skill:survey"]),
    ],
)
def test_a_string_where_a_list_belongs_is_one_entry_with_a_finding(profile: object, hidden: list[str]) -> None:
    answer = decide_case(profile, STOCK)
    assert answer.visible == without(*hidden)
    assert answer.findings


# -- the mcp block and its kin -----------------------------------------------------------------------------------


@requirement("profile:mcp-holds-for-all-kinds")
@pytest.mark.parametrize(
    "mcp", [{"disabled": ["slack"]}, {"disabled": ["*"]}, {"allowed": ["github"]}, {"disabled": ["slack/*"]}]
)
def test_the_mcp_block_holds_for_every_kind_a_server_offers(mcp: object) -> None:
    hidden = ("mcp_tool:slack/send", "mcp_resource:slack/slack://1", "mcp_prompt:slack/greet")
    assert sees({"mcp": mcp}, STOCK) == without(*hidden)
    own = {"resources": {"allowed": ["slack"]}, "prompts": {"allowed": ["*"]}}
    assert sees({"mcp": mcp, **own}, STOCK) == without(*hidden), "a block of its own applies as well, never instead"


@requirement("profile:own-block")
def test_a_resources_or_prompts_block_applies_as_well() -> None:
    assert sees({"resources": {"disabled": ["slack"]}}, STOCK) == without("mcp_resource:slack/slack://1")
    assert sees({"mcp": {"allowed": ["slack"]}, "prompts": {"allowed": ["other"]}}, STOCK) == without(
        "mcp_prompt:slack/greet"
    )


@requirement("profile:uri-forms")
@pytest.mark.parametrize(
    "uri",
    [
        "file:///safe/%2e%2e/secret/k",
        "file:///safe/../secret/k",
        "file:///safe/%252e%252e/secret/k",
        "file:///%73ecret/k",
        "file:///./secret/k",
    ],
)
def test_a_resource_is_judged_by_its_uri_as_written_and_as_decoded(uri: str) -> None:
    stock = inventory(mcp=[server("fs", resources=[uri, "file:///safe/a"])])
    assert sees({"resources": {"disabled": ["fs/file:///secret/*"]}}, stock) == ["mcp_resource:fs/file:///safe/a"]
    assert sees({"resources": {"allowed": ["fs/file:///safe/*"]}}, stock) == ["mcp_resource:fs/file:///safe/a"]
    assert sees({"resources": {"disabled": [f"fs/{uri}"]}}, stock) == ["mcp_resource:fs/file:///safe/a"]


# -- bridges -----------------------------------------------------------------------------------------------------

TWO_SERVERS = inventory(
    tools("bash", "read"), mcp=[server("slack", "send", resources=["s://1"], prompts=["p"]), server("gh", "push")]
)
BRIDGED = [
    "mcp_prompt:slack/p",
    "mcp_resource:slack/s://1",
    "mcp_tool:gh/push",
    "mcp_tool:slack/send",
    "tool:bash",
    "tool:read",
]


@requirement("profile:bridge-deny")
@pytest.mark.parametrize("pattern", ["slack__send", "slack/send", "*__send", "slack_*", "mcp__slack__*", "slack/*"])
def test_a_tools_deny_reaches_mcp_tools_by_their_item_spellings(pattern: str) -> None:
    assert sees({"tools": {"disabled": [pattern]}}, TWO_SERVERS) == [i for i in BRIDGED if i != "mcp_tool:slack/send"]


@requirement("profile:bridge-deny-not-server")
@pytest.mark.parametrize("pattern", ["slack", "send", "gh"])
def test_a_tools_deny_is_not_tried_on_the_bare_server_or_item(pattern: str) -> None:
    assert sees({"tools": {"disabled": [pattern]}}, TWO_SERVERS) == BRIDGED


@requirement("profile:bridge-stars")
@pytest.mark.parametrize("pattern", ["*", "**", "?*", " * ", "*?*"])
def test_a_tools_deny_of_stars_alone_stays_among_tools_with_a_finding(pattern: str) -> None:
    answer = decide_case({"tools": {"disabled": [pattern]}}, TWO_SERVERS)
    assert answer.visible == [i for i in BRIDGED if not i.startswith("tool:")]
    assert answer.findings
    assert decide_case({"tools": {"disabled": [pattern]}}, inventory(tools("bash"))).visible == []


@requirement("profile:bridge-allow")
@pytest.mark.parametrize(
    ("allowed", "seen"),
    [
        (["read"], ["tool:read"]),
        (["read", "slack__send"], ["mcp_tool:slack/send", "tool:read"]),
        (["read", "gh/*"], ["mcp_tool:gh/push", "tool:read"]),
        (["read", "mcp__gh__push"], ["mcp_tool:gh/push", "tool:read"]),
        (["read", "slack"], ["tool:read"]),
        (["read", "slack_send"], ["tool:read"]),
        (["r*", "s*", "m*"], ["tool:read"]),
        (["*"], ["tool:bash", "tool:read"]),
    ],
)
def test_without_an_mcp_allow_list_a_tools_allow_list_holds_for_mcp_tools_by_full_name(
    allowed: list[str], seen: list[str]
) -> None:
    assert sees({"tools": {"allowed": allowed}}, TWO_SERVERS) == seen
    assert sees({"tools": {"allowed": allowed}, "mcp": {"allowed": []}}, TWO_SERVERS) == seen


@requirement("profile:bridge-own-block")
def test_under_that_bridge_resources_and_prompts_need_their_own_block_to_name_them() -> None:
    profile = {"tools": {"allowed": ["read"]}, "resources": {"allowed": ["slack"]}}
    assert sees(profile, TWO_SERVERS) == ["mcp_resource:slack/s://1", "tool:read"]
    profile = {"tools": {"allowed": ["read"]}, "prompts": {"allowed": ["slack/p"]}}
    assert sees(profile, TWO_SERVERS) == ["mcp_prompt:slack/p", "tool:read"]


@requirement("profile:bridge-lifted")
def test_an_allow_list_of_mcp_lifts_the_bridge() -> None:
    assert sees({"tools": {"allowed": ["read"]}, "mcp": {"allowed": ["*"]}}, TWO_SERVERS) == [
        i for i in BRIDGED if i != "tool:bash"
    ]
    assert sees({"tools": {"allowed": ["read"]}, "mcp": {"allowed": ["gh"]}}, TWO_SERVERS) == [
        "mcp_tool:gh/push",
        "tool:read",
    ]
    denied = {"tools": {"allowed": ["read"], "disabled": ["gh/*"]}, "mcp": {"allowed": ["*"]}}
    assert "mcp_tool:gh/push" not in sees(denied, TWO_SERVERS), "the deny bridge stays"


@requirement("profile:bridge-named")
def test_explain_names_the_bridge_that_decided() -> None:
    denied = decide_case({"tools": {"disabled": ["slack__*"]}}, TWO_SERVERS).decision("mcp_tool:slack/send")
    assert denied["rule"]["text"].startswith("tools.disabled")
    assert denied["rule"]["pattern"] == "slack__*"
    not_allowed = decide_case({"tools": {"allowed": ["read"]}}, TWO_SERVERS).decision("mcp_tool:slack/send")
    assert not_allowed["rule"]["text"].startswith("tools.allowed")
