"""Where events go: memory, or JSON lines on disk."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from extgate.audit.event import Event, Sink


class Memory:
    """Keeps the newest events in memory; `events` is a copy, oldest first."""

    def __init__(self, most: int = 100_000) -> None:
        self._events: deque[Event] = deque(maxlen=most)

    def __call__(self, event: Event) -> None:
        self._events.append(event)

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)


class JsonLines:
    """Appends each event as one line; safe for threads, and for several processes on one file.

    The file is made with mode 0600. An error of the disk is raised, so that the gate denies.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._lock = threading.Lock()
        self._is_torn = False

    def __call__(self, event: Event) -> None:
        self.write(line_of(event))

    def write(self, lines: bytes) -> None:
        """Appends whole lines. Raises OSError, also when a full disk took a part of them: that was not recorded."""
        with self._lock:
            # One write with O_APPEND: lines of several processes do not mix.
            taken = os.write(self._fd, b"\n" + lines if self._is_torn else lines) - self._is_torn
            self._is_torn = taken < len(lines) if taken >= 0 else self._is_torn
            if taken < len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Closes the file; a later event is an error."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1


_encode = json.JSONEncoder(separators=(",", ":")).encode


def line_of(event: Event) -> bytes:
    """An event as a line of an audit file."""
    return _encode(event.as_dict()).encode() + b"\n"


def both(*sinks: Sink) -> Sink:
    """A sink that hands each event to all of these, in order."""

    def write(event: Event) -> None:
        for sink in sinks:
            sink(event)

    return write


def discard(event: Event) -> None:
    """Keeps nothing. For hosts that record by themselves."""


def read_lines(path: Path) -> Iterator[dict[str, object]]:
    """The events of a file, oldest first; a line that is cut off at the end is passed over."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                event = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(event, dict):
                yield event
