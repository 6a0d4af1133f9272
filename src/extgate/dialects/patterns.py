"""Dialect B, patterns: `category:module:name` for tools, `category:name` for skills, `!` in front to deny.

Source: the second seed design and msAgent at 9eb360f; law 4 is the meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from extgate.core.extension import KINDS
from extgate.core.names import Facet, show
from extgate.core.patterns import matches, unclosed_bracket
from extgate.core.policy import Entry, Policy, Rule, Test
from extgate.dialects.document import Document
from extgate.dialects.node import Node
from extgate.dialects.reading import BLOCKS, Notes, as_document_map, near_block, one_of

NAME = "patterns"
FILES = (".msagent/agents/*.yml", ".msagent/agents/*.yaml", ".msagent/subagents/*.yml")

_KEYS = {"tools": ("patterns", "use_catalog", "output_max_tokens"), "skills": ("patterns", "use_catalog")}
_PARTS: dict[str, tuple[tuple[Facet, ...], ...]] = {
    "tools": (("type",), ("module",), ("own",)),
    "skills": (("folder",), ("own",)),
}
_DENY_PARTS: dict[str, tuple[tuple[Facet, ...], ...]] = {
    "tools": (("type",), ("module",), ("own",)),
    "skills": (("module",), ("own", "item_any")),
}
_FOREIGN = frozenset({"mcp", "resources", "prompts", "disabled", "allowed", "categories", "required", "patterns"})
_TOOL_KINDS = frozenset({"tool", *(kind.name for kind in KINDS.values() if kind.is_mcp)})
_KINDS = {"tools": _TOOL_KINDS, "skills": frozenset({"skill"})}
_DENIED = "'{name}' is disabled for this agent."
_YES = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


def read(documents: Sequence[Document]) -> Policy:
    """The policy of one agent file: what some positive pattern and no negative pattern matches.

    No positive pattern, or no block: nothing of that kind. Raises DocumentError for text that does not parse,
    DialectError (with the others in `also`) for an ill-shaped block, a pattern that is not a string, or an unclosed
    `[` in a negative one.
    """
    (document,) = documents
    notes = Notes(document.path)
    root = as_document_map(document.parse(), notes)
    rules: list[Rule] = []
    facts: dict[str, Any] = {}
    if root:
        facts = {key: node.value for key, node in root.items.items() if key not in _KEYS}
        if tests := root.get("tests"):
            facts["test_places"] = tests.places
        _check_keys(root, notes)
        for block in _KEYS:
            patterns, uses_catalog = _block(root, block, notes)
            rules += _rules(block, patterns, notes, root)
            if uses_catalog:
                facts["catalog"] = frozenset({*facts.get("catalog", ()), *_KINDS[block]})
        rules += _subagent_rules(root, rules, notes)
    notes.raise_errors()
    name = facts.get("id") or facts.get("name")
    return Policy(
        dialect=NAME,
        rules=tuple(rules),
        default="deny",
        id=name if isinstance(name, str) else "",
        file=document.path,
        notes=tuple(notes.findings),
        facts=facts,
    )


def _check_keys(root: Node, notes: Notes) -> None:
    for key, node in root.items.items():
        near = near_block(key, BLOCKS)
        line = root.key_line(key)
        if key in _FOREIGN or (key == "subagents" and node.kind != "list"):
            fix = "write `mcp:SERVER:*` and the like in `tools.patterns`"
            notes.error("EG007", f"`{key}` belongs to the profile dialect, or inside a block", line, fix)
        elif near:
            notes.error("EG002", f"`{key}` looks like `{near}` misspelt", line, f"write `{near}`, or rename it")
        elif key == "inherit" and node.scalar not in ("ceiling", "own", "union"):
            choices = ("ceiling", "own", "union")
            notes.error("EG003", f"inherit: {one_of(str(node.value), choices)}", line, "write `ceiling`")


def _block(root: Node, block: str, notes: Notes) -> tuple[list[Node], bool]:
    """The block's pattern entries, and whether it is delivered through the catalog."""
    node = root.get(block)
    if node is None:
        return [], False
    line = root.key_line(block)
    if node.kind == "list" and block == "tools" and _is_version_1(root):
        notes.warn(
            "EG006", "tools: an old form; the list is read as `patterns`", line, "write `tools: {patterns: […]}`"
        )
        return notes.patterns(node, "tools"), False
    if node.kind != "map":
        notes.error(
            "EG003", f"{block}: expected a mapping, got {node.shown}", line, f"write `{block}: {{patterns: […]}}`"
        )
        return [], False
    for key in node.items:
        if key in ("disabled", "allowed", "categories", "required"):
            at = max(node.key_line(key), node.key_line("patterns"))
            notes.error("EG007", f"{block}: mixes the two dialects, `{key}` and `patterns`", at, "keep one of them")
        elif key not in _KEYS[block]:
            keys = ", ".join(_KEYS[block])
            notes.error("EG002", f"{block}.{key}: no such key", node.key_line(key), f"the keys here are {keys}")
    entries = node.get("patterns")
    patterns = notes.patterns(entries, f"{block}.patterns", is_scalar_read=False) if entries else []
    return patterns, _uses_catalog(node, block, notes)


def _is_version_1(root: Node) -> bool:
    version = root.get("version")
    return version is not None and str(version.value).split(".")[0] in ("0", "1")


def _uses_catalog(node: Node, block: str, notes: Notes) -> bool:
    flag = node.get("use_catalog")
    if flag is None or isinstance(flag.scalar, bool):
        return bool(flag and flag.scalar)
    word = flag.scalar.strip().lower() if isinstance(flag.scalar, str) else ""
    if word not in _YES:
        fix = "write true or false"
        notes.error("EG003", f"{block}.use_catalog: expected true or false, got {flag.shown}", flag.line, fix)
    return _YES.get(word, False)


