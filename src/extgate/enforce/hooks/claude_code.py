"""Claude Code's `PreToolUse` hook: a deny holds in every permission mode, and in sub-agents.

Source: code.claude.com docs "Hooks", and what 2.1.332 sends, seen 2026-11-30. `agent_type` names the agent that calls,
with an `agent_id` when it is a sub-agent; `mcp_server` names the server of an MCP tool as it is configured. A hook that
fails with another code than 2, or that takes too long, has no opinion: the command that `apply` writes ends with 2.
"""

from __future__ import annotations

from extgate.enforce.hooks.call import Args, Call, Reply, Shape, Verdict
from extgate.enforce.hooks.reading import dumped, mapping, text

SHAPE = Shape(
    runtime="claude-code",
    skills={"Skill": ("skill", "command", "name")},
    spawns={"Agent": (("subagent_type",), "general-purpose"), "Task": (("subagent_type",), "general-purpose")},
    readers=frozenset({"ReadMcpResourceTool", "ReadMcpResourceDirTool"}),
    listers=frozenset({"ListMcpResourcesTool"}),
    files={
        "Read": ("read", ("file_path",)),
        "Edit": ("write", ("file_path",)),
        "Write": ("write", ("file_path",)),
        "NotebookEdit": ("write", ("notebook_path", "file_path")),
        "Glob": ("read", ("path",)),
        "LSP": ("read", ("filePath", "file_path")),
        "SendUserFile": ("read", ("file_path", "path", "files")),
        "Artifact": ("read", ("file_path", "path")),
    },
    searches={"Grep": ("path",)},
    tells_agents=True,
    asks=True,
)


def read(payload: Args) -> Call:
    """The call. Raises PayloadError."""
    return Call(
        tool=text(payload, "tool_name", needed=True),
        args=mapping(payload, "tool_input", needed=True),
        server=text(mapping(payload, "mcp_server"), "name"),
        agent=text(payload, "agent_type"),
        is_child=bool(text(payload, "agent_id")),
        session=text(payload, "session_id"),
        cwd=text(payload, "cwd"),
    )


def reply(verdict: Verdict) -> Reply:
    """Nothing for no opinion, so that Claude Code's own rules still hold."""
    if verdict.effect == "pass":
        return Reply()
    decision = {
        "hookEventName": "PreToolUse",
        "permissionDecision": verdict.effect,
        "permissionDecisionReason": verdict.reason,
    }
    return Reply(stdout=dumped({"hookSpecificOutput": decision}))
