"""Codex under a profile, in the user's `config.toml`, which Codex reads in every project, trusted or not.

Codex runs a hook only when its definition is trusted: by a digest in `hooks.state`, which is written with it here, as
`/hooks` does in a terminal. Source: openai/codex pull requests 18893 and 20321, and 0.171.0 as run, seen 2026-11-30.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from extgate.applied.account import FilePlan
from extgate.applied.plan import GATEWAY, HOOK_S, Ground, Plan, leaves
from extgate.applied.puts import Put
from extgate.applied.trees import edit
from extgate.runtime_places import user_folder

SWITCHES = {
    "shell_tool": ("exec_command", "write_stdin"),
    "multi_agent": ("multi_agent_v1::spawn_agent",),
    "goals": ("create_goal", "update_goal"),
}
"""Features by the tools that they take away."""


def plan(ground: Ground) -> Plan:
    """The user's file; there is no other that always holds."""
    path = user_folder("codex") / "config.toml"
    puts = (*settings(ground), *hook(ground, path))
    walls = frozenset({"native", "hook", *(("gateway",) if ground.view.relays else ())})
    needs = (f"{path} holds for every project; give another CODEX_HOME for one of its own",)
    return Plan(files=(FilePlan(path=path, form="toml", puts=puts),), walls=walls, needs=needs)


def settings(ground: Ground) -> Iterator[Put]:
    """Features off, servers closed, skills off by name, and the gateway."""
    hidden = {*ground.tools("deny"), *ground.tools("ask")}
    for feature, tools in SWITCHES.items():
        if hidden & set(tools):
            yield Put(keys=("features", feature), value=False)
    if "web_search" in hidden:
        yield Put(keys=("web_search",), value="disabled")
    for server in ground.direct:
        if server in ground.closed_servers:
            yield Put(keys=("mcp_servers", server, "enabled"), value=False)
        elif items := ground.server_items(server, "deny"):
            yield Put(keys=("mcp_servers", server, "disabled_tools"), value=items, how="union")
    if ground.view.relays:
        command, less = ground.gateway, {"disabled_tools": list(ground.relayed_denies)} if ground.relayed_denies else {}
        yield Put(keys=("mcp_servers", GATEWAY), value={"command": command[0], "args": list(command[1:]), **less})
    off = dict.fromkeys(leaves([*ground.skills("deny"), *ground.skills("ask")]))
    if off:
        yield Put(keys=("skills", "config"), value=[{"name": name, "enabled": False} for name in off], how="union")


def hook(ground: Ground, path: Path) -> Iterator[Put]:
    """The hook, last of its event's groups in the file, and the trust in it."""
    group = {"hooks": [{"type": "command", "command": ground.shell_hook, "timeout": HOOK_S}]}
    yield Put(keys=("features", "hooks"), value=True)
    yield Put(keys=("hooks", "PreToolUse"), value=[group], how="union")
    key = f"{os.path.abspath(path)}:pre_tool_use:{_others(ground, path)}:0"
    yield Put(keys=("hooks", "state", key, "trusted_hash"), value=trust(ground.shell_hook))


def trust(command: str) -> str:
    """Codex' digest of the hook's definition."""
    handler = {"type": "command", "command": command, "timeout": HOOK_S, "async": False}
    text = json.dumps({"event_name": "pre_tool_use", "hooks": [handler]}, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _others(ground: Ground, path: Path) -> int:
    """How many groups of the event stand in the file besides extgate's."""
    found = edit(ground.text(path), "toml", str(path)).get(("hooks", "PreToolUse"))
    return len(found) if isinstance(found, list) else 0
