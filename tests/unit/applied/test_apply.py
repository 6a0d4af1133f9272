"""`extgate apply`: what it writes for each runtime, that a second run changes nothing, and that it all comes back."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from extgate.applied.codex import trust
from extgate.applied.jsonc_text import JsoncText
from extgate.applied.runtimes import PLANS
from extgate.cli.apply import NAMES
from extgate.cli.main import cli
from extgate.enforce.hooks.registry import HOOKS

PROFILE = """id: a
tools: {disabled: [bash, web_fetch]}
skills: {disabled: [secret]}
mcp: {disabled: [closed]}
"""
SERVERS = {"closed": {"command": "/bin/false"}, "open": {"command": "/bin/false"}}
MINE = {
    "claude-code": (".claude/settings.local.json", '{\n  // mine\n  "permissions": {"deny": ["X"]},\n}\n'),
    "codex": (".codex/config.toml", '# mine\nmodel = "m"\n\n[mcp_servers.closed]\ncommand = "/bin/false"\n'),
    "gemini": (".gemini/settings.json", '{"mcpServers": {"closed": {"command": "/bin/false"}}}\n'),
    "hermes": (".hermes/config.yaml", "# mine\nmodel: {default: m}\nmcp_servers:\n  closed: {command: /bin/false}\n"),
    "opencode": ("opencode.json", '{"permission": "allow", "mcp": {"closed": {"type": "local", "command": ["x"]}}}'),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace, a project and a home."""
    for name in ("CODEX_HOME", "HERMES_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for folder in ("home", "project", "ws/agents"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ws" / "agents" / "a.yaml").write_text(PROFILE)
    (tmp_path / "ws" / ".mcp.json").write_text(json.dumps({"mcpServers": SERVERS}))
    for name in ("secret", "open"):
        folder = tmp_path / "ws" / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n---\ntext\n")
    return tmp_path


def apply(place: Path, runtime: str, *words: str) -> Result:
    where = ["-w", str(place / "ws"), "--project", str(place / "project")]
    return CliRunner().invoke(cli, ["apply", runtime, "a", *where, *words], catch_exceptions=False)


def mine(place: Path, runtime: str) -> Path:
    """The runtime's file with something of the user's in it."""
    name, text = MINE[runtime]
    path = place / ("project" if runtime in ("claude-code", "opencode") else "home") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def read(path: Path) -> Any:
    text = path.read_text()
    if path.suffix == ".toml":
        return tomllib.loads(text)
    return yaml.safe_load(text) if path.suffix == ".yaml" else JsoncText(text, "f").get(())


def files(place: Path) -> dict[str, str]:
    """Every file that is there, with its digest; extgate's own state left out."""
    found = [path for root in ("project", "home", "ws") for path in (place / root).rglob("*") if path.is_file()]
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in found
        if ".local/state" not in str(path) and ".cache" not in str(path)
    }


def hook_command(runtime: str, found: Any) -> str:
    if runtime in ("claude-code", "codex"):
        return str(found["hooks"]["PreToolUse"][-1]["hooks"][0]["command"])
    if runtime == "gemini":
        return str(found["hooks"]["BeforeTool"][-1]["hooks"][0]["command"])
    if runtime == "hermes":
        return str(found["hooks"]["pre_tool_call"][-1]["command"])
    return " ".join(found["plugin"][-1][1]["command"])


def denies(runtime: str, found: Any) -> set[str]:
    """Tools that the runtime's own lists take away."""
    if runtime == "claude-code":
        return set(found["permissions"]["deny"])
    if runtime == "codex":
        return {name for name, is_on in found["features"].items() if is_on is False}
    if runtime == "gemini":
        return set(found["tools"]["exclude"])
    if runtime == "hermes":
        return set(found["agent"]["disabled_toolsets"])
    return {name for name, effect in found["permission"].items() if effect == "deny"}


WANTED = {
    "claude-code": {"Bash", "Monitor", "WebFetch", "Skill(secret)"},
    "codex": {"shell_tool"},
    "gemini": {"run_shell_command", "web_fetch"},
    "hermes": {"terminal", "code_execution"},
    "opencode": {"bash", "webfetch"},
}


