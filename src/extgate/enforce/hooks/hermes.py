"""Hermes' `pre_tool_call` shell hook. It does not say which agent calls, so all of a session are under one profile.

Source: `agent/shell_hooks.py` of hermes-agent 0.19.0, and what it sends, seen 2026-11-30: the name after its own
repair, which is the one that runs. Only what is printed blocks, whatever the exit code is.
"""

from __future__ import annotations

from extgate.enforce.hooks.call import Args, Call, Reply, Shape, Verdict
from extgate.enforce.hooks.reading import dumped, mapping, text

SHAPE = Shape(
    runtime="hermes",
    skills={"skill_view": ("name",), "skill_manage": ("name",)},
    files={
        "read_file": ("read", ("path",)),
        "write_file": ("write", ("path",)),
        "patch": ("write", ("path",)),
        "vision_analyze": ("read", ("image_url", "path")),
    },
    searches={"search_files": ("path",)},
    patches={"patch": ("patch",)},
)


def read(payload: Args) -> Call:
    """The call. Raises PayloadError."""
    return Call(
        tool=text(payload, "tool_name", needed=True),
        args=mapping(payload, "tool_input", needed=True),
        session=text(payload, "session_id"),
        cwd=text(payload, "cwd"),
    )


def reply(verdict: Verdict) -> Reply:
    """Nothing for no opinion. Hermes cannot be told to ask, so an ask is a deny."""
    if verdict.effect == "pass":
        return Reply()
    return Reply(stdout=dumped({"action": "block", "message": verdict.reason}))
