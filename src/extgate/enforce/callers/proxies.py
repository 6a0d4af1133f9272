"""Callers whom a proxy in front has known by their certificates; believed of the proxy's own addresses alone."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from extgate.core.lists import match_any
from extgate.enforce.callers.verdict import Verdict

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
MAX_IDENTITY = 4096
BY_CERTIFICATE = "certificate:"
"""How the names of callers begin whom a proxy has known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxies:
    """peers: where the proxies are. header: names the caller, in lower case. agents: patterns by the caller's name.

    proof: a header and the value that it must have besides, as for nginx's `ssl_client_verify`; None: nothing more.
    """

    peers: tuple[Network, ...]
    header: str
    agents: Mapping[str, tuple[str, ...]]
    proof: tuple[str, str] | None = None

    @property
    def headers(self) -> frozenset[str]:
        """The headers that are believed of a proxy."""
        return frozenset({self.header, self.proof[0] if self.proof else self.header})

    def judge(self, headers: Mapping[str, str], peer: str, agent: str) -> Verdict | None:
        """What the header gives; None when there is none. From anybody else than a proxy it is a refusal."""
        name = headers.get(self.header)
        if name is None:
            return None
        if not is_within(peer, self.peers):
            return Verdict(why=f"`{self.header}` is taken from this gateway's proxies alone", status=403)
        if self.proof is not None and headers.get(self.proof[0]) != self.proof[1]:
            return Verdict(why="the proxy does not vouch for this caller's certificate", status=403)
        if not self.knows(name, agent):
            return Verdict(why="this caller's certificate is not one of this agent's", status=403)
        return Verdict(caller=f"{BY_CERTIFICATE}{name}")

    def knows(self, name: str, agent: str) -> bool:
        """Whether the caller of this name may be the agent."""
        patterns = self.agents.get(name, ()) if len(name) <= MAX_IDENTITY else ()
        return bool(patterns) and match_any(agent, patterns)


def is_within(address: str, networks: tuple[Network, ...]) -> bool:
    """Whether an address lies in one of the networks; an IPv4 one that came over IPv6 counts as what it is."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return any(found in network for network in networks if network.version == found.version)
