"""`extgate check` over what was applied: each way in which it no longer stands is told, with its place and the fix."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from click.testing import CliRunner

from extgate.applied.drift.table import drift
from extgate.applied.trees import edit
from extgate.cli.apply import NAMES
from extgate.cli.main import cli
from extgate.homes import find_homes
from extgate.shapes import finding_dict
from tests.unit.applied.test_apply import MINE, PROFILE, SERVERS, apply, mine, place

__all__ = ["place"]


def check(place: Path) -> list[dict[str, Any]]:
    """Findings about what was applied."""
    return [finding_dict(finding) for finding in drift(find_homes(place / "ws"))]


def codes(place: Path) -> list[str]:
    return sorted({row["code"] for row in check(place)})


def applied(place: Path, runtime: str) -> Path:
    """The runtime's file after `apply`."""
    path = mine(place, runtime)
    assert apply(place, runtime).exit_code == 0
    assert check(place) == []
    return path


def change(path: Path, how: Callable[[Any], None]) -> None:
    """Edits a file as somebody would by hand."""
    form = {".toml": "toml", ".yaml": "yaml"}.get(path.suffix, "json")
    if form == "toml":
        found = tomlkit.parse(path.read_text())
        how(found)
        path.write_text(tomlkit.dumps(found))
        return
    editor = edit(path.read_text(), form, str(path))  # type: ignore[arg-type]
    value = editor.get(())
    how(value)
    path.write_text(json.dumps(value))  # JSON is YAML


HOOKS = {
    "claude-code": ("hooks", "PreToolUse"),
    "codex": ("hooks", "PreToolUse"),
    "gemini": ("hooks", "BeforeTool"),
    "hermes": ("hooks", "pre_tool_call"),
    "opencode": ("plugin",),
}
GATEWAY_AT = {
    "claude-code": (),
    "codex": ("mcp_servers",),
    "gemini": ("mcpServers",),
    "hermes": ("mcp_servers",),
    "opencode": ("mcp",),
}


