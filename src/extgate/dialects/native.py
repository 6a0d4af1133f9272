"""What the readers of runtimes' own files share: rules put together in the order that decides, and scopes of files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from extgate.core.extension import KINDS
from extgate.core.names import Facet
from extgate.core.policy import ArgTest, Effect, Entry, Policy, Rule, Test
from extgate.dialects.commands import literal
from extgate.dialects.document import Document
from extgate.dialects.node import Node
from extgate.dialects.reading import Notes, near_block
from extgate.errors import DialectError

MAIN = "main"
"""A runtime's main agent."""
DEFAULT = "default"
BUILT_IN = "built-in agent"
NOT_IN_CHILDREN = ("never in sub-agents", "sub-agents have none")
"""Texts of rules that no file has: what a runtime does by itself, for a built-in agent, and for every sub-agent."""

TOOL = frozenset({"tool"})
SKILL = frozenset({"skill"})
AGENT = frozenset({"subagent"})
MCP_TOOL = frozenset({"mcp_tool"})
MCP = frozenset(kind.name for kind in KINDS.values() if kind.is_mcp)
EVERYTHING = frozenset(KINDS)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rule stands: the list it is in, and its node."""

    text: str
    node: Node | None = None


class RuleList:
    """Rules in the order in which they decide, each with the file and line it came from."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.listed: list[Rule] = []

    def add(
        self,
        effect: Effect,
        kinds: frozenset[str],
        place: Place,
        *ways: Sequence[Test],
        when: Sequence[ArgTest] = (),
        text: str = "",
        reason: str = "",
        is_listed: bool = False,
    ) -> None:
        """A rule that holds when all tests of one of the `ways` do; without a way, for everything of these kinds.

        is_listed: in the runtime it refuses the call and leaves the thing in the model's view.
        """
        node = place.node
        text = text or (node.text if node and node.kind == "scalar" else place.text)
        file, line = (node.file, node.line) if node else (None, None)
        ways = ways or ((Test(facets=("type",), pattern="*"),),)
        entries = tuple(Entry(text=text, tests=tuple(way), file=file, line=line) for way in ways)
        rule = Rule(text=place.text, effect=effect, kinds=kinds, entries=entries, when=tuple(when), reason=reason,
                    file=file, line=line)  # fmt: skip
        self.rules.append(rule)
        if is_listed:
            self.listed.append(rule)

    def only(
        self,
        kinds: frozenset[str],
        place: Place,
        entries: Iterable[Entry],
        *,
        reason: str = "",
        line: int | None = None,
    ) -> None:
        """A deny for all of these kinds but what an entry admits."""
        file = place.node.file if place.node else None
        line = line or (place.node.line if place.node else None)
        reason = reason or "'{name}' is not in this agent's list."
        self.rules.append(Rule(text=place.text, effect="deny", kinds=kinds, entries=tuple(entries), unless=True,
                               reason=reason, file=file, line=line))  # fmt: skip


def test(pattern: str, *facets: Facet) -> Test:
    """A test of one pattern; facets default to every spelling."""
    return Test(facets=facets or ("any",), pattern=pattern)


def exact(name: str, *facets: Facet) -> Test:
    """A test of one literal name."""
    return Test(facets=facets or ("any",), pattern=name, is_exact=True)


def entry(node: Node | None, text: str, *tests: Test) -> Entry:
    """One admitting entry of an allow-list."""
    return Entry(text=text, tests=tests, file=node.file if node else None, line=node.line if node else None)


def is_of_runtime(rule: Rule) -> bool:
    """Whether it is what the runtime does by itself, and nobody wrote it."""
    return rule.file is None and (rule.text in (DEFAULT, *NOT_IN_CHILDREN) or rule.text.startswith(f"{BUILT_IN} "))


def scope_of(document: Document, default: str = "project") -> str:
    """The scope that a document belongs to (`managed`, `flags`, `local`, `project`, `user`, ...)."""
    return document.facts.get("scope", default)


def has_wildcard(text: str) -> bool:
    return "*" in text or "?" in text


