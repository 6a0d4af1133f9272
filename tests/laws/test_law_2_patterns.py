"""Law 2: how a pattern matches, and through which spellings it denies or allows."""

from __future__ import annotations

import json

import pytest

from tests.build import inventory, server, skill, tools
from tests.dialects.adapter import decide_case
from tests.dialects.requirement import requirement
from tests.laws.asking import refused, sees
from tests.oracle.wire_names import clean_servers, wire_names

# -- matching ----------------------------------------------------------------------------------------------------


@requirement("profile:fnmatch")
@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("*", "a/b:c__d", True),
        ("a*d", "a/b:c__d", True),
        ("b?sh", "bash", True),
        ("b?sh", "bsh", False),
        ("b[aeiou]sh", "bush", True),
        ("b[!a]sh", "bash", False),
        ("b[!a]sh", "bush", True),
        ("b[a-f]sh", "bush", False),
        ("b[^a]sh", "bash", True),
        ("{bash,zsh}", "bash", False),
        ("ba\\sh", "bash", False),
        ("ba.h", "bash", False),
        ("bash", "bash2", False),
        ("", "bash", False),
    ],
)
def test_wildcards_are_exactly_those_of_fnmatchcase(pattern: str, name: str, matches: bool) -> None:
    assert sees({"tools": {"allowed": [pattern]}}, inventory(tools(name))) == ([f"tool:{name}"] if matches else [])
    assert sees({"tools": {"disabled": [pattern]}}, inventory(tools(name))) == ([] if matches else [f"tool:{name}"])


@requirement("profile:case")
@pytest.mark.parametrize(
    ("pattern", "name"), [("Bash", "bash"), ("bash", "Bash"), ("CAFÉ", "café"), ("strasse", "straße")]
)
def test_matching_minds_case(pattern: str, name: str) -> None:
    assert sees({"tools": {"disabled": [pattern]}}, inventory(tools(name))) == [f"tool:{name}"]
    assert sees({"tools": {"allowed": [pattern]}}, inventory(tools(name))) == []


@requirement("profile:equal-text")
@pytest.mark.parametrize("name", ["a[1]", "what?", "a*b", "x[!y]", "[]"])
def test_equal_text_matches_even_where_it_reads_as_a_wildcard(name: str) -> None:
    assert sees({"tools": {"disabled": [name]}}, inventory(tools(name, "other"))) == ["tool:other"]
    assert sees({"tools": {"allowed": [name]}}, inventory(tools(name, "other"))) == [f"tool:{name}"]


@requirement("profile:white-space")
@pytest.mark.parametrize("pattern", [" bash", "bash ", "\tbash\n", " ba* "])
def test_white_space_around_a_pattern_is_dropped(pattern: str) -> None:
    stock = inventory(tools("bash", "read"))
    assert sees({"tools": {"disabled": [pattern]}}, stock) == ["tool:read"]
    assert sees({"tools": {"allowed": [pattern]}}, stock) == ["tool:bash"]


@requirement("profile:nfc")
def test_names_and_patterns_are_compared_in_one_normal_form() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    for name, pattern in ((composed, decomposed), (decomposed, composed), (decomposed, "caf?")):
        assert sees({"tools": {"disabled": [pattern]}}, inventory(tools(name))) == []
        assert sees({"tools": {"allowed": [pattern]}}, inventory(tools(name))) == [f"tool:{name}"]
        assert sees({"mcp": {"disabled": [pattern]}}, inventory(mcp=[server(name, "x")])) == []
        assert sees({"skills": {"categories": [pattern]}}, inventory(skills=[skill("a", name)])) == ["skill:a"]


@requirement("profile:cleaned-list")
@pytest.mark.parametrize("entry", ["", " ", "\n"])
def test_a_list_that_cleaning_empties_still_admits_nothing(entry: str) -> None:
    stock = inventory(tools("bash"), ["notes"], [server("slack", "send")], ["explorer"])
    for block in ("tools", "skills", "mcp", "subagents"):
        kinds = {"tools": ("tool", "mcp_tool"), "skills": ("skill",), "mcp": ("mcp_tool",), "subagents": ("subagent",)}[
            block
        ]
        assert [i for i in sees({block: {"allowed": [entry]}}, stock) if i.startswith(kinds)] == []


