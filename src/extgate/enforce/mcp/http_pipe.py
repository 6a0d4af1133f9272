"""A server behind a URL: Streamable HTTP, and the older HTTP with one stream of events.

A client's own tokens never come here: what is sent are the headers of the server's entry, and the protocol's.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urljoin, urlsplit

from extgate.enforce.mcp import envelope as json
from extgate.enforce.mcp.call import Call
from extgate.enforce.mcp.http_client import Events, Origin, Request
from extgate.enforce.mcp.long import Pieces, TooLongError
from extgate.enforce.mcp.options import Limits
from extgate.enforce.mcp.pipe import Listener, Pipe, PipeError, Target

NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"} | dict.fromkeys(
    ("tasks/get", "tasks/update", "tasks/cancel"), "taskId"
)
"""What the `Mcp-Name` header repeats, by method."""
_SENDS = {"content-type": "application/json"}
MAX_RESUMES = 20
RETRY_S = 1.0


class HttpPipe:
    """Streamable HTTP. is_modern: each request stands alone, and says in headers what it is."""

    def __init__(self, target: Target, listener: Listener, limits: Limits) -> None:
        self.target, self.listener, self.limits = target, listener, limits
        self.origin = Origin(target.url)
        self.session_id = self.version = ""
        self.is_modern = self.is_closed = False
        self.requests: dict[Call | None, Request] = {}
        self._posts: set[_Post] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._stream: _Post | None = None

    def send(self, data: bytes, call: Call | None = None) -> None:
        post = _Post(self, call)
        self._posts.add(post)
        self._idle.clear()
        headers = self._headers() | _SENDS
        if self.is_modern and call is not None:
            headers |= _modern_headers(call)
        post.request = self.origin.send("POST", headers, data, post)

    def listen(self) -> None:
        """Opens the stream on which the server says what belongs to no request."""
        self._stream = _Post(self, None, is_stream=True)
        self._stream.resume(0.0)

    def abandon(self, call: Call) -> bool:
        for post in tuple(self._posts):
            if post.call is call:
                post.drop()
                return self.is_modern
        return False

    async def flush(self) -> None:
        """Returns when everything that was sent has been answered."""
        async with asyncio.timeout(self.limits.start_s):
            await self._idle.wait()

    async def close(self) -> None:
        self.is_closed = True
        for post in (*self._posts, *([self._stream] if self._stream else [])):
            post.drop()
        if self.session_id:
            ended = _Post(self, None, is_last=True)
            ended.request = self.origin.send("DELETE", self._headers(), b"", ended)
            with suppress(TimeoutError):
                async with asyncio.timeout(self.limits.grace_s):
                    await ended.done.wait()
        self.origin.close()

    def _headers(self) -> dict[str, str]:
        headers = {"accept": "application/json, text/event-stream", **self.target.headers}
        if self.version:
            headers["mcp-protocol-version"] = self.version
        if self.session_id and not self.is_modern:
            headers["mcp-session-id"] = self.session_id
        return headers

    def ended(self, post: _Post) -> None:
        self._posts.discard(post)
        if not self._posts:
            self._idle.set()


def _modern_headers(call: Call) -> dict[str, str]:
    name = json.text_of(call.params.get(NAMED[call.method])) if call.method in NAMED else None
    named = {} if name is None else {"mcp-name": header_value(name)}
    return {"mcp-method": header_value(call.method), **named, **call.headers}


def header_value(text: str) -> str:
    """The text as the protocol puts it into a header: as it is, or in base64 where a header would not keep it."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?")
    return text if is_plain else f"=?base64?{base64.b64encode(text.encode()).decode()}?="


