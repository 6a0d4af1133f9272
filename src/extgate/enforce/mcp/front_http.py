"""Streamable HTTP for clients: `/agents/{id}/mcp`, `/healthz`, `/readyz`.

A request is answered with JSON when nothing comes before its answer, else with a stream of events that can be taken up
again. Foreign hosts and origins are refused, and headers that repeat the body must agree with it.
"""

from __future__ import annotations

import base64
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from urllib.parse import unquote, urlsplit

from extgate.enforce.callers.callers import WELL_KNOWN, Callers
from extgate.enforce.callers.tokens import bearer, digest_of
from extgate.enforce.callers.verdict import Verdict
from extgate.enforce.mcp import envelope as json
from extgate.enforce.mcp.call import LEGACY, MODERN, is_modern
from extgate.enforce.mcp.elsewhere import Elsewhere
from extgate.enforce.mcp.envelope import HEADER_MISMATCH, INVALID_REQUEST, REFUSED, Envelope, EnvelopeError
from extgate.enforce.mcp.front_stream import Outbox
from extgate.enforce.mcp.http_pipe import NAMED
from extgate.enforce.mcp.http_server import Request, media_types
from extgate.enforce.mcp.hub import Hub
from extgate.enforce.mcp.session import Session
from extgate.enforce.wire.front import MARK, Wire

JSON = "application/json"
EVENTS = "text/event-stream"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_ROUTING = (
    "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id", "host", "origin", "authorization",
    "x-extgate-authorization",
)  # fmt: skip

Then = Callable[[Request, str], None]
"""What goes on with a request once its caller is known to be one of that agent's."""


Page = Callable[[], tuple[str, bytes]]
"""What operators may see: its media type, and the page."""


@dataclass(slots=True, eq=False)
class Seat:
    """A session and the way to its client, whose agent and caller alone may use it. until: when the last token that
    was shown ends, on the wall clock."""

    agent: str
    caller: str
    session: Session
    outbox: Outbox
    until: float = math.inf


