"""How a server is reached: what every transport can do, and a server as a child process."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol, cast

from extgate.enforce.mcp.call import Call
from extgate.enforce.mcp.long import Pieces, TooLongError
from extgate.enforce.mcp.options import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One server and how it is reached. env: the whole environment of its process. headers: its own credentials."""

    name: str
    transport: Literal["stdio", "http", "sse"] = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


class Listener(Protocol):
    """Who hears of a pipe. about: the call on whose stream a message came; None where the transport cannot tell."""

    def on_message(self, data: bytes | memoryview, about: Call | None) -> None:
        """A message came; one that lies in a file is a memoryview."""

    def on_failed(self, call: Call | None, reason: str) -> None:
        """One call will have no answer, or with None the whole pipe is lost."""

    def is_waiting(self, call: Call) -> bool:
        """Whether a call still has no answer."""


class Pipe(Protocol):
    """A way to one server that was opened."""

    def send(self, data: bytes, call: Call | None = None) -> None: ...

    def abandon(self, call: Call) -> bool:
        """Gives up waiting for a call; whether that by itself tells the server."""

    async def close(self) -> None: ...


class PipeError(Exception):
    """Why a server cannot be reached, in one line."""


async def open_stdio(target: Target, listener: Listener, limits: Limits) -> Pipe:
    """Starts a server. Raises PipeError when it cannot be started."""
    if not os.path.isdir(target.cwd or "."):
        raise PipeError(f"its folder `{target.cwd}` is not there")
    if "/" not in target.command and shutil.which(target.command, path=target.env.get("PATH")) is None:
        raise PipeError(f"the command `{target.command}` is not installed")
    loop = asyncio.get_running_loop()
    try:
        _, child = await loop.subprocess_exec(
            lambda: _Child(listener, limits), target.command, *target.args, env=dict(target.env),
            cwd=target.cwd or None, start_new_session=True,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        what = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise PipeError(f"the command `{target.command}` does not start ({what.lower()})") from None
    return child


_ID = re.compile(rb'"id"\s*:\s*(\d{1,18})\s*[,}]')


class _Child(asyncio.SubprocessProtocol):
    """One process. A line past the bound is thrown away while it comes, and fails the call that it may answer."""

    def __init__(self, listener: Listener, limits: Limits) -> None:
        self.listener, self.limits = listener, limits
        self.pieces = Pieces(limits.message, limits.answer)
        self.is_skipping = self.is_stopping = False
        self.log = b""
        self.exited = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self.transport = cast(asyncio.SubprocessTransport, transport)
        self.pid = self.transport.get_pid()
        self.stdin = cast(asyncio.WriteTransport, self.transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.log = (self.log + data)[-4096:]
            return
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._grow(data[start:end] if start or end + 1 < len(data) else data[:-1])
            self._end_line()
            start = end + 1
        if start < len(data):
            self._grow(data[start:] if start else data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1 and not self.is_stopping:
            asyncio.get_running_loop().call_later(0.1, self._lost)

    def process_exited(self) -> None:
        self.exited.set()
        self._lost()

    def send(self, data: bytes, call: Call | None = None) -> None:
        if self.stdin.is_closing():
            self._lost()
        elif self.stdin.get_write_buffer_size() > self.limits.unsent:
            self.listener.on_failed(call, "the server does not read what it is sent")
        else:
            self.stdin.write(data + b"\n")

    def abandon(self, call: Call) -> bool:
        return False

    async def close(self) -> None:
        """Closes the server's input, then terminates, then kills its process group; returns when it is reaped."""
        self.is_stopping = True
        try:
            self.stdin.close()
            if not await self._has_exited():
                self._signal(signal.SIGTERM)
                await self._has_exited()
        finally:  # reached even when the wait itself is cancelled
            self._signal(signal.SIGKILL)
            self.transport.close()

    async def _has_exited(self) -> bool:
        with suppress(TimeoutError):
            # Not `wait_for`, which in 3.11 loses a cancellation that meets the end of what it waits for.
            async with asyncio.timeout(self.limits.grace_s):
                await self.exited.wait()
        return self.exited.is_set()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _lost(self) -> None:
        if self.is_stopping:
            return
        self.is_stopping = True
        code = self.transport.get_returncode()
        how = "closed its output" if code is None else f"ended with exit code {code}"
        how = f"was ended by signal {-code}" if code is not None and code < 0 else how
        lines = [line for line in self.log.decode("utf-8", "replace").splitlines() if line.strip()]
        self.listener.on_failed(None, f"it {how}" + (f"; it logged: {' / '.join(lines[-3:])[-300:]}" if lines else ""))
        self._signal(signal.SIGKILL)
        self.transport.close()

    def _grow(self, data: bytes) -> None:
        if self.is_skipping:
            return
        try:
            self.pieces.add(data)
        except TooLongError as error:
            self._skip(error)

    def _skip(self, error: TooLongError) -> None:
        head = self.pieces.head
        self.pieces.drop()
        self.is_skipping = True
        self.listener.on_message(_too_long(head, str(error)), None)

    def _end_line(self) -> None:
        is_skipped, self.is_skipping = self.is_skipping, False
        if is_skipped:
            return
        try:
            line = self.pieces.take()
        except TooLongError as error:
            self._skip(error)
            self.is_skipping = False
            return
        if not self.is_stopping and (isinstance(line, memoryview) or line.strip()):
            self.listener.on_message(line, None)


def _too_long(head: bytes, why: str) -> bytes:
    """An error in the place of an answer that is too long, where its id can be told; it can only fail that call."""
    found = _ID.search(head)
    number = found[1] if found else b"0"
    text = f"the server's answer {why}".encode()
    return b'{"jsonrpc":"2.0","id":' + number + b',"error":{"code":-32603,"message":"' + text + b'"}}'