class _Post:
    """One request and its response: one JSON message, or a stream of events that is taken up again when it breaks."""

    def __init__(self, pipe: HttpPipe, call: Call | None, *, is_stream: bool = False, is_last: bool = False) -> None:
        self.pipe, self.call, self.is_stream, self.is_last = pipe, call, is_stream, is_last
        self.request: Request | None = None
        self.done = asyncio.Event()
        self._status = 0
        self._events: Events | None = None
        self._last_id, self._retry_s = "", RETRY_S
        self._body = Pieces(pipe.limits.message, pipe.limits.answer)
        self._resumes = 0
        self._timer: asyncio.TimerHandle | None = None

    def drop(self) -> None:
        """Gives up on it without a word."""
        if self._timer is not None:
            self._timer.cancel()
        if self.request is not None:
            self.request.abort()
        self._body.drop()
        self._end()

    def on_head(self, status: int, headers: Mapping[str, str]) -> None:
        self._status, self._events = status, None
        self._body.drop()
        if "mcp-session-id" in headers and self.call is not None and self.call.method == "initialize":
            self.pipe.session_id = headers["mcp-session-id"]
        if status == 200 and headers.get("content-type", "").partition(";")[0].strip().lower() == "text/event-stream":
            self._events = Events(self.pipe.limits.message, self.pipe.limits.answer)

    def on_body(self, data: bytes) -> None:
        if self._events is None:
            try:
                self._body.add(data)
            except TooLongError as error:
                self._fail(f"the server's answer {error}")
                self.drop()
            return
        try:
            found = self._events.feed(data)
        except ValueError as error:
            self._fail(f"the server sent {error}")
            self.drop()
            return
        for kind, message in found:
            if kind == "message":
                self.pipe.listener.on_message(message, self.call)

    def on_end(self) -> None:
        if self._events is not None:
            self._broke_off("it ended the stream before it had answered")
            return
        try:
            body = self._body.take()
        except TooLongError as error:
            self._fail(f"the server's answer {error}")
            self._end()
            return
        is_json = bytes(body[:256]).lstrip()[:1] == b"{"
        if self._status in (200, 400, 404) and is_json and self.call is not None and _has_id(body):
            self.pipe.listener.on_message(body, self.call)
            self._fail("its answer belongs to another request")
        elif self._status == 404 and self.pipe.session_id and not self.is_last:
            self.pipe.listener.on_failed(None, "it has forgotten the session")
        elif self._status >= 400 or (self.call is not None and self._status != 200):
            self._fail(_why(self._status, bytes(body[:65536])))
        else:
            self._fail("it answered without an answer")
        self._end()

    def on_lost(self, reason: str) -> None:
        if self._events is not None:
            self._broke_off(reason)
        elif self.is_stream:
            self.resume(self._retry_s)
        else:
            self._fail(reason)
            self._end()

    def resume(self, wait_s: float) -> None:
        """Asks for the stream, from where it broke off."""
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._get)

    def _get(self) -> None:
        if self.pipe.is_closed:
            return
        headers = self.pipe._headers() | ({"last-event-id": self._last_id} if self._last_id else {})
        headers["accept"] = "text/event-stream"
        self.request = self.pipe.origin.send("GET", headers, b"", self)

    def _broke_off(self, reason: str) -> None:
        events = self._events
        if events is not None:
            self._last_id = events.last_id or self._last_id
            self._retry_s = min(events.retry_ms / 1000, 60.0) if events.retry_ms is not None else self._retry_s
        self._events = None
        is_waiting = self.call is not None and self.pipe.listener.is_waiting(self.call)
        if self.pipe.is_closed or not (self.is_stream or (is_waiting and self._last_id)):
            if is_waiting:
                self._fail(reason)
            self._end()
        elif self._resumes < MAX_RESUMES or self.is_stream:
            self._resumes += 1
            self.resume(self._retry_s)
        else:
            self._fail(reason)
            self._end()

    def _fail(self, reason: str) -> None:
        if self.call is not None and self.pipe.listener.is_waiting(self.call):
            self.pipe.listener.on_failed(self.call, reason)

    def _end(self) -> None:
        self.done.set()
        self.pipe.ended(self)


