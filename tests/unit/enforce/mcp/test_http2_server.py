"""The gateway's socket speaks HTTP/2 with clients that begin with it: a real client, and frames made by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, Event, ResponseReceived, StreamReset

from extgate.enforce.mcp.http2 import MAX_RESETS
from extgate.enforce.mcp.http_server import Request
from extgate.enforce.mcp.listening import listen
from extgate.enforce.mcp.options import Limits

LIMITS = replace(Limits(), message=100_000)


@asynccontextmanager
async def serving(handle: Callable[[Request], None]) -> AsyncIterator[int]:
    listening = await listen("127.0.0.1", 0, handle, LIMITS)
    try:
        yield listening.port
    finally:
        listening.close()


def echo(request: Request) -> None:
    request.answer(200, f"{request.method} {request.path} {len(request.body)}".encode(), "text/plain")


async def asked(port: int, *rows: tuple[str, str, bytes]) -> list[httpx.Response]:
    async with httpx.AsyncClient(http1=False, http2=True, base_url=f"http://127.0.0.1:{port}") as client:
        return list(await asyncio.gather(*(client.request(m, path, content=body) for m, path, body in rows)))


def test_requests_of_one_connection_are_answered_side_by_side() -> None:
    async def run() -> None:
        waiting: list[Request] = []

        def handle(request: Request) -> None:
            waiting.append(request)
            if len(waiting) == 3:  # none of them is answered before all have come
                for one in waiting:
                    echo(one)

        async with serving(handle) as port:
            answers = await asked(port, ("GET", "/a?b=c", b""), ("POST", "/b", b"x" * 90_000), ("POST", "/c", b""))
        assert [a.http_version for a in answers] == ["HTTP/2"] * 3
        assert [a.text for a in answers] == ["GET /a?b=c 0", "POST /b 90000", "POST /c 0"]

    asyncio.run(run())


def test_an_answer_longer_than_all_windows_comes_whole() -> None:
    async def run() -> None:
        body = bytes(range(256)) * 40_000
        async with serving(lambda request: request.answer(200, body)) as port:
            (answer,) = await asked(port, ("GET", "/", b""))
        assert answer.content == body

    asyncio.run(run())


def test_too_long_a_message_is_refused_whether_it_says_so_or_not() -> None:
    async def run() -> None:
        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(20):
                yield b"x" * 10_000

        async with serving(echo) as port, httpx.AsyncClient(http1=False, http2=True) as client:
            said = await client.post(f"http://127.0.0.1:{port}/", content=b"x" * 200_000)
            unsaid = await client.post(f"http://127.0.0.1:{port}/", content=pieces())
            after = await client.post(f"http://127.0.0.1:{port}/", content=b"x")
        assert (said.status_code, unsaid.status_code, after.text) == (413, 413, "POST / 1")

    asyncio.run(run())


def test_a_stream_ends_for_the_server_when_its_client_gives_it_up() -> None:
    async def run() -> None:
        gone = asyncio.Event()

        def handle(request: Request) -> None:
            if request.stream_id == 1:
                request.on_gone = gone.set
                request.stream({})
            else:
                echo(request)

        def act(client: H2Connection) -> None:
            client.send_headers(1, head(), end_stream=True)
            client.reset_stream(1)
            client.send_headers(3, head(), end_stream=True)

        async with serving(handle) as port:
            await exchange(port, act, lambda e: isinstance(e, ResponseReceived) and e.stream_id == 3)
            assert gone.is_set()

    asyncio.run(run())


async def exchange(port: int, act: Callable[[H2Connection], None], until: Callable[[Event], bool]) -> list[Event]:
    """What the server does until then, or until it hangs up, after a client has done that."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    settings = H2Configuration(client_side=True, validate_outbound_headers=False, normalize_outbound_headers=False)
    client, found = H2Connection(settings), []
    client.initiate_connection()
    act(client)
    writer.write(client.data_to_send())
    while not any(map(until, found)) and (data := await asyncio.wait_for(reader.read(65536), 20)):
        found += client.receive_data(data)
        writer.write(client.data_to_send())
    writer.close()
    return found


def head(path: str = "/", **more: str) -> list[tuple[str, str]]:
    pseudo = [(":method", "GET"), (":scheme", "http"), (":authority", "127.0.0.1"), (":path", path)]
    return [*pseudo, *((name.replace("_", "-"), value) for name, value in more.items())]


def test_a_path_that_would_be_more_than_one_line_of_http_1_is_refused() -> None:
    async def run() -> None:
        seen: list[str] = []
        async with serving(lambda request: (seen.append(request.path), echo(request))[1]) as port:
            for path in ("/a b", "/a HTTP/1.1", "/\u00e9"):
                act = lambda c, path=path: c.send_headers(1, head(path), end_stream=True)  # noqa: E731
                found = await exchange(port, act, lambda e: isinstance(e, ResponseReceived | ConnectionTerminated))
                assert all(dict(e.headers)[b":status"] == b"400" for e in found if isinstance(e, ResponseReceived))
                assert any(isinstance(e, ResponseReceived | ConnectionTerminated | StreamReset) for e in found)
        assert seen == []

    asyncio.run(run())


def test_a_header_that_comes_twice_is_known_to_have_come_twice() -> None:
    async def run() -> None:
        seen: list[set[str]] = []
        async with serving(lambda request: (seen.append(request.twice), echo(request))[1]) as port:
            rows = [*head(), ("x-a", "1"), ("x-a", "2"), ("x-b", "1")]
            act = lambda c: c.send_headers(1, rows, end_stream=True)  # noqa: E731
            await exchange(port, act, lambda e: isinstance(e, ResponseReceived))
        assert seen == [{"x-a"}]

    asyncio.run(run())


def test_a_client_that_only_opens_and_cancels_is_cut_off() -> None:
    async def run() -> None:
        def act(client: H2Connection) -> None:
            for number in range(MAX_RESETS + 10):
                client.send_headers(2 * number + 1, head())
                client.reset_stream(2 * number + 1)

        async with serving(echo) as port:
            found = await exchange(port, act, lambda e: isinstance(e, ConnectionTerminated))
        assert [e.error_code for e in found if isinstance(e, ConnectionTerminated)] == [ErrorCodes.ENHANCE_YOUR_CALM]

    asyncio.run(run())


def test_the_first_bytes_may_come_one_by_one() -> None:
    async def run() -> None:
        async with serving(echo) as port:
            for sent, wanted in ((b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n", b"HTTP/1.1 200"),):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                for byte in sent:
                    writer.write(bytes([byte]))
                    await writer.drain()
                assert (await reader.read(100)).startswith(wanted)
                writer.close()

    asyncio.run(run())
