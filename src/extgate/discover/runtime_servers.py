"""MCP servers as runtimes' own configurations ask for them: opencode, Codex, Gemini CLI, Hermes.

Claude Code's `.mcp.json` is the common form, which `server_config.py` reads. Here each entry's keys are put into that
form. Sources: the runtimes' documentation of MCP servers (opencode 1.18.33, Codex 0.171.0, Gemini CLI 0.61.0, Hermes
0.19.0), seen 2026-11-30. Which tools of a server an agent has is its policy's affair and not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from extgate.core.extension import Finding
from extgate.dialects.document import Document, Form
from extgate.dialects.node import Node
from extgate.discover.codes import finding
from extgate.discover.reading import UnreadableError, read_bytes
from extgate.discover.server_config import MAX_BYTES, ServerSpec, load_servers, server_specs
from extgate.errors import DocumentError

_KEY = {"opencode": "mcp", "codex": "mcp_servers", "gemini-cli": "mcpServers", "hermes": "mcp_servers"}
_FORMS: dict[str, Form] = {"opencode": "json", "codex": "toml", "gemini-cli": "json", "hermes": "yaml"}
_RENAMED = {"environment": "env", "http_headers": "headers", "httpUrl": "url"}
_KEPT = ("command", "args", "env", "cwd", "url", "headers", "enabled")


def load_runtime_servers(
    runtime: str, path: Path, directory: Path, *, environ: Mapping[str, str]
) -> tuple[tuple[ServerSpec, ...], tuple[Finding, ...]]:
    """The servers of one file of a runtime; none, and an error, when it cannot be read; none when it is not there."""
    if runtime not in _KEY:
        return load_servers(path, directory, environ=environ, source=runtime)
    try:
        root = Document.of_bytes(str(path), read_bytes(path, MAX_BYTES)).parse(_FORMS[runtime])
    except UnreadableError as error:
        return (), () if error.cause == "missing" else (finding("EG301", str(error), file=path),)
    except DocumentError as error:
        return (), (finding("EG301", error.message, file=path, line=error.line, fix=error.fix),)
    servers = root.get(_KEY[runtime])
    if servers is None or servers.kind != "map":
        return (), ()
    items = {name: _common(entry) for name, entry in servers.items.items() if entry.kind == "map"}
    known = Node(file=servers.file, line=servers.line, kind="map", items=items, key_lines=servers.key_lines)
    return server_specs(known, directory=directory, environ=environ, source=runtime)


def _common(entry: Node) -> Node:
    """The entry with the keys that `.mcp.json` has."""
    items: dict[str, Node] = {}
    for key, node in entry.items.items():
        name = _RENAMED.get(key, key)
        if name in _KEPT:
            items[name] = node
        if key == "httpUrl":
            items["type"] = Node(file=node.file, line=node.line, kind="scalar", scalar="http", text="http")
    return Node(file=entry.file, line=entry.line, kind="map", items=items, key_lines=entry.key_lines)
