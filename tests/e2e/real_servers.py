"""The real MCP servers behind one gateway: those of the examples and as many more, installed once under `.cache`."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.e2e.environments import ROOT

_SCOPE = "@modelcontextprotocol"
_MORE = (
    ("everything", "npm", "mcp-server-everything", f"{_SCOPE}/server-everything@2026.8.31"),
    ("filesystem", "npm", "mcp-server-filesystem", f"{_SCOPE}/server-filesystem@2026.8.31"),
    ("memory", "npm", "mcp-server-memory", f"{_SCOPE}/server-memory@2026.8.31"),
    ("thinking", "npm", "mcp-server-sequential-thinking", f"{_SCOPE}/server-sequential-thinking@2026.8.31"),
    ("postgres", "npm", "mcp-server-postgres", f"{_SCOPE}/server-postgres@0.6.2"),
    ("drawio", "npm", "drawio-mcp", "@drawio/mcp@1.6.1"),
    ("git", "pypi", "mcp-server-git", "mcp-server-git==2026.10.19", "mcp==2.3.0"),
    ("duckdb", "pypi", "mcp-server-duckdb", "mcp-server-duckdb==1.1.0", "mcp==1.30.0"),
)
"""Name, registry, command and pins, besides those that `examples/servers.py` installs."""


def _installer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_servers", ROOT / "examples" / "servers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def installed() -> tuple[dict[str, str], dict[str, str]]:
    """The command of each server that is there, and why each other is not."""
    installer = _installer()
    more = [installer.Server(name=n, example="e2e", registry=r, command=c, pins=tuple(p)) for n, r, c, *p in _MORE]
    there: dict[str, str] = {}
    missing: dict[str, str] = {}
    with contextlib.redirect_stdout(io.StringIO()), installer.only_one():
        node, why_no_node = installer.find_node()
        for server in (*installer.SERVERS, *more):
            if server.registry == "npm" and node is None:
                missing[server.name] = why_no_node
            elif installer.is_installed(server, node) or installer.install(server, node):
                there[server.name] = str(installer.command_path(server))
            else:
                missing[server.name] = installer.command_path(server).read_text().splitlines()[1]
    return there, missing


def entries(commands: dict[str, str], folder: Path) -> dict[str, dict[str, Any]]:
    """The servers as `.mcp.json` names them, with the files that they need, made in `folder`."""
    files, repository = folder / "files", folder / "repository"
    for made in (files, repository, folder / "arxiv"):
        made.mkdir()
    (files / "note.txt").write_text("a note\n")
    subprocess.run(
        ["git", "init", "-q", str(repository)], check=True, env=os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null"}
    )
    sqlite3.connect(folder / "x.sqlite").close()
    (folder / "kubeconfig.yaml").write_text((ROOT / "examples/office/kubeconfig.yaml").read_text())
    args: dict[str, list[str]] = {
        "arxiv": ["--storage-path", str(folder / "arxiv")],
        "excel": ["stdio"],
        "sqlite": ["--db-path", str(folder / "x.sqlite")],
        "k8s": ["--kubeconfig", str(folder / "kubeconfig.yaml")],
        "everything": ["stdio"],
        "filesystem": [str(files)],
        "postgres": ["postgresql://127.0.0.1:1/x"],
        "git": ["--repository", str(repository)],
        "duckdb": ["--db-path", str(folder / "x.duckdb")],
    }
    env = {
        "github": {"GITHUB_PERSONAL_ACCESS_TOKEN": "dummy-token-of-this-test"},
        "slack": {"SLACK_BOT_TOKEN": "xoxb-dummy-of-this-test", "SLACK_TEAM_ID": "T0"},
        "memory": {"MEMORY_FILE_PATH": str(folder / "memory.json")},
        "fetch": {"NO_PROXY": "*"},
    }
    return {
        name: {"command": command, "args": args.get(name, []), **({"env": env[name]} if name in env else {})}
        for name, command in commands.items()
    }
