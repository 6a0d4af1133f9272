"""Servers over HTTP whose streams break: taken up after the event that came last, or the call is answered with why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.unit.gateway.world import Client, World, run, text_of

EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
PRIMED = EVENTS + b"id: 7\nretry: 1\ndata: \n\n"


class Breaking:
    """A server whose answer to a call is a stream that ends too early. `resumed`: the ids that it was asked after."""

    def __init__(self, way: str) -> None:
        self.way, self.resumed, self.id = way, list[str](), 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length:")[2].split("\r\n")[0] or 0)
            body = json.loads(await reader.readexactly(length) or b"{}")
            writer.write(self.answer(head, body))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def answer(self, head: str, body: dict[str, Any]) -> bytes:
        if head.startswith("get"):
            return self.taken_up(head.partition("last-event-id:")[2].split("\r\n")[0].strip())
        if body.get("method") == "tools/call":
            self.id = body["id"]
            return EVENTS if self.way == "no event" else PRIMED
        offered = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "b"}}
        rows = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
        result = {"initialize": offered, "tools/list": rows}.get(body.get("method", ""))
        if result is None:
            return b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        data = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": result}).encode()
        head = f"content-type: application/json\r\ncontent-length: {len(data)}\r\nconnection: close\r\n\r\n"
        return f"HTTP/1.1 200 OK\r\n{head}".encode() + data

    def taken_up(self, after: str) -> bytes:
        if not after:  # the stream of what belongs to no request, which this server does not have
            return b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        self.resumed.append(after)
        if self.way == "no more":
            return b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        if len(self.resumed) < 3:
            return EVENTS + b"id: %d\ndata: \n\n" % (7 + len(self.resumed))
        content = {"content": [{"type": "text", "text": "late"}]}
        data = json.dumps({"jsonrpc": "2.0", "id": self.id, "result": content}).encode()
        return EVENTS + b"id: 99\ndata: " + data + b"\n\n"


@asynccontextmanager
async def before(root: Path, way: str) -> AsyncIterator[tuple[Breaking, Client]]:
    breaking = Breaking(way)
    async with await asyncio.start_server(breaking.serve, "127.0.0.1", 0) as server:
        world = World(root)
        port = server.sockets[0].getsockname()[1]
        world.servers(web={"url": f"http://127.0.0.1:{port}/mcp"})
        async with world.open() as gateway:
            yield breaking, await Client(gateway).hello()


def test_a_server_s_stream_that_breaks_again_and_again_is_taken_up_where_it_broke(tmp_path: Path) -> None:
    async def work() -> None:
        async with before(tmp_path, "breaks") as (breaking, client):
            answer = await client.ask("tools/call", {"name": "web__echo", "arguments": {}})
            assert text_of(answer) == "late"
            assert breaking.resumed == ["7", "8", "9"]

    run(work())


@pytest.mark.parametrize(("way", "resumes"), [("no event", 0), ("no more", 1)])
def test_a_call_whose_stream_cannot_be_taken_up_is_answered_with_why(way: str, resumes: int, tmp_path: Path) -> None:
    async def work() -> None:
        async with before(tmp_path, way) as (breaking, client):
            answer = await client.ask("tools/call", {"name": "web__echo", "arguments": {}})
            assert answer["result"]["isError"]
            assert "web" in text_of(answer)
            assert len(breaking.resumed) == resumes

    run(work())
