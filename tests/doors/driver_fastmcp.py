"""A FastMCP server asked by its own client, in memory; each server of the stock is one of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.prompts import Prompt
from fastmcp.resources import Resource, ResourceTemplate
from fastmcp.server.middleware import Middleware
from fastmcp.tools import Tool
from pydantic import AnyUrl

from extgate.core.extension import Extension
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.fastmcp_server import GateMiddleware
from tests.doors.driver import Called, Hits


class Between(Middleware):
    """Outside of the gate: what happens after the lists were made and before a use is looked at."""

    def __init__(self, between: Callable[[], object]) -> None:
        self.between = between

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        self.between()
        return await call_next(context)

    on_read_resource = on_get_prompt = on_call_tool


class Host:
    """One server, its client and what is listed before each call."""

    hits: Hits
    kinds = frozenset({"mcp_tool", "mcp_resource", "mcp_prompt"})

    def means(self, gate: Gate, ext: Extension) -> tuple[Extension, ...]:
        return (ext,)

    def list_visible(self, gate: Gate) -> set[str]:
        return {id_ for name in _servers(gate) for id_ in asyncio.run(_listed(_made(gate, name, Hits(), int), name))}

    def call(self, gate: Gate, ext: Extension, args: Mapping[str, Any], between: Callable[[], object]) -> Called:
        self.hits = hits = Hits()
        message = asyncio.run(_asked(_made(gate, ext.server or "", hits, between), ext, dict(args)))
        ran = bool(hits.by_id[ext.id])
        return Called(ran=ran, message="" if ran else message)


async def _listed(server: FastMCP[Any], name: str) -> set[str]:
    async with Client(server) as client:
        found = [("tool", tool.name) for tool in await client.list_tools()]
        found += [("prompt", prompt.name) for prompt in await client.list_prompts()]
        found += [("resource", str(resource.uri)) for resource in await client.list_resources()]
        for template in await client.list_resource_templates():
            fields = template.model_dump(by_alias=True)
            found.append(("resource", fields["uriTemplate"]))
    return {f"mcp_{kind}:{name}/{item}" for kind, item in found}


async def _asked(server: FastMCP[Any], ext: Extension, args: dict[str, Any]) -> str:
    async with Client(server) as client:
        try:
            if ext.kind == "mcp_tool":
                return str(await client.call_tool(ext.name, args))
            if ext.kind == "mcp_prompt":
                return str(await client.get_prompt(ext.name, args))
            return str(await client.read_resource(ext.name.replace("{name}", "one")))
        except Exception as error:  # noqa: BLE001  (each FastMCP has its own)
            return str(error)


def _servers(gate: Gate) -> list[str]:
    return sorted({ext.server for ext in gate.inventory.extensions if ext.server is not None})


def _made(gate: Gate, name: str, hits: Hits, between: Callable[[], object]) -> FastMCP[Any]:
    server: FastMCP[Any] = FastMCP(name)
    for ext in gate.inventory.extensions:
        if ext.server == name:
            _add(server, ext, hits.of(ext))
    server.add_middleware(Between(between))
    server.add_middleware(GateMiddleware(gate, server=name))
    return server


def _add(server: FastMCP[Any], ext: Extension, run: Callable[[], str]) -> None:
    def plain(command: str = "") -> str:
        return run()

    def of_page(name: str) -> str:
        return run()

    if ext.kind == "mcp_tool":
        server.add_tool(Tool.from_function(plain, name=ext.name))
    elif ext.kind == "mcp_prompt":
        server.add_prompt(Prompt.from_function(plain, name=ext.name))
    elif ext.facts.get("template"):
        server.add_template(ResourceTemplate.from_function(of_page, uri_template=ext.name, name="page"))
    elif str(AnyUrl(ext.name)) == ext.name:  # else the host would offer it under another name
        server.add_resource(Resource.from_function(run, uri=ext.name, name="resource"))


def driver() -> Host:
    return Host()
