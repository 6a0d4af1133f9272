"""The inventory as a JSON file: what `extgate list --json` writes and `--inventory FILE` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

from extgate.core.extension import KINDS, Extension, Inventory, Kind, Server, ServerState
from extgate.errors import DiscoveryError

MAX_CHARS = 256 * 1024 * 1024
MAX_ITEMS = 1_000_000

_NAME_KEYS = {"mcp_resource": ("uri", "uriTemplate", "name")}
_STATES: tuple[str, ...] = get_args(ServerState)


def load_inventory(text: str, path: str) -> Inventory:
    """The inventory in a file's text. A server without `state` is connected; keys not known are left alone.

    An item without a name is kept, nameless, so that it is refused where things are decided. Raises DiscoveryError
    for text that is no JSON object, and for a value of the wrong kind, with the place inside the file.
    """
    if len(text) > MAX_CHARS:
        raise DiscoveryError(f"holds more than {MAX_CHARS:,} characters", file=path, fix="split the inventory")
    try:
        root = json.loads(text)
    except json.JSONDecodeError as error:
        raise DiscoveryError(f"is not valid JSON: {error.msg}", file=path, line=error.lineno) from None
    except RecursionError:
        raise DiscoveryError("is nested too deep", file=path) from None
    reader = _Reader(path)
    return reader.inventory(reader.mapping(root, "the file"))


class _Reader:
    def __init__(self, path: str) -> None:
        self.path = path

    def error(self, where: str, expected: str, got: object) -> DiscoveryError:
        return DiscoveryError(f"{where}: expected {expected}, got {type(got).__name__}", file=self.path)

    def mapping(self, value: object, where: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self.error(where, "an object", value)
        return value

    def rows(self, parent: Mapping[str, Any], key: str, where: str) -> list[tuple[Mapping[str, Any], str]]:
        value = parent.get(key, [])
        if not isinstance(value, list):
            raise self.error(f"{where}{key}", "a list", value)
        if len(value) > MAX_ITEMS:
            raise DiscoveryError(f"{where}{key}: holds more than {MAX_ITEMS:,} items", file=self.path)
        return [(self.mapping(row, f"{where}{key}[{i}]"), f"{where}{key}[{i}]") for i, row in enumerate(value)]

    def text(self, row: Mapping[str, Any], key: str, where: str) -> str | None:
        value = row.get(key)
        if value is not None and not isinstance(value, str):
            raise self.error(f"{where}.{key}", "text", value)
        return value

    def inventory(self, root: Mapping[str, Any]) -> Inventory:
        extensions = [
            self.extension(kind, row, where)
            for kind in KINDS.values()
            if not kind.is_mcp
            for row, where in self.rows(root, kind.key, "")
        ]
        servers = []
        for row, where in self.rows(root, "mcp", ""):
            server = self.server(row, where)
            servers.append(server)
            for kind in (kind for kind in KINDS.values() if kind.is_mcp):
                found = self.rows(row, kind.key, f"{where}.")
                extensions += [self.extension(kind, item, place, server.name) for item, place in found]
        return Inventory(extensions=tuple(extensions), servers=tuple(servers))

    def server(self, row: Mapping[str, Any], where: str) -> Server:
        state = self.text(row, "state", where) or "connected"
        if state not in _STATES:
            message = f"{where}.state: `{state[:40]}` is not one of {', '.join(_STATES)}"
            raise DiscoveryError(message, file=self.path)
        facts = self.mapping(row.get("facts") or {}, f"{where}.facts")
        return Server(
            name=self.text(row, "server", where) or self.text(row, "name", where) or "",
            state=state,  # type: ignore[arg-type]
            error=self.text(row, "error", where),
            instructions=self.text(row, "instructions", where) or "",
            source=self.text(row, "source", where) or "",
            facts=facts,
        )

    def extension(self, kind: Kind, row: Mapping[str, Any], where: str, server: str | None = None) -> Extension:
        keys = _NAME_KEYS.get(kind.name, ("name",))
        name = next((text for key in keys if (text := self.text(row, key, where))), "")
        facts = dict(self.mapping(row.get("facts") or {}, f"{where}.facts"))
        if kind.name == "mcp_resource" and not row.get("uri") and row.get("uriTemplate"):
            facts["template"] = True
        for key, fact in (("inputSchema", "schema"), ("annotations", "annotations"), ("folder", "folder")):
            if row.get(key) is not None:
                facts.setdefault(fact, row[key])
        return Extension(
            kind=kind.name,
            name=name,
            server=server,
            source=self.text(row, "source", where) or "",
            category=self.text(row, "category", where),
            declared_name=self.text(row, "declared_name", where),
            description=self.text(row, "description", where) or "",
            file=self.text(row, "file", where),
            digest=self.text(row, "digest", where),
            facts=_tuples(facts),
        )


def dump_inventory(inventory: Inventory) -> dict[str, Any]:
    """The inventory file's shape; reading it again gives an equal inventory, but for what could not be loaded."""
    plain = [kind for kind in KINDS.values() if not kind.is_mcp]
    offered = [kind for kind in KINDS.values() if kind.is_mcp]
    result: dict[str, Any] = {kind.key: [_row(e) for e in inventory.of_kind(kind.name)] for kind in plain}
    result["mcp"] = [
        _server_row(server)
        | {kind.key: [_row(e) for e in inventory.of_kind(kind.name) if e.server == server.name] for kind in offered}
        for server in inventory.servers
    ]
    return result


def _server_row(server: Server) -> dict[str, Any]:
    row: dict[str, Any] = {"server": server.name, "state": server.state}
    row |= {"error": server.error} if server.error is not None else {}
    row |= {"instructions": server.instructions} if server.instructions else {}
    row |= {"source": server.source} if server.source else {}
    return row | ({"facts": dict(server.facts)} if server.facts else {})


def _row(ext: Extension) -> dict[str, Any]:
    is_template = ext.kind == "mcp_resource" and ext.facts.get("template")
    key = "uriTemplate" if is_template else "uri" if ext.kind == "mcp_resource" else "name"
    row: dict[str, Any] = {key: ext.name}
    texts = {"source": ext.source, "description": ext.description}
    row |= {name: text for name, text in texts.items() if text}
    kept = {"category": ext.category, "declared_name": ext.declared_name, "file": ext.file, "digest": ext.digest}
    row |= {name: text for name, text in kept.items() if text is not None}
    return row | ({"facts": dict(ext.facts)} if ext.facts else {})


def _tuples(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Lists of text as the tuples that discovery makes, so that a round trip gives equal values."""
    return {
        key: tuple(value)
        if key in ("allowed_tools", "aliases") and isinstance(value, list) and all(isinstance(v, str) for v in value)
        else value
        for key, value in facts.items()
    }
