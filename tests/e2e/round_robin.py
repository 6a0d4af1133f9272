"""A proxy that knows nothing: each request goes to the next address of a list, and its answer comes back as it is."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress


class RoundRobin:
    """Serves in a thread of its own. used: which port each request went to."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._next = itertools.cycle(ports)
        self.used: list[int] = []
        self.port = 0
        self.ready = threading.Event()
        self.over = asyncio.Event()
        self.loop = asyncio.new_event_loop()

    async def serve(self) -> None:
        server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        await self.over.wait()
        server.close()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection; answers end with their connection, so that nobody has to understand them."""
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
            body = await reader.readexactly(int(length.partition(b":")[2]))
            port = next(self._next)
            self.used.append(port)
            back, forth = await asyncio.open_connection("127.0.0.1", port)
            lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            forth.write(b"\r\n".join([*lines[:-2], b"connection: close", b"", b""]) + body)
            gone = asyncio.ensure_future(reader.read(1))
            await self._copy(back, writer, gone)
            forth.close()
        writer.close()

    async def _copy(self, back: asyncio.StreamReader, writer: asyncio.StreamWriter, gone: asyncio.Task[bytes]) -> None:
        while not gone.done():
            more = asyncio.ensure_future(back.read(65536))
            await asyncio.wait({more, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not more.done() or not more.result():
                more.cancel()
                break
            writer.write(more.result())
            await writer.drain()
        gone.cancel()


@contextmanager
def round_robin(*ports: int) -> Iterator[RoundRobin]:
    proxy = RoundRobin(ports)
    thread = threading.Thread(target=proxy.loop.run_until_complete, args=(proxy.serve(),), daemon=True)
    thread.start()
    assert proxy.ready.wait(30)
    try:
        yield proxy
    finally:
        proxy.loop.call_soon_threadsafe(proxy.over.set)
        thread.join(10)
