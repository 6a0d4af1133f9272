"""Law 4: dialect B, positives and negatives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.build import inventory, server, skill, tools
from tests.dialects.adapter import decide_case, decide_text, run
from tests.dialects.requirement import requirement
from tests.laws.asking import assert_refused, refused, sees

STOCK = inventory(
    tools("read_file", "execute", "task", "run_tool") + tools("lint", source="kit"),
    [skill("trace"), skill("analysis/rank", declared="rank-detector"), skill("a/debug/dump", "research", "dumper")],
    [server("perf", "load", "x_debug", resources=["perf://1"], prompts=["ask"]), server("a.b", "ping")],
    ["explorer", "reviewer"],
)


def b(
    tool_patterns: list[str] | None = None, skill_patterns: list[str] | None = None, **more: object
) -> dict[str, object]:
    """A profile of dialect B; None leaves the block out."""
    profile: dict[str, object] = {"dialect": "patterns", **more}
    if tool_patterns is not None:
        profile["tools"] = {"patterns": tool_patterns}
    if skill_patterns is not None:
        profile["skills"] = {"patterns": skill_patterns}
    return profile


@requirement("patterns:tool-parts")
@pytest.mark.parametrize(
    ("pattern", "seen"),
    [
        ("impl:deepagents:read_file", ["tool:read_file"]),
        ("impl:deepagents:*", ["tool:execute", "tool:read_file", "tool:run_tool", "tool:task"]),
        ("impl:kit:*", ["tool:lint"]),
        ("impl:*:*", ["tool:execute", "tool:lint", "tool:read_file", "tool:run_tool", "tool:task"]),
        ("mcp:perf:load", ["mcp_tool:perf/load"]),
        (
            "mcp:perf:*",
            ["mcp_prompt:perf/ask", "mcp_resource:perf/perf://1", "mcp_tool:perf/load", "mcp_tool:perf/x_debug"],
        ),
        ("mcp:p*:[lx]*", ["mcp_tool:perf/load", "mcp_tool:perf/x_debug"]),
        ("*:*:ping", ["mcp_tool:a.b/ping"]),
        ("im?l:deep*:e*", ["tool:execute"]),
        ("mcp:deepagents:*", []),
        ("impl:perf:*", []),
        ("IMPL:deepagents:*", []),
        ("impl::read_file", []),
        ("mcp:a_b:*", []),
    ],
)
def test_a_tool_pattern_is_category_module_and_name_each_a_wildcard(pattern: str, seen: list[str]) -> None:
    assert sees(b([pattern]), STOCK) == seen


@requirement("patterns:skill-parts")
@pytest.mark.parametrize(
    ("pattern", "seen"),
    [
        ("default:*", ["skill:trace"]),
        ("analysis:*", ["skill:analysis/rank"]),
        ("debug:dump", ["skill:a/debug/dump"]),
        ("*:*", ["skill:a/debug/dump", "skill:analysis/rank", "skill:trace"]),
        ("a:*", []),
        ("research:*", []),
        (":trace", []),
        ("default:", []),
    ],
)
def test_a_skill_pattern_is_parent_folder_and_name(pattern: str, seen: list[str]) -> None:
    assert sees(b(skill_patterns=[pattern]), STOCK) == seen


@requirement("patterns:white-space")
@pytest.mark.parametrize("positive", [" impl:deepagents:* ", "impl : deepagents : *", "\timpl:deepagents:*\n"])
@pytest.mark.parametrize(
    "negative",
    [
        "!impl:deepagents:execute",
        " !impl:deepagents:execute",
        "! impl:deepagents:execute",
        "!impl : deepagents : execute ",
    ],
)
def test_white_space_around_parts_and_after_the_mark_is_dropped(positive: str, negative: str) -> None:
    assert sees(b([positive, negative]), STOCK) == ["tool:read_file", "tool:run_tool", "tool:task"]


@requirement("patterns:positive-and-no-negative")
@pytest.mark.parametrize("order", [1, -1])
def test_an_item_needs_a_positive_and_no_negative_in_any_order(order: int) -> None:
    patterns = ["impl:deepagents:*", "impl:deepagents:execute", "!impl:*:e*"][::order]
    assert sees(b(patterns), STOCK) == ["tool:read_file", "tool:run_tool", "tool:task"]
    assert sees(b(skill_patterns=["*:*", "!analysis:*"][::order]), STOCK) == ["skill:a/debug/dump", "skill:trace"]


@requirement("patterns:no-positive")
@pytest.mark.parametrize(
    "profile", [b(), b([]), b(["!impl:deepagents:execute"]), b([], ["!default:x"]), b(["impl:deepagents"]), b([""])]
)
def test_without_a_positive_rule_nothing_is_available(profile: object) -> None:
    assert sees(profile, STOCK) == []


@requirement("patterns:absent-block")
def test_an_absent_block_is_the_same_as_one_without_a_positive() -> None:
    assert sees(b(skill_patterns=["*:*"]), STOCK) == ["skill:a/debug/dump", "skill:analysis/rank", "skill:trace"]
    assert [i for i in sees(b(["*:*:*"]), STOCK) if i.startswith("skill")] == []
    assert sees({"dialect": "patterns", "tools": {}, "skills": {}}, STOCK) == []


@requirement("patterns:malformed-positive")
@pytest.mark.parametrize("pattern", ["impl:deepagents", "execute", "impl:deepagents:execute:x", "a:b:c:d", ""])
def test_a_malformed_positive_is_ignored_with_a_warning_naming_it(pattern: str) -> None:
    answer = decide_case(b(["impl:deepagents:task", pattern]), STOCK)
    assert answer.visible == ["tool:task"]
    assert [f for f in answer.findings if f["severity"] == "warning" and f["file"] and pattern in json.dumps(f)]


@requirement("patterns:malformed-negative")
@pytest.mark.parametrize(
    ("pattern", "hidden"),
    [
        ("!execute", ["tool:execute"]),
        ("!deepagents:execute", ["tool:execute"]),
        ("!impl:deepagents:execute:", ["tool:execute"]),
        ("!a:b:c:e*", ["tool:execute"]),
        ("!!impl:deepagents:execute", ["tool:execute"]),
        ("!!execute", ["tool:execute"]),
        ("! ! execute", ["tool:execute"]),
        ("!perf", ["mcp_prompt:perf/ask", "mcp_resource:perf/perf://1", "mcp_tool:perf/load", "mcp_tool:perf/x_debug"]),
        (
            "!mcp:perf",
            ["mcp_prompt:perf/ask", "mcp_resource:perf/perf://1", "mcp_tool:perf/load", "mcp_tool:perf/x_debug"],
        ),
        ("!perf__load", ["mcp_tool:perf/load"]),
        ("!kit", ["tool:lint"]),
        ("!*_debug", ["mcp_tool:perf/x_debug"]),
        ("!", []),
    ],
)
def test_a_malformed_negative_denies_whatever_its_last_part_matches_and_is_warned_about(
    pattern: str, hidden: list[str]
) -> None:
    everything = sees(b(["*:*:*"]), STOCK)
    answer = decide_case(b(["*:*:*", pattern]), STOCK)
    assert answer.available
    assert answer.visible == [i for i in everything if i not in hidden]
    assert [f for f in answer.findings if f["severity"] == "warning" and f["file"] and pattern in json.dumps(f)]


@requirement("patterns:malformed-negative-skill")
@pytest.mark.parametrize(
    ("pattern", "hidden"),
    [
        ("!trace", "trace"),
        ("!rank-detector", "analysis/rank"),
        ("!x:y:dump", "a/debug/dump"),
        ("!analysis", "analysis/rank"),
        ("!!default:trace", "trace"),
    ],
)
def test_a_malformed_negative_of_skills_denies_by_name_or_category(pattern: str, hidden: str) -> None:
    everything = ["a/debug/dump", "analysis/rank", "trace"]
    assert sees(b(skill_patterns=["*:*", pattern]), STOCK) == [f"skill:{name}" for name in everything if name != hidden]


@requirement("patterns:mcp-names")
@pytest.mark.parametrize("name", ["load", "perf_load", "perf__load", "mcp__perf__load"])
def test_an_mcp_item_is_tried_under_its_own_and_its_full_names_for_either_sign(name: str) -> None:
    assert sees(b([f"mcp:perf:{name}"]), STOCK) == ["mcp_tool:perf/load"]
    assert "mcp_tool:perf/load" not in sees(b(["*:*:*", f"!mcp:perf:{name}"]), STOCK)


@requirement("patterns:native-full-name")
def test_a_native_tool_is_not_reached_by_an_mcp_pattern() -> None:
    stock = inventory(tools("write_file", "write__file"), mcp=[server("write")])
    assert sees(b(["mcp:*:*"]), stock) == []
    assert sees(b(["impl:deepagents:*", "!mcp:*:*"]), stock) == ["tool:write__file", "tool:write_file"]


@requirement("patterns:skill-names")
def test_a_skill_positive_takes_the_folder_or_a_declared_name_only_one_skill_has() -> None:
    assert sees(b(skill_patterns=["analysis:rank-detector"]), STOCK) == ["skill:analysis/rank"]
    twins = inventory(
        skills=[skill("one", declared="same"), skill("two", declared="same"), skill("three", declared="own")]
    )
    assert sees(b(skill_patterns=["default:same"]), twins) == []
    assert sees(b(skill_patterns=["default:own", "default:one"]), twins) == ["skill:one", "skill:three"]


@requirement("patterns:skill-names")
def test_a_skill_reached_by_its_declared_name_is_a_finding_where_the_folder_differs() -> None:
    answer = decide_case(b(skill_patterns=["analysis:rank-detector"]), STOCK)
    assert [f for f in answer.findings if "rank-detector" in f["message"]]
    assert not [f for f in decide_case(b(skill_patterns=["analysis:rank"]), STOCK).findings if "rank" in f["message"]]


@requirement("patterns:skill-negative-names")
@pytest.mark.parametrize("negative", ["!debug:dump", "!debug:dumper", "!a:dump", "!a:dumper", "!a:*", "!*:dum*"])
def test_a_skill_negative_takes_either_name_and_every_ancestor_folder(negative: str) -> None:
    assert sees(b(skill_patterns=["*:*", negative]), STOCK) == ["skill:analysis/rank", "skill:trace"]
    twins = inventory(skills=[skill("one", declared="same"), skill("two", declared="same"), skill("three")])
    assert sees(b(skill_patterns=["*:*", "!default:same"]), twins) == ["skill:three"]


@requirement("patterns:no-aliases")
@pytest.mark.parametrize(
    ("pattern", "current"),
    [
        ("impl:deepagents:run_command", "execute"),
        ("impl:file_system:*", "impl:deepagents"),
        ("impl:grep_search:*", "impl:deepagents"),
        ("impl:terminal:*", "impl:deepagents"),
    ],
)
def test_an_old_name_or_module_matches_nothing_and_the_finding_gives_the_current_spelling(
    pattern: str, current: str
) -> None:
    answer = decide_case(b([pattern]), STOCK)
    assert answer.visible == []
    assert [f for f in answer.findings if pattern in json.dumps(f) and current in json.dumps(f)]


@requirement("patterns:use-catalog")
def test_use_catalog_changes_delivery_and_not_what_is_available() -> None:
    patterns = ["impl:deepagents:read_file", "impl:deepagents:run_tool"]
    plain = {"dialect": "patterns", "tools": {"patterns": patterns, "use_catalog": False}}
    catalog = {"dialect": "patterns", "tools": {"patterns": patterns, "use_catalog": True}}
    assert sees(plain, STOCK) == sees(catalog, STOCK) == ["tool:read_file", "tool:run_tool"]


@requirement("patterns:catalog-tools")
def test_a_catalog_without_its_own_tools_is_a_finding() -> None:
    missing = {"dialect": "patterns", "tools": {"patterns": ["impl:deepagents:read_file"], "use_catalog": True}}
    stock = inventory(tools("read_file", "fetch_tools", "get_tool", "run_tool"))
    assert [f for f in decide_case(missing, stock).findings if "run_tool" in json.dumps(f)]
    patterns = [
        "impl:deepagents:read_file",
        *(f"impl:deepagents:{name}" for name in ("fetch_tools", "get_tool", "run_tool")),
    ]
    whole = {"dialect": "patterns", "tools": {"patterns": patterns, "use_catalog": True}}
    assert not [f for f in decide_case(whole, stock).findings if "run_tool" in json.dumps(f)]


@requirement("patterns:empty-stays-empty")
def test_an_empty_filtered_set_is_empty_and_never_everything() -> None:
    assert sees(b(["impl:deepagents:no_such"], ["default:no-such"]), STOCK) == []


@requirement("patterns:subagents")
def test_sub_agents_are_those_the_agents_own_config_lists_through_task() -> None:
    assert sees(b(["impl:deepagents:task"], subagents=["explorer"]), STOCK) == ["subagent:explorer", "tool:task"]
    assert sees(b(["impl:deepagents:task"]), STOCK) == ["tool:task"]
    assert sees(b(["impl:deepagents:read_file"], subagents=["explorer"]), STOCK) == ["tool:read_file"]


@requirement("patterns:ill-shaped")
@pytest.mark.parametrize("block", ["tools", "skills"])
@pytest.mark.parametrize(
    "value",
    [
        None,
        ["a:b:c"],
        "a:b:c",
        3,
        {"patterns": None},
        {"patterns": "a:b:c"},
        {"patterns": [1]},
        {"patterns": [None]},
        {"pattern": ["a:b:c"]},
    ],
)
def test_an_ill_shaped_block_is_an_error(block: str, value: object) -> None:
    refused({"dialect": "patterns", block: value}, STOCK)


@requirement("patterns:unclosed")
def test_an_unclosed_bracket_is_an_error_in_a_negative_and_plain_text_in_a_positive() -> None:
    refused(b(["impl:*:*", "!impl:deepagents:[x"]), STOCK)
    refused(b(skill_patterns=["*:*", "!default:[x"]), STOCK)
    assert sees(b(["impl:deepagents:[x"]), inventory(tools("[x", "x"))) == ["tool:[x"]


@requirement("patterns:nfc")
def test_patterns_and_names_meet_in_one_normal_form() -> None:
    stock = inventory(tools("caf\u00e9", "tea"), [skill("cafe\u0301")])
    assert sees(b(["impl:*:*", "!impl:deepagents:cafe\u0301"], ["default:caf\u00e9"]), stock) == [
        "skill:cafe\u0301",
        "tool:tea",
    ]


# -- which dialect -----------------------------------------------------------------------------------------------


@requirement("patterns:told-by-key")
def test_an_explicit_key_tells_the_dialect() -> None:
    assert decide_case({"dialect": "patterns"}, STOCK).visible == []
    assert len(decide_case({"dialect": "profile"}, STOCK).visible) == len(decide_case({}, STOCK).visible) > 0
    refused({"dialect": "profile", "tools": {"patterns": ["*:*:*"]}}, STOCK)
    refused({"dialect": "patterns", "tools": {"disabled": ["x"]}}, STOCK)
    for word in ("Profile", "A", "", None, 1):
        refused({"dialect": word}, STOCK)


@requirement("patterns:told-by-home")
def test_an_msagent_folder_means_dialect_b(tmp_path: Path) -> None:
    home = tmp_path / ".msagent" / "agents"
    home.mkdir(parents=True)
    (home / "quiet.yml").write_text("name: quiet\n")
    (home / "reader.yml").write_text("name: reader\ntools:\n  patterns: ['impl:deepagents:read_file']\n")
    (tmp_path / "i.json").write_text(json.dumps(STOCK))
    for name, seen in (("quiet", []), ("reader", ["tool:read_file"])):
        code, out, err = run(
            "explain", str(home / f"{name}.yml"), "--inventory", str(tmp_path / "i.json"), "--json", "-w", str(tmp_path)
        )
        assert code == 0, err
        said = json.loads(out)
        assert said["dialect"] == "patterns"
        assert [d["id"] for d in said["decisions"] if d["visible"]] == seen


@requirement("patterns:told-by-shape")
def test_patterns_in_a_block_mean_dialect_b() -> None:
    assert sees({"tools": {"patterns": ["impl:deepagents:task"]}}, STOCK) == ["tool:task"]
    assert sees({"skills": {"patterns": ["default:*"]}}, STOCK) == ["skill:trace"]


@requirement("patterns:mixture")
@pytest.mark.parametrize(
    "profile",
    [
        {"tools": {"patterns": ["*:*:*"], "disabled": ["bash"]}},
        {"tools": {"patterns": ["*:*:*"]}, "skills": {"disabled": ["x"]}},
        {"tools": {"patterns": ["*:*:*"]}, "mcp": {"disabled": ["*"]}},
        {"skills": {"patterns": ["*:*"], "categories": ["x"]}},
        {"tools": {"disabled": []}, "skills": {"patterns": ["*:*"]}},
    ],
)
def test_a_file_that_mixes_the_two_is_an_error(profile: object) -> None:
    refused(profile, STOCK)


@requirement("patterns:place")
def test_a_decision_names_the_pattern_file_and_line_that_made_it() -> None:
    text = "tools:\n  patterns:\n    - impl:deepagents:*\n    - '!impl:deepagents:execute'\n"
    answer = decide_text(text, STOCK, ".yml")
    denied, allowed = answer.decision("tool:execute")["rule"], answer.decision("tool:task")["rule"]
    assert (denied["pattern"], denied["line"]) == ("!impl:deepagents:execute", 4)
    assert (allowed["pattern"], allowed["line"]) == ("impl:deepagents:*", 3)
    assert denied["file"].endswith("agent.yml")
    assert_refused(decide_text(text + "    - 7\n", STOCK, ".yml"))
