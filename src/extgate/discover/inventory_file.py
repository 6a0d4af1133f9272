"""The inventory file: everything installed as one JSON document, written and read again as the same inventory.

`KINDS` decides its keys: a kind of its own has a list at the top, an MCP kind a list in each entry of `mcp`. What an
item has beyond the fields of an extension is a fact, under its own key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

from extgate.core.extension import KINDS, Extension, Finding, Inventory, Kind, Server, ServerState
from extgate.core.names import show
from extgate.dialects.document import parse
from extgate.dialects.json_nodes import read_large_json
from extgate.dialects.node import Node
from extgate.discover.codes import Severity
from extgate.errors import DiscoveryError, DocumentError

_STATES: tuple[ServerState, ...] = get_args(ServerState)
_SEVERITIES: dict[str, Severity] = {"error": "error", "warning": "warning", "info": "info"}
_TEXTS = ("source", "category", "declared_name", "description", "file", "digest")
_IDENTITIES: dict[str, tuple[str, ...]] = {"mcp_resource": ("uri", "uriTemplate")}
"""The keys that can hold an item's name; `name` for every other kind."""

_RENAMED = {"inputSchema": "schema", "outputSchema": "output_schema", "mimeType": "mime_type"}
"""The protocol's words, read as the facts' names, so that a server's own answer can be pasted in."""


_SMALL = 100_000
"""Characters."""


def load_inventory(text: str, path: str) -> Inventory:
    """The inventory of a file's text.

    A server without `state` is connected. An item without a name is kept, nameless, for the decision to refuse.
    Keys that are not known become facts. Raises DiscoveryError at the line: not JSON, a value of the wrong type.
    """
    try:
        # Small files are read with the line of each value; an inventory may well be larger than a profile may be.
        root = parse(text, path, "json") if len(text) <= _SMALL else read_large_json(text, path)
    except DocumentError as error:
        raise DiscoveryError(error.message, file=error.file, line=error.line, fix=error.fix) from None
    _expect(root, "map", "the file")
    extensions = [ext for kind in KINDS.values() if not kind.is_mcp for ext in _items(root, kind, None)]
    servers: dict[str, Server] = {}
    for row in _list(root, "mcp"):
        server = _server(row)
        if server.name and server.name in servers:
            raise _wrong(row, f"`mcp`: the server `{server.name}` stands twice")
        servers[server.name] = server
        extensions += [ext for kind in KINDS.values() if kind.is_mcp for ext in _items(row, kind, server)]
    findings = tuple(_finding(node) for node in _list(root, "problems"))
    return Inventory(extensions=tuple(extensions), servers=tuple(servers.values()), problems=findings)


def dump_inventory(inventory: Inventory) -> dict[str, Any]:
    """The inventory as JSON values, items in the inventory's order; `load_inventory` reads the same one back.

    A server that has items but is not listed is written as `configured`, which counts as not installed.
    """
    found: dict[str, Any] = {kind.key: [] for kind in KINDS.values() if not kind.is_mcp}
    known = {server.name for server in inventory.servers}
    orphans = sorted({e.server for e in inventory.extensions if e.server is not None} - known)
    servers = [*inventory.servers, *(Server(name=name, state="configured") for name in orphans)]
    rows = {server.name: _server_row(server) for server in servers}
    for ext in inventory.extensions:
        kind = _kind(ext)
        place = rows[ext.server] if ext.server is not None else found
        place.setdefault(kind.key, []).append(_item_row(ext))
    found["mcp"] = list(rows.values())
    if inventory.problems:
        found["problems"] = [_finding_row(finding) for finding in inventory.problems]
    return found


# ---------------------------------------------------------------------------------------------- reading


def _items(place: Node, kind: Kind, server: Server | None) -> Iterator[Extension]:
    for node in _list(place, kind.key):
        yield _item(node, kind, server)


