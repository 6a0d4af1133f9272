"""HTTP/1.1 to one origin over kept connections: bytes in, bytes out, nothing followed, nothing sent elsewhere.

The parser is llhttp's (httptools). A connection that was idle for longer than servers keep them is not used again, and
a request that was written is never sent twice: whether it ran is not known.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Coroutine, Mapping
from functools import lru_cache
from typing import NamedTuple, Protocol, cast
from urllib.parse import SplitResult, urlsplit

import httptools

from extgate.enforce.mcp.long import Pieces, TooLongError

IDLE_S = 4.0
CONNECT_S = 10.0
MAX_HEAD = 64 * 1024


class Sink(Protocol):
    """What takes one response. `on_lost` comes instead of `on_end` when there will be no more of it."""

    def on_head(self, status: int, headers: Mapping[str, str]) -> None: ...

    def on_body(self, data: bytes) -> None: ...

    def on_end(self) -> None: ...

    def on_lost(self, reason: str) -> None: ...


class Message(NamedTuple):
    """A request as it is sent. host: of the address, with its port where that is an own one."""

    method: str
    path: str
    host: str
    headers: Mapping[str, str]
    body: bytes

    def written(self) -> bytes:
        """As HTTP/1.1 writes it."""
        head = _head(self.method, self.path, self.host, tuple(self.headers.items()))
        if self.body or self.method == "POST":
            return b"%scontent-length: %d\r\n\r\n%s" % (head, len(self.body), self.body)
        return head + b"\r\n"


class Origin:
    """One origin and the connections to it."""

    def __init__(self, url: str) -> None:
        self.parts: SplitResult = urlsplit(url)
        self.is_tls = self.parts.scheme == "https"
        self.host = self.parts.hostname or ""
        self.port = self.parts.port or (443 if self.is_tls else 80)
        self.path = (self.parts.path or "/") + (f"?{self.parts.query}" if self.parts.query else "")
        self.idle: list[Connection] = []
        self.opened: set[Connection] = set()
        self.connecting: set[asyncio.Task[None]] = set()
        self._tls: ssl.SSLContext | None = None

    def send(self, method: str, headers: Mapping[str, str], body: bytes, sink: Sink, path: str = "") -> Request:
        """Sends a request; its response goes to the sink."""
        message = Message(method, path or self.path, self.parts.netloc.rpartition("@")[2], headers, body)
        request = Request(sink)
        connection = self.take()
        if connection is not None:
            connection.begin(request, message.written())
        else:
            self.later(self._connect(request, message.written()))
        return request

    def later(self, work: Coroutine[None, None, None]) -> None:
        """Has that done while the origin is open."""
        task = asyncio.ensure_future(work)
        self.connecting.add(task)
        task.add_done_callback(self.connecting.discard)

    def close(self) -> None:
        """Closes every connection."""
        for task in tuple(self.connecting):
            task.cancel()
        for connection in tuple(self.opened):
            connection.transport.abort()

    def take(self) -> Connection | None:
        """A connection that is kept, if there is one."""
        while self.idle:
            connection = self.idle.pop()
            if not connection.transport.is_closing() and time.monotonic() - connection.idle_since < IDLE_S:
                return connection
            connection.transport.abort()
        return None

    async def _connect(self, request: Request, data: bytes) -> None:
        if self.is_tls and self._tls is None:
            self._tls = ssl.create_default_context()
        try:
            async with asyncio.timeout(CONNECT_S):
                loop = asyncio.get_running_loop()
                _, connection = await loop.create_connection(
                    lambda: Connection(self), self.host, self.port, ssl=self._tls
                )
        except (OSError, TimeoutError) as error:
            why = "no connection within 10 s" if isinstance(error, TimeoutError) else (error.strerror or str(error))
            if not request.is_over:
                request.sink.on_lost(f"it cannot be reached ({why.lower()})")
            return
        if request.is_over:
            connection.transport.abort()
        else:
            connection.begin(request, data)


class Carrier(Protocol):
    """What carries requests; `give_up` ends one of them."""

    def give_up(self, request: Request) -> None: ...


class Request:
    """One request on its way. `abort` gives up on it: over HTTP/1.1 with its connection."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.is_over = False
        self.connection: Carrier | None = None

    def abort(self) -> None:
        if not self.is_over:
            self.is_over = True
            if self.connection is not None:
                self.connection.give_up(self)


