"""MCP tools as LangChain tools: thin, named once and for all, and known to the registry by server and item."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware, ModelRequest, ToolCallRequest
from langchain_core.tools import BaseTool, StructuredTool, ToolException

from extgate.core.extension import Extension, Inventory
from extgate.core.names import unique_wire_names
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.langchain_identity import Registry, name_of

_NOTHING = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class McpAnswer:
    """What a server answered to a call. content: blocks as MCP has them; structured: JSON-like, None without any."""

    content: tuple[Mapping[str, Any], ...] = ()
    structured: Any = None
    is_error: bool = False


CallMcp = Callable[[Extension, dict[str, Any]], Awaitable[McpAnswer]]
"""Calls one tool of a connected server. Raises ConnectionError when the server is gone."""


class Toolbox(AgentMiddleware[Any, Any, Any]):
    """Offers the host's own tools and those of the MCP servers that are installed now; the gate behind it filters.

    A tool that a server lists later is in the next request, and one that is gone runs no more.
    """

    def __init__(self, gate: Gate, own: Sequence[BaseTool], call: CallMcp, registry: Registry) -> None:
        super().__init__()
        self._gate, self._own, self._call, self._registry = gate, tuple(own), call, registry
        self._made: tuple[object, dict[str, BaseTool]] = (None, {})

    def by_name(self) -> dict[str, BaseTool]:
        """The tools as they are now."""
        if self._made[0] is not self._gate.inventory:
            inventory, before = self._gate.inventory, self._made[1]
            made = mcp_tools(inventory, self._call, self._registry, before, {tool.name for tool in self._own})
            tools = (*self._own, *made)
            self._made = (inventory, {tool.name: tool for tool in tools})
        return self._made[1]

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> Any:
        """Adds the tools to the request."""
        return handler(self._with_tools(request))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Awaitable[Any]]) -> Any:
        """Adds the tools to the request."""
        return await handler(self._with_tools(request))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
        """Finds the tool of the call."""
        return handler(self._found(request))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Awaitable[Any]]) -> Any:
        """Finds the tool of the call."""
        return await handler(self._found(request))

    def _with_tools(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        there = {name_of(tool) for tool in request.tools}
        added = [tool for name, tool in self.by_name().items() if name not in there]
        return request.override(tools=[*request.tools, *added])

    def _found(self, request: ToolCallRequest) -> ToolCallRequest:
        tool = self.by_name().get(request.tool_call["name"])
        return request.override(tool=tool) if request.tool is None and tool is not None else request


def mcp_tools(
    inventory: Inventory,
    call: CallMcp,
    registry: Registry,
    before: Mapping[str, BaseTool] | None = None,
    taken: Iterable[str] = (),
) -> tuple[BaseTool, ...]:
    """One tool for each MCP tool that is installed, registered, by wire name; none has the name of a native tool.

    before: those that may go on as they are. taken: further names that are not free.
    """
    items = inventory.of_kind("mcp_tool")
    names = unique_wire_names(items, {*taken, *(ext.name for ext in inventory.of_kind("tool"))})
    made = []
    for ext in sorted(items, key=names.__getitem__):
        old = (before or {}).get(names[ext])
        made.append(old if old and registry.of(old) == ext else registry.add(_tool(ext, names[ext], call), ext))
    return tuple(made)


def _tool(ext: Extension, name: str, call: CallMcp) -> BaseTool:
    async def run(**arguments: Any) -> tuple[str | list[dict[str, Any]], Any]:
        try:
            answer = await call(ext, arguments)
        except ConnectionError as error:
            raise ToolException(f"the server '{ext.server}' did not answer: {error}") from None
        content = [_block(block) for block in answer.content]
        is_text = all(block["type"] == "text" for block in content)
        text = "\n".join(block["text"] for block in content) if is_text else content
        if answer.is_error:
            raise ToolException(str(text) or "the server answered with an error that says nothing")
        return text, answer.structured

    schema = ext.facts.get("schema")
    return StructuredTool(
        name=name,
        description=ext.description or ext.name,
        args_schema={**_NOTHING, **schema} if isinstance(schema, Mapping) else dict(_NOTHING),
        coroutine=run,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block of an answer as LangChain's standard content has it; what it has no form for is described."""
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "text": str(block.get("text", ""))}
    if kind in ("image", "audio"):
        return {"type": kind, "base64": block.get("data", ""), "mime_type": block.get("mimeType", "")}
    resource = block.get("resource")
    if isinstance(resource, Mapping) and isinstance(resource.get("text"), str):
        return {"type": "text", "text": resource["text"]}
    where = block.get("uri") or (resource.get("uri") if isinstance(resource, Mapping) else "")
    return {"type": "text", "text": f"[{kind or 'block'} {where}]"}
