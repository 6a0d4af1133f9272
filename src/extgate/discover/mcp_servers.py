"""MCP servers started, asked for all they offer, and ended again; a server that fails is a state with its error.

`probe` starts only what `trusted` admits, several at a time, each bounded in time, bytes, pages and items. A list that
is cut by a bound fails its server: an inventory is whole or absent. Only a live answer is `connected`; definitions from
the cache come with `configured`, which meets no `required`.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from extgate import __version__
from extgate.core.extension import Extension, Finding, Server, ServerState
from extgate.discover.codes import finding
from extgate.discover.mcp_cache import cached, keep
from extgate.discover.mcp_definitions import LISTINGS, Definitions, Listing, extensions_of
from extgate.discover.mcp_http import http_streams
from extgate.discover.mcp_sdk import METHOD_NOT_FOUND, Hello, RefusedError, Sdk, Session, Streams
from extgate.discover.mcp_stdio import stdio_streams
from extgate.discover.mcp_watch import Limits, ServerError, Watch
from extgate.discover.server_config import (
    ServerSpec,
    load_servers,
    merge_servers,
    read_servers,
    server_specs,
)

__all__ = [
    "Limits",
    "Progress",
    "ServerSpec",
    "load_servers",
    "merge_servers",
    "probe",
    "probe_servers",
    "read_servers",
    "server_specs",
]

Probed = tuple[tuple[Server, ...], tuple[Extension, ...], tuple[Finding, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One step of a probe: a server is `starting`, or has come to its state. done: servers that have, of `total`."""

    server: str
    state: str
    done: int
    total: int
    error: str | None = None


async def probe(
    specs: Iterable[ServerSpec],
    *,
    timeout_s: float = 30.0,
    trusted: Callable[[ServerSpec], bool],
    on_progress: Callable[[Progress], None] | None = None,
    cache: Path | None = None,
    refresh: bool = False,
    is_live: Callable[[ServerSpec], bool] | None = None,
    environ: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    now: Callable[[], float] = time.time,
) -> Probed:
    """Servers with their states, what the reachable ones offer, and what was found; in the order of the specs.

    cache: a folder; a server kept there is answered from it as `configured`, without being started. is_live: which
    servers are started nevertheless, because something depends on their being there; refresh: all of them. What a
    started server says is kept. Without `cache` nothing is kept and all are started. No server takes longer than
    `timeout_s` from its start, plus three times `limits.grace_s` to end.
    """
    kept, findings = merge_servers(specs)
    job = _Job(
        timeout_s=timeout_s,
        trusted=trusted,
        tell=on_progress or (lambda progress: None),
        cache=cache,
        is_live=(lambda spec: True) if refresh or cache is None else is_live or (lambda spec: False),
        environ=os.environ if environ is None else environ,
        limits=limits or Limits(),
        now=now,
        total=len(kept),
    )
    outcomes = await job.run(kept)
    servers = tuple(outcome.server for outcome in outcomes)
    extensions = tuple(ext for outcome in outcomes for ext in outcome.extensions)
    return servers, extensions, (*findings, *(f for outcome in outcomes for f in outcome.findings))


def probe_servers(specs: Iterable[ServerSpec], *, trusted: Callable[[ServerSpec], bool], **options: Any) -> Probed:
    """`probe` for callers without an event loop. Ctrl-C and SIGTERM end every server before they end the caller."""
    return asyncio.run(_ended_by_signals(probe(specs, trusted=trusted, **options)))


