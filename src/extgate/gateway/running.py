"""The MCP gateway over a workspace: the host's gates in front, relayed servers behind, and news between the two."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from extgate.core.extension import Extension, Finding, Server
from extgate.core.names import show
from extgate.discover.codes import finding
from extgate.discover.mcp_definitions import Definitions, extensions_of
from extgate.discover.mcp_live import Held, LiveServers
from extgate.discover.mcp_watch import ServerError, server_environment
from extgate.discover.server_config import ServerSpec
from extgate.enforce.mcp.catalog import Rows
from extgate.enforce.mcp.door import Door
from extgate.enforce.mcp.envelope import value_of, write
from extgate.enforce.mcp.hub import Hub
from extgate.enforce.mcp.pipe import Target
from extgate.enforce.mcp.record import Record
from extgate.enforce.mcp.upstream import Upstream
from extgate.errors import DialectError
from extgate.gateway.settings import GatewaySettings, options_of, read_gateway
from extgate.host import PINGS, Host, Wishes, open_host
from extgate.settings import read_settings
from extgate.workspace import Workspace

TICK_S = 1.0
DOOR = "mcp"


def target_of(spec: ServerSpec, environ: Mapping[str, str]) -> Target:
    """How the relay reaches a server. A process gets the few inherited names and its own, as in discovery."""
    is_local = spec.transport == "stdio"
    return Target(
        name=spec.name, transport=spec.transport, command=spec.command, args=spec.args,
        env=server_environment(environ, spec.env) if is_local else {}, cwd=spec.cwd, url=spec.url,
        headers=dict(spec.headers), secrets=spec.secrets,
    )  # fmt: skip


class RelayedServers(LiveServers):
    """Servers that the hub holds open, as a host wants to know of them. Safe for threads.

    Nothing of `LiveServers` but its face: no thread, no SDK. is_lazy: the servers start with the client, so nobody
    waits for them.
    """

    def __init__(self, hub: Hub, loop: asyncio.AbstractEventLoop, *, is_lazy: bool) -> None:
        self.hub, self._relay_loop, self._is_lazy = hub, loop, is_lazy
        self.trusted: Callable[[ServerSpec], bool] = lambda spec: False
        self.on_change: Callable[[Held], None] = lambda held: None
        self.on_heard: Callable[[str], None] = lambda name: None
        self._specs: tuple[ServerSpec, ...] = ()
        self._held: tuple[Held, ...] = ()
        self._listed: dict[str, _Listed] = {}
        hub.on_servers, hub.on_heard = self._changed, lambda name: self.on_heard(name)

    def __enter__(self) -> RelayedServers:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    @property
    def held(self) -> tuple[Held, ...]:
        """Every wanted server as it is now, by name."""
        return self._held

    def want(self, specs: Iterable[ServerSpec]) -> Future[None]:
        """Starts the servers that are new or asked for in another way, ends those no longer asked for."""
        return asyncio.run_coroutine_threadsafe(self._want(tuple(specs)), self._relay_loop)

    def switch(self, name: str, *, is_on: bool) -> Future[None]:
        """Turns a server off, or on again. Raises KeyError."""
        if name not in {spec.name for spec in self._specs}:
            raise KeyError(name)
        return self.want(replace(s, is_disabled=not is_on) if s.name == name else s for s in self._specs)

    def call(self, server: str, tool: str, arguments: Mapping[str, object]) -> Future[Mapping[str, object]]:
        """Nothing: clients' calls are relayed, and the gateway has none of its own. Raises ServerError."""
        raise ServerError(f"`{show(server)}` is relayed")

    async def _want(self, specs: tuple[ServerSpec, ...]) -> None:
        self._specs = specs
        startable = [s for s in specs if not s.is_disabled and s.error is None and self.trusted(s)]
        self.hub.want({spec.name: target_of(spec, os.environ) for spec in startable})
        self._note()
        if not self._is_lazy:
            await self.hub.settled()

    def _changed(self) -> None:
        self._note()
        self.on_change(Held(server=Server(name="")))
        self.hub.notify()  # what is not answered otherwise by any gate may be listed no longer

    def _note(self) -> None:
        self._held = tuple(self._one(spec) for spec in sorted(self._specs, key=lambda spec: spec.name))

    def _one(self, spec: ServerSpec) -> Held:
        base = self.hub.bases.get(spec.name)
        facts = {"transport": spec.transport, "file": spec.file, "line": spec.line}
        server = Server(name=spec.name, state="configured", source=spec.source, facts=facts)
        if spec.is_disabled:
            return Held(server=replace(server, state="disabled"))
        if spec.error is not None:
            return Held(server=replace(server, state="failed", error=spec.error))
        if not self.trusted(spec):
            note = _note(spec, "EG316", f"asks for `{spec.shown or spec.command or spec.url}`")
            return Held(server=replace(server, state="untrusted"), findings=(note,))
        if base is None or base.state == "configured":
            return Held(server=server)
        extensions, found = self._extensions(spec, base)
        if base.state == "failed":
            failed = replace(server, state="failed", error=base.error)
            note = _note(spec, "EG310", f"failed: {base.error}")
            return Held(server=failed, extensions=extensions, findings=(note, *found))
        about = replace(server, state="connected", instructions=base.offer.instructions, facts={**facts, **base.hello})
        return Held(server=about, extensions=extensions, findings=found)

    def _extensions(self, spec: ServerSpec, base: Upstream) -> tuple[tuple[Extension, ...], tuple[Finding, ...]]:
        """What the server's lists stand for; worked out once for each list.

        Of one that is lost, what it had: a name that was its stays its, so that a call is told of the loss, and nobody
        else is taken for it.
        """
        known = self._listed.get(spec.name)
        if known is not None and known.base is not base:
            known = None
        rows = base.offer.rows if base.state == "connected" else known.rows if known is not None else {}
        if known is None or known.rows is not rows or known.spec != spec:
            lists = {what: [value_of(write(row)) for row in found.values()] for what, found in rows.items()}
            extensions, found = extensions_of(spec, Definitions(lists=lists, instructions=base.offer.instructions))
            known = self._listed[spec.name] = _Listed(base, spec, rows, extensions, found)
        return known.extensions, known.findings


