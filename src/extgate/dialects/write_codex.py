"""Writer of Codex' `config.toml` and command rules: features, lists of each server's tools, skills by name."""

from __future__ import annotations

import json

from extgate.core.policy import Effect
from extgate.dialects.document import Document
from extgate.dialects.outline import UNKNOWN, Outline
from extgate.dialects.toml_text import toml_text

_SWITCHES = {
    "shell_tool": ("exec_command", "write_stdin"),
    "multi_agent": ("multi_agent_v1::spawn_agent",),
    "goals": ("create_goal", "update_goal"),
}
_DECISIONS: dict[Effect, str] = {"deny": "forbidden", "ask": "prompt", "allow": "allow"}


def write(outline: Outline, tools: tuple[str, ...]) -> list[Document]:
    """`.codex/config.toml`, and a file of rules where commands are told apart. Servers lack their transport."""
    prefixes = outline.prefixes
    by_prefix = outline.has_prefixes_only and any(prefixes.values())
    shell = outline.loose_tool("exec_command") if by_prefix else outline.tool("exec_command")
    features = {
        key: False
        for key, names in _SWITCHES.items()
        if any((shell if key == "shell_tool" else outline.tool(name)) == "deny" for name in names)
        or (key == "multi_agent" and any(outline.tool(name) == "ask" for name in names))
    }
    if outline.subagents.unknown != "allow" or set(outline.subagents.effects.values()) - {"allow"}:
        features["multi_agent"] = False
    config: dict[str, object] = {"approval_policy": "untrusted" if shell == "ask" else "on-request"}
    if outline.tool("web_search") != "allow":
        config["web_search"] = "disabled"
    if features:
        config["features"] = features
    config["mcp_servers"] = {name: _server(outline, items) for name, items in outline.servers.items()}
    off = [*outline.skills.of("deny"), *outline.skills.of("ask")]
    names = dict.fromkeys(name.rpartition("/")[2] for name in off)
    if names:
        config["skills"] = {"config": [{"name": name, "enabled": False} for name in names]}
    if outline.skills.unknown != "allow":
        message = "skills can be switched off by name only, so later ones are let through"
        outline.lose("unknown", "skill", message, is_wider=True, witness=UNKNOWN)
    documents = [Document(path=".codex/config.toml", text=toml_text(config), facts={"scope": "user"})]
    lines = _rules(prefixes) if by_prefix else []
    if lines:
        text = "\n".join(lines) + "\n"
        documents.append(Document(path=".codex/rules/extgate.rules", text=text, facts={"scope": "user"}))
    return documents


def _server(outline: Outline, items: dict[str, Effect]) -> dict[str, object]:
    rest = items.get("*", outline.mcp.unknown)
    known = {name: effect for name, effect in items.items() if name != "*"}
    if set(items.values()) == {"deny"}:
        return {"enabled": False}
    found: dict[str, object] = {}
    if rest == "deny":
        found["enabled_tools"] = [name for name, effect in known.items() if effect != "deny"]
    elif denied := [name for name, effect in known.items() if effect == "deny"]:
        found["disabled_tools"] = denied
    found["default_tools_approval_mode"] = "approve" if rest == "allow" else "prompt"
    modes: dict[Effect, str] = {"allow": "approve", "ask": "prompt"}
    tools = {name: {"approval_mode": modes[e]} for name, e in known.items() if e in modes and e != rest}
    return found | ({"tools": tools} if tools else {})


def _rules(prefixes: dict[Effect, list[str]]) -> list[str]:
    return [
        f"prefix_rule(pattern = {json.dumps(prefix.split(' '))}, decision = {json.dumps(_DECISIONS[effect])})"
        for effect, texts in prefixes.items()
        for prefix in texts
    ]