# -- spellings ---------------------------------------------------------------------------------------------------

SKILLS = inventory(
    skills=[
        skill("ops/prod/deploy", "infra", "ship-it"),
        skill("web/deploy", None, "web-deploy"),
        skill("ops/restart", "infra"),
    ]
)


@requirement("profile:skill-allow")
@pytest.mark.parametrize(
    ("pattern", "admitted"),
    [
        ("ops/prod/deploy", ["ops/prod/deploy"]),
        ("ops/*", ["ops/prod/deploy", "ops/restart"]),
        ("restart", ["ops/restart"]),
        ("rest*", ["ops/restart"]),
        ("deploy", []),
        ("ship-it", []),
        ("infra/restart", []),
        ("prod/deploy", []),
        ("infra", []),
    ],
)
def test_a_skill_is_allowed_by_its_path_or_by_a_last_segment_that_only_it_has(
    pattern: str, admitted: list[str]
) -> None:
    assert sees({"skills": {"allowed": [pattern]}}, SKILLS) == [f"skill:{name}" for name in admitted]


@requirement("profile:skill-deny")
@pytest.mark.parametrize(
    ("pattern", "denied"),
    [
        ("ops/prod/deploy", ["ops/prod/deploy"]),
        ("deploy", ["ops/prod/deploy", "web/deploy"]),
        ("ship-it", ["ops/prod/deploy"]),
        ("infra/deploy", ["ops/prod/deploy"]),
        ("infra/*", ["ops/prod/deploy", "ops/restart"]),
        ("ops/deploy", ["ops/prod/deploy"]),
        ("prod/deploy", ["ops/prod/deploy"]),
        ("web/deploy", ["web/deploy"]),
        ("ops", []),
        ("infra", []),
    ],
)
def test_a_skill_is_denied_by_any_of_its_spellings(pattern: str, denied: list[str]) -> None:
    everything = ["ops/prod/deploy", "ops/restart", "web/deploy"]
    assert sees({"skills": {"disabled": [pattern]}}, SKILLS) == [
        f"skill:{name}" for name in everything if name not in denied
    ]


MCP = inventory(
    mcp=[
        server("github", "get_issue", "push", resources=["repo://a/b"], prompts=["review"]),
        server("github__evil", "push"),
        server("a/b", "c"),
        server("my.srv", "do it", "_x", "y__z"),
    ]
)


@requirement("profile:mcp-allow")
@pytest.mark.parametrize(
    ("pattern", "admitted"),
    [
        (
            "github",
            [
                "mcp_prompt:github/review",
                "mcp_resource:github/repo://a/b",
                "mcp_tool:github/get_issue",
                "mcp_tool:github/push",
            ],
        ),
        ("github/get_*", ["mcp_tool:github/get_issue"]),
        ("*/push", ["mcp_tool:github/push", "mcp_tool:github__evil/push"]),
        ("github/repo://*", ["mcp_resource:github/repo://a/b"]),
        ("github__push", ["mcp_tool:github/push"]),
        ("mcp__github__push", ["mcp_tool:github/push"]),
        ("*__push", ["mcp_tool:github/push"]),
        ("github_push", []),
        ("push", []),
        ("github__evil", []),
        ("github__evil__*", []),
        ("github__evil/push", ["mcp_tool:github__evil/push"]),
        ("github?_evil", ["mcp_tool:github__evil/push"]),
        ("a/b", []),
        ("a/b/c", []),
        ("a/*", []),
        ("a?b", ["mcp_tool:a/b/c"]),
        ("my_srv", []),
        ("my_srv__do_it", []),
        ("my.srv__do it", ["mcp_tool:my.srv/do it"]),
        ("my.srv___x", []),
        ("my.srv__y__z", []),
        ("my.srv/_x", ["mcp_tool:my.srv/_x"]),
    ],
)
def test_an_mcp_item_is_allowed_only_through_the_spelling_the_pattern_is_written_in(
    pattern: str, admitted: list[str]
) -> None:
    assert sees({"mcp": {"allowed": [pattern]}}, MCP) == admitted


