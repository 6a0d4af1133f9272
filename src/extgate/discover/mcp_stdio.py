"""A server as a child process: the SDK's messages over its pipes, with bounds, and an end that leaves nobody behind.

The SDK's own transport keeps a line until it ends, however long; this one is bounded, keeps the log's tail for the
error, and kills the whole process group.
"""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from extgate.discover.mcp_sdk import Sdk, Streams
from extgate.discover.mcp_watch import ServerError, Watch, server_environment
from extgate.discover.server_config import ServerSpec

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream


@asynccontextmanager
async def stdio_streams(sdk: Sdk, spec: ServerSpec, watch: Watch, environ: Mapping[str, str]) -> AsyncIterator[Streams]:
    """Starts the server and connects to it; however the block ends, no process of its group is left.

    Raises ServerError when it cannot be started.
    """
    import anyio

    received, inbox = anyio.create_memory_object_stream[object](math.inf)
    outbox, sent = anyio.create_memory_object_stream[object](0)
    child = await _start(spec, environ, lambda: _Child(watch, sdk.read_message, received))
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_forward, sent, child, sdk)
            try:
                yield inbox, outbox
            finally:
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await child.stop(watch.limits.grace_s)
        for stream in (received, inbox, outbox, sent):
            stream.close()


async def _start(spec: ServerSpec, environ: Mapping[str, str], protocol: Callable[[], _Child]) -> _Child:
    env, cwd = server_environment(environ, spec.env), spec.cwd or os.getcwd()
    if not os.path.isdir(cwd):
        raise ServerError(f"its folder `{cwd}` is not there")
    if "/" not in spec.command and shutil.which(spec.command, path=env.get("PATH")) is None:
        raise ServerError(f"the command `{spec.command}` is not installed")
    loop = asyncio.get_running_loop()
    try:
        _, child = await loop.subprocess_exec(
            protocol, spec.command, *spec.args, env=env, cwd=cwd, start_new_session=True
        )
    except (OSError, ValueError) as error:
        what = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise ServerError(f"the command `{spec.command}` does not start ({what.lower()})") from None
    return child


async def _forward(sent: MemoryObjectReceiveStream[Any], child: _Child, sdk: Sdk) -> None:
    async for message in sent:
        child.send(sdk.write_message(message) + b"\n")


class _Child(asyncio.SubprocessProtocol):
    """One process: its lines become messages, its log is kept, its end is awaited."""

    def __init__(self, watch: Watch, read: Callable[[bytes], object], inbox: MemoryObjectSendStream[object]) -> None:
        self.watch, self.read, self.inbox = watch, read, inbox
        self.line = bytearray()
        self.exited = asyncio.Event()
        self.is_stopping = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self.transport = transport
        self.pid = transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.watch.hear_stderr(data)
        elif self.watch.count(len(data)) and not self.is_stopping:
            head, *rest = data.split(b"\n")
            self._grow(head)
            for part in rest:
                self._end_line()
                self._grow(part)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self.watch.is_lost = self.watch.is_lost or not self.is_stopping
            self.inbox.close()

    def process_exited(self) -> None:
        if self.watch.is_lost or not self.is_stopping:
            self.watch.is_lost = True
            code = self.transport.get_returncode() or 0
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            self.watch.ended = f"it ended with {how}"
        self.exited.set()

    def send(self, data: bytes) -> None:
        """Hands a line to the server; one that does not read holds up nothing here."""
        pipe = self.transport.get_pipe_transport(0)
        if isinstance(pipe, asyncio.WriteTransport) and not pipe.is_closing():
            pipe.write(data)

    async def stop(self, grace_s: float) -> None:
        """Closes the server's input, then terminates, then kills its process group; returns when it is reaped."""
        self.is_stopping = True
        try:
            pipe = self.transport.get_pipe_transport(0)
            if pipe is not None:
                pipe.close()
            if not await self._has_exited(grace_s):
                self._signal(signal.SIGTERM)
                await self._has_exited(grace_s)
        finally:  # reached even when the wait itself is cancelled
            self._signal(signal.SIGKILL)
            self.transport.close()
        await self._has_exited(grace_s)

    async def _has_exited(self, seconds: float) -> bool:
        import anyio

        with anyio.move_on_after(seconds):
            await self.exited.wait()
        return self.exited.is_set()

    def _signal(self, number: signal.Signals) -> None:
        """Signals the whole group: what a launcher such as `npx` started goes with it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _grow(self, data: bytes) -> None:
        self.line += data
        if len(self.line) > self.watch.limits.message_bytes:
            self.line.clear()
            self.watch.fail(f"sent a line of more than {self.watch.limits.message_bytes:,} bytes")

    def _end_line(self) -> None:
        line = bytes(self.line).strip()
        self.line.clear()
        if not line or self.watch.reason is not None:
            return
        try:
            message = self.read(line)
        except ValueError:
            self.watch.hear_noise(line)
            return
        self.watch.count_message()
        self.inbox.send_nowait(message)
