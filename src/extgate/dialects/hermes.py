"""Hermes: `config.yaml` as one policy for each platform; the main agent is the command line's.

Toolsets are switched on for a platform, then `agent.disabled_toolsets` takes tools away; servers and skills have lists
of names. Source: hermes-agent 0.19.0, its functions as run; seen 2026-11-30. Divergences: `divergences.toml`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from extgate.core.names import Facet
from extgate.core.policy import ArgTest, Policy
from extgate.dialects.commands import Commands, literal
from extgate.dialects.document import Document
from extgate.dialects.hermes_toolsets import BUNDLES, INCLUDES, OFF_BY_DEFAULT, ONLY_ON, RE_ADDED, TOOLSETS, WEBHOOK
from extgate.dialects.native import (
    AGENT,
    MAIN,
    MCP,
    MCP_TOOL,
    SKILL,
    TOOL,
    NativeNotes,
    Place,
    RuleList,
    entry,
    exact,
    policy,
    test,
)
from extgate.dialects.node import Node
from extgate.errors import DocumentError

NAME = "hermes"
FILES = (".hermes/config.yaml", "hermes/config.yaml", "config.yaml")
USER_FILES: tuple[str, ...] = ()
SERVER_FILES = FILES
SKILLS = (".hermes/skills", "hermes/skills", "~/.hermes/skills")
SUBAGENTS: tuple[str, ...] = ()
MANAGED_FILES: tuple[str, ...] = ()
MARKS = ("platform_toolsets", "mcp_servers", "approvals")
"""Keys of which a `config.yaml` at a workspace's root must have one to be Hermes'."""

COMMAND_LINE = "cli"
_SERVER_KEYS = (
    *(
        "command",
        "args",
        "env",
        "url",
        "headers",
        "enabled",
        "tools",
        "timeout",
        "connect_timeout",
        "transport",
        "auth",
    ),
    *("cwd", "sampling", "verify"),
)
_TOOL_KEYS = ("include", "exclude", "resources", "prompts")


def agents(documents: Sequence[Document]) -> tuple[str, ...]:
    """The main agent, and each platform that the file speaks of, sorted."""
    found: set[str] = set()
    for document in documents:
        try:
            root = document.parse("yaml")
        except DocumentError:
            continue
        for path in (("platform_toolsets",), ("skills", "platform_disabled")):
            node: Node | None = root
            for key in path:
                node = node.get(key) if node else None
            found |= set(node.items) if node else set()
    return (MAIN, *sorted(found - {COMMAND_LINE}))


def spawned(documents: Sequence[Document]) -> tuple[str, ...]:
    """No names: its children have none."""
    return ()


def read(documents: Sequence[Document], agent: str = MAIN, *, version: str = "") -> Policy:
    """The policy of one platform. Raises DocumentError, or DialectError (with the others in `also`)."""
    return _Reader(documents, COMMAND_LINE if agent == MAIN else agent, bool(version)).policy(agent)


class _Reader:
    def __init__(self, documents: Sequence[Document], platform: str, as_run: bool) -> None:
        self.platform, self.as_run = platform, as_run
        self.notes = NativeNotes(documents[0].path if documents else NAME)
        self.rules = RuleList()
        roots = [self.notes.mapping(document.parse("yaml"), document.path) for document in documents]
        self.root = next((root for root in roots if root is not None), None)
        self.servers = dict(self._block("mcp_servers").items()) if self.root else {}

    def policy(self, agent: str) -> Policy:
        tools = self._tools()
        self._mcp_list()
        self._disabled(tools)
        for name, node in self.servers.items():
            self._server(name, node)
        self._skills()
        self._approvals()
        file = self.root.file if self.root else None
        return policy(NAME, self.rules, self.notes, agent=agent, file=file, facts={"runtime": NAME})

    def _block(self, *keys: str) -> dict[str, Node]:
        node = self.root
        for key in keys:
            node = self.notes.mapping(node.get(key), ".".join(keys)) if node else None
        return dict(node.items) if node else {}

    def _list(self, *keys: str) -> Node | None:
        return self._block(*keys[:-1]).get(keys[-1]) if self.root else None

    # ------------------------------------------------------------------------------------------ toolsets

    def _tools(self) -> set[str]:
        """The tools that the platform has; everything else is denied."""
        node = self._list("platform_toolsets", self.platform)
        where = f"platform_toolsets.{self.platform}"
        if node is None:
            found = set(WEBHOOK) if self.platform == "webhook" else self._default()
            place = Place(f"the default of {self.platform}", self.root)
        else:
            found, place = self._named(self.notes.texts(node, where), where), Place(where, node)
        names = [entry(place.node, name, exact(name)) for name in sorted(found)]
        self.rules.only(TOOL, place, names, reason="no toolset of this platform has '{name}'.")
        return found

    def _default(self) -> set[str]:
        """What a platform has that no list speaks of."""
        off = {name for name in OFF_BY_DEFAULT if self.platform not in ONLY_ON.get(name, ())}
        off |= {name for name, platforms in ONLY_ON.items() if self.platform not in platforms}
        return {tool for name, tools in TOOLSETS.items() if name not in off for tool in tools}

    def _named(self, nodes: Iterable[Node], where: str) -> set[str]:
        found = {tool for name in RE_ADDED for tool in TOOLSETS[name]}
        for node in nodes:
            if node.text in ("all", "*"):
                found |= {tool for tools in TOOLSETS.values() for tool in tools}
            elif (members := self._members(node.text)) is not None:
                found |= members
            elif node.text not in (*self.servers, "no_mcp"):
                self._unknown(node, where, "it switches nothing on")
        return found

    def _members(self, name: str) -> set[str] | None:
        """The tools of a toolset, of one that stands for others, or of a bundle."""
        if name in INCLUDES:
            return {tool for part in INCLUDES[name] for tool in TOOLSETS[part]}
        if name == "hermes-webhook":
            return set(WEBHOOK)
        if name in BUNDLES or name.startswith("hermes-"):
            return self._default()
        return set(TOOLSETS[name]) if name in TOOLSETS else None

    def _unknown(self, node: Node, where: str, effect: str) -> None:
        near = next((name for name in TOOLSETS if name.casefold() == node.text.casefold()), "")
        owner = next((name for name, tools in TOOLSETS.items() if node.text in tools), near)
        fix = f"write `{owner}`" if owner else f"the toolsets are {', '.join(sorted(TOOLSETS))}"
        self.notes.at(node).warn("EG073", f"{where}: {node.shown} is no toolset, so {effect}", node.line, fix)

    def _mcp_list(self) -> None:
        """A platform's list that names a server, or `no_mcp`, is a list for servers as well."""
        node = self._list("platform_toolsets", self.platform)
        if node is None or node.kind != "list":
            return
        names = [child.text for child in node]
        place = Place(f"platform_toolsets.{self.platform}", node)
        listed = [child for child in node if child.text in self.servers]
        if "no_mcp" in names:
            self.rules.add("deny", MCP, place, text="no_mcp")
        elif listed:
            self.rules.only(MCP, place, [entry(child, child.text, exact(child.text, "server")) for child in listed])
        else:
            message = f"{place.text}: a list of toolsets that names no server leaves every MCP server open"
            self.notes.at(node).warn("EG078", message, node.line, "name the servers, or write `no_mcp`")

    def _disabled(self, tools: set[str]) -> None:
        where = "agent.disabled_toolsets"
        for node in self.notes.texts(self._list("agent", "disabled_toolsets"), where):
            place, name = Place(where, node), node.text
            server = name.removeprefix("mcp-")
            if name in self.servers or server in self.servers:
                self.rules.add("deny", MCP, place, [exact(name if name in self.servers else server, "server")])
            elif (members := self._members(name)) is None:
                self._unknown(node, where, "it takes nothing away")
            elif not (self.as_run and (name in BUNDLES or name.startswith("hermes-"))):
                tools -= members
                self.rules.add("deny", TOOL, place, *([exact(tool)] for tool in sorted(members)))
        if {"terminal", "process"}.isdisjoint(tools) and "execute_code" in tools:
            message = "no terminal, but `execute_code` is left in and runs shell commands"
            self.notes.at(self.root).warn("EG079", message, None, "disable `code_execution` as well")
        for tool, kinds in (("skill_view", SKILL), ("delegate_task", AGENT)):
            if tool not in tools:
                self.rules.add("deny", kinds, Place(where, self.root), text=tool, reason=f"'{{name}}' needs `{tool}`.")

    # ------------------------------------------------------------------------------------------ servers

    def _server(self, name: str, node: Node) -> None:
        place = Place(f"mcp_servers.{name}", node)
        if self.notes.mapping(node, place.text) is None:
            return
        keys = self.notes.unknown_keys(node, _SERVER_KEYS, place.text)
        if not self.notes.flag(keys.get("enabled"), f"{place.text}.enabled", default=True, in_doubt=False):
            self.rules.add("deny", MCP, place, [exact(name, "server")], text=f"{name}: disabled")
        block = self.notes.mapping(keys.get("tools"), f"{place.text}.tools")
        lists = self.notes.unknown_keys(block, _TOOL_KEYS, f"{place.text}.tools") if block else {}
        include = self.notes.texts(lists.get("include"), f"{place.text}.tools.include")
        if not (include and self.as_run):
            for child in self.notes.texts(lists.get("exclude"), f"{place.text}.tools.exclude"):
                self._exclude(name, child, f"{place.text}.tools.exclude")
        if include:
            where = Place(f"{place.text}.tools.include", lists["include"])
            ways = [[exact(f"{name}/{child.text}", "name"), exact(name, "server")] for child in include]
            self.rules.add("allow", MCP_TOOL, where, *ways, text=", ".join(child.text for child in include))
            self.rules.add("deny", MCP_TOOL, where, [exact(name, "server")], text=place.text,
                           reason="'{name}' is not in the server's `include`.")  # fmt: skip
        for key, kind in (("resources", "mcp_resource"), ("prompts", "mcp_prompt")):
            if not self.notes.flag(lists.get(key), f"{place.text}.tools.{key}", default=True, in_doubt=False):
                self.rules.add("deny", frozenset({kind}), place, [exact(name, "server")], text=f"{key}: false")

    def _exclude(self, server: str, node: Node, where: str) -> None:
        place = Place(where, node)
        own = exact(server, "server")
        if self.as_run:
            self.rules.add("deny", MCP_TOOL, place, [exact(f"{server}/{node.text}", "name"), own])
            return
        glob = literal(node.text, stars="*?")
        self.rules.add(
            "deny", MCP_TOOL, place, [test(f"{literal(server)}/{glob}", "name"), own], [test(glob, "item_any"), own]
        )
        if "*" in node.text or "?" in node.text:
            self.notes.at(node).warn("EG074", f"{where}: `{node.text}` is a name there and no pattern", node.line,
                                     "write each tool's own name")  # fmt: skip

    # ------------------------------------------------------------------------------------------ skills and the shell

    def _skills(self) -> None:
        for keys in (("disabled",), ("platform_disabled", self.platform)):
            node = self._list("skills", *keys)
            where = ".".join(("skills", *keys))
            if self.as_run and node is not None and node.kind == "scalar":
                # `name in text`: every skill whose name is a part of the text is refused, and all stay listed.
                parts = _parts(node.text)
                self.rules.add(
                    "deny", SKILL, Place(where, node), *([exact(part, "item_any")] for part in parts), is_listed=True
                )
                continue
            for child in self.notes.texts(node, where):
                facet: Facet = "item_any" if self.as_run else "any"
                way = exact(child.text, facet) if self.as_run else test(child.text, facet)
                self.rules.add("deny", SKILL, Place(where, child), [way])
                if any(char in child.text for char in "*?[/"):
                    message = f"{where}: `{child.text}` is read as a name and hides nothing there"
                    self.notes.at(child).warn("EG074", message, child.line, "write the name in the skill's header")

    def _approvals(self) -> None:
        for node in self.notes.texts(self._list("approvals", "deny"), "approvals.deny"):
            when = ArgTest(name="command", pattern=node.text, reading=Commands())
            self.rules.add("deny", TOOL, Place("approvals.deny", node), [exact("terminal")], when=[when])
        mode = self._list("approvals", "mode")
        if mode is not None and mode.scalar == "manual":
            self.rules.add("ask", TOOL, Place("approvals.mode", mode), [exact("terminal")])


def _parts(text: str) -> list[str]:
    text = text[:64]
    return list(dict.fromkeys(text[a:b] for a in range(len(text)) for b in range(a + 1, len(text) + 1)))
