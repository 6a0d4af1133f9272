"""MCP tools as LangChain tools: thin, named once and for all, and known to the registry by server and item."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from extgate.core.extension import Extension
from extgate.core.names import unique_wire_names
from extgate.enforce.inproc.langchain_identity import Registry

_NOTHING = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class McpAnswer:
    """What a server answered to a call. content: blocks as MCP has them; structured: JSON-like, None without any."""

    content: tuple[Mapping[str, Any], ...] = ()
    structured: Any = None
    is_error: bool = False


CallMcp = Callable[[Extension, dict[str, Any]], Awaitable[McpAnswer]]
"""Calls one tool of a connected server. Raises ConnectionError when the server is gone."""


def mcp_tools(extensions: Iterable[Extension], call: CallMcp, registry: Registry) -> tuple[BaseTool, ...]:
    """One tool for each MCP tool of the inventory, registered, by wire name."""
    items = [ext for ext in extensions if ext.kind == "mcp_tool"]
    names = unique_wire_names(items)
    return tuple(registry.add(_tool(ext, names[ext], call), ext) for ext in sorted(items, key=names.__getitem__))


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
