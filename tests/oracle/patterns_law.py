"""Dialect B by the letter of law 4: positives and negatives, part by part."""

from __future__ import annotations

from typing import Any

from tests.oracle.items import RUNTIMES, Item
from tests.oracle.profile_law import full_names, has_bad_name
from tests.oracle.text import clean, hits, nfc, uri_forms


def split(pattern: str) -> list[str]:
    """The parts of a pattern, white space dropped around each."""
    return [clean(part) for part in pattern.split(":")]


def sort_patterns(patterns: list[str], parts: int) -> tuple[list[list[str]], list[list[str]], list[str]]:
    """Positives, negatives, and what each malformed negative denies until it is mended.

    Reading: the last part of `!impl:deepagents:execute:` is its last part with anything in it, so that the deny is not
    lost; of `!!x` it is `x`. A negative with nothing in it at all denies nothing.
    """
    positives: list[list[str]] = []
    negatives: list[list[str]] = []
    broken: list[str] = []
    for pattern in patterns:
        text = clean(pattern)
        if not text.startswith("!"):
            if len(split(text)) == parts:
                positives.append(split(text))
            continue
        rest = text[1:].strip()
        if not rest.startswith("!") and len(split(rest)) == parts:
            negatives.append(split(rest))
            continue
        while rest.startswith("!"):
            rest = rest[1:].strip()
        filled = [part for part in split(rest) if part]
        if filled:
            broken.append(filled[-1])
    return positives, negatives, broken


def module_of(item: Item) -> tuple[str, str]:
    """Category and module of a tool or an MCP item."""
    if item.is_mcp:
        return "mcp", item.server
    return "impl", "deepagents" if item.source in RUNTIMES else item.source


def names_of(item: Item, form: str | None = None) -> list[str]:
    """The names an item of the `tools` block is tried under, for either sign; of a resource, one form of its URI."""
    if not item.is_mcp:
        return [item.name]
    name = item.name if form is None else form
    return [name, f"{item.server}_{name}", f"{item.server}__{name}", f"mcp__{item.server}__{name}"]


def tool_allowed(patterns: list[str], item: Item) -> bool:
    """A tool or an MCP item: some positive, no negative, nothing broken that means it.

    Reading: a resource's URI is judged in all its forms here as in dialect A, each needing a positive.
    """
    positives, negatives, broken = sort_patterns(patterns, 3)
    category, module = module_of(item)
    forms = uri_forms(item.name) if item.kind == "mcp_resource" else [item.name]

    def fits(rule: list[str], form: str) -> bool:
        names = names_of(item, form)
        return hits(rule[0], category) and hits(rule[1], module) and any(hits(rule[2], n) for n in names)

    # Reading: a broken deny is as wide as a deny can be, so every wire name counts as the item's name.
    all_names = [n for form in forms for n in names_of(item, form)] + (full_names(item) if item.is_mcp else [])
    for last in broken:
        if hits(last, module) or any(hits(last, n) for n in all_names):
            return False
    if any(fits(rule, form) for rule in negatives for form in forms):
        return False
    return all(any(fits(rule, form) for rule in positives) for form in forms)


def skill_category(item: Item) -> str:
    """The parent folder, `default` directly below the root."""
    return item.ancestors[-1] if item.ancestors else "default"


def skill_allowed(patterns: list[str], item: Item, everything: list[Item]) -> bool:
    """A skill: the folder name, or a declared name nobody else declares; a negative takes either anyway."""
    positives, negatives, broken = sort_patterns(patterns, 2)
    namesakes = [s for s in everything if s.kind == "skill" and s.declared and nfc(s.declared) == nfc(item.declared)]
    allow_names = [item.leaf]
    if item.declared and len(namesakes) == 1:
        allow_names.append(item.declared)
    deny_names = [item.leaf, item.declared] if item.declared else [item.leaf]
    deny_categories = [skill_category(item), *item.ancestors]
    for last in broken:
        if any(hits(last, text) for text in deny_names + deny_categories):
            return False
    for category, name in negatives:
        if any(hits(category, c) for c in deny_categories) and any(hits(name, n) for n in deny_names):
            return False
    for category, name in positives:
        if hits(category, skill_category(item)) and any(hits(name, n) for n in allow_names):
            return True
    return False


def allowed(doc: dict[str, Any], item: Item, everything: list[Item]) -> bool:
    """The decision for one item."""
    if has_bad_name(item):
        return False
    block = doc.get("tools", {})
    tools = block if isinstance(block, list) else block.get("patterns", [])
    if item.kind == "skill":
        return skill_allowed(doc.get("skills", {}).get("patterns", []), item, everything)
    if item.kind == "subagent":
        # Reading: a listed sub-agent is reached through `task`, so without `task` it is not there.
        listed = doc.get("subagents", [])
        names = [n for n in listed if isinstance(n, str)] if isinstance(listed, list) else []
        return nfc(item.name) in [nfc(n) for n in names] and tool_allowed(tools, Item("tool", "task", source="builtin"))
    return tool_allowed(tools, item)