@pytest.mark.parametrize("runtime", NAMES)
def test_it_is_written_once_and_comes_back_to_the_byte(place: Path, runtime: str) -> None:
    path = mine(place, runtime)
    path.chmod(0o600)
    before = files(place)
    dry = apply(place, runtime, "--dry-run")
    assert "+++" in dry.stdout
    assert files(place) == before, "a dry run writes nothing"
    done = apply(place, runtime)
    assert done.exit_code == 0, done.output
    found = read(path)
    assert denies(runtime, found) >= WANTED[runtime]
    command = hook_command(runtime, found)
    assert f"hook_client.py {runtime} --agent a" in command
    assert "--gateway extgate" in command
    assert "mine" not in path.read_text() or "// mine" in path.read_text() or "# mine" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    after = files(place)
    assert apply(place, runtime).exit_code == 0
    assert files(place) == after, "a second run changes nothing"
    assert apply(place, runtime, "--undo").exit_code == 0
    assert files(place) == before
    assert apply(place, runtime, "--undo").exit_code == 1


@pytest.mark.parametrize("runtime", NAMES)
def test_a_changed_profile_takes_out_what_no_longer_belongs(place: Path, runtime: str) -> None:
    path = mine(place, runtime)
    apply(place, runtime)
    (place / "ws" / "agents" / "a.yaml").write_text("id: a\ntools: {disabled: [read_file]}\n")
    apply(place, runtime)
    text = path.read_text()
    assert not denies_nothing_of(WANTED[runtime], runtime, read(path))
    assert "secret" not in text
    (place / "ws" / "agents" / "a.yaml").write_text(PROFILE)
    apply(place, runtime)
    apply(place, runtime, "--undo")
    assert path.read_text() == MINE[runtime][1]


def denies_nothing_of(names: set[str], runtime: str, found: Any) -> set[str]:
    try:
        return denies(runtime, found) & names
    except KeyError:
        return set()


@pytest.mark.parametrize("runtime", NAMES)
def test_what_was_edited_since_stays_and_the_rest_comes_back(place: Path, runtime: str) -> None:
    path = mine(place, runtime)
    apply(place, runtime)
    theirs = {".toml": "\n[theirs]\na = 1\n", ".yaml": "theirs: {a: 1}\n"}.get(path.suffix)
    if theirs:
        path.write_text(path.read_text() + theirs)
    else:
        path.write_text(path.read_text().rstrip().removesuffix("}").rstrip().rstrip(",") + ',\n"theirs": {"a": 1}}\n')
    done = apply(place, runtime, "--undo")
    assert done.exit_code == 0
    found = read(path)
    assert found.pop("theirs") == {"a": 1}
    path.write_text(MINE[runtime][1])
    assert found == read(path)


@pytest.mark.parametrize("runtime", NAMES)
def test_a_file_that_was_not_there_is_gone_again(place: Path, runtime: str) -> None:
    before = files(place)
    assert apply(place, runtime).exit_code == 0
    assert files(place) != before
    apply(place, runtime, "--undo")
    assert files(place) == before


@pytest.mark.parametrize("runtime", ["claude-code", "codex", "gemini", "opencode"])
def test_a_file_that_cannot_be_read_is_left_alone(place: Path, runtime: str) -> None:
    path = mine(place, runtime)
    path.write_text("{ this is nothing")
    before = files(place)
    done = apply(place, runtime)
    assert done.exit_code == 1
    assert path.name in done.output
    assert files(place) == before


def test_a_link_to_a_file_is_kept(place: Path) -> None:
    path = mine(place, "claude-code")
    real = place / "dotfiles.json"
    path.rename(real)
    path.symlink_to(real)
    apply(place, "claude-code")
    assert path.is_symlink()
    assert "PreToolUse" in real.read_text()
    apply(place, "claude-code", "--undo")
    assert real.read_text() == MINE["claude-code"][1]


