"""Tools of the OpenAI Agents SDK that ask: function tools, agents as tools, and what runs on this machine."""

from __future__ import annotations

import copy
import inspect
import json
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents import ApplyPatchTool, CustomTool, FunctionTool, HostedMCPTool, LocalShellTool, ShellTool, Tool

from extgate.core.extension import Extension
from extgate.enforce.gate import Answer, Gate, unavailable_because
from extgate.enforce.inproc.hosted_servers import allowed_tools

CALLABLE = ("tool", "mcp_tool", "subagent")
"""The kinds that a tool handed over as a plain object could be."""
NOT_JSON = "was called with arguments that are not a JSON object"

Args = Mapping[str, Any]
Ask = Callable[[Args | None], Awaitable[Answer]]
"""Asks about one call; None stands for arguments that cannot be read, which is a refusal."""


def offered(tools: Sequence[Tool], gate: Gate) -> list[Tool]:
    """Those of the tools that the model may learn of, each asking before it runs."""
    seen = set(gate.see_named([tool.name for tool in tools if not _is_known(tool)], CALLABLE))
    return [ready for tool in tools if (ready := _ready(tool, gate, tool.name in seen)) is not None]


def already_asking(tool: Tool) -> Tool:
    """A tool of a gated server, which asks by itself."""
    assert isinstance(tool, FunctionTool)
    made = copy.copy(tool)
    made.on_invoke_tool = _Known(tool.on_invoke_tool)
    return made


@dataclass(frozen=True, slots=True)
class _Known:
    """An invocation that asks further in."""

    inner: Callable[..., Awaitable[Any]]

    async def __call__(self, context: Any, text: str) -> Any:
        return await self.inner(context, text)


def _is_known(tool: Tool) -> bool:
    """Whether it is known what the tool is, without its name."""
    own = isinstance(tool, FunctionTool) and (isinstance(tool.on_invoke_tool, _Known) or tool._is_agent_tool)
    return own or isinstance(tool, HostedMCPTool)


def _ready(tool: Tool, gate: Gate, is_named: bool) -> Tool | None:
    if isinstance(tool, HostedMCPTool):
        return _hosted(tool, gate)
    if isinstance(tool, FunctionTool) and isinstance(tool.on_invoke_tool, _Known):
        return tool
    if isinstance(tool, FunctionTool) and tool._is_agent_tool:
        return _spawning(tool, gate)
    if not is_named:
        return None

    async def ask(args: Args | None) -> Answer:
        if args is None:
            return gate.refuse(tool.name, CALLABLE, why=NOT_JSON)
        return await gate.ause_named(tool.name, args, kinds=CALLABLE)

    return _asking(tool, ask)


def _spawning(tool: FunctionTool, gate: Gate) -> Tool | None:
    """An agent as a tool is the sub-agent; one without a gate under this one would escape it, and is not offered."""
    agent = tool._agent_instance
    own = vars(agent).get("gate") if agent is not None else None
    ext = Extension(kind="subagent", name=agent.name if agent is not None else tool.name, source="native")
    if not isinstance(own, Gate) or not own.is_under(gate):
        gate.refuse_item(ext, "'{name}' is an agent without a gate under this one.", action="list")
        return None

    async def ask(args: Args | None) -> Answer:
        if args is None:
            return gate.refuse(ext.name, ("subagent",), why=NOT_JSON)
        if not own.availability.is_available:
            return gate.refuse_item(ext, f"'{{name}}' is unavailable: {unavailable_because(own.availability)}.", args)
        return await gate.ause(ext, args, action="spawn")

    return _asking(tool, ask) if own.availability.is_available and gate.see([ext]) else None


def _hosted(tool: HostedMCPTool, gate: Gate) -> Tool | None:
    """A server that the provider calls: only what is allowed without asking, or nothing."""
    config: Any = dict(tool.tool_config)
    config["allowed_tools"] = allowed_tools(gate, config.get("server_label"), config.get("allowed_tools"))
    return replace(tool, tool_config=config) if config["allowed_tools"] else None


def _asking(tool: Any, ask: Ask) -> Tool:
    """The tool with a question before whatever it runs on this machine."""
    made = copy.copy(tool)
    if isinstance(tool, FunctionTool | CustomTool):
        read = _json if isinstance(tool, FunctionTool) else lambda text: {"input": text}
        made.on_invoke_tool = _before(tool.on_invoke_tool, ask, lambda context, text: read(text))
    elif isinstance(tool, ShellTool | LocalShellTool) and tool.executor:
        made.executor = _before(tool.executor, ask, lambda request: _command(request.data.action))
    elif isinstance(tool, ApplyPatchTool):
        made.editor = _Editor(tool.editor, ask)
    return made  # type: ignore[no-any-return]


def _before(run: Callable[..., Any], ask: Ask, read: Callable[..., Args | None]) -> Any:
    """What runs, with a question before it."""

    async def asked(*given: Any) -> Any:
        answer = await ask(read(*given))
        if not answer:
            return answer.message
        result = run(*given)
        return await result if inspect.isawaitable(result) else result

    return asked


def _json(text: str) -> Args | None:
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _command(action: Any) -> Args:
    commands = getattr(action, "commands", None)
    return {"command": "\n".join(commands) if commands is not None else shlex.join(action.command)}


class _Editor:
    """An editor that asks before each change of a file."""

    def __init__(self, inner: Any, ask: Ask) -> None:
        def read(operation: Any) -> Args:
            return {"operation": operation.type, "path": operation.path}

        self.create_file = _before(inner.create_file, ask, read)
        self.update_file = _before(inner.update_file, ask, read)
        self.delete_file = _before(inner.delete_file, ask, read)
