"""MCP servers that a model's provider calls by itself, in a request: reduced to what is allowed without asking.

Nobody is asked before such a call, so an item that needs an approval is left out, and a server without any goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from extgate.enforce.gate import Gate

Json = Mapping[str, Any]


def allowed_tools(gate: Gate, server: object, own: object = None) -> list[str]:
    """The tools of one server that the provider may run. own: the request's own list, or None for all of them."""
    own = own.get("tool_names") if isinstance(own, Mapping) else own
    items = [ext for ext in gate.inventory.of_kind("mcp_tool") if ext.server == server]
    names = [ext.name for ext in gate.see(items) if gate.decide(ext).effect == "allow"]
    return [name for name in names if not isinstance(own, list) or name in own]


def is_hosted(tool: Json) -> bool:
    """Whether a row of `tools` stands for a whole server."""
    return tool.get("type") in ("mcp", "mcp_toolset")


def narrowed_tool(gate: Gate, tool: Json) -> Json | None:
    """Such a row with the allowed tools only. Sources: OpenAI responses `mcp`, Anthropic `mcp_toolset` (2026-11-30)."""
    if tool.get("type") == "mcp":
        names = allowed_tools(gate, tool.get("server_label"), tool.get("allowed_tools"))
        return {**tool, "allowed_tools": names} if names else None
    configs = tool.get("configs") or {}
    default = (tool.get("default_config") or {}).get("enabled", True)
    names = allowed_tools(gate, tool.get("mcp_server_name"))
    kept = {name: {**configs.get(name, {}), "enabled": True} for name in names
            if configs.get(name, {}).get("enabled", default)}  # fmt: skip
    off = {**(tool.get("default_config") or {}), "enabled": False}
    return {**tool, "default_config": off, "configs": kept} if kept else None


def narrowed_servers(gate: Gate, servers: Sequence[Json], tools: Sequence[Json]) -> list[Json]:
    """Anthropic's `mcp_servers`: those that a toolset is left of, and the older form with its own list narrowed."""
    of_toolsets = {tool.get("mcp_server_name") for tool in tools if tool.get("type") == "mcp_toolset"}
    made: list[Json] = []
    for row in servers:
        config = row.get("tool_configuration") or {}
        names = allowed_tools(gate, row.get("name"), config.get("allowed_tools"))
        if row.get("name") in of_toolsets:
            made.append(row)
        elif names and config.get("enabled", True):
            made.append({**row, "tool_configuration": {**config, "allowed_tools": names}})
    return made
