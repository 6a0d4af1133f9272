"""Codex' `PreToolUse` hook, in `config.toml`. Codex runs it only once its user, or `apply`, has trusted it.

Source: developers.openai.com/codex/hooks, and what 0.171.0 sends, seen 2026-11-30: every shell tool is `Bash` there,
with its line as `command`, and `apply_patch` has its patch as `command`. MCP tools have their full name, other tools of
a namespace have both parts without anything between. Calls that a script of `exec` makes are asked about one by one.
"""

from __future__ import annotations

from extgate.enforce.hooks.call import Args, Call, Reply, Shape, Verdict
from extgate.enforce.hooks.reading import dumped, mapping, text

SHELL = "Bash"
SHAPE = Shape(
    runtime="codex",
    spawns={"multi_agent_v1::spawn_agent": (("agent_type", "agent"), "default")},
    readers=frozenset({"read_mcp_resource"}),
    listers=frozenset({"list_mcp_resources", "list_mcp_resource_templates"}),
    files={"view_image": ("read", ("path",))},
    patches={"apply_patch": ("command", "input", "patch")},
    tells_agents=True,
)


SPACED = {
    f"{space}{name}": f"multi_agent_v1::{tool}"
    for space in ("collaboration", "multi_agent_v1")
    for name, tool in (
        *((name, name) for name in ("spawn_agent", "send_input", "wait_agent", "resume_agent", "close_agent")),
        *(("followup_task", "send_input"), ("send_message", "send_input")),
        *(("interrupt_agent", "close_agent"), ("list_agents", "wait_agent")),
    )
} | {"clocksleep": "clock::sleep"}
"""Tools of namespaces as a hook is told them, with the one of extgate's data that does the same."""


def read(payload: Args) -> Call:
    """The call, a shell's under the name that it has for the model. Raises PayloadError."""
    tool, args = text(payload, "tool_name", needed=True), mapping(payload, "tool_input", needed=True)
    tool = SPACED.get(tool, tool)
    if tool == SHELL:
        tool, args = "exec_command", {**args, "cmd": args.get("command", args.get("cmd"))}
    return Call(
        tool=tool,
        args=args,
        agent=text(payload, "agent_type"),
        is_child=bool(text(payload, "agent_id")),
        session=text(payload, "session_id"),
        cwd=text(payload, "cwd"),
    )


def reply(verdict: Verdict) -> Reply:
    """Nothing for no opinion. Codex cannot be told to ask, so an ask is a deny."""
    if verdict.effect == "pass":
        return Reply()
    decision = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": verdict.reason,
    }
    return Reply(stdout=dumped({"hookSpecificOutput": decision}))
