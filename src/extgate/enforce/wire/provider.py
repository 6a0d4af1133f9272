"""What a provider's dialect is to the rest of the wire. Pure: bytes in, bytes out; the rim alone does I/O.

A provider is a file (or several) with a `PROVIDER`, and a row in `providers.py`; removing both removes it. It says for
each path what becomes of a request (`route`), and how errors of the wire look to its clients (`error`). For a path that
is gated it names an `Api`, three functions:

* `request(body, turn, options)` reads the request by spans into a `Reading` (`reading.py`): groups of rows that stand
  for entries, with the names by which they may be called, and texts with listings. `Reading.judge()` asks the gate once
  about all of it, takes the hidden out and offers the rest to the turn. Nothing to take out: the very same bytes.
  Raises UnclearError for what cannot be understood where a tool could hide (`Reading.check_keys`).
* `answer(body, turn)` takes the whole answer: it asks `turn.begin(name)`, and where that says None
  `turn.finish(name, arguments)`, about each call that the client would run; a text is why the call is stopped.
* `stream(turn)` does the same for an answer that comes in pieces. Any split of the bytes gives the same output. It
  raises UnclearError, and the rim then ends the answer with `failure`.

Never judge by a deny list: a call is let through only when its exact name was offered. What stays keeps its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from extgate.enforce.wire.turn import Turn

MAX_EVENT = 16 * 1024 * 1024
"""Longest event of a streamed answer, in bytes."""


class Stream(Protocol):
    """An answer that comes in pieces. Raises UnclearError, after which it is asked nothing more."""

    def feed(self, data: bytes) -> bytes:
        """What goes to the client now."""

    def close(self) -> bytes:
        """What is left once the provider has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How strict the reading is. unknown: what becomes of fields and entries that nobody here knows where a tool could
    hide: `refuse` refuses the request, `pass` lets them through."""

    unknown: Literal["refuse", "pass"] = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One of a provider's APIs that is gated. failure: the bytes that end a stream which has begun, with the reason."""

    name: str
    request: Callable[[bytes, Turn, Options], bytes]
    answer: Callable[[bytes, Turn], bytes]
    stream: Callable[[Turn], Stream]
    failure: Callable[[str], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What becomes of a path: `gate` by its api, `pass` as it is, or `refuse` for a reason, with a status."""

    act: Literal["gate", "pass", "refuse"]
    api: Api | None = None
    why: str = ""
    status: int = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """url: where it is unless `extgate.yaml` says so. route: by method and path, the path as it came behind the
    provider's part of the address, without its query. error: the body of an error, as JSON. keys: headers in which its
    clients send a key. credential: the headers for a key that extgate holds.
    """

    name: str
    url: str
    route: Callable[[str, str], Route]
    error: Callable[[int, str], bytes]
    keys: tuple[str, ...]
    credential: Callable[[str], Mapping[str, str]]


def refused(why: str, status: int = 404) -> Route:
    """A path that is not served."""
    return Route(act="refuse", why=why, status=status)
