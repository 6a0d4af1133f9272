"""Writer of Gemini CLI's settings and of a policy file: denies rank highest, then asks, then allows."""

from __future__ import annotations

import json

from extgate.core.policy import Effect
from extgate.dialects.document import Document
from extgate.dialects.outline import UNKNOWN, Outline
from extgate.dialects.toml_text import toml_text

_RANK: dict[Effect, int] = {"deny": 900, "ask": 800, "allow": 700}
_DECISION: dict[Effect, str] = {"deny": "deny", "ask": "ask_user", "allow": "allow"}
_EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")
_SHELL = "run_shell_command"


def write(outline: Outline, tools: tuple[str, ...]) -> list[Document]:
    """`.gemini/settings.json`, and a policy file for the user's home, because 0.61.0 reads no project's.

    tools: those that Gemini CLI has.
    """
    rules: list[dict[str, object]] = []
    prefixes = outline.prefixes
    by_prefix = outline.has_prefixes_only and any(prefixes.values())
    for effect in _EFFECTS:
        names = [n for n in tools if outline.tool(n) == effect and not (by_prefix and n == _SHELL)]
        names += [n for n in outline.tools.of(effect) if n not in tools and n not in names]
        names = [n for n in names if "*" not in n]
        rules += [_rule(effect, toolName=names)] if names else []
        if by_prefix and prefixes[effect]:
            rules.append(_rule(effect, toolName=_SHELL, commandPrefix=prefixes[effect], priority=_RANK[effect] + 50))
    if by_prefix:
        rules.append(_rule(outline.loose_tool(_SHELL), toolName=_SHELL, priority=600))
    rules += _items(outline)
    unknown = max((outline.tools.unknown, outline.mcp.unknown), key=lambda e: _RANK[e])
    if unknown != "allow":
        rules.append(_rule(unknown, toolName="*", priority=1))
    settings: dict[str, object] = {}
    _servers(outline, settings)
    _skills(outline, settings, rules)
    agents = {n: {"enabled": False} for n in [*outline.subagents.of("deny"), *outline.subagents.of("ask")]}
    if agents:
        settings["agents"] = {"overrides": agents}
    for needed in outline.policy.requirements:
        outline.lose("required", needed.pattern, "Gemini CLI has no server that must be there")
    text = json.dumps(settings, indent=1, ensure_ascii=False) + "\n"
    return [
        Document(path=".gemini/settings.json", text=text, facts={"scope": "project"}),
        Document(path="home/.gemini/policies/extgate.toml", text=toml_text({"rule": rules}), facts={"scope": "user"}),
    ]


def _rule(effect: Effect, *, priority: int = 0, **rest: object) -> dict[str, object]:
    return {**rest, "decision": _DECISION[effect], "priority": priority or _RANK[effect]}


def _items(outline: Outline) -> list[dict[str, object]]:
    found = []
    for server, items in outline.servers.items():
        for effect in _EFFECTS:
            names = [n for n, e in items.items() if e == effect and n != "*" and "*" not in n]
            found += [_rule(effect, mcpName=server, toolName=names)] if names else []
        rest = items.get("*", outline.mcp.unknown)
        found.append(_rule(rest, mcpName=server, toolName="*", priority=500))
    return found


def _servers(outline: Outline, settings: dict[str, object]) -> None:
    denied = [s for s, items in outline.servers.items() if set(items.values()) == {"deny"}]
    mcp: dict[str, list[str]] = {"excluded": denied} if denied else {}
    if outline.mcp.unknown == "deny":
        mcp["allowed"] = [s for s in outline.servers if s not in denied]
    if mcp:
        settings["mcp"] = mcp


def _skills(outline: Outline, settings: dict[str, object], rules: list[dict[str, object]]) -> None:
    """Skills can be switched off by name; whether the others ask is one setting for all of them."""
    family = outline.skills
    asked = family.of("ask")
    off = [*family.of("deny")] + (asked if family.of("allow") else [])
    names = dict.fromkeys([*off, *(name.rpartition("/")[2] for name in off)])
    if names:
        settings["skills"] = {"disabled": list(names)}
    if family.unknown == "deny" and not family.of("allow") and not asked:
        rules.append(_rule("deny", toolName="activate_skill", priority=990))
    elif family.unknown == "deny":
        message = "skills can be switched off by name only, so later ones are let through"
        outline.lose("unknown", "skill", message, is_wider=True, witness=UNKNOWN)
    if "allow" in (family.unknown, *family.effects.values()) and family.unknown != "ask":
        rules[:] = [r for r in rules if r.get("toolName") != "activate_skill" or r["decision"] == "deny"]
