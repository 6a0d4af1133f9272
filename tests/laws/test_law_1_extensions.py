"""Law 1: what an extension is, and how one is told from another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.build import inventory, server, skill, tools
from tests.dialects.adapter import decide_case, run
from tests.dialects.requirement import requirement
from tests.laws.asking import sees

ALL_KINDS = inventory(
    tools("bash"),
    ["ops/deploy"],
    [server("slack", "send", resources=["slack://chan/1"], prompts=["greet"])],
    ["explorer"],
)


@requirement("profile:one-decision-each")
def test_every_kind_of_extension_gets_one_decision_under_its_identity() -> None:
    answer = decide_case({}, ALL_KINDS)
    assert [d["id"] for d in answer.decisions] == [
        "tool:bash",
        "skill:ops/deploy",
        "mcp_tool:slack/send",
        "mcp_resource:slack/slack://chan/1",
        "mcp_prompt:slack/greet",
        "subagent:explorer",
    ]


@requirement("profile:block-each-kind")
@pytest.mark.parametrize(
    ("block", "pattern", "hidden"),
    [
        ("tools", "bash", "tool:bash"),
        ("skills", "ops/deploy", "skill:ops/deploy"),
        ("mcp", "slack/send", "mcp_tool:slack/send"),
        ("resources", "slack/slack://*", "mcp_resource:slack/slack://chan/1"),
        ("prompts", "slack/greet", "mcp_prompt:slack/greet"),
        ("subagents", "explorer", "subagent:explorer"),
    ],
)
def test_each_kind_has_a_block_of_the_same_shape(block: str, pattern: str, hidden: str) -> None:
    everything = sees({}, ALL_KINDS)
    assert sees({block: {"disabled": [pattern]}}, ALL_KINDS) == [i for i in everything if i != hidden]
    same_kind = [i for i in everything if i.split(":")[0] == hidden.split(":")[0]]
    assert [i for i in sees({block: {"allowed": [pattern]}}, ALL_KINDS) if i in same_kind] == [hidden]


@requirement("profile:native-dunder")
def test_a_native_tool_whose_name_looks_like_an_mcp_name_is_native() -> None:
    stock = inventory(tools("bash", "my__tool"))
    assert sees({"mcp": {"disabled": ["*"]}}, stock) == ["tool:bash", "tool:my__tool"]
    assert sees({"mcp": {"allowed": ["slack"]}}, stock) == ["tool:bash", "tool:my__tool"]
    assert decide_case({"mcp": {"required": ["my"]}}, stock).missing == ("my",)


@requirement("profile:server-spoof")
def test_a_server_whose_name_begins_like_another_is_not_that_other() -> None:
    stock = inventory(mcp=[server("github", "push"), server("github__evil", "push"), server("github/evil", "push")])
    assert sees({"mcp": {"allowed": ["github"]}}, stock) == ["mcp_tool:github/push"]
    assert sees({"mcp": {"allowed": ["github/*"]}}, stock) == ["mcp_tool:github/push"]
    assert sees({"mcp": {"allowed": ["github__*"]}}, stock) == ["mcp_tool:github/push"]
    assert sees({"mcp": {"allowed": ["github/ev*", "github/evil__*"]}}, stock) == []
    without = inventory(mcp=[server("github__evil", "push"), server("github/evil", "push")])
    for pattern in ("github", "github/*", "github/push"):
        assert decide_case({"mcp": {"required": [pattern]}}, without).missing == (pattern,)


@requirement("profile:mcp-is-never-native")
@pytest.mark.parametrize("name", ["__x", "s" * 64, "a.b"])
def test_an_mcp_tool_never_counts_as_native_whatever_its_server_is_called(name: str) -> None:
    stock = inventory(tools("bash"), mcp=[server(name, "bash")])
    assert sees({"mcp": {"disabled": ["*"]}}, stock) == ["tool:bash"]


@requirement("profile:bad-name-refused")
@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "ba\u200bsh",
        "ba\x00sh",
        "bash\n",
        "\ufeffbash",
        "b\u202eash",
        "t\U000e0041",
        "a\u2060b",
        "a\x7fb",
        "a\u00adb",
    ],
)
def test_an_item_without_a_name_or_with_characters_nobody_sees_is_refused(name: str) -> None:
    stock = inventory(
        tools(name, "ok"), [skill(name), skill("ok")], [server("s", name, "ok", prompts=[name])], [name, "ok"]
    )
    assert sees({}, stock) == ["mcp_tool:s/ok", "skill:ok", "subagent:ok", "tool:ok"]
    assert sees(
        {"tools": {"allowed": ["*", name]}, "mcp": {"allowed": ["*"]}, "skills": {"allowed": ["*"]}}, stock
    ) == [
        "mcp_tool:s/ok",
        "skill:ok",
        "subagent:ok",
        "tool:ok",
    ]


@requirement("profile:bad-name-refused")
@pytest.mark.parametrize("name", ["", "gith\u200bub", "a\nb"])
def test_a_server_without_a_readable_name_offers_nothing_and_meets_nothing(name: str) -> None:
    stock = inventory(mcp=[server(name, "x", resources=["r://1"], prompts=["p"]), server("ok", "x")])
    assert sees({"mcp": {"allowed": ["*"]}}, stock) == ["mcp_tool:ok/x"]
    assert decide_case({"mcp": {"required": ["gith*"]}}, stock).missing == ("gith*",)


@requirement("patterns:bad-name-refused")
def test_a_bad_name_is_refused_in_dialect_b_too() -> None:
    stock = inventory(tools("", "o\u200bk", "ok"), [skill("o\u200bk"), skill("ok")], [server("s", "", "ok")])
    profile = {"tools": {"patterns": ["*:*:*"]}, "skills": {"patterns": ["*:*"]}}
    assert sees(profile, stock) == ["mcp_tool:s/ok", "skill:ok", "tool:ok"]


TWO_SOURCES = inventory(tools("bash", "read") + tools("bash", source="shellkit"))


def allowed_sources(profile: object) -> dict[tuple[str, str], bool]:
    return decide_case(profile, TWO_SOURCES).allowed


@requirement("profile:two-sources")
def test_two_sources_of_one_tool_name_are_two_decisions() -> None:
    assert allowed_sources({}) == {
        ("tool:bash", "builtin"): True,
        ("tool:bash", "shellkit"): True,
        ("tool:read", "builtin"): True,
    }


@requirement("profile:bare-allow-is-the-runtimes")
def test_a_bare_allow_reaches_the_runtimes_own_tool_only() -> None:
    answers = allowed_sources({"tools": {"allowed": ["bash"]}})
    assert (answers["tool:bash", "builtin"], answers["tool:bash", "shellkit"]) == (True, False)


@requirement("profile:bare-deny-is-everybodys")
def test_a_bare_deny_reaches_every_source() -> None:
    answers = allowed_sources({"tools": {"disabled": ["bash"]}})
    assert (answers["tool:bash", "builtin"], answers["tool:bash", "shellkit"]) == (False, False)


@requirement("profile:source-spelling")
def test_each_source_has_a_spelling_of_its_own() -> None:
    allowed = allowed_sources({"tools": {"allowed": ["shellkit/bash"]}})
    assert allowed == {
        ("tool:bash", "builtin"): False,
        ("tool:bash", "shellkit"): True,
        ("tool:read", "builtin"): False,
    }
    denied = allowed_sources({"tools": {"disabled": ["shellkit/*"]}})
    assert denied == {("tool:bash", "builtin"): True, ("tool:bash", "shellkit"): False, ("tool:read", "builtin"): True}


@requirement("profile:two-sources")
@pytest.mark.parametrize("pattern", ["*", "**"])
def test_a_lone_star_reaches_every_source(pattern: str) -> None:
    assert all(allowed_sources({"tools": {"allowed": [pattern]}}).values())
    assert not any(allowed_sources({"tools": {"disabled": [pattern]}}).values())


@requirement("profile:source-spelling")
def test_a_pattern_without_a_slash_never_means_a_source() -> None:
    stock = inventory(tools("bash", "read") + tools("lint", source="kit"))
    assert sees({"tools": {"allowed": ["b*"]}}, stock) == ["tool:bash"]
    assert sees({"tools": {"allowed": ["k*"]}}, stock) == []
    assert sees({"tools": {"disabled": ["b*", "kit"]}}, stock) == ["tool:lint", "tool:read"]


@requirement("profile:plugin-contributions")
def test_what_a_plugin_contributes_is_gated_like_anything_else() -> None:
    stock = inventory(tools("bash") + tools("lint", source="kit"), [skill("kit-notes", source="kit")])
    assert sees({"tools": {"disabled": ["lint"]}, "skills": {"disabled": ["kit-notes"]}}, stock) == ["tool:bash"]
    assert sees({"tools": {"disabled": ["kit/*"]}}, stock) == ["skill:kit-notes", "tool:bash"]
    assert sees({"tools": {"allowed": ["bash"]}}, stock) == ["skill:kit-notes", "tool:bash"]


@requirement("profile:no-repair")
@pytest.mark.parametrize("name", ["BASH", "bas", "tool:bash ", "bash "])
def test_a_name_is_judged_as_it_is_asked_with_no_repair(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "i.json").write_text(json.dumps(inventory(tools("bash"))))
    common = ("--inventory", str(tmp_path / "i.json"), "--json", "-w", str(tmp_path))
    assert run("explain", str(tmp_path / "a.json"), "bash", *common)[0] == 0
    assert run("explain", str(tmp_path / "a.json"), name, *common)[0] == 1


@requirement("profile:one-id-twice")
def test_two_profiles_with_one_id_are_both_unavailable(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    for name, id_ in (("one", "twin"), ("two", "twin"), ("three", "alone")):
        (tmp_path / "agents" / f"{name}.yaml").write_text(f"id: {id_}\n")
    (tmp_path / "i.json").write_text(json.dumps(inventory(tools("bash"))))
    common = ("--inventory", str(tmp_path / "i.json"), "--json", "-w", str(tmp_path))
    code, out, err = run("explain", "twin", *common)
    assert code in (1, 4)
    assert '"visible": true' not in out
    assert "twin" in out + err
    assert run("explain", "alone", *common)[0] == 0
    assert run("check", *common)[0] == 3
