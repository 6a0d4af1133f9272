"""Codex: `config.toml` of every scope, profiles, agents' files and command rules, as one policy for an agent.

User, profile, trusted project, command line: tables merge, lists and values are replaced by the later one. Source:
openai/codex docs "Configuration"; 0.171.0 as run; seen 2026-11-30. Divergences: `divergences.toml`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from extgate.core.policy import Effect, Policy
from extgate.dialects.codex_rules import CommandRule, command_rules
from extgate.dialects.codex_servers import Servers
from extgate.dialects.document import Document
from extgate.dialects.native import (
    AGENT,
    MAIN,
    SKILL,
    TOOL,
    NativeNotes,
    Place,
    RuleList,
    exact,
    merged,
    no_agent,
    policy,
    scope_of,
    test,
)
from extgate.dialects.node import Node
from extgate.errors import DocumentError

NAME = "codex"
FILES = (".codex/config.toml", ".codex/agents/*.toml", ".codex/rules/*.rules", "config.toml")
USER_FILES = ("~/.codex/config.toml", "~/.codex/agents/*.toml", "~/.codex/rules/*.rules")
SERVER_FILES = (".codex/config.toml", "config.toml", "~/.codex/config.toml")
SKILLS = (".codex/skills", ".agents/skills", "~/.codex/skills")
SUBAGENTS = ("default", "explorer", "worker")
MANAGED_FILES = ("/etc/codex/managed_config.toml",)
MARKS = ("mcp_servers", "sandbox_mode", "approval_policy", "features", "model_provider")
"""Keys of which a `config.toml` at a workspace's root must have one to be Codex'."""

_SCOPES = ("user", "profile", "project", "flags", "managed")
_FEATURES: dict[str, tuple[str, ...]] = {
    "shell_tool": ("exec_command", "write_stdin", "shell"),
    "multi_agent": ("multi_agent_v1::*",),
    "collab": ("multi_agent_v1::*",),
    "goals": ("create_goal", "get_goal", "update_goal"),
}


def agents(documents: Sequence[Document]) -> tuple[str, ...]:
    """The main agent, and the agents with a file of their own, sorted."""
    return (MAIN, *sorted(name for document in documents if (name := _agent_name(document))))


def spawned(documents: Sequence[Document]) -> tuple[str, ...]:
    """Names of agents that another can start."""
    return agents(documents)[1:]


def read(documents: Sequence[Document], agent: str = MAIN, *, version: str = "") -> Policy:
    """The policy of one agent over all scopes. Raises DocumentError, or DialectError (with the others in `also`)."""
    return _Reader(documents, agent, bool(version)).policy()


def _is_agent(document: Document) -> bool:
    return "/agents/" in f"/{document.path}" and document.path.endswith(".toml")


def _agent_name(document: Document) -> str:
    """The name that an agent's file gives; without one, a description and instructions it is no agent."""
    if not _is_agent(document):
        return ""
    try:
        root = document.parse("toml")
    except DocumentError:
        return document.path.rpartition("/")[2].removesuffix(".toml")
    has_all = all(isinstance(node.scalar, str) for key in ("name", "description", "developer_instructions")
                  for node in [root.get(key)] if node is not None) and len(root.items) >= 3  # fmt: skip
    name = root.get("name")
    return str(name.scalar) if has_all and name is not None else ""


