"""The way back to an HTTP client: each message to the request that it belongs to, or to the client's open stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from extgate.enforce.mcp import envelope as json
from extgate.enforce.mcp.call import Reply
from extgate.enforce.mcp.envelope import METHOD_NOT_FOUND, Id
from extgate.enforce.mcp.http_server import Request, media_types
from extgate.enforce.mcp.long import Data, Long
from extgate.enforce.mcp.options import Limits

RETRY_MS = 1000
_STATUS = {METHOD_NOT_FOUND: 404} | dict.fromkeys(
    (json.PARSE_ERROR, json.INVALID_REQUEST, json.INVALID_PARAMS, -32020, -32021, -32022), 400
)
"""HTTP status of an error's code in the 2026-07-28 protocol; any other is 200."""


@dataclass(slots=True, eq=False)
class _Stream:
    """The events of one request, or of the client's own stream. request: None while nobody reads it."""

    number: int
    request: Request | None
    sent: int = 0
    is_ended: bool = False


class Outbox:
    """What one client gets. headers: of the next answer. before_last: called once, before a request's last message."""

    def __init__(self, limits: Limits, *, is_modern: bool = False) -> None:
        self.limits, self.is_modern = limits, is_modern
        self.headers: dict[str, str] = {}
        self.before_last: Callable[[], None] | None = None
        self._by_key: dict[Id, _Stream] = {}
        self._own = _Stream(0, None)
        self._streams = 0
        self._kept: deque[tuple[_Stream, int, bytes]] = deque()
        self._size = 0

    def expect(self, key: Id | None, request: Request) -> None:
        """Notes which request a message's id belongs to."""
        assert key is not None
        self._streams += 1
        stream = self._by_key[key] = _Stream(self._streams, request)
        if not self.is_modern:
            request.on_gone = lambda: self._gone(stream)

    def expects(self, key: Id | None) -> bool:
        """Whether some request with this id waits for its answer."""
        return key in self._by_key

    def listen(self, request: Request, last_event: str) -> bool:
        """Opens the client's own stream, or takes one up after the event that it had last; False for none such."""
        stream, after = self._own, -1
        if last_event:
            number, _, nth = last_event.partition("-")
            known = {s.number: s for s in (self._own, *self._by_key.values(), *(s for s, _, _ in self._kept))}
            found = known.get(int(number)) if number.isdecimal() and nth.isdecimal() and len(last_event) < 40 else None
            if found is None:
                return False
            stream, after = found, int(nth)
        if stream.request is not None and not stream.request.is_over:
            stream.request.end()
        stream.request = request
        request.on_gone = lambda: self._gone(stream)
        request.stream(self.headers)
        self._prime(stream)
        for of, count, data in tuple(self._kept):
            if of is stream and count > after:
                request.push(*_event(data, stream, count))
        if stream is self._own:
            self._forget(stream)
        elif stream.is_ended:
            request.end()
        return True

    def send(self, reply: Reply) -> None:
        """Passes on one message."""
        if reply.is_last and self.before_last is not None:
            before, self.before_last = self.before_last, None
            before()
        stream = self._by_key.get(reply.about) if reply.about is not None else None
        if reply.is_last and reply.about is not None:
            self._by_key.pop(reply.about, None)
        if stream is None and reply.is_last:
            return
        stream = stream or self._own
        request = stream.request
        if request is not None and request.is_over:
            request = None
        if request is not None and reply.is_last and not request.is_stream and self._wants_json(request):
            request.answer(_status(reply.data) if self.is_modern else 200, reply.data, "application/json", self.headers)
            return
        self._push(stream, request, reply)

    def _wants_json(self, request: Request) -> bool:
        """Whether a lone answer goes as JSON: unless a client names streams first, or takes nothing else."""
        accepted = request.headers.get("accept", "")
        if self.is_modern or accepted.find("json") < accepted.find("event-stream"):
            return _takes_json(request)
        return _takes_json(request) and "event-stream" not in accepted

    def _push(self, stream: _Stream, request: Request | None, reply: Reply) -> None:
        if request is not None and not request.is_stream:
            if not _takes_events(request):
                return
            request.stream(self.headers)
            self._prime(stream)
        stream.sent += 1
        stream.is_ended = reply.is_last
        if request is not None:
            request.push(*_event(reply.data, None if self.is_modern else stream, stream.sent))
        if not self.is_modern and (request is None or stream is not self._own):
            self._keep(stream, reply.data.instead if isinstance(reply.data, Long) else reply.data)
        if reply.is_last and request is not None:
            request.end()

    def close(self) -> None:
        """Ends every stream."""
        for stream in (self._own, *self._by_key.values()):
            if stream.request is not None and not stream.request.is_over:
                stream.request.end() if stream.request.is_stream else stream.request.answer(404)
        self._by_key.clear()

    def end_own(self) -> None:
        """Ends the client's own stream; its requests go on."""
        if self._own.request is not None and not self._own.request.is_over:
            self._own.request.end()

    @property
    def is_read(self) -> bool:
        """Whether the client holds a stream open."""
        streams = (self._own, *self._by_key.values())
        return any(stream.request is not None and not stream.request.is_over for stream in streams)

    def keep_alive(self) -> None:
        """Sends something that means nothing, so that nobody between takes the silence for an end."""
        for stream in (self._own, *self._by_key.values()):
            if stream.request is not None and stream.request.is_stream:
                stream.request.push(b": \n\n")

    def _prime(self, stream: _Stream) -> None:
        """An empty event, so that the client can take the stream up again."""
        if not self.is_modern and stream.request is not None:
            stream.request.push(b"id: %d-%d\nretry: %d\ndata: \n\n" % (stream.number, stream.sent, RETRY_MS))

    def _gone(self, stream: _Stream) -> None:
        stream.request = None

    def _keep(self, stream: _Stream, data: bytes) -> None:
        self._kept.append((stream, stream.sent, data))
        self._size += len(data)
        while self._kept and (len(self._kept) > self.limits.events or self._size > self.limits.message):
            self._size -= len(self._kept.popleft()[2])

    def _forget(self, stream: _Stream) -> None:
        self._kept = deque(row for row in self._kept if row[0] is not stream)
        self._size = sum(len(data) for _, _, data in self._kept)


def _event(data: Data, stream: _Stream | None, count: int) -> tuple[Data, ...]:
    id = b"" if stream is None else b"id: %d-%d\n" % (stream.number, count)
    head = b"event: message\n" + id + b"data: "
    return (head, data, b"\n\n") if isinstance(data, Long) else (head + data + b"\n\n",)


def _status(data: Data) -> int:
    if isinstance(data, Long):
        return 200
    error = json.object_of(json.object_of(data).get("error")) if b'"error"' in data else {}
    code = json.value_of(error.get("code"))
    return _STATUS.get(code, 200) if isinstance(code, int) else 200


def _takes_json(request: Request) -> bool:
    accepted = request.headers.get("accept", "")
    return "json" in accepted or bool({"*/*", "application/*"} & set(media_types(accepted)))


def _takes_events(request: Request) -> bool:
    accepted = request.headers.get("accept", "")
    return "event-stream" in accepted or bool({"*/*", "text/*"} & set(media_types(accepted)))