def _item(node: Node, kind: Kind, server: Server | None) -> Extension:
    where = f"`{kind.key}`"
    _expect(node, "map", where)
    identities = _IDENTITIES.get(kind.name, ("name",))
    identity = next((key for key in identities if key in node.items), identities[0])
    fields = {key: text for key in _TEXTS if (text := _text(node, key, where)) is not None}
    facts = _facts(node, {*identities, *_TEXTS, "name"})
    if identity != identities[0]:
        facts["template"] = True
    if identity != "name" and (title := _text(node, "name", where)) is not None:
        facts.setdefault("title", title)
    return Extension(
        kind=kind.name,
        name=_identity(node, identity, where),
        server=server.name if server is not None else None,
        source=fields.pop("source", server.source if server is not None else ""),
        facts=facts,
        **fields,
    )


def _identity(node: Node, key: str, where: str) -> str:
    if key in node.items and not isinstance(node.items[key].scalar, str):
        raise _wrong(node.items[key], f"{where}: `{key}`: expected a text")
    return _text(node, key, where) or ""


def _server(node: Node) -> Server:
    _expect(node, "map", "`mcp`")
    # One without a name is kept, so that what it offers is refused item by item and no other agent is touched.
    name = _text(node, "server", "`mcp`") or ""
    said = node.items["state"].scalar if "state" in node.items else "connected"
    state = next((known for known in _STATES if known == said), None)
    if state is None:
        raise _wrong(node.items["state"], f"`state`: expected one of {', '.join(_STATES)}")
    taken = {"server", "state", "error", "instructions", "source"}
    return Server(
        name=name,
        state=state,
        error=_text(node, "error", "`mcp`"),
        instructions=_text(node, "instructions", "`mcp`") or "",
        source=_text(node, "source", "`mcp`") or "",
        facts=_facts(node, taken | {kind.key for kind in KINDS.values() if kind.is_mcp}),
    )


def _finding(node: Node) -> Finding:
    _expect(node, "map", "`problems`")
    code, message = _text(node, "code", "`problems`"), _text(node, "message", "`problems`")
    severity = _SEVERITIES.get(_text(node, "severity", "`problems`") or "warning")
    line = node.items["line"].scalar if "line" in node.items else None
    if not code or message is None or severity is None or isinstance(line, bool | str | float):
        raise _wrong(node, "`problems`: expected `code`, `message`, a known `severity`, and a number as `line`")
    return Finding(
        code=code,
        message=message,
        file=_text(node, "file", "`problems`"),
        line=line,
        fix=_text(node, "fix", "`problems`") or "",
        severity=severity,
    )


def _facts(node: Node, taken: set[str]) -> dict[str, Any]:
    """Everything but the taken keys, known facts checked; `facts` itself holds those whose key is taken."""
    nested = node.get("facts")
    found = {_RENAMED.get(key, key): child for key, child in node.items.items() if key not in taken and key != "facts"}
    if nested is not None:
        _expect(nested, "map", "`facts`")
        found |= nested.items
    return {key: _fact(key, child) for key, child in found.items()}


def _fact(key: str, node: Node) -> Any:
    expected = _FACTS.get(key)
    if expected is not None and not expected[1](node):
        raise _wrong(node, f"`{key}`: expected {expected[0]}")
    if key in _TUPLES and node.kind == "list":
        return tuple(child.value for child in node)
    return node.value


def _is_texts(node: Node) -> bool:
    return node.kind == "list" and all(isinstance(child.scalar, str) for child in node)


def _is_bool(node: Node) -> bool:
    return isinstance(node.scalar, bool)


def _is_text(node: Node) -> bool:
    return isinstance(node.scalar, str)


_TUPLES = frozenset({"allowed_tools", "disallowed_tools", "aliases", "toolsets"})

