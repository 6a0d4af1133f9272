"""One process that runs agents over a workspace: their gates, live servers, hot reload, and the way in from outside."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from extgate.agents import installed
from extgate.audit.event import Sink
from extgate.control import Control
from extgate.core.extension import Inventory, Server
from extgate.core.patterns import matches
from extgate.core.policy import Policy, Profile, Requirement
from extgate.core.require import availability
from extgate.discover.everything import wanted_servers
from extgate.discover.mcp_live import LiveServers
from extgate.discover.server_config import ServerSpec
from extgate.enforce.answer import Approver
from extgate.enforce.dispatch import Dispatcher, Expiry, Liveness
from extgate.enforce.gate import Gate
from extgate.enforce.in_force import Change
from extgate.enforce.sinks import JsonLines
from extgate.errors import ExtgateError
from extgate.homes import Homes
from extgate.reload import Reloader, Report, report_dict, report_lines
from extgate.settings import Settings, read_settings
from extgate.watch import Watcher
from extgate.workspace import DEFAULT_AGENT, Workspace, read_agent_file

PINGS = 3
"""How often a server is pinged within the bound on its liveness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """How a host is opened.

    door: what its events name. agents: ids whose servers are started; None: those of all. trust: starts the servers
    that files ask for now; what they ask for later has to be approved. inventory: what is installed, once and for all;
    None: what is found. also: profiles given by their path. say: takes lines for people; on_report: what a reload did
    that came by itself; on_change: what became of a gate because a server came or went. The three are called from other
    threads.
    """

    door: str
    agents: frozenset[str] | None = None
    trust: bool = False
    inventory: Inventory | None = None
    also: tuple[Path, ...] = ()
    approver: Approver | None = None
    say: Callable[[str], None] = lambda line: None
    on_report: Callable[[Report], None] = lambda report: None
    on_change: Callable[[Change], None] = lambda change: None


@contextmanager
def open_host(
    root: Path,
    wishes: Wishes,
    servers: LiveServers | None = None,
    *,
    open_record: Callable[[Path], JsonLines] = JsonLines,
) -> Iterator[Host]:
    """A host over the workspace at `root`, its servers started. Raises ExtgateError; OSError for its record.

    servers: who holds them open; None: the host itself, with the SDK. open_record: opens the file of events.
    """
    homes = Workspace.open(root).homes
    settings = read_settings(homes)
    with ExitStack() as stack:
        sink = open_record(settings.audit_file)
        stack.callback(sink.close)
        host = Host(homes, settings, wishes, sink, servers)
        # Made before the files are read again, so that no edit falls between the two.
        own = settings.audit_file
        watcher = Watcher(lambda: host.homes, host.on_files, say=wishes.say, also=wishes.also, own=own)
        stack.enter_context(host.servers)
        host.start(Workspace(homes))
        stack.enter_context(watcher)
        stack.enter_context(Expiry(host.dispatcher))
        try:
            stack.enter_context(Control(root, {"accept": host.answer_accept, "connected": host.answer_connected}))
        except (ExtgateError, OSError) as error:
            wishes.say(f"`extgate reload` does not reach this process: {error}")
        yield host


