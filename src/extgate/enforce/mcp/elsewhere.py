"""Requests of sessions and tasks that another replica holds: relayed as they came, once, to replicas' addresses alone.

The id of a session or a task begins with its replica, so nothing is looked up but where that is. Both replicas ask who
calls.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from urllib.parse import urlsplit

from extgate.enforce.callers.proxies import Network, is_within
from extgate.enforce.mcp import envelope as json
from extgate.enforce.mcp.envelope import REFUSED
from extgate.enforce.mcp.http_client import Origin
from extgate.enforce.mcp.http_client import Request as Sent
from extgate.enforce.mcp.http_server import Request
from extgate.enforce.mcp.shared import SharedError

RELAYED = "x-extgate-relayed"
JSON = "application/json"
_ID = re.compile(r"([0-9a-f]{16})\.[A-Za-z0-9_-]{32}")
_OWN = frozenset({"host", "connection", "keep-alive", "content-length", "transfer-encoding", "te", "trailer", "upgrade",
                  "expect", "proxy-connection"})  # fmt: skip
_PASSED = ("www-authenticate", "allow", "retry-after")
MAX_ORIGINS = 256


class Elsewhere:
    """The other replicas. place_of: see `Shared`. peers: where replicas may be. max_answer: bytes of an answer that is
    no stream. in_flight: requests that wait for another replica; a client's own stream is none."""

    def __init__(
        self, replica: str, place_of: Callable[[str], Awaitable[str]], peers: tuple[Network, ...], max_answer: int
    ) -> None:
        self.replica, self._place_of, self.peers, self._max_answer = replica, place_of, peers, max_answer
        self._origins: dict[str, Origin] = {}
        self.in_flight: set[Request] = set()

    def new_id(self) -> str:
        """An id for a session or a task of this replica."""
        return f"{self.replica}.{secrets.token_urlsafe(24)}"

    def is_elsewhere(self, request: Request, session: str) -> bool:
        """Whether a session or a task that is not here may be another replica's."""
        found = _ID.fullmatch(session)
        return found is not None and found[1] != self.replica and RELAYED not in request.headers

    async def relay(self, request: Request, session: str, id: bytes) -> None:
        """Has the session's replica answer; says honestly when there is none."""
        try:
            place = await self._place_of(session.partition(".")[0])
        except SharedError as error:
            request.answer(503, json.error(id, REFUSED, str(error)), JSON, {"retry-after": "1"})
            return
        if not place or not is_within(urlsplit(place).hostname or "", self.peers):
            why = "the replica that had this is gone with its sessions and tasks; send `initialize` again"
            request.answer(404, json.error(id, json.INVALID_REQUEST, why), JSON)
            return
        if request.is_over:
            return
        headers = {name: value for name, value in request.headers.items() if name not in _OWN}
        answer = _Answer(request, id, self._max_answer, partial(self.in_flight.discard, request))
        if request.method == "POST":
            self.in_flight.add(request)
        sent = self._origin(place).send(
            request.method, headers | {RELAYED: self.replica}, request.body, answer, request.path
        )
        answer.sent, request.on_gone = sent, answer.give_up

    def _origin(self, place: str) -> Origin:
        if place not in self._origins:
            if len(self._origins) >= MAX_ORIGINS:
                self._origins.pop(next(iter(self._origins)))
            self._origins[place] = Origin(place)
        return self._origins[place]

    def close(self) -> None:
        for origin in self._origins.values():
            origin.close()


class _Answer:
    """Passes an answer on: events as they come, anything else whole."""

    def __init__(self, request: Request, id: bytes, limit: int, done: Callable[[], None]) -> None:
        self._request, self._id, self._limit, self._done = request, id, limit, done
        self._status, self._headers, self._body, self._kind = 502, dict[str, str](), bytearray(), ""
        self.sent: Sent | None = None

    def give_up(self) -> None:
        """The client has hung up."""
        self._done()
        if self.sent is not None:
            self.sent.abort()

    def on_head(self, status: int, headers: Mapping[str, str]) -> None:
        self._status = status
        self._headers = {n: v for n, v in headers.items() if n.startswith("mcp-") or n in _PASSED}
        self._kind = headers.get("content-type", "")
        if self._kind == "text/event-stream" and status == 200:
            self._request.stream(self._headers)

    def on_body(self, data: bytes) -> None:
        if self._request.is_stream:
            if data:
                self._request.push(data)
            return
        self._body += data
        if len(self._body) > self._limit and self.sent is not None:
            self.sent.abort()
            self.on_lost("its answer is too long")

    def on_end(self) -> None:
        self._done()
        if self._request.is_stream:
            self._request.end()
        else:
            self._request.answer(self._status, bytes(self._body), self._kind, self._headers)

    def on_lost(self, reason: str) -> None:
        """An answer that breaks off is cut off here too; whether its call ran is not known."""
        self._done()
        if self._request.is_stream:
            self._request.cut()
        else:
            why = f"the replica that has this session: {reason}"
            self._request.answer(502, json.error(self._id, json.INTERNAL, why), JSON)
