"""opencode: configuration of every scope and agents' files, as one policy for an agent.

Order: built-in defaults, the agent's own built-in rules, the configuration, the agent's configuration; the last rule
that matches wins, so the list is read backwards. Source: opencode.ai docs "Permissions", "Agents", "Config"; 1.18.33 as
run; seen 2026-11-30. Documented: each later file comes after the earlier ones. Divergences: `divergences.toml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from extgate.core.patterns import matches
from extgate.core.policy import Effect, Policy
from extgate.dialects.commands import literal
from extgate.dialects.document import Document, frontmatter
from extgate.dialects.native import (
    AGENT,
    BUILT_IN,
    DEFAULT,
    MAIN,
    MCP,
    NOT_IN_CHILDREN,
    TOOL,
    NativeNotes,
    Place,
    RuleList,
    exact,
    no_agent,
    policy,
    test,
)
from extgate.dialects.node import Node
from extgate.dialects.opencode_rules import LEGACY, Emitter, Row
from extgate.errors import DocumentError

NAME = "opencode"
FILES = (
    *("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
    *(f".opencode/{folder}/**/*.md" for folder in ("agent", "agents", "mode", "modes")),
)
USER_FILES = ("~/.config/opencode/config.json", "~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc")
SERVER_FILES = (*FILES[:4],)
SKILLS = (".opencode/skill", ".opencode/skills", ".claude/skills", "~/.config/opencode/skill")
MARKS: tuple[str, ...] = ()
SUBAGENTS = ("explore", "general")
MANAGED_FILES = ("/etc/opencode/opencode.json", "/etc/opencode/opencode.jsonc")

_SCOPES = ("user", "global", "project", "managed")
_KEYS = (
    *("$schema", "permission", "tools", "agent", "mode", "mcp", "model", "small_model", "provider", "theme", "share"),
    *("autoupdate", "keybinds", "plugin", "instructions", "command", "formatter", "lsp", "username", "default_agent"),
    *("experimental", "disabled_providers", "enabled_providers", "snapshot", "watcher", "server", "compaction", "tui"),
    *("layout", "skills", "logLevel", "enterprise", "subagent_depth", "autoshare", "attachment"),
)
_AGENT_KEYS = (
    *("description", "mode", "model", "prompt", "permission", "tools", "temperature", "top_p", "disable", "hidden"),
    *("color", "steps", "maxSteps", "options", "variant", "name"),
)
_ACTIONS: tuple[Effect, ...] = ("allow", "ask", "deny")
_FLAT = ("webfetch", "websearch", "todowrite", "question", "doom_loop")
_BUILTIN_AGENTS = ("build", "explore", "general", "plan")

_Written = str | dict[str, object]
_DEFAULTS: dict[str, _Written] = {
    "*": "allow",
    "question": "deny",
    "plan_enter": "deny",
    "plan_exit": "deny",
    "read": {"*": "allow", "*.env": "ask", "*.env.*": "ask", "*.env.example": "allow"},
}
_OWN: dict[str, dict[str, _Written]] = {
    "build": {"question": "allow", "plan_enter": "allow"},
    "plan": {"question": "allow", "plan_exit": "allow", "edit": {"*": "deny", ".opencode/plans/*.md": "allow"}},
    "general": {"todowrite": "deny"},
    "explore": {
        "*": "deny",
        **dict.fromkeys(("grep", "glob", "list", "bash", "webfetch", "websearch", "read"), "allow"),
    },
}


def agents(documents: Sequence[Document]) -> tuple[str, ...]:
    """The main agent, opencode's own, and those that are configured, sorted."""
    return (MAIN, *sorted({*_BUILTIN_AGENTS, *(name for name, _ in _agents(documents, in_doubt=True))}))


def spawned(documents: Sequence[Document]) -> tuple[str, ...]:
    """Names of agents that another can start: those that are no primary ones."""
    primary = {name for name, node in _agents(documents, in_doubt=True) if _mode(node) == "primary"}
    return tuple(name for name in agents(documents) if name not in {MAIN, "build", "plan", *primary})


