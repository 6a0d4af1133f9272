"""Gemini CLI: settings of every scope, policy files and agents' files, as one policy for an agent.

Everything becomes rules with a priority, the highest first. Source: google-gemini/gemini-cli docs "Configuration",
"Policy engine", "Sub-agents"; gemini-cli-core 0.61.0 as run; seen 2026-11-30. Divergences: `divergences.toml`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from extgate.core.policy import Effect, Policy
from extgate.dialects.commands import literal
from extgate.dialects.document import Document, frontmatter
from extgate.dialects.gemini_policies import Ranked, command_test, policy_rules
from extgate.dialects.gemini_rules import Emitter
from extgate.dialects.gemini_servers import Servers
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
    no_agent,
    policy,
    scope_of,
    test,
)
from extgate.dialects.node import Node
from extgate.errors import DocumentError

NAME = "gemini-cli"
FILES = (".gemini/settings.json", ".gemini/policies/*.toml", ".gemini/agents/*.md", "settings.json")
USER_FILES = ("~/.gemini/settings.json", "~/.gemini/policies/*.toml", "~/.gemini/agents/*.md")
SERVER_FILES = (".gemini/settings.json", "settings.json", "~/.gemini/settings.json")
SKILLS = (".gemini/skills", "~/.gemini/skills")
SUBAGENTS = ("cli_help", "codebase_investigator", "generalist")
MANAGED_FILES = ("/etc/gemini-cli/settings.json", "/etc/gemini-cli/policies/*.toml")
MARKS = ("mcpServers", "tools", "mcp", "security")
"""Keys of which a `settings.json` at a workspace's root must have one to be Gemini CLI's."""

_SCOPES = ("defaults", "user", "project", "managed", "flags")
_TIER = {"extension": 2, "project": 3, "user": 4, "managed": 5}
_TOOL_KEYS = (
    *("core", "exclude", "allowed", "confirmationRequired", "sandbox", "shell", "useRipgrep", "discoveryCommand"),
    *("callCommand", "truncateToolOutputThreshold", "approvalMode", "sandboxAllowedPaths", "sandboxNetworkAccess"),
)
_SHELL = "run_shell_command"


def agents(documents: Sequence[Document]) -> tuple[str, ...]:
    """The main agent, and the agents with a file of their own, sorted."""
    return (MAIN, *sorted(_agent_name(document) for document in documents if document.path.endswith(".md")))


def spawned(documents: Sequence[Document]) -> tuple[str, ...]:
    """Names of agents that another can start."""
    return agents(documents)[1:]


def read(documents: Sequence[Document], agent: str = MAIN, *, version: str = "") -> Policy:
    """The policy of one agent over all scopes. Raises DocumentError, or DialectError (with the others in `also`)."""
    return _Reader(documents, agent, bool(version)).policy()


def _agent_name(document: Document) -> str:
    try:
        header, _ = frontmatter(document.text, document.path)
    except DocumentError:
        header = None
    node = header.get("name") if header else None
    return str(node.scalar) if node is not None and node.scalar else PurePath(document.path).stem


def is_agent_entry(text: str) -> bool:
    """Whether an agent's `tools` may hold the entry: a name, `*`, or `mcp_SERVER_*`."""
    return "*" not in text or text == "*" or (text.startswith("mcp_") and text.endswith("*") and text.count("*") == 1)


