"""`check` and `explain --as-run` on the leaks that runtimes really have, each with a configuration open to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.dialects.adapter import run
from tests.dialects.folders import put

STOCK = {
    "mcp": [
        {"server": "gh", "tools": [{"name": "danger_zone"}, {"name": "list"}], "resources": [{"uri": "repo://x"}]},
        {"server": "my srv.v1", "tools": [{"name": "danger"}]},
    ],
    "skills": [{"name": "secret", "declared_name": "secret"}, {"name": "secret-two", "declared_name": "secret-two"}],
}


def stock(root: Path, runtime: str, *subagents: str) -> str:
    """An inventory file with the runtime's own tools and a few more things."""
    _, out, _ = run("list", f"{runtime}/main", "--json", "-w", str(root))
    from extgate.discover.builtins import builtin_tools

    tools = [{"name": e.name, "source": runtime, "group": e.facts["group"]} for e in builtin_tools(runtime)]
    (root.parent / "stock.json").write_text(
        json.dumps(STOCK | {"tools": tools, "subagents": [{"name": name} for name in subagents]})
    )
    assert out
    return str(root.parent / "stock.json")


def findings(root: Path, runtime: str, *subagents: str) -> list[dict[str, Any]]:
    file = stock(root, runtime, *subagents)
    code, out, err = run("check", "--json", "-w", str(root), "--inventory", file)
    assert code in (0, 3), err
    return [f for f in json.loads(out)["findings"] if f["code"].startswith(("EG07", "EG08"))]


CONFIGURATIONS = [
    (
        "codex",
        ".codex/config.toml",
        '[mcp_servers.gh]\ncommand = "x"\ndisabled_tools = ["danger*"]\n',
        "EG074",
        "danger*",
    ),
    (
        "codex",
        ".codex/config.toml",
        '[mcp_servers.gh]\ncommand = "x"\ndisabled_tools = ["danger*"]\n',
        "EG070",
        "danger_zone",
    ),
    ("codex", ".codex/config.toml", "[tools]\nweb_search = false\n", "EG076", "web_search"),
    ("codex", ".codex/config.toml", "[hooks]\nPreToolUse = []\n", "EG085", "hooks"),
    ("gemini-cli", ".gemini/settings.json", '{"tools": {"exclude": ["run_*"]}}', "EG074", "run_*"),
    ("gemini-cli", ".gemini/settings.json", '{"tools": {"exclude": ["run_shell_command(touch)"]}}', "EG070", "touch"),
    (
        "gemini-cli",
        ".gemini/settings.json",
        '{"mcpServers": {"gh": {"excludeTools": ["danger*"]}}}',
        "EG070",
        "danger_zone",
    ),
    ("gemini-cli", ".gemini/settings.json", '{"skills": {"disabled": ["secret*"]}}', "EG070", "secret"),
    ("hermes", ".hermes/config.yaml", "mcp_servers: {gh: {tools: {exclude: ['danger*']}}}", "EG070", "danger_zone"),
    ("hermes", ".hermes/config.yaml", "skills: {disabled: ['secret*']}", "EG074", "secret*"),
    ("hermes", ".hermes/config.yaml", "agent: {disabled_toolsets: [Terminal]}", "EG073", "Terminal"),
    ("hermes", ".hermes/config.yaml", "agent: {disabled_toolsets: [terminal]}", "EG079", "execute_code"),
    ("hermes", ".hermes/config.yaml", "platform_toolsets: {cli: [web]}", "EG078", "MCP"),
    ("hermes", ".hermes/config.yaml", "agent: {disabled_toolsets: [memory]}", "EG084", "most alike"),
    (
        "claude-code",
        ".claude/settings.json",
        '{"permissions": {"deny": ["mcp__my srv.v1"]}}',
        "EG070",
        "my srv.v1/danger",
    ),
    ("claude-code", ".claude/settings.json", '{"permissions": {"deny": ["mcp__gh"]}}', "EG077", "repo://x"),
    ("claude-code", ".claude/settings.json", '{"permissions": {"deny": ["Skill(secret)"]}}', "EG080", "Skill(secret)"),
    ("claude-code", ".claude/settings.json", '{"permissions": {"deny": ["Skill(secret)"]}}', "EG081", "secret"),
    ("claude-code", ".claude/settings.json", '{"permissions": {"deny": ["Skill(secret*)"]}}', "EG070", "secret-two"),
    ("claude-code", ".claude/settings.json", '{"permissions": {"deny": ["Write(a/**)"]}}', "EG070", "Write(a/**)"),
    ("opencode", "opencode.json", '{"permission": {"mcp__gh__*": "deny"}}', "EG070", "danger_zone"),
    (
        "opencode",
        "opencode.json",
        '{"permission": {"bash": "deny"}, "agent": {"x": {"permission": {"*": "allow"}}}}',
        "EG083",
        "bash",
    ),
]


