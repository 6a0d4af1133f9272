"""The gateway's address: bound at once, answering that it starts until it has, and who may call."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from extgate.enforce.callers.callers import Callers
from extgate.enforce.mcp.front_http import LOOPBACK, Front
from extgate.enforce.mcp.http_server import Request
from extgate.enforce.mcp.listening import Listening, listen
from extgate.errors import WorkspaceError
from extgate.gateway.callers import open_callers, open_operators
from extgate.gateway.running import TICK_S, Gateway
from extgate.gateway.settings import GatewaySettings
from extgate.gateway.state import metrics_page, state_page
from extgate.gateway.wire import open_wire

_HEX = re.compile(r"[0-9a-f]{64}")
IDLE_S = 120.0
"""How long a connection may carry no request, or a part of one, in seconds."""


def why_not_here(host: str) -> WorkspaceError:
    """Why an address that others reach is not listened on without tokens."""
    fix = "write `gateway: {tokens: FILE}` or `oauth` in extgate.yaml, or listen on 127.0.0.1"
    return WorkspaceError(f"`{host}` can be reached by others, who would need no token", fix=fix)


@dataclass(eq=False)
class Address:
    """What `open_front` opens. say: takes lines for people. on_tokens: takes the digests of tokens that the file no
    longer has, and of those that it has now; withdrawn: of those that other replicas no longer take."""

    settings: GatewaySettings
    host: str
    callers: Callers
    operators: frozenset[bytes] | None
    say: Callable[[str], None] = lambda line: None
    listening: Listening | None = None
    front: Front | None = None
    on_tokens: Callable[[Iterable[str], Iterable[str]], None] = lambda gone, back: None
    withdrawn: frozenset[bytes] = frozenset()
    _stamps: object = None

    @property
    def port(self) -> int:
        assert self.listening is not None
        return self.listening.port

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{_bracketed(self.host)}:{self.port}"

    def handle(self, request: Request) -> None:
        if self.front is not None:
            self.front.handle(request)
        elif request.path == "/healthz":
            request.answer(200, b"ok\n", "text/plain")
        else:
            request.answer(503, b"starting\n", "text/plain", {"retry-after": "1"})

    def serve(self, gateway: Gateway) -> None:
        """Opens the routes."""
        self.front = front = Front(gateway.hub, hosts=self._hosts(), callers=self.callers, operators=self.operators)
        front.wire = open_wire(gateway, lambda: front.callers.is_open)
        front.pages["/metrics"] = lambda: metrics_page(gateway, front)
        front.pages["/api/state"] = lambda: state_page(gateway, front)
        gateway.on_settings = self.configure

    def configure(self, settings: GatewaySettings) -> None:
        """Follows the settings, and the files of tokens that they name. What cannot be read leaves the last in force;
        who may not call any more is put out."""
        stamps = (settings.hosts, settings.callers, _stamp(settings.callers.tokens), _stamp(settings.callers.operators))
        if stamps == self._stamps:
            return
        self._stamps = stamps
        if settings.callers.is_open and self.host not in LOOPBACK:
            self.say(str(why_not_here(self.host)))
            return
        try:
            callers = open_callers(settings.callers, self.url, self.callers)
            if callers.tokens is not None:
                callers.tokens.withdrawn = self.withdrawn
            operators = open_operators(settings.callers)
        except WorkspaceError as error:
            self.say(f"{error}; the last that could be read stays in force")
            return
        before, after = _known(self.callers), _known(callers)
        if before != after:
            self.on_tokens(before - after, after - before)
        self.settings, self.callers, self.operators = settings, callers, operators
        if self.front is not None:
            self.front.hosts, self.front.callers, self.front.operators = self._hosts(), callers, operators
            self.front.put_out()

    def withdraw(self, digests: frozenset[str]) -> None:
        """Takes the tokens that no replica takes any more, by their digests; those of them that were in are put out."""
        self.withdrawn = frozenset(bytes.fromhex(digest) for digest in digests if _HEX.fullmatch(digest))
        if self.callers.tokens is not None:
            self.callers.tokens.withdrawn = self.withdrawn
        if self.front is not None:
            self.front.put_out()

    def drain(self) -> None:
        """Takes no new calls; those in flight go on. What comes is answered with where to go, not cut off."""
        if self.front is not None:
            self.front.is_draining = True
            if self.front.wire is not None:
                self.front.wire.is_ending = True

    async def drain_wire(self) -> None:
        """Lets answers of models' providers end that are on their way, for a while: what they call is still judged."""
        if self.front is not None and self.front.wire is not None:
            await self.front.wire.drain(self.settings.limits.drain_s)

    def _hosts(self) -> frozenset[str]:
        own = {urlsplit(self.settings.callers.url).hostname or self.host, self.host}
        return frozenset(LOOPBACK | {name.lower() for name in self.settings.hosts} | own)


@asynccontextmanager
async def open_front(
    settings: GatewaySettings, host: str, port: int, say: Callable[[str], None] = lambda line: None
) -> AsyncIterator[Address]:
    """The address, bound. Raises OSError when it is taken, WorkspaceError for a bad file of tokens."""
    address = Address(settings, host, open_callers(settings.callers, ""), open_operators(settings.callers), say)
    address.listening = await listen(host, port, address.handle, settings.limits)
    address.callers.url = address.callers.url or address.url
    ticking = [asyncio.ensure_future(_tick(address)), asyncio.ensure_future(_follow(address))]
    try:
        yield address
    finally:
        for task in ticking:
            task.cancel()
        await address.listening.finish(settings.limits.drain_s)
        address.listening.close()
        if address.front is not None and address.front.wire is not None:
            address.front.wire.close()


async def _follow(address: Address) -> None:
    """Looks after the files of tokens, which no watcher of the workspace knows."""
    while True:
        await asyncio.sleep(TICK_S)
        address.configure(address.settings)


async def _tick(address: Address) -> None:
    while True:
        await asyncio.sleep(TICK_S * 15)
        if address.listening is not None:
            address.listening.expire(time.monotonic() - IDLE_S)
        if address.front is not None:
            address.front.tick()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _stamp(file: Path | None) -> object:
    """By which a file is known to be the same; None for one that is not there."""
    try:
        found = file.stat() if file is not None else None
    except OSError:
        return None
    return found and (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode)


def _known(callers: Callers) -> frozenset[str]:
    """The digests of the tokens in the file."""
    return frozenset(digest.hex() for digest in callers.tokens.agents_by_digest) if callers.tokens else frozenset()