@dataclass(slots=True)
class Front:
    """The routes. hosts: names under which the gateway may be addressed, and whose pages may address it.

    why_not_here: why an agent is not served by this replica now. elsewhere: the other replicas, None without any.
    pages: by path. operators: digests of the tokens that open them; None: nobody needs one. sessions: by id, and
    streams of the stateless era by a name that nobody knows. now: the wall clock.
    """

    hub: Hub
    hosts: frozenset[str] = LOOPBACK
    callers: Callers = field(default_factory=Callers)
    not_ready: Callable[[], str] = lambda: ""
    why_not_here: Callable[[str], str] = lambda agent: ""
    elsewhere: Elsewhere | None = None
    pages: dict[str, Page] = field(default_factory=dict)
    operators: frozenset[bytes] | None = None
    sessions: dict[str, Seat] = field(default_factory=dict)
    is_draining: bool = False
    wire: Wire | None = None
    now: Callable[[], float] = time.time

    def handle(self, request: Request) -> None:
        """Answers one request; what goes wrong inside is an error for this client alone."""
        try:
            self._route(request)
        except Exception:  # a door's outermost function: nothing was let through
            request.answer(500, json.error(b"null", json.INTERNAL, "the gateway failed"), JSON)

    def _route(self, request: Request) -> None:
        path = urlsplit(request.path).path if request.path.startswith("/") else ""
        if path in self.pages and self.operators is not None:  # a token is needed, which no foreign page has
            self._page(request, self.pages[path], self.operators)
        elif why := self._why_foreign(request):
            request.answer(403, json.error(b"null", REFUSED, why), JSON)
        elif twice := request.twice.intersection(_ROUTING):
            name = min(twice)
            request.answer(400, json.error(b"null", HEADER_MISMATCH, f"the header `{name}` came more than once"), JSON)
        elif path == "/healthz":
            request.answer(200, b"ok\n", "text/plain")
        elif path == "/readyz":
            why = self.not_ready() or ("draining" if self.is_draining else "")
            request.answer(503 if why else 200, (why or "ok").encode() + b"\n", "text/plain")
        elif path.startswith("/agents/") and path.endswith("/mcp") and len(path) > 12:
            self.admit(request, unquote(path[len("/agents/") : -len("/mcp")]), self._agent)
        elif path in self.pages:
            self._page(request, self.pages[path], None)
        elif path.startswith("/agents/") and MARK in path and self.wire is not None:
            self.wire.take(request, self.admit)
        elif path.startswith(f"{WELL_KNOWN}/agents/") and path.endswith("/mcp") and self.callers.issuers:
            agent = unquote(path[len(f"{WELL_KNOWN}/agents/") : -len("/mcp")])
            request.answer(200, self.callers.metadata(agent), JSON, {"cache-control": "max-age=300"})
        else:
            request.answer(404)

    def _why_foreign(self, request: Request) -> str:
        host = request.headers.get("host", "")
        if _name(f"//{host}") not in self.hosts:
            return f"the host `{host[:100]}` is not this gateway's; name it in `gateway.hosts` if it is"
        origin = request.headers.get("origin")
        if origin is not None and _name(origin) not in self.hosts:
            return f"pages of `{origin[:100]}` may not call this gateway"
        return ""

    def _page(self, request: Request, page: Page, operators: frozenset[bytes] | None) -> None:
        token = bearer(request.headers.get("authorization", "")) if "authorization" not in request.twice else None
        if operators is not None and (token is None or digest_of(token) not in operators):
            why = "an operator's token is needed; see `gateway.operators` in extgate.yaml"
            request.answer(401, json.error(b"null", REFUSED, why), JSON, {"www-authenticate": "Bearer"})
        elif request.method != "GET":
            request.answer(405, headers={"allow": "GET"})
        else:
            kind, body = page()
            request.answer(200, body, kind, {"cache-control": "no-store", "x-content-type-options": "nosniff"})

    # ------------------------------------------------------------------------------------------ who calls

    def admit(self, request: Request, agent: str, then: Then) -> None:
        """Goes on with a request whose caller may be the agent, and answers any other: at once, unless an issuer's keys
        have to be fetched first."""
        proxies = self.callers.proxies
        if proxies is not None and request.twice.intersection(proxies.headers):
            why = "a header that names the caller came more than once"
            request.answer(400, json.error(b"null", HEADER_MISMATCH, why), JSON)
            return
        judged = self.callers.judge(request.headers, request.connection.peer, agent)
        if isinstance(judged, Verdict):
            self._admitted(request, agent, then, judged)
        else:
            self.hub.later(self._admit_later(request, agent, then, judged))

    async def _admit_later(self, request: Request, agent: str, then: Then, judged: Awaitable[Verdict]) -> None:
        try:
            self._admitted(request, agent, then, await judged)
        except Exception:  # a door's outermost function: nothing was let through
            request.answer(500, json.error(b"null", json.INTERNAL, "the gateway failed"), JSON)

    def _admitted(self, request: Request, agent: str, then: Then, verdict: Verdict) -> None:
        if request.is_over:
            return
        if not verdict:
            self.hub.figures.turned_away[verdict.status] += 1
            headers = {"www-authenticate": self.callers.challenge(verdict, agent)} if verdict.status != 503 else {}
            request.answer(verdict.status, json.error(b"null", REFUSED, verdict.why), JSON, headers)
            return
        if why := self.why_not_here(agent):
            request.answer(503, json.error(b"null", REFUSED, why), JSON, {"retry-after": "1"})
            return
        request.caller, request.until = verdict.caller, verdict.until
        then(request, agent)

    # ------------------------------------------------------------------------------------------ methods

    def _agent(self, request: Request, agent: str) -> None:
        if agent not in self.hub.doors:
            request.answer(404, json.error(b"null", REFUSED, f"no agent `{agent[:100]}`"), JSON)
        elif request.method == "POST":
            self._post(request, agent)
        elif request.method == "GET":
            self._get(request, agent)
        elif request.method == "DELETE":
            self._delete(request, agent)
        else:
            request.answer(405, headers={"allow": "GET, POST, DELETE"})

    def _post(self, request: Request, agent: str) -> None:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            request.answer(415)
            return
        if not _may_answer(request.headers.get("accept", "")):
            request.answer(406)
            return
        try:
            message = json.read(request.body)
        except EnvelopeError as error:
            request.answer(400, json.error(error.id, error.code, error.message), JSON)
            return
        if self.is_draining and message.is_request:
            request.is_kept = False
            why = "the gateway is ending; try again, another one may be there"
            request.answer(503, json.error(message.id, REFUSED, why), JSON, {"retry-after": "1"})
        elif is_modern(message) or request.headers.get("mcp-protocol-version") in MODERN:
            self._modern(request, agent, message)
        elif why := _mismatch(request, message):
            request.answer(400, json.error(message.id, HEADER_MISMATCH, why), JSON)
        else:
            self._legacy(request, agent, message)

    def _legacy(self, request: Request, agent: str, message: Envelope) -> None:
        said = request.headers.get("mcp-session-id")
        version = request.headers.get("mcp-protocol-version")
        if version is not None and version not in LEGACY:
            text = f"unsupported protocol version `{version[:40]}`"
            request.answer(400, json.error(message.id, INVALID_REQUEST, text), JSON)
            return
        if message.method == "initialize" and said is None and message.is_request:
            self._begin(request, agent, message)
            return
        found = self._session(request, agent, message.id)
        if found is None:
            return
        session, outbox = found
        if not message.is_request:
            request.answer(202)
            self.hub.receive(session, message)
        elif outbox.expects(message.key):  # its answer would go to one of two requests, and the other would wait
            text = "a request with this id is in flight"
            request.answer(200, json.error(message.id, INVALID_REQUEST, text), JSON)
        else:
            outbox.expect(message.key, request)
            self._receive(session, message)

    def _begin(self, request: Request, agent: str, message: Envelope) -> None:
        if len(self.sessions) >= self.hub.limits.sessions:
            request.answer(503, json.error(message.id, REFUSED, "there are too many sessions"), JSON)
            return
        name = self.elsewhere.new_id() if self.elsewhere is not None else secrets.token_urlsafe(24)
        outbox = Outbox(self.hub.limits)
        session = self.hub.open(agent, name, outbox.send)
        outbox.expect(message.key, request)

        def opened() -> None:
            if session.is_open:
                self.sessions[name] = Seat(agent, request.caller, session, outbox, request.until)
                outbox.headers = {"mcp-session-id": name}
            else:  # refused: the answer says why, and there is no session
                self.hub.close(session)

        outbox.before_last = opened
        self._receive(session, message)

    def _modern(self, request: Request, agent: str, message: Envelope) -> None:
        """One request that stands alone; hanging up cancels it."""
        if not message.is_request:
            request.answer(202 if message.method else 400)
            return
        if not is_modern(message):
            text = "params._meta lacks the protocol version that the header names"
            request.answer(400, json.error(message.id, json.INVALID_PARAMS, text), JSON)
            return
        if why := _mismatch(request, message, is_strict=True):
            request.answer(400, json.error(message.id, HEADER_MISMATCH, why), JSON)
            return
        task = json.text_of(message.params.get("taskId")) if message.method.startswith("tasks/") else None
        if task is not None and self.elsewhere is not None and self.elsewhere.is_elsewhere(request, task):
            self.hub.later(self._relay(self.elsewhere, request, task, message.id))
            return
        outbox = Outbox(self.hub.limits, is_modern=True)
        session = self.hub.open(agent, secrets.token_urlsafe(9), outbox.send, request.caller)
        session.headers = {k: v for k, v in request.headers.items() if k.startswith("mcp-param-")}
        outbox.before_last = partial(self.hub.close, session)
        outbox.expect(message.key, request)
        request.on_gone = partial(self.hub.close, session)
        if message.method == "subscriptions/listen":  # stays open, so it must end with the right to hear it
            self.sessions[secrets.token_urlsafe(24)] = Seat(agent, request.caller, session, outbox, request.until)
        self._receive(session, message)

    def _receive(self, session: Session, message: Envelope) -> None:
        if self.hub.is_ready_for(message):
            self.hub.receive(session, message)
            return
        self.hub.later(self._when_ready(session, message))

    async def _when_ready(self, session: Session, message: Envelope) -> None:
        await self.hub.ready(session, message)
        self.hub.receive(session, message)

    def _get(self, request: Request, agent: str) -> None:
        if EVENTS not in set(media_types(request.headers.get("accept", ""))) | {""}:
            request.answer(406)
            return
        found = self._session(request, agent, b"null")
        if found is not None and not found[1].listen(request, request.headers.get("last-event-id", "")):
            request.answer(400, json.error(b"null", INVALID_REQUEST, "no stream has that event"), JSON)

    def _delete(self, request: Request, agent: str) -> None:
        found = self._session(request, agent, b"null")
        if found is not None:
            self._end(request.headers["mcp-session-id"])
            request.answer(200)

    def _session(self, request: Request, agent: str, id: bytes) -> tuple[Session, Outbox] | None:
        """The session that a request names; else it is answered with what is wrong."""
        said = request.headers.get("mcp-session-id")
        if said is None:
            request.answer(400, json.error(id, INVALID_REQUEST, "no `Mcp-Session-Id`; send `initialize` first"), JSON)
            return None
        seat = self.sessions.get(said)
        if seat is None or (seat.agent, seat.caller) != (agent, request.caller):
            seat = None
        elif seat.session not in self.hub.clients:
            del self.sessions[said]
            seat = None
        if seat is None and self.elsewhere is not None and self.elsewhere.is_elsewhere(request, said):
            self.hub.later(self._relay(self.elsewhere, request, said, id))
            return None
        if seat is None:
            request.answer(404, json.error(id, INVALID_REQUEST, "no such session; send `initialize` again"), JSON)
            return None
        seat.until = request.until
        return seat.session, seat.outbox

    async def _relay(self, elsewhere: Elsewhere, request: Request, session: str, id: bytes) -> None:
        try:
            await elsewhere.relay(request, session, id)
        except Exception:  # a door's outermost function: nothing was let through
            request.answer(500, json.error(id, json.INTERNAL, "the gateway failed"), JSON)

    def _end(self, name: str) -> None:
        seat = self.sessions.pop(name)
        self.hub.close(seat.session)
        seat.outbox.close()

    # ------------------------------------------------------------------------------------------ by the clock

    def tick(self) -> None:
        """Keeps streams alive as long as their callers' tokens last, and forgets the sessions that the hub ended."""
        for name, seat in tuple(self.sessions.items()):
            if self.now() > seat.until and seat.outbox.is_modern:
                self._end(name)
                continue
            if self.now() > seat.until:
                seat.outbox.end_own()
            seat.outbox.keep_alive()
            if seat.outbox.is_read:
                self.hub.touch(seat.session)
            if seat.session not in self.hub.clients:
                seat.outbox.close()
                del self.sessions[name]

    def put_out(self) -> None:
        """Ends the sessions of callers who would not be let in any more."""
        for name, seat in tuple(self.sessions.items()):
            if not self.callers.knows(seat.caller, seat.agent):
                self._end(name)


