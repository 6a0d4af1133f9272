"""Writer of opencode's `permission`: everything that is not named first, then what is, denies last."""

from __future__ import annotations

import json

from extgate.core.policy import STRICTNESS, Effect
from extgate.dialects.document import Document
from extgate.dialects.outline import Family, Outline

_ORDER: tuple[Effect, ...] = ("allow", "ask", "deny")
_MEMBERS = {"write": "edit", "apply_patch": "edit"}
_READ_MEMBERS = ("list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource")


def write(outline: Outline, tools: tuple[str, ...]) -> list[Document]:
    """`opencode.json`. tools: those that opencode has."""
    unknown = _strictest([outline.tools.unknown, outline.mcp.unknown])
    permission: dict[str, object] = {"*": unknown}
    keys: dict[str, list[Effect]] = {}
    for name in tools:
        if name not in _READ_MEMBERS:
            keys.setdefault(_MEMBERS.get(name, name), []).append(outline.tool(name))
    permission |= {key: _strictest(effects) for key, effects in sorted(keys.items())}
    for effect in _ORDER:
        permission |= {
            name: effect for name in outline.tools.of(effect) if name not in permission and name not in tools
        }
    permission |= _items(outline)
    for effect in ("ask", "deny"):
        for pattern in outline.tools.patterns(effect):
            if "[" not in pattern:
                permission.pop(pattern, None)
                permission[pattern] = effect
    _bash(outline, permission)
    permission["skill"] = _map(outline.skills, leaf=True)
    permission["task"] = _map(outline.subagents, leaf=False)
    for needed in outline.policy.requirements:
        outline.lose("required", needed.pattern, "opencode has no server that must be there")
    text = json.dumps(
        {"$schema": "https://opencode.ai/config.json", "permission": permission}, indent=1, ensure_ascii=False
    )
    return [Document(path="opencode.json", text=text + "\n")]


def _strictest(effects: list[Effect]) -> Effect:
    return max(effects, key=lambda effect: STRICTNESS[effect])


def _items(outline: Outline) -> dict[str, object]:
    """Servers first, then their items, the more lenient before the stricter; of one name in two senses the stricter."""
    found: dict[str, Effect] = {}
    for server, items in outline.servers.items():
        key = f"{_clean(server)}_*"
        found[key] = _strictest([found.get(key, "allow"), items.get("*", outline.mcp.unknown)])
    names: dict[str, Effect] = {}
    for server, items in outline.servers.items():
        for item, effect in items.items():
            key = f"{_clean(server)}_{_clean(item)}"
            if item != "*":
                names[key] = _strictest([names.get(key, "allow"), effect])
    whole = {k: e for wanted in _ORDER for k, e in found.items() if e == wanted}
    single = {k: e for wanted in _ORDER for k, e in names.items() if e == wanted}
    patterns = [(p, e) for e in ("ask", "deny") for p in outline.mcp.patterns(e) if "[" not in p]
    globs = {f"{_clean(p.partition('/')[0], '*?')}_{_clean(p.partition('/')[2], '*?')}": e for p, e in patterns}
    return {**whole, **single, **{k: e for k, e in globs.items() if k not in whole and k not in single}}


def _bash(outline: Outline, permission: dict[str, object]) -> None:
    prefixes = outline.prefixes
    if not (outline.has_prefixes_only and any(prefixes.values())):
        return
    rules: dict[str, object] = {"*": outline.loose_tool("bash")}
    for effect in _ORDER:
        rules |= {f"{prefix} *": effect for prefix in prefixes[effect] if not any(c in prefix for c in "*?")}
    permission.pop("bash", None)
    permission["bash"] = rules


def _map(family: Family, *, leaf: bool) -> dict[str, str]:
    """Names as the runtime has them; of two things with one name the stricter counts."""
    found: dict[str, Effect] = {}
    for name, effect in family.effects.items():
        key = name.rpartition("/")[2] if leaf else name
        found[key] = _strictest([found.get(key, "allow"), effect])
    named = {k: e for wanted in _ORDER for k, e in found.items() if e == wanted}
    allows = family.patterns("allow") if family.has_one_list and family.unknown != "allow" else []
    globs = {p: "allow" for p in allows if "[" not in p and "/" not in p}
    strict = {p: e for e in ("ask", "deny") for p in family.patterns(e) if "[" not in p}
    return {"*": family.unknown, **globs, **named, **strict}


def _clean(text: str, more: str = "") -> str:
    return "".join(c if (c.isascii() and c.isalnum()) or c in "_-" + more else "_" for c in text)
