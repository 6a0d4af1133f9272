"""Which MCP servers Claude Code's settings let in: allow and deny lists by name, command or address.

Source: code.claude.com docs "Managed MCP"; 2.1.332 as run; seen 2026-11-30.
"""

from __future__ import annotations

from collections.abc import Sequence

from extgate.core.patterns import matches
from extgate.core.policy import Test
from extgate.dialects.commands import literal
from extgate.dialects.document import Document
from extgate.dialects.native import MCP, NativeNotes, Place, RuleList, entry, exact, test
from extgate.dialects.node import Node

Settings = Sequence[tuple[str, Document, Node]]


def add_servers(
    rules: RuleList, notes: NativeNotes, settings: Settings, files: Sequence[Document], *, as_run: bool
) -> None:
    """Denies of whole servers: by `disabledMcpjsonServers`, by `deniedMcpServers`, and past `allowedMcpServers`."""
    known = _known(files)
    for _, _, root in settings:
        for node in notes.texts(root.get("disabledMcpjsonServers"), "disabledMcpjsonServers"):
            rules.add("deny", MCP, Place("disabledMcpjsonServers", node), [_name(node.text, as_run)])
        for node in _objects(notes, root.get("deniedMcpServers"), "deniedMcpServers"):
            _deny(rules, notes, node, known, as_run)
    _allow(rules, notes, settings, known)


def _name(text: str, as_run: bool) -> Test:
    return exact(text, "server") if as_run else test(literal(text, stars="*"), "server")


def _known(files: Sequence[Document]) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for document in files:
        root = document.parse("json")
        servers = root.get("mcpServers")
        if servers is not None and servers.kind == "map":
            found |= {name: node for name, node in servers.items.items() if name not in found}
    return found


def _objects(notes: NativeNotes, node: Node | None, where: str) -> list[Node]:
    """The entries of a list of servers. A list that is none is an error: nobody knows whom it meant."""
    if node is None:
        return []
    if node.kind != "list" or any(child.kind != "map" for child in node):
        fix = 'write `[{"serverName": "x"}]`'
        notes.at(node).error("EG003", f"{where}: expected a list of mappings, got {node.shown}", node.line, fix)
        return []
    return list(node)


def _deny(rules: RuleList, notes: NativeNotes, node: Node, known: dict[str, Node], as_run: bool) -> None:
    place = Place("deniedMcpServers", node)
    if (name := node.get("serverName")) is not None and isinstance(name.scalar, str):
        rules.add("deny", MCP, place, [_name(name.scalar, as_run)], text=name.scalar)
        return
    hit = [server for server, spec in known.items() if _is_meant(node, spec)]
    if hit:
        rules.add("deny", MCP, place, *([exact(server, "server")] for server in hit))
    if node.get("serverCommand") is None and node.get("serverUrl") is None:
        fix = "write `serverName`, `serverCommand` or `serverUrl`"
        notes.at(node).error("EG003", "deniedMcpServers: an entry names no server", node.line, fix)


def _allow(rules: RuleList, notes: NativeNotes, settings: Settings, known: dict[str, Node]) -> None:
    lists = [
        (scope, root.items["allowedMcpServers"]) for scope, _, root in settings if "allowedMcpServers" in root.items
    ]
    managed_only = any(
        notes.flag(root.get("allowManagedMcpServersOnly"), "allowManagedMcpServersOnly", default=False, in_doubt=True)
        for scope, _, root in settings
        if scope == "managed"
    )
    lists = [row for row in lists if row[0] == "managed" or not managed_only]
    if not lists and not managed_only:
        return
    entries = [node for _, found in lists for node in _objects(notes, found, "allowedMcpServers")]
    by_command = any(node.get("serverCommand") is not None for node in entries)
    by_url = any(node.get("serverUrl") is not None for node in entries)
    admitted = []
    for node in entries:
        name = node.get("serverName")
        if name is not None and isinstance(name.scalar, str):
            spec = known.get(name.scalar)
            is_remote = spec is not None and spec.get("url") is not None
            # Once one entry names a command, no name lets a local server in; the same for addresses and remote ones.
            if not (by_url if is_remote else by_command):
                admitted.append(entry(node, name.scalar, exact(name.scalar, "server")))
        else:
            admitted += [
                entry(node, server, exact(server, "server")) for server, spec in known.items() if _is_meant(node, spec)
            ]
    place = Place("allowedMcpServers", lists[0][1] if lists else None)
    rules.only(MCP, place, admitted, reason="the server of '{name}' is not in `allowedMcpServers`.")


def _is_meant(entry_: Node, spec: Node) -> bool:
    command, url = entry_.get("serverCommand"), entry_.get("serverUrl")
    if command is not None and command.kind == "list":
        own, args = spec.get("command"), spec.get("args")
        return own is not None and command.value == [own.value, *(args.value if args and args.kind == "list" else [])]
    own = spec.get("url")
    if url is None or own is None or not isinstance(url.scalar, str):
        return False
    return matches(str(own.scalar), literal(url.scalar, stars="*"))


def inline_servers(header: Node) -> list[tuple[Node, str]]:
    """Servers that an agent's file defines itself."""
    node = header.get("mcpServers")
    found = []
    for child in node.children if node and node.kind == "list" else (node,) if node else ():
        if child.kind == "map":
            found += [(spec, name) for name, spec in child.items.items() if spec.kind == "map"]
    return found
