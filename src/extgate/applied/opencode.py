"""opencode under a profile: permissions, servers closed, the plugin that asks the gate, and the gateway's entry.

The last permission that matches wins, so what is denied is written behind all that stands there. Agents' own
permissions come after these and could bring a tool back into the list; the plugin still refuses its calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from extgate.applied.account import FilePlan
from extgate.applied.jsonc_text import MISSING
from extgate.applied.plan import GATEWAY, HOOK_S, Ground, Plan, leaves
from extgate.applied.puts import Put
from extgate.applied.trees import edit
from extgate.core.names import cleaned
from extgate.core.policy import Effect
from extgate.errors import WorkspaceError
from extgate.runtime_places import user_folder

KEYS = dict.fromkeys(("edit", "write", "apply_patch"), "edit")
"""Tools whose permission has another name. A resource is read under `read`, which reads files as well."""
OWN_KEYS = (
    *("read", "edit", "glob", "grep", "bash", "task", "skill", "lsp", "webfetch", "websearch", "todowrite", "question"),
    *("plan_exit", "execute"),
)


def plan(ground: Ground) -> Plan:
    """The project's file, or the user's; and the plugin, which lies with the account."""
    path = _file(ground)
    plugin = ground.account.folder / "plugin"
    sources = files("extgate.npm") / "opencode"
    whole = [
        FilePlan(path=plugin / name, text=(sources / name).read_text(encoding="utf-8"))
        for name in ("package.json", "index.js")
    ]
    denies = permission(ground, _present(ground, path))
    puts = (*settings(ground), Put(keys=("permission",), value=denies), _plugin(ground, plugin))
    walls = frozenset({"native", "hook", *(("gateway",) if ground.view.relays else ())})
    return Plan(files=(*whole, FilePlan(path=path, puts=puts)), walls=walls)


def settings(ground: Ground) -> Iterator[Put]:
    """Servers closed, and the gateway."""
    for server in ground.closed_servers:
        yield Put(keys=("mcp", server, "enabled"), value=False)
    if ground.view.relays:
        entry = {"type": "local", "command": list(ground.gateway), "enabled": True}
        yield Put(keys=("mcp", GATEWAY), value=entry)


def permission(ground: Ground, present: Any) -> dict[str, Any]:
    """The permissions that are there, with what is denied or asked last."""
    found = {"*": present} if isinstance(present, str) else dict(present) if isinstance(present, dict) else {}
    ours: dict[str, Any] = {}
    open_ = [server for server in ground.direct if server not in ground.closed_servers]
    for effect in ("ask", "deny"):
        ours |= dict.fromkeys(_tools(ground, effect), effect)
        ours |= {name: effect for server in open_ for name in _items(ground, server, effect)}
    ours |= {f"{cleaned(server)}_*": "deny" for server in ground.closed_servers}
    ours |= {ground.wire(GATEWAY, name): "deny" for name in ground.relayed_denies}
    skills = dict.fromkeys(leaves([*ground.skills("deny"), *ground.skills("ask")]), "deny")
    agents = dict.fromkeys((*ground.subagents("deny"), *ground.subagents("ask")), "deny")
    for key, denied in (("skill", skills), ("task", agents)):
        if denied and ours.get(key) != "deny":
            before = found.get(key, ours.get(key, {}))
            ours[key] = {**({"*": before} if isinstance(before, str) else before), **denied}
    return {**{key: value for key, value in found.items() if key not in ours}, **ours}


def _tools(ground: Ground, effect: Effect) -> Iterator[str]:
    """Permission keys of which every tool has the effect."""
    having = set(ground.tools(effect)) | (set(ground.tools("deny")) if effect == "ask" else set())
    known = {ext.name for ext in ground.view.tools}
    for key in OWN_KEYS:
        tools = {name for name in known if KEYS.get(name, name) == key}
        if tools and tools <= having:
            yield key


def _items(ground: Ground, server: str, effect: Effect) -> Iterator[str]:
    for item in ground.server_items(server, effect):
        yield ground.wire(server, item)


def _plugin(ground: Ground, folder: Path) -> Put:
    entry = [folder.as_uri(), {"command": list(ground.hook), "timeout_ms": HOOK_S * 1000}]
    return Put(keys=("plugin",), value=[entry], how="union")


def _file(ground: Ground) -> Path:
    """The file that is there, else `opencode.json`."""
    folder = ground.view.project if ground.scope == "project" else user_folder("opencode")
    there = [folder / name for name in ("opencode.json", "opencode.jsonc") if (folder / name).exists()]
    if len(there) > 1:
        raise WorkspaceError("stands beside opencode.jsonc, and both are read", file=str(there[0]), fix="merge them")
    return there[0] if there else folder / "opencode.json"


def _present(ground: Ground, path: Path) -> Any:
    """The permissions that stand in the file besides extgate's."""
    found = edit(ground.text(path), "json", str(path)).get(("permission",))
    return {} if found is MISSING else found