class NativeNotes(Notes):
    """Notes over several files: each error and finding names the file of the node it is about."""

    def at(self, node: Node | None) -> NativeNotes:
        """The same notes, speaking of the node's file."""
        self.file = node.file if node else self.file
        return self

    def texts(self, node: Node | None, where: str) -> list[Node]:
        """A list of texts; a lone text is one entry, what is no text an error. Absent: none."""
        return self.at(node).patterns(node, where) if node is not None else []

    def mapping(self, node: Node | None, where: str) -> Node | None:
        """A mapping; anything else is an error. Absent or empty YAML: None."""
        if node is None or node.is_null:
            return None
        if node.kind != "map":
            self.at(node).error("EG003", f"{where}: expected a mapping, got {node.shown}", node.line, "write a mapping")
            return None
        return node

    def flag(self, node: Node | None, where: str, *, default: bool, in_doubt: bool) -> bool:
        """A boolean; anything else is a finding, and `in_doubt`."""
        if node is None:
            return default
        if isinstance(node.scalar, bool):
            return node.scalar
        message = f"{where}: expected true or false, got {node.shown}"
        self.at(node).warn("EG003", f"{message}; read as {str(in_doubt).lower()}", node.line, "write true or false")
        return in_doubt

    def unknown_keys(self, node: Node, known: Iterable[str], where: str) -> dict[str, Node]:
        """The mapping with near misses of known keys read as those; every other unknown key is a finding."""
        names = {plain_key(name): name for name in known}
        found: dict[str, Node] = {}
        for key, value in node.items.items():
            name = names.get(plain_key(key)) or near_block(key, names.values())
            shown = f"{where}.{key}" if where else key
            if name is None:
                message = f"`{shown}`: no such key is known here, so it decides nothing"
                self.at(node).warn("EG071", message, node.key_line(key), "see that it restricts nothing")
            elif name != key:
                message = f"`{shown}` looks like `{name}` misspelt and is read as it; its runtime ignores it"
                self.at(node).warn("EG072", message, node.key_line(key), f"write `{name}`")
            found.setdefault(name or key, value)
        return found


def merged(nodes: Sequence[Node]) -> Node | None:
    """Mappings put over each other, later ones on top: tables merge, everything else is replaced. None for none."""
    if not nodes:
        return None
    last = nodes[-1]
    if last.kind != "map":
        return last
    maps = [node for node in nodes if node.kind == "map"]
    keys = dict.fromkeys(key for node in maps for key in node.items)
    items = {key: merged([node.items[key] for node in maps if key in node.items]) for key in keys}
    lines = {key: node.key_line(key) for node in maps for key in node.items}
    return Node(
        file=last.file, line=last.line, kind="map", items={k: n for k, n in items.items() if n}, key_lines=lines
    )


def plain_key(key: str) -> str:
    """A key without case and separators, for near misses."""
    return "".join(char for char in key.casefold() if char.isalnum())


def policy(
    name: str,
    rules: RuleList,
    notes: NativeNotes,
    *,
    agent: str,
    file: str | None,
    facts: dict[str, object] | None = None,
) -> Policy:
    """The finished layer of one agent; everything that no rule speaks of is allowed. Raises what `notes` holds."""
    notes.raise_errors()
    return Policy(
        dialect=name,
        rules=tuple(rules.rules),
        id=f"{name}/{agent}",
        file=file,
        notes=tuple(dict.fromkeys(notes.findings)),
        facts={"listed": tuple(rules.listed), **(facts or {})},
    )


def no_agent(name: str, agent: str, documents: Sequence[Document]) -> DialectError:
    """What is raised for an agent that the documents do not configure."""
    file = documents[0].path if documents else name
    return DialectError(f"no agent `{agent}` of {name} here", file=file, fix=f"`{MAIN}` is the main agent")


def all_but(prefix: str, names: set[str]) -> list[str]:
    """Globs that together match every name after the prefix but these."""
    head = literal(prefix)
    found = []
    beginnings = {name[:n] for name in names for n in range(len(name) + 1)}
    for begin in sorted(beginnings):
        following = sorted({name[len(begin)] for name in names if name.startswith(begin) and len(name) > len(begin)})
        if begin not in names:
            found.append(f"{head}{literal(begin)}")
        found.append(f"{head}{literal(begin)}{_other_than(following)}*")
    return found


def _other_than(characters: list[str]) -> str:
    """One character that is none of these."""
    if not characters:
        return "?"
    last = [c for c in characters if c == "-"]
    first = [c for c in characters if c == "]"]
    return "[!" + "".join([*first, *(c for c in characters if c not in "]-"), *last]) + "]"
