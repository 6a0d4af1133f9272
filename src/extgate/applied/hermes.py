"""Hermes under a profile, in the user's `config.yaml`: toolsets and skills off, servers closed, the hook, the gateway.

Hermes runs a hook only when its user has approved it; the approval is written beside it, as Hermes itself does. Only
what a hook prints blocks, so the command prints a refusal when its Python is gone. Source: hermes-agent 0.19.0,
`agent/shell_hooks.py`, seen 2026-11-30.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from extgate.applied.account import FilePlan
from extgate.applied.plan import GATEWAY, HOOK_S, Ground, Plan, leaves
from extgate.applied.puts import Put
from extgate.dialects.hermes_toolsets import TOOLSETS
from extgate.runtime_places import user_folder

EVENT = "pre_tool_call"
_REFUSAL = """printf %s '{"action": "block", "message": "extgate refuses this call: its gate does not start."}'"""


def plan(ground: Ground) -> Plan:
    """The user's two files."""
    folder = user_folder("hermes")
    config = FilePlan(path=folder / "config.yaml", form="yaml", puts=tuple(settings(ground)))
    approval = {"event": EVENT, "command": command(ground), "approved_at": "by extgate apply"}
    approvals = FilePlan(
        path=folder / "shell-hooks-allowlist.json", puts=(Put(keys=("approvals",), value=[approval], how="union"),)
    )
    needs = (f"{config.path} holds for every folder; give another HERMES_HOME for one of its own",)
    walls = frozenset({"native", "hook", *(("gateway",) if ground.view.relays else ())})
    return Plan(files=(config, approvals), walls=walls, needs=needs)


def settings(ground: Ground) -> Iterator[Put]:
    """What goes into the configuration."""
    gone = {*ground.tools("deny"), *ground.tools("ask")}
    sets = [name for name, tools in TOOLSETS.items() if tools and set(tools) <= gone]
    if sets:
        yield Put(keys=("agent", "disabled_toolsets"), value=sets, how="union")
    for server in ground.direct:
        items = [*ground.server_items(server, "deny"), *ground.server_items(server, "ask")]
        if server in ground.closed_servers:
            yield Put(keys=("mcp_servers", server, "enabled"), value=False)
        elif items:
            yield Put(keys=("mcp_servers", server, "tools", "exclude"), value=items, how="union")
    if ground.view.relays:
        words, denied = ground.gateway, list(ground.relayed_denies)
        less = {"tools": {"exclude": denied}} if denied else {}
        yield Put(keys=("mcp_servers", GATEWAY), value={"command": words[0], "args": list(words[1:]), **less})
    off = list(dict.fromkeys(leaves([*ground.skills("deny"), *ground.skills("ask")])))
    if off:
        yield Put(keys=("skills", "disabled"), value=off, how="union")
    hook = {"command": command(ground), "timeout": HOOK_S}
    yield Put(keys=("hooks", EVENT), value=[hook], how="union")


def command(ground: Ground) -> str:
    """The hook, for a program that splits it as a shell would and starts it without one."""
    return shlex.join(["/bin/sh", "-c", f"{shlex.join(ground.hook)} || {_REFUSAL}"])