def test_the_copies_are_the_users_alone_and_checked(place: Path) -> None:
    mine(place, "claude-code")
    apply(place, "claude-code")
    (folder,) = [path for path in (place / "home/.local/state/extgate/applied").iterdir() if path.is_dir()]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (copy,) = [path for path in folder.iterdir() if path.name.endswith("settings.local.json")]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    copy.write_text("{}")
    done = apply(place, "claude-code", "--undo")
    assert done.exit_code == 1
    assert "was changed" in done.output


def test_the_gateway_stands_in_for_the_direct_server(place: Path) -> None:
    path = mine(place, "codex")
    apply(place, "codex")
    servers = read(path)["mcp_servers"]
    assert servers["closed"]["enabled"] is False
    assert servers["extgate"]["args"][-4:] == ["mcp", "a", "-w", str(place / "ws")]
    apply(place, "codex", "--no-gateway")
    assert "extgate" not in read(path)["mcp_servers"]


def test_where_claude_codes_file_is_the_workspaces_own_the_entry_goes_to_the_users(place: Path) -> None:
    words = ["-w", str(place / "ws"), "--project", str(place / "ws")]
    before = (place / "ws" / ".mcp.json").read_text()
    done = CliRunner().invoke(cli, ["apply", "claude-code", "a", *words], catch_exceptions=False)
    assert done.exit_code == 0
    assert (place / "ws" / ".mcp.json").read_text() == before
    state = json.loads((place / "home" / ".claude.json").read_text())
    assert "extgate" in state["projects"][os.path.realpath(place / "ws")]["mcpServers"]
    settings = json.loads((place / "ws" / ".claude" / "settings.local.json").read_text())
    assert {"serverName": "closed"} in settings["deniedMcpServers"]
    assert "closed" in settings["disabledMcpjsonServers"]


def test_codex_trusts_exactly_the_hook_that_is_written(place: Path) -> None:
    path = mine(place, "codex")
    path.write_text('[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "true"\n')
    apply(place, "codex")
    hooks = read(path)["hooks"]
    assert len(hooks["PreToolUse"]) == 2
    command = hooks["PreToolUse"][1]["hooks"][0]["command"]
    assert hooks["state"] == {f"{path}:pre_tool_use:1:0": {"trusted_hash": trust(command)}}


def test_what_is_allowed_is_not_approved_beforehand(place: Path) -> None:
    for runtime in NAMES:
        mine(place, runtime)
        apply(place, runtime)
    settings = read(place / "project/.claude/settings.local.json")
    assert "allow" not in settings["permissions"]
    assert read(place / "project/opencode.json")["permission"]["*"] == "allow", "as the user had it"
    assert "approval_policy" not in read(place / "home/.codex/config.toml")


def test_walls_and_what_stays_open_are_told(place: Path) -> None:
    told = json.loads(apply(place, "claude-code", "--json").stdout)
    assert {row["leak"] for row in told["walls"]} >= {"tool", "listed", "server", "skill-listed", "skill-read", "child"}
    assert told["open"] == []
    assert all(row["by"] or row["left"] for row in told["walls"])
    (place / "ws" / "agents" / "a.yaml").write_text("id: a\nskills: {disabled: [secret]}\n")
    told = json.loads(apply(place, "claude-code", "--json").stdout)
    assert "deny Bash" in next(row["left"] for row in told["walls"] if row["leak"] == "shell")


def test_runtimes_of_the_profiles_own_are_under_it_already(place: Path) -> None:
    before = files(place)
    done = apply(place, "openprogram")
    assert done.exit_code == 0
    assert "reads the profile itself" in done.output
    assert files(place) == before


def test_an_agent_without_a_policy_is_not_applied(place: Path) -> None:
    (place / "ws" / "agents" / "a.yaml").write_text("id: a\ntools: [")
    assert apply(place, "claude-code").exit_code == 1
    assert not (place / "project" / ".claude").exists()


def test_every_runtime_with_a_hook_can_be_applied() -> None:
    assert set(PLANS) == set(HOOKS) == set(NAMES)
