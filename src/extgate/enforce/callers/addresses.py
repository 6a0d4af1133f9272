"""Addresses that an issuer, and what it names, may have. The settings are read where no HTTP library need be there."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit


def sound_url(url: str) -> SplitResult | None:
    """The parts of an address that an issuer may have: https, or http on this machine; None for any other."""
    try:
        parts = urlsplit(url)
        is_sound = bool(parts.hostname) and parts.port != 0 and not parts.username and parts.password is None
    except ValueError:
        return None
    if not is_sound or parts.fragment or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return None
    if parts.scheme == "https" or (parts.scheme == "http" and is_near(parts)):
        return parts
    return None


def may_lead_to(issuer: SplitResult, url: str) -> bool:
    """Whether an issuer's own document may send the gateway there: never from the outside to this machine or network,
    nor to anything that is not as well kept as the issuer itself."""
    parts = sound_url(url)
    if parts is None or parts.scheme != issuer.scheme:
        return False
    return parts.netloc == issuer.netloc or not is_near(parts)


def is_near(parts: SplitResult) -> bool:
    """Whether an address, as it is written, is this machine's or of a private network."""
    host = (parts.hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host.replace(".", "").isdigit() or host.startswith("0x")  # forms that resolvers take for an address
    return not found.is_global
