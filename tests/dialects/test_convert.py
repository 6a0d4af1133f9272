"""Conversion between all dialects: nothing that the source denies can be had in the target unsaid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extgate.dialects.convert import WRITERS, read_back
from extgate.dialects.outline import example
from tests.dialects.adapter import run
from tests.dialects.folders import put
from tests.dialects.written import PAIRS, SOURCES, converted, is_said, read, widened

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
MANY = settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
ANY_PAIR = st.sampled_from(PAIRS).flatmap(lambda pair: st.tuples(st.just(pair), SOURCES[pair[0]]))


def check_pair(drawn: object) -> None:
    (source, target), documents = drawn  # type: ignore[misc]
    policy = read(source, documents)
    if policy is None:
        return
    found = converted(policy, source, target)
    back = read_back(target, found.documents)
    unsaid = [name for name in widened(policy, back, source, target) if not is_said(name, found)]
    assert unsaid == [], ([d.text for d in documents], [d.text for d in found.documents])


@QUICK
@given(ANY_PAIR)
def test_no_denied_name_becomes_allowed_unless_it_is_said(drawn: object) -> None:
    check_pair(drawn)


@pytest.mark.e2e
@pytest.mark.timeout(3600)
@MANY
@given(ANY_PAIR)
def test_of_ten_thousand_policies_no_denied_name_becomes_allowed_unless_it_is_said(drawn: object) -> None:
    check_pair(drawn)


@pytest.mark.parametrize("dialect", sorted(SOURCES))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data())
def test_a_round_trip_differs_by_its_losses_only(dialect: str, data: st.DataObject) -> None:
    policy = read(dialect, data.draw(SOURCES[dialect]))
    if policy is None:
        return
    found = converted(policy, dialect, dialect)
    again = converted(read_back(dialect, found.documents), dialect, dialect)
    assert [
        n for n in widened(policy, read_back(dialect, found.documents), dialect, dialect) if not is_said(n, found)
    ] == []
    assert read_back(dialect, again.documents).default == policy.default


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (
            "profile",
            {"id": "a", "tools": {"disabled": ["bash", "mem*"]}, "mcp": {"allowed": ["gh/*"], "required": ["gh"]}},
        ),
        ("profile", {"id": "a", "skills": {"allowed": ["deploy*"]}, "subagents": {"disabled": ["worker"]}}),
        ("patterns", {"name": "a", "tools": {"patterns": ["impl:*:ls", "mcp:gh:*", "!mcp:gh:delete_*"]}}),
        ("hermes", {"platform_toolsets": {"cli": ["web", "file"]}, "skills": {"disabled": ["notes"]}}),
        ("opencode", {"permission": {"bash": "deny", "gh_*": "deny", "skill": {"*": "deny", "deploy": "allow"}}}),
        ("claude-code", {"permissions": {"deny": ["Bash(rm:*)", "WebFetch"], "allow": ["Bash(git:*)"]}}),
    ],
)
def test_a_round_trip_of_what_the_dialect_can_say_is_lossless(dialect: str, text: object) -> None:
    from extgate.dialects.document import Document

    policy = read(dialect, [Document(path={"patterns": "a.yml", "hermes": "config.yaml"}.get(dialect, "settings.json"),
                                     text=json.dumps(text))])  # fmt: skip
    assert policy
    assert [loss.key for loss in converted(policy, dialect, dialect).losses] == []


def test_every_writer_has_its_reader() -> None:
    assert sorted(WRITERS) == sorted(SOURCES)


def test_an_example_is_matched_by_its_pattern() -> None:
    from extgate import match_any

    for pattern in ("a*b", "?x", "[ab]*", "[!ab]c", "plain", "*"):
        assert match_any(example(pattern), [pattern])


# ---------------------------------------------------------------------------------------------- the command

STOCK = {"tools": [{"name": "bash", "source": "builtin", "group": "shell"}, {"name": "read", "source": "builtin"}],
         "mcp": [{"server": "gh", "tools": [{"name": "list"}, {"name": "delete_repo"}]}],
         "skills": [{"name": "deploy"}]}  # fmt: skip


ALL = "tool, skill, mcp_tool, mcp_resource, mcp_prompt, subagent"


def convert(root: Path, profile: object, target: str, *more: str) -> tuple[int, str, str]:
    put(root, "agents/a.json", profile)
    put(root, "stock.json", STOCK)
    return run("convert", "a", "--to", target, "-w", str(root), "--inventory", str(root / "stock.json"), *more)


def test_a_lossless_conversion_exits_with_0(root: Path) -> None:
    code, _out, err = convert(root, {"id": "a", "mcp": {"disabled": ["gh/delete_repo"]}}, "profile")
    assert (code, err) == (0, f"equal over all names: {ALL}\n")


def test_losses_exit_with_3_and_are_told_with_their_shortest_witnesses(root: Path) -> None:
    code, out, err = convert(root, {"id": "a", "mcp": {"disabled": ["gh/delete_repo"]}}, "patterns")
    assert code == 3
    assert "'!mcp:gh:delete_repo'" in out
    assert err.splitlines() == [
        "wider spelling/gh/delete_repo: deny here, allow there; witness mcp_tool:gh/delete_repo/x, also mcp_resource,"
        " mcp_prompt (mcp.disabled agents/a.json:1)",
        "narrower unknown/subagent:*: allow here, deny there; witness subagent:x (default: allow agents/a.json)",
        "equal over all names: tool, skill",
    ]


def test_a_deny_that_cannot_be_said_is_an_error_until_it_is_accepted_by_name(root: Path) -> None:
    profile = {"id": "a", "skills": {"disabled": ["ops-*"]}}
    code, out, err = convert(root, profile, "codex")
    assert code == 1
    assert "pattern/ops-*" in err
    assert "agents/a.json:" in err
    assert "prefix_rule" not in out
    said = json.loads(convert(root, profile, "codex", "--json")[1])
    keys = [loss["accept"] for loss in said["losses"] if loss["is_error"]]
    assert said["documents"] == []
    accepted = [word for key in keys for word in ("--accept", key)]
    code, out, err = convert(root, profile, "codex", *accepted)
    assert code == 3
    assert ".codex/config.toml" in out


def test_a_deny_of_a_shell_reaches_every_tool_that_runs_commands(root: Path) -> None:
    code, _, _ = convert(root, {"id": "a", "tools": {"disabled": ["bash"]}}, "opencode", "-o", str(root / "out"))
    assert code in (0, 3)
    assert json.loads((root / "out" / "opencode.json").read_text())["permission"]["bash"] == "deny"
    code, out, _ = convert(root, {"id": "a", "tools": {"disabled": ["bash"]}}, "claude-code", "--json")
    losses = json.loads(out)
    assert code in (0, 3), [loss for loss in losses["losses"] if loss["is_error"]]
    denied = json.loads(losses["documents"][0]["text"])["permissions"]["deny"]
    assert {"Bash", "Monitor", "PowerShell"} <= set(denied)


def test_nothing_is_overwritten(root: Path) -> None:
    put(root, "out/opencode.json", {"mine": 1})
    code, _, err = convert(root, {"id": "a"}, "opencode", "-o", str(root / "out"))
    assert code == 1
    assert "nothing is overwritten" in err
    assert json.loads((root / "out" / "opencode.json").read_text()) == {"mine": 1}


def test_shell_rules_go_over_as_prefixes(root: Path) -> None:
    put(root, ".claude/settings.json", {"permissions": {"deny": ["Bash(rm:*)"], "allow": ["Bash(git log:*)"]}})
    accepted = ("--accept", "arguments/bash(echo > x)")
    code, out, _ = run("convert", "claude-code/main", "--to", "opencode", "-w", str(root), "--json", *accepted)
    assert code in (0, 3), out
    text = json.loads(json.loads(out)["documents"][0]["text"])
    rules = text["permission"]["bash"]
    assert next(iter(rules)) == "*"
    assert list(rules)[-1] == "rm *"
    assert {key: rules[key] for key in ("*", "git log *", "ls *", "rm *")} == {
        "*": "ask", "git log *": "allow", "ls *": "allow", "rm *": "deny",
    }  # fmt: skip
