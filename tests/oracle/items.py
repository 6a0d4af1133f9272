"""The inventory file of the contract as one flat list of items, for the oracle alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MCP_LISTS = (("tools", "mcp_tool"), ("resources", "mcp_resource"), ("prompts", "mcp_prompt"))

# Whose tools are "the runtime's own" (law 1). Reading: no source at all is the runtime's; all else is a plugin's.
RUNTIMES = (
    "",
    "builtin",
    "claude-code",
    "opencode",
    "hermes",
    "codex",
    "gemini",
    "openprogram",
    "msagent",
    "deepagents",
)


@dataclass(frozen=True)
class Item:
    """One thing that is installed. `server` is empty where there is none."""

    kind: str
    name: str
    server: str = ""
    source: str = ""
    category: str = ""
    declared: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What an answer is filed under: id and source."""
        return (f"{self.kind}:{self.server}/{self.name}" if self.is_mcp else f"{self.kind}:{self.name}", self.source)

    @property
    def is_mcp(self) -> bool:
        return self.kind.startswith("mcp_")

    @property
    def leaf(self) -> str:
        return self.name.split("/")[-1]

    @property
    def ancestors(self) -> list[str]:
        return self.name.split("/")[:-1]


def items_of(inventory: dict[str, Any]) -> list[Item]:
    """Every item of an inventory file, refused ones included."""
    found = [Item("tool", t["name"], source=t.get("source", "")) for t in inventory.get("tools", [])]
    for skill in inventory.get("skills", []):
        category = skill.get("category")
        found.append(
            Item(
                "skill",
                skill["name"],
                source=skill.get("source", ""),
                category=category if isinstance(category, str) else "",
                declared=skill.get("declared_name") or "",
            )
        )
    for server in inventory.get("mcp", []):
        for key, kind in MCP_LISTS:
            for row in server.get(key, []):
                found.append(Item(kind, row["uri"] if kind == "mcp_resource" else row["name"], server=server["server"]))
    found += [Item("subagent", a["name"]) for a in inventory.get("subagents", [])]
    return found


def connected_servers(inventory: dict[str, Any]) -> list[str]:
    """Names of the servers that count as installed; no state means connected."""
    return [s["server"] for s in inventory.get("mcp", []) if s.get("state", "connected") == "connected"]
