"""Short ways to write an inventory file in a test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Inventory = dict[str, Any]


def tools(*names: str, source: str = "builtin") -> list[dict[str, Any]]:
    """Tools that one source offers."""
    return [{"name": name, "source": source} for name in names]


def skill(
    name: str, category: str | None = None, declared: str | None = None, source: str = "project"
) -> dict[str, Any]:
    """One skill: its folder path, what its header says of category and name."""
    row: dict[str, Any] = {"name": name, "source": source}
    if category is not None:
        row["category"] = category
    if declared is not None:
        row["declared_name"] = declared
    return row


def server(
    name: str,
    *items: str,
    resources: Iterable[str] = (),
    prompts: Iterable[str] = (),
    state: str | None = None,
    error: str = "",
) -> dict[str, Any]:
    """One MCP server with its tools, resources (URIs) and prompts; no state means connected."""
    row: dict[str, Any] = {
        "server": name,
        "tools": [{"name": item} for item in items],
        "resources": [{"uri": uri} for uri in resources],
        "prompts": [{"name": prompt} for prompt in prompts],
    }
    if state is not None:
        row["state"] = state
    if error:
        row["error"] = error
    return row


def inventory(
    tools: Iterable[dict[str, Any]] = (),
    skills: Iterable[dict[str, Any] | str] = (),
    mcp: Iterable[dict[str, Any]] = (),
    subagents: Iterable[str] = (),
) -> Inventory:
    """A whole inventory file."""
    return {
        "tools": list(tools),
        "skills": [skill(s) if isinstance(s, str) else s for s in skills],
        "mcp": list(mcp),
        "subagents": [{"name": name} for name in subagents],
    }
