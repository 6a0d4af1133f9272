"""What comes of asking who calls."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a caller may be an agent.

    why: why not, in one line that names nothing of the caller's; empty: it may. status: of the answer, 401, 403 or 503.
    error: RFC 6750's word for it, empty when nothing was shown. scope: what a token would have to hold. caller: who it
    is, the same for all of its requests; empty where nobody logs in. until: when that ends, on the wall clock.
    """

    why: str = ""
    status: int = 401
    error: str = ""
    scope: str = ""
    caller: str = ""
    until: float = math.inf

    def __bool__(self) -> bool:
        return not self.why


class Check(Protocol):
    """Judges a request by its headers (lower case) and the address that it came from; later where keys are fetched."""

    def __call__(self, headers: Mapping[str, str], peer: str, agent: str) -> Verdict | Awaitable[Verdict]: ...


def anybody(headers: Mapping[str, str], peer: str, agent: str) -> Verdict:
    """Lets every caller be every agent: for loopback."""
    return Verdict()