def read(documents: Sequence[Document], agent: str = MAIN, *, version: str = "") -> Policy:
    """The policy of one agent over all scopes. Raises DocumentError, or DialectError (with the others in `also`)."""
    reader = _Reader(documents, bool(version))
    return reader.policy(agent)


def _agents(documents: Sequence[Document], *, in_doubt: bool) -> Iterator[tuple[str, Node | None]]:
    """Names of configured agents with what their files say; None for a file that does not parse, if `in_doubt`."""
    for document in documents:
        if document.path.endswith(".md"):
            parts = PurePath(document.path).with_suffix("").parts
            at = next(
                (n for n, part in enumerate(parts) if part in ("agent", "agents", "mode", "modes")), len(parts) - 2
            )
            name = "/".join(parts[at + 1 :])
            try:
                header, _ = frontmatter(document.text, document.path)
            except DocumentError:
                if not in_doubt:
                    raise
                header = None
            yield name, header
            continue
        try:
            root = document.parse("json")
        except DocumentError:
            if not in_doubt:
                raise
            continue
        for key in ("agent", "mode"):
            block = root.get(key)
            yield from block.items.items() if block is not None and block.kind == "map" else ()


class _Reader:
    def __init__(self, documents: Sequence[Document], as_run: bool) -> None:
        self.as_run = as_run
        self.documents = sorted(documents, key=_order)
        self.notes = NativeNotes(self.documents[0].path if self.documents else NAME)
        self.rules = RuleList()
        self.root = next((d.facts["root"] for d in documents if "root" in d.facts), "")
        files = [d for d in self.documents if not d.path.endswith(".md")]
        maps = [self.notes.mapping(d.parse("json"), d.path) for d in files]
        self.config = [self.notes.unknown_keys(root, _KEYS, "") for root in maps if root is not None]

    def policy(self, agent: str) -> Policy:
        name = self._main() if agent == MAIN else agent
        own = [node for found, node in _agents(self.documents, in_doubt=self.as_run) if found == name]
        if not own and name not in _BUILTIN_AGENTS:
            raise no_agent(NAME, agent, self.documents)
        rows = [*self._written(_DEFAULTS, DEFAULT), *self._written(_OWN.get(name, {}), f"{BUILT_IN} {name}")]
        rows += self._blocks(self.config, "permission")
        blocks = [
            self.notes.unknown_keys(node, _AGENT_KEYS, f"agent.{name}") for node in own if node and node.kind == "map"
        ]
        own_rows = self._blocks(blocks, f"agent.{name}.permission")
        self._undone(rows, own_rows)
        rows += own_rows
        self._servers()
        if any(str(block["mode"].scalar) == "subagent" for block in blocks if "mode" in block) or name == "general":
            self._denied_below(rows)
        Emitter(self.rules, self.root, as_run=self.as_run).emit(list(reversed(rows)))
        file = next((node.file for node in own if node), self.documents[0].path if self.documents else None)
        return policy(NAME, self.rules, self.notes, agent=agent, file=file, facts={"runtime": NAME})

    def _undone(self, rows: Sequence[Row], own: Sequence[Row]) -> None:
        """Notes each deny for everybody that a rule of the agent's own comes after."""
        for row in rows:
            if row.action != "deny" or row.place.node is None:
                continue
            over = [o for o in own if o.action != "deny" and matches(row.key, literal(o.key, stars="*?"))]
            for later in over[:1]:
                node = later.place.node or row.place.node
                message = f"{later.place.text}: `{later.key}` undoes the deny of `{row.key}` that holds for everybody"
                self.notes.at(node).warn("EG083", message, node.line, "leave it out, if the deny is meant")

    def _main(self) -> str:
        named = [str(block["default_agent"].scalar) for block in self.config if "default_agent" in block]
        return named[-1] if named else "build"

    # ------------------------------------------------------------------------------------------ rows

    def _written(self, rules: dict[str, _Written], text: str) -> list[Row]:
        """Rules of opencode's own."""
        found = []
        for key, value in rules.items():
            pairs = value.items() if isinstance(value, dict) else [("*", value)]
            found += [Row(key, pattern, action, Place(text)) for pattern, action in pairs]  # type: ignore[arg-type]
        return found

    def _blocks(self, blocks: Sequence[dict[str, Node]], where: str) -> list[Row]:
        """Each block's legacy `tools`, then its `permission`. As run, all blocks are one map first."""
        rows = []
        for block in blocks:
            rows += self._legacy(block.get("tools"), where)
            rows += [] if self.as_run else self._permission(block.get("permission"), where)
        return rows + (
            self._merged([b["permission"] for b in blocks if "permission" in b], where) if self.as_run else []
        )

    def _legacy(self, node: Node | None, where: str) -> list[Row]:
        block = self.notes.mapping(node, "tools")
        found = []
        for name, value in block.items.items() if block else ():
            is_on = self.notes.flag(value, f"tools.{name}", default=True, in_doubt=False)
            place = Place(where.replace("permission", "tools"), value)
            found.append(Row(LEGACY.get(name, name), "*", "allow" if is_on else "deny", place))
        return found

    def _merged(self, nodes: Sequence[Node], where: str) -> list[Row]:
        """A deep merge that leaves each key where it was first seen."""
        rows: dict[tuple[str, str], Row] = {}
        order: dict[str, None] = {}
        for node in nodes:
            for row in self._permission(node, where):
                order.setdefault(row.key)
                rows[row.key, row.pattern] = row
        return [row for key in order for (name, _), row in rows.items() if name == key]

    def _permission(self, node: Node | None, where: str) -> list[Row]:
        if node is None:
            return []
        if node.kind == "scalar":
            action = self._action(node, where)
            return [Row("*", "*", action, Place(where, node))] if action else []
        block = self.notes.mapping(node, where)
        found = []
        for key, value in block.items.items() if block else ():
            place = f"{where}.{key}"
            if value.kind == "scalar":
                pairs = [("*", value)]
            elif key in _FLAT or value.kind != "map":
                fix = 'write "allow", "ask" or "deny"'
                self.notes.at(value).error("EG003", f"{place}: expected one action, got {value.shown}", value.line, fix)
                continue
            else:
                pairs = list(value.items.items())
            for pattern, action_node in pairs:
                action = self._action(action_node, place)
                if action:
                    found.append(Row(key, pattern, action, Place(place, _named(action_node, pattern, key))))
        return found

    def _action(self, node: Node, where: str) -> Effect | None:
        for action in _ACTIONS:
            if node.scalar == action:
                return action
        fix = "write allow, ask or deny; opencode does not start with anything else"
        self.notes.at(node).error("EG003", f"{where}: {node.shown} is no action", node.line, fix)
        return None

    def _servers(self) -> None:
        for block in self.config:
            for name, node in _items(self.notes.mapping(block.get("mcp"), "mcp")):
                on = self.notes.flag(node.get("enabled"), f"mcp.{name}.enabled", default=True, in_doubt=False)
                if not on:
                    self.rules.add("deny", MCP, Place("mcp", node), [exact(name, "server")], text=f"{name}: disabled")

    def _denied_below(self, rows: Sequence[Row]) -> None:
        """What a sub-agent has only when its rules speak of it."""
        for key, kinds in (("todowrite", TOOL), ("task", TOOL | AGENT)):
            if not any(row.key == key for row in rows):
                way = [] if key == "task" else [[test(key)]]
                self.rules.add("deny", kinds - TOOL or kinds, Place(NOT_IN_CHILDREN[1]), *way, text=key)
                self.rules.add("deny", TOOL, Place(NOT_IN_CHILDREN[1]), [test(key)], text=key)


def _mode(node: Node | None) -> str:
    found = node.get("mode") if node is not None and node.kind == "map" else None
    return str(found.scalar) if found else ""


def _items(node: Node | None) -> list[tuple[str, Node]]:
    return list(node.items.items()) if node else []


def _order(document: Document) -> tuple[int, int, int]:
    scope = document.facts.get("scope", "project")
    place = _SCOPES.index(scope) if scope in _SCOPES else 2
    return int(document.facts.get("order", "0")), place, int(".opencode" in PurePath(document.path).parts)


def _named(node: Node, pattern: str, key: str) -> Node:
    text = key if pattern == "*" else f"{key}: {pattern}"
    return Node(file=node.file, line=node.line, kind="scalar", scalar=text, text=text)
