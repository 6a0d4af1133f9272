"""Claude Code: settings of every scope, agents' files, `.mcp.json`, as one policy for an agent.

Order: any deny, else any ask, else any allow, else what the tool does by default; lists of all scopes are put together.
Source: code.claude.com docs "Settings", "Permissions", "Sub-agents", "Managed MCP"; 2.1.332 as run; seen 2026-11-30.
Divergences: `divergences.toml`; `version` reads what that version really does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from extgate.core.policy import Effect, Policy
from extgate.dialects.claude_agents import AgentLists
from extgate.dialects.claude_rules import EDITORS, SHELLS, Scope, add_rule, any_of, shell_patterns, split_rule
from extgate.dialects.claude_servers import add_servers
from extgate.dialects.commands import literal
from extgate.dialects.document import Document, frontmatter
from extgate.dialects.native import (
    MAIN,
    MCP_TOOL,
    SKILL,
    TOOL,
    NativeNotes,
    Place,
    RuleList,
    entry,
    exact,
    no_agent,
    policy,
    scope_of,
    test,
)
from extgate.dialects.node import Node

NAME = "claude-code"
FILES = (".claude/settings.json", ".claude/settings.local.json", ".claude/agents/*.md", ".mcp.json")
USER_FILES = ("~/.claude/settings.json", "~/.claude/agents/*.md")
SERVER_FILES = (".mcp.json",)
SKILLS = (".claude/skills", "~/.claude/skills")
MARKS: tuple[str, ...] = ()
SUBAGENTS = ("general-purpose", "Explore", "Plan", "statusline-setup")
"""What it can spawn by itself."""
MANAGED_FILES = ("/etc/claude-code/managed-settings.json", "/etc/claude-code/managed-settings.d/*.json")

SCOPES = ("managed", "flags", "local", "project", "user")
_PERMISSION_KEYS = ("allow", "ask", "deny", "defaultMode", "additionalDirectories", "disableBypassPermissionsMode")
_NOT_BLOCKS = ("permission", "deny", "denied", "disallowedtools", "disallowed_tools")
_MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions")
_ASKS = (*SHELLS, *EDITORS, "WebFetch", "WebSearch", "ExitPlanMode", "Artifact", "SendUserFile", "RemoteTrigger")
_READ_ONLY = ("ls", "cat", "head", "tail", "grep", "wc", "diff", "stat", "du", "cd", "pwd", "echo")
"""Commands that run without asking; those that can also write or run others are left out."""
_EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")


def agents(documents: Sequence[Document]) -> tuple[str, ...]:
    """The main agent and the agents with a file of their own, sorted."""
    names = {name for document in documents if _is_agent(document) for name in [_agent_name(document)] if name}
    return (MAIN, *sorted(names))


def spawned(documents: Sequence[Document]) -> tuple[str, ...]:
    """Names of agents that another can start."""
    return agents(documents)[1:]


def read(documents: Sequence[Document], agent: str = MAIN, *, version: str = "") -> Policy:
    """The policy of one agent over all scopes. A scope's file that does not parse makes it unreadable.

    Raises DocumentError, or DialectError (with the others in `also`).
    """
    return _Reader(documents, agent, bool(version)).policy()


def _is_agent(document: Document) -> bool:
    return document.path.endswith(".md") or document.facts.get("kind") == "agent"


def _agent_name(document: Document) -> str:
    try:
        header, _ = frontmatter(document.text, document.path)
    except ValueError:
        header = None
    name = header.get("name") if header else None
    return str(name.scalar).strip() if name and name.scalar else PurePath(document.path).stem


def is_settings(document: Document) -> bool:
    """Whether it is a settings file (or the command line's flags) and no agent's and no server file."""
    return not _is_agent(document) and not document.path.endswith(("mcp.json", ".claude.json"))


class _Reader:
    def __init__(self, documents: Sequence[Document], agent: str, as_run: bool) -> None:
        self.documents, self.agent, self.as_run = documents, agent, as_run
        self.notes = NativeNotes(documents[0].path if documents else NAME)
        self.rules = RuleList()
        self.settings = self._settings()
        self.header = self._header()
        self.is_sub = self.header is not None and not self._fact("main")

    def _fact(self, key: str) -> str:
        return next((d.facts[key] for d in self.documents if key in d.facts), "")

    def _settings(self) -> list[tuple[str, Document, Node]]:
        """Scope, document and mapping of each settings file, the strongest scope first."""
        found = []
        for document in filter(is_settings, self.documents):
            root = self.notes.mapping(document.parse("json"), document.path)
            if root is not None:
                found.append((scope_of(document), document, root))
        return sorted(found, key=lambda row: SCOPES.index(row[0]))

    def _header(self) -> Node | None:
        if self.agent == MAIN:
            return None
        for document in filter(_is_agent, self.documents):
            if _agent_name(document) == self.agent:
                header, _ = frontmatter(document.text, document.path)
                return header
        raise no_agent(NAME, self.agent, self.documents)

    def policy(self) -> Policy:
        self.blocks = self._blocks()
        servers = [d for d in self.documents if d.path.endswith("mcp.json")]
        add_servers(self.rules, self.notes, self.settings, servers, as_run=self.as_run)
        self._skills()
        for effect in _EFFECTS[:1]:
            self._permissions(effect)
        self._flags()
        if self.header is not None:
            AgentLists(self.rules, self.notes, self.header, self.is_sub, self.as_run).add()
        self._permissions("ask")
        self._mode()
        file = self.header.file if self.header else self.settings[0][1].path if self.settings else None
        facts: dict[str, Any] = {"runtime": NAME, "mode": self._mode_name()}
        return policy(NAME, self.rules, self.notes, agent=self.agent, file=file, facts=facts)

    def _blocks(self) -> list[tuple[str, Document, dict[str, Node]]]:
        """The `permissions` of each scope; by the documentation a near miss of a key is that key."""
        found = []
        for scope, document, root in self.settings:
            for key, node in root.items.items():
                if key.casefold() in _NOT_BLOCKS:
                    fix = "write `permissions: {deny: […]}`"
                    self.notes.at(node).error("EG002", f"`{key}` restricts nothing here", root.key_line(key), fix)
            block = self.notes.mapping(root.get("permissions"), "permissions")
            keys = self.notes.unknown_keys(block, _PERMISSION_KEYS, "permissions") if block else {}
            found.append((scope, document, dict(block.items) if block and self.as_run else keys))
        return found

    # ------------------------------------------------------------------------------------------ lists

    def _permissions(self, effect: Effect) -> None:
        only_managed = self._managed_only("allowManagedPermissionRulesOnly")
        together: list[str] = []
        places: list[Place] = []
        for scope, document, block in self.blocks:
            where = f"permissions.{effect}"
            nodes = self._entries(block.get(effect), where)
            if (only_managed and scope != "managed") or (
                effect == "allow" and scope == "project" and document.facts.get("trusted") == "no"
            ):
                continue
            for node in nodes:
                place = Place(where, node)
                add_rule(self.rules, effect, place, self._scope(document))
                name, spec = split_rule(node.text)
                if effect == "allow" and name == "Bash" and spec and shell_patterns(spec):
                    together += shell_patterns(spec)
                    places.append(place)
        if effect == "allow":
            # A line of several commands runs when each of them is allowed, by whichever rule or because it only reads.
            readers = [pattern for name in _READ_ONLY for pattern in (name, f"{name} *")]
            place = places[0] if places else Place("commands that only read")
            text = ", ".join(p.node.text for p in places if p.node) or place.text
            self.rules.add("allow", TOOL, place, [test("Bash")], when=[any_of([*readers, *together])], text=text)

    def _managed_only(self, key: str) -> bool:
        return any(
            self.notes.flag(root.get(key), key, default=False, in_doubt=True)
            for scope, _, root in self.settings
            if scope == "managed"
        )

    def _entries(self, node: Node | None, where: str) -> list[Node]:
        if self.as_run and node is not None and node.kind != "list":
            return []  # 2.1.332 drops a list that is none, and single entries that are no text
        return [n for n in self.notes.texts(node, where) if split_rule(n.text)[0] and split_rule(n.text)[1] != ""]

    def _scope(self, document: Document) -> Scope:
        base, root, home = (document.facts.get(key, "") for key in ("base", "root", "home"))
        return Scope(base=base, root=root, home=home, as_run=self.as_run)

    def _skills(self) -> None:
        self.rules.add(
            "deny", SKILL, Place("disable-model-invocation"), [exact("user only", "hint")],
            reason="'{name}' may be started by a person only (`disable-model-invocation`).",
        )  # fmt: skip
        for _, _, root in self.settings:
            block = self.notes.mapping(root.get("skillOverrides"), "skillOverrides")
            for name, node in block.items.items() if block else ():
                if node.scalar in ("off", "user-invocable-only"):
                    place = Place("skillOverrides", node)
                    self.rules.add("deny", SKILL, place, [exact(name)], text=f"{name}: {node.scalar}")
                elif node.scalar not in ("on", "name-only"):
                    message = f"skillOverrides.{name}: expected `on`, `name-only`, `user-invocable-only` or `off`"
                    self.notes.at(node).error("EG003", message, node.line, "write `off`")

    def _flags(self) -> None:
        for scope, _, root in self.settings:
            node = root.get("tools")
            if scope == "flags" and node is not None:
                entries = [entry(n, n.text, test(literal(n.text))) for n in self.notes.texts(node, "--tools")]
                self.rules.only(TOOL, Place("--tools", node), entries)
            if scope == "flags" and (off := root.get("disableSlashCommands")):
                self.rules.add("deny", TOOL, Place("--disable-slash-commands", off), [test("Skill")])
                self.rules.add("deny", SKILL, Place("--disable-slash-commands", off))

    # ------------------------------------------------------------------------------------------ modes and defaults

    def _mode_name(self) -> str:
        for _, _, block in self.blocks:
            node = block.get("defaultMode")
            if node is not None and node.scalar in _MODES:
                return str(node.scalar)
        return "default"

    def _mode(self) -> None:
        mode = self._mode_name()
        place = Place(f"mode {mode}")
        if mode == "bypassPermissions":
            return
        if mode == "plan":
            self.rules.add("deny", TOOL, place, *([test(name)] for name in EDITORS))
            self.rules.add("deny", MCP_TOOL, place, [exact("may write", "hint")])
        self._permissions("allow")
        if mode == "acceptEdits":
            self.rules.add("allow", TOOL, place, *([test(name)] for name in EDITORS))
        rest: Effect = "deny" if mode == "dontAsk" else "ask"
        default = Place("asked by default" if rest == "ask" else "mode dontAsk")
        self.rules.add(rest, TOOL, default, *([test(name)] for name in _ASKS), is_listed=rest == "deny")
        self.rules.add(rest, MCP_TOOL, default, is_listed=rest == "deny")
