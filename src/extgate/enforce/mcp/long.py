"""Answers that are too long to be held or copied: sent on piece by piece, those of servers from a file without a name.

A message stays one: it is parsed whole, by the parser of all others, before the first byte of it goes anywhere. Only
where its bytes lie is another: in the file, of which no more is in memory than the piece that is sent.
"""

from __future__ import annotations

import mmap
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from typing import IO

from extgate.enforce.mcp.envelope import ONE_LINE, Value, encode

PIECE = 256 * 1024
MAX_STORED = 4 * 1024**3
"""What all long answers of the process may take on the disk, in bytes."""

Parts = list[Value | memoryview]


class TooLongError(Exception):
    """Why no more of a message is taken, in one line."""


class _Disk:
    """What is stored now, in bytes."""

    used = 0

    def take(self, size: int) -> None:
        if self.used + size > MAX_STORED:
            raise TooLongError("is too long beside the other long ones that are on their way")
        self.used += size

    def give_back(self, size: int) -> None:
        self.used -= size


_DISK = _Disk()


class Pieces:
    """A message that comes piece by piece: in memory up to `held` bytes, in a file up to `limit`."""

    def __init__(self, held: int, limit: int) -> None:
        self.held, self.limit, self.size = held, limit, 0
        self._parts: list[bytes] = []
        self._file: IO[bytes] | None = None
        self._stored = 0

    def add(self, data: bytes) -> None:
        """Takes a piece. Raises TooLongError."""
        self.size += len(data)
        if self.size <= self.held:
            self._parts.append(data)
            return
        if self.size > self.limit:
            raise TooLongError(f"is longer than {max(self.held, self.limit)} bytes")
        _DISK.take(len(data) if self._file else self.size)
        self._stored = self.size
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the message is whole or given up
                self._file.writelines(self._parts)
                self._parts = [self.head]
            self._file.write(data)
        except OSError as error:
            raise TooLongError(f"cannot be kept ({type(error).__name__})") from None

    @property
    def head(self) -> bytes:
        """How it begins."""
        return b"".join(part[:4096] for part in self._parts[:4096])[:4096]

    def take(self) -> bytes | memoryview:
        """The whole message, and begins anew. Raises TooLongError when it cannot be kept."""
        file, parts, size = self._file, self._parts, self.size
        if file is None:
            self.drop()
            return parts[0] if len(parts) == 1 else b"".join(parts)
        try:
            file.flush()
            mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise TooLongError(f"cannot be kept ({type(error).__name__})") from None
        weakref.finalize(mapped, _DISK.give_back, size)
        self._stored = 0
        self.drop()
        return memoryview(mapped)

    def drop(self) -> None:
        """Forgets what came."""
        if self._file is not None:
            self._file.close()
        _DISK.give_back(self._stored)
        self._file, self._parts, self.size, self._stored = None, [], 0, 0


class Long:
    """A message in parts. source: the file that most of it lies in, None where all is in memory, and in one line.
    instead: what is sent to whoever asks for it a second time."""

    def __init__(self, parts: Parts, source: memoryview | None, instead: bytes) -> None:
        self._parts = [memoryview(part) for part in parts]
        self._mapped = source.obj if source is not None else None
        self.instead = instead
        self.let_go()

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def pieces(self) -> Iterator[bytes | memoryview]:
        """All of it, in one line, in order."""
        for part in self._parts:
            for start in range(0, len(part), PIECE):
                piece = part[start : start + PIECE]
                yield piece if self._mapped is None else bytes(piece).translate(ONE_LINE)
                self.let_go()

    def let_go(self) -> None:
        """Takes what was read of the file out of memory."""
        if isinstance(self._mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self._mapped.madvise(mmap.MADV_DONTNEED)


Data = bytes | Long


def parts_of(fields: Mapping[str, Value | Parts]) -> Parts:
    """What `envelope.write` would write, without a copy."""
    parts: Parts = []
    for key, value in fields.items():
        parts += [b"," if parts else b"{", encode(key) + b":"]
        parts += value if isinstance(value, list) else [value]
    return [*(parts or [b"{"]), b"}"]
