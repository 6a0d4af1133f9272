"""Reading a hook call strictly: what could be read in two ways is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from extgate.enforce.hooks.call import Args

MAX_PAYLOAD = 16 * 1024 * 1024
"""A longer hook call is refused, in bytes."""


class PayloadError(ValueError):
    """A hook call that cannot be read as what it must be."""


def parse(data: bytes) -> Args:
    """The mapping in a hook call. Raises PayloadError: too long, not UTF-8, not JSON, a key that stands twice."""
    if len(data) > MAX_PAYLOAD:
        raise PayloadError(f"the call is longer than {MAX_PAYLOAD:,} bytes")
    try:
        found = json.loads(data.decode("utf-8"), object_pairs_hook=_once)
    except PayloadError:
        raise
    except (ValueError, RecursionError):
        raise PayloadError("the call is not JSON") from None
    if not isinstance(found, dict):
        raise PayloadError("the call is no mapping")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise PayloadError("a key stands twice in the call, so it cannot be known which one runs")
    return found


def text(payload: Args, key: str, *, needed: bool = False) -> str:
    """A key's text; empty where it is absent or null. Raises PayloadError for another type, or when it is needed."""
    value = payload.get(key)
    if value is None and not needed:
        return ""
    if not isinstance(value, str) or (needed and not value):
        raise PayloadError(f"the call has no text as `{key}`")
    return value


def mapping(payload: Args, key: str, *, needed: bool = False) -> Args:
    """A key's mapping; empty where it is absent or null. Raises PayloadError as `text` does."""
    value = payload.get(key)
    if value is None and not needed:
        return {}
    if not isinstance(value, dict):
        raise PayloadError(f"the call has no mapping as `{key}`")
    return value


def dumped(value: Mapping[str, object]) -> str:
    """A line of JSON in ASCII, whatever a reason holds."""
    return json.dumps(value) + "\n"
