"""Limits on calls, by agent and item: how often, how many at once, how much, how long. A refusal says what may be done.

What is counted lies in `Counters`: of this process alone, or of all replicas. Sizes and times need no counting.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from extgate.core.names import show
from extgate.enforce.mcp.call import Call
from extgate.enforce.mcp.envelope import text_of
from extgate.enforce.mcp.options import Quota

MAX_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class Want:
    """What one call takes of one count. key: names the count; lease_s: how long it may be in flight at most."""

    key: str
    rate: float | None
    burst: int
    at_once: int | None
    lease_s: float


@dataclass(frozen=True, slots=True)
class Taken:
    """Whether a call got what it wants. short: which want is not met, None when all are; wait_s: until it may be, 0
    where that is when another call ends. error: why nobody knows, which is a refusal as well."""

    short: int | None = None
    wait_s: float = 0.0
    error: str = ""


class Counters(Protocol):
    """Takes all of a call's wants or none, and says so through `then`, at once or later; `leave` when it has ended."""

    def take(self, wants: Sequence[Want], lease: str, then: Callable[[Taken], None]) -> None: ...

    def leave(self, wants: Sequence[Want], lease: str) -> None: ...


class MemoryCounters:
    """The counts of one process. clock: seconds that only go forward."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._running: dict[str, set[str]] = {}

    def take(self, wants: Sequence[Want], lease: str, then: Callable[[Taken], None]) -> None:
        now, left = self._clock(), []
        for place, want in enumerate(wants):
            had, at = self._buckets.get(want.key, (float(want.burst), now))
            has = min(float(want.burst), had + (now - at) * (want.rate or 0.0))
            if want.rate is not None and has < 1.0:
                then(Taken(place, (1.0 - has) / want.rate))
                return
            if want.at_once is not None and len(self._running.get(want.key, ())) >= want.at_once:
                then(Taken(place))
                return
            left.append(has)
        for want, has in zip(wants, left, strict=True):
            if want.rate is not None:
                self._buckets[want.key] = (has - 1.0, now)
            if want.at_once is not None:
                self._running.setdefault(want.key, set()).add(lease)
        then(Taken())

    def leave(self, wants: Sequence[Want], lease: str) -> None:
        for want in wants:
            self._running.get(want.key, set()).discard(lease)


@dataclass(eq=False, slots=True)
class Lease:
    """What a call that passed holds. leave: gives back what it counts for; more than once is once."""

    result: tuple[int, str] | None
    leave: Callable[[], None]


@dataclass(eq=False, slots=True)
class Quotas:
    """The limits in force, and the counts. call_s: after which any call has ended."""

    call_s: float = 600.0
    rows: tuple[Quota, ...] = ()
    counters: Counters = field(default_factory=MemoryCounters)
    _known: dict[tuple[str, str, str, str], tuple[Quota, ...]] = field(default_factory=dict)
    _last: int = 0
    _own: str = field(default_factory=lambda: secrets.token_hex(8))

    def configure(self, rows: tuple[Quota, ...]) -> None:
        """Puts other limits in force. A limit that is as it was goes on counting."""
        if rows != self.rows:
            self.rows, self._known = rows, {}

    def of(self, agent: str, call: Call) -> tuple[Quota, ...]:
        """The limits that a call falls under."""
        if call.ext is None:
            return ()
        uri = call.params.get("uri")  # of a resource, where the item may be a template
        key = (agent, call.server, call.ext.name, (text_of(uri) or "") if uri is not None else call.ext.name)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MAX_KNOWN:
                self._known = {}
            found = self._known[key] = tuple(row for row in self.rows if row.holds_for(*key))
        return found

    def admit(
        self, agent: str, call: Call, found: tuple[Quota, ...], late: Callable[[str], None], then: Callable[[str], None]
    ) -> None:
        """Lets a call pass, with its `lease` set, or not: `then` gets the empty text, or why. late: called when it has
        taken too long, with why."""
        size = sum(len(bytes(value)) for value in call.params.values())
        for row in found:
            if row.arguments is not None and size > row.arguments:
                then(f"it is given {size} bytes, and {row.name} allows {row.arguments}")
                return
        self._last += 1
        lease = f"{self._own}.{self._last}"
        counted = [row for row in found if row.rate is not None or row.at_once is not None]
        wants = [_want(row, agent, row.call_s or self.call_s) for row in counted]

        def taken(taken: Taken) -> None:
            if taken.short is not None or taken.error:
                then(_why_not(counted, taken))
                return
            call.lease = self._lease(found, wants, lease, late)
            then("")

        if wants:
            self.counters.take(wants, lease, taken)
        else:
            taken(Taken())

    def _lease(self, found: tuple[Quota, ...], wants: list[Want], lease: str, late: Callable[[str], None]) -> Lease:
        sizes = [(row.result, row.name) for row in found if row.result is not None]
        times = [(row.call_s, row.name) for row in found if row.call_s is not None]
        timer: asyncio.TimerHandle | None = None
        if times:
            call_s, name = min(times)
            why = f"it had no answer within the {call_s:g} s that {name} allows, and was cancelled"
            timer = asyncio.get_running_loop().call_later(call_s, late, why)
        is_left = False

        def leave() -> None:
            nonlocal is_left
            if timer is not None:
                timer.cancel()
            if wants and not is_left:
                self.counters.leave(wants, lease)
            is_left = True

        return Lease(min(sizes, default=None), leave)


def _want(row: Quota, agent: str, lease_s: float) -> Want:
    key = f"{row.name}\n{row.agents}\n{row.items}\n{row.rate}\n{row.burst}\n{row.at_once}\n{agent}"
    return Want(key, row.rate, row.burst, row.at_once, lease_s)


def _why_not(counted: list[Quota], taken: Taken) -> str:
    if taken.short is None:
        return f"its limits cannot be counted: {taken.error}"
    row = counted[taken.short]
    if taken.wait_s > 0:
        return f"{row.name} is used up; try again in {math.ceil(taken.wait_s)} s"
    return f"{row.name} is used up; try again when one of the calls in flight has ended"


def refused_text(name: str, why: str) -> str:
    """What the model reads."""
    return f"'{show(name)[:200]}' is refused for now: {why}."
