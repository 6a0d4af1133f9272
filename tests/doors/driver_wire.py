"""An agent's client behind the wire, on real sockets: its requests to Anthropic pass it, and the answers come back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from extgate.core.extension import Extension
from extgate.core.names import wire_names
from extgate.enforce.gate import Gate
from extgate.enforce.mcp.door import Door
from extgate.enforce.mcp.front_http import Front
from extgate.enforce.mcp.http_client import Origin
from extgate.enforce.mcp.http_server import Request
from extgate.enforce.mcp.hub import Hub
from extgate.enforce.mcp.listening import listen
from extgate.enforce.mcp.options import Limits, Options
from extgate.enforce.wire.clients import CALLABLE
from extgate.enforce.wire.front import Upstream, Wire, WireSettings
from tests.doors.driver import Called, Hits
from tests.unit.gateway.test_address import Answer

Json = dict[str, Any]


class Host:
    """A client with everything in the stock that it can call, and a model that calls one of it."""

    hits: Hits
    kinds = frozenset(CALLABLE)

    def __init__(self) -> None:
        self.seen: Json = {}
        self.between: Callable[[], object] = lambda: None
        self.wanted: Json = {"type": "text", "text": "hi"}

    def name(self, ext: Extension) -> str:
        return ext.name if ext.server is None else wire_names(ext.server, ext.name)[0]

    def means(self, gate: Gate, ext: Extension) -> tuple[Extension, ...]:
        return gate.owners(self.name(ext), CALLABLE)

    def list_visible(self, gate: Gate) -> set[str]:
        self.seen = {}
        self._run(gate)
        ids = {self.name(ext): ext.id for ext in gate.inventory.of_kind(*CALLABLE)}
        return {ids[row["name"]] for row in self.seen.get("tools", ())}

    def call(self, gate: Gate, ext: Extension, args: Mapping[str, Any], between: Callable[[], object]) -> Called:
        self.hits = hits = Hits()
        self.between = between
        self.wanted = {"type": "tool_use", "id": "c", "name": self.name(ext), "input": dict(args)}
        items = {self.name(e): e for e in gate.inventory.of_kind(*CALLABLE)}
        answer = self._run(gate)
        if "error" in answer:
            return Called(ran=False, message=answer["error"]["message"])
        (block,) = answer["content"]
        if block["type"] == "tool_use":
            hits.of(items[block["name"]])()
        ran = bool(hits.by_id[ext.id])
        return Called(ran=ran, message="" if ran else block["text"])

    def _run(self, gate: Gate) -> Json:
        tools = [{"name": self.name(ext), "input_schema": {}} for ext in gate.inventory.of_kind(*CALLABLE)]
        body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "tools": tools}

        async def ask() -> Json:
            async with self._open(gate) as asked:
                answer = await asked("/agents/a/wire/anthropic/v1/messages", json.dumps(body).encode())
                made: Json = answer.json
                return made

        return asyncio.run(ask())

    def _answer(self, request: Request) -> None:
        self.seen = json.loads(bytes(request.body))
        self.between()
        said = {"type": "message", "role": "assistant", "content": [self.wanted], "stop_reason": "tool_use"}
        request.answer(200, json.dumps(said).encode(), "application/json")

    @asynccontextmanager
    async def _open(self, gate: Gate) -> AsyncIterator[Callable[[str, bytes], Awaitable[Answer]]]:
        model = await listen("127.0.0.1", 0, self._answer, Limits())
        upstream = Upstream(url=f"http://127.0.0.1:{model.port}")
        settings = WireSettings(upstreams={"anthropic": upstream})
        hub = Hub(Limits())
        hub.doors["a"] = Door(gate, Options(), lambda: ())
        front = Front(hub, wire=Wire(hub.doors, lambda agent: settings))
        gateway = await listen("127.0.0.1", 0, front.handle, Limits())
        origin = Origin(f"http://127.0.0.1:{gateway.port}")

        async def asked(path: str, data: bytes) -> Answer:
            answer = Answer()
            origin.send("POST", {"content-type": "application/json"}, data, answer, path)
            await asyncio.wait_for(answer.done, 30)
            return answer

        try:
            yield asked
        finally:
            origin.close()
            gateway.close()
            model.close()
            if front.wire is not None:
                front.wire.close()


def anthropic() -> Host:
    return Host()
