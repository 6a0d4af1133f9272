"""Codex' `mcp_servers`: which of a server's tools there are, and which calls ask.

`enabled_tools` admits, `disabled_tools` is taken off afterwards, both by raw name; then each tool's `approval_mode`,
then the server's. Source: openai/codex docs "MCP"; 0.171.0 as run; seen 2026-11-30.
"""

from __future__ import annotations

from extgate.core.policy import Requirement, Test
from extgate.dialects.commands import literal
from extgate.dialects.native import MCP, MCP_TOOL, NativeNotes, Place, RuleList, all_but, exact, test
from extgate.dialects.node import Node

_SERVER_KEYS = (
    *("command", "args", "env", "env_vars", "cwd", "url", "bearer_token_env_var", "http_headers", "env_http_headers"),
    *("enabled", "required", "enabled_tools", "disabled_tools", "default_tools_approval_mode", "tools", "scopes"),
    *("startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "name", "oauth_resource"),
)
_MODES = ("auto", "prompt", "approve", "writes")


class Servers:
    """The rules of one file's servers. approves_all: nothing asks, because sandbox and approvals are off."""

    def __init__(self, rules: RuleList, notes: NativeNotes, root: Node, *, as_run: bool, approves_all: bool) -> None:
        self.rules, self.notes, self.root = rules, notes, root
        self.as_run, self.approves_all = as_run, approves_all
        self.requirements: list[Requirement] = []

    def narrow(self) -> None:
        """What an agent's own file takes away, before its parent's rules."""
        self._add(denies_only=True)

    def add(self) -> None:
        """What the configuration says of its servers, and what is asked by default."""
        self._add(denies_only=False)

    def _add(self, *, denies_only: bool) -> None:
        block = self.notes.mapping(self.root.get("mcp_servers"), "mcp_servers")
        for name, node in block.items.items() if block else ():
            place = Place(f"mcp_servers.{name}", node)
            if self.notes.mapping(node, place.text) is not None:
                self._server(name, place, node, denies_only)
        if not denies_only and not self.approves_all:
            place = Place("asked by default")
            self.rules.add("allow", MCP_TOOL, place, [exact("read-only", "hint")])
            self.rules.add("ask", MCP_TOOL, place)

    def _server(self, name: str, place: Place, node: Node, denies_only: bool) -> None:
        keys = self.notes.unknown_keys(node, _SERVER_KEYS, place.text)
        keys = dict(node.items) if self.as_run else keys
        own = exact(name, "server")
        if not self.notes.flag(keys.get("enabled"), f"{place.text}.enabled", default=True, in_doubt=False):
            self.rules.add("deny", MCP, place, [own], text=f"{name}: disabled")
        elif "." in name or " " in name:
            self.rules.add("deny", MCP, place, [own], text=name, reason="'{name}': Codex takes no such server name.")
        elif not denies_only and self.notes.flag(
            keys.get("required"), f"{place.text}.required", default=False, in_doubt=True
        ):
            at = keys["required"]
            text = f"{place.text}.required"
            self.requirements.append(Requirement(pattern=literal(name), text=text, file=at.file, line=at.line))
        for child in self.notes.texts(keys.get("disabled_tools"), f"{place.text}.disabled_tools"):
            self._disabled(name, Place(f"{place.text}.disabled_tools", child), child)
        enabled = self.notes.texts(keys.get("enabled_tools"), f"{place.text}.enabled_tools")
        items = [[exact(f"{name}/{child.text}", "name"), own] for child in enabled]
        is_limited = "enabled_tools" in keys
        if not denies_only:
            self._approval(name, place, keys, items if is_limited else [[own]])
        if is_limited:
            where = Place(f"{place.text}.enabled_tools", keys["enabled_tools"])
            if denies_only:
                self._only(where, name, items)
            else:
                self.rules.add("deny", MCP_TOOL, where, [own], text=name, reason="'{name}' is not in `enabled_tools`.")

    def _only(self, where: Place, server: str, items: list[list[Test]]) -> None:
        """An agent's own list, before its parent's rules: everything of the server that it does not name is denied."""
        inner = RuleList()
        inner.add("allow", MCP_TOOL, where, *items, text="enabled_tools") if items else None
        for rule in inner.rules:
            names = tuple(entry.tests[0].pattern for entry in rule.entries)
            self.rules.add("deny", MCP_TOOL, where, *self._others(server, names), text="enabled_tools")
        if not items:
            self.rules.add("deny", MCP_TOOL, where, [exact(server, "server")], text="enabled_tools")

    def _others(self, server: str, names: tuple[str, ...]) -> list[list[Test]]:
        """Tests that hold for each item of the server but these, as far as globs can tell them apart."""
        kept = {name.removeprefix(f"{server}/") for name in names}
        return [[exact(server, "server"), test(glob, "name")] for glob in all_but(f"{server}/", kept)]

    def _disabled(self, server: str, place: Place, node: Node) -> None:
        own = exact(server, "server")
        if self.as_run:
            self.rules.add("deny", MCP_TOOL, place, [exact(f"{server}/{node.text}", "name"), own])
            return
        glob = literal(node.text, stars="*?")
        kinds = MCP if glob == "*" else MCP_TOOL
        self.rules.add(
            "deny", kinds, place, [test(f"{literal(server)}/{glob}", "name"), own], [test(glob, "item_any"), own]
        )
        if "*" in node.text or "?" in node.text:
            message, fix = f"{place.text}: `{node.text}` is a name there and no pattern", "write each tool's own name"
            self.notes.at(node).warn("EG074", message, node.line, fix)

    def _approval(self, name: str, place: Place, keys: dict[str, Node], ways: list[list[Test]]) -> None:
        """Whether calls of these items ask: each tool's own mode, then the server's."""
        if not ways:
            return
        tools = self.notes.mapping(keys.get("tools"), f"{place.text}.tools")
        is_limited = len(ways[0]) > 1
        for tool, node in tools.items.items() if tools else ():
            mode = node.get("approval_mode")
            way = [exact(f"{name}/{tool}", "name"), exact(name, "server")]
            if mode is not None and (not is_limited or way in ways):
                self._mode(mode.scalar, Place(f"{place.text}.tools.{tool}", mode), [way])
        mode = keys.get("default_tools_approval_mode")
        self._mode(
            mode.scalar if mode else "auto",
            Place(f"{place.text}.default_tools_approval_mode", mode or place.node),
            ways,
        )

    def _mode(self, mode: object, place: Place, ways: list[list[Test]]) -> None:
        if mode not in _MODES and place.node is not None:
            fix = f"write one of {', '.join(_MODES)}"
            self.notes.at(place.node).error(
                "EG003", f"{place.text}: {place.node.shown} is no mode", place.node.line, fix
            )
        if mode == "approve" or self.approves_all:
            self.rules.add("allow", MCP_TOOL, place, *ways)
            return
        if mode in ("auto", "writes"):
            self.rules.add("allow", MCP_TOOL, place, *([*way, exact("read-only", "hint")] for way in ways))
        self.rules.add("ask", MCP_TOOL, place, *ways)
