"""The doors table: what one agent may see and use, written out by hand, and put to every door.

A case is a profile over the stock below; `hidden` and `refused` are ids, everything else is shown and runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from extgate.core.extension import Extension, Inventory, Server
from extgate.core.policy import Profile
from tests.doors.policies import layer, profile, rule


def tool(name: str) -> Extension:
    return Extension(kind="tool", name=name, source="native")


def mcp(kind: str, server: str, name: str, **facts: Any) -> Extension:
    return Extension(kind=kind, server=server, name=name, facts=facts)


STOCK = Inventory(
    extensions=(
        *map(tool, ("bash", "read", "edit", "x__y", "github__wipe", "工具", "deploy")),
        *(Extension(kind="skill", name=name, source="project") for name in ("ops/rollback", "notes")),
        mcp("mcp_tool", "slack", "send"),
        mcp("mcp_tool", "slack", "find"),
        mcp("mcp_tool", "github", "get_issue"),
        mcp("mcp_tool", "github", "wipe_all"),
        mcp("mcp_tool", "github__evil", "get_issue"),
        mcp("mcp_resource", "wiki", "wiki://public/a"),
        mcp("mcp_resource", "wiki", "wiki://secret/b"),
        mcp("mcp_resource", "wiki", "wiki://page/{name}", template=True),
        mcp("mcp_prompt", "wiki", "triage"),
        mcp("mcp_prompt", "github", "review"),
        *(Extension(kind="subagent", name=name) for name in ("helper", "auditor")),
    ),
    servers=tuple(Server(name=name) for name in ("slack", "github", "github__evil", "wiki")),
)

HOSTILE = Inventory(
    extensions=(
        *map(tool, ("read", "", "ba\u200bsh", "a\nb", "\u202ebash", "s" * 200)),
        mcp("mcp_tool", "slack", "send"),
        mcp("mcp_tool", "slack", "se\u200bnd"),
        mcp("mcp_tool", "sl\u200back", "find"),
        mcp("mcp_resource", "slack", "slack://\u200b"),
        mcp("mcp_prompt", "slack", "a\x1bb"),
    ),
    servers=(Server(name="slack"), Server(name="sl\u200back")),
)
UNREADABLE = frozenset(
    {
        "tool:",
        "tool:ba\u200bsh",
        "tool:a\nb",
        "tool:\u202ebash",
        "mcp_tool:slack/se\u200bnd",
        "mcp_tool:sl\u200back/find",
        "mcp_resource:slack/slack://\u200b",
        "mcp_prompt:slack/a\x1bb",
    }
)

ALL = frozenset(ext.id for ext in STOCK.extensions)
KINDS = {kind: frozenset(i for i in ALL if i.startswith(f"{kind}:")) for kind in ("tool", "skill", "subagent")}
MCP = frozenset(i for i in ALL if i.startswith("mcp_"))


def of_server(name: str) -> frozenset[str]:
    return frozenset(i for i in MCP if f":{name}/" in i)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row. says: what the approver says, None: there is nobody. later: comes into force after the list and before
    the call. args: of the call, by id. refused: None means the hidden ones."""

    name: str
    profile: Profile
    hidden: frozenset[str] = frozenset()
    refused: frozenset[str] | None = None
    stock: Inventory = STOCK
    says: bool | None = None
    later: Profile | None = None
    args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def not_run(self) -> frozenset[str]:
        return self.hidden if self.refused is None else self.refused


ASKING = profile("{}", layer(rule("ask", "deploy"), rule("ask", "github/wipe*", kind="mcp_tool")))
ASKED = frozenset({"tool:deploy", "mcp_tool:github/wipe_all"})
NO_RM = profile(
    "{}",
    layer(
        rule("deny", "bash", when=(("command", "rm *"),)),
        rule("deny", "slack/send", kind="mcp_tool", when=(("command", "rm *"),)),
    ),
)
DENY_MOST = """
tools: {disabled: [bash, x__y]}
skills: {disabled: ["ops/*"]}
mcp: {disabled: ["github", "slack/send"]}
resources: {disabled: ["wiki/wiki://secret/*"]}
prompts: {disabled: ["wiki/*"]}
subagents: {disabled: [auditor]}
"""
DENIED = of_server("github") | {
    "tool:bash",
    "tool:x__y",
    "skill:ops/rollback",
    "mcp_tool:slack/send",
    "mcp_resource:wiki/wiki://secret/b",
    "mcp_prompt:wiki/triage",
    "subagent:auditor",
}

CASES = (
    Case(name="everything", profile=profile("{}")),
    Case(name="some of each kind is denied", profile=profile(DENY_MOST), hidden=DENIED),
    Case(
        name="only some are allowed",
        profile=profile("tools: {allowed: [read, 工具]}\nmcp: {allowed: ['slack', 'github/get_*']}"),
        hidden=KINDS["tool"] - {"tool:read", "tool:工具"}
        | MCP - of_server("slack") - {"mcp_tool:github/get_issue"},
    ),
    Case(
        name="an allow-list of tools holds for servers too",
        profile=profile("tools: {allowed: [read]}"),
        hidden=KINDS["tool"] - {"tool:read"} | MCP,
    ),
    Case(name="no layer at all", profile=Profile(id="nobody"), hidden=ALL),
    Case(name="unavailable", profile=profile("mcp: {required: [k8s]}"), hidden=ALL),
    Case(name="names that cannot be read", profile=profile("{}"), stock=HOSTILE, hidden=UNREADABLE),
    Case(name="ask and nobody there", profile=ASKING, hidden=ASKED),
    Case(name="ask and a yes", profile=ASKING, says=True),
    Case(name="ask and a no", profile=ASKING, says=False, refused=ASKED),
    Case(name="an argument that is denied", profile=NO_RM, refused=frozenset({"tool:bash", "mcp_tool:slack/send"}),
         args={"tool:bash": {"command": "rm -rf /"}, "mcp_tool:slack/send": {"command": "rm -rf /"}}),
    Case(name="an argument that is not", profile=NO_RM, args={"tool:bash": {"command": "ls"}}),
    Case(name="denied after it was listed", profile=profile("{}"), later=profile(DENY_MOST), refused=DENIED),
    Case(name="unavailable after it was listed", profile=profile("{}"), later=profile("mcp: {required: [k8s]}"),
         refused=ALL),
    Case(
        name="dialect B",
        profile=profile('tools: {patterns: ["impl:*:*", "mcp:slack:*", "!impl:*:bash", "!mcp:*:find"]}\n'
                        'skills: {patterns: ["default:*"]}\nsubagents: [helper]'),
        hidden=MCP - {"mcp_tool:slack/send"} | {"tool:bash", "skill:ops/rollback", "subagent:auditor"},
    ),
)  # fmt: skip
