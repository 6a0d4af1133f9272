"""`extgate install`: what it writes into a client's own file, and that it can be taken back."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from extgate.cli.main import cli
from extgate.client_config import BACKUP, CLIENTS, apply, place, plan, undo
from extgate.errors import WorkspaceError

COMMAND = ["/bin/extgate", "mcp", "a", "-w", "/w é"]
PARSE: dict[str, Any] = {"json": json.loads, "yaml": yaml.safe_load, "toml": tomllib.loads}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.delenv("HERMES_HOME", raising=False)


def other(name: str) -> str:
    """A file of the client with another server and a setting in it."""
    client = CLIENTS[name]
    if client.form == "toml":
        old = '[mcp_servers.old]\ncommand = "old"\n\n[mcp_servers.old.env]\nA = "1"\n'
        return f'model = "x" # mine\n\n{old}\n[tui]\nb = 1\n'
    data = {"mine": {"é": [1, None]}, client.key: {"old": {"command": "old"}}}
    return json.dumps(data, ensure_ascii=False) if client.form == "json" else yaml.safe_dump(data)


@pytest.mark.parametrize("name", list(CLIENTS))
@pytest.mark.parametrize("replaces", [False, True])
def test_the_entry_is_added_and_all_else_stays_but_what_it_is_told_to_replace(
    tmp_path: Path, name: str, replaces: bool
) -> None:
    client = CLIENTS[name]
    path = place(client, tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(other(name))
    path.chmod(0o600)
    before = PARSE[client.form](path.read_text())
    edit = plan(client, tmp_path, COMMAND, replaces=replaces)
    apply(edit)
    after = PARSE[client.form](path.read_text())
    entry = after[client.key].pop("extgate")
    words = entry["command"] if client.is_one_list else [entry["command"], *entry["args"]]
    assert words == COMMAND
    if replaces:
        assert edit.gone == ("old",)
        before[client.key] = {}
    assert after == before
    assert path.stat().st_mode & 0o777 == 0o600
    again = plan(client, tmp_path, COMMAND, replaces=replaces)
    assert again.after == path.read_text(), "a second time changes nothing"


@pytest.mark.parametrize("name", list(CLIENTS))
def test_undo_gives_the_file_back_byte_for_byte_or_takes_away_the_one_it_made(tmp_path: Path, name: str) -> None:
    path = place(CLIENTS[name], tmp_path)
    apply(plan(CLIENTS[name], tmp_path, COMMAND, replaces=False))
    undo(CLIENTS[name], tmp_path)
    assert not path.exists()
    path.write_text(other(name))
    apply(plan(CLIENTS[name], tmp_path, COMMAND, replaces=True))
    undo(CLIENTS[name], tmp_path)
    assert path.read_text() == other(name)
    with pytest.raises(WorkspaceError):
        undo(CLIENTS[name], tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("claude-code", "// mine\n{}"),
        ("claude-code", "[]"),
        ("gemini", '{"mcpServers": []}'),
        ("hermes", "a: 1 # mine\n"),
        ("hermes", "a: [\n"),
        ("codex", 'mcp_servers = { old = { command = "x" } }\n'),
    ],
)
def test_a_file_that_an_edit_would_harm_is_left_alone(tmp_path: Path, name: str, text: str) -> None:
    path = place(CLIENTS[name], tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    with pytest.raises(WorkspaceError):
        plan(CLIENTS[name], tmp_path, COMMAND, replaces=False)
    assert path.read_text() == text


def test_the_command_shows_a_dry_run_installs_and_takes_back(tmp_path: Path) -> None:
    workspace, project = tmp_path / "w", tmp_path / "p"
    (workspace / "agents").mkdir(parents=True)
    (workspace / "agents" / "a.yaml").write_text("id: a\n")
    (workspace / ".mcp.json").write_text('{"mcpServers": {}}')
    project.mkdir()
    options = ["-w", str(workspace), "--project", str(project)]
    run = CliRunner()
    shown = run.invoke(cli, ["install", "cursor", "a", *options, "--dry-run"])
    assert '"extgate"' in shown.output
    assert not (project / ".cursor").exists()
    assert run.invoke(cli, ["install", "cursor", "a", *options]).exit_code == 0
    made = json.loads((project / ".cursor" / "mcp.json").read_text())
    assert made["mcpServers"]["extgate"]["args"] == ["mcp", "a", "-w", str(workspace)]
    assert (project / ".cursor" / f"mcp.json{BACKUP}").exists()
    assert run.invoke(cli, ["install", "cursor", "a", *options, "--undo"]).exit_code == 0
    assert not (project / ".cursor" / "mcp.json").exists()
    assert run.invoke(cli, ["install", "cursor", "nobody", *options]).exit_code == 1
    own = ["-w", str(workspace), "--project", str(workspace)]
    refused = run.invoke(cli, ["install", "claude-code", "a", *own])
    assert refused.exit_code == 1, "an entry of the gateway among the servers behind it would be a circle"
