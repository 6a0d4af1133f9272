"""Gemini CLI under a profile, in its settings: tools and servers excluded, skills off, the hook, the gateway.

Nothing goes into its policies, of which the user's hold for every project. Gemini CLI cannot be told to ask by a hook,
so what a profile asks about is excluded. A project's settings hold in a folder that Gemini CLI
trusts only (not with `--skip-trust`), so the user's are written unless the project's are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from extgate.applied.account import FilePlan
from extgate.applied.jsonc_text import MISSING
from extgate.applied.plan import GATEWAY, HOOK_S, Ground, Plan, leaves
from extgate.applied.puts import Put
from extgate.applied.trees import edit
from extgate.runtime_places import user_folder


def plan(ground: Ground) -> Plan:
    """The project's settings, or the user's."""
    folder = ground.view.project / ".gemini" if ground.scope == "project" else user_folder("gemini")
    path = folder / "settings.json"
    present = edit(ground.text(path), "json", str(path))
    puts = [*settings(ground), *_gateway(ground, present.get(("mcp", "allowed")) is not MISSING)]
    if present.get(("hooksConfig", "enabled")) is False:
        puts.append(Put(keys=("hooksConfig", "enabled"), value=True))
    walls = frozenset({"native", "hook", *(("gateway",) if ground.view.relays else ())})
    needs: tuple[str, ...] = ()
    if ground.scope == "project":
        needs = (
            "Gemini CLI leaves out a project's settings in a folder that it does not trust, and with --skip-trust",
        )
    return Plan(files=(FilePlan(path=path, puts=tuple(puts)),), walls=walls, needs=needs)


def settings(ground: Ground) -> Iterator[Put]:
    """What is excluded, and the hook."""
    yield from _union("tools", "exclude", value=[*ground.tools("deny"), *ground.tools("ask")])
    yield from _union("mcp", "excluded", value=list(ground.closed_servers))
    for server in ground.direct:
        items = [*ground.server_items(server, "deny"), *ground.server_items(server, "ask")]
        if items and server not in ground.closed_servers:
            yield from _union("tools", "exclude", value=_names(ground, server, items))
    skills = [*ground.skills("deny"), *ground.skills("ask")]
    yield from _union("skills", "disabled", value=list(dict.fromkeys(leaves(skills))))
    for name in (*ground.subagents("deny"), *ground.subagents("ask")):
        yield Put(keys=("agents", "overrides", name, "enabled"), value=False)
    hook = {"name": "extgate", "type": "command", "command": ground.shell_hook, "timeout": HOOK_S * 1000}
    yield from _union("hooks", "BeforeTool", value=[{"matcher": ".*", "hooks": [hook]}])


def _gateway(ground: Ground, has_list: bool) -> Iterator[Put]:
    """The gateway's entry; has_list: servers are only those that a list names."""
    if ground.view.relays:
        command, off = ground.gateway, {"excludeTools": list(ground.relayed_denies)} if ground.relayed_denies else {}
        yield Put(keys=("mcpServers", GATEWAY), value={"command": command[0], "args": list(command[1:]), **off})
        if has_list:
            yield from _union("mcp", "allowed", value=[GATEWAY])


def _names(ground: Ground, server: str, items: list[str]) -> list[str]:
    return [ground.wire(server, item) for item in items]


def _union(*keys: str, value: Sequence[object]) -> Iterator[Put]:
    if value:
        yield Put(keys=keys, value=value, how="union")
