"""Dialect A, the agent profile: `disabled` / `allowed` / `categories` / `required` lists for each kind.

Source: the first seed design and OpenProgram's later keys; law 3 is the meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from extgate.core.names import Facet, kind_of_block
from extgate.core.patterns import clean
from extgate.core.policy import Entry, Policy, Requirement, Rule, Test
from extgate.dialects.document import Document
from extgate.dialects.node import Node
from extgate.dialects.reading import BLOCKS, Notes, as_document_map, near_block, one_of
from extgate.dialects.toolsets import TOOLSETS

NAME = "profile"
FILES = ("agents/*.yaml", "agents/*.yml", "agents/*.json", "agents/*/agent.json")

_KEYS = {"skills": ("disabled", "allowed", "categories"), "mcp": ("disabled", "allowed", "required")}
_TOOL_KEYS = ("disabled", "allowed", "mode", "enabled", "toolset", "preset", "web_search")
_LISTS = ("disabled", "allowed", "categories", "required")
_MODES = ("automatic", "selected", "none")
_INHERIT = ("ceiling", "own", "union")
_DENIED = "'{name}' is disabled for this agent."
_UNLISTED = "'{name}' is not in this agent's allowed list."
_BRIDGE = " A `tools` list holds for MCP items by their full names."


def read(documents: Sequence[Document]) -> Policy:
    """The policy of one profile file, YAML or JSON.

    Order for each item: `disabled`, then a non-empty `allowed`, then a non-empty `categories`; otherwise allowed.
    An absent block, `{}` and empty lists put no limit. Raises DocumentError for text that does not parse and
    DialectError (with the others in `also`) for a key, type or value without a meaning.
    """
    (document,) = documents
    notes = Notes(document.path)
    root = as_document_map(document.parse(), notes)
    reader = _Reader(notes, root) if root else None
    if reader:
        reader.run()
    notes.raise_errors()
    assert reader is not None
    return Policy(
        dialect=NAME,
        rules=tuple(reader.rules),
        requirements=tuple(reader.requirements),
        id=reader.text("id"),
        file=document.path,
        notes=tuple(notes.findings),
        facts=reader.facts(),
    )


class _Reader:
    def __init__(self, notes: Notes, root: Node) -> None:
        self.notes, self.root = notes, root
        self.rules: list[Rule] = []
        self.requirements: list[Requirement] = []
        self.lists: dict[str, list[Node]] = {}
        self.admits_nothing: Node | None = None
        self.extra: list[tuple[str, Node, list[tuple[Node, str]]]] = []

    def run(self) -> None:
        for key, node in self.root.items.items():
            if key in BLOCKS:
                self.block(key, node)
            else:
                self.own_key(key, node)
        for block in BLOCKS:
            self.add_rules(block)
        self.bridge()

    def text(self, key: str) -> str:
        node = self.root.get(key)
        return node.scalar.strip() if node and isinstance(node.scalar, str) else ""

    def facts(self) -> dict[str, Any]:
        found = {key: node.value for key, node in self.root.items.items() if key not in BLOCKS}
        tests = self.root.get("tests")
        return found | ({"test_places": tests.places} if tests else {})

    # ------------------------------------------------------------------------------------------ shape

    def own_key(self, key: str, node: Node) -> None:
        line = self.root.key_line(key)
        near = near_block(key, BLOCKS)
        # An agent's own prompt is plain text, which no block can be.
        if near and not (key == "prompt" and isinstance(node.scalar, str)):
            self.notes.error("EG002", f"`{key}` looks like `{near}` misspelt", line, f"write `{near}`, or rename it")
        elif key in _LISTS and (node.kind != "scalar" or isinstance(node.scalar, str)):
            fix = f"write it inside its block, as in `tools: {{{key}: […]}}`"
            self.notes.error("EG002", f"`{key}` stands outside a block", line, fix)
        elif key == "patterns":
            self.notes.error("EG007", "`patterns` belongs inside `tools` or `skills`", line, "see the patterns dialect")
        elif node.kind == "map" and any(node.get(name) for name in _LISTS):
            message = f"`{key}` is a key of the agent's own, and gates nothing although it looks like a block"
            self.notes.warn("EG002", message, line, f"the blocks are {', '.join(BLOCKS)}")
        elif key == "inherit" and node.scalar not in _INHERIT:
            self.notes.error("EG003", f"inherit: {one_of(str(node.value), _INHERIT)}", line, "write `ceiling`")
        elif key == "id" and not (isinstance(node.scalar, str) and node.scalar.strip()):
            self.notes.error("EG003", f"id: expected text, got {node.shown}", line, "put it in quotes")

    def block(self, block: str, node: Node) -> None:
        line = self.root.key_line(block)
        is_list = node.kind == "list" or isinstance(node.scalar, str)
        if is_list and block in ("tools", "skills"):
            self.legacy_list(block, node)
        elif node.kind != "map":
            fix = f"write `{block}: {{disabled: […]}}`" + (", or leave the block out" if node.is_null else "")
            self.notes.error("EG003", f"{block}: expected a mapping, got {node.shown}", line, fix)
        else:
            self.keys(block, node)

    def legacy_list(self, block: str, node: Node) -> None:
        means = "allowed" if block == "tools" else "disabled"
        fix = f"write `{block}: {{{means}: […]}}`"
        self.notes.warn("EG006", f"{block}: an old form; the list is read as `{means}`", node.line, fix)
        entries = self.notes.patterns(node, block)
        self.lists[f"{block}.{means}"] = entries
        self.check(entries, f"{block}.{means}", is_deny=means == "disabled")
        if block == "tools" and node.kind == "list" and not node.children:
            self.admits_nothing = node

    def keys(self, block: str, node: Node) -> None:
        allowed_keys = _TOOL_KEYS if block == "tools" else _KEYS.get(block, ("disabled", "allowed"))
        for key, value in node.items.items():
            line = node.key_line(key)
            where = f"{block}.{key}"
            if key == "patterns":
                fix = "keep one of them; `dialect: patterns` reads `patterns`"
                self.notes.error("EG007", f"{where}: mixes the two dialects", line, fix)
            elif key not in allowed_keys:
                near = near_block(key, allowed_keys)
                fix = f"write `{near}`" if near else f"the keys here are {', '.join(allowed_keys)}"
                self.notes.error("EG002", f"{where}: no such key", line, fix)
            elif key in ("mode", "toolset", "preset", "web_search"):
                pass
            else:
                entries = self.notes.patterns(value, where)
                self.lists[where] = entries
                if key != "enabled":
                    self.check(entries, where, is_deny=key in ("disabled", "required"))
        if block == "tools":
            self.later_keys(node)

    def check(self, entries: Sequence[Node], where: str, *, is_deny: bool) -> None:
        for entry in entries:
            self.notes.check_bracket(clean(entry.scalar), where, entry.line, is_deny=is_deny)

    # ------------------------------------------------------------------------------------------ later keys

    def later_keys(self, node: Node) -> None:
        """OpenProgram's `mode`, `enabled`, `toolset`: each can only narrow."""
        if entries := self.lists.pop("tools.enabled", None):
            # A further list of names, not of patterns, as its runtime reads it: the narrower reading.
            self.extra.append(("tools.enabled", entries[0], [(e, clean(e.scalar)) for e in entries]))
        for key in ("toolset", "preset"):
            if value := node.get(key):
                self.toolset(key, value)
        mode = node.get("mode")
        if mode is None:
            return
        if mode.scalar not in _MODES:
            self.notes.error("EG002", f"tools.mode: {one_of(str(mode.value), _MODES)}", mode.line, "write `automatic`")
        has_names = bool(self.lists.get("tools.allowed") or self.extra)
        if mode.scalar == "none" or (mode.scalar == "selected" and not has_names):
            self.admits_nothing = mode

    def toolset(self, key: str, value: Node) -> None:
        where = f"tools.{key}"
        if not isinstance(value.scalar, str):
            self.notes.error("EG003", f"{where}: expected a name, got {value.shown}", value.line, "write its name")
        elif value.scalar not in TOOLSETS:
            message = f"{where}: {value.shown} is not a preset known here"
            self.notes.error("EG009", message, value.line, f"list the names in `allowed`; known: {', '.join(TOOLSETS)}")
        elif not TOOLSETS[value.scalar]:
            self.admits_nothing = value
        else:
            self.extra.append((where, value, [(value, name) for name in TOOLSETS[value.scalar]]))

    # ------------------------------------------------------------------------------------------ rules

    def add_rules(self, block: str) -> None:
        kinds = frozenset(kind_of_block(block))
        self.add(f"{block}.disabled", kinds, self.entries(f"{block}.disabled", _any_name), _DENIED)
        if block == "tools" and self.admits_nothing:
            reason = "this agent has no tools: '{name}' is not listed."
            kinds_of_none = frozenset({"tool", "mcp_tool"})
            self.add("tools.allowed", kinds_of_none, (), reason, unless=True, at=self.admits_nothing)
        by_text = _mcp_allow if block in ("mcp", "resources", "prompts") else _by_name
        self.add(f"{block}.allowed", kinds, self.entries(f"{block}.allowed", by_text), _UNLISTED, unless=True)
        for text, node, names in self.extra if block == "tools" else ():
            self.add(text, kinds, _exact(names, ("name", "sourced")), _UNLISTED, unless=True, at=node)
        if block == "skills":
            entries = tuple(map(_needs_category, self.entries("skills.categories", lambda _: ("category",))))
            reason = f"category '{{category}}' is not permitted (allowed: {', '.join(e.text for e in entries)})."
            self.add("skills.categories", kinds, entries, reason, unless=True)
        for entry in self.lists.get("mcp.required", ()) if block == "mcp" else ():
            pattern = clean(entry.scalar)
            self.requirements.append(Requirement(pattern=pattern, file=entry.file, line=entry.line))

    def entries(self, where: str, facets: Callable[[str], tuple[Facet, ...]]) -> tuple[Entry, ...]:
        nodes = [(node, clean(node.scalar)) for node in self.lists.get(where, ())]
        return tuple(
            Entry(text=text, tests=(Test(facets=facets(text), pattern=text),), file=node.file, line=node.line)
            for node, text in nodes
        )

    def add(
        self,
        text: str,
        kinds: frozenset[str],
        entries: tuple[Entry, ...],
        reason: str,
        *,
        unless: bool = False,
        at: Node | None = None,
    ) -> None:
        """A deny rule; an empty list adds none, unless it stands `at` a node that admits nothing."""
        if entries or at:
            line = at.line if at else self.list_line(text)
            rule = Rule(text=text, effect="deny", kinds=kinds, entries=entries, unless=unless, reason=reason)
            self.rules.append(replace(rule, file=self.notes.file, line=line))

    def list_line(self, text: str) -> int:
        block, _, key = text.partition(".")
        node = self.root.items[block]
        return node.key_line(key) if node.kind == "map" else self.root.key_line(block)

    # ------------------------------------------------------------------------------------------ bridges

    def bridge(self) -> None:
        """What the `tools` block says of MCP items; both bridges only narrow."""
        tools = frozenset({"mcp_tool"})
        denied = self.entries("tools.disabled", lambda _: ("item_any",))
        denied = tuple(e for e in denied if e.text.strip("*?") or not e.text)
        self.add("tools.disabled", tools, denied, _DENIED + _BRIDGE)
        if self.lists.get("mcp.allowed"):
            return
        reason = _UNLISTED + _BRIDGE
        hidden = [block for block in ("resources", "prompts") if not self.lists.get(f"{block}.allowed")]
        others = frozenset(kind for block in hidden for kind in kind_of_block(block))
        allowed = self.entries("tools.allowed", _full_name_allow)
        self.add("tools.allowed", tools, allowed, reason, unless=True)
        if allowed or self.admits_nothing:
            at = self.admits_nothing or self.lists["tools.allowed"][0]
            self.add("tools.allowed", others, (), reason, unless=True, at=at)
        for text, node, names in self.extra:
            self.add(text, tools, _exact(names, ("item", "full")), reason, unless=True, at=node)
            self.add(text, others, (), reason, unless=True, at=node)


