"""The Claude Agent SDK: options that hide, and a hook that refuses.

    options = gated_options(gate, ClaudeAgentOptions(permission_mode="bypassPermissions", ...))
    async for message in query(prompt=..., options=options): ...

See: `tools`, `disallowed_tools`, `skills`, `agents` and `mcp_servers` are reduced when the options are made; what is
hidden later stays listed in that session and is refused. Use: a `PreToolUse` hook judges every call, in sub-agents too,
by its target where there is one (a skill, a sub-agent, a resource). The hook holds in every permission mode;
`can_use_tool` is skipped under `bypassPermissions` and for what `allowed_tools` names, so the host's own one only comes
after the hook. `allowed_tools` restricts nothing: it approves beforehand. Residual roads: the file of a hidden skill
can be read with a file tool or a shell; instructions of a server that is left only in part reach the prompt.
Supported: claude-agent-sdk 0.2.182 up to 0.2.x (before, hidden tools of in-process servers stay listed).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from extgate.core.extension import Extension
from extgate.enforce.gate import Answer, Gate, unavailable_because
from extgate.enforce.inproc.claude_agent_options import reduced

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions

CALLABLE = ("tool", "mcp_tool")
MAX_REMEMBERED = 10_000
"""Most calls whose answer is kept for the permission callback."""
Json = Mapping[str, Any]


def gated_options(
    gate: Gate, options: ClaudeAgentOptions, *, children: Mapping[str, Gate] | None = None
) -> ClaudeAgentOptions:
    """The options with everything reduced and the hook in place; the original is left as it is, and open.

    children: gates of sub-agents by type, made with `gate.child`; the others are under this gate's rules.
    """
    from claude_agent_sdk import HookMatcher

    door = ClaudeDoor(gate, children)
    made = reduced(gate, options, door.gate_of)
    # A hook that takes too long has no opinion, so it gets more time than the approver; newer SDKs can block instead.
    block = {"on_failure": "block"} if "on_failure" in HookMatcher.__dataclass_fields__ else {}
    matcher = HookMatcher(hooks=[door.pre_tool_use], timeout=gate.approval_timeout_s + 60, **block)
    made.hooks = {**(options.hooks or {}), "PreToolUse": [*(options.hooks or {}).get("PreToolUse", []), matcher]}
    if options.can_use_tool:
        made.can_use_tool = door.permission(options.can_use_tool)
    return made


class ClaudeDoor:
    """The callbacks of one session."""

    def __init__(self, gate: Gate, children: Mapping[str, Gate] | None = None) -> None:
        self.gate = gate
        self._children = {name: child for name, child in (children or {}).items() if child.is_under(gate)}
        self._let: dict[str, None] = {}

    def gate_of(self, agent_type: str) -> Gate:
        """The gate of a sub-agent of that type; one that nobody made a gate for is under this one's rules."""
        return self._children.setdefault(agent_type, self.gate.child(agent=agent_type))

    async def pre_tool_use(self, payload: Any, tool_use_id: str | None, context: Any) -> Any:
        """The hook's answer: a deny with the reason, else no opinion."""
        try:
            gate = self.gate_of(str(payload.get("agent_type"))) if payload.get("agent_id") else self.gate
            answer = await self._judge(
                gate, str(payload["tool_name"]), payload["tool_input"], bool(payload.get("agent_id"))
            )
            reason = "" if answer else answer.message
        except Exception as error:  # a call that cannot be judged does not run
            reason = self.gate.refuse(str(payload)[:64], why=f"could not be judged ({type(error).__name__})").message
        if not reason:
            self._remember(str(tool_use_id))
            return {}
        decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
        return {"hookSpecificOutput": decision}

    def permission(self, own: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """The permission callback: the host's own one for what the hook let pass, a no for all else."""

        async def can_use_tool(name: str, args: dict[str, Any], context: Any) -> Any:
            from claude_agent_sdk import PermissionResultDeny

            if str(context.tool_use_id) in self._let:
                return await own(name, args, context)
            return PermissionResultDeny(message=self.gate.refuse(name, CALLABLE, why="was not judged").message)

        return can_use_tool

    def _remember(self, tool_use_id: str) -> None:
        if len(self._let) >= MAX_REMEMBERED:
            del self._let[next(iter(self._let))]
        self._let[tool_use_id] = None

    async def _judge(self, gate: Gate, name: str, args: Json, is_child: bool) -> Answer:
        """The tool's answer, and where it is a yes, that of what it is used on."""
        answer = await gate.ause_named(name, args, kinds=CALLABLE)
        if not answer:
            return answer
        owners = {ext.name for ext in gate.owners(name, CALLABLE)}
        if "Skill" in owners:
            skill = str(args.get("skill") or args.get("command") or "").removeprefix("/")
            return await gate.ause_named(skill, kinds=("skill",), action="expand")
        if "Agent" in owners:
            return await self._spawn(gate, str(args.get("subagent_type") or "general-purpose"), is_child)
        if "ReadMcpResourceTool" in owners:
            return await gate.aread_uri(str(args.get("server")), str(args.get("uri")))
        if "ListMcpResourcesTool" in owners:
            listed = self._list_resources(gate, args.get("server"))
            return answer if listed is None else listed
        return answer

    async def _spawn(self, gate: Gate, agent_type: str, is_child: bool) -> Answer:
        ext, child = Extension(kind="subagent", name=agent_type, source="claude-code"), self.gate_of(agent_type)
        if not child.availability.is_available:
            return gate.refuse_item(ext, f"'{{name}}' is unavailable: {unavailable_because(child.availability)}.")
        # The hook tells a sub-agent's type, not who spawned it: no type may have what its spawner is denied.
        if is_child and any(child.is_visible(e) and not gate.is_visible(e) for e in gate.inventory.extensions):
            return gate.refuse_item(ext, "'{name}' may use what this sub-agent may not, so it cannot be spawned here.")
        return await gate.ause(ext, action="spawn")

    def _list_resources(self, gate: Gate, server: object) -> Answer | None:
        """The list cannot be filtered here, so it is refused as soon as something on it is hidden."""
        items = [e for e in gate.inventory.of_kind("mcp_resource") if not server or e.server == server]
        hidden = [ext for ext in items if not gate.is_visible(ext)]
        why = "The list of resources holds some that this agent may not see; read one by its URI."
        return gate.refuse_item(hidden[0], why) if hidden else None
