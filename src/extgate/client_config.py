"""Clients' own MCP configuration: the entry that puts a client behind the gateway, written, shown and taken back.

Sources, seen 2026-11-30: Claude Code 2.1.332 (`.mcp.json`, `mcpServers`), Codex 0.171.0 (`~/.codex/config.toml`,
`[mcp_servers.NAME]`), opencode 1.18.33 (`opencode.json`, `mcp`, the command in one list), Gemini CLI 0.61.0
(`.gemini/settings.json`, `mcpServers`), Hermes 0.19.0 (`~/.hermes/config.yaml`, `mcp_servers`); VS Code's
`.vscode/mcp.json` (`servers`) and Cursor's `.cursor/mcp.json` (`mcpServers`) after their documentation.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from extgate.errors import WorkspaceError

NAME = "extgate"
BACKUP = ".extgate-backup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One client. file: relative to the project, or with `~` to the home. key: the mapping of servers in it."""

    name: str
    file: str
    key: str
    form: Literal["json", "yaml", "toml"] = "json"
    is_one_list: bool = False


CLIENTS = {
    client.name: client
    for client in (
        Client(name="claude-code", file=".mcp.json", key="mcpServers"),
        Client(name="codex", file="~/.codex/config.toml", key="mcp_servers", form="toml"),
        Client(name="opencode", file="opencode.json", key="mcp", is_one_list=True),
        Client(name="gemini", file=".gemini/settings.json", key="mcpServers"),
        Client(name="hermes", file="~/.hermes/config.yaml", key="mcp_servers", form="yaml"),
        Client(name="vscode", file=".vscode/mcp.json", key="servers"),
        Client(name="cursor", file=".cursor/mcp.json", key="mcpServers"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What an installation changes. before: None when the file is not there. gone: direct servers that it removes."""

    path: Path
    before: str | None
    after: str
    gone: tuple[str, ...] = ()

    @property
    def backup(self) -> Path:
        return self.path.with_name(self.path.name + BACKUP)


def plan(client: Client, project: Path, command: Sequence[str], *, replaces: bool) -> Edit:
    """The edit that adds the entry; replaces: takes the client's other servers out.

    Raises WorkspaceError for a file that cannot be read as what it is, or whose comments an edit would lose.
    """
    path = place(client, project)
    before = path.read_text(encoding="utf-8") if path.exists() else None
    if client.form == "toml":
        return _toml(client, path, before, command, replaces=replaces)
    data = _read(client, path, before)
    servers = data.get(client.key)
    if servers is not None and not isinstance(servers, dict):
        raise WorkspaceError(f"`{client.key}` is no mapping", file=str(path))
    kept = {} if replaces else {name: entry for name, entry in (servers or {}).items() if name != NAME}
    gone = tuple(name for name in servers or {} if name not in kept and name != NAME)
    data = {**data, client.key: {**kept, NAME: _entry(client, command)}}
    return Edit(path=path, before=before, after=_text(client, data), gone=gone)


def place(client: Client, project: Path) -> Path:
    """The client's file."""
    home = os.environ.get("CODEX_HOME") if client.name == "codex" else os.environ.get("HERMES_HOME")
    if client.name in ("codex", "hermes") and home:
        return Path(home) / Path(client.file).name
    return Path(client.file).expanduser() if client.file.startswith("~") else project / client.file


def apply(edit: Edit) -> None:
    """Writes it, the old file kept beside it. Raises OSError."""
    edit.path.parent.mkdir(parents=True, exist_ok=True)
    if edit.before is None:
        _write(edit.backup, "", like=None)
    else:
        shutil.copy2(edit.path, edit.backup)
    _write(edit.path, edit.after, like=edit.path if edit.before is not None else None)


def undo(client: Client, project: Path) -> Path:
    """Puts the file back as it was before the installation. Raises WorkspaceError when nothing was installed."""
    path = place(client, project)
    backup = path.with_name(path.name + BACKUP)
    if not backup.exists():
        raise WorkspaceError("nothing was installed here, so nothing is taken back", file=str(path))
    if backup.stat().st_size == 0:
        path.unlink(missing_ok=True)
        backup.unlink()
    else:
        os.replace(backup, path)
    return path


def _write(path: Path, text: str, *, like: Path | None) -> None:
    """Replaces the file whole, with the mode of another."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    if like is not None:
        shutil.copymode(like, name)
    os.replace(name, path)


def _entry(client: Client, command: Sequence[str]) -> Mapping[str, Any]:
    if client.is_one_list:
        return {"type": "local", "command": list(command), "enabled": True}
    return {"command": command[0], "args": list(command[1:])}


def _read(client: Client, path: Path, text: str | None) -> dict[str, Any]:
    if text is None or not text.strip():
        return {}
    try:
        data = json.loads(text) if client.form == "json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        why = "has comments or is not JSON" if client.form == "json" else "is not YAML"
        raise WorkspaceError(f"{why} ({str(error)[:120]})", file=str(path), fix="add the entry by hand") from None
    if not isinstance(data, dict):
        raise WorkspaceError("is no mapping", file=str(path))
    if client.form == "yaml" and re.search(r"(^|\s)#", text):
        fix = "add the entry by hand; `--dry-run` shows it"
        raise WorkspaceError("holds comments, which an edit would lose", file=str(path), fix=fix)
    return data


def _text(client: Client, data: Mapping[str, Any]) -> str:
    if client.form == "json":
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    return yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True)


_TABLE = re.compile(r"^\s*\[\[?\s*(?P<name>[^\]]+?)\s*\]\]?\s*(#.*)?$")


def _toml(client: Client, path: Path, before: str | None, command: Sequence[str], *, replaces: bool) -> Edit:
    """TOML is edited by its lines, whole tables at a time, so that all else stays as it is written."""
    kept: list[str] = []
    gone: dict[str, None] = {}
    is_out = False
    for line in (before or "").splitlines():
        table = _TABLE.match(line)
        if table:
            head, _, rest = table["name"].partition(".")
            name = rest.partition(".")[0].strip("\"' ") if head.strip() == client.key else ""
            is_out = bool(name) and (replaces or name == NAME)
            if is_out and name != NAME:
                gone[name] = None
        elif re.match(rf"^\s*{client.key}\s*[.=]", line):
            fix = "write them as tables, or add the entry by hand"
            raise WorkspaceError(f"`{client.key}` is not written as tables", file=str(path), fix=fix)
        if not is_out:
            kept.append(line)
    words = json.dumps(list(command[1:]), ensure_ascii=False)
    entry = f"[{client.key}.{NAME}]\ncommand = {json.dumps(command[0], ensure_ascii=False)}\nargs = {words}\n"
    text = "\n".join(kept).rstrip()
    return Edit(path=path, before=before, after=f"{text}\n\n{entry}" if text else entry, gone=tuple(gone))
