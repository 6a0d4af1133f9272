"""Pydantic AI: one toolset around all tools of an agent, put there by a capability.

    agent = Agent(model, tools=[...], toolsets=[...], capabilities=[GateCapability(gate)])

See: each step's tools and provider-run tools are reduced to what is visible, as the last step before the request. Use:
every call asks again. A call of what was not offered is refused by Pydantic AI itself; the capability records it and
puts the reason into the answer, which counts as a retry of that tool (`Agent(retries=...)`). What the host makes
impossible: a question before each use of a provider-run tool, which is judged when it is offered. An agent that a tool
runs is the host's own code: give it `GateCapability(gate.child(agent="its id"))`. `GateToolset` alone guards one
toolset. An MCP toolset's `id` is the server's configured name. Supported: pydantic-ai-slim 1.80 up to 2.x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from extgate.core.extension import Extension
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.hosted_servers import allowed_tools

CALLABLE = ("tool", "mcp_tool", "subagent")
"""The kinds that a tool handed over as a plain object could be."""
_TAG = "extgate"
_MCP_MODULES = ("pydantic_ai.mcp", "pydantic_ai.toolsets.fastmcp")


@dataclass
class ServerTools(WrapperToolset[Any]):
    """The tools of one MCP server, tagged with what they are, and its instructions while anything of it is visible.

    The tag is an object that no server can send, so that a later prefix or name changes nothing about it.
    """

    gate: Gate
    server: str

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await super().get_tools(ctx)
        return {name: replace(tool, tool_def=self._tagged(tool.tool_def)) for name, tool in tools.items()}

    def _tagged(self, tool: ToolDefinition) -> ToolDefinition:
        prefix = getattr(self.wrapped, "tool_prefix", None)
        name = tool.name.removeprefix(f"{prefix}_") if prefix else tool.name
        ext = Extension(kind="mcp_tool", server=self.server, name=name)
        return replace(tool, metadata={**(tool.metadata or {}), _TAG: ext})

    async def get_instructions(self, ctx: RunContext[Any]) -> Any:
        items = [ext for ext in self.gate.inventory.extensions if ext.server == self.server]
        return await super().get_instructions(ctx) if any(map(self.gate.is_visible, items)) else None


@dataclass
class GateToolset(WrapperToolset[Any]):
    """Any toolset as one agent may see and use it. server: the MCP server that it talks to, if it is one's."""

    gate: Gate
    server: str | None = None

    def __post_init__(self) -> None:
        if self.server is not None and not isinstance(self.wrapped, ServerTools):
            self.wrapped = ServerTools(self.wrapped, self.gate, self.server)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The visible tools."""
        tools = await super().get_tools(ctx)
        known = {name: ext for name, tool in tools.items() if (ext := _tag(tool.tool_def))}
        seen = {id(ext) for ext in self.gate.see(known.values())}
        named = set(self.gate.see_named([name for name in tools if name not in known], CALLABLE))
        return {n: t for n, t in tools.items() if n in named or (n in known and id(known[n]) in seen)}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """What the tool returns, or the reason why it did not run."""
        ext = _tag(tool.tool_def)
        ask = self.gate.ause(ext, tool_args) if ext else self.gate.ause_named(name, tool_args, kinds=CALLABLE)
        answer = await ask
        return await super().call_tool(name, tool_args, ctx, tool) if answer else answer.message


@dataclass
class GateCapability(AbstractCapability[Any]):
    """Puts the gate around everything that one agent can call, whoever brought it."""

    gate: Gate
    refused: dict[str, str] = field(default_factory=dict, repr=False)

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    async def for_run(self, ctx: RunContext[Any]) -> GateCapability:
        return GateCapability(self.gate)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return GateToolset(toolset.visit_and_replace(self._known), self.gate)

    def _known(self, leaf: AbstractToolset[Any]) -> AbstractToolset[Any]:
        is_mcp = any(base.__module__ in _MCP_MODULES for base in type(leaf).__mro__)
        return ServerTools(leaf, self.gate, leaf.id) if is_mcp and leaf.id else leaf

    async def before_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
        """The request without hidden provider-run tools, and with the reasons of the last refusals."""
        params = request_context.model_request_parameters
        fields = {name for name in ("native_tools", "builtin_tools") if getattr(params, name, None)}
        kept = {name: self._offered(getattr(params, name)) for name in fields}
        messages = [_reasoned(message, self.refused) for message in request_context.messages]
        return replace(request_context, model_request_parameters=replace(params, **kept), messages=messages)

    def _offered(self, tools: Sequence[Any]) -> list[Any]:
        """Of a server that the provider calls, only what is allowed without asking."""
        seen = self.gate.see_named([tool.kind for tool in tools if tool.kind != "mcp_server"], ("tool",))
        hosted = [(tool, allowed_tools(self.gate, tool.id, tool.allowed_tools)) for tool in tools
                  if tool.kind == "mcp_server"]  # fmt: skip
        kept = [replace(tool, allowed_tools=names) for tool, names in hosted if names]
        return [tool for tool in tools if tool.kind in seen] + kept

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: Any, response: ModelResponse
    ) -> ModelResponse:
        """The response as it is; calls of what was not offered are recorded, and their reasons kept."""
        params = request_context.model_request_parameters
        offered = {tool.name for tool in (*params.function_tools, *params.output_tools)}
        for part in response.parts:
            if isinstance(part, ToolCallPart) and part.tool_name not in offered:
                self.refused[part.tool_call_id] = self.gate.refuse(part.tool_name, CALLABLE).message
        return response


def _tag(tool: ToolDefinition) -> Extension | None:
    ext = (tool.metadata or {}).get(_TAG)
    return ext if isinstance(ext, Extension) else None


def _reasoned(message: ModelMessage, refused: dict[str, str]) -> ModelMessage:
    if not isinstance(message, ModelRequest) or not refused:
        return message
    calls: list[tuple[Any, str | None]] = [(p, refused.get(getattr(p, "tool_call_id", ""))) for p in message.parts]
    return replace(message, parts=[replace(part, content=why) if why else part for part, why in calls])
