"""The dispatcher: which agents may take a turn now, and why the others may not; they come back by themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from extgate.core.extension import Inventory, Server
from extgate.core.names import show
from extgate.core.policy import Profile
from extgate.core.require import Missing
from extgate.enforce.gate import Gate
from extgate.enforce.in_force import Change, InForce, Mode
from extgate.errors import WorkspaceError

LIVENESS_S = 30.0
"""A server that was not heard of for longer is not connected, in seconds; `dispatch: {liveness_s: …}` sets another."""


_LONGEST_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One agent's chance of a turn. missing: unmet requirements, each once; error: its profile is not to be used."""

    agent: str
    is_available: bool
    missing: tuple[Missing, ...] = ()
    error: str = ""

    @property
    def reason(self) -> str:
        """What stands in the way, in one line; empty when nothing does."""
        parts = [f"required `{show(m.pattern)}` is not met ({m.detail})" for m in self.missing]
        return "; ".join([*parts, *([show(self.error)] if self.error else [])])


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Who takes a turn: the first available of those asked; None when none is. skipped: those before it, with why."""

    agent: str | None
    skipped: tuple[Standing, ...] = ()


class Liveness:
    """When each server was last heard of. now: seconds of a clock that only goes forward."""

    def __init__(self, *, bound_s: float = LIVENESS_S, now: Callable[[], float] = time.monotonic) -> None:
        self.bound_s = bound_s
        self._now = now
        self._heard: dict[str, float] = {}

    def hear(self, name: str) -> None:
        """Notes that the server has just shown that it lives."""
        self._heard[name] = self._now()

    def judge(self, server: Server) -> Server:
        """The server as it counts now: `connected` only when it was heard of within the bound."""
        if server.state != "connected":
            return server
        heard = self._heard.get(server.name)
        if heard is not None and self._now() - heard <= self.bound_s:
            return server
        age = "never heard of" if heard is None else f"not heard of for {self._now() - heard:.0f} s"
        return replace(server, state="configured", error=f"{age}; more than {self.bound_s:g} s is not connected")

    def expires_in_s(self, names: Iterable[str]) -> float | None:
        """Seconds until the first of these servers is no longer connected, unless it is heard of; None without any."""
        left = [self._heard[name] + self.bound_s - self._now() for name in names if name in self._heard]
        return max(0.0, min(left)) if left else None


class Expiry:
    """Refreshes a dispatcher, in a thread of its own, whenever a server's liveness has become too old."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="extgate-liveness", daemon=True)

    def __enter__(self) -> Expiry:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        bound_s = self._dispatcher.liveness.bound_s
        left: float | None = 0.0
        # A server that is heard of meanwhile expires later, one that comes up no sooner than a bound from now.
        while not self._is_over.wait(min(bound_s if left is None else left + bound_s / 100, _LONGEST_S)):
            self._dispatcher.refresh()
            left = self._dispatcher.expires_in_s()


