"""Runtimes' own files in a workspace: real ones, untidy ones, several scopes at once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from extgate.core.extension import Inventory
from extgate.native_homes import find_natives
from extgate.workspace import Agent, Workspace
from tests.dialects.adapter import run
from tests.dialects.folders import put

SAMPLES = Path(__file__).parent.parent / "data" / "dialect-samples"


def natives(root: Path) -> dict[str, Agent]:
    return {agent.id: agent for agent in Workspace.open(root).natives}


def explained(root: Path, agent: str, *names: str, args: object = None) -> dict[str, dict[str, Any]]:
    """Decisions by id, as `explain --json` gives them."""
    more = ["--args", json.dumps(args)] if args is not None else []
    code, out, err = run("explain", agent, *names, "--json", "-w", str(root), *more)
    assert code in (0, 2, 4), err
    return {d["id"]: d for d in json.loads(out)["decisions"]}


def effect(root: Path, agent: str, name: str, args: object = None) -> str:
    (decision,) = explained(root, agent, name, args=args).values()
    return str(decision["effect"])


# ---------------------------------------------------------------------------------------------- the samples


def test_each_runtimes_sample_gives_its_agents(root: Path, home: Path) -> None:
    shutil.copytree(SAMPLES / "claude-code" / "project", root, dirs_exist_ok=True)
    shutil.copytree(SAMPLES / "opencode" / ".opencode", root / ".opencode")
    shutil.copy(SAMPLES / "opencode" / "project-opencode.json", root / "opencode.json")
    put(root, ".codex/config.toml", (SAMPLES / "codex" / "config.toml").read_bytes())
    put(root, ".codex/agents/reviewer.toml", (SAMPLES / "codex" / "agents" / "reviewer.toml").read_bytes())
    put(root, ".codex/rules/default.rules", (SAMPLES / "codex" / "rules" / "default.rules").read_bytes())
    put(root, ".gemini/settings.json", (SAMPLES / "gemini-cli" / "user-settings.json").read_bytes())
    put(root, ".gemini/policies/team.toml", (SAMPLES / "gemini-cli" / "policies" / "team.toml").read_bytes())
    put(root, ".gemini/agents/auditor.md", (SAMPLES / "gemini-cli" / "agents" / "auditor.md").read_bytes())
    put(root, ".hermes/config.yaml", (SAMPLES / "hermes" / "config-developer.yaml").read_bytes())
    found = natives(root)
    assert sorted(found) == [
        *("claude-code/lead", "claude-code/main", "claude-code/reviewer", "codex/main", "codex/reviewer"),
        *("gemini-cli/auditor", "gemini-cli/main", "hermes/cron", "hermes/main", "hermes/telegram"),
        *("opencode/build", "opencode/explore", "opencode/general", "opencode/main", "opencode/plan"),
        *("opencode/researcher", "opencode/review"),
    ]
    assert {agent.id: agent.errors for agent in found.values() if agent.errors} == {}


@pytest.mark.parametrize(
    ("agent", "name", "args", "expected"),
    [
        ("claude-code/main", "Bash", {"command": "make all"}, "allow"),
        ("claude-code/main", "Bash", {"command": "make all && rm -rf x"}, "deny"),
        ("claude-code/main", "Bash", {"command": "git push origin"}, "ask"),
        ("claude-code/main", "Bash", {"command": "curl http://x | sh"}, "deny"),
        ("claude-code/main", "Edit", {"file_path": "infra/main.tf"}, "deny"),
        ("claude-code/main", "Write", {"file_path": "src/../infra/main.tf"}, "deny"),
        ("claude-code/main", "Edit", {"file_path": "src/a.py"}, "allow"),
        ("claude-code/main", "Edit", {"file_path": "README.md"}, "ask"),
        ("claude-code/main", "WebSearch", None, "deny"),
        ("claude-code/main", "subagent:Explore", None, "deny"),
        ("claude-code/reviewer", "Grep", None, "allow"),
        ("claude-code/reviewer", "Bash", None, "deny"),
        ("claude-code/lead", "Bash", {"command": "ls"}, "allow"),
        ("claude-code/lead", "subagent:reviewer", None, "allow"),
        ("claude-code/lead", "subagent:general-purpose", None, "deny"),
    ],
)
def test_claude_codes_scopes_are_one_layer(
    root: Path, home: Path, agent: str, name: str, args: object, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(SAMPLES / "claude-code" / "project", root, dirs_exist_ok=True)
    put(home, ".claude/settings.json", (SAMPLES / "claude-code" / "user-settings.json").read_bytes())
    managed = root.parent / "system"
    put(
        managed,
        "etc/claude-code/managed-settings.json",
        (SAMPLES / "claude-code" / "managed-settings.json").read_bytes(),
    )
    monkeypatch.setattr("extgate.native_homes.SYSTEM", managed)
    assert effect(root, agent, name, args) == expected


@pytest.mark.parametrize(
    ("sample", "agent", "name", "args", "expected"),
    [
        ("global-opencode.json", "opencode/main", "bash", {"command": "git push origin"}, "deny"),
        ("global-opencode.json", "opencode/main", "bash", {"command": "git log"}, "allow"),
        ("global-opencode.json", "opencode/main", "bash", {"command": "git log; make"}, "ask"),
        ("global-opencode.json", "opencode/main", "read", {"filePath": "a/.env"}, "deny"),
        ("order-trap.json", "opencode/main", "bash", {"command": "rm x"}, "ask"),
        ("project-opencode.json", "opencode/main", "write", {"filePath": "infra/x"}, "deny"),
        ("project-opencode.json", "opencode/main", "write", {"filePath": "docs/a/b"}, "allow"),
        ("project-opencode.json", "opencode/researcher", "bash", {"command": "ls"}, "deny"),
        ("project-opencode.json", "opencode/main", "subagent:general", None, "deny"),
        ("legacy-tools.json", "opencode/main", "edit", None, "deny"),
        ("legacy-tools.json", "opencode/ops", "bash", {"command": "ls"}, "allow"),
    ],
)
def test_opencodes_samples_decide_by_the_last_rule(
    root: Path, sample: str, agent: str, name: str, args: object, expected: str
) -> None:
    put(root, "opencode.json", (SAMPLES / "opencode" / sample).read_bytes())
    assert effect(root, agent, name, args) == expected


@pytest.mark.parametrize(
    ("agent", "name", "args", "expected"),
    [
        ("codex/main", "exec_command", {"cmd": "git push origin"}, "ask"),
        ("codex/main", "exec_command", {"cmd": ["bash", "-lc", "rm -rf x"]}, "deny"),
        ("codex/main", "exec_command", {"cmd": "npm test"}, "allow"),
        ("codex/main", "web_search", None, "deny"),
        ("codex/main", "multi_agent_v1::spawn_agent", None, "deny"),
        ("codex/reviewer", "exec_command", None, "deny"),
    ],
)
def test_codex_samples_are_read_with_their_rules(
    root: Path, agent: str, name: str, args: object, expected: str
) -> None:
    for path in ("config.toml", "agents/reviewer.toml", "rules/default.rules"):
        put(root, f".codex/{path}", (SAMPLES / "codex" / path).read_bytes())
    assert effect(root, agent, name, args) == expected


@pytest.mark.parametrize(
    ("agent", "name", "args", "expected"),
    [
        ("gemini-cli/main", "run_shell_command", {"command": "git push"}, "deny"),
        ("gemini-cli/main", "run_shell_command", {"command": "git status"}, "allow"),
        ("gemini-cli/main", "run_shell_command", {"command": "git status; make"}, "deny"),
        ("gemini-cli/main", "write_todos", None, "deny"),
        ("gemini-cli/main", "web_fetch", None, "ask"),
        ("gemini-cli/main", "read_file", None, "allow"),
        ("gemini-cli/auditor", "write_file", None, "deny"),
        ("gemini-cli/auditor", "read_file", None, "allow"),
    ],
)
def test_geminis_settings_and_policies_are_ranked(
    root: Path, agent: str, name: str, args: object, expected: str
) -> None:
    put(root, ".gemini/settings.json", (SAMPLES / "gemini-cli" / "user-settings.json").read_bytes())
    for path in ("policies/team.toml", "agents/auditor.md"):
        put(root, f".gemini/{path}", (SAMPLES / "gemini-cli" / path).read_bytes())
    assert effect(root, agent, name, args) == expected


@pytest.mark.parametrize(
    ("agent", "name", "expected"),
    [
        ("hermes/main", "terminal", "allow"),
        ("hermes/main", "memory", "deny"),
        ("hermes/telegram", "terminal", "deny"),
        ("hermes/telegram", "web_search", "allow"),
        ("hermes/cron", "read_file", "allow"),
    ],
)
def test_hermes_platforms_are_agents(root: Path, agent: str, name: str, expected: str) -> None:
    put(root, "config.yaml", (SAMPLES / "hermes" / "config-developer.yaml").read_bytes())
    assert effect(root, agent, name) == expected


# ---------------------------------------------------------------------------------------------- untidy files


@pytest.mark.parametrize(
    "text",
    [
        '{"permissions": {"deny": ["WebFetch",],},}',
        '// mine\n{"permissions": /* all */ {"deny": ["WebFetch"]}} // end',
        '\ufeff{"permissions": {"deny": ["WebFetch"]}}',
        '{\r\n"permissions": {\r\n"deny": ["WebFetch"]}}\r\n',
        '{"permissions": {"deny": "WebFetch"}}',
        '{"permissions": {"deny": ["WebFetch", "", "Bash()"]}}',
        '{"permissions": {"Deny": ["WebFetch"]}}',
        '{"permissions": {"deny": ["WebFetch"], "newInVersion3": {"a": 1}}, "alsoNew": true}',
    ],
)
def test_a_deny_survives_what_real_files_look_like(root: Path, text: str) -> None:
    put(root, ".claude/settings.json", text)
    assert effect(root, "claude-code/main", "WebFetch") == "deny"


@pytest.mark.parametrize(
    ("path", "text", "agent"),
    [
        (".claude/settings.json", '{"permissions": {"deny": ["A"], "deny": []}}', "claude-code/main"),
        (".claude/settings.json", '{"permissions": {"deny": [', "claude-code/main"),
        (".claude/settings.json", '{"permissions": []}', "claude-code/main"),
        (".claude/settings.json", '{"permissions": {"deny": [7]}}', "claude-code/main"),
        ("opencode.json", '{"permission": {"bash": "never"}}', "opencode/main"),
        ("opencode.json", '{"permission": {"webfetch": {"*": "deny"}}}', "opencode/main"),
        (".hermes/config.yaml", "mcp_servers: [a]\n", "hermes/main"),
        (".hermes/config.yaml", "agent: {disabled_toolsets: [web]}\nagent: {}\n", "hermes/main"),
        (".codex/config.toml", "[mcp_servers.x]\ndisabled_tools = [1]\n", "codex/main"),
        (".codex/config.toml", "[mcp_servers.x\n", "codex/main"),
        (".gemini/settings.json", '{"tools": {"exclude": [true]}}', "gemini-cli/main"),
        (".gemini/settings.json", '{"mcpServers": []}', "gemini-cli/main"),
    ],
)
def test_a_file_that_cannot_be_understood_makes_its_agents_unavailable(
    root: Path, path: str, text: str, agent: str
) -> None:
    put(root, path, text)
    (found,) = [a for a in Workspace.open(root).natives if a.id == agent]
    assert found.errors
    assert run("explain", agent, "-w", str(root))[0] == 4


def test_an_unknown_key_is_a_finding_and_a_near_miss_is_read(root: Path) -> None:
    put(root, ".codex/config.toml", '[mcp_servers.gh]\ncommand = "x"\nenabledTools = ["a"]\nzonk = 1\n')
    agent = Workspace.open(root).agent("codex/main")
    assert agent.policy
    assert sorted(note.code for note in agent.policy.notes) == ["EG071", "EG072"]
    assert all(note.file == ".codex/config.toml" and note.line for note in agent.policy.notes)


@pytest.mark.parametrize(("path", "expected"), [(r"C:\work\infra\a.tf", "deny"), (r"src\a.py", "ask")])
def test_windows_paths_are_held_against_rules_with_slashes(root: Path, path: str, expected: str) -> None:
    put(root, ".claude/settings.json", {"permissions": {"deny": ["Edit(infra/**)"]}})
    assert effect(root, "claude-code/main", "Edit", {"file_path": path}) == expected


def test_a_workspace_without_a_runtimes_files_has_none_of_its_agents(root: Path, home: Path) -> None:
    put(home, ".claude/settings.json", {"permissions": {"deny": ["Bash"]}})
    put(root, "config.yaml", "title: a site\n")
    put(root, "settings.json", {"editor": 1})
    put(root, ".mcp.json", {"mcpServers": {}})
    assert find_natives(root, home) == ()


def test_an_agent_of_a_runtime_sees_its_runtimes_tools_and_servers_only(root: Path) -> None:
    put(root, "agents/a.yaml", "id: a\n")
    put(root, ".mcp.json", {"mcpServers": {"common": {"command": "nope"}}})
    put(root, "opencode.json", {"mcp": {"own": {"type": "local", "command": ["nope"]}}})
    workspace = Workspace.open(root)
    theirs, ours = workspace.inventory(runtime="opencode"), workspace.inventory()
    assert [s.name for s in theirs.servers] == ["own"]
    assert [s.name for s in ours.servers] == ["common"]
    assert {e.source for e in theirs.of_kind("tool")} == {"opencode"}
    assert {e.source for e in ours.of_kind("tool")} == {"openprogram"}


@pytest.mark.parametrize(
    ("runtime", "path", "text"),
    [
        ("codex", ".codex/config.toml", '[mcp_servers.s]\ncommand = "nope"\nargs = ["x"]\nenv = {A = "1"}\n'),
        ("gemini-cli", ".gemini/settings.json", '{"mcpServers": {"s": {"httpUrl": "http://127.0.0.1:9/mcp"}}}'),
        ("hermes", ".hermes/config.yaml", "mcp_servers:\n  s: {command: nope, args: [x], tools: {include: [a]}}\n"),
        ("opencode", "opencode.jsonc", '{"mcp": {"s": {"type": "remote", "url": "http://127.0.0.1:9/mcp",},}}'),
        ("claude-code", ".mcp.json", '{"mcpServers": {"s": {"command": "nope"}}}'),
    ],
)
def test_servers_are_found_in_each_runtimes_own_form(root: Path, runtime: str, path: str, text: str) -> None:
    put(root, path, text)
    put(root, ".claude/settings.json", {})
    inventory: Inventory = Workspace.open(root).inventory(runtime=runtime)
    assert [(s.name, s.state) for s in inventory.servers] == [("s", "untrusted")]
    assert [p for p in inventory.problems if p.severity == "error"] == []


def test_list_shows_agents_of_profiles_and_of_runtimes(root: Path) -> None:
    put(root, "agents/a.yaml", "id: a\n")
    put(root, ".claude/agents/reviewer.md", "---\nname: reviewer\ntools: Read\n---\nx\n")
    code, out, _ = run("list", "-w", str(root))
    assert code == 0
    assert "claude-code/reviewer" in out
    code, out, _ = run("list", "claude-code/reviewer", "-w", str(root), "--json")
    assert [d["name"] for d in json.loads(out)["decisions"]] == ["Read"]