class _Reader:
    def __init__(self, documents: Sequence[Document], agent: str, as_run: bool) -> None:
        self.documents, self.agent, self.as_run = documents, agent, as_run
        self.notes = NativeNotes(documents[0].path if documents else NAME)
        self.rules = RuleList()
        self.root = self._config()
        self.own = self._own()

    def _config(self) -> Node:
        found = []
        configs = [d for d in self.documents if d.path.endswith(".toml") and not _is_agent(d)]
        for document in sorted(configs, key=lambda d: _SCOPES.index(scope_of(d))):
            if scope_of(document) == "project" and document.facts.get("trusted") == "no":
                continue
            root = self.notes.mapping(document.parse("toml"), document.path)
            found += [root] if root is not None else []
            self._profile(root)
        return merged(found) or Node(file=NAME, line=1, kind="map")

    def _profile(self, root: Node | None) -> None:
        """A profile that is asked for and not there is an error: nobody knows what was to be in force."""
        node = root.get("profile") if root else None
        has_file = any(scope_of(document) == "profile" for document in self.documents)
        if node is not None and not has_file and root is not None and not self.as_run:
            fix = f"write it as {node.text}.config.toml beside config.toml"
            self.notes.at(node).error("EG003", f"profile: {node.shown} is not there", node.line, fix)

    def _own(self) -> Node | None:
        if self.agent == MAIN:
            return None
        for document in self.documents:
            if _agent_name(document) == self.agent:
                return document.parse("toml")
        raise no_agent(NAME, self.agent, self.documents)

    def policy(self) -> Policy:
        for root in filter(None, (self.own, self.root)):
            self._features(root)
        for root in [self.own] if self.own and not self.as_run else []:
            self._web(root)
            self._servers(root).narrow()
        self._web(self.root)
        self._skills()
        self._commands()
        servers = self._servers(self.root)
        servers.add()
        if (hooks := self.root.get("hooks")) is not None:
            message = "hooks: `codex exec` skips hooks that nobody trusted, without a word"
            self.notes.at(hooks).warn(
                "EG085", message, self.root.key_line("hooks"), "trust them in an interactive session"
            )
        file = self.own.file if self.own else self.root.file
        facts: dict[str, object] = {"runtime": NAME, "unlisted": self._unlisted()}
        found = policy(NAME, self.rules, self.notes, agent=self.agent, file=file, facts=facts)
        return replace(found, requirements=tuple(servers.requirements))

    def _text(self, key: str, root: Node | None = None) -> str:
        node = (root or self.root).get(key)
        return node.scalar if node is not None and isinstance(node.scalar, str) else ""

    @property
    def _approves_all(self) -> bool:
        return self._text("sandbox_mode") == "danger-full-access" and self._text("approval_policy") == "never"

    # ------------------------------------------------------------------------------------------ built-in tools

    def _features(self, root: Node) -> None:
        block = self.notes.mapping(root.get("features"), "features")
        for key, node in block.items.items() if block else ():
            if key in _FEATURES and not self.notes.flag(node, f"features.{key}", default=True, in_doubt=False):
                place = Place("features", node)
                self.rules.add("deny", TOOL, place, *([test(name)] for name in _FEATURES[key]), text=f"{key} = false")
                if "agent" in key or key == "collab":
                    self.rules.add("deny", AGENT, place, text=f"{key} = false")

    def _web(self, root: Node) -> None:
        node = root.get("web_search")
        if node is not None and node.scalar == "disabled":
            self.rules.add("deny", TOOL, Place("web_search", node), [exact("web_search")], text="disabled")
        for block, key, tool in (("tools", "web_search", "web_search"), ("tools", "view_image", "view_image"),
                                 ("features", "web_search_request", "web_search")):  # fmt: skip
            table = root.get(block)
            old = table.get(key) if table is not None and table.kind == "map" else None
            if old is not None and old.scalar is False and not self.as_run:
                self.rules.add("deny", TOOL, Place(block, old), [exact(tool)], text=f"{key} = false")
                message = f"{block}.{key}: an old key that 0.171.0 does nothing with"
                fix = 'write `web_search = "disabled"`' if tool == "web_search" else "deny the tool at the gate"
                self.notes.at(old).warn("EG076", message, old.line, fix)

    def _commands(self) -> None:
        found: list[CommandRule] = []
        for document in self.documents:
            if document.path.endswith(".rules"):
                found += command_rules(document)
        shells = [[exact("exec_command")], [exact("shell")]]
        effects: tuple[Effect, ...] = ("deny", "ask", "allow")
        for effect in effects:
            for rule in found:
                if rule.effect == effect:
                    place = Place("prefix_rule", rule.node)
                    self.rules.add(effect, TOOL, place, *shells, when=[rule.when(unwraps=not self.as_run)])
        if self._text("approval_policy") == "untrusted":
            place = Place("approval_policy", self.root.items["approval_policy"])
            self.rules.add("ask", TOOL, place, *shells)

    def _servers(self, root: Node) -> Servers:
        return Servers(self.rules, self.notes, root, as_run=self.as_run, approves_all=self._approves_all)

    # ------------------------------------------------------------------------------------------ skills

    def _skills(self) -> None:
        block = self.notes.mapping(self.root.get("skills"), "skills")
        entries = block.get("config") if block else None
        for node in entries.children if entries is not None and entries.kind == "list" else ():
            if self.notes.flag(node.get("enabled"), "skills.config.enabled", default=True, in_doubt=False):
                continue
            name, path = node.get("name"), node.get("path")
            place = Place("skills.config", name or path or node)
            if name is not None:
                self.rules.add("deny", SKILL, place, [exact(name.text) if self.as_run else test(name.text)])
            elif path is not None and (path.text.endswith("/SKILL.md") or not self.as_run):
                folder = path.text.replace("\\", "/").removesuffix("/SKILL.md").rstrip("/").rpartition("/")[2]
                self.rules.add("deny", SKILL, place, [exact(folder) if self.as_run else test(folder)])
            if (name or path) is None:
                self.notes.at(node).error("EG003", "skills.config: an entry names no skill", node.line, "write `name`")

    def _unlisted(self) -> tuple[object, ...]:
        """As run, skills that the prompt does not tell of and whose files stay open."""
        block = self.root.get("skills")
        node = block.get("include_instructions") if block is not None and block.kind == "map" else None
        if node is None or node.scalar is not False:
            return ()
        rules = RuleList()
        rules.add("deny", SKILL, Place("skills.include_instructions", node))
        return tuple(rules.rules)