@dataclass(frozen=True, slots=True)
class _Pattern:
    node: Node
    text: str
    is_negative: bool
    parts: tuple[str, ...] | None
    """None when malformed."""
    last: str = ""


def _parse(node: Node, block: str) -> _Pattern:
    text = str(node.scalar).strip()
    is_negative = text.startswith("!")
    body = text[1:].strip() if is_negative else text
    parts = tuple(part.strip() for part in body.split(":"))
    if is_negative and body.startswith("!"):
        is_well_formed = False
    else:
        is_well_formed = len(parts) == len(_PARTS[block])
    last = next((p for p in reversed(parts) if p.lstrip("!").strip()), "").lstrip("!").strip()
    return _Pattern(node, text, is_negative, parts if is_well_formed else None, last)


def _rules(block: str, nodes: Sequence[Node], notes: Notes, root: Node) -> list[Rule]:
    patterns = [_parse(node, block) for node in nodes]
    where, kinds = f"{block}.patterns", _KINDS[block]
    line = root.items[block].key_line("patterns") if block in root.items else None
    denies, allows = [], []
    for pattern in patterns:
        _note(pattern, where, block, notes)
        if pattern.is_negative:
            denies += _deny_entries(pattern, block)
        elif pattern.parts:
            allows.append(_entry(pattern, _PARTS[block], pattern.parts))
    rules = []
    if denies:
        rules.append(Rule(text=where, effect="deny", kinds=kinds, entries=tuple(denies), reason=_DENIED))
    if allows:
        rules.append(Rule(text=where, effect="allow", kinds=kinds, entries=tuple(allows)))
    else:
        # Said once for the whole block, so that an empty set explains itself.
        reason = f"'{{name}}' is not available: `{where}` has no positive pattern."
        rules.append(Rule(text=where, effect="deny", kinds=kinds, unless=True, reason=reason))
    return [_placed(rule, notes.file, line) for rule in rules]


def _placed(rule: Rule, file: str, line: int | None) -> Rule:
    return Rule(
        text=rule.text, effect=rule.effect, kinds=rule.kinds, entries=rule.entries, unless=rule.unless,
        reason=rule.reason, file=file, line=line,
    )  # fmt: skip


def _entry(pattern: _Pattern, facets: tuple[tuple[Facet, ...], ...], parts: Sequence[str]) -> Entry:
    tests = tuple(Test(facets=f, pattern=p) for f, p in zip(facets, parts, strict=True))
    return Entry(text=pattern.text, tests=tests, file=pattern.node.file, line=pattern.node.line)


def _deny_entries(pattern: _Pattern, block: str) -> list[Entry]:
    if pattern.parts:
        return [_entry(pattern, _DENY_PARTS[block], pattern.parts)]
    # A dropped deny would widen: until it is mended it denies every item whose name or module its last part matches.
    facets: tuple[Facet, ...] = ("own", "item_any", "module")
    return [_entry(pattern, (facets,), (pattern.last,))] if pattern.last else []


def _note(pattern: _Pattern, where: str, block: str, notes: Notes) -> None:
    count, line, text = len(_PARTS[block]), pattern.node.line, show(pattern.text)
    form = "category:module:name" if block == "tools" else "category:name"
    if pattern.parts is None and pattern.is_negative:
        effect = f"until it is mended it denies every name or module that `{show(pattern.last)}` matches"
        notes.warn("EG023", f"{where}: `{text}` is not of the form `!{form}`; {effect}", line, f"write `!{form}`")
    elif pattern.parts is None:
        fix = f"write {count} parts, `{form}`; a `:` inside a name is written `?`"
        notes.warn("EG022", f"{where}: `{text}` is ignored, it does not have {count} parts", line, fix)
    if pattern.is_negative and any(unclosed_bracket(p) for p in pattern.text.split(":")):
        fix = "close it, or write [[] for a literal ["
        notes.error("EG004", f"{where}: `{text}` has a `[` that is never closed", line, fix)
    elif pattern.parts and any(unclosed_bracket(p) for p in pattern.parts):
        fix = "close it, or write [[] for a literal ["
        notes.warn(
            "EG031", f"{where}: `{text}` has a `[` that is never closed, so it only matches that text", line, fix
        )


def _subagent_rules(root: Node, rules: Sequence[Rule], notes: Notes) -> list[Rule]:
    """Sub-agents are those the file lists, reached through the `task` tool."""
    kinds = frozenset({"subagent"})
    node = root.get("subagents")
    names = [c for c in node.children if isinstance(c.scalar, str)] if node and node.kind == "list" else []
    if not _allows_task(rules):
        reason = "'{name}' is not available: the `task` tool is not."
        return [Rule(text="tools.patterns", effect="deny", kinds=kinds, unless=True, reason=reason, file=notes.file)]
    exact = [(c, (Test(facets=("name",), pattern=str(c.scalar), is_exact=True),)) for c in names]
    entries = tuple(Entry(text=str(c.scalar), tests=tests, file=c.file, line=c.line) for c, tests in exact)
    line = root.key_line("subagents") if node else None
    return [Rule(text="subagents", effect="allow", kinds=kinds, entries=entries, file=notes.file, line=line)]


def _allows_task(rules: Sequence[Rule]) -> bool:
    spelled: dict[Facet, str] = {"type": "impl", "module": "deepagents", "own": "task"}
    for rule in rules:
        if "tool" in rule.kinds and not rule.unless:
            for entry in rule.entries:
                if all(any(matches(spelled[f], t.pattern) for f in t.facets if f in spelled) for t in entry.tests):
                    return rule.effect == "allow"
    return False
