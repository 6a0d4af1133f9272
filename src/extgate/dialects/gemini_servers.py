"""Gemini CLI's `mcpServers`: `includeTools`, `excludeTools`, `trust`. A later scope's entry replaces the whole entry.

Source: google-gemini/gemini-cli docs "MCP servers"; gemini-cli-core 0.61.0 as run; seen 2026-11-30.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from extgate.dialects.commands import literal
from extgate.dialects.native import MCP_TOOL, NativeNotes, Place, RuleList, all_but, exact, test
from extgate.dialects.node import Node

_SERVER_KEYS = (
    *("command", "args", "env", "cwd", "url", "httpUrl", "headers", "timeout", "trust", "includeTools", "excludeTools"),
    *("description", "oauth", "authProviderType", "targetAudience", "targetServiceAccount", "type", "tcp", "extension"),
)


class Servers:
    """The rules that the entries of all scopes add."""

    def __init__(self, rules: RuleList, notes: NativeNotes, *, as_run: bool) -> None:
        self.rules, self.notes, self.as_run = rules, notes, as_run

    def texts(self, node: Node, where: str) -> list[Node]:
        return [] if self.as_run and node.kind != "list" else self.notes.texts(node, where)

    def trusted(self, roots: Sequence[Node]) -> Iterator[tuple[str, str, Node]]:
        """Adds the rules of every server, and gives those that are trusted: name, place, node."""
        servers: dict[str, Node] = {}
        for root in roots:
            block = self.notes.mapping(root.get("mcpServers"), "mcpServers")
            servers |= dict(block.items) if block else {}
        for name, node in servers.items():
            place = Place(f"mcpServers.{name}", node)
            if self.notes.mapping(node, place.text) is None:
                continue
            keys = self.notes.unknown_keys(node, _SERVER_KEYS, place.text)
            keys = dict(node.items) if self.as_run else keys
            own = exact(name, "server")
            for child in self.texts(keys["excludeTools"], "excludeTools") if "excludeTools" in keys else ():
                where = Place(f"{place.text}.excludeTools", child)
                glob = literal(child.text, stars="" if self.as_run else "*?")
                self.rules.add("deny", MCP_TOOL, where, [test(f"{literal(name)}/{glob}", "name"), own])
                if "*" in child.text:
                    message = f"{where.text}: `{child.text}` is a name there and no pattern"
                    self.notes.at(child).warn("EG074", message, child.line, "write each tool's own name")
            if "includeTools" in keys:
                self._include(name, place, keys["includeTools"])
            if "trust" in keys and self.notes.flag(keys["trust"], "trust", default=False, in_doubt=False):
                yield name, place.text, keys["trust"]

    def _include(self, server: str, place: Place, node: Node) -> None:
        names = {child.text.partition("(")[0] for child in self.texts(node, f"{place.text}.includeTools")}
        ways = [[exact(server, "server"), test(glob, "name")] for glob in all_but(f"{server}/", names)]
        where = Place(f"{place.text}.includeTools", node)
        self.rules.add("deny", MCP_TOOL, where, *ways, text=where.text, reason="'{name}' is not in `includeTools`.")
