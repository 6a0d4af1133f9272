"""The gateway's address: bound at once, answering that it starts until it has, and who may call."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import stat
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from extgate.enforce.mcp.front_http import LOOPBACK, Authenticate, Front, anybody
from extgate.enforce.mcp.http_server import Listening, Request, listen
from extgate.errors import WorkspaceError
from extgate.gateway import TICK_S, Gateway
from extgate.gateway_settings import GatewaySettings

IDLE_S = 120.0
"""How long a connection may carry no request, or a part of one, in seconds."""
MIN_TOKEN = 20
"""Shortest token that is taken, in characters."""


def why_not_here(host: str) -> WorkspaceError:
    """Why an address that others reach is not listened on without tokens."""
    fix = "write `gateway: {tokens: FILE}` in extgate.yaml, or listen on 127.0.0.1"
    return WorkspaceError(f"`{host}` can be reached by others, who would need no token", fix=fix)


@dataclass(eq=False)
class Address:
    """What `open_front` opens."""

    settings: GatewaySettings
    host: str
    authenticate: Authenticate
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
        self.front = Front(gateway.hub, hosts=frozenset(hosts), authenticate=self.authenticate)

    def drain(self) -> None:
        """Takes no new clients; calls in flight go on."""
        if self.front is not None:
            self.front.is_draining = True
        if self.listening is not None:
            self.listening.refuse()


@asynccontextmanager
async def open_front(settings: GatewaySettings, host: str, port: int) -> AsyncIterator[Address]:
    """The address, bound. Raises OSError when it is taken, WorkspaceError for a bad file of tokens."""
    authenticate = with_tokens(read_tokens(settings.tokens)) if settings.tokens is not None else anybody
    address = Address(settings, host, authenticate)
    address.listening = await listen(host, port, address.handle, settings.limits)
    ticking = asyncio.ensure_future(_tick(address))
    try:
        yield address
    finally:
        ticking.cancel()
        address.listening.close()


async def _tick(address: Address) -> None:
    while True:
        await asyncio.sleep(TICK_S * 15)
        if address.listening is not None:
            address.listening.expire(time.monotonic() - IDLE_S)
        if address.front is not None:
            address.front.tick()


def read_tokens(path: Path) -> Mapping[bytes, frozenset[str]]:
    """The agents that each token may be, by the token's digest.

    The file is JSON: agents' lists of tokens by agent id. Raises WorkspaceError when it cannot be read or others can.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"cannot be read: {error}", file=str(path)) from None
    if stat.S_IMODE(mode) & 0o077 and os.name == "posix":
        raise WorkspaceError("can be read by other users", file=str(path), fix=f"chmod 600 {path}")
    found: dict[bytes, frozenset[str]] = {}
    for agent, tokens in data.items() if isinstance(data, dict) else [("", None)]:
        if not isinstance(tokens, list) or not all(isinstance(t, str) and len(t) >= MIN_TOKEN for t in tokens):
            message = f"expected lists of tokens of {MIN_TOKEN} characters or more, by agent"
            raise WorkspaceError(message, file=str(path), fix='write {"AGENT": ["TOKEN"]}')
        for token in tokens:
            digest = hashlib.sha256(token.encode()).digest()
            found[digest] = found.get(digest, frozenset()) | {agent}
    return found


def with_tokens(agents_by_digest: Mapping[bytes, frozenset[str]]) -> Authenticate:
    """Lets a caller be the agents that its bearer token is bound to."""

    def authenticate(authorization: str, agent: str) -> str:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return "a bearer token is needed"
        digest = hashlib.sha256(token.strip().encode()).digest()
        agents = next((a for known, a in agents_by_digest.items() if hmac.compare_digest(known, digest)), frozenset())
        return "" if agent in agents else "this token is not one of this agent's"

    return authenticate
