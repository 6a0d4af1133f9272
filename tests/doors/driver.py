"""What a driver is: one host with the stock installed, behind one door, asked what it shows and what it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from extgate.core.extension import Extension
from extgate.enforce.gate import Gate


@dataclass(frozen=True, kw_only=True)
class Called:
    """ran: the item's own code was entered, counted there. message: what the model was told; empty when it ran."""

    ran: bool
    message: str = ""


class Hits:
    """Counts what really ran, by id."""

    def __init__(self) -> None:
        self.by_id: Counter[str] = Counter()

    def of(self, ext: Extension) -> Callable[[], str]:
        """The item's own code: counts, and returns what it is."""

        def run() -> str:
            self.by_id[ext.id] += 1
            return f"ran {ext.id}"

        return run


class Driver(Protocol):
    """One door. Each question builds the host anew with everything in the gate's inventory that the host can hold.

    kinds: what the host knows of; the table asks about nothing else. hits: what ran in the last call.
    """

    kinds: frozenset[str]
    hits: Hits

    def list_visible(self, gate: Gate) -> set[str]:
        """Ids of what the model is told of, read from the request it gets."""

    def call(self, gate: Gate, ext: Extension, args: Mapping[str, Any], between: Callable[[], object]) -> Called:
        """A model calls one item, whether it was shown it or not. between: to be called after the model was asked and
        before its call is looked at."""

    def means(self, gate: Gate, ext: Extension) -> tuple[Extension, ...]:
        """What must all be allowed for this one: itself, or all owners of its name, and a host's tool on the way."""
