"""Which profiles can be read at all, and as which dialect (law 2, 3, 4); the reasons are for people only."""

from __future__ import annotations

from typing import Any

from tests.oracle.text import is_unclosed

BLOCKS = ("tools", "skills", "mcp", "resources", "prompts", "subagents")
LIST_KEYS = {
    "tools": ("disabled", "allowed", "enabled"),
    "skills": ("disabled", "allowed", "categories"),
    "mcp": ("disabled", "allowed", "required"),
    "resources": ("disabled", "allowed"),
    "prompts": ("disabled", "allowed"),
    "subagents": ("disabled", "allowed"),
}
REFUSING = ("disabled", "required")
MODES = ("automatic", "selected", "none")

# OpenProgram's own presets, as its registry at f27be0ee names them (seen in a run; `none` is in its design text).
# Reading: a preset extgate has not seen is an error, never the default set.
TOOLSETS: dict[str, tuple[str, ...]] = {
    "none": (),
    "safe": ("glob", "grep", "image_analyze", "list", "pdf", "read", "web_fetch", "web_search"),
    "research": ("image_analyze", "pdf", "web_fetch", "web_search"),
    "browser": ("agent_browser", "playwright_browser", "web_search"),
    "coding": ("execute_code", "process"),
    "vision": ("image_analyze", "image_generate", "pdf"),
}


def distance(one: str, other: str) -> int:
    """Edits between two words; swapping two neighbours is one edit."""
    rows = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i in range(len(one) + 1):
        for j in range(len(other) + 1):
            if i == 0 or j == 0:
                rows[i][j] = i + j
                continue
            cost = 0 if one[i - 1] == other[j - 1] else 1
            best = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + cost)
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                best = min(best, rows[i - 2][j - 2] + 1)
            rows[i][j] = best
    return rows[-1][-1]


def is_near_miss(key: object) -> bool:
    """Whether a top-level key was meant to be a block's name: one edit off, or another case."""
    if not isinstance(key, str) or key in BLOCKS:
        return False
    return any(distance(key.casefold(), block) <= 1 for block in BLOCKS)


def list_errors(where: str, value: object, *, refuses: bool) -> set[str]:
    """What is wrong with one list of patterns. A string is a list of one."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return {f"{where}: not a list"}
    errors: set[str] = set()
    for entry in value:
        if not isinstance(entry, str):
            errors.add(f"{where}: a pattern that is not a string")
        elif refuses and is_unclosed(entry):
            errors.add(f"{where}: unclosed [")
    return errors


def block_errors(name: str, block: object) -> set[str]:
    """What is wrong with one block of dialect A."""
    if name in ("tools", "skills") and isinstance(block, list | str):
        return list_errors(name, block, refuses=name == "skills")
    if not isinstance(block, dict):
        return {f"{name}: not a mapping"}
    errors: set[str] = set()
    for key, value in block.items():
        if key in LIST_KEYS[name]:
            errors |= list_errors(f"{name}.{key}", value, refuses=key in REFUSING)
        elif name == "tools" and key == "mode":
            if value not in MODES or not isinstance(value, str):
                errors.add("tools.mode: unknown")
        elif name == "tools" and key == "toolset":
            if not isinstance(value, str) or value not in TOOLSETS:
                errors.add("tools.toolset: unknown")
        elif name == "tools" and key == "web_search":
            if not isinstance(value, bool):
                errors.add("tools.web_search: not true or false")
        else:
            errors.add(f"{name}.{key}: unknown key")
    return errors


def profile_errors(doc: dict[str, Any]) -> set[str]:
    """Why a document of dialect A cannot be read; empty when it can."""
    errors: set[str] = set()
    for key, value in doc.items():
        if key in BLOCKS:
            errors |= block_errors(key, value)
        elif is_near_miss(key):
            errors.add(f"{key}: near miss of a block")
    return errors


def patterns_errors(doc: dict[str, Any]) -> set[str]:
    """Why a document of dialect B cannot be read; empty when it can.

    Reading: a scalar or a list where a mapping belongs is refused here, as msAgent's own loader does.
    """
    errors: set[str] = set()
    for name in ("tools", "skills"):
        if name not in doc:
            continue
        block = doc[name]
        if name == "tools" and is_old_list(doc):
            errors |= pattern_list_errors("tools", block)
            continue
        if not isinstance(block, dict):
            errors.add(f"{name}: not a mapping")
            continue
        for key, value in block.items():
            if key == "patterns":
                errors |= pattern_list_errors(f"{name}.patterns", value)
            elif key == "use_catalog":
                if not isinstance(value, bool | str):
                    errors.add(f"{name}.use_catalog: not true or false")
            elif not (name == "tools" and key == "output_max_tokens"):
                errors.add(f"{name}.{key}: unknown key")
    return errors


def is_old_list(doc: dict[str, Any]) -> bool:
    """Whether `tools` is the list that msAgent's files of version 1 hold; its own loader makes it `patterns`."""
    version = doc.get("version")
    return isinstance(doc.get("tools"), list) and isinstance(version, str) and version.startswith("1.")


def pattern_list_errors(where: str, value: object) -> set[str]:
    if not isinstance(value, list):
        return {f"{where}: not a list"}
    errors: set[str] = set()
    for entry in value:
        if not isinstance(entry, str):
            errors.add(f"{where}: a pattern that is not a string")
        elif entry.strip().startswith("!") and is_unclosed(entry):
            errors.add(f"{where}: unclosed [")
    return errors


def dialect_of(doc: dict[str, Any]) -> str | None:
    """`profile`, `patterns`, or None for a mixture or a word that is neither."""
    has_patterns = any(isinstance(doc.get(b), dict) and "patterns" in doc[b] for b in ("tools", "skills"))
    profile_keys = {key for keys in LIST_KEYS.values() for key in keys} | {"mode", "toolset", "web_search"}
    has_profile = any(isinstance(doc.get(b), dict) and profile_keys & set(doc[b]) for b in BLOCKS)
    has_profile = has_profile or any(b in doc for b in ("mcp", "resources", "prompts"))
    if "dialect" in doc:
        word = doc["dialect"]
        if word == "profile":
            return None if has_patterns else "profile"
        if word == "patterns":
            return None if has_profile else "patterns"
        return None
    if has_patterns and has_profile:
        return None
    return "patterns" if has_patterns else "profile"
