"""HTTP/1.1 as a server: requests with bounds in, answers or streams of events out. The parser is llhttp's (httptools).

A client that begins with HTTP/2's preface is handed to another protocol (`listening.py`).

Measured against uvicorn and granian: their layers cost about as much again as the whole rest of a relayed call.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, cast

import httptools

from extgate.enforce.mcp.long import Data
from extgate.enforce.mcp.options import Limits
from extgate.enforce.mcp.pump import Pump

MAX_HEAD = 64 * 1024
MAX_WAITING = 64
"""Requests of one connection that wait for the one before them; then no more of it is read."""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What a client begins with that speaks HTTP/2 without asking first."""
Headers = Sequence[tuple[str, str]]
REASONS = {
    200: "OK", 202: "Accepted", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
    404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable", 408: "Request Timeout",
    413: "Content Too Large", 415: "Unsupported Media Type", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip


class Client(Protocol):
    """The connection that a request came on: how answers are written there. peer: the address that it comes from."""

    peer: str

    def answer(self, request: Request, status: int, headers: Headers, body: Data) -> None: ...

    def stream(self, request: Request, headers: Headers) -> None: ...

    def push(self, request: Request, data: tuple[Data, ...]) -> None: ...

    def end(self, request: Request) -> None: ...

    def cut(self, request: Request) -> None: ...


@dataclass(slots=True, eq=False)
class Request:
    """One request that has come whole. headers: lower case; twice: the names that came more than once.

    on_gone: called when the client hangs up before the answer is complete. stream_id: tells it from others of a
    connection that carries several at once. caller: who it was found to be from, until: and when that ends, on the
    wall clock.
    """

    connection: Client
    method: str = ""
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    twice: set[str] = field(default_factory=set)
    body: bytes = b""
    on_gone: Callable[[], None] | None = None
    stream_id: int = 0
    is_stream: bool = False
    is_over: bool = False
    is_kept: bool = True
    caller: str = ""
    until: float = math.inf

    def answer(self, status: int, body: Data = b"", kind: str = "", headers: Mapping[str, str] | None = None) -> None:
        """Answers whole."""
        if self.is_over:
            return
        said = [("content-length", str(len(body)))]
        said += [("content-type", kind)] if kind else []
        said += (headers or {}).items()
        self._finish()
        self.connection.answer(self, status, said, body)

    def stream(self, headers: Mapping[str, str]) -> None:
        """Begins a stream of events."""
        self.is_stream = True
        said = [("content-type", "text/event-stream"), ("cache-control", "no-cache, no-transform")]
        said += [("x-accel-buffering", "no"), *headers.items()]
        self.connection.stream(self, said)

    def push(self, *data: Data) -> None:
        """Sends a piece of the stream."""
        if not self.is_over:
            self.connection.push(self, data)

    def end(self) -> None:
        """Ends the stream."""
        if not self.is_over:
            self._finish()
            self.connection.end(self)

    def cut(self) -> None:
        """Breaks the answer off, so that the client knows it is not whole."""
        self.connection.cut(self)

    def gone(self) -> None:
        """The client has hung up."""
        if not self.is_over:
            gone = self.on_gone
            self._finish()
            if gone is not None:
                gone()

    def _finish(self) -> None:
        self.is_over = True
        self.on_gone = None


Handler = Callable[[Request], None]


class Kept(Protocol):
    """What a listening socket knows of one connection to it."""

    waits_since: float

    @property
    def is_sending(self) -> bool: ...

    def close_if_idle(self) -> None: ...

    def close_if_stuck(self, before: float) -> None: ...

    def close(self) -> None: ...


Other = Callable[[Handler, Limits, set[Kept]], asyncio.Protocol]
"""Makes what serves a client that speaks HTTP/2."""


class Connection(asyncio.Protocol):
    """One client's connection; its requests are taken one after the other. peer: the address that it comes from."""

    transport: asyncio.Transport

    def __init__(self, handler: Handler, limits: Limits, open_ones: set[Kept], other: Other) -> None:
        self._handler, self._limits, self._open, self._other = handler, limits, open_ones, other
        self._parser = httptools.HttpRequestParser(self)
        self._request = Request(self)
        self._parts: list[bytes] = []
        self._size = self._head = self._waiting = 0
        self._queue: deque[Request] = deque()
        self._current: Request | None = None
        self._failure = 0
        self._is_known = self._is_paused = False
        self._first = b""
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
        if current is not None:
            current.gone()
        del self._parser, self._request  # they know this connection, and nothing else would part them soon

    def data_received(self, data: bytes) -> None:
        if self._failure:
            return
        if not self._is_known:
            data = self._first + data
            if PREFACE.startswith(data[: len(PREFACE)]):
                self._first = data
                if len(data) >= len(PREFACE):
                    self._become_http2(data)
                return
            self._is_known, self._first = True, b""
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserUpgrade, httptools.HttpParserError) as error:
            cause = error.__context__
            self._fail(cause.status if isinstance(cause, _TooMuchError) else 400)
        if len(self._queue) >= MAX_WAITING or self._waiting > self._limits.message:
            self._is_paused = True
            self.transport.pause_reading()

    def _become_http2(self, data: bytes) -> None:
        """The client speaks HTTP/2 and knows that it may: what comes belongs to another protocol."""
        self._open.discard(self)
        made = self._other(self._handler, self._limits, self._open)
        self.transport.set_protocol(made)
        made.connection_made(self.transport)
        made.data_received(data)

    # ------------------------------------------------------------------------------------------ answers

    def answer(self, request: Request, status: int, headers: Headers, body: Data) -> None:
        """Writes a whole answer. A client that does not read what it asked for is cut off, here and below."""
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, '')}", *(f"{name}: {value}" for name, value in headers)]
        lines += [] if request.is_kept else ["connection: close"]
        self._pump.write("\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n", body)
        self._done(request)

    def stream(self, request: Request, headers: Headers) -> None:
        lines = ["HTTP/1.1 200 OK", "transfer-encoding: chunked", *(f"{name}: {value}" for name, value in headers)]
        self._pump.write("\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n")

    def push(self, request: Request, data: tuple[Data, ...]) -> None:
        self._pump.write(b"%x\r\n" % sum(map(len, data)), *data, b"\r\n")

    def end(self, request: Request) -> None:
        self._pump.write(b"0\r\n\r\n")
        self._done(request)

    def cut(self, request: Request) -> None:
        self.transport.abort()

    def pause_writing(self) -> None:
        self._pump.pause()

    def resume_writing(self) -> None:
        self._pump.resume()

    def close(self) -> None:
        self.transport.close()

    def _done(self, request: Request) -> None:
        self._current = None
        self.waits_since = time.monotonic()
        if not request.is_kept:
            self._pump.close()
        elif self._queue:
            asyncio.get_running_loop().call_soon(self._next)
        elif self._failure:
            self._refuse()

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
            self._waiting -= len(self._current.body)
            if self._is_paused and not self._queue:
                self._is_paused = False
                self.transport.resume_reading()
            self._handler(self._current)

    def _fail(self, status: int) -> None:
        """Reads no more; what came before is answered first, so that no answer is taken for another's."""
        self._failure = status
        if self._current is None and not self._queue:
            self._refuse()

    def _refuse(self) -> None:
        head = f"HTTP/1.1 {self._failure} {REASONS[self._failure]}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        self._pump.write(head.encode())
        self._pump.close()

    # ------------------------------------------------------------------------------------------ the parser's news

    def on_message_begin(self) -> None:
        self._request, self._parts, self._size, self._head = Request(self), [], 0, 0

    def on_url(self, url: bytes) -> None:
        self._grow_head(len(url))
        self._request.path += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._grow_head(len(name) + len(value))
        key, headers = _lower(name), self._request.headers
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
        self._waiting += len(request.body)
        self._next()

    def _grow_head(self, size: int) -> None:
        self._head += size
        if self._head > MAX_HEAD:
            raise _TooMuchError(431)


class _TooMuchError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@lru_cache(256)
def _lower(name: bytes) -> str:
    return name.decode("latin-1").lower()


def media_types(accept: str) -> Iterable[str]:
    """The media types of an `Accept` header, without their parameters."""
    return (part.partition(";")[0].strip().lower() for part in accept.split(","))
