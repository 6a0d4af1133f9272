"""An MCP server of the OpenAI Agents SDK behind a gate: lists are filtered, every use asks."""

from __future__ import annotations

from typing import Any

from agents.mcp import MCPServer
from mcp.types import CallToolResult, GetPromptResult, PromptMessage, TextContent

from extgate.core.extension import Extension
from extgate.enforce.gate import Gate


class GatedServer(MCPServer):
    """One server as one agent may see and use it. `inner` is the server itself, connected and closed by the host.

    A refused tool answers with an error that the model reads, a refused prompt with the reason as its text; a refused
    resource raises PermissionError, because the host's own code reads it.
    """

    def __init__(self, inner: MCPServer, gate: Gate) -> None:
        # The base's own state stays unset, so that `__getattr__` finds the server's.
        self.inner, self.gate = inner, gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def cached_tools(self) -> Any:
        return self.inner.cached_tools

    async def connect(self) -> None:
        await self.inner.connect()  # type: ignore[no-untyped-call]

    async def cleanup(self) -> None:
        await self.inner.cleanup()  # type: ignore[no-untyped-call]

    def _item(self, kind: str, name: object) -> Extension:
        return Extension(kind=kind, server=self.inner.name, name=str(name))

    def _visible(self, kind: str, items: list[Any], key: str) -> list[Any]:
        rows = [(self._item(kind, vars(item)[key]), item) for item in items]
        seen = {id(ext) for ext in self.gate.see([ext for ext, _ in rows])}
        return [item for ext, item in rows if id(ext) in seen]

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[Any]:
        return self._visible("mcp_tool", await self.inner.list_tools(run_context, agent), "name")

    async def call_tool(self, tool_name: str, arguments: dict[str, Any] | None, *rest: Any, **more: Any) -> Any:
        answer = await self.gate.ause(self._item("mcp_tool", tool_name), arguments)
        if not answer:
            text = {"type": "text", "text": answer.message}
            return CallToolResult.model_validate({"content": [text], "isError": True})
        return await self.inner.call_tool(tool_name, arguments, *rest, **more)

    async def list_prompts(self) -> Any:
        result = await self.inner.list_prompts()
        return result.model_copy(update={"prompts": self._visible("mcp_prompt", result.prompts, "name")})

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        answer = await self.gate.ause(self._item("mcp_prompt", name), arguments, action="read")
        if not answer:
            text = TextContent(type="text", text=answer.message)
            return GetPromptResult(messages=[PromptMessage(role="user", content=text)])
        return await self.inner.get_prompt(name, arguments)

    async def list_resources(self, cursor: str | None = None) -> Any:
        result = await self.inner.list_resources(cursor)
        return result.model_copy(update={"resources": self._visible("mcp_resource", result.resources, "uri")})

    async def list_resource_templates(self, cursor: str | None = None) -> Any:
        result = await self.inner.list_resource_templates(cursor)
        (key,) = {"resourceTemplates", "resource_templates"} & set(type(result).model_fields)
        uri = "uriTemplate" if key == "resourceTemplates" else "uri_template"
        return result.model_copy(update={key: self._visible("mcp_resource", vars(result)[key], uri)})

    async def read_resource(self, uri: str) -> Any:
        answer = await self.gate.aread_uri(self.inner.name, str(uri))
        if not answer:
            raise PermissionError(answer.message)
        return await self.inner.read_resource(uri)
