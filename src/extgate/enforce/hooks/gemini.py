"""Gemini CLI's `BeforeTool` hook. It does not say which agent calls, so all of a session are under one profile.

Source: the documentation that Gemini CLI brings (docs/hooks/reference.md), and what 0.61.0 sends, seen 2026-11-30.
`mcp_context` names an MCP tool's server and the tool's own name. Exit 2 blocks, any other failure does not.
"""

from __future__ import annotations

from extgate.enforce.hooks.call import Args, Call, Reply, Shape, Verdict
from extgate.enforce.hooks.reading import dumped, mapping, text

SHAPE = Shape(
    runtime="gemini-cli",
    skills={"activate_skill": ("name",)},
    spawns={"invoke_agent": (("agent_name",), "")},
    readers=frozenset({"read_mcp_resource"}),
    listers=frozenset({"list_mcp_resources"}),
    files={
        "read_file": ("read", ("file_path", "absolute_path", "path")),
        "read_many_files": ("read", ("include", "paths", "file_paths")),
        "write_file": ("write", ("file_path",)),
        "replace": ("write", ("file_path",)),
        "list_directory": ("read", ("dir_path", "path")),
        "glob": ("read", ("dir_path", "path")),
    },
    searches={"grep_search": ("dir_path", "path"), "search_file_content": ("dir_path", "path")},
)


def read(payload: Args) -> Call:
    """The call. Raises PayloadError."""
    context = mapping(payload, "mcp_context")
    return Call(
        tool=text(payload, "tool_name", needed=True),
        args=mapping(payload, "tool_input", needed=True),
        server=text(context, "server_name"),
        item=text(context, "tool_name"),
        session=text(payload, "session_id"),
        cwd=text(payload, "cwd"),
    )


def reply(verdict: Verdict) -> Reply:
    """Nothing for no opinion. Gemini CLI cannot be told to ask, so an ask is a deny."""
    if verdict.effect == "pass":
        return Reply()
    return Reply(stdout=dumped({"decision": "deny", "reason": verdict.reason}))
