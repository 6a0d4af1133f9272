"""A workspace with one server of bad habits, a gateway that is open over it, and clients without sockets."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from extgate.enforce.mcp import envelope
from extgate.enforce.mcp.call import Reply
from extgate.gateway.running import Gateway, open_gateway

SERVER = str(Path(__file__).with_name("server.py"))


class World:
    """The files of a workspace. `agents` are profile texts by id."""

    def __init__(self, root: Path, config: str = "", **agents: str) -> None:
        self.root, self.calls_file = root, root / "calls.jsonl"
        (root / "agents").mkdir(exist_ok=True)
        (root / "extgate.yaml").write_text("audit: audit.jsonl\n" + config)
        self.servers("habits")
        for name, text in (agents or {"a": ""}).items():
            self.profile(name, text)

    def profile(self, name: str, text: str) -> None:
        (self.root / "agents" / f"{name}.yaml").write_text(f"id: {name}\n{text}\n")

    def servers(self, *names: str, **more: Any) -> None:
        own = {name: {"command": sys.executable, "args": [SERVER, str(self.calls_file)]} for name in names}
        (self.root / ".mcp.json").write_text(json.dumps({"mcpServers": own | more}))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """What really ran."""
        text = self.calls_file.read_text() if self.calls_file.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.root / "audit.jsonl").read_text().splitlines()]

    @asynccontextmanager
    async def open(self, **options: Any) -> AsyncIterator[Gateway]:
        async with open_gateway(self.root, trust=True, **options) as gateway:
            yield gateway


class Client:
    """One client of one agent. `told` are the methods of what it was sent unasked; `asks` what servers asked of it."""

    def __init__(self, gateway: Gateway, agent: str = "a") -> None:
        self.hub = gateway.hub
        self.session = self.hub.open(agent, agent, self._take)
        self.told: list[dict[str, Any]] = []
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._news = asyncio.Event()
        self._last = 0

    async def hello(self, **capabilities: Any) -> Client:
        params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "t"}}
        assert "result" in await self.ask("initialize", params)
        self.send({"method": "notifications/initialized"})
        return self

    def send(self, message: dict[str, Any]) -> None:
        read = envelope.read(json.dumps({"jsonrpc": "2.0", **message}).encode())
        if self.hub.is_ready_for(read):
            self.hub.receive(self.session, read)
        else:
            self.hub.later(self._when_ready(read))

    async def _when_ready(self, message: envelope.Envelope) -> None:
        await self.hub.ready(self.session, message)
        self.hub.receive(self.session, message)

    def begin(self, method: str, params: dict[str, Any] | None = None) -> asyncio.Future[dict[str, Any]]:
        self._last += 1
        future = self._waiting[self._last] = asyncio.get_running_loop().create_future()
        self.send({"id": self._last, "method": method, "params": params or {}})
        return future

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return await asyncio.wait_for(self.begin(method, params), 30)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.ask("tools/call", {"name": f"habits__{tool}", "arguments": arguments})

    async def tools(self) -> list[str]:
        return [row["name"].partition("__")[2] for row in (await self.ask("tools/list"))["result"]["tools"]]

    async def news(self, method: str) -> dict[str, Any]:
        """The next message of that method, once it has come."""
        async with asyncio.timeout(30):
            while True:
                found = next((message for message in self.told if message["method"] == method), None)
                if found is not None:
                    self.told.remove(found)
                    return found
                self._news.clear()
                await self._news.wait()

    def _take(self, reply: Reply) -> None:
        message = json.loads(reply.data)
        if "method" in message:
            self.told.append(message)
            self._news.set()
        elif message["id"] in self._waiting:
            self._waiting.pop(message["id"]).set_result(message)


def text_of(answer: dict[str, Any]) -> str:
    """A result's text, or an error's message."""
    if "error" in answer:
        return str(answer["error"]["message"])
    return str(answer["result"]["content"][0]["text"])


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 90))
