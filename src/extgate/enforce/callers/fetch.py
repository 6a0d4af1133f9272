"""One small JSON document of an issuer, with bounds: size, time, no redirects, no encodings, no other place."""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from extgate.enforce.mcp.http_client import Origin

MAX_BYTES = 256 * 1024
TIMEOUT_S = 10.0


class FetchError(Exception):
    """Why a document could not be had."""


async def fetch_json(url: str) -> dict[str, Any]:
    """The JSON object at a URL. Raises FetchError."""
    origin = Origin(url)
    answer = _Answer()
    try:
        async with asyncio.timeout(TIMEOUT_S):
            answer.request = origin.send("GET", {"accept": "application/json"}, b"", answer)
            data = await answer.done
        found = json.loads(data.decode())
    except TimeoutError:
        raise FetchError(f"no answer within {TIMEOUT_S:g} s") from None
    except (ValueError, RecursionError):
        raise FetchError("what it answers is no JSON") from None
    finally:
        origin.close()
    if not isinstance(found, dict):
        raise FetchError("what it answers is no JSON object")
    return found


class _Answer:
    """Takes one response; what is past the bounds ends it."""

    def __init__(self) -> None:
        self.done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.request: Any = None
        self._data = bytearray()

    def on_head(self, status: int, headers: Mapping[str, str]) -> None:
        if status != 200:
            self._fail(f"it answers with status {status}")
        elif headers.get("content-encoding", "identity").lower() != "identity":
            self._fail("it answers in an encoding that was not asked for")

    def on_body(self, data: bytes) -> None:
        self._data += data
        if len(self._data) > MAX_BYTES:
            self._fail(f"it answers with more than {MAX_BYTES} bytes")

    def on_end(self) -> None:
        if not self.done.done():
            self.done.set_result(bytes(self._data))

    def on_lost(self, reason: str) -> None:
        self._fail(reason)

    def _fail(self, why: str) -> None:
        if not self.done.done():
            self.done.set_exception(FetchError(why))
        if self.request is not None:
            self.request.abort()


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
