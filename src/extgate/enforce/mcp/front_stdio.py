"""One client over stdin and stdout: lines in, lines out."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import cast

from extgate.enforce.mcp import envelope as json
from extgate.enforce.mcp.call import Reply
from extgate.enforce.mcp.envelope import EnvelopeError
from extgate.enforce.mcp.hub import Hub
from extgate.enforce.mcp.pump import Pump
from extgate.enforce.mcp.session import Session


class Outlet(asyncio.BaseProtocol):
    """The way out to the client."""

    pump: Pump

    def __init__(self, unsent: int) -> None:
        self._unsent = unsent

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.pump = Pump(cast(asyncio.WriteTransport, transport), self._unsent)

    def connection_lost(self, exc: Exception | None) -> None:
        self.pump.drop()

    def pause_writing(self) -> None:
        self.pump.pause()

    def resume_writing(self) -> None:
        self.pump.resume()


class StdioFront(asyncio.Protocol):
    """Reads messages of one client. closed: set when it has hung up. why_not: why the agent is not served now."""

    def __init__(self, hub: Hub, agent: str, pump: Pump, why_not: Callable[[], str] = lambda: "") -> None:
        self.hub, self._pump, self._why_not = hub, pump, why_not
        self.session: Session = hub.open(agent, "stdio", self.send)
        self.closed = asyncio.Event()
        self._rest = bytearray()
        self._is_skipping = False

    def send(self, reply: Reply) -> None:
        """Passes on one message; a client that reads nothing is cut off."""
        if not self._pump.write(reply.data, b"\n"):
            self.closed.set()

    def data_received(self, data: bytes) -> None:
        *lines, last = data.split(b"\n")
        for line in lines:
            whole, self._rest = (bytes(self._rest) + line if self._rest else line), bytearray()
            if not self._is_skipping:
                self._take(whole)
            self._is_skipping = False
        if not self._is_skipping:
            self._rest += last
        if len(self._rest) > self.hub.limits.message:
            self._rest, self._is_skipping = bytearray(), True
            text = f"a message may have {self.hub.limits.message} bytes"
            self.send(Reply(json.error(b"null", json.INVALID_REQUEST, text)))

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()

    def eof_received(self) -> bool:
        self.closed.set()
        return False

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = json.read(line)
            if message.is_request and message.method != "ping" and (why := self._why_not()):
                self.send(Reply(json.error(message.id, json.REFUSED, why)))
            elif self.hub.is_ready_for(message):
                self.hub.receive(self.session, message)
            else:
                self.hub.later(self._when_ready(message))
        except EnvelopeError as error:
            self.send(Reply(json.error(error.id, error.code, error.message)))
        except Exception:  # a door's outermost function: nothing was let through
            self.send(Reply(json.error(b"null", json.INTERNAL, "the gateway failed")))

    async def _when_ready(self, message: json.Envelope) -> None:
        await self.hub.ready(self.session, message)
        self.hub.receive(self.session, message)


async def open_stdio_front(hub: Hub, agent: str, why_not: Callable[[], str] = lambda: "") -> StdioFront:
    """Takes stdin and stdout for one client. What else would print to stdout goes to stderr from now on."""
    loop = asyncio.get_running_loop()
    wire = os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    _, outlet = await loop.connect_write_pipe(lambda: Outlet(hub.limits.unsent), wire)
    stdin = os.fdopen(os.dup(0), "rb", 0)
    _, front = await loop.connect_read_pipe(lambda: StdioFront(hub, agent, outlet.pump, why_not), stdin)
    return front
