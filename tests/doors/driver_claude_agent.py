"""The Claude Agent SDK without its program: the options that it would get, and its callbacks in the program's order.

`tests/e2e/test_claude_agent_sdk.py` runs the program itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, PermissionResultAllow, ToolPermissionContext

from extgate.core.extension import Extension, Inventory
from extgate.core.names import wire_names
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.claude_agent import CALLABLE, gated_options
from tests.doors.driver import Called, Hits

OWN = {kind: Extension(kind="tool", name=name, source="claude-code") for kind, name in
       {"skill": "Skill", "subagent": "Agent"}.items()}  # fmt: skip


class Host:
    hits: Hits
    kinds = frozenset({"tool", "mcp_tool", "skill", "subagent"})

    def means(self, gate: Gate, ext: Extension) -> tuple[Extension, ...]:
        if ext.kind in OWN:
            return (ext, OWN[ext.kind])
        return gate.owners(self._name(ext), CALLABLE)

    def list_visible(self, gate: Gate) -> set[str]:
        options, stock = self._options(gate), gate.inventory
        taken = set(options.disallowed_tools)
        tools = {name for name in options.tools if name not in taken}
        seen = {e.id for e in stock.of_kind("tool") if e.name in tools and e not in OWN.values()}
        seen |= {e.id for e in stock.of_kind("mcp_tool")
                 if e.server in options.mcp_servers and self._name(e) not in taken}  # fmt: skip
        seen |= {e.id for e in stock.of_kind("skill") if "Skill" in tools and e.leaf in options.skills}
        return seen | {e.id for e in stock.of_kind("subagent") if "Agent" in tools and e.name in options.agents}

    def call(self, gate: Gate, ext: Extension, args: Mapping[str, Any], between: Callable[[], object]) -> Called:
        self.hits = hits = Hits()
        options = self._options(gate)
        between()
        given = {"skill": {"skill": ext.name}, "subagent": {"subagent_type": ext.name, "prompt": "go"}}
        reason = asyncio.run(_refusal(options, self._name(ext), {**args, **given.get(ext.kind, {})}))
        if not reason:
            hits.of(ext)()
        return Called(ran=bool(hits.by_id[ext.id]), message=reason)

    def _name(self, ext: Extension) -> str:
        if ext.kind in OWN:
            return OWN[ext.kind].name
        return ext.name if ext.server is None else wire_names(ext.server, ext.name)[0]

    def _options(self, gate: Gate) -> Any:
        stock = gate.inventory
        gate.swap(inventory=Inventory(extensions=(*stock.extensions, *OWN.values()), servers=stock.servers))
        agents = {e.name: AgentDefinition(description="", prompt="") for e in stock.of_kind("subagent")}
        servers: Any = {server.name: {"command": "true"} for server in stock.servers}
        return gated_options(gate, replace(ClaudeAgentOptions(can_use_tool=_yes), agents=agents, mcp_servers=servers))


async def _yes(name: str, args: dict[str, Any], context: Any) -> PermissionResultAllow:
    return PermissionResultAllow(updated_input=args)


async def _refusal(options: Any, name: str, args: dict[str, Any]) -> str:
    """What the program is told, hook first, then the permission callback; empty when the call may run."""
    payload = {"hook_event_name": "PreToolUse", "tool_name": name, "tool_input": args, "tool_use_id": "t"}
    (matcher,) = options.hooks["PreToolUse"]
    said = await matcher.hooks[0](payload, "t", {"signal": None})
    if said:
        return str(said["hookSpecificOutput"]["permissionDecisionReason"])
    allowed = await options.can_use_tool(name, args, ToolPermissionContext(tool_use_id="t"))
    return "" if allowed.behavior == "allow" else allowed.message


def driver() -> Host:
    return Host()
