"""Bounded reading of files and of text that others wrote."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Literal

from extgate.core.names import show

Cause = Literal["missing", "unreadable", "too_large"]


class UnreadableError(Exception):
    """A file that was not read: `cause` for the caller, the text for people."""

    def __init__(self, cause: Cause, message: str) -> None:
        super().__init__(message)
        self.cause: Cause = cause


def read_bytes(path: Path, limit: int) -> bytes:
    """The bytes of a regular file. Raises UnreadableError: absent, not readable, no regular file, over `limit` bytes.

    Opened without blocking, so that a pipe in a file's place hangs nothing.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UnreadableError("unreadable", "is not a regular file")
            with open(handle, "rb", closefd=False) as file:
                data = file.read(limit + 1)
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if len(data) > limit:
        raise UnreadableError("too_large", f"holds more than {limit:,} bytes")
    return data


def _unreadable(path: Path, error: OSError | ValueError) -> UnreadableError:
    if isinstance(error, OSError) and error.errno == errno.ENOENT and not path.is_symlink():
        return UnreadableError("missing", "is not there")
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return UnreadableError("unreadable", f"cannot be read ({reason.lower()})")


def is_inside(path: Path, root: Path) -> bool:
    """Whether the path, all links followed, is `root` or lies below it."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def one_line(text: str, limit: int = 300) -> str:
    """The text on one line: control characters and terminal sequences escaped or dropped, cut at `limit` characters."""
    line = show(" ".join(_without_escapes(text[: limit * 20]).split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _without_escapes(text: str) -> str:
    """The text without `ESC [ … letter` sequences, by which programs colour their logs."""
    head, *rest = text.split("\x1b[")
    return head + "".join(part.lstrip("0123456789;?")[1:] for part in rest)


def write_private(path: Path, data: bytes) -> None:
    """Replaces a file at once, readable by this user alone, its folder made where absent. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    finally:
        with suppress(FileNotFoundError):  # replaced: it has the file's name now
            os.unlink(name)