class _Listed(NamedTuple):
    """What a server listed last, and what that stands for."""

    base: Upstream
    spec: ServerSpec
    rows: Rows
    extensions: tuple[Extension, ...]
    findings: tuple[Finding, ...]


def _note(spec: ServerSpec, code: str, message: str) -> Finding:
    return finding(code, f"the server `{spec.name}` {message}", file=spec.file or None, line=spec.line)


@dataclass(eq=False)
class Gateway:
    """A gateway that is open: doors by agent in `hub.doors`, kept as the files say.

    on_settings: called with what `extgate.yaml` says now, after it was read; on_refreshed: after every refresh.
    """

    hub: Hub
    host: Host
    settings: GatewaySettings
    say: Callable[[str], None]
    on_settings: Callable[[GatewaySettings], None] = lambda settings: None
    on_refreshed: Callable[[], None] = lambda: None

    def refresh(self) -> None:
        """Gives every seated agent its door, and tells clients what became other. On the hub's loop."""
        self._read_settings()
        workspace = self.host.workspace
        agents = {agent.id: agent for agent in workspace.agents}
        for name, seat in self.host.dispatcher.seats.items():
            agent = agents.get(name)
            door = self.hub.doors.get(name)
            options = door.options if door else self.settings.options
            try:
                options = options_of(agent, self.settings.options) if agent else options
            except DialectError as error:  # the last good options stay in force
                self.say(str(error))
                options = door.options if door else replace(options, share="always", asks=("-",))
            if door is None:
                self.hub.doors[name] = Door(
                    seat.gate,
                    options,
                    lambda: self.hub.offers,
                    lambda seat=seat: seat.withdrawn,  # type: ignore[misc]
                )
            else:
                door.configure(options)
        self.on_refreshed()
        self.hub.notify()

    def _read_settings(self) -> None:
        try:
            self.settings = read_gateway(self.host.homes)
        except DialectError as error:
            self.say(str(error))
            return
        self.hub.quotas.configure(self.settings.limits.quotas)
        self.on_settings(self.settings)


@asynccontextmanager
async def open_gateway(
    root: Path,
    *,
    agents: frozenset[str] | None = None,
    trust: bool = False,
    is_exclusive: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> AsyncIterator[Gateway]:
    """A gateway over the workspace at `root`. is_exclusive: for one client, with whom its servers start.

    Raises ExtgateError; OSError for its record.
    """
    homes = Workspace.open(root).homes
    settings = read_gateway(homes)
    loop = asyncio.get_running_loop()
    limits = replace(settings.limits, start_s=min(settings.limits.start_s, homes.timeout_s))
    hub = Hub(limits, is_exclusive=is_exclusive, ping_s=read_settings(homes).liveness_s / PINGS)
    made: list[Gateway] = []

    def news(about: object) -> None:
        if made and not loop.is_closed():
            loop.call_soon_threadsafe(made[0].refresh)

    wishes = Wishes(door=DOOR, agents=agents, trust=trust, say=say, on_report=news, on_change=news)
    with contextlib.ExitStack() as stack:
        hub.record = record = Record(loop)
        opening = open_host(root, wishes, RelayedServers(hub, loop, is_lazy=is_exclusive), open_record=record.open)
        host = await asyncio.to_thread(opening.__enter__)
        stack.push(opening.__exit__)
        gateway = Gateway(hub, host, settings, say)
        made.append(gateway)
        gateway.refresh()
        gc.collect()
        gc.freeze()  # what was made so far stays, so the collector need not look at it again with every few calls
        # It waits for a quarter as much garbage as it found last time, which is next to nothing from now on.
        gc.collect()
        ticking = asyncio.ensure_future(_tick(hub))
        try:
            yield gateway
        finally:
            ticking.cancel()
            await hub.stop()
            made.clear()
            await asyncio.to_thread(stack.pop_all().close)


async def _tick(hub: Hub) -> None:
    while True:
        await asyncio.sleep(TICK_S)
        hub.expire()