class Host:
    """What `open_host` opens. Safe for threads; `dispatcher` and `reloader` are there once it has started."""

    dispatcher: Dispatcher
    reloader: Reloader

    def __init__(
        self, homes: Homes, settings: Settings, wishes: Wishes, sink: Sink, servers: LiveServers | None = None
    ) -> None:
        self.sink, self._wishes, self._homes, self._settings = sink, wishes, homes, settings
        self._agents = wishes.agents
        self._trusted: frozenset[str] = frozenset()
        self._is_started = False
        self._syncing = threading.RLock()
        self.servers = servers or LiveServers(timeout_s=homes.timeout_s, ping_s=settings.liveness_s / PINGS)
        self.servers.trusted, self.servers.on_change = self._is_trusted, lambda held: self._sync()

    def start(self, workspace: Workspace) -> None:
        """Starts the servers that are needed, waits until each has come to a state, and seats every agent."""
        liveness = Liveness(bound_s=math.inf if self._wishes.inventory else self._settings.liveness_s)
        self.servers.on_heard = liveness.hear
        self._wanted = wanted_servers(workspace.sources())
        self._trusted = frozenset(spec.digest for spec in self._wanted.specs if self._wishes.trust)
        if not self._wishes.inventory:
            self.servers.want(self._needed(workspace)).result()
        inventory = self._installed(workspace)
        self.dispatcher = Dispatcher(
            inventory, mode=self._settings.reload, liveness=liveness, on_change=self._wishes.on_change
        )
        self.reloader = Reloader(
            workspace, self.dispatcher, make_gate=self._gate, inventory_of=self._installed, also=self._wishes.also
        )
        self._is_started, self.servers.on_heard = True, self._hear
        self._sync()

    @property
    def homes(self) -> Homes:
        """Where things lie, by the last `extgate.yaml` that could be read."""
        return self.reloader.homes if self._is_started else self._homes

    @property
    def workspace(self) -> Workspace:
        """The workspace as it was last read."""
        return self.reloader.workspace

    # ------------------------------------------------------------------------------------------ reloading

    def reload(self) -> Report:
        """Reads everything again."""
        report = self.reloader.reload()
        self._sync()
        return report

    def accept(self) -> Report:
        """Reads everything again and puts in force what waited."""
        report = self.reloader.accept()
        self._sync()
        return report

    def answer_accept(self) -> Mapping[str, Any]:
        """`accept` for whoever asks from outside; the host's own people hear of it too."""
        report = self.accept()
        self._wishes.on_report(report)
        return {**report_dict(report), "lines": report_lines(report)}

    def answer_connected(self) -> Mapping[str, Any]:
        """The servers that live now, for whoever asks from outside and holds none itself."""
        servers = self.dispatcher.inventory.servers
        return {"connected": [server.name for server in servers if server.state == "connected"]}

    def on_files(self, paths: tuple[str, ...]) -> None:
        """Takes a watcher's news."""
        self._wishes.on_report(self.reload())

    # ------------------------------------------------------------------------------------------ servers

    def start_all(self) -> None:
        """Starts the servers of all agents, and waits for none of them."""
        self._agents = None
        self.servers.want(self._needed(self.workspace))

    def switch(self, server: str, *, is_on: bool) -> None:
        """Turns a server off or on again. Raises KeyError for one that is not held."""
        self.servers.switch(server, is_on=is_on).result()

    def _installed(self, workspace: Workspace) -> Inventory:
        """What is installed for a workspace just read. Servers are started and ended as it asks.

        Nothing waits for them: a deny must not wait for a server that is slow to start.
        """
        if self._wishes.inventory:
            return self._wishes.inventory
        self._wanted = wanted_servers(workspace.sources())
        self.servers.want(self._needed(workspace)).add_done_callback(lambda done: self._sync())
        return self._with_servers(installed(workspace, self._wanted, ()))

    def _needed(self, workspace: Workspace) -> list[ServerSpec]:
        """The servers that some agent could use which this host is for: as its file says, or as it is in force."""
        given = [read_agent_file(path, str(path)) for path in self._wishes.also if path.is_file()]
        agents = [*given, *workspace.agents] or [workspace.agent(DEFAULT_AGENT)]
        profiles = {agent.id: [agent.profile] for agent in agents}
        for name, seat in self.dispatcher.seats.items() if self._is_started else ():
            profiles.setdefault(name, []).append(seat.gate.profile)
        wanted = [p for name, found in profiles.items() if self._agents is None or name in self._agents for p in found]
        return [spec for spec in self._wanted.specs if any(could_use(profile, spec.name) for profile in wanted)]

    def _is_trusted(self, spec: ServerSpec) -> bool:
        return spec.error is None and (spec.digest in self._trusted or self._wanted.store.is_trusted(spec))

    def _gate(self, profile: Profile) -> Gate:
        return Gate(
            profile, self.dispatcher.inventory, door=self._wishes.door, agent=profile.id, sink=self.sink,
            approver=self._wishes.approver,
        )  # fmt: skip

    def _hear(self, name: str) -> None:
        self.dispatcher.hear(name)

    def _sync(self) -> None:
        """Brings the gates to what the servers are now."""
        if not self._is_started or self._wishes.inventory:
            return
        with self._syncing:
            changes = self.dispatcher.put(self._with_servers(self.dispatcher.inventory), {})
        self.dispatcher.tell(changes)

    def _with_servers(self, inventory: Inventory) -> Inventory:
        """The inventory with the servers as they are held now; one that is not held is `configured`."""
        asked = {spec.name for spec in self._wanted.specs}
        held = [one for one in self.servers.held if one.server.name in asked]
        names = {one.server.name for one in held}
        others = [Server(name=spec.name, state="configured") for spec in self._wanted.specs if spec.name not in names]
        own = [ext for ext in inventory.extensions if ext.server is None]
        return Inventory(
            extensions=(*own, *(ext for one in held for ext in one.extensions)),
            servers=(*others, *(one.server for one in held)),
            problems=inventory.problems,
        )


def could_use(profile: Profile, server: str) -> bool:
    """Whether some item of a server could pass the profile, as far as can be said before the server lists any."""
    there = Inventory(servers=(Server(name=server),))
    required = (Requirement(pattern=server),)
    layers = [replace(layer, requirements=required) for layer in profile.layers if isinstance(layer, Policy)]
    if not all(_speaks_of(layer, server) for layer in layers if layer.dialect == "patterns"):
        return False
    return bool(profile.layers) and all(
        missing.state != "removed"
        for layer in layers
        if layer.dialect != "patterns"
        for missing in availability(Profile(id=profile.id, layers=(layer,)), there).missing
    )


def _speaks_of(layer: Policy, server: str) -> bool:
    """Whether a positive pattern of dialect B is for items of a server, be it for a single one."""
    known = {("type",): "mcp", ("module",): server}
    positive = [rule for rule in layer.rules if rule.effect == "allow" and "mcp_tool" in rule.kinds]
    return any(
        all(matches(known[test.facets], test.pattern) for test in entry.tests if test.facets in known)
        for rule in positive
        for entry in rule.entries
    )
