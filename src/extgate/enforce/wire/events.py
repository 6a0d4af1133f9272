"""Server-sent events as they come: whole frames, each with the bytes it came in.

However the bytes are split, the frames are the same. What parsers of events read differently is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from extgate.enforce.wire import spans
from extgate.enforce.wire.spans import UnclearError

_END = re.compile(rb"\r?\n\r?\n")
_BARE = re.compile(rb"\r(?!\n)")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Some parsers end a line at one of these, and no JSON may hold one."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One event. raw: its bytes with the blank line behind it; kind: its `event`, empty without one; data: as sent,
    several lines joined by line feeds."""

    raw: bytes
    kind: str
    data: bytes


class Frames:
    """A stream cut into frames. limit: longest frame, in bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._rest = bytearray()
        self._looked = 0
        self._is_first = True

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that have come to their end. Raises UnclearError."""
        rest = self._rest
        rest += data
        found, at, look = [], 0, max(self._looked - 3, 0)
        while end := _END.search(rest, look):
            found.append(self._frame(bytes(rest[at : end.end()])))
            at = look = end.end()
        if at:
            self._rest = rest[at:]
        self._looked = len(self._rest)
        if self._looked > self.limit:
            raise UnclearError(f"an event of the answer is longer than {self.limit} bytes")
        return found

    def close(self) -> list[Frame]:
        """What is left when the stream has ended: some parsers take it for an event."""
        rest, self._rest = bytes(self._rest), bytearray()
        return [self._frame(rest)] if rest.strip() else []

    def _frame(self, raw: bytes) -> Frame:
        if len(raw) > self.limit:
            raise UnclearError(f"an event of the answer is longer than {self.limit} bytes")
        if b"\r" in raw and _BARE.search(raw):
            raise UnclearError("an event of the answer has a line that ends in a lone carriage return")
        if self._is_first and raw.startswith(b"\xef\xbb\xbf"):
            raise UnclearError("the answer begins with a byte-order mark")
        if _CONTROL.search(raw):
            raise UnclearError("an event of the answer holds a control character")
        if not raw.isascii():
            spans.checked(raw)
        self._is_first = False
        kind, parts = b"", []
        for line in raw.split(b"\n"):
            name, _, value = line.removesuffix(b"\r").partition(b":")
            if name == b"data":
                parts.append(value.removeprefix(b" "))
            elif name == b"event":
                kind = value.removeprefix(b" ")
        return Frame(raw, kind.decode(), b"\n".join(parts))


def frame(kind: str, data: bytes) -> bytes:
    """An event's bytes. kind: empty for one without a name."""
    head = b"event: " + kind.encode() + b"\n" if kind else b""
    return head + b"data: " + data.replace(b"\n", b"\ndata: ") + b"\n\n"
