"""One session with a server, held open: hello, lists, calls, and starting again by itself when it is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, Protocol

from extgate.enforce.mcp import envelope as json
from extgate.enforce.mcp.call import (
    LEGACY,
    META_CAPABILITIES,
    META_CLIENT,
    META_VERSION,
    MODERN,
    Action,
    Call,
    Reply,
)
from extgate.enforce.mcp.catalog import Offer
from extgate.enforce.mcp.envelope import METHOD_NOT_FOUND, Envelope
from extgate.enforce.mcp.http_pipe import HttpPipe, open_http, open_sse
from extgate.enforce.mcp.link import ABOUT, Answered, Asked, Link, Noted, Progressed
from extgate.enforce.mcp.long import Data
from extgate.enforce.mcp.options import Limits
from extgate.enforce.mcp.pipe import Pipe, PipeError, Target, open_stdio
from extgate.enforce.mcp.reading import UpstreamError, read_lists
from extgate.enforce.mcp.session import Session
from extgate.enforce.mcp.started import LISTEN

State = Literal["configured", "connected", "failed"]
RETRY_S = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
"""Waits before a lost server is started again; the last goes on."""
_OPEN = {"stdio": open_stdio, "http": open_http, "sse": open_sse}
_MODERN_ONLY = (
    METHOD_NOT_FOUND, json.UNSUPPORTED_VERSION, json.HEADER_MISMATCH, json.INVALID_REQUEST, json.INVALID_PARAMS,
)  # fmt: skip


class Rim(Protocol):
    """What a session with a server tells to whoever holds it."""

    def run(self, session: Session, actions: list[Action]) -> None: ...

    def finish(self, call: Call, data: Data) -> None:
        """A client's call has its answer."""

    def on_offer(self, upstream: Upstream) -> None:
        """Its state or its lists are others."""

    on_heard: Callable[[str], None]
    on_list_changed: Callable[[str], None]


