"""One small JSON document of an issuer, with bounds: size, time, no redirects, no encodings, no other place."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

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
