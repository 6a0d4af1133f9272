"""Claude Code under a profile: deny and ask rules, skills off, servers closed, the hook, and the gateway.

What a profile allows is not written as an `allow` rule, which would approve it beforehand. In a project the rules go to
`settings.local.json`, which is the user's own and holds in a folder that is not trusted; the gateway goes to
`.mcp.json`, or, where that is the workspace's own list of servers, to the user's entry for the project.
"""

from __future__ import annotations

import os

from extgate.applied.account import FilePlan
from extgate.applied.plan import GATEWAY, HOOK_S, Ground, Plan, leaves
from extgate.applied.puts import Put
from extgate.core.names import cleaned, refusal, rule_name
from extgate.core.policy import Effect
from extgate.runtime_places import claude_state, user_folder


def plan(ground: Ground) -> Plan:
    """The files of a project, or of the user."""
    folder = ground.view.project / ".claude" if ground.scope == "project" else user_folder("claude-code")
    name = "settings.local.json" if ground.scope == "project" else "settings.json"
    files = [FilePlan(path=folder / name, puts=tuple(settings(ground)))]
    walls = {"native", "hook"}
    if ground.view.relays:
        files.append(_servers(ground))
        walls.add("gateway")
    return Plan(files=tuple(files), walls=frozenset(walls))


def settings(ground: Ground) -> list[Put]:
    """What goes into a settings file."""
    puts = [_union("permissions", effect, value=rules(ground, effect)) for effect in ("deny", "ask")]
    hidden = dict.fromkeys([*leaves(ground.skills("deny")), *(ext.name for ext in ground.skills("deny"))])
    puts += [Put(keys=("skillOverrides", name), value="off") for name in hidden]
    puts.append(Put(keys=("disableBundledSkills",), value=True))
    closed = [{"serverName": name} for name in ground.closed_servers]
    puts.append(_union("deniedMcpServers", value=closed))
    puts.append(_union("disabledMcpjsonServers", value=list(ground.closed_servers)))
    if ground.outline.mcp.unknown == "deny":
        left = [name for name in ground.direct if name not in ground.closed_servers]
        left += [GATEWAY] if ground.view.relays else []
        puts.append(Put(keys=("allowedMcpServers",), value=[{"serverName": name} for name in left]))
    hook = {"type": "command", "command": ground.shell_hook, "timeout": HOOK_S}
    puts.append(_union("hooks", "PreToolUse", value=[{"matcher": "*", "hooks": [hook]}]))
    return [put for put in puts if put.value or put.how == "set"]


def rules(ground: Ground, effect: Effect) -> list[str]:
    """Permission rules: whole tools, whole servers, tools of servers, skills, agents, and patterns for later names."""
    outline = ground.outline
    found = [name for name in ground.tools(effect) if not refusal(name)]
    for server in ground.direct:
        if effect == "deny" and server in ground.closed_servers:
            found.append(rule_name(cleaned(server)))
        else:
            found += [rule_name(cleaned(server), cleaned(item)) for item in ground.server_items(server, effect)]
    for pattern in ground.mcp_patterns(effect):
        server, slash, item = pattern.partition("/")
        if slash and "*" in pattern and item.strip("*") and not any(c in pattern for c in "?["):
            found.append(rule_name(cleaned(server, r"A-Za-z0-9_*-"), cleaned(item, r"A-Za-z0-9_*-")))
    for pattern in outline.tools.patterns(effect):
        if "*" in pattern and not any(c in pattern for c in "?[ /()"):
            found.append(pattern)
    if effect == "deny":
        found += [rule_name(GATEWAY, name) for name in ground.relayed_denies]
        found += [f"Skill({name})" for name in leaves([*ground.skills("deny"), *ground.skills("ask")])]
        found += [f"Agent({name})" for name in (*ground.subagents("deny"), *ground.subagents("ask"))]
    return list(dict.fromkeys(found))


def _union(*keys: str, value: object) -> Put:
    return Put(keys=keys, value=value, how="union")


def _servers(ground: Ground) -> FilePlan:
    command = ground.gateway
    entry = {"command": command[0], "args": list(command[1:])}
    project = ground.view.project
    if ground.scope == "user":
        return FilePlan(path=claude_state(), puts=(Put(keys=("mcpServers", GATEWAY), value=entry),))
    file = project / ".mcp.json"
    own = ground.view.workspace.homes.existing(ground.view.workspace.homes.servers)
    if os.path.realpath(file) not in {os.path.realpath(path) for path in own}:
        return FilePlan(path=file, puts=(Put(keys=("mcpServers", GATEWAY), value=entry),))
    keys = ("projects", os.path.realpath(project), "mcpServers", GATEWAY)
    return FilePlan(path=claude_state(), puts=(Put(keys=keys, value=entry),))
