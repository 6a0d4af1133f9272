"""`/agents/{id}/wire/{provider}/…`: takes a client's request, has it judged, and relays the answer.

A client that has to prove who it is does so in `x-extgate-authorization`, because `authorization` is the provider's; in
the provider's own header where extgate holds the key.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import unquote

from extgate.core.extension import Extension
from extgate.enforce.gate import Gate
from extgate.enforce.mcp.catalog import View
from extgate.enforce.mcp.door import Door
from extgate.enforce.mcp.http_server import Request
from extgate.enforce.wire import around
from extgate.enforce.wire.clients import CLIENTS, Client, client_of
from extgate.enforce.wire.judge import NOTHING_RELAYED, Judge, Memory, Relayed, relayed
from extgate.enforce.wire.packed import unpacked
from extgate.enforce.wire.provider import Options, Provider, Route
from extgate.enforce.wire.providers import PROVIDERS
from extgate.enforce.wire.relay import Relay, forwarded
from extgate.enforce.wire.road import Outward, Road
from extgate.enforce.wire.spans import UnclearError
from extgate.enforce.wire.turn import Turn

DOOR = "wire"
MARK = "/wire/"
PROOF = "x-extgate-authorization"
JSON = "application/json"
MAX_PATH = 2048
_MESSAGE = Extension(kind="tool", name="(message)", source=DOOR)
"""What events name where a whole request or answer is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Where a provider is, if not where it usually is. key: tells the key that extgate holds; None: the client's own
    goes on. Raises OSError or ValueError when it cannot be had."""

    url: str = ""
    key: Callable[[], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WireSettings:
    """One agent's wire. client: the program that it is, if that is said; clients: the programs with their own tools.

    usual: the program of a request that tells only which library it uses; empty: nobody knows.
    gateway: what the client calls extgate's MCP gateway; empty: it is not known to have it. road: the way to providers.
    """

    options: Options = field(default_factory=Options)
    client: str = ""
    usual: str = ""
    clients: Mapping[str, Client] = field(default_factory=lambda: CLIENTS)
    upstreams: Mapping[str, Upstream] = field(default_factory=dict)
    gateway: str = ""
    road: Road = field(default_factory=Road)


Admit = Callable[[Request, str, Callable[[Request, str], None]], None]
"""Goes on with a request once its caller is known to be one of that agent's, and answers any other."""


@dataclass(frozen=True, slots=True)
class _Job:
    """One request on the wire. path: behind the provider's name. headers: the client's, as they came."""

    provider: Provider
    path: str
    query: str
    headers: Mapping[str, str]


