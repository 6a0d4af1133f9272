"""HTTP/1.1 as a server: requests with bounds in, answers or streams of events out. The parser is llhttp's (httptools).

Measured against uvicorn and granian: their layers cost about as much again as the whole rest of a relayed call.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

import httptools

from extgate.enforce.mcp.long import Data
from extgate.enforce.mcp.options import Limits
from extgate.enforce.mcp.pump import Pump

MAX_HEAD = 64 * 1024
REASONS = {
    200: "OK", 202: "Accepted", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
    404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable", 408: "Request Timeout",
    413: "Content Too Large", 415: "Unsupported Media Type", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip


@dataclass(slots=True, eq=False)
class Request:
    """One request that has come whole. headers: lower case; twice: the names that came more than once.

    on_gone: called when the client hangs up before the answer is complete. caller: who it was found to be from,
    until: and when that ends, on the wall clock.
    """

    connection: Connection
    method: str = ""
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    twice: set[str] = field(default_factory=set)
    body: bytes = b""
    on_gone: Callable[[], None] | None = None
    is_stream: bool = False
    is_over: bool = False
    is_kept: bool = True
    caller: str = ""
    until: float = math.inf

    def answer(self, status: int, body: Data = b"", kind: str = "", headers: Mapping[str, str] | None = None) -> None:
        """Answers whole."""
        if self.is_over:
            return
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, '')}", f"content-length: {len(body)}"]
        lines += [f"content-type: {kind}"] if kind else []
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        lines += [] if self.is_kept else ["connection: close"]
        self.connection.write("\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n", body)
        self._finish()

    def stream(self, headers: Mapping[str, str]) -> None:
        """Begins a stream of events."""
        self.is_stream = True
        lines = ["HTTP/1.1 200 OK", "content-type: text/event-stream", "cache-control: no-cache, no-transform"]
        lines += ["transfer-encoding: chunked", "x-accel-buffering: no"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.connection.write("\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n")

    def push(self, *data: Data) -> None:
        """Sends a piece of the stream."""
        if not self.is_over:
            self.connection.write(b"%x\r\n" % sum(map(len, data)), *data, b"\r\n")

    def end(self) -> None:
        """Ends the stream."""
        if not self.is_over:
            self.connection.write(b"0\r\n\r\n")
            self._finish()

    def cut(self) -> None:
        """Breaks the answer off, so that the client knows it is not whole."""
        self.connection.transport.abort()

    def _finish(self) -> None:
        self.is_over = True
        self.on_gone = None
        self.connection.done(self)


Handler = Callable[[Request], None]


class Connection(asyncio.Protocol):
    """One client's connection; its requests are taken one after the other. peer: the address that it comes from."""

    transport: asyncio.Transport

    def __init__(self, handler: Handler, limits: Limits, open_ones: set[Connection]) -> None:
        self._handler, self._limits, self._open = handler, limits, open_ones
        self._parser = httptools.HttpRequestParser(self)
        self._request = Request(self)
        self._parts: list[bytes] = []
        self._size = self._head = 0
        self._queue: deque[Request] = deque()
        self._current: Request | None = None
        self._is_failed = False
        self.peer = ""
        self.waits_since = time.monotonic()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._pump = Pump(self.transport, self._limits.unsent)
        peer = transport.get_extra_info("peername")
        self.peer = str(peer[0]) if isinstance(peer, tuple) and peer else ""
        if len(self._open) >= self._limits.connections:
            self._fail(503)
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.discard(self)
        current, self._current = self._current, None
        self._queue.clear()
        self._pump.drop()
        if current is not None and not current.is_over:
            current.is_over = True
            gone, current.on_gone = current.on_gone, None
            if gone is not None:
                gone()
        del self._parser, self._request  # they know this connection, and nothing else would part them soon

    def data_received(self, data: bytes) -> None:
        if self._is_failed:
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserUpgrade, httptools.HttpParserError) as error:
            cause = error.__context__
            self._fail(cause.status if isinstance(cause, _TooMuchError) else 400)

    def write(self, *parts: Data) -> None:
        """Sends bytes. A client that does not read what it asked for is cut off."""
        self._pump.write(*parts)

    def pause_writing(self) -> None:
        self._pump.pause()

    def resume_writing(self) -> None:
        self._pump.resume()

    def done(self, request: Request) -> None:
        self._current = None
        self.waits_since = time.monotonic()
        if not request.is_kept:
            self._pump.close()
        elif self._queue:
            asyncio.get_running_loop().call_soon(self._next)

    def close_if_idle(self) -> None:
        """Closes it unless it carries a request."""
        if self._current is None and not self._queue:
            self._pump.close()

    @property
    def is_sending(self) -> bool:
        """Whether the client has not read all that it was sent."""
        return self._pump.is_busy or self.transport.get_write_buffer_size() > 0

    def close_if_stuck(self, before: float) -> None:
        """Closes it when a long answer has not moved since that time, because the client does not read it."""
        if self._pump.is_busy and self._pump.moved_at < before:
            self.transport.abort()

    def _next(self) -> None:
        if self._current is None and self._queue and not self.transport.is_closing():
            self._current = self._queue.popleft()
            self._handler(self._current)

    def _fail(self, status: int) -> None:
        self._is_failed = True
        head = f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        self.transport.write(head.encode())
        self.transport.close()

    # ------------------------------------------------------------------------------------------ the parser's news

    def on_message_begin(self) -> None:
        self._request, self._parts, self._size, self._head = Request(self), [], 0, 0
        if len(self._queue) >= 64:
            raise _TooMuchError(429)

    def on_url(self, url: bytes) -> None:
        self._grow_head(len(url))
        self._request.path += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._grow_head(len(name) + len(value))
        key, headers = name.decode("latin-1").lower(), self._request.headers
        if key in headers:
            self._request.twice.add(key)
        headers[key] = value.decode("latin-1").strip(" \t")

    def on_headers_complete(self) -> None:
        length = self._request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._limits.message:
            raise _TooMuchError(413)
        if self._request.headers.get("expect", "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > self._limits.message:
            raise _TooMuchError(413)
        self._parts.append(body)

    def on_message_complete(self) -> None:
        request = self._request
        request.method = self._parser.get_method().decode("latin-1")
        request.is_kept = self._parser.should_keep_alive()
        request.body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._queue.append(request)
        self._next()

    def _grow_head(self, size: int) -> None:
        self._head += size
        if self._head > MAX_HEAD:
            raise _TooMuchError(431)


class _TooMuchError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Listening:
    """A listening socket and its connections."""

    def __init__(self, server: asyncio.Server, connections: set[Connection]) -> None:
        self._server, self.connections = server, connections

    @property
    def port(self) -> int:
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def expire(self, before: float) -> None:
        """Closes the connections that have carried no whole request since that time."""
        for connection in tuple(self.connections):
            connection.close_if_stuck(before)
            if connection.waits_since < before:
                connection.close_if_idle()

    async def finish(self, seconds: float) -> None:
        """Takes no more connections; returns when all clients have read their answers, or the time for that is over."""
        self._server.close()
        until = time.monotonic() + seconds
        while time.monotonic() < until and any(connection.is_sending for connection in self.connections):
            await asyncio.sleep(0.02)

    def close(self) -> None:
        """Closes everything."""
        self._server.close()
        for connection in tuple(self.connections):
            connection.transport.close()


async def listen(host: str, port: int, handler: Handler, limits: Limits) -> Listening:
    """Listens. Raises OSError when the address cannot be had."""
    connections: set[Connection] = set()
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(handler, limits, connections), host, port, backlog=1024
    )
    return Listening(server, connections)


def media_types(accept: str) -> Iterable[str]:
    """The media types of an `Accept` header, without their parameters."""
    return (part.partition(";")[0].strip().lower() for part in accept.split(","))