@lru_cache(64)
def _may_answer(accept: str) -> bool:
    """Whether some of what is accepted can be given."""
    return bool({JSON, EVENTS, "*/*", "application/*", "text/*"}.intersection(media_types(accept)))


@lru_cache(64)
def _name(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _mismatch(request: Request, message: Envelope, *, is_strict: bool = False) -> str:
    """How the headers differ from the body that they repeat; empty when they agree. is_strict: they must be there."""
    said: Iterable[tuple[str, str | None]] = [("mcp-method", message.method)]
    if message.method in NAMED:
        said = [*said, ("mcp-name", json.text_of(message.params.get(NAMED[message.method])))]
    if is_strict:
        meta = json.object_of(message.params.get("_meta"))
        version = json.text_of(meta.get("io.modelcontextprotocol/protocolVersion"))
        said = [("mcp-protocol-version", version), *said]
    for name, value in said:
        header = request.headers.get(name)
        if value is not None and (header is not None or is_strict) and _plain(header) != value:
            return f"the header `{name}` does not agree with the body"
    return ""


def _plain(header: str | None) -> str | None:
    """A header's text, decoded where it is in base64; None when that is not as the protocol writes it."""
    if header is None or not (header.startswith("=?base64?") and header.endswith("?=")):
        return header
    try:
        data = base64.b64decode(header[9:-2], validate=True)
        return data.decode() if base64.b64encode(data).decode() == header[9:-2] else None
    except ValueError:
        return None