@pytest.mark.parametrize(("runtime", "path", "text", "code", "word"), CONFIGURATIONS)
def test_a_leak_that_a_configuration_is_open_to_is_a_finding(
    root: Path,
    runtime: str,
    path: str,
    text: str,
    code: str,
    word: str,
) -> None:
    put(root, path, text)
    found = [f for f in findings(root, runtime) if f["code"] == code]
    assert any(word in f["message"] for f in found), findings(root, runtime)
    assert all(f["fix"] and f["file"] for f in found)


@pytest.mark.parametrize(
    ("runtime", "path", "text", "child"),
    [
        ("claude-code", ".claude/agents/a.md", "---\nname: a\ndisallowedTools: Bash\n---\n", "general-purpose"),
        ("claude-code", ".claude/agents/a.md", "---\nname: a\ntools: Read, Agent\n---\n", "general-purpose"),
        ("opencode", ".opencode/agent/a.md", "---\nmode: primary\npermission: {bash: deny}\n---\n", "general"),
    ],
)
def test_an_agent_that_can_start_a_wider_one_is_a_finding(
    root: Path,
    runtime: str,
    path: str,
    text: str,
    child: str,
) -> None:
    put(root, path, text)
    found = [f for f in findings(root, runtime, child) if f["code"] == "EG075"]
    assert [f["file"] for f in found if f"`{child}`" in f["message"]] == [path]


@pytest.mark.parametrize(
    ("runtime", "path", "text"),
    [
        ("codex", ".codex/config.toml", '[mcp_servers.gh]\ncommand = "x"\ndisabled_tools = ["danger_zone"]\n'),
        ("gemini-cli", ".gemini/settings.json", '{"tools": {"exclude": ["run_shell_command", "mcp_gh_*"]}}'),
        ("claude-code", ".claude/settings.json", '{"permissions": {"deny": ["Bash", "mcp__gh__danger_zone"]}}'),
        ("opencode", "opencode.json", '{"permission": {"bash": "deny", "gh_danger_zone": "deny"}}'),
    ],
)
def test_a_deny_that_holds_is_no_finding(root: Path, runtime: str, path: str, text: str) -> None:
    put(root, path, text)
    assert [f for f in findings(root, runtime) if f["severity"] != "info"] == []


def test_explain_as_run_shows_what_the_version_lets_through(root: Path) -> None:
    put(root, ".codex/config.toml", '[mcp_servers.gh]\ncommand = "x"\ndisabled_tools = ["danger*"]\n')
    file = stock(root, "codex")
    name = "mcp_tool:gh/danger_zone"
    code, out, _ = run("explain", "codex/main", "--as-run", "--json", "-w", str(root), "--inventory", file)
    assert code == 0
    said = json.loads(out)
    assert said["as_run"]["version"] == "0.171.0"
    assert said["as_run"]["differs"] == [name]
    assert {d["id"]: (d["effect"], d["visible"]) for d in said["decisions"]}[name] == ("ask", True)
    assert run("explain", "codex/main", name, "-w", str(root), "--inventory", file)[0] == 2
    code, out, _ = run("explain", "codex/main", name, "--as-run", "-w", str(root), "--inventory", file)
    assert code == 0
    assert f"{name}: deny as documented, ask as run, in view" in out


def test_explain_as_run_keeps_a_refused_skill_in_view(root: Path) -> None:
    put(root, ".claude/settings.json", {"permissions": {"deny": ["Skill(secret)"]}})
    file = stock(root, "claude-code")
    _, out, _ = run("explain", "claude-code/main", "--as-run", "--json", "-w", str(root), "--inventory", file)
    seen = {d["id"]: (d["effect"], d["visible"], d["callable"]) for d in json.loads(out)["decisions"]}
    assert seen["skill:secret"] == ("deny", True, False)


def test_explain_as_run_needs_a_runtime(root: Path) -> None:
    put(root, "agents/a.yaml", "id: a\n")
    code, _, err = run("explain", "a", "--as-run", "-w", str(root))
    assert code == 1
    assert "no runtime whose versions are known" in err
