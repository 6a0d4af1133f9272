"""opencode has no hook commands: the plugin in `plugins/opencode` calls this one before each tool.

The payload is the plugin's own: `tool`, `args`, `agent`, `is_child`, `session`, `cwd`; the answer says `decision` and
`reason`. The plugin takes anything but an answer that says `pass` as a deny. Seen with opencode 1.18.33, 2026-11-30:
`tool.execute.before` runs in sub-agents too, under the name that runs.
"""

from __future__ import annotations

from extgate.enforce.hooks.call import Args, Call, Reply, Shape, Verdict
from extgate.enforce.hooks.reading import PayloadError, dumped, mapping, text

SHAPE = Shape(
    runtime="opencode",
    skills={"skill": ("name",)},
    spawns={"task": (("subagent_type",), "")},
    readers=frozenset({"read_mcp_resource"}),
    listers=frozenset({"list_mcp_resources", "list_mcp_resource_templates"}),
    files={
        "read": ("read", ("filePath",)),
        "edit": ("write", ("filePath",)),
        "write": ("write", ("filePath",)),
        "glob": ("read", ("path",)),
        "lsp": ("read", ("filePath",)),
    },
    searches={"grep": ("path",)},
    patches={"apply_patch": ("patchText", "patch", "input")},
    tells_agents=True,
)


def read(payload: Args) -> Call:
    """The call. Raises PayloadError."""
    is_child = payload.get("is_child", False)
    if not isinstance(is_child, bool):
        raise PayloadError("the call has no true or false as `is_child`")
    return Call(
        tool=text(payload, "tool", needed=True),
        args=mapping(payload, "args", needed=True),
        agent=text(payload, "agent"),
        is_child=is_child,
        session=text(payload, "session"),
        cwd=text(payload, "cwd"),
    )


def reply(verdict: Verdict) -> Reply:
    """Always an answer, so that silence is a deny."""
    effect = "pass" if verdict.effect == "pass" else "deny"
    return Reply(stdout=dumped({"decision": effect, "reason": verdict.reason}))
