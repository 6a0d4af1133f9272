"""The gateway's listening socket and the connections to it."""

from __future__ import annotations

import asyncio
import time

from extgate.enforce.mcp.http_server import Connection, Handler, Kept
from extgate.enforce.mcp.options import Limits


class Listening:
    """A listening socket and its connections."""

    def __init__(self, server: asyncio.Server, connections: set[Kept]) -> None:
        self._server, self.connections = server, connections

    @property
    def port(self) -> int:
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def expire(self, before: float) -> None:
        """Closes the connections that have carried no whole request since that time."""
        for connection in tuple(self.connections):
            connection.close_if_stuck(before)
            if connection.waits_since < before:
                connection.close_if_idle()

    async def finish(self, seconds: float) -> None:
        """Takes no more connections; returns when all clients have read their answers, or the time for that is over."""
        self._server.close()
        until = time.monotonic() + seconds
        while time.monotonic() < until and any(connection.is_sending for connection in self.connections):
            await asyncio.sleep(0.02)

    def close(self) -> None:
        """Closes everything."""
        self._server.close()
        for connection in tuple(self.connections):
            connection.close()


async def listen(host: str, port: int, handler: Handler, limits: Limits) -> Listening:
    """Listens for HTTP/1.1, and HTTP/2 of clients that begin with it. Raises OSError when the address cannot be had."""
    connections: set[Kept] = set()
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(handler, limits, connections, _http2), host, port, backlog=1024
    )
    return Listening(server, connections)


def _http2(handler: Handler, limits: Limits, open_ones: set[Kept]) -> asyncio.Protocol:
    from extgate.enforce.mcp.http2_server import Http2Server  # heavy, and few clients want it

    return Http2Server(handler, limits, open_ones)