class Upstream:
    """A session with one server. owner: the only client that it is for; None: it is shared.

    What is declared to the server is what its client declared. era: `modern` says hello in no other way. fallback:
    takes the calls that wait when it cannot be opened.
    """

    def __init__(
        self,
        target: Target,
        rim: Rim,
        limits: Limits,
        *,
        owner: Session | None = None,
        is_listed: bool = True,
        era: Literal["any", "modern"] = "any",
    ) -> None:
        self.target, self.rim, self.limits = target, rim, limits
        self.owner, self.is_listed, self.era = owner, is_listed, era
        self.state: State = "configured"
        self.error = self.version = ""
        self.offer = Offer(server=target.name)
        self.hello: Mapping[str, object] = {}
        self.settled = asyncio.Event()
        self.link = Link(target.name)
        self.restarts = 0
        self.fallback: Upstream | None = None
        self._pipe: Pipe | None = None
        self._waiting: list[Call] = []
        self._lost = asyncio.Event()
        self._why_lost = ""
        self._heard_at = self._told_at = 0.0
        self._news = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    # ------------------------------------------------------------------------------------------ its life

    async def hold(self, ping_s: float) -> None:
        """Keeps it open until it is cancelled; starts it again with back-off."""
        failures = 0
        try:
            while True:
                was_connected = await self._once(ping_s)
                failures = 0 if was_connected else failures + 1
                await asyncio.sleep(RETRY_S[min(failures, len(RETRY_S) - 1)])
                self.restarts += 1
        finally:
            await self._close("the gateway ends")

    async def hold_once(self, ping_s: float) -> None:
        """Keeps it open until it is lost or cancelled."""
        try:
            await self._once(ping_s)
        finally:
            await self._close("the gateway ends")

    async def _once(self, ping_s: float) -> bool:
        self._lost.clear()
        self._why_lost = ""
        try:
            async with asyncio.timeout(self.limits.start_s):
                await self._open()
        except (PipeError, UpstreamError) as error:
            self._why_lost = self._why_lost or str(error)
        except TimeoutError:
            self._why_lost = f"no answer within {self.limits.start_s:g} s"
        is_connected = not self._why_lost
        if is_connected:
            self._become("connected")
            self._send_waiting()
            if self.link.is_modern:
                self._listen()
            await self._tend(ping_s)
        why = self._why_lost or "lost"
        self._become("failed", why)
        await self._close(f"the server `{self.target.name}` is lost: {why}")
        return is_connected

    async def _open(self) -> None:
        self.link = Link(self.target.name)
        self._pipe = await _OPEN[self.target.transport](self.target, self, self.limits)
        await self._say_hello()
        if self.is_listed:
            self.offer = replace(self.offer, rows=await read_lists(self.rpc, self.offer.capabilities, self.limits))
        if self._lost.is_set():
            raise UpstreamError(self._why_lost)

    async def _say_hello(self) -> None:
        if self.era == "modern":
            await self._discover()
            return
        try:
            await self._initialize()
        except UpstreamError as error:
            if error.code not in _MODERN_ONLY or self.target.transport == "sse":
                raise
            await self._discover()

    async def _initialize(self) -> None:
        owner = self.owner
        params = {
            "protocolVersion": json.encode(owner.version if owner and owner.version else LEGACY[-1]),
            "capabilities": json.write(owner.allowed_capabilities(self.target.name) if owner else {}),
            "clientInfo": ABOUT if owner is None or not json.object_of(owner.about) else bytes(owner.about),
        }
        result = await self.rpc("initialize", params)
        self.version = json.text_of(result.get("protocolVersion")) or ""
        if self.version not in LEGACY:
            raise UpstreamError(f"it speaks protocol version `{self.version[:40]}`, which is none that is known")
        self._keep_hello(result)
        if isinstance(self._pipe, HttpPipe):
            self._pipe.version = self.version if self.version > "2025-03-26" else ""
        self._send(json.request(b"", "notifications/initialized", None))
        if isinstance(self._pipe, HttpPipe):
            await self._pipe.flush()
            self._pipe.listen()
        if owner is not None and owner.level and "logging" in self.offer.capabilities:
            await self.rpc("logging/setLevel", {"level": owner.level})

    async def _discover(self) -> None:
        self.link.is_modern, self.version = True, MODERN[-1]
        if isinstance(self._pipe, HttpPipe):
            self._pipe.is_modern, self._pipe.version = True, self.version
        result = await self.rpc("server/discover", {})
        versions = json.value_of(result.get("supportedVersions"))
        if not isinstance(versions, list) or self.version not in versions:
            raise UpstreamError(f"it does not speak protocol version {self.version}")
        self._keep_hello(result)

    def _keep_hello(self, result: json.Fields) -> None:
        self.offer = Offer(
            server=self.target.name,
            capabilities=json.object_of(result.get("capabilities")),
            instructions=(json.text_of(result.get("instructions")) or "")[:20_000],
        )
        about = json.object_of(result.get("serverInfo"))
        self.hello = {"version": json.text_of(about.get("version")) or "", "protocol": self.version}

    def _listen(self) -> None:
        """Opens the stream on which a server of the stateless era says that its lists changed; again when it ends."""
        if self.state != "connected" or self._pipe is None:
            return
        wanted = {f"{word}ListChanged": b"true" for word in ("tools", "prompts", "resources")}
        call = Call(
            session=None, server=self.target.name, method="subscriptions/listen",
            params={"notifications": json.write(wanted)}, done=self._listen_later,
        )  # fmt: skip
        _, data = self.link.ask(call)
        self._pipe.send(data, call)

    def _listen_later(self, ended: Envelope | None) -> None:
        is_refused = ended is not None and "error" in ended.fields
        if not is_refused and not self._lost.is_set():
            asyncio.get_running_loop().call_later(RETRY_S[2], self._listen)

    async def _tend(self, ping_s: float) -> None:
        """Stays until it is lost: pings when nothing was heard, lists again when the server says so."""
        while not self._lost.is_set():
            news = asyncio.ensure_future(self._news.wait())
            lost = asyncio.ensure_future(self._lost.wait())
            await asyncio.wait({news, lost}, timeout=ping_s, return_when=asyncio.FIRST_COMPLETED)
            for waiter in (news, lost):
                waiter.cancel()
            if self._lost.is_set():
                return
            try:
                if self._news.is_set():
                    self._news.clear()
                    rows = await read_lists(self.rpc, self.offer.capabilities, self.limits)
                    self.offer = replace(self.offer, rows=rows)
                    self.rim.on_offer(self)
                elif time.monotonic() - self._heard_at >= ping_s and not self.link.is_modern:
                    async with asyncio.timeout(ping_s):
                        await self.rpc("ping", None)
            except TimeoutError:
                self.on_failed(None, f"no answer to a ping within {ping_s:g} s")
            except UpstreamError as error:
                if error.code == 0:
                    self.on_failed(None, str(error))

    def _become(self, state: State, error: str = "") -> None:
        for secret in sorted(self.target.secrets, key=len, reverse=True):
            error = error.replace(secret, "***") if len(secret) >= 8 else error
        self.state, self.error = state, " ".join(error.split())[:400]
        self.rim.on_offer(self)
        self.settled.set()

    async def _close(self, reason: str) -> None:
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            if self.fallback is not None:
                self.fallback.ask(call)
            else:
                self.link.ask(call)
        for answered in self.link.fail(reason):
            self._hand_over(answered)
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            await pipe.close()

    # ------------------------------------------------------------------------------------------ calls

    def ask(self, call: Call) -> None:
        """Sends a call, or keeps it while the session starts; one that cannot be sent is answered at once."""
        if self.state == "connected" and self._pipe is not None:
            call.sent_at = 0.0 if call.method == LISTEN else time.monotonic()  # that one waits for no answer
            _, data = self.link.ask(call)
            self._pipe.send(data, call)
        elif self.state == "configured" and len(self._waiting) < self.limits.in_flight:
            self._waiting.append(call)
        else:
            self.link.ask(call)
            why = f"the server `{self.target.name}` is not available right now" + (
                f": {self.error}" if self.error else ""
            )
            for answered in self.link.fail(why, call):
                self._hand_over(answered)

    def cancel(self, call: Call, reason: bytes = b"") -> bool:
        """Tells the server that nobody waits; False when the call is not here."""
        if call in self._waiting:
            self._waiting.remove(call)
            return True
        data = self.link.cancel(call, reason)
        if data is not None and self._pipe is not None and not self._pipe.abandon(call):
            self._send(data)
        return data is not None

    def expire(self, before: float) -> None:
        """Ends the calls that were sent before that time."""
        for call in [call for call in self.link.pending.values() if call.sent_at and call.sent_at < before]:
            if self.link.is_waiting(call) and self._pipe is not None and not self._pipe.abandon(call):
                self._send(json.request(b"", "notifications/cancelled", {"requestId": b"%d" % call.number}))
            self.on_failed(call, f"gave no answer within {self.limits.call_s:g} s")

    def list_again(self) -> None:
        """Reads its lists again."""
        self._news.set()

    def tell(self, method: str, params: json.Fields) -> None:
        """Sends a notification."""
        self._send(json.request(b"", method, params))

    def send_back(self, data: bytes) -> None:
        """Sends the answer to what the server has asked."""
        self._send(data)

    async def rpc(self, method: str, params: json.Fields | None) -> json.Fields:
        """The result of a request of the gateway's own. Raises UpstreamError."""
        future: asyncio.Future[Envelope | None] = asyncio.get_running_loop().create_future()

        def done(message: Envelope | None) -> None:
            if not future.done():
                future.set_result(message)

        call = Call(session=None, server=self.target.name, method=method, params=params or {}, done=done)
        if self.link.is_modern:
            meta = {META_VERSION: json.encode(MODERN[-1]), META_CLIENT: ABOUT, META_CAPABILITIES: b"{}"}
            call.params = {**call.params, "_meta": json.write(meta)}
        if self._pipe is None:
            raise UpstreamError("it is not open")
        _, data = self.link.ask(call)
        self._pipe.send(data, call)
        try:
            message = await future
        finally:
            self.link.cancel(call)
        if message is None:
            raise UpstreamError(self._why_lost or f"no answer to `{method}`")
        if "result" not in message.fields:
            error = json.object_of(message.fields.get("error"))
            code = json.value_of(error.get("code"))
            text = json.text_of(error.get("message")) or "an error"
            raise UpstreamError(f"`{method}` failed: {text[:300]}", code if isinstance(code, int) else -32000)
        return json.object_of(message.fields["result"])

    def _send(self, data: bytes) -> None:
        if self._pipe is not None:
            self._pipe.send(data)

    def _send_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self.ask(call)

    # ------------------------------------------------------------------------------------------ from the server

    def on_message(self, data: bytes | memoryview, about: Call | None) -> None:
        event = self.link.receive(data)
        self._heard()
        if isinstance(event, Answered):
            self._hand_over(event)
        elif isinstance(event, Progressed) and event.call.session is not None:
            self.rim.run(event.call.session, [Reply(event.data, event.call.key)])
        elif isinstance(event, Asked):
            self._asked(event.message, about)
        elif isinstance(event, Noted):
            self._noted(event.message, about or event.about)

    def on_failed(self, call: Call | None, reason: str) -> None:
        if call is None:
            self._why_lost = self._why_lost or reason
            self._lost.set()
            for answered in self.link.fail(f"the server `{self.target.name}` is lost: {reason}"):
                self._hand_over(answered)
        else:
            for answered in self.link.fail(f"the server `{self.target.name}`: {reason}", call):
                self._hand_over(answered)

    def is_waiting(self, call: Call) -> bool:
        return self.link.is_waiting(call)

    def _heard(self) -> None:
        """Passes on that it lives, not more often than four times a second."""
        self._heard_at = time.monotonic()
        if self._heard_at - self._told_at > 0.25 and self.is_listed:
            self._told_at = self._heard_at
            self.rim.on_heard(self.target.name)

    def _hand_over(self, answered: Answered) -> None:
        call = answered.call
        if call.done is not None:
            call.done(answered.message)
        elif call.session is not None:
            self.rim.finish(call, answered.data)

    def _asked(self, message: Envelope, about: Call | None) -> None:
        session = self.owner or (about.session if about else None)
        if message.method == "ping":
            self._send(json.result(message.id, b"{}"))
        elif session is None:
            self._send(json.error(message.id, METHOD_NOT_FOUND, "there is no client to ask"))
        else:
            self.rim.run(session, session.asked(self.target.name, message, self))

    def _noted(self, message: Envelope, about: Call | None) -> None:
        if message.method.endswith("/list_changed"):
            (self.fallback or self).list_again()
            self.rim.on_list_changed(self.target.name)
            return
        session = self.owner or (about.session if about else None)
        if session is not None:
            self.rim.run(session, session.noted(self.target.name, message, self))
