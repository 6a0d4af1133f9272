"""Writer of Hermes' `config.yaml`: toolsets of which every tool is allowed, servers' lists, skills by name."""

from __future__ import annotations

from extgate.core.policy import Effect
from extgate.dialects.document import Document
from extgate.dialects.hermes_toolsets import RE_ADDED, TOOLSETS
from extgate.dialects.outline import UNKNOWN, Outline


def write(outline: Outline, tools: tuple[str, ...]) -> list[Document]:
    """`.hermes/config.yaml` for the command line's platform."""
    import yaml

    chosen = [name for name, members in TOOLSETS.items() if members and _may(outline, members)]
    had = {tool for name in chosen for tool in TOOLSETS[name]}
    off = [name for name in RE_ADDED if name not in chosen]
    servers = outline.servers
    open_ = [name for name, items in servers.items() if set(items.values()) & {"allow"}]
    names = [*chosen]
    if outline.mcp.unknown != "allow":
        names += open_ or ["no_mcp"]
    config: dict[str, object] = {"platform_toolsets": {"cli": names}}
    if off:
        config["agent"] = {"disabled_toolsets": off}
    config["mcp_servers"] = {name: _server(items) for name, items in servers.items()}
    skills = [*outline.skills.of("deny"), *outline.skills.of("ask")]
    if skills:
        config["skills"] = {"disabled": list(dict.fromkeys(name.rpartition("/")[2] for name in skills))}
    if outline.skills.unknown != "allow" and "skill_view" in had:
        message = "skills can be switched off by name only, so later ones are let through"
        outline.lose("unknown", "skill", message, is_wider=True, witness=UNKNOWN)
    text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=120)
    return [Document(path=".hermes/config.yaml", text=text)]


def _may(outline: Outline, members: tuple[str, ...]) -> bool:
    """Whether every tool of the set is allowed; there is no ask, and no smaller unit."""
    needs_skills = "skill_view" in members and set(outline.skills.effects.values()) == {"deny"}
    agents = outline.subagents
    needs_agents = "delegate_task" in members and (
        agents.unknown != "allow" or set(agents.effects.values()) - {"allow"}
    )
    return all(outline.tool(name) == "allow" for name in members) and not needs_skills and not needs_agents


def _server(items: dict[str, Effect]) -> dict[str, object]:
    allowed = [name for name, effect in items.items() if effect == "allow" and name != "*"]
    if not allowed and items.get("*") != "allow":
        return {"enabled": False}
    if items.get("*") != "allow":
        return {"tools": {"include": allowed, "resources": False, "prompts": False}}
    denied = [name for name, effect in items.items() if effect != "allow"]
    return {"tools": {"exclude": denied}} if denied else {}