@requirement("profile:mcp-deny")
@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "slack.hq",
            "slack_hq",
            "slack/hq",
            "slack.hq/*",
            "slack.hq__*",
            "mcp__slack.hq__*",
            "mcp__slack_hq__*",
            "slack_hq_*",
        ),
        *(
            "slack.hq/send it",
            "*/send it",
            "*__send_it",
            "slack_hq__send_it",
            "mcp_slack.hq_send_it",
            "sl*",
            "*_send_it",
            "?*",
        ),
    ],
)
def test_an_mcp_item_is_denied_by_any_of_its_spellings(pattern: str) -> None:
    stock = inventory(mcp=[server("slack.hq", "send it"), server("other", "x")])
    denied = pattern not in ("slack/hq",)
    expected = ["mcp_tool:other/x"] if denied else ["mcp_tool:other/x", "mcp_tool:slack.hq/send it"]
    assert sees({"mcp": {"disabled": [pattern]}}, stock) == ([] if pattern == "?*" else expected)


@requirement("profile:mcp-wire-names")
@pytest.mark.parametrize(
    ("name", "item"),
    [
        ("slack", "send"),
        ("my srv.v1", "do-it"),
        ("mcp_x", "t"),
        ("中文", "发送"),
        ("s" * 60, "longtool"),
        ("s" * 50, "t" * 60),
    ],
)
def test_every_wire_name_of_a_known_runtime_denies_the_item(name: str, item: str) -> None:
    stock = inventory(mcp=[server(name, item), server("zz", "zz")])
    for wire in [*wire_names(name, item), *clean_servers(name)]:
        assert sees({"mcp": {"disabled": [wire]}}, stock) == ["mcp_tool:zz/zz"], wire


@requirement("profile:mcp-item-alone")
def test_the_bare_item_name_is_no_spelling_of_an_mcp_item() -> None:
    stock = inventory(mcp=[server("slack", "send")])
    assert sees({"mcp": {"disabled": ["send"]}}, stock) == ["mcp_tool:slack/send"]
    assert sees({"mcp": {"allowed": ["send"]}}, stock) == []


@requirement("profile:slack-star")
def test_slack_slash_star_hides_the_server_slack() -> None:
    stock = inventory(mcp=[server("slack", "send", resources=["slack://1"], prompts=["p"]), server("slackbot", "x")])
    assert sees({"mcp": {"disabled": ["slack/*"]}}, stock) == ["mcp_tool:slackbot/x"]


@requirement("profile:allow-servers-and-items")
def test_one_word_admits_servers_and_a_slash_admits_items() -> None:
    stock = inventory(mcp=[server("arxiv-mcp", "search"), server("github", "get_issue", "push")])
    assert sees({"mcp": {"allowed": ["arxiv*"]}}, stock) == ["mcp_tool:arxiv-mcp/search"]
    assert sees({"mcp": {"allowed": ["github/get_*"]}}, stock) == ["mcp_tool:github/get_issue"]


# -- errors ------------------------------------------------------------------------------------------------------


@requirement("profile:unclosed")
@pytest.mark.parametrize("pattern", ["[bash", "ba[sh", "a[!b", "[a]b["])
@pytest.mark.parametrize(
    ("block", "key"), [("tools", "disabled"), ("skills", "disabled"), ("mcp", "disabled"), ("mcp", "required")]
)
def test_an_unclosed_bracket_where_it_denies_or_requires_makes_the_profile_unreadable(
    block: str, key: str, pattern: str
) -> None:
    assert pattern in refused({block: {key: [pattern]}}).error


@requirement("profile:unclosed-allow")
def test_an_unclosed_bracket_in_an_allow_list_is_a_finding_and_admits_equal_text_only() -> None:
    answer = decide_case({"tools": {"allowed": ["[bash"]}}, inventory(tools("bash", "[bash")))
    assert answer.visible == ["tool:[bash"]
    assert any("[bash" in json.dumps(f) for f in answer.findings)


@requirement("profile:non-string")
@pytest.mark.parametrize("entry", [1, 1.5, True, None, ["bash"], {"a": 1}])
@pytest.mark.parametrize(
    ("block", "key"),
    [
        ("tools", "disabled"),
        ("tools", "allowed"),
        ("skills", "categories"),
        ("mcp", "required"),
        ("resources", "allowed"),
        ("tools", "enabled"),
    ],
)
def test_a_pattern_that_is_not_a_string_makes_the_profile_unreadable(block: str, key: str, entry: object) -> None:
    refused({block: {key: ["bash", entry]}})
