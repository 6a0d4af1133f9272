"""MCP servers held open while agents use them: started, pinged, listed again when they say so, and started again.

All sessions live on one event loop in a thread of their own, so that hosts with and without a loop share them. A
server that ends is `failed` at once and is tried again by itself; only a session that answers is `connected`.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, TypeVar

from extgate import __version__
from extgate.core.names import show
from extgate.discover.mcp_definitions import Definitions
from extgate.discover.mcp_http import http_streams
from extgate.discover.mcp_sdk import Answers, Hello, RefusedError, Sdk, Session, Streams
from extgate.discover.mcp_servers import Held, all_lists, installed_sdk, note_on, offering, reason_of, server_of
from extgate.discover.mcp_stdio import stdio_streams
from extgate.discover.mcp_watch import Limits, ServerError, Watch
from extgate.discover.server_config import ServerSpec

__all__ = ["CALL_S", "Held", "LiveServers"]

CALL_S = 600.0
"""How long one tool may take, in seconds."""
_LOST = -32000
_LIVE = Limits(total_bytes=2**62, messages=2**62)
"""A session lives as long as it is used; each message is bounded all the same."""

T = TypeVar("T")


class LiveServers:
    """Holds the wanted servers open while it is entered. Safe for threads.

    trusted: which may be started. on_change: called, in the thread of the sessions, with each server that came to
    another state or offers something else. on_heard: with each name that has just shown that it lives. timeout_s: from
    a server's start to its lists. ping_s: seconds between two pings, each of which may take as long. retry_s: waits
    before a failed server is started again; the last goes on.
    """

    def __init__(
        self,
        *,
        trusted: Callable[[ServerSpec], bool] = lambda spec: False,
        on_change: Callable[[Held], None] = lambda held: None,
        on_heard: Callable[[str], None] = lambda name: None,
        timeout_s: float = 30.0,
        ping_s: float = 10.0,
        retry_s: tuple[float, ...] = (0.5, 1, 2, 5, 10, 20, 30),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.trusted, self.on_change, self.on_heard = trusted, on_change, on_heard
        self.timeout_s, self.ping_s, self.retry_s = timeout_s, ping_s, retry_s
        self.environ = os.environ if environ is None else environ
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="extgate-servers", daemon=True)
        self._tended: dict[str, _Tended] = {}
        self._off: set[str] = set()

    def __enter__(self) -> LiveServers:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._run(self._want(())).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # ------------------------------------------------------------------------------------------ servers

    @property
    def held(self) -> tuple[Held, ...]:
        """Every wanted server as it is now, by name."""
        return tuple(tended.held for _, tended in sorted(dict(self._tended).items()))

    def want(self, specs: Iterable[ServerSpec]) -> Future[None]:
        """Starts the servers that are new or asked for in another way, ends those no longer asked for.

        Done when each has come to a first state, connected or not.
        """
        return self._run(self._want(tuple(specs)))

    def switch(self, name: str, *, is_on: bool) -> Future[None]:
        """Turns a server off, until it is turned on again; done when it has come to a state. Raises KeyError."""
        return self._run(self._switch(name, is_on))

    def call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> Future[Mapping[str, Any]]:
        """What the tool answers, as `CallToolResult` has it in JSON. Asks no gate: whoever calls this has asked.

        Raises ServerError: not connected, refused, too late.
        """
        return self._run(self._call(server, tool, arguments))

    # ------------------------------------------------------------------------------------------ inside

    def _run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _want(self, specs: tuple[ServerSpec, ...]) -> None:
        wanted = {spec.name: spec for spec in specs}
        old = [name for name, tended in self._tended.items() if not _is_same(wanted.get(name), tended.spec)]
        await asyncio.gather(*(self._tended.pop(name).end() for name in old))
        for name, spec in wanted.items():
            if name not in self._tended:
                self._tended[name] = tended = _Tended(self, spec, is_on=name not in self._off)
                self.on_change(tended.held)
        await asyncio.gather(*(tended.settled.wait() for tended in self._tended.values()))

    async def _switch(self, name: str, is_on: bool) -> None:
        tended = self._tended.pop(name)
        self._off.discard(name) if is_on else self._off.add(name)
        await tended.end()
        self._tended[name] = again = _Tended(self, tended.spec, is_on=is_on)
        await again.settled.wait()

    async def _call(self, server: str, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        tended = self._tended.get(server)
        if tended is None:
            raise ServerError(f"the server `{show(server)}` is not configured")
        return await tended.call(tool, arguments)


def _is_same(new: ServerSpec | None, old: ServerSpec) -> bool:
    """Whether it is asked for as before, wherever it now stands in its file."""
    return new is not None and replace(new, file="", line=None) == replace(old, file="", line=None)


class _LiveWatch(Watch):
    """A watch that wakes its server's task when the server hangs up."""

    def __init__(self, spec: ServerSpec, wake: asyncio.Event) -> None:
        self._wake, self._is_lost = wake, False
        super().__init__(limits=_LIVE, secrets=spec.secrets)

    @property
    def is_lost(self) -> bool:
        return self._is_lost

    @is_lost.setter
    def is_lost(self, value: bool) -> None:
        self._is_lost = value
        if value:
            self._wake.set()


