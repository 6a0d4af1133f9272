"""The gateway's address: bound at once, answering that it starts until it has, and who may call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from extgate.enforce.callers.callers import Callers
from extgate.enforce.mcp.front_http import LOOPBACK, Front
from extgate.enforce.mcp.http_server import Listening, Request, listen
from extgate.errors import WorkspaceError
from extgate.gateway import TICK_S, Gateway
from extgate.gateway_callers import open_callers
from extgate.gateway_settings import GatewaySettings
from extgate.wire_settings import open_wire

IDLE_S = 120.0
"""How long a connection may carry no request, or a part of one, in seconds."""


def why_not_here(host: str) -> WorkspaceError:
    """Why an address that others reach is not listened on without tokens."""
    fix = "write `gateway: {tokens: FILE}` or `oauth` in extgate.yaml, or listen on 127.0.0.1"
    return WorkspaceError(f"`{host}` can be reached by others, who would need no token", fix=fix)


@dataclass(eq=False)
class Address:
    """What `open_front` opens."""

    settings: GatewaySettings
    host: str
    callers: Callers
    listening: Listening | None = None
    front: Front | None = None

    @property
    def port(self) -> int:
        assert self.listening is not None
        return self.listening.port

    def handle(self, request: Request) -> None:
        if self.front is not None:
            self.front.handle(request)
        elif request.path == "/healthz":
            request.answer(200, b"ok\n", "text/plain")
        else:
            request.answer(503, b"starting\n", "text/plain", {"retry-after": "1"})

    def serve(self, gateway: Gateway) -> None:
        """Opens the routes."""
        hosts = LOOPBACK | {name.lower() for name in self.settings.hosts} | {self.host}
        self.front = front = Front(gateway.hub, hosts=frozenset(hosts), callers=self.callers)
        front.wire = open_wire(gateway, lambda: front.callers.is_open)

    def drain(self) -> None:
        """Takes no new clients; calls in flight go on."""
        if self.front is not None:
            self.front.is_draining = True
        if self.listening is not None:
            self.listening.refuse()


@asynccontextmanager
async def open_front(settings: GatewaySettings, host: str, port: int) -> AsyncIterator[Address]:
    """The address, bound. Raises OSError when it is taken, WorkspaceError for a bad file of tokens."""
    address = Address(settings, host, open_callers(settings.callers, ""))
    address.listening = await listen(host, port, address.handle, settings.limits)
    address.callers.url = address.callers.url or f"http://{_bracketed(host)}:{address.port}"
    ticking = asyncio.ensure_future(_tick(address))
    try:
        yield address
    finally:
        ticking.cancel()
        address.listening.close()
        if address.front is not None and address.front.wire is not None:
            address.front.wire.close()


async def _tick(address: Address) -> None:
    while True:
        await asyncio.sleep(TICK_S * 15)
        if address.listening is not None:
            address.listening.expire(time.monotonic() - IDLE_S)
        if address.front is not None:
            address.front.tick()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
