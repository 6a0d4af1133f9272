"""Options of the Claude Agent SDK, reduced to what one agent may see.

A rule of Claude Code that is spelled for an older or another tool hits nothing, so what is hidden is taken away twice
where that is possible: it is not among `tools`, and it is among `disallowed_tools`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extgate.core.extension import Extension
from extgate.core.names import cleaned, refusal, wire_names
from extgate.enforce.gate import Gate

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions


def reduced(gate: Gate, options: ClaudeAgentOptions, gate_of: Callable[[str], Gate]) -> ClaudeAgentOptions:
    """A copy that offers what is visible. gate_of: the gate of a sub-agent of that type.

    A file of servers cannot be reduced here: its tools are disallowed one by one instead.
    """
    seen = gate.see_named([e.name for e in gate.inventory.of_kind("tool")], ("tool", "mcp_tool"))
    visible = [name for name in seen if _is_plain(name)]
    own = options.tools if isinstance(options.tools, list) else visible
    changes: dict[str, Any] = {
        "tools": [name for name in own if name in set(gate.see_named(own, ("tool", "mcp_tool")))],
        "disallowed_tools": _merged(options.disallowed_tools, hidden(gate)),
        "allowed_tools": [rule for rule in options.allowed_tools if rule.partition("(")[0] not in set(hidden(gate))],
        "skills": skills(gate, options.skills),
        "settings": _settings(gate, options.settings),
    }
    if isinstance(options.mcp_servers, Mapping):
        changes |= {"mcp_servers": _servers(gate, options.mcp_servers), "strict_mcp_config": True}
    if options.agents:
        changes["agents"] = {
            name: _agent(gate_of(name), agent)
            for name, agent in options.agents.items()
            if gate.see([Extension(kind="subagent", name=name, source="claude-code")])
        }
    return replace(options, **changes)


def hidden(gate: Gate) -> list[str]:
    """Rules that take away every hidden tool, and whole servers of which nothing is left."""
    rules: list[str] = []
    left = {ext.server for ext in gate.inventory.extensions if ext.server is not None and gate.is_visible(ext)}
    for ext in gate.inventory.of_kind("tool", "mcp_tool"):
        if gate.is_visible(ext):
            continue
        if ext.server is None:
            rules += [name for name in (ext.name, *map(str, ext.facts.get("aliases", ()))) if _is_plain(name)]
        else:
            rules.append(wire_names(ext.server, ext.name)[0])
    rules += [_server_rule(s.name) for s in gate.inventory.servers if s.name not in left and not refusal(s.name)]
    return list(dict.fromkeys(rules))


def skills(gate: Gate, own: Any) -> list[str]:
    """The visible skills as Claude Code names them. own: the option as given, which stays a limit if it is a list."""
    items = gate.see(gate.inventory.of_kind("skill"))
    names = [name for ext in items if _is_skill_name(name := ext.declared_name or ext.leaf)]
    names = list(dict.fromkeys(gate.see_named(names, ("skill",))))
    return [name for name in names if name in own] if isinstance(own, list) else names


def _settings(gate: Gate, own: str | None) -> str:
    """The settings with every hidden skill off: the `skills` option does not reach the list that sub-agents get.

    Skills that the program brings go too, unless one of them is installed and visible. own: JSON, or a file of it.
    Source: Claude Code 2.1.332, requests of its general-purpose agent (2026-11-30).
    """
    settings = json.loads(own if own.lstrip().startswith("{") else Path(own).read_text()) if own else {}
    shown = set(skills(gate, None))
    items = gate.inventory.of_kind("skill")
    off = {name: "off" for ext in items for name in (ext.declared_name or ext.leaf, ext.leaf) if name not in shown}
    settings["skillOverrides"] = {**settings.get("skillOverrides", {}), **off}
    if not any(ext.source == "claude-code" and gate.is_visible(ext) for ext in items):
        settings["disableBundledSkills"] = True
    return json.dumps(settings)


def _agent(gate: Gate, agent: Any) -> Any:
    """A sub-agent's definition under its own gate; a server written into it has no configured name, and goes."""
    changes: dict[str, Any] = {"disallowedTools": _merged(agent.disallowedTools or (), hidden(gate))}
    if agent.skills is not None:
        changes["skills"] = skills(gate, agent.skills)
    if agent.mcpServers is not None:
        named = {name: name for name in agent.mcpServers if isinstance(name, str)}
        changes["mcpServers"] = list(_servers(gate, named))
    return replace(agent, **changes)


def _servers(gate: Gate, servers: Mapping[str, Any]) -> dict[str, Any]:
    """The configured servers of which something is visible; one that the inventory does not know goes."""
    left = {ext.server for ext in gate.inventory.extensions if gate.is_visible(ext)}
    return {name: config for name, config in servers.items() if name in left}


def _server_rule(name: str) -> str:
    """The rule on all tools of a server: the wire name of one, without the tool's letter and what joins it."""
    return wire_names(name, "x")[0][:-3]


def _merged(own: Iterable[str], more: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*own, *more]))


def _is_plain(name: str) -> bool:
    """Whether a tool's name can stand in a rule of Claude Code, where brackets and commas mean something."""
    return not refusal(name) and cleaned(name, r"\w-") == name


def _is_skill_name(name: str) -> bool:
    return not refusal(name) and cleaned(name, r"\w.:-") == name