class _Reader:
    def __init__(self, documents: Sequence[Document], agent: str, as_run: bool) -> None:
        self.documents, self.agent, self.as_run = documents, agent, as_run
        self.notes = NativeNotes(documents[0].path if documents else NAME)
        self.rules = RuleList()
        self.ranked: list[Ranked] = []
        files = [d for d in documents if d.path.endswith(".json")]
        files.sort(key=lambda d: _SCOPES.index(scope_of(d)))
        roots = [(d, self.notes.mapping(d.parse("json"), d.path)) for d in files]
        self.settings = [(document, root) for document, root in roots if root is not None]

    def policy(self) -> Policy:
        self.mode = self._mode()
        for key in ("tools",):
            for _, root in self.settings:
                block = self.notes.mapping(root.get(key), key)
                if block is not None:
                    self.notes.unknown_keys(block, _TOOL_KEYS, key)
        self._servers()
        self._lists()
        for document in self.documents:
            if document.path.endswith(".toml") and not (self.as_run and scope_of(document, "user") == "project"):
                tier = _TIER.get(scope_of(document), 4)
                self.ranked += policy_rules(
                    document, tier, self.notes, agent=self.agent, mode=self.mode, as_run=self.as_run
                )
        self._skills()
        header = self._agents()
        if header is not None:
            self._agent_tools(header)
        emitter = Emitter(self.rules, as_run=self.as_run)
        for rule in sorted(self.ranked, key=lambda r: -r.rank):
            emitter.emit(rule)
        emitter.defaults(self.mode)
        file = header.file if header else self.settings[-1][1].file if self.settings else None
        facts: dict[str, object] = {"runtime": NAME, "mode": self.mode}
        return policy(NAME, self.rules, self.notes, agent=self.agent, file=file, facts=facts)

    # ------------------------------------------------------------------------------------------ settings

    def _get(self, root: Node, *keys: str) -> Node | None:
        node: Node | None = root
        for key in keys:
            node = node.get(key) if node is not None and node.kind == "map" else None
        return node

    def _all(self, *keys: str) -> list[Node]:
        """The value of a key in each scope that has it, the weakest scope first."""
        return [node for _, root in self.settings if (node := self._near(root, keys)) is not None]

    def _near(self, root: Node, keys: tuple[str, ...]) -> Node | None:
        """The value; outside of what the version does, under a near miss of the key too."""
        block = self._get(root, *keys[:-1])
        if block is None or block.kind != "map":
            return None
        found = block.get(keys[-1])
        if found is None and not self.as_run and keys[0] == "tools":
            found = NativeNotes(self.notes.file).unknown_keys(block, _TOOL_KEYS, "tools").get(keys[-1])
        return found

    def _texts(self, node: Node, where: str) -> list[Node]:
        if self.as_run and node.kind != "list":
            return []
        return self.notes.texts(node, where)

    def _mode(self) -> str:
        for _, root in reversed(self.settings):
            for keys in (("approvalMode",), ("general", "defaultApprovalMode"), ("tools", "approvalMode")):
                node = self._get(root, *keys)
                if node is not None and isinstance(node.scalar, str):
                    return {"auto_edit": "autoEdit"}.get(node.scalar, node.scalar)
        return "default"

    def _add(self, rank: float, effect: Effect, place: Place, name: str, **more: object) -> None:
        self.ranked.append(Ranked(rank=rank, effect=effect, place=place, names=(name,), **more))  # type: ignore[arg-type]

    def _lists(self) -> None:
        for node in self._all("tools", "exclude"):
            for child in self._texts(node, "tools.exclude"):
                self._exclude(child)
        for node in self._all("tools", "confirmationRequired"):
            for child in self._texts(node, "tools.confirmationRequired"):
                self._add(4.35, "ask", Place("tools.confirmationRequired", child), child.text)
        self._allowing("allowed", 4.3, self._all("tools", "allowed")[-1:])
        core = self._all("tools", "core")[-1:]
        self._allowing("core", 4.25, core)
        for node in core:
            self._add(4.24, "deny", Place("tools.core", node), "*")
        for node in self._all("mcp", "excluded"):
            for child in self._texts(node, "mcp.excluded"):
                way = exact(child.text, "server") if self.as_run else test(literal(child.text, stars="*"), "server")
                self.rules.add("deny", MCP, Place("mcp.excluded", child), [way])
        for node in self._all("mcp", "allowed"):
            children = self._texts(node, "mcp.allowed")
            entries = [entry(child, child.text, exact(child.text, "server")) for child in children]
            self.rules.only(
                MCP, Place("mcp.allowed", node), entries, reason="the server of '{name}' is not in `mcp.allowed`."
            )
            for child in children:
                self._add(4.1, "allow", Place("mcp.allowed", child), "*", server=child.text)

    def _exclude(self, node: Node) -> None:
        name, opening, rest = node.text.partition("(")
        place = Place("tools.exclude", node)
        is_known = (
            "*" not in name or name == "*" or (name.startswith("mcp_") and name.endswith("*") and name.count("*") == 1)
        )
        if opening or not is_known:
            fix = "write a policy rule with `commandPrefix`" if opening else "write each tool's own name"
            self.notes.at(node).warn("EG074", f"tools.exclude: `{node.text}` excludes nothing there", node.line, fix)
            if self.as_run:
                return
        when = (
            (command_test([rest.removesuffix(")")], strict=False),) if opening and name in (_SHELL, "ShellTool") else ()
        )
        self._add(4.4, "deny", place, name, when=when, is_scoped=bool(when))

    def _allowing(self, key: str, rank: float, lists: list[Node]) -> None:
        """`tools.allowed` or `tools.core`. A part of the shell allowed by `allowed` closes the rest of it."""
        for node in lists:
            children = self._texts(node, f"tools.{key}")
            narrow = [c for c in children if c.text.startswith((f"{_SHELL}(", "ShellTool("))]
            for child in children:
                if child not in narrow and "(" not in child.text:
                    self._add(rank, "allow", Place(f"tools.{key}", child), child.text)
            if narrow:
                prefixes = [c.text.partition("(")[2].removesuffix(")") for c in narrow]
                place = Place(f"tools.{key}", narrow[0])
                self._add(rank, "allow", place, _SHELL, when=(command_test(prefixes, strict=True),))
                self._add(rank, "deny", place, _SHELL)

    def _servers(self) -> None:
        found = Servers(self.rules, self.notes, as_run=self.as_run)
        for name, place, node in found.trusted([root for _, root in self.settings]):
            self._add(4.2, "allow", Place(f"{place}.trust", node), "*", server=name)

    def _skills(self) -> None:
        for node in self._all("skills", "disabled"):
            for child in self._texts(node, "skills.disabled"):
                way = exact(child.text) if self.as_run else test(child.text)
                self.rules.add("deny", SKILL, Place("skills.disabled", child), [way])
                if any(char in child.text for char in "*?["):
                    message = f"skills.disabled: `{child.text}` is a name there and no pattern"
                    self.notes.at(child).warn("EG074", message, child.line, "write each skill's own name")

    # ------------------------------------------------------------------------------------------ agents

    def _agents(self) -> Node | None:
        """The agent's own header. Agents that are switched off or whose file is refused are no agents."""
        for _, root in self.settings:
            overrides = self._get(root, "agents", "overrides")
            for name, node in overrides.items.items() if overrides is not None else ():
                if not self.notes.flag(node.get("enabled"), f"agents.overrides.{name}", default=True, in_doubt=False):
                    self.rules.add("deny", AGENT, Place("agents.overrides", node), [exact(name)], text=name)
        found = None
        for document in self.documents:
            if not document.path.endswith(".md"):
                continue
            name = _agent_name(document)
            try:
                header, _ = frontmatter(document.text, document.path)
            except DocumentError:
                if name == self.agent:
                    raise
                header = None
            bad = self._bad_entry(header)
            if name == self.agent:
                found = header
                if bad is not None:
                    fix = "write names, `*`, or `mcp_SERVER_*`"
                    self.notes.at(bad).error("EG003", f"tools: {bad.shown} is no entry Gemini CLI takes", bad.line, fix)
            elif bad is not None or header is None:
                self.rules.add(
                    "deny", AGENT, Place("tools", bad), [exact(name)], reason="'{name}': its file is refused."
                )
        if found is None and self.agent != MAIN:
            raise no_agent(NAME, self.agent, self.documents)
        return found

    def _bad_entry(self, header: Node | None) -> Node | None:
        node = header.get("tools") if header else None
        children = node.children if node is not None and node.kind == "list" else ()
        return next((child for child in children if not is_agent_entry(child.text)), None)

    def _agent_tools(self, header: Node) -> None:
        node = header.get("tools")
        if node is None:
            return
        entries = self.notes.texts(node, "tools")
        if any(child.text == "*" for child in entries):
            return
        place = Place("tools", node)
        tools = [entry(c, c.text, test(literal(c.text))) for c in entries] + [
            entry(node, "complete_task", test("complete_task"))
        ]
        self.rules.only(TOOL, place, tools)
        items = [entry(c, c.text, test(literal(c.text, stars="*"), "gemini-cli")) for c in entries]
        self.rules.only(MCP_TOOL, place, items)
        names = {child.text for child in entries}
        for tool, kinds in (("activate_skill", SKILL), ("invoke_agent", AGENT)):
            if tool not in names:
                self.rules.only(kinds, place, ())