class Wire:
    """The wire of all agents. doors: those of the gateway, by agent. is_open: whether nobody has to prove who calls.
    limit: longest request, in bytes."""

    def __init__(
        self,
        doors: Mapping[str, Door],
        settings_of: Callable[[str], WireSettings],
        *,
        is_open: Callable[[], bool] = lambda: True,
        limit: int = 16 * 1024 * 1024,
    ) -> None:
        self._doors, self._settings_of, self._is_open, self._limit = doors, settings_of, is_open, limit
        self._gates: dict[str, tuple[Gate, Gate]] = {}
        self._memories: dict[str, Memory] = {}
        self._behind: dict[str, tuple[View, str, Relayed]] = {}
        self._origins: dict[tuple[str, Road], Outward] = {}
        self._running: set[Request] = set()
        self.is_ending = False

    async def drain(self, seconds: float) -> None:
        """Takes no new requests; returns when the running ones have their answers, or the time for that is over."""
        self.is_ending = True
        until = time.monotonic() + seconds
        while time.monotonic() < until and any(not request.is_over for request in self._running):
            await asyncio.sleep(0.02)

    def close(self) -> None:
        """Closes every connection to a provider."""
        for origin in self._origins.values():
            origin.close()

    def take(self, request: Request, admit: Admit) -> None:
        """Answers a request whose path has `/wire/` in it."""
        path, _, query = request.path.partition("?")
        head, _, rest = path.partition(MARK)
        agent, (name, slash, behind) = unquote(head.removeprefix("/agents/")), rest.partition("/")
        provider = PROVIDERS.get(name)
        if provider is None:
            request.answer(404, f"no provider `{name[:60]}`\n".encode(), "text/plain; charset=utf-8")
            return
        if self.is_ending:
            request.is_kept = False
            why = "extgate: the gateway is ending; try again, another one may be there"
            request.answer(503, provider.error(503, why), JSON, {"retry-after": "1"})
            return
        if request.twice:
            what = f"the header `{min(request.twice)[:60]}` came more than once"
            request.answer(400, provider.error(400, f"extgate: {what}"), JSON)
            return
        job = _Job(provider, slash + behind, query, dict(request.headers))
        if not self._is_open():
            self._show_proof(request, provider, agent)
        admit(request, agent, partial(self._admitted, job))

    def _show_proof(self, request: Request, provider: Provider, agent: str) -> None:
        """Puts what proves the caller where the gateway looks for it, and only that."""
        headers = request.headers
        proof = headers.get(PROOF, "")
        if not proof and agent in self._doors and self._upstream(agent, provider).key is not None:
            said = next((headers[name] for name in provider.keys if name in headers), "")
            proof = said if said.lower().startswith("bearer ") else f"Bearer {said}" if said else ""
        headers.pop("authorization", None)
        if proof:
            headers["authorization"] = proof

    def _upstream(self, agent: str, provider: Provider) -> Upstream:
        return self._settings_of(agent).upstreams.get(provider.name) or Upstream()

    def _admitted(self, job: _Job, request: Request, agent: str) -> None:
        try:
            self._go(job, request, agent)
        except UnclearError as error:
            if agent in self._doors:
                self._note(self._gate(agent), str(error))
            self._refuse(job, request, 400, str(error))
        except Exception as error:  # a door's outermost function: nothing was let through
            self._refuse(job, request, 500, f"the request could not be judged ({type(error).__name__})")

    def _go(self, job: _Job, request: Request, agent: str) -> None:
        door = self._doors.get(agent)
        if door is None:
            self._refuse(job, request, 404, f"no agent `{agent[:100]}`")
            return
        route = job.provider.route(request.method, job.path)
        if why := door.why_unavailable():
            said = self._gate(agent).use(_MESSAGE).message  # recorded
            self._refuse(job, request, 403, said or why)
        elif route.act == "refuse" or len(request.path) > MAX_PATH or not job.query.isprintable():
            self._refuse(job, request, route.status, route.why or "the path is not served")
        elif route.act == "pass" and request.method == "HEAD":
            request.answer(200)
        else:
            self._relay(job, request, agent, route)

    def _refuse(self, job: _Job, request: Request, status: int, why: str) -> None:
        request.answer(status, job.provider.error(status, f"extgate: {why}"), JSON)

    def _gate(self, agent: str) -> Gate:
        """The agent's gate as this door, which follows the other."""
        parent = self._doors[agent].gate
        known = self._gates.get(agent)
        if known is None or known[0] is not parent:
            gate = parent.child(agent=agent)
            gate.door = DOOR
            known = self._gates[agent] = (parent, gate)
        return known[1]

    def _judge(self, agent: str, client: Client, gateway: str) -> Judge:
        view, known = self._doors[agent].view, self._behind.get(agent)
        if known is None or known[0] is not view or known[1] != gateway:
            tools = {name: ext for (kind, name), ext in view.by_name.items() if kind == "mcp_tool"}
            known = self._behind[agent] = (view, gateway, relayed(gateway, tools) if gateway else NOTHING_RELAYED)
        memory = self._memories.setdefault(agent, Memory())
        return Judge(self._gate(agent), client, memory=memory, behind=known[2])

    def _note(self, gate: Gate, why: str) -> None:
        """Records what was refused because it could not be read."""
        gate.refuse_item(_MESSAGE, f"'{{name}}' is refused: {why}.")

    def _relay(self, job: _Job, request: Request, agent: str, route: Route) -> None:
        settings = self._settings_of(agent)
        said = settings.client or job.headers.get("x-extgate-client", "")
        sent = job.headers.get("user-agent", "")
        client = client_of(settings.clients, said=said, agent=sent, usual=settings.usual)
        judge = self._judge(agent, client, settings.gateway)
        turn = Turn(judge)
        body = bytes(request.body)
        around.check(job.headers, job.query, is_json=route.api is not None and bool(body))
        if route.api is not None:
            body = unpacked(body, job.headers.get("content-encoding", ""), self._limit)
            body = route.api.request(body, turn, settings.options)
        upstream = self._upstream(agent, job.provider)
        headers = self._headers(job, upstream)
        origin = self._origin(upstream.url or job.provider.url, settings.road)
        query = job.query if upstream.key is None else _without_key(job.query)
        path = origin.parts.path.rstrip("/") + job.path + (f"?{query}" if query else "")
        self._running = {running for running in self._running if not running.is_over} | {request}
        relay = Relay(request, job.provider, route.api, turn, partial(self._note, judge.gate))
        relay.sent = origin.send(request.method, headers, body, relay, path or "/")

    def _headers(self, job: _Job, upstream: Upstream) -> dict[str, str]:
        if upstream.key is None:
            return forwarded(job.headers)
        try:
            key = upstream.key()
        except (OSError, ValueError) as error:
            raise UnclearError(f"the key for `{job.provider.name}` cannot be had ({type(error).__name__})") from None
        return {**forwarded(job.headers, job.provider.keys), **job.provider.credential(key)}

    def _origin(self, url: str, road: Road) -> Outward:
        found = self._origins.get((url, road))
        if found is None:
            found = self._origins[url, road] = Outward(url, road, os.environ)
        return found


def _without_key(query: str) -> str:
    """The query without a key of the client's own, which some of Gemini's clients send there."""
    return "&".join(part for part in query.split("&") if unquote(part.partition("=")[0]) != "key")
