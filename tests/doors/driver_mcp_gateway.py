"""The MCP gateway with servers of the stock behind it: clients over HTTP and over pipes, everything on real sockets."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from extgate.core.extension import Extension, Inventory
from extgate.enforce.gate import Gate
from extgate.enforce.mcp.door import Door
from extgate.enforce.mcp.front_http import Front
from extgate.enforce.mcp.front_stdio import Outlet, StdioFront
from extgate.enforce.mcp.http_client import Origin
from extgate.enforce.mcp.http_server import Request
from extgate.enforce.mcp.hub import Hub
from extgate.enforce.mcp.listening import listen
from extgate.enforce.mcp.options import Limits, Options
from extgate.enforce.mcp.pipe import Target
from tests.doors.driver import Called, Hits

LIMITS = Limits(drain_s=0.0, grace_s=0.2)
LISTS = {"tools/list": "mcp_tool", "prompts/list": "mcp_prompt", "resources/list": "mcp_resource"}


class Stock:
    """The servers of an inventory, each under its number; what is asked of an item counts in `hits`."""

    def __init__(self, inventory: Inventory, hits: Hits) -> None:
        self.names = [server.name for server in inventory.servers]
        self.inventory, self.hits = inventory, hits

    def handle(self, request: Request) -> None:
        message = json.loads(request.body) if request.body else {}
        if request.method != "POST" or "id" not in message:
            request.answer(202 if request.method == "POST" else 405)
            return
        server = self.names[int(request.path.removeprefix("/"))]
        own = [ext for ext in self.inventory.extensions if ext.server == server]
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": self._result(own, message)}
        request.answer(200, json.dumps(answer).encode(), "application/json")

    def _result(self, own: list[Extension], message: dict[str, Any]) -> dict[str, Any]:
        method, params = message["method"], message.get("params") or {}
        match method:
            case "initialize":
                offered: dict[str, Any] = {"tools": {}, "prompts": {}, "resources": {}}
                return {"protocolVersion": "2025-06-18", "capabilities": offered, "serverInfo": {"name": "stock"}}
            case "tools/list" | "prompts/list":
                key = method.partition("/")[0]
                return {key: [{"name": ext.name} for ext in own if ext.kind == f"mcp_{key[:-1]}"]}
            case "resources/list":
                return {"resources": [{"uri": e.name} for e in own if e.kind == "mcp_resource" and not e.facts]}
            case "resources/templates/list":
                return {"resourceTemplates": [{"uriTemplate": e.name} for e in own if e.facts.get("template")]}
        wanted = params.get("name", params.get("uri"))
        (ext,) = [e for e in own if _called(e) == wanted and method.startswith(e.kind.removeprefix("mcp_"))]
        self.hits.of(ext)()
        return {"content": [], "contents": [], "messages": []}


def _called(ext: Extension) -> str:
    return ext.name.replace("{name}", "x") if ext.facts.get("template") else ext.name


Ask = Callable[[str, Mapping[str, Any]], Any]


class Host:
    """One gateway for one question. is_http: how its client comes."""

    kinds = frozenset({"mcp_tool", "mcp_resource", "mcp_prompt"})

    def __init__(self, *, is_http: bool) -> None:
        self.is_http = is_http
        self.hits = Hits()

    def means(self, gate: Gate, ext: Extension) -> tuple[Extension, ...]:
        return (ext,)

    def list_visible(self, gate: Gate) -> set[str]:
        async def ask_all() -> set[str]:
            async with self._open(gate) as (door, ask):
                ids = {(ext.kind, name): ext.id for (_, name), ext in door.view.by_name.items()}
                ids |= {("mcp_resource", ext.name): ext.id for ext in gate.inventory.of_kind("mcp_resource")}
                seen = set()
                for method in (*LISTS, "resources/templates/list"):
                    ((_, rows),) = (await ask(method, {}))["result"].items()
                    kind = LISTS.get(method, "mcp_resource")
                    seen |= {ids[kind, row.get("name") or row.get("uri") or row["uriTemplate"]] for row in rows}
                return seen

        return asyncio.run(ask_all())

    def call(self, gate: Gate, ext: Extension, args: Mapping[str, Any], between: Callable[[], object]) -> Called:
        self.hits = Hits()

        async def ask_one() -> Any:
            async with self._open(gate) as (door, ask):
                names = {found.id: name for (_, name), found in door.view.by_name.items()}
                await ask("tools/list", {})
                between()
                name = names.get(ext.id, ext.name)
                if ext.kind == "mcp_resource":
                    return await ask("resources/read", {"uri": _called(ext)})
                method = "tools/call" if ext.kind == "mcp_tool" else "prompts/get"
                return await ask(method, {"name": name, "arguments": dict(args)})

        answer = asyncio.run(ask_one())
        ran = bool(self.hits.by_id[ext.id])
        if "error" in answer:
            return Called(ran=ran, message=answer["error"]["message"])
        is_error = answer["result"].get("isError")
        return Called(ran=ran, message=answer["result"]["content"][0]["text"] if is_error else "")

    @asynccontextmanager
    async def _open(self, gate: Gate) -> AsyncIterator[tuple[Door, Ask]]:
        stock = Stock(gate.inventory, self.hits)
        servers = await listen("127.0.0.1", 0, stock.handle, LIMITS)
        hub = Hub(LIMITS)
        hub.want(
            {
                name: Target(name=name, transport="http", url=f"http://127.0.0.1:{servers.port}/{number}")
                for number, name in enumerate(stock.names)
            }
        )
        await hub.settled()
        door = hub.doors["agent"] = Door(gate, Options(unavailable="empty"), lambda: hub.offers)
        opened = self._over_http(hub) if self.is_http else self._over_pipes(hub)
        try:
            async with opened as ask:
                hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t"}}
                assert "result" in await ask("initialize", hello)
                yield door, ask
        finally:
            await hub.stop()
            servers.close()

    @asynccontextmanager
    async def _over_http(self, hub: Hub) -> AsyncIterator[Ask]:
        front = Front(hub)
        listening = await listen("127.0.0.1", 0, front.handle, LIMITS)
        origin = Origin(f"http://127.0.0.1:{listening.port}/agents/agent/mcp")
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

        async def ask(method: str, params: Mapping[str, Any]) -> Any:
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
            taker = Taker()
            origin.send("POST", headers, body, taker)
            answer = json.loads(await taker.done)
            headers.update({k: v for k, v in taker.headers.items() if k == "mcp-session-id"})
            return answer

        try:
            yield ask
        finally:
            origin.close()
            listening.close()

    @asynccontextmanager
    async def _over_pipes(self, hub: Hub) -> AsyncIterator[Ask]:
        loop = asyncio.get_running_loop()
        (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
        write, outlet = await loop.connect_write_pipe(lambda: Outlet(hub.limits.unsent), os.fdopen(their_out, "wb", 0))
        source = os.fdopen(their_in, "rb", 0)
        transport, _ = await loop.connect_read_pipe(lambda: StdioFront(hub, "agent", outlet.pump), source)
        reader = asyncio.StreamReader(limit=2**24)
        ours, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(our_in, "rb", 0))

        async def ask(method: str, params: Mapping[str, Any]) -> Any:
            line = json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode() + b"\n"
            os.write(our_out, line)
            return json.loads(await reader.readline())

        try:
            yield ask
        finally:
            os.close(our_out)
            for pipe in (transport, write, ours):
                pipe.close()
            await asyncio.sleep(0)


class Taker:
    """Keeps one response whole."""

    def __init__(self) -> None:
        self.done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""

    def on_head(self, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.headers = status, dict(headers)

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_end(self) -> None:
        self.done.set_result(self.body)

    def on_lost(self, reason: str) -> None:
        self.done.set_exception(ConnectionError(reason))


def http() -> Host:
    return Host(is_http=True)


def stdio() -> Host:
    return Host(is_http=False)