def at(value: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        value = value[key]
    return value


@pytest.mark.parametrize("runtime", NAMES)
def test_a_hook_that_somebody_took_out_is_told_until_it_is_applied_again(place: Path, runtime: str) -> None:
    path, keys = applied(place, runtime), HOOKS[runtime]
    change(path, lambda value: at(value, keys[:-1]).pop(keys[-1]))
    (row,) = check(place)
    assert (row["code"], row["severity"], row["file"]) == ("EG090", "error", str(path))
    assert f"`{'.'.join(keys)}`" in row["message"]
    assert f"extgate apply {runtime} a --project" in row["fix"]
    assert apply(place, runtime).exit_code == 0
    assert check(place) == []


@pytest.mark.parametrize("runtime", NAMES)
def test_an_edit_of_the_users_own_is_no_drift(place: Path, runtime: str) -> None:
    path = applied(place, runtime)

    def more(value: Any) -> None:
        if runtime == "opencode":
            value["permission"] = {"mine_*": "deny", **value["permission"]}
        elif runtime != "codex":
            at(value, HOOKS[runtime]).insert(0, {"matcher": "x", "hooks": [], "command": "y"})
        value["model"] = {"default": "other"} if runtime == "hermes" else "other"

    change(path, more)
    assert check(place) == []


@pytest.mark.parametrize("runtime", [name for name in NAMES if name != "claude-code"])
def test_a_gateway_that_somebody_took_out_or_changed_is_told(place: Path, runtime: str) -> None:
    path = applied(place, runtime)
    change(path, lambda value: at(value, GATEWAY_AT[runtime])["extgate"].update(command=["other"]))
    (changed,) = check(place)
    assert (changed["code"], "extgate" in changed["message"]) == ("EG090", True)
    assert changed["line"] or runtime == "hermes"
    change(path, lambda value: at(value, GATEWAY_AT[runtime]).pop("extgate"))
    assert [row["message"].rpartition(": ")[2] for row in check(place)] == ["it is gone"]


def test_claude_codes_gateway_entry_is_looked_at_in_its_own_file(place: Path) -> None:
    applied(place, "claude-code")
    path = place / "project" / ".mcp.json"
    path.unlink()
    (row,) = check(place)
    assert (row["code"], row["file"]) == ("EG090", str(path))
    assert "gone" in row["message"]


@pytest.mark.parametrize("runtime", NAMES)
def test_a_closed_server_that_is_let_in_again_is_told(place: Path, runtime: str) -> None:
    path = applied(place, runtime)

    def open_again(value: Any) -> None:
        if runtime == "claude-code":
            value["deniedMcpServers"] = []
        elif runtime == "gemini":
            value["mcp"]["excluded"] = []
        else:
            at(value, GATEWAY_AT[runtime])["closed"]["enabled"] = True

    if runtime == "claude-code":  # the server must be in its own list first
        (place / "home" / ".claude.json").write_text(json.dumps({"mcpServers": {"closed": {"command": "x"}}}))
        apply(place, runtime)
    change(path, open_again)
    assert codes(place) == ["EG090"]


@pytest.mark.parametrize("runtime", NAMES)
def test_a_direct_server_that_is_added_beside_the_gateway_is_told(place: Path, runtime: str) -> None:
    path = applied(place, runtime)
    entry = {"type": "local", "command": ["x"]} if runtime == "opencode" else {"command": "/bin/false"}
    if runtime == "claude-code":
        path = place / "home" / ".claude.json"
        path.write_text(json.dumps({"projects": {str(place / "project"): {"mcpServers": {"open": entry}}}}))
    else:
        change(path, lambda value: at(value, GATEWAY_AT[runtime]).update(open=entry))
    (row,) = check(place)
    assert (row["code"], row["severity"], row["file"]) == ("EG092", "error", str(path))
    assert "`open`" in row["message"]
    assert "which has it too" in row["message"]
    assert apply(place, runtime).exit_code == 0
    assert check(place) == []


@pytest.mark.parametrize("runtime", NAMES)
def test_a_profile_that_changed_since_makes_the_runtimes_lists_stale(place: Path, runtime: str) -> None:
    applied(place, runtime)
    profile = place / "ws" / "agents" / "a.yaml"
    profile.write_text(PROFILE.replace("bash, web_fetch", "bash, web_fetch, web_search, spawn_program, task, read"))
    more = [] if runtime == "hermes" else check(place)  # Hermes' lists know whole toolsets only
    assert all((row["code"], row["severity"]) == ("EG093", "warning") for row in more)
    profile.write_text("id: a\n")
    rows = check(place)
    assert rows
    assert {row["code"] for row in rows} == {"EG093"}
    assert apply(place, runtime).exit_code == 0
    assert check(place) == []


def test_a_hook_that_is_put_before_codexs_is_told_and_one_behind_it_is_not(place: Path) -> None:
    path = applied(place, "codex")
    text = path.read_text()
    behind = f'{text}\n[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "x"\n'
    path.write_text(behind)
    assert check(place) == []
    head, mark, tail = text.partition("[[hooks.PreToolUse]]")
    assert mark
    other = '[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "x"\n\n'
    path.write_text(head + other + mark + tail)
    (row,) = check(place)
    assert (row["code"], row["severity"]) == ("EG091", "error")
    assert "Codex skips it" in row["message"]
    assert row["line"]
    assert apply(place, "codex").exit_code == 0
    assert check(place) == []


@pytest.mark.parametrize(
    ("runtime", "file", "text", "key"),
    [
        ("claude-code", "project/.claude/settings.json", '{"disableAllHooks": true}', "disableAllHooks"),
        ("claude-code", "home/.claude/settings.json", '{\n"disableAllHooks": true}', "disableAllHooks"),
        ("codex", "project/.codex/config.toml", "[features]\nhooks = false\n", "features.hooks"),
        ("gemini", "project/.gemini/settings.json", '{"hooksConfig": {"enabled": false}}', "hooksConfig.enabled"),
        ("gemini", "project/.gemini/settings.json", '{"hooksConfig": {"disabled": ["extgate"]}}', "disabled"),
    ],
)
def test_a_switch_in_any_file_that_leaves_hooks_out_is_told(
    place: Path, runtime: str, file: str, text: str, key: str
) -> None:
    applied(place, runtime)
    path = place / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    (row,) = check(place)
    assert (row["code"], row["file"]) == ("EG091", str(path))
    assert key in row["message"]
    assert row["line"] == (2 if "\n" in text else 1)


def test_a_hook_that_codexs_user_switched_off_is_told(place: Path) -> None:
    path = applied(place, "codex")
    change(path, lambda value: next(iter(value["hooks"]["state"].values())).update(enabled=False))
    assert codes(place) == ["EG091"]


def test_a_plugin_that_was_replaced_is_told(place: Path) -> None:
    applied(place, "opencode")
    (plugin,) = (place / "home").rglob("plugin/index.js")
    plugin.write_text("export default {}")
    (row,) = check(place)
    assert (row["code"], row["file"]) == ("EG090", str(plugin))


def test_a_permission_behind_opencodes_own_denies_is_told(place: Path) -> None:
    path = applied(place, "opencode")
    change(path, lambda value: value["permission"].update({"b*": "allow"}))
    assert codes(place) == ["EG090"]


def test_a_new_skill_that_the_agent_may_see_is_not_yet_found_by_its_runtime(place: Path) -> None:
    applied(place, "claude-code")
    (place / "ws" / "skills" / "new").mkdir()
    (place / "ws" / "skills" / "new" / "SKILL.md").write_text("---\nname: new\ndescription: d\n---\nx\n")
    (row,) = check(place)
    assert row["code"] == "EG093"
    assert "skills" in row["message"]


def test_what_cannot_be_judged_is_told(place: Path) -> None:
    path = applied(place, "gemini")
    text = path.read_text()
    path.write_text("{")
    assert codes(place) == ["EG090"]
    path.write_text(text)
    (place / "ws" / "agents" / "a.yaml").rename(place / "ws" / "agents" / "b.yaml")
    (place / "ws" / "agents" / "b.yaml").write_text("id: b\n")
    (row,) = check(place)
    assert (row["code"], "no agent `a`" in row["message"], "--undo" in row["fix"]) == ("EG094", True, True)
    (account,) = (place / "home").rglob("gemini-*/account.json")
    account.write_text("{")
    assert codes(place) == ["EG094"]


def test_another_workspaces_accounts_and_taken_back_ones_say_nothing(place: Path) -> None:
    path = applied(place, "gemini")
    path.write_text("{}")
    (place / "other" / "agents").mkdir(parents=True)
    assert drift(find_homes(place / "other")) == ()
    assert codes(place) == ["EG090"]
    path.write_text(MINE["gemini"][1])
    assert apply(place, "gemini", "--undo").exit_code == 0
    assert check(place) == []


def test_the_command_tells_it_and_ends_as_errors_do(place: Path) -> None:
    stock = place / "stock.json"
    stock.write_text(json.dumps({"tools": [], "skills": [], "mcp": [{"server": name} for name in SERVERS]}))
    (place / "ws" / "agents" / "a.yaml").write_text("id: a\n")
    words = ["-w", str(place / "ws"), "check", "--json", "--inventory", str(stock)]
    path = applied(place, "gemini")
    assert CliRunner().invoke(cli, words, catch_exceptions=False).exit_code == 0
    path.write_text("{}")
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert done.exit_code == 3
    assert {row["code"] for row in json.loads(done.stdout)["findings"]} >= {"EG090"}
