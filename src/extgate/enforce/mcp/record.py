"""The record of a busy gateway: what one turn of the loop has judged is written at once, before any of it is sent on.

A write a call would be the dearest part of a relayed call. Nothing runs unrecorded all the same: the hub keeps allowed
calls until `flush` has written them, and refuses them when it cannot.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import msgspec

from extgate.audit.event import Event
from extgate.enforce.mcp.door import ASK
from extgate.enforce.sinks import JsonLines, line_of


class Record:
    """Collects the events of uses on the loop's own thread; all others are written as they come.

    is_waiting: something is collected and not written.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._lines: list[bytes] = []
        self._file: JsonLines | None = None
        self._why = ""

    def open(self, path: Path) -> JsonLines:
        """The file of events. Raises OSError."""
        self._file = _File(path, self)
        return self._file

    @property
    def is_waiting(self) -> bool:
        return bool(self._lines) or bool(self._why)

    def take(self, event: Event) -> bool:
        """Whether it is collected, to be written soon; False: it has to be written now."""
        if threading.get_ident() != self._thread or event.question != "use" or event.action == ASK:
            return False  # what a server asks goes out at once
        if not self._lines:
            self._loop.call_soon(self.flush)  # also where nothing is sent on
        self._lines.append(_line(event))
        return True

    def flush(self) -> None:
        """Writes what is collected; a failure is kept for `settle`."""
        lines, self._lines = self._lines, []
        if not lines or self._file is None:
            return
        try:
            self._file.write(b"".join(lines))
        except OSError as error:
            self._why = type(error).__name__

    def settle(self) -> str:
        """Writes what is collected; what went wrong since the last time, in a word, or the empty text."""
        self.flush()
        why, self._why = self._why, ""
        return why


def _line(event: Event) -> bytes:
    """What `line_of` gives, sooner where no character has to be escaped for terminals."""
    try:
        line = msgspec.json.encode(event.as_dict())
    except (msgspec.MsgspecError, UnicodeError):  # half a surrogate pair
        return line_of(event)
    return line + b"\n" if line.isascii() else line_of(event)


class _File(JsonLines):
    def __init__(self, path: Path, record: Record) -> None:
        super().__init__(path)
        self._record = record

    def __call__(self, event: Event) -> None:
        if not self._record.take(event):
            super().__call__(event)

    def close(self) -> None:
        self._record.flush()
        super().close()