class Dispatcher:
    """Seats agents, each behind its gate, and keeps their inventories as fresh as what was heard.

    on_change: called after a gate's answers became others, outside of locks. Safe for threads.
    """

    def __init__(
        self,
        inventory: Inventory,
        *,
        mode: Mode = "auto",
        liveness: Liveness | None = None,
        on_change: Callable[[Change], None] = lambda change: None,
    ) -> None:
        self.mode: Mode = mode
        self.liveness = liveness or Liveness()
        self._on_change = on_change
        self._lock = threading.RLock()
        self._seats: dict[str, InForce] = {}
        self._below: WeakKeyDictionary[Gate, InForce] = WeakKeyDictionary()
        self._inventory = inventory
        for server in inventory.servers:
            if server.state == "connected":
                self.liveness.hear(server.name)

    @property
    def inventory(self) -> Inventory:
        """What is installed now; a server that was not heard of in time is not `connected`."""
        with self._lock:
            servers = tuple(self.liveness.judge(server) for server in self._inventory.servers)
            return self._inventory if servers == self._inventory.servers else replace(self._inventory, servers=servers)

    # ------------------------------------------------------------------------------------------ seats

    def seat(self, gate: Gate, *, error: str = "") -> InForce:
        """Takes an agent in. error: why it has no policy to run under; it is listed, and skipped."""
        seat = InForce(gate, mode=self.mode)
        if error:
            seat.withdraw(error)
        with self._lock:
            self._seats[gate.agent] = seat
        return seat

    def leave(self, agent: str) -> None:
        """Forgets an agent."""
        with self._lock:
            self._seats.pop(agent, None)

    @property
    def seats(self) -> Mapping[str, InForce]:
        """Every seat by agent, as they are now."""
        with self._lock:
            return dict(self._seats)

    def set_mode(self, mode: Mode) -> None:
        """Sets how changes take effect, for the gates that are here and those to come."""
        with self._lock:
            self.mode = mode
            for seat in self._all():
                seat.set_mode(mode)

    def accept(self) -> tuple[Change, ...]:
        """Puts in force what waits, for every gate; nobody is told."""
        with self._lock:
            return tuple(seat.accept() for seat in self._all())

    def seated(self, agent: str) -> InForce:
        """The seat of an agent. Raises WorkspaceError when it has none."""
        with self._lock:
            found = self._seats.get(agent)
            known = ", ".join(sorted(self._seats)) or "none"
        if found is None:
            raise WorkspaceError(f"no agent `{show(agent)}`", fix=f"the agents are {known}")
        return found

    # ------------------------------------------------------------------------------------------ news

    def install(self, inventory: Inventory) -> tuple[Change, ...]:
        """Puts another inventory in force for every gate, and tells; `connected` in it means heard of just now."""
        for server in inventory.servers:
            if server.state == "connected":
                self.liveness.hear(server.name)
        return self.tell(self.put(inventory, {}))

    def put(self, inventory: Inventory, profiles: Mapping[str, Profile]) -> tuple[Change, ...]:
        """Puts an inventory and new profiles, by their id, in force together; one change for each gate, nobody told.

        Together, so that an item which comes with the rule that denies it is never seen. A server that is `connected`
        in it counts so only if it was heard of.
        """
        with self._lock:
            self._inventory = inventory
            now = self.inventory
            return tuple(seat.offer(profile=profiles.get(seat.profile_id), inventory=now) for seat in self._all())

    def hear(self, server: str) -> tuple[Change, ...]:
        """Notes that a connected server lives."""
        self.liveness.hear(server)
        return self.refresh()

    def refresh(self) -> tuple[Change, ...]:
        """Brings every gate to what is known now; returns what changed in their answers."""
        with self._lock:
            inventory = self.inventory
            stale = [seat for seat in self._all() if seat.gate.inventory.version != inventory.version]
            changes = tuple(seat.offer(inventory=inventory) for seat in stale)
        return self.tell(changes)

    def tell(self, changes: Iterable[Change]) -> tuple[Change, ...]:
        """Hands each real change to `on_change`; returns all of them."""
        changes = tuple(changes)
        for change in changes:
            if change:
                self._on_change(change)
        return changes

    def _all(self) -> list[InForce]:
        """Every seat, each followed by those of its sub-agents that run under a profile of their own."""
        found: list[InForce] = []
        for seat in self._seats.values():
            found.append(seat)
            for gate in seat.gate.below:
                if gate.own_profile is not None:
                    found.append(self._below.get(gate) or InForce(gate, mode=self.mode, own=gate.own_profile))
                    self._below[gate] = found[-1]
        return found

    def expires_in_s(self) -> float | None:
        """Seconds until a server that is connected now no longer is, unless it is heard of; None without any."""
        return self.liveness.expires_in_s(s.name for s in self.inventory.servers if s.state == "connected")

    # ------------------------------------------------------------------------------------------ turns

    def standings(self) -> tuple[Standing, ...]:
        """Every agent with its chance of a turn now, by id."""
        self.refresh()
        with self._lock:
            return tuple(_standing(self._seats[agent]) for agent in sorted(self._seats))

    def standing(self, agent: str) -> Standing:
        """One agent's chance of a turn now. Raises WorkspaceError for an agent that is not seated."""
        self.refresh()
        return _standing(self.seated(agent))

    def route(self, *agents: str) -> Route:
        """The first of these agents that may take a turn now. Raises WorkspaceError for one that is not seated."""
        self.refresh()
        skipped: list[Standing] = []
        for agent in agents:
            standing = _standing(self.seated(agent))
            if standing.is_available:
                return Route(agent=agent, skipped=tuple(skipped))
            skipped.append(standing)
        return Route(agent=None, skipped=tuple(skipped))


def _standing(seat: InForce) -> Standing:
    availability = seat.gate.availability
    error = seat.withdrawn or availability.error
    missing = () if seat.withdrawn else availability.missing
    return Standing(
        agent=seat.gate.agent,
        is_available=not error and availability.is_available,
        missing=missing,
        error=error,
    )


def refusal_line(standing: Standing) -> str:
    """Why an agent takes no turn, in one line for people."""
    return f"{show(standing.agent)} is unavailable: {standing.reason}"
