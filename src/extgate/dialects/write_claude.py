"""Writer of Claude Code's settings: lists that deny, ask and allow, and what hides skills and servers."""

from __future__ import annotations

import json

from extgate.core.names import rule_name
from extgate.core.policy import Effect
from extgate.dialects.document import Document
from extgate.dialects.outline import UNKNOWN, Outline

_EFFECTS: tuple[Effect, ...] = ("deny", "ask", "allow")
_SHELLS = ("Bash", "Monitor", "PowerShell")
_ASKS = (*_SHELLS, "Edit", "Write", "NotebookEdit", "WebFetch", "WebSearch")
"""Tools that ask by default."""


def write(outline: Outline, tools: tuple[str, ...]) -> list[Document]:
    """`.claude/settings.json`. tools: those that Claude Code has."""
    lists: dict[str, list[str]] = {effect: [] for effect in _EFFECTS}
    settings: dict[str, object] = {"permissions": lists}
    prefixes = outline.prefixes
    by_prefix = outline.has_prefixes_only and any(prefixes.values())
    for name in tools:
        effect = outline.loose_tool(name) if by_prefix and name in _SHELLS else outline.tool(name)
        is_default = effect == "ask" and name in _ASKS and (outline.is_at_home or (by_prefix and name in _SHELLS))
        if not is_default:  # a bare ask would come before what is allowed of it
            lists[effect].append(name)
    for effect in _EFFECTS if by_prefix else ():
        lists[effect] += [f"Bash({prefix}:*)" for prefix in prefixes[effect]]
    _mcp(outline, lists, settings)
    _skills(outline, lists, settings)
    denied = [name for effect in ("deny", "ask") for name in outline.subagents.of(effect)]
    lists["deny"] += [f"Agent({name})" for name in denied]
    if outline.subagents.unknown != "allow" and not outline.subagents.of("allow"):
        lists["deny"].append("Agent")
    for pattern in [p for e in ("deny", "ask") for p in outline.tools.patterns(e)]:
        if "*" in pattern and "?" not in pattern and "[" not in pattern:
            lists["deny"].append(pattern)
    text = json.dumps(settings, indent=1, ensure_ascii=False) + "\n"
    return [Document(path=".claude/settings.json", text=text, facts={"scope": "project"})]


def _mcp(outline: Outline, lists: dict[str, list[str]], settings: dict[str, object]) -> None:
    if outline.mcp.unknown == "deny":
        names = [s for s, items in outline.servers.items() if set(items.values()) != {"deny"}]
        settings["allowedMcpServers"] = [{"serverName": name} for name in names]
    for server, items in outline.servers.items():
        clean = _clean(server)
        if set(items.values()) == {"deny"}:
            lists["deny"].append(rule_name(clean))
            settings.setdefault("deniedMcpServers", []).append({"serverName": server})  # type: ignore[attr-defined]
            continue
        rest = items.get("*", outline.mcp.unknown)
        if rest == "deny":
            message = "a server's later tools cannot be denied here while others of it are allowed"
            outline.lose("unknown", f"{server}/*", message, is_wider=True, witness=f"{server}/{UNKNOWN}")
        for item, effect in items.items():
            if item != "*":
                lists[effect].append(rule_name(clean, _clean(item)))
        if rest == "allow" and set(items.values()) == {"allow"}:
            lists["allow"].append(rule_name(clean))
    for pattern in [p for e in ("deny", "ask") for p in outline.mcp.patterns(e)]:
        server, _, item = pattern.partition("/")
        if not any(c in pattern for c in "?["):
            lists["deny"].append(rule_name(_clean(server, "*"), _clean(item, "*")))


def _skills(outline: Outline, lists: dict[str, list[str]], settings: dict[str, object]) -> None:
    family = outline.skills
    off = dict.fromkeys([*family.of("deny"), *family.of("ask")], "off")
    leaves = {name.rpartition("/")[2]: "off" for name in off}
    if off:
        settings["skillOverrides"] = off | leaves
    lists["deny"] += [f"Skill({name})" for name in leaves]
    for pattern in [p for effect in ("deny", "ask") for p in family.patterns(effect)]:
        if pattern.endswith("*") and not any(c in pattern[:-1] for c in "*?["):
            lists["deny"].append(f"Skill({pattern[:-1]} *)")  # a prefix of names
    if family.unknown == "allow":
        return
    if not family.of("allow"):
        lists["deny"].append("Skill")


def _clean(text: str, more: str = "") -> str:
    return "".join(c if (c.isascii() and c.isalnum()) or c in "_-" + more else "_" for c in text)