def _exact(names: Sequence[tuple[Node, str]], facets: tuple[Facet, ...]) -> tuple[Entry, ...]:
    """Entries that are literal names."""
    return tuple(
        Entry(text=name, tests=(Test(facets=facets, pattern=name, is_exact=True),), file=node.file, line=node.line)
        for node, name in names
    )


def _needs_category(entry: Entry) -> Entry:
    """An uncategorised skill fits `""` and a lone `*` only: other patterns that match the empty text need a letter."""
    if entry.text in ("", "*") or entry.text.strip("*"):
        return entry
    return replace(entry, tests=(Test(facets=("category",), pattern="?*"),))


def _any_name(text: str) -> tuple[Facet, ...]:
    # A bare pattern is not held against `source/name`: `b*` means tools that begin so, not all of `builtin`.
    return ("any", "sourced") if "/" in text else ("any",)


def _by_name(text: str) -> tuple[Facet, ...]:
    return ("name", "sourced") if "/" in text or not text.strip("*") else ("name",)


def _mcp_allow(text: str) -> tuple[Facet, ...]:
    """Which spellings of an MCP item an allow pattern is held against: told by the pattern's own text."""
    facets: list[Facet] = ["item"] if "/" in text else []
    facets += [("full_plain" if "/" in text else "full")] if "__" in text else []
    return tuple(facets) or ("server",)


def _full_name_allow(text: str) -> tuple[Facet, ...]:
    """The same where only full names count: a pattern without `/` and `__` names none, and stays among tools."""
    return tuple(facet for facet in _mcp_allow(text) if facet != "server")
