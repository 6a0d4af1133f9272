"""What replicas of a gateway have in common: counts, marks of policies, tokens withdrawn, news, and where each is.

What others know and this one cannot learn is doubt, and doubt denies.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from extgate.enforce.mcp.quotas import Counters

MAX_NEWS = 64 * 1024
SETTINGS = ""
"""The name under which the settings that hold for all agents have their mark."""


class SharedError(Exception):
    """Why the shared state cannot be asked."""


class Shared(Protocol):
    """counters: of calls. on_marks: takes the marks in force everywhere, by agent. on_withdrawn: takes the digests of
    tokens that no replica takes any more. on_news: takes the name of a server whose lists became others. on_empty: is
    awaited when the state is reached for the first time, and when it has forgotten what it knew."""

    replica: str
    counters: Counters
    on_marks: Callable[[Mapping[str, str]], None]
    on_withdrawn: Callable[[frozenset[str]], None]
    on_news: Callable[[str], None]
    on_empty: Callable[[], Awaitable[None]]

    def why_blind(self) -> str:
        """Why it is not known what other replicas know; empty while it is."""

    async def agree(self, agent: str, mine: str, before: str) -> str:
        """The mark in force everywhere, after this replica has come from one to another; `before` is empty at the
        start. Raises SharedError."""

    async def withdraw(self, gone: Iterable[str], back: Iterable[str]) -> None:
        """Tells all replicas of tokens that hold no more, and of those that hold again. Raises SharedError."""

    def tell(self, server: str) -> None:
        """Tells the others that a server's lists became others, if they can be reached."""

    async def place_of(self, replica: str) -> str:
        """Where a replica is; empty when it is no more. Raises SharedError."""


@dataclass(slots=True)
class Agreement:
    """Which agents this replica may serve: those whose policy is here as it is in force everywhere.

    mine, theirs: marks by agent.
    """

    mine: dict[str, str] = field(default_factory=dict)
    theirs: dict[str, str] = field(default_factory=dict)

    def why_not(self, agent: str) -> str:
        """Why an agent is not served here now; empty when it is."""
        for name in (SETTINGS, agent):
            if self.theirs.get(name) != self.mine.get(name):
                what = "the gateway's settings" if name == SETTINGS else "this agent's policy"
                return f"another replica has another version of {what}; it is waited for here"
        return ""

    @property
    def behind(self) -> frozenset[str]:
        """The agents that differ."""
        return frozenset(name for name, mark in self.theirs.items() if name in self.mine and self.mine[name] != mark)


def news_of(data: object) -> tuple[str, str, str] | None:
    """A message of another replica: what it is of, a name and a mark; None for what is none."""
    if not isinstance(data, bytes) or len(data) > MAX_NEWS:
        return None
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, list) and len(found) == 3 and all(isinstance(part, str) for part in found):
        return found[0], found[1], found[2]
    return None