class _Tended:
    """One server and the task that holds it open."""

    def __init__(self, host: LiveServers, spec: ServerSpec, *, is_on: bool) -> None:
        self.host, self.spec = host, spec
        self.settled, self._wake = asyncio.Event(), asyncio.Event()
        self._raw: Any = None
        self._over = asyncio.Event()
        self._is_grown = False
        self.held = Held(server=server_of(spec, "configured"))
        self._task = asyncio.ensure_future(self._hold(is_on))

    async def end(self) -> None:
        """Ends the server; returns when it is gone."""
        self._over.set()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._raw is None or self.held.server.state != "connected":
            error = f": {self.held.server.error}" if self.held.server.error else ""
            raise ServerError(f"the server `{show(self.spec.name)}` is {self.held.server.state}{error}")
        try:
            result = await self._before_it_ends(_call_tool(installed_sdk(), self._raw, tool, arguments), tool)
        except RefusedError as error:
            raise ServerError(f"`{show(self.spec.name)}` refused `{show(tool)}`: {show(str(error))}") from None
        self.host.on_heard(self.spec.name)
        return result

    async def _before_it_ends(self, work: Coroutine[Any, Any, T], tool: str) -> T:
        """The result of the work, which is given up with its session: SDK 1 lets a call wait for ever."""
        asked, over = asyncio.ensure_future(work), asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait({asked, over}, timeout=CALL_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
            is_answered = not asked.cancel()
        if not is_answered:
            why = "ended during it" if self._over.is_set() else f"gave no answer within {CALL_S:g} s"
            raise ServerError(f"`{show(self.spec.name)}` refused `{show(tool)}`: it {why}")
        return asked.result()

    # ------------------------------------------------------------------------------------------ the task

    async def _hold(self, is_on: bool) -> None:
        spec = self.spec
        if spec.is_disabled or not is_on:
            self._become(Held(server=server_of(spec, "disabled")))
        elif spec.error is not None:
            self._become(Held(server=server_of(spec, "failed", error=spec.error)))
        elif not self.host.trusted(spec):
            found = note_on(spec, "EG316", f"asks for `{spec.shown or spec.command or spec.url}`")
            self._become(Held(server=server_of(spec, "untrusted"), findings=(found,)))
        else:
            await self._hold_open()

    async def _hold_open(self) -> None:
        failures = 0
        while True:
            watch = _LiveWatch(self.spec, self._wake)
            self._wake.clear()
            self._over = asyncio.Event()
            # Whatever a server or the SDK raises comes back as a value: it is this server's failure and nobody else's.
            (result,) = await asyncio.gather(self._live(watch), return_exceptions=True)
            was_connected = self.held.server.state == "connected"
            self._raw = None
            self._over.set()
            error = watch.explain(watch.reason or _why(result, watch))
            found = note_on(self.spec, "EG310", f"failed: {error}")
            self._become(Held(server=server_of(self.spec, "failed", error=error), findings=(found,)))
            failures = 0 if was_connected else failures + 1
            await asyncio.sleep(self.host.retry_s[min(failures, len(self.host.retry_s) - 1)])

    async def _live(self, watch: _LiveWatch) -> None:
        """Starts the server and stays until it is lost, which is raised."""
        import anyio

        sdk = installed_sdk()
        with anyio.move_on_after(self.host.timeout_s) as scope:
            watch.scope = scope
            async with self._streams(sdk, watch) as streams:
                answers = Answers(streams[0])
                async with self._open(sdk, (answers, streams[1])) as raw:
                    session = Session(sdk, raw, answers)
                    hello = await session.hello()
                    await self._list(session, hello, watch)
                    self._raw, scope.deadline = raw, math.inf
                    while not watch.is_lost:
                        await self._tend(session, hello, watch)
                    raise ServerError("hung up")
        raise ServerError(watch.reason or f"no answer to `{watch.phase}` within {self.host.timeout_s:g} s")

    def _streams(self, sdk: Sdk, watch: Watch) -> AbstractAsyncContextManager[Streams]:
        if self.spec.transport == "stdio":
            return stdio_streams(sdk, self.spec, watch, self.host.environ)
        return http_streams(sdk, self.spec, watch)

    def _open(self, sdk: Sdk, streams: Streams) -> AbstractAsyncContextManager[Any]:
        about = sdk.types.Implementation(name="extgate", version=__version__)
        session: AbstractAsyncContextManager[Any] = sdk.mcp.ClientSession(
            streams[0], streams[1], client_info=about, message_handler=self._hear
        )
        return session

    async def _hear(self, message: Any) -> None:
        """Notes what a server says unasked: that one of its lists changed."""
        notification = getattr(message, "root", message)
        if str(getattr(notification, "method", "")).endswith("/list_changed"):
            self._is_grown = True
            self._wake.set()

    async def _list(self, session: Session, hello: Hello, watch: Watch) -> None:
        """Asks for every list that the server has; it is connected when all have come."""
        self._is_grown = False
        lists, notes = await all_lists(self.spec, session, hello, watch)
        about = {"version": hello.version, "protocol": hello.protocol}
        definitions = Definitions(lists=lists, instructions=hello.instructions, about=about)
        self.host.on_heard(self.spec.name)
        self._become(offering(self.spec, "connected", definitions, notes))

    async def _tend(self, session: Session, hello: Hello, watch: _LiveWatch) -> None:
        """Waits for news or for the time to ping, and answers to it. Raises ServerError when the server does not."""
        import anyio

        with anyio.move_on_after(self.host.ping_s):
            await self._wake.wait()
        self._wake.clear()
        if watch.is_lost:
            return
        watch.phase, most_s = ("list", self.host.timeout_s) if self._is_grown else ("ping", self.host.ping_s)
        with anyio.move_on_after(most_s) as scope:
            await (self._list(session, hello, watch) if self._is_grown else _ping(installed_sdk(), self._raw))
        if scope.cancelled_caught:
            error = f"no answer to `{watch.phase}` within {most_s:g} s"
            self._become(Held(server=server_of(self.spec, "failed", error=error)))  # ending it may take a while
            raise ServerError(error)
        self.host.on_heard(self.spec.name)

    def _become(self, held: Held) -> None:
        is_news = held != self.held or not self.settled.is_set()
        self.held = held
        self.settled.set()
        if is_news:
            self.host.on_change(held)


def _why(result: object, watch: Watch) -> str:
    return reason_of(result, watch) if isinstance(result, BaseException) else "ended"


async def _ping(sdk: Sdk, raw: Any) -> None:
    """Returns when the server answers, be it that it knows no ping."""
    try:
        await raw.send_ping()
    except sdk.error as error:
        failed: Any = error
        if int(failed.error.code) == _LOST:
            raise ServerError("hung up") from None


async def _call_tool(sdk: Sdk, raw: Any, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer as JSON; asked directly, because `call_tool` lists and validates besides."""
    types = sdk.types
    params = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
    try:
        request = types.CallToolRequest(method="tools/call", params=params)
        asked = request if sdk.major >= 2 else types.ClientRequest(request)
        result = await raw.send_request(asked, types.CallToolResult)
    except sdk.error as error:
        failed: Any = error
        raise RefusedError(int(failed.error.code), str(failed.error.message)) from None
    answer: Mapping[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return answer
