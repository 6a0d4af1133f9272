"""HTTP/2 as a server, for clients that begin with it: the same requests in and answers out as over HTTP/1.1.

Bounds: streams at once, a head, a message, and the messages of a connection that are under way together.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, DataReceived, Event, RequestReceived, StreamEnded
from h2.exceptions import ProtocolError

from extgate.enforce.mcp.http2 import Http2
from extgate.enforce.mcp.http_server import MAX_HEAD, Handler, Headers, Kept, Request
from extgate.enforce.mcp.long import Data
from extgate.enforce.mcp.options import Limits


@dataclass(slots=True, eq=False)
class _Coming:
    """A request that is not whole yet. size: of its body so far, in bytes. is_refused: it is answered already, and what
    still comes is dropped; not every client stops sending when it is told."""

    request: Request
    parts: list[bytes] = field(default_factory=list)
    size: int = 0
    is_refused: bool = False


class Http2Server(Http2):
    """One client's connection. peer: the address that it comes from."""

    def __init__(self, handler: Handler, limits: Limits, open_ones: set[Kept]) -> None:
        super().__init__(is_client=False, unsent=limits.unsent)
        self._handler, self._limits, self._open = handler, limits, open_ones
        self._coming: dict[int, _Coming] = {}
        self._held = 0
        self._answering: dict[int, Request] = {}
        self.peer = ""
        self.waits_since = time.monotonic()

    def connection_made(self, transport: object) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]  # as asyncio has it
        peer = self.transport.get_extra_info("peername")
        self.peer = str(peer[0]) if isinstance(peer, tuple) and peer else ""
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.discard(self)
        self._coming.clear()
        self.out.clear()
        answering, self._answering = self._answering, {}
        for request in answering.values():
            request.gone()

    # ------------------------------------------------------------------------------------------ requests

    def take(self, event: Event) -> None:
        if isinstance(event, RequestReceived):
            self._begin(event)
        elif isinstance(event, DataReceived):
            self._grow(event.stream_id, event.data or b"")
        elif isinstance(event, StreamEnded):
            self._complete(event.stream_id)
        elif isinstance(event, ConnectionTerminated):
            self.close_if_idle()  # else it ends with what is under way, by the client or by the clock

    def _begin(self, event: RequestReceived) -> None:
        request, size = Request(self, stream_id=event.stream_id), 0
        said: dict[str, str] = {}
        for name, value in event.headers:
            key, text = str(name), str(value)
            size += len(key) + len(text)
            if key.startswith(":"):
                said[key] = text
            elif key in request.headers:
                request.twice.add(key)
                request.headers[key] = text
            else:
                request.headers[key] = text
        request.method, request.path = said.get(":method", ""), said.get(":path", "")
        request.headers.setdefault("host", said.get(":authority", ""))
        self._coming[event.stream_id] = _Coming(request)
        length = request.headers.get("content-length", "0")
        if size > MAX_HEAD:
            self._refuse(request, 431)
        elif not _is_plain(request.path) or request.method == "CONNECT":
            self._refuse(request, 400)
        elif length.isdigit() and int(length) > self._limits.message:
            self._refuse(request, 413)
        elif request.headers.get("expect", "").lower() == "100-continue":
            self.h2.send_headers(event.stream_id, [(":status", "100")])

    def _grow(self, stream: int, data: bytes) -> None:
        found = self._coming.get(stream)
        if found is None:
            return
        found.size += len(data)
        if found.is_refused:
            if found.size > 4 * self._limits.message:
                self._forget(stream)
                self.reset(stream, ErrorCodes.ENHANCE_YOUR_CALM)
            return
        found.parts.append(data)
        self._held += len(data)
        if found.size > self._limits.message:
            self._refuse(found.request, 413)
        elif self._held > 2 * self._limits.message:
            self._refuse(found.request, 503)

    def _complete(self, stream: int) -> None:
        found = self._forget(stream)
        if found is not None and not found.is_refused:
            self._answering[stream] = found.request
            found.request.body = b"".join(found.parts)
            self._handler(found.request)

    def _refuse(self, request: Request, status: int) -> None:
        """Answers before the request is whole."""
        found = self._coming[request.stream_id]
        self._held -= sum(map(len, found.parts))
        found.parts, found.is_refused = [], True
        request.answer(status)

    def _forget(self, stream: int) -> _Coming | None:
        found = self._coming.pop(stream, None)
        self._held -= sum(map(len, found.parts)) if found is not None else 0
        return found

    def lost(self, stream: int, code: int) -> None:
        self._forget(stream)
        request = self._answering.pop(stream, None)
        if request is not None:
            request.gone()

    # ------------------------------------------------------------------------------------------ answers

    def answer(self, request: Request, status: int, headers: Headers, body: Data) -> None:
        """Writes a whole answer. A client that does not read what it asked for is cut off, here and below."""
        if self._begin_answer(request, status, headers, is_end=not len(body)) and len(body):
            self._send(request, (body,), is_end=True)
        self._done(request)

    def stream(self, request: Request, headers: Headers) -> None:
        self._begin_answer(request, 200, headers, is_end=False)

    def push(self, request: Request, data: tuple[Data, ...]) -> None:
        self._send(request, data, is_end=False)

    def end(self, request: Request) -> None:
        self._send(request, (), is_end=True)
        self._done(request)

    def _send(self, request: Request, data: tuple[Data, ...], *, is_end: bool) -> None:
        try:
            is_read = self.send(request.stream_id, data, is_end=is_end)
        except ProtocolError:
            is_read = False  # the stream has ended from the other side
        if not is_read:
            self._answering.pop(request.stream_id, None)
            request.gone()

    def cut(self, request: Request) -> None:
        self.reset(request.stream_id, ErrorCodes.INTERNAL_ERROR)
        self._answering.pop(request.stream_id, None)

    def _begin_answer(self, request: Request, status: int, headers: Headers, *, is_end: bool) -> bool:
        """Whether its head was written: not on a stream that is gone, nor with one that HTTP/2 does not have."""
        lines = [(":status", str(status)), *((name.lower(), value) for name, value in headers)]
        try:
            self.h2.send_headers(request.stream_id, lines, end_stream=is_end)
        except ProtocolError:
            self.cut(request)
            request.gone()
            return False
        self.flush()
        return True

    def _done(self, request: Request) -> None:
        self._answering.pop(request.stream_id, None)
        self.waits_since = time.monotonic()
        self.went_well()

    # ------------------------------------------------------------------------------------------ by the clock

    def close_if_idle(self) -> None:
        """Closes it unless it carries a request."""
        if not self._answering and not self.out:
            self.close()

    @property
    def is_sending(self) -> bool:
        """Whether the client has not read all that it was sent."""
        return bool(self.out) or self.transport.get_write_buffer_size() > 0

    def close_if_stuck(self, before: float) -> None:
        """Closes it when an answer has not moved since that time, because the client does not read it."""
        if self.out and self.moved_at < before:
            self.transport.abort()


def _is_plain(path: str) -> bool:
    """Whether a path is one that HTTP/1.1 could have brought."""
    return path.isascii() and path.isprintable() and " " not in path and path != ""
