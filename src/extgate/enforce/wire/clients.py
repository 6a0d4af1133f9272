"""The agent programs that the wire knows, one row each: how a request tells which one it is, and its tools that run or
open others. What is of no row is `generic`, and the strictest reading holds.

Sources: the programs themselves at the versions in `discover/builtins/*.toml`, run against a scripted model 2026-11-30.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from extgate.core.extension import Extension
from extgate.core.names import MCP_MARKS
from extgate.enforce.mcp.envelope import value_of

CALLABLE = ("tool", "mcp_tool", "subagent")
"""The kinds that a tool of a request could be."""
Args = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """What a call would run or open by its arguments, and with which. server: of a resource or prompt, whose `name` is
    its URI or name; one without it stands for all of that server's, and without a server for all of them. A skill
    without a name stands for all of them."""

    name: str
    kinds: tuple[str, ...] = CALLABLE
    server: str | None = None
    args: Args = field(default_factory=dict, hash=False)


Reader = Callable[[Args], Sequence[Target]]
"""The targets that a call's arguments name; none when they name none."""


def _of(kinds: tuple[str, ...], *keys: str, otherwise: str = "") -> Reader:
    def read(args: Args) -> Sequence[Target]:
        names = [args[key] for key in keys if isinstance(args.get(key), str)] or [otherwise]
        return [Target(name, kinds) for name in names if name]

    return read


def _run(args: Args) -> Sequence[Target]:
    """The tool that a catalog's tool runs; what it is given stands in a key of its own, or beside its name."""
    inner = next((args[key] for key in _INNER if key in args), args)
    if isinstance(inner, str):
        inner = value_of(inner.encode("utf-8", "replace"))
    given = inner if isinstance(inner, Mapping) else {}
    return [replace(target, args=given) for target in _of(CALLABLE, "name", "tool", "tool_name")(args)]


_INNER = ("arguments", "args", "input", "parameters", "tool_input", "tool_args")
_AGENT = _of(("subagent",), "subagent_type", "agent_type", "agent_name", "agent", "name")


def _skill(args: Args) -> Sequence[Target]:
    named = _of(("skill",), "skill", "skill_name", "name", "command")(args)
    return [Target(words[0].lstrip("/"), t.kinds) for t in named if (words := t.name.split())]


def _resource(args: Args) -> Sequence[Target]:
    server, uri = (args.get(key) if isinstance(args.get(key), str) else None for key in ("server", "uri"))
    return [Target(uri or "", ("mcp_resource",), server)]


def _all_skills(args: Args) -> Sequence[Target]:
    return [Target("", ("skill",))]


def _codex_agent(args: Args) -> Sequence[Target]:
    return _of(("subagent",), "agent_type", otherwise="default")(args)


def _prompt(args: Args) -> Sequence[Target]:
    return _of(("mcp_prompt",), "name", otherwise="*")(args)


def _all_prompts(args: Args) -> Sequence[Target]:
    return [Target("*", ("mcp_prompt",))]


def _claude_agent(args: Args) -> Sequence[Target]:
    return _of(("subagent",), "subagent_type", otherwise="general-purpose")(args)


def _tool_search(args: Args) -> Sequence[Target]:
    """`select:A,B` names tools; other queries find what was announced, which has been judged."""
    query = args.get("query")
    names = query.strip()[7:].split(",") if isinstance(query, str) and query.strip().startswith("select:") else ()
    return [Target(name.strip()) for name in names if name.strip()]


_METAS: Mapping[str, Reader] = {
    "run_tool": _run, "get_tool": _run, "get_skill": _skill, "load_skill": _skill, "use_skill": _skill,
    "read_skill": _skill, "activate_skill": _skill, "skill_view": _skill, "skill": _skill, "Skill": _skill,
    "SlashCommand": _skill, "task": _AGENT, "Task": _AGENT, "Agent": _AGENT, "invoke_agent": _AGENT,
    "spawn_agent": _AGENT, "ToolSearch": _tool_search, "tool_search": _tool_search,
    "ReadMcpResourceTool": _resource, "ReadMcpResourceDirTool": _resource, "ListMcpResourcesTool": _resource,
    "read_mcp_resource": _resource, "list_mcp_resources": _resource, "list_mcp_resource_templates": _resource,
}  # fmt: skip
"""Of every program: a host may have copied another's tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One agent program. agents: how its `User-Agent` begins; library: how it does where it is that of a library, which
    others use as well. mark: what the names of its MCP tools begin with; empty
    when they have no mark. metas: its tools that run or open others, by name. server_tools: such that it adds to the
    tools of each server, by the name beside them. hosted: by a provider's tool, the program's own tool that asks for
    it. builtins: its own tools by name, which the rim fills in.
    """

    name: str
    agents: tuple[str, ...] = ()
    library: tuple[str, ...] = ()
    mark: str = ""
    metas: Mapping[str, Reader] = field(default_factory=lambda: _METAS)
    server_tools: Mapping[str, Reader] = field(default_factory=dict)
    hosted: Mapping[str, str] = field(default_factory=dict)
    builtins: Mapping[str, Extension] = field(default_factory=dict)


_CLAUDE_METAS = {**_METAS, "Agent": _claude_agent, "Task": _claude_agent}
_CODEX_METAS = {**_METAS, "spawn_agent": _codex_agent}
_HERMES_METAS = {**_METAS, "skill_manage": _skill, "skills_list": _all_skills}
_HERMES_SERVER_TOOLS = {
    "read_resource": _resource, "list_resources": _resource, "get_prompt": _prompt, "list_prompts": _all_prompts,
}  # fmt: skip

GENERIC = Client(name="generic")
CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        GENERIC,
        Client(
            name="claude-code", agents=("claude-cli/",), mark=MCP_MARKS["claude-code"], metas=_CLAUDE_METAS,
            hosted={"web_search": "WebSearch", "web_fetch": "WebFetch"},
        ),
        Client(name="opencode", agents=("opencode/",)),
        Client(name="codex", agents=("codex_",), mark=MCP_MARKS["codex"], metas=_CODEX_METAS),
        Client(
            name="gemini-cli", agents=("GeminiCLI",), mark=MCP_MARKS["gemini-cli"],
            hosted={"google_search": "google_web_search", "url_context": "web_fetch"},
        ),
        Client(
            name="hermes", agents=("hermes", "HermesAgent"), library=("OpenAI/Python", "AsyncOpenAI/Python"),
            mark=MCP_MARKS["hermes"], metas=_HERMES_METAS, server_tools=_HERMES_SERVER_TOOLS,
        ),
    )
}  # fmt: skip
"""Programs by name."""


def client_of(clients: Mapping[str, Client], *, said: str = "", agent: str = "", usual: str = "") -> Client:
    """The program of a request. said: what a setting or `x-extgate-client` names; agent: its `User-Agent`; usual: the
    program that a library's `User-Agent` stands for, where it uses that one."""
    if said:
        return clients.get(said, clients["generic"])
    known = (c for c in clients.values() if any(agent.startswith(start) for start in c.agents))
    if (found := next(known, None)) is not None:
        return found
    own = clients.get(usual, clients["generic"])
    return own if any(agent.startswith(start) for start in own.library) else clients["generic"]