async def _ended_by_signals(work: Coroutine[Any, Any, Probed]) -> Probed:
    """Runs the work; SIGTERM, where nobody else handles it, cancels it and then exits as SIGTERM does."""
    task = asyncio.ensure_future(work)
    loop, was_terminated = asyncio.get_running_loop(), False

    def terminate() -> None:
        nonlocal was_terminated
        was_terminated = True
        task.cancel()

    is_free = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with contextlib.ExitStack() as stack:
        if is_free:
            with contextlib.suppress(ValueError, RuntimeError):  # not the main thread: signals go elsewhere
                loop.add_signal_handler(signal.SIGTERM, terminate)
                stack.callback(loop.remove_signal_handler, signal.SIGTERM)
        try:
            return await task
        except asyncio.CancelledError:
            if was_terminated:
                raise SystemExit(128 + signal.SIGTERM) from None
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One server as it is now, with what it offers, and what was found wrong with it."""

    server: Server
    extensions: tuple[Extension, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(kw_only=True)
class _Job:
    """One probe of many servers."""

    timeout_s: float
    trusted: Callable[[ServerSpec], bool]
    tell: Callable[[Progress], None]
    cache: Path | None
    is_live: Callable[[ServerSpec], bool]
    environ: Mapping[str, str]
    limits: Limits
    now: Callable[[], float]
    total: int
    done: int = 0

    async def run(self, specs: Sequence[ServerSpec]) -> list[Held]:
        slots = asyncio.Semaphore(self.limits.concurrent)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._one(spec, slots)) for spec in specs]
        return [task.result() for task in tasks]

    async def _one(self, spec: ServerSpec, slots: asyncio.Semaphore) -> Held:
        outcome = self._unstarted(spec)
        if outcome is None:
            async with slots:
                outcome = await self._started(spec)
        self.done += 1
        server = outcome.server
        self.tell(Progress(server=spec.name, state=server.state, done=self.done, total=self.total, error=server.error))
        return outcome

    def _unstarted(self, spec: ServerSpec) -> Held | None:
        """The outcome of a server that is not to be started; None for one that is."""
        if spec.is_disabled:
            return Held(server=server_of(spec, "disabled"))
        if spec.error is not None:  # its finding came with the file
            return Held(server=server_of(spec, "failed", error=spec.error))
        if not self.trusted(spec):
            return Held(
                server=server_of(spec, "untrusted"),
                findings=(note_on(spec, "EG316", f"asks for `{spec.shown or spec.command or spec.url}`"),),
            )
        return None if self.cache is None or self.is_live(spec) else self._cached(spec, self.cache)

    def _cached(self, spec: ServerSpec, folder: Path) -> Held | None:
        definitions = cached(folder, spec, now=self.now(), age_s=self.limits.cache_age_s)
        return None if definitions is None else offering(spec, "configured", definitions)

    async def _started(self, spec: ServerSpec) -> Held:
        self.tell(Progress(server=spec.name, state="starting", done=self.done, total=self.total))
        watch = Watch(limits=self.limits, secrets=spec.secrets)
        # Whatever a server or the SDK raises comes back as a value: it is this server's failure and nobody else's.
        (result,) = await asyncio.gather(self._live(spec, watch), return_exceptions=True)
        if isinstance(result, Held):
            return result
        error = watch.explain(watch.reason or reason_of(result, watch))
        return Held(
            server=server_of(spec, "failed", error=error), findings=(note_on(spec, "EG310", f"failed: {error}"),)
        )

    async def _live(self, spec: ServerSpec, watch: Watch) -> Held:
        import anyio

        with anyio.move_on_after(self.timeout_s) as scope:
            watch.scope = scope
            definitions, notes = await self._ask(spec, watch)
        if watch.reason is not None:
            raise ServerError(watch.reason)
        if scope.cancelled_caught:
            raise ServerError(f"no answer to `{watch.phase}` within {self.timeout_s:g} s")
        if self.cache is not None and not notes:
            with contextlib.suppress(OSError):  # a cache that cannot be written costs time and nothing else
                keep(self.cache, spec, definitions, now=self.now())
        if watch.noise:
            notes.append(note_on(spec, "EG313", f"prints `{watch.show(watch.first_noise, 60)}` among its messages"))
        return offering(spec, "connected", definitions, notes)

    async def _ask(self, spec: ServerSpec, watch: Watch) -> tuple[Definitions, list[Finding]]:
        """Starts the server, asks for everything and ends it again."""
        sdk, began = installed_sdk(), asyncio.get_running_loop().time()
        async with self._streams(sdk, spec, watch) as streams, sdk.session(streams, __version__) as session:
            hello = await session.hello()
            lists, notes = await all_lists(spec, session, hello, watch)
            assert watch.scope is not None
            watch.scope.deadline = math.inf  # all is said: ending it has its own bound
            seconds = round(asyncio.get_running_loop().time() - began, 1)
        about = {"version": hello.version, "protocol": hello.protocol, "seconds": seconds}
        return Definitions(lists=lists, instructions=hello.instructions, about=about), notes

    def _streams(self, sdk: Sdk, spec: ServerSpec, watch: Watch) -> AbstractAsyncContextManager[Streams]:
        if spec.transport == "stdio":
            return stdio_streams(sdk, spec, watch, self.environ)
        return http_streams(sdk, spec, watch)


def installed_sdk() -> Sdk:
    """The MCP SDK. Raises ServerError, with the way out, when there is none."""
    try:
        return Sdk()
    except ImportError as error:
        missing = "is not installed" if error.name == "mcp" else f"does not import ({error})"
        raise ServerError(f"the package `mcp` {missing}; install extgate[mcp]") from None


async def all_lists(
    spec: ServerSpec, session: Session, hello: Hello, watch: Watch
) -> tuple[dict[str, list[Mapping[str, Any]]], list[Finding]]:
    """Every list that the server announces. A list other than its tools that it refuses is left empty, with a note."""
    lists: dict[str, list[Mapping[str, Any]]] = {}
    notes: list[Finding] = []
    for listing in LISTINGS:
        if listing.capability not in hello.capabilities:
            continue
        watch.phase = _METHODS[listing.what]
        try:
            lists[listing.what] = await _all_pages(session, listing, watch.limits)
        except (RefusedError, ValueError) as error:
            if listing.what == "tools" or watch.is_lost or _is_fatal(error):
                raise
            if not (listing.what == "resourceTemplates" and _code(error) == METHOD_NOT_FOUND):
                reason = watch.show(reason_of(error, watch))
                notes.append(note_on(spec, "EG311", f"{reason}; it is connected without its {listing.what}"))
    return lists, notes


async def _all_pages(session: Session, listing: Listing, limits: Limits) -> list[Mapping[str, Any]]:
    """All items of one list. Raises ServerError rather than return a part of it."""
    items: list[Mapping[str, Any]] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(limits.pages):
        page = await session.page(listing.what, cursor)
        items += page.items
        cursor = page.cursor
        if len(items) > limits.items:
            raise ServerError(f"lists more than {limits.items:,} {listing.what}")
        if cursor is None:
            return items
        if cursor in seen:
            raise ServerError(f"lists its {listing.what} in a circle: the cursor `{cursor[:60]}` came twice")
        seen.add(cursor)
    raise ServerError(f"lists its {listing.what} on more than {limits.pages:,} pages")


_METHODS = {
    "tools": "tools/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
    "prompts": "prompts/list",
}
_CONNECTION_CLOSED = -32000


def _code(error: Exception) -> int | None:
    return error.code if isinstance(error, RefusedError) else None


def _is_fatal(error: Exception) -> bool:
    return _code(error) == _CONNECTION_CLOSED


def reason_of(error: BaseException, watch: Watch) -> str:
    """What an exception means for whoever wrote the server's entry."""
    while isinstance(error, BaseExceptionGroup):
        error = next((e for e in error.exceptions if not isinstance(e, asyncio.CancelledError)), error.exceptions[0])
    if isinstance(error, ServerError):
        return str(error)
    if isinstance(error, RefusedError):
        what = "closed the connection" if _is_fatal(error) else f"refused with `{error}` ({error.code})"
        return f"{what} on `{watch.phase}`"
    if isinstance(error, ValueError):
        return f"gave an ill-shaped answer to `{watch.phase}`: {str(error)[:300]}"
    first_line = str(error).partition("\n")[0]
    return f"broke off on `{watch.phase}`: {first_line or type(error).__name__}"


def offering(spec: ServerSpec, state: ServerState, definitions: Definitions, notes: Iterable[Finding] = ()) -> Held:
    """A server in this state with all that it defines."""
    extensions, findings = extensions_of(spec, definitions)
    server = server_of(spec, state, instructions=definitions.instructions, about=definitions.about)
    return Held(server=server, extensions=extensions, findings=(*notes, *findings))


def server_of(
    spec: ServerSpec,
    state: ServerState,
    *,
    error: str | None = None,
    instructions: str = "",
    about: Mapping[str, Any] | None = None,
) -> Server:
    """The server of an entry, with where it is asked for among its facts."""
    facts = {"transport": spec.transport, "file": spec.file, "line": spec.line, **(about or {})}
    return Server(name=spec.name, state=state, error=error, instructions=instructions, source=spec.source, facts=facts)


def note_on(spec: ServerSpec, code: str, message: str) -> Finding:
    """A finding about a server, at its entry's place."""
    return finding(code, f"the server `{spec.name}` {message}", file=spec.file or None, line=spec.line)
