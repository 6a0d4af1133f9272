"""Clients on one side, servers on the other: does what the sessions' actions say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace

from extgate.enforce.mcp import envelope as json
from extgate.enforce.mcp.call import Action, Ask, Call, Cancel, Reply, Return, SetLevel, Tell
from extgate.enforce.mcp.catalog import Offer
from extgate.enforce.mcp.door import Door
from extgate.enforce.mcp.envelope import Envelope
from extgate.enforce.mcp.figures import Figures
from extgate.enforce.mcp.link import failure
from extgate.enforce.mcp.long import Data
from extgate.enforce.mcp.options import Limits, Quota
from extgate.enforce.mcp.pipe import Target
from extgate.enforce.mcp.quotas import Quotas, refused_text
from extgate.enforce.mcp.reading import UpstreamError
from extgate.enforce.mcp.record import Record
from extgate.enforce.mcp.session import Session
from extgate.enforce.mcp.started import LISTEN, Book
from extgate.enforce.mcp.upstream import Upstream

Out = Callable[[Reply], None]
_WAITS = frozenset({"initialize", "server/discover"})


@dataclass(eq=False, slots=True)
class Client:
    """One session and the way to its client. owned: its own sessions with servers, by name."""

    session: Session
    out: Out
    owned: dict[str, Upstream] = field(default_factory=dict)
    used_at: float = field(default_factory=time.monotonic)


class Hub:
    """All sessions of one process, on one event loop.

    is_exclusive: there is one client, and every server is started for it alone, with what it declares.
    on_servers: called when a server came to another state or offers something else; on_heard: when one has spoken;
    on_list_changed: when one says that its lists became others.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        is_exclusive: bool = False,
        ping_s: float = 10.0,
        on_servers: Callable[[], None] = lambda: None,
        on_heard: Callable[[str], None] = lambda server: None,
    ) -> None:
        self.limits, self.is_exclusive, self.ping_s = limits, is_exclusive, ping_s
        self.on_servers, self.on_heard = on_servers, on_heard
        self.on_list_changed: Callable[[str], None] = lambda server: None
        self.doors: dict[str, Door] = {}
        self.clients: dict[Session, Client] = {}
        self.bases: dict[str, Upstream] = {}
        self.offers: tuple[Offer, ...] = ()
        self.record: Record | None = None
        self.quotas, self.figures = Quotas(limits.call_s, limits.quotas), Figures()
        self.book = Book()
        self._held: list[tuple[Client, Call]] = []
        self._modern: dict[str, Upstream] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._wanted: dict[str, Target] = {}

    # ------------------------------------------------------------------------------------------ clients

    def open(self, agent: str, id: str, out: Out, caller: str = "") -> Session:
        """A session for a client of an agent. Raises KeyError for an agent that is not there."""
        session = Session(self.doors[agent], id=id, limits=self.limits, caller=caller, book=self.book)
        self.clients[session] = Client(session, out)
        return session

    def close(self, session: Session) -> None:
        """Ends a session, its calls and its own sessions with servers."""
        client = self.clients.pop(session, None)
        if client is None:
            return
        for call in tuple(session.in_flight.values()):
            self._cancel(client, call, b"")
        session.in_flight.clear()
        for upstream in client.owned.values():
            self._end(upstream)

    def touch(self, session: Session) -> None:
        """Notes that a session is in use."""
        if session in self.clients:
            self.clients[session].used_at = time.monotonic()

    async def ready(self, session: Session, message: Envelope) -> None:
        """Returns when servers have come to a first state, for messages whose answer depends on them."""
        if self.is_exclusive and message.method in _WAITS and not self.bases:
            session.peek(message)
            self._start_all(session)
        if message.method in _WAITS or message.method.endswith("/list"):
            await self.settled()
        if message.method == "server/discover":  # what HTTP servers have for this era is said in its own hello
            await self._settle(self._stateless())

    def is_ready_for(self, message: Envelope) -> bool:
        """Whether a message can be taken at once."""
        if message.method not in _WAITS and not message.method.endswith("/list"):
            return True
        waits = [*self.bases.values(), *(self._stateless() if message.method == "server/discover" else ())]
        return bool(self.bases or not self._wanted) and all(upstream.settled.is_set() for upstream in waits)

    async def settled(self) -> None:
        """Returns when every server has come to a first state, or the time for that is over."""
        await self._settle(self.bases.values())

    async def _settle(self, upstreams: Iterable[Upstream]) -> None:
        waits = [upstream.settled.wait() for upstream in upstreams]
        try:
            async with asyncio.timeout(self.limits.start_s):
                await asyncio.gather(*waits)
        except TimeoutError:
            return

    def receive(self, session: Session, message: Envelope) -> None:
        """Takes one message of a client."""
        client = self.clients.get(session)
        if client is not None:
            client.used_at = time.monotonic()
            try:
                actions = session.receive(message)
            except Exception:  # a door's outermost function: nothing was let through, and nobody waits for ever
                failed = json.error(message.id, json.INTERNAL, "the gateway failed, so it was refused")
                actions = [Reply(failed, message.key, is_last=True)] if message.id else []
            self.run(session, actions)

    # ------------------------------------------------------------------------------------------ servers

    def want(self, targets: Mapping[str, Target]) -> None:
        """Starts the servers that are new or reached in another way, ends those no longer wanted."""
        self._wanted = dict(targets)
        for name in [n for n, base in self.bases.items() if self._wanted.get(n) != base.target]:
            self._end(self.bases.pop(name))
            self.book.forget(name)
            if name in self._modern:
                self._end(self._modern.pop(name))
            for client in self.clients.values():
                if name in client.owned:
                    self._end(client.owned.pop(name))
        owner = next(iter(self.clients)) if self.is_exclusive and self.clients else None
        if not self.is_exclusive or self.bases:
            self._start_all(owner)
        self._offer()

    def _start_all(self, owner: Session | None) -> None:
        for name, target in self._wanted.items():
            if name not in self.bases:
                base = self.bases[name] = Upstream(target, self, self.limits, owner=owner)
                base.task = asyncio.ensure_future(base.hold(self.ping_s))

    def list_again(self, server: str) -> None:
        """Reads a server's lists again."""
        if server in self.bases:
            self.bases[server].list_again()

    def on_offer(self, upstream: Upstream) -> None:
        if self.bases.get(upstream.target.name) is upstream:
            self._offer()
            self.on_servers()
        elif self._modern.get(upstream.target.name) is upstream:
            self._offer()

    def _offer(self) -> None:
        live = [base for base in self.bases.values() if base.state == "connected"]
        self.offers = tuple(sorted((self._whole(base) for base in live), key=lambda offer: offer.server))

    def _whole(self, base: Upstream) -> Offer:
        """What a server offers in its session, and the extensions that it has in the stateless era."""
        twin = self._modern.get(base.target.name)
        more = twin.offer.capabilities.get("extensions") if twin is not None else None
        if more is None or twin is None or twin.state != "connected":
            return base.offer
        return replace(base.offer, capabilities={**base.offer.capabilities, "extensions": more})

    def _stateless(self) -> list[Upstream]:
        """The stateless ways to servers that may have one."""
        live = [base for base in self.bases.values() if base.state == "connected" and not base.link.is_modern]
        return [] if self.is_exclusive else [self._modern_one(base) for base in live]

    def notify(self) -> None:
        """Tells each client whose lists became others."""
        for session in tuple(self.clients):
            self.run(session, session.changed())

    def expire(self) -> None:
        """Ends what takes too long: calls, and sessions that nobody uses."""
        now = time.monotonic()
        for upstream in self._all():
            upstream.expire(now - self.limits.call_s)
        if not self.is_exclusive:
            for session, client in tuple(self.clients.items()):
                if now - client.used_at > self.limits.idle_s and not session.in_flight:
                    self.close(session)

    async def stop(self) -> None:
        """Lets calls in flight end, for a while; then ends every session and every server."""
        until = time.monotonic() + self.limits.drain_s
        while time.monotonic() < until and any(map(_waits, self.clients)):
            await asyncio.sleep(0.02)
        for session in tuple(self.clients):
            for call in tuple(session.in_flight.values()):  # nobody is left without an answer
                self._cancel(self.clients[session], call, b"")
                self.finish(call, failure(call, "the gateway ended before this call's answer came"))
            self.close(session)
        for upstream in (*self.bases.values(), *self._modern.values()):
            self._end(upstream)
        self.bases, self._modern = {}, {}
        await asyncio.gather(*self._ending, return_exceptions=True)

    # ------------------------------------------------------------------------------------------ actions

    def run(self, session: Session, actions: list[Action]) -> None:
        client = self.clients.get(session)
        if client is None:
            return
        for action in actions:
            if isinstance(action, Reply):
                client.out(action)
            elif isinstance(action, Ask):
                self._ask(client, action.call)
            elif isinstance(action, Return):
                if isinstance(action.to, Upstream):
                    action.to.send_back(action.data)
            else:
                self._tell(client, action)

    def finish(self, call: Call, data: Data) -> None:
        """Passes an answer on to the client that waits for it; nobody may."""
        session, lease = call.session, call.lease
        if session is None:
            return
        self.figures.took(call)
        if lease is not None:
            lease.leave()
            if lease.result is not None and len(data) > lease.result[0]:
                why = f"its answer has {len(data)} bytes, and {lease.result[1]} allows {lease.result[0]}"
                data = failure(call, self._refused(call, why))
        self.run(session, session.finish(call, data))

    def _ask(self, client: Client, call: Call) -> None:
        """Sends a call on its way, once it is within its limits and stands in the record."""
        found = self.quotas.of(client.session.door.gate.agent, call) if self.quotas.rows else ()
        if found:
            self._within(client, call, found)
        else:
            self._record(client, call)

    def _within(self, client: Client, call: Call, found: tuple[Quota, ...]) -> None:
        def then(why: str) -> None:
            if call.key is None or client.session.in_flight.get(call.key) is not call:  # cancelled meanwhile
                if call.lease is not None:
                    call.lease.leave()
            elif why:
                self.finish(call, failure(call, self._refused(call, why)))
            else:
                self._record(client, call)

        def late(why: str) -> None:
            if call.key is not None and client.session.in_flight.get(call.key) is call:
                self._cancel(client, call, b"")
                self.finish(call, failure(call, self._refused(call, why)))

        self.quotas.admit(client.session.door.gate.agent, call, found, late, then)

    def _refused(self, call: Call, why: str) -> str:
        """Records that a limit stands in a call's way; what the model reads."""
        assert call.session is not None
        assert call.ext is not None
        text = refused_text(call.ext.name, why)
        self.figures.limited += 1
        arguments = json.value_of(call.params["arguments"]) if "arguments" in call.params else None
        args = arguments if isinstance(arguments, dict) else {}
        return call.session.door.gate.refuse_item(call.ext, text, args, action="limit", session=call.session.id).message

    def _record(self, client: Client, call: Call) -> None:
        if self.record is None or not self.record.is_waiting:
            self._send(client, call)
            return
        if not self._held:
            asyncio.get_running_loop().call_soon(self._commit)
        self._held.append((client, call))

    def _commit(self) -> None:
        """Writes down, at once, what was judged since the last time; then sends it on, or refuses all of it."""
        held, self._held = self._held, []
        why = self.record.settle() if self.record is not None else ""
        for client, call in held:
            if call.session is None or call.key is None or call.session.in_flight.get(call.key) is not call:
                continue  # cancelled meanwhile
            if why:
                self.finish(call, failure(call, f"refused: the record cannot be written ({why})"))
            else:
                self._send(client, call)

    def _send(self, client: Client, call: Call) -> None:
        upstream = self._upstream(client, call)
        if upstream is None:
            self.finish(call, failure(call, f"the server `{call.server}` is not configured"))
        else:
            upstream.ask(call)

    def _tell(self, client: Client, action: Cancel | Tell | SetLevel) -> None:
        if isinstance(action, Cancel):
            self._cancel(client, action.call, action.reason)
            return
        for name, upstream in (self.bases if self.is_exclusive else client.owned).items():
            if isinstance(action, SetLevel):
                if "logging" in upstream.offer.capabilities and upstream.state == "connected":
                    self.later(_set_level(upstream, action.level))
            elif action.server in ("", name):
                upstream.tell(action.method, action.params)

    def _upstream(self, client: Client, call: Call) -> Upstream | None:
        """Where a call goes: the shared session with its server, or the client's own."""
        base = self.bases.get(call.server)
        if base is None or self.is_exclusive or base.link.is_modern:
            return base
        if call.is_modern:
            return self._modern_one(base)
        own = client.owned.get(call.server)
        if own is not None and own.state == "failed":
            self._end(client.owned.pop(call.server))
            own = None
        if own is None and client.session.wants_own(call.server) and base.state == "connected":
            own = Upstream(base.target, self, self.limits, owner=client.session, is_listed=False)
            client.owned[call.server] = own
            own.task = asyncio.ensure_future(own.hold_once(self.ping_s))
        return own or base

    def _modern_one(self, base: Upstream) -> Upstream:
        """The stateless way to a server that has one besides its sessions, as HTTP servers may; else the shared one."""
        name = base.target.name
        found = self._modern.get(name)
        if found is None and base.target.transport == "http" and base.state == "connected":
            found = Upstream(base.target, self, self.limits, is_listed=False, era="modern")
            found.fallback = base
            self._modern[name] = found
            found.task = asyncio.ensure_future(found.hold_once(self.ping_s))
        return base if found is None or found.state == "failed" else found

    def _cancel(self, client: Client, call: Call, reason: bytes) -> None:
        if call.lease is not None:
            call.lease.leave()
        names = (client.owned.get(call.server), self.bases.get(call.server), self._modern.get(call.server))
        any(upstream.cancel(call, reason) for upstream in names if upstream is not None)

    def _all(self) -> list[Upstream]:
        owned = [upstream for client in self.clients.values() for upstream in client.owned.values()]
        return [*self.bases.values(), *self._modern.values(), *owned]

    def _end(self, upstream: Upstream) -> None:
        if upstream.task is not None:
            upstream.task.cancel()
            self._ending.add(upstream.task)
            upstream.task.add_done_callback(self._ending.discard)

    def later(self, work: Coroutine[object, object, None]) -> None:
        """Does it besides."""
        task = asyncio.ensure_future(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _waits(session: Session) -> bool:
    """Whether its client waits for an answer, and not only for news."""
    return any(call.method != LISTEN for call in session.in_flight.values())


async def _set_level(upstream: Upstream, level: bytes) -> None:
    try:
        await upstream.rpc("logging/setLevel", {"level": level})
    except UpstreamError:
        return