_FACTS: Mapping[str, tuple[str, Callable[[Node], bool]]] = {
    "schema": ("a mapping", lambda node: node.kind == "map"),
    "output_schema": ("a mapping", lambda node: node.kind == "map"),
    "annotations": ("a mapping", lambda node: node.kind == "map"),
    "allowed_tools": ("a list of texts or null", lambda node: node.is_null or _is_texts(node)),
    "disallowed_tools": ("a list of texts", _is_texts),
    "aliases": ("a list of texts", _is_texts),
    "toolsets": ("a list of texts", _is_texts),
    "disable_model_invocation": ("true or false", _is_bool),
    "read_only": ("true or false", _is_bool),
    "builtin": ("true or false", _is_bool),
    "template": ("true or false", _is_bool),
    "folder": ("a text", _is_text),
    "title": ("a text", _is_text),
    "plugin": ("a text", _is_text),
}
"""Facts that something decides by or prints: what they must be, in words and as a check."""


def _list(place: Node, key: str) -> tuple[Node, ...]:
    node = place.get(key)
    if node is None:
        return ()
    if node.kind != "list":
        raise _wrong(node, f"`{key}`: expected a list")
    return node.children


def _text(node: Node, key: str, where: str) -> str | None:
    """A key's text; None when the key is absent or null."""
    child = node.get(key)
    if child is None or child.is_null:
        return None
    if not isinstance(child.scalar, str):
        raise _wrong(child, f"{where}: `{key}`: expected a text")
    return child.scalar


def _expect(node: Node, kind: str, where: str) -> None:
    if node.kind != kind:
        raise _wrong(node, f"{where}: expected a mapping")


def _wrong(node: Node, message: str) -> DiscoveryError:
    got = "" if "expected" not in message else f", got {node.shown}"
    return DiscoveryError(message + got, file=node.file, line=node.line)


# ---------------------------------------------------------------------------------------------- writing


def _kind(ext: Extension) -> Kind:
    kind = KINDS.get(ext.kind)
    if kind is None or kind.is_mcp != (ext.server is not None):
        raise DiscoveryError(f"`{show(ext.id)}` is of no kind that an inventory can hold")
    return kind


def _item_row(ext: Extension) -> dict[str, Any]:
    identities = _IDENTITIES.get(ext.kind, ("name",))
    identity = identities[-1] if ext.facts.get("template") else identities[0]
    row: dict[str, Any] = {identity: ext.name, "source": ext.source}
    optional = {
        "category": ext.category,
        "declared_name": ext.declared_name,
        "description": ext.description or None,
        "file": ext.file,
        "digest": ext.digest,
    }
    row |= {key: value for key, value in optional.items() if value is not None}
    implied = {"template"} if identity == "uriTemplate" else set()
    facts = {key: value for key, value in ext.facts.items() if key not in implied}
    return _with_facts(row, facts, {*_TEXTS, *identities, "name"})


def _server_row(server: Server) -> dict[str, Any]:
    row: dict[str, Any] = {"server": server.name, "state": server.state}
    optional = {"error": server.error, "instructions": server.instructions or None, "source": server.source or None}
    row |= {key: value for key, value in optional.items() if value is not None}
    keys: dict[str, list[Any]] = {kind.key: [] for kind in KINDS.values() if kind.is_mcp}
    return {**_with_facts(row, server.facts, {"server", "state", *optional, *keys}), **keys}


def _with_facts(row: dict[str, Any], facts: Mapping[str, Any], taken: set[str]) -> dict[str, Any]:
    """The row with its facts, those with a taken key apart."""
    plain = {key: _plain(value) for key, value in facts.items()}
    taken = {*taken, *_RENAMED, "facts"}
    apart = {key: value for key, value in plain.items() if key in taken}
    return row | {key: value for key, value in plain.items() if key not in taken} | ({"facts": apart} if apart else {})


def _plain(value: Any) -> Any:
    """The value as JSON has it: lists for tuples, at every depth."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _finding_row(finding: Finding) -> dict[str, Any]:
    row = {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "file": finding.file,
        "line": finding.line,
        "fix": finding.fix,
    }
    return {key: value for key, value in row.items() if value is not None}
