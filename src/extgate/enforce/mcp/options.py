"""What an agent's profile and `extgate.yaml` say of its gateway, besides what may be seen and used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from extgate.core.lists import match_any
from extgate.core.names import Prefix

ASKS = ("sampling", "elicitation", "roots")
"""What a server may ask of a client, by the capability that a client declares."""
ASKED = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}
"""The capability that a server's request needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One agent's gateway.

    prefix, aliases (names by `server/item`): see `core.names.gateway_names`. descriptions: texts by `server/item`.
    no_asks, asks: patterns on `sampling`, `elicitation`, `roots` and `server/sampling`; denied, and the only allowed.
    share: `auto` gives a client sessions of its own with a server as soon as it asks for what belongs to a session;
    `always` never does, and servers can then ask clients nothing; `never` gives every client its own.
    unavailable: while a required server is missing, lists are an `error`, or `empty`.
    """

    prefix: Prefix = "always"
    aliases: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    no_asks: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    share: Literal["auto", "always", "never"] = "auto"
    unavailable: Literal["error", "empty"] = "error"

    def may_ask(self, server: str, what: str) -> bool:
        """Whether a server may ask this agent's client for that."""
        names = (what, f"{server}/{what}")
        is_denied = any(match_any(name, self.no_asks) for name in names)
        return not is_denied and (not self.asks or any(match_any(name, self.asks) for name in names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A bound on the calls of agents to items; each agent is counted apart, its items together.

    name: how messages name it. agents: patterns on ids. items: patterns on `server` and `server/item`. rate: calls a
    second in the long run, `burst` of them at any time. at_once: calls in flight. arguments, result: bytes of one
    call's parameters and answer. call_s: seconds until a call is cancelled. None: no such bound.
    """

    name: str
    agents: tuple[str, ...] = ("*",)
    items: tuple[str, ...] = ("*",)
    rate: float | None = None
    burst: int = 1
    at_once: int | None = None
    arguments: int | None = None
    result: int | None = None
    call_s: float | None = None

    def holds_for(self, agent: str, server: str, item: str, uri: str) -> bool:
        """Whether a call falls under it. A limit counts where any spelling matches, like a deny."""
        names = (server, f"{server}/{item}", f"{server}/{uri}")
        return match_any(agent, self.agents) and any(match_any(name, self.items) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on what anybody may make the gateway hold or wait for; sizes in bytes, times in seconds.

    message: one message of a client or server that is held in memory. answer: an answer of a server, whose longer ones
    lie in files while they are passed on; not more than message turns that off. unsent: what a slow reader leaves in a
    connection. page: items of one answer to a list. pages, items: of a server's list. in_flight: of one client's
    requests. idle_s: of a session. quotas: bounds on agents' calls.
    """

    message: int = 16 * 1024 * 1024
    answer: int = 256 * 1024 * 1024
    unsent: int = 64 * 1024 * 1024
    page: int = 10_000
    pages: int = 1_000
    items: int = 100_000
    in_flight: int = 1_000
    sessions: int = 10_000
    connections: int = 20_000
    events: int = 200
    start_s: float = 30.0
    call_s: float = 600.0
    idle_s: float = 1800.0
    drain_s: float = 10.0
    grace_s: float = 2.0
    quotas: tuple[Quota, ...] = ()
