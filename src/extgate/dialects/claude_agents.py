"""The lists of an agent's file of Claude Code: `tools`, `disallowedTools`, `mcpServers`, `memory`.

Source: code.claude.com docs "Sub-agents"; 2.1.332 as run; seen 2026-11-30. `disallowedTools` is taken off first; a
`tools` list without an MCP entry leaves no MCP tool; partial globs match nothing, which admits nothing.
"""

from __future__ import annotations

from extgate.core.names import Facet, rule_name, rule_parts
from extgate.core.policy import Entry
from extgate.dialects.claude_rules import Scope, add_rule, split_rule
from extgate.dialects.claude_servers import inline_servers
from extgate.dialects.commands import literal
from extgate.dialects.native import (
    AGENT,
    MCP,
    MCP_TOOL,
    NOT_IN_CHILDREN,
    SKILL,
    TOOL,
    NativeNotes,
    Place,
    RuleList,
    entry,
    exact,
    test,
)
from extgate.dialects.node import Node

_NEVER_IN_SUBAGENTS = ("AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "ScheduleWakeup", "TaskOutput", "Workflow")


class AgentLists:
    """The rules that one agent's file adds. is_sub: it is run as a sub-agent, and not as the main one."""

    def __init__(self, rules: RuleList, notes: NativeNotes, header: Node, is_sub: bool, as_run: bool) -> None:
        self.rules, self.notes, self.header, self.is_sub, self.as_run = rules, notes, header, is_sub, as_run

    def add(self) -> None:
        header = self.header
        denied = self._words(header, "disallowedTools")
        for node, text in denied:
            name, spec = split_rule(text)
            if self.as_run and "*" in name and not is_server_rule(name):
                continue  # a partial glob removes nothing
            place = Place("disallowedTools", node)
            add_rule(
                self.rules,
                "deny",
                _named(place, name if spec is None or name == "Agent" else text, node),
                Scope(as_run=self.as_run),
            )
        listed = self._words(header, "tools")
        if header.get("tools") is not None and not any(text == "*" for _, text in listed):
            self._only(header, listed)
        if self.is_sub:
            for name in _NEVER_IN_SUBAGENTS:
                self.rules.add("deny", TOOL, Place(NOT_IN_CHILDREN[0]), [test(name)], text=name)

    def _words(self, header: Node, key: str) -> list[tuple[Node, str]]:
        """A list, or one text with commas outside parentheses."""
        node = header.get(key)
        if node is None:
            return []
        if node.kind == "scalar" and isinstance(node.scalar, str):
            return [(node, word) for word in split_commas(node.scalar)]
        return [(n, n.text) for n in self.notes.texts(node, key)]

    def _only(self, header: Node, listed: list[tuple[Node, str]]) -> None:
        place = Place("tools", header.items["tools"])
        names = [(node, *split_rule(text)) for node, text in listed]
        tools = [entry(node, name, test(literal(name))) for node, name, _ in names if not rule_parts(name)]
        if memory := header.get("memory"):
            tools += [entry(memory, name, test(name)) for name in ("Read", "Write", "Edit")]
        self.rules.only(TOOL, place, tools)
        items = [found for node, name, _ in names for found in _server_entry(node, name, self.as_run)]
        inline = inline_servers(header) if self.as_run and self.is_sub else []
        free = [entry(node, name, exact(name, "server")) for node, name in inline]
        self.rules.only(MCP_TOOL, place, [*items, *free])
        whole = [e for e in items if rule_parts(e.text) == (e.text.removeprefix(rule_name("")), "")]
        self.rules.only(MCP - MCP_TOOL, place, [*whole, *free])
        has = {name for _, name, _ in names}
        if "Skill" not in has:
            self.rules.only(SKILL, place, ())
        types = [t.strip() for _, name, spec in names if name == "Agent" and spec for t in spec.split(",")]
        if "Agent" not in has:
            self.rules.only(AGENT, place, ())
        elif types and not (self.as_run and self.is_sub):
            self.rules.only(AGENT, place, [entry(place.node, name, exact(name)) for name in types])


def split_commas(text: str) -> list[str]:
    """Words between commas, those inside parentheses left whole."""
    found, depth, word = [], 0, ""
    for char in text:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth <= 0:
            found.append(word.strip())
            word = ""
        else:
            word += char
    return [w for w in [*found, word.strip()] if w]


def is_server_rule(name: str) -> bool:
    """Whether the text means a whole server, or all of them."""
    server, item = rule_parts(name) or ("", "x")
    return item == "*" or (not item and ("*" not in server or server == "*"))


def _named(place: Place, text: str, node: Node) -> Place:
    return Place(place.text, Node(file=node.file, line=node.line, kind="scalar", scalar=text, text=text))


def _server_entry(node: Node, name: str, as_run: bool) -> list[Entry]:
    """What an entry for a server or one of its tools admits; partial globs admit nothing.

    By the documentation only a name that can be read in one way admits; as run, whatever is cleaned to it.
    """
    facet: Facet = "claude-code" if as_run else "full"
    parts = rule_parts(name)
    if parts is None or "*" in parts[0]:
        return []
    server, item = parts
    if item in ("", "*"):
        return [entry(node, rule_name(server), test(f"{literal(rule_name(server, '_'))[:-1]}*", facet))]
    return [] if "*" in item else [entry(node, name, exact(name, facet))]
