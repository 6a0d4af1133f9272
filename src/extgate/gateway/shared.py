"""What `gateway.shared` in `extgate.yaml` says: where replicas find what they share, and each other."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from extgate.dialects.node import Node
from extgate.discover.references import NoValueError, fill
from extgate.enforce.callers.proxies import Network, is_within
from extgate.errors import DialectError
from extgate.gateway.callers import network
from extgate.gateway.reading import error, mapping, number, text, texts

KEYS = ("url", "address", "name", "peers", "stale_s", "revision")
LOOPBACK: tuple[Network, ...] = (ipaddress.IPv4Network("127.0.0.0/8"), ipaddress.IPv6Network("::1"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSettings:
    """url: of Redis or Valkey. address: where other replicas reach this one; empty: where it listens. name: of what is
    shared, where several gateways use one Redis. peers: where replicas are. revision: of the files, higher for later
    ones, so that going back to old files can be told from coming late with them."""

    url: str = field(repr=False)
    address: str = ""
    name: str = "extgate"
    peers: tuple[Network, ...] = LOOPBACK
    stale_s: float = 5.0
    revision: int = 0


def read_shared(node: Node, root: Path) -> SharedSettings:
    """What `gateway.shared` says. Raises DialectError at the line of what has no meaning."""
    key = "gateway.shared"
    mapping(node, key, KEYS)

    def value(name: str) -> str:
        try:
            return fill(text(node.get(name), f"{key}.{name}"), os.environ, root)
        except NoValueError as problem:
            line = node.items[name].line
            raise DialectError(f"{key}.{name}: {problem}", file=node.file, line=line, fix=problem.fix) from None

    url, address, peers = value("url"), value("address"), texts(node.get("peers"), f"{key}.peers")
    if urlsplit(url).scheme not in ("redis", "rediss", "unix"):
        raise DialectError(f"{key}.url: expected redis://, rediss:// or unix://", file=node.file, line=node.line)
    stale_s = number(node.get("stale_s"), f"{key}.stale_s")
    if stale_s is not None and not 2 <= stale_s <= 60:
        raise error(node.items["stale_s"], f"{key}.stale_s", "seconds from 2 to 60")
    found = SharedSettings(
        url=url,
        address=address.rstrip("/"),
        name=text(node.get("name"), f"{key}.name") or "extgate",
        peers=tuple(network(peer, node.items["peers"], f"{key}.peers") for peer in peers) or LOOPBACK,
        stale_s=stale_s or 5.0,
        revision=int(number(node.get("revision"), f"{key}.revision", is_whole=True, least=-1) or 0),
    )
    if address and not is_within(urlsplit(address).hostname or "", found.peers):
        raise error(node.items["address"], f"{key}.address", "an address, in one of the networks of `peers`")
    return found
