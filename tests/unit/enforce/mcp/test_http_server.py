"""Requests of one HTTP/1.1 connection that come before the ones ahead of them are answered."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from extgate.enforce.mcp.http_server import MAX_WAITING, Connection, Request
from extgate.enforce.mcp.listening import Listening, listen
from extgate.enforce.mcp.options import Limits

LIMITS = replace(Limits(), message=100_000)


def asks(path: str, body: bytes = b"") -> bytes:
    return f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def named(request: Request) -> None:
    request.answer(200, request.path.encode())


def waiting_in(listening: Listening) -> int:
    """Bytes of bodies that wait behind another request."""
    (connection,) = listening.connections
    assert isinstance(connection, Connection)
    return sum(len(request.body) for request in connection._queue)


def test_an_answer_is_never_that_of_a_request_that_came_later_and_was_refused() -> None:
    async def run() -> bytes:
        held: list[Request] = []
        come = asyncio.Event()

        def hold(request: Request) -> None:
            held.append(request)
            come.set()

        listening = await listen("127.0.0.1", 0, hold, LIMITS)
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
        writer.write(asks("/first") + b"nonsense\r\n\r\n")
        await come.wait()
        named(held[0])
        told = await reader.read()
        writer.close()
        listening.close()
        return told

    first, _, second = asyncio.run(run()).partition(b"/first")
    assert first.startswith(b"HTTP/1.1 200 ")
    assert second.startswith(b"HTTP/1.1 400 ")


def test_requests_that_wait_hold_little_and_are_all_answered_in_order() -> None:
    async def run() -> None:
        held: list[Request] = []
        come = asyncio.Event()

        def hold(request: Request) -> None:
            held.append(request)
            come.set()

        listening = await listen("127.0.0.1", 0, hold, LIMITS)
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.port, limit=1 << 20)
        count = MAX_WAITING
        writer.write(b"".join(asks(f"/{at:03}", b"x" * 90_000) for at in range(count)))
        told = b""
        for at in range(count):
            await come.wait()
            come.clear()
            assert waiting_in(listening) <= 500_000  # the rest waits at the client
            named(held.pop())
            told += await reader.readuntil(b"/%03d" % at)
        writer.close()
        listening.close()
        assert told.count(b"HTTP/1.1 200 ") == count

    asyncio.run(run())