def _has_id(body: bytes | memoryview) -> bool:
    if isinstance(body, memoryview):
        return True  # of so long a one, what it is not is told once it is read
    found = json.object_of(body)
    return json.id_of(found.get("id")) is not None and ("result" in found or "error" in found or "method" in found)


def _why(status: int, body: bytes) -> str:
    if status in (401, 403):
        return f"it wants other credentials (HTTP {status})"
    said = json.object_of(json.object_of(body).get("error")).get("message")
    text = json.text_of(said) or ""
    return f"it answered HTTP {status}" + (f": {text[:200]}" if text else "")


async def open_http(target: Target, listener: Listener, limits: Limits) -> HttpPipe:
    """A way to a Streamable HTTP server; nothing is sent yet."""
    return HttpPipe(target, listener, limits)


async def open_sse(target: Target, listener: Listener, limits: Limits) -> Pipe:
    """Opens the event stream of an older server. Raises PipeError when it says no address to send to."""
    pipe = _SsePipe(target, listener, limits)
    try:
        async with asyncio.timeout(limits.start_s):
            await pipe.opened.wait()
    except TimeoutError:
        pipe.why = "it named no address to send to"
    if pipe.why:
        await pipe.close()
        raise PipeError(pipe.why)
    return pipe


class _SsePipe:
    """HTTP+SSE of 2024-11-05: everything comes on one stream, everything goes to one address on the same origin."""

    def __init__(self, target: Target, listener: Listener, limits: Limits) -> None:
        self.target, self.listener, self.limits = target, listener, limits
        self.origin = Origin(target.url)
        self.opened = asyncio.Event()
        self.why = self._path = ""
        self._events = Events(limits.message, limits.answer)
        self._is_closed = False
        headers = {"accept": "text/event-stream", **target.headers}
        self._stream = self.origin.send("GET", headers, b"", self)

    def send(self, data: bytes, call: Call | None = None) -> None:
        headers = {"content-type": "application/json", **self.target.headers}
        self.origin.send("POST", headers, data, _Sent(self.listener, call), self._path)

    def abandon(self, call: Call) -> bool:
        return False

    async def close(self) -> None:
        self._is_closed = True
        self._stream.abort()
        self.origin.close()

    def on_head(self, status: int, headers: Mapping[str, str]) -> None:
        if status != 200:
            self._lost(f"it answered HTTP {status}")

    def on_body(self, data: bytes) -> None:
        try:
            found = self._events.feed(data)
        except ValueError as error:
            self._lost(f"it sent {error}")
            return
        for kind, message in found:
            if kind == "endpoint" and not self.opened.is_set():
                self._open(bytes(message[:4096]).decode("utf-8", "replace"))
            elif kind == "message":
                self.listener.on_message(message, None)

    def on_end(self) -> None:
        self._lost("it ended the stream")

    def on_lost(self, reason: str) -> None:
        self._lost(reason)

    def _open(self, said: str) -> None:
        url = urlsplit(urljoin(self.target.url, said))
        mine = self.origin.parts
        if (url.scheme, url.netloc) != (mine.scheme, mine.netloc):
            self._lost("it names an address of another origin")
            return
        self._path = url.path + (f"?{url.query}" if url.query else "")
        self.opened.set()

    def _lost(self, reason: str) -> None:
        if self._is_closed:
            return
        if self.opened.is_set() and not self.why:
            self.listener.on_failed(None, reason)
        self.why = self.why or reason
        self.opened.set()
        self._stream.abort()


class _Sent:
    """The answer to a message that was sent, of which only the status counts."""

    def __init__(self, listener: Listener, call: Call | None) -> None:
        self.listener, self.call = listener, call

    def on_head(self, status: int, headers: Mapping[str, str]) -> None:
        if status >= 400:
            self.on_lost(f"it answered HTTP {status}")

    def on_body(self, data: bytes) -> None:
        pass

    def on_end(self) -> None:
        pass

    def on_lost(self, reason: str) -> None:
        if self.call is not None and self.listener.is_waiting(self.call):
            self.listener.on_failed(self.call, reason)
