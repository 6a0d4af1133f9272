"""A FastMCP server behind a gate: tools, resources, templates and prompts, each list and each use.

    server.add_middleware(GateMiddleware(gate, server="wiki"))

Add it last: what is added before it runs outside of it. See: lists hold what is visible; a server of which nothing is
visible sends no instructions. Use: a refused tool answers with an error that the model reads; a refused resource,
subscription or prompt with a protocol error that says why; a completion for something hidden is empty. `server` is the
configured name, by which policies know it; what a mounted server brings is this server's, under the name that clients
see. A resource is read only if the inventory of the gate lists it, so keep that fresh: `installed` makes one.
Background tasks start as calls and are judged as calls. Supported: fastmcp 3.0 up to 4.x
(before, a middleware cannot take the instructions of a hidden server away).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import fastmcp
from fastmcp import FastMCP
from fastmcp.exceptions import PromptError, ResourceError, ToolError
from fastmcp.server.middleware import Middleware, MiddlewareContext

from extgate.core.extension import Extension, Inventory, Server
from extgate.enforce.gate import Gate

_ANSWERS_AT_ONCE = fastmcp.__version__.startswith("3.")
_LISTS = {
    "tools": "mcp_tool",
    "resources": "mcp_resource",
    "resource_templates": "mcp_resource",
    "prompts": "mcp_prompt",
}
Context = MiddlewareContext[Any]


async def installed(server: FastMCP[Any], name: str) -> Inventory:
    """Everything that the server offers now, unfiltered, as one connected server of this name."""
    found: list[Extension] = []
    for what in _LISTS:
        items = await getattr(server, f"list_{what}")(run_middleware=False)
        found += [_item(name, what, item) for item in items]
    return Inventory(extensions=tuple(dict.fromkeys(found)), servers=(Server(name=name),))


def _item(server: str, what: str, item: Any) -> Extension:
    name = getattr(item, {"resources": "uri", "resource_templates": "uri_template"}.get(what, "name"))
    facts = {"template": True} if what == "resource_templates" else {}
    return Extension(kind=_LISTS[what], server=server, name=str(name), description=item.description or "", facts=facts)


class GateMiddleware(Middleware):
    """Filters the lists of one server, and refuses what one agent may not use."""

    def __init__(self, gate: Gate, *, server: str) -> None:
        self.gate, self.server = gate, server

    # ------------------------------------------------------------------------------------------ what may be seen

    def _visible(self, what: str, items: Sequence[Any]) -> list[Any]:
        rows = [(_item(self.server, what, item), item) for item in items]
        seen = {id(ext) for ext in self.gate.see([ext for ext, _ in rows])}
        return [item for ext, item in rows if id(ext) in seen]

    async def on_list_tools(self, context: Context, call_next: Any) -> list[Any]:
        return self._visible("tools", await call_next(context))

    async def on_list_resources(self, context: Context, call_next: Any) -> list[Any]:
        return self._visible("resources", await call_next(context))

    async def on_list_resource_templates(self, context: Context, call_next: Any) -> list[Any]:
        return self._visible("resource_templates", await call_next(context))

    async def on_list_prompts(self, context: Context, call_next: Any) -> list[Any]:
        return self._visible("prompts", await call_next(context))

    async def on_initialize(self, context: Context, call_next: Any) -> Any:
        if _ANSWERS_AT_ONCE and not self._is_any_visible():
            # The result is sent inside of `call_next`, made from these options of the session.
            context.fastmcp_context.session._init_options.instructions = None  # type: ignore[union-attr]
        return self._without_instructions(await call_next(context))

    async def on_discover(self, context: Context, call_next: Any) -> Any:
        return self._without_instructions(await call_next(context))

    def _is_any_visible(self) -> bool:
        return any(self.gate.is_visible(e) for e in self.gate.inventory.extensions if e.server == self.server)

    def _without_instructions(self, result: Any) -> Any:
        if result is None or self._is_any_visible():
            return result
        if isinstance(result, Mapping):
            return {key: value for key, value in result.items() if key != "instructions"}
        return result.model_copy(update={"instructions": None})

    # ------------------------------------------------------------------------------------------ what may be used

    async def on_call_tool(self, context: Context, call_next: Any) -> Any:
        ext = Extension(kind="mcp_tool", server=self.server, name=context.message.name)
        answer = await self.gate.ause(ext, context.message.arguments)
        if not answer:
            raise ToolError(answer.message)
        return await call_next(context)

    async def on_get_prompt(self, context: Context, call_next: Any) -> Any:
        ext = Extension(kind="mcp_prompt", server=self.server, name=context.message.name)
        answer = await self.gate.ause(ext, context.message.arguments, action="read")
        if not answer:
            raise PromptError(answer.message)
        return await call_next(context)

    async def on_read_resource(self, context: Context, call_next: Any) -> Any:
        await self._readable(str(context.message.uri))
        return await call_next(context)

    async def _readable(self, uri: str) -> None:
        answer = await self.gate.aread_uri(self.server, uri)
        if not answer:
            raise ResourceError(answer.message)

    async def on_request(self, context: Context, call_next: Any) -> Any:
        """Subscriptions and completions, which have no hook of their own."""
        asked = context.message if isinstance(context.message, Mapping) else {}
        if context.method == "resources/subscribe":
            await self._readable(str(asked.get("uri")))
        if context.method == "completion/complete" and not self._is_named(asked.get("ref")):
            # For a reference that nothing has, the server makes the empty answer of this protocol version itself.
            context = context.copy(message={**asked, "ref": {"type": "ref/prompt", "name": ""}})
        return await call_next(context)

    def _is_named(self, ref: Any) -> bool:
        """Whether the model may know of the prompt or template that a completion is for."""
        ref = ref if isinstance(ref, Mapping) else {}
        kind, key = ("mcp_prompt", "name") if ref.get("type") == "ref/prompt" else ("mcp_resource", "uri")
        return bool(self.gate.see([Extension(kind=kind, server=self.server, name=str(ref.get(key) or ""))]))
