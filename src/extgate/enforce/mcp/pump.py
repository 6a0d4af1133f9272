"""What goes to one reader, in order: short messages at once, long ones piece by piece as the reader takes them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator

from extgate.enforce.mcp.long import Data, Long

COPIED = 64 * 1024
"""Shorter parts are put together and written at once, longer ones one by one; in bytes."""


class Pump:
    """Writes to a transport. A reader that leaves more than `unsent` bytes of short messages is cut off."""

    def __init__(self, transport: asyncio.WriteTransport, unsent: int) -> None:
        self._transport, self._unsent = transport, unsent
        self._queue: deque[bytes | Iterator[bytes | memoryview]] = deque()
        self._queued = 0
        self._is_paused = self._is_closing = False
        self.moved_at = time.monotonic()

    @property
    def is_busy(self) -> bool:
        """Whether a long message is on its way."""
        return bool(self._queue)

    def write(self, *parts: Data) -> bool:
        """Sends the parts; False when the reader was cut off."""
        if self._transport.is_closing():
            return True
        if self._queue or Long in map(type, parts):
            self._wait_in_line(parts)
        elif sum(map(len, parts)) < COPIED:
            self._transport.write(b"".join(parts))  # type: ignore[arg-type]  # none of them is long
        else:
            for part in parts:
                self._transport.write(part)  # type: ignore[arg-type]
        if self._transport.get_write_buffer_size() + self._queued > self._unsent:
            self._transport.abort()
            return False
        return True

    def _wait_in_line(self, parts: tuple[Data, ...]) -> None:
        was_busy = self.is_busy
        for part in parts:
            self._queue.append(part.pieces() if isinstance(part, Long) else part)
            self._queued += 0 if isinstance(part, Long) else len(part)
        if not was_busy:
            self.moved_at = time.monotonic()
            self._move()

    def _move(self) -> None:
        """Writes until a long message has given one piece; then the loop's other work has its turn."""
        while self._queue and not self._is_paused and not self._transport.is_closing():
            first = self._queue[0]
            self.moved_at = time.monotonic()
            if isinstance(first, bytes):
                self._queue.popleft()
                self._queued -= len(first)
                self._transport.write(first)
                continue
            piece = next(first, None)
            if piece is None:
                self._queue.popleft()
                continue
            self._transport.write(piece)
            if not self._is_paused:
                asyncio.get_running_loop().call_soon(self._move)
            return
        if not self._queue and self._is_closing:
            self._transport.close()

    def pause(self) -> None:
        """The transport holds enough."""
        self._is_paused = True

    def resume(self) -> None:
        """The transport takes more."""
        self._is_paused = False
        self._move()

    def close(self) -> None:
        """Closes the transport once everything is written."""
        self._is_closing = True
        if not self._queue:
            self._transport.close()

    def drop(self) -> None:
        """Forgets what waits."""
        self._queue.clear()
        self._queued = 0