class Connection(asyncio.Protocol):
    """One connection, which carries one request at a time."""

    transport: asyncio.Transport

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._parser = httptools.HttpResponseParser(self)
        self._request: Request | None = None
        self._headers: dict[str, str] = {}
        self._size = 0
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._origin.opened.add(self)

    def begin(self, request: Request, data: bytes) -> None:
        self._request, request.connection = request, self
        self._headers, self._size = {}, 0
        self.transport.write(data)

    def give_up(self, request: Request) -> None:
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, AttributeError):
            self._end("what it answers is no HTTP/1.1")
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._origin.opened.discard(self)
        if self._request is not None and self._is_until_close():
            self.on_message_complete()
        self._end("it closed the connection before it had answered")

    def _is_until_close(self) -> bool:
        return bool(self._headers) and not {"content-length", "transfer-encoding"} & self._headers.keys()

    def _end(self, reason: str) -> None:
        request, self._request = self._request, None
        if request is not None and not request.is_over:
            request.is_over = True
            request.sink.on_lost(reason)

    # ------------------------------------------------------------------------------------------ the parser's news

    def on_message_begin(self) -> None:
        if self._request is None:  # what comes unasked must not be taken for the answer to what is asked next
            raise httptools.HttpParserError("an answer to nothing")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._size += len(name) + len(value)
        if self._size > MAX_HEAD:
            raise httptools.HttpParserError("too long a head")
        self._headers[_lower(name)] = value.decode("latin-1").strip(" \t")

    def on_headers_complete(self) -> None:
        if self._request is not None and not self._request.is_over:
            self._request.sink.on_head(self._parser.get_status_code(), self._headers)

    def on_body(self, body: bytes) -> None:
        if self._request is not None and not self._request.is_over:
            self._request.sink.on_body(body)

    def on_message_complete(self) -> None:
        request, self._request = self._request, None
        if request is None or self._parser.get_status_code() < 200:
            self._request = request
            return
        is_kept = self._parser.should_keep_alive() and not self._is_until_close()
        self.idle_since = time.monotonic()
        if is_kept and not request.is_over:
            self._origin.idle.append(self)
        else:
            self.transport.close()
        if not request.is_over:
            request.is_over = True
            request.sink.on_end()


@lru_cache(64)
def _head(method: str, path: str, host: str, headers: tuple[tuple[str, str], ...]) -> bytes:
    """A request's first lines; one call's are mostly the last one's."""
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", *(f"{name}: {value}" for name, value in headers), ""]
    return "\r\n".join(lines).encode("latin-1", "replace")


@lru_cache(256)
def _lower(name: bytes) -> str:
    return name.decode("latin-1").lower()


class Events:
    """A server-sent event stream, read piece by piece. Raises ValueError past `limit` bytes without an end.

    held: how much of an event's data is held in memory; more lies in a file. last_id, retry_ms: what the stream said
    for the case that it breaks off.
    """

    def __init__(self, held: int, limit: int = 0) -> None:
        self.held, self.limit = held, max(held, limit)
        self.last_id = ""
        self.retry_ms: int | None = None
        self._line = Pieces(self.held, self.limit)
        self._data: list[bytes] = []
        self._long: memoryview | None = None
        self._size = 0
        self._kind = b""

    def feed(self, data: bytes) -> list[tuple[str, bytes | memoryview]]:
        """The events that have come to their end, as (kind, data); empty ones are left out."""
        found: list[tuple[str, bytes | memoryview]] = []
        try:
            *lines, rest = data.split(b"\n")
            for line in lines:
                self._line.add(line)
                found += self._end_line(self._line.take())
            if rest:
                self._line.add(rest)
        except TooLongError as error:
            self._line.drop()
            raise ValueError(f"an event that {error}") from None
        return found

    def _end_line(self, line: bytes | memoryview) -> list[tuple[str, bytes | memoryview]]:
        if isinstance(line, memoryview):
            self._take_long(line)
            return []
        line = line.removesuffix(b"\r")
        if line:
            self._take(line)
            return []
        data = self._long if self._long is not None else b"\n".join(self._data)
        kind = self._kind.decode("latin-1") or "message"
        self._data, self._kind, self._size, self._long = [], b"", 0, None
        return [(kind, data)] if len(data) else []

    def _take_long(self, line: memoryview) -> None:
        """A line of data that lies in a file; it must be the only one of its event."""
        if bytes(line[:5]) != b"data:" or self._data or self._long is not None:
            raise ValueError(f"an event that is longer than {self.held} bytes")
        end = len(line) - (line[-1] == 13)
        self._long = line[6 if line[5] == 32 else 5 : end]

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        self._size += len(line)
        if self._size > self.held or (name == b"data" and self._long is not None and value):
            raise ValueError("an event that is too long")
        if name == b"data":
            if value:
                self._data.append(value)
        elif name == b"event":
            self._kind = value
        elif name == b"id" and b"\0" not in value and len(value) < 4096:
            self.last_id = value.decode("latin-1")
        elif name == b"retry" and value.isdigit() and len(value) < 9:
            self.retry_ms = int(value)
