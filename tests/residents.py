"""Ending the processes that hooks leave behind: a test's own lie below its folder."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

PROCESSES = Path("/proc")
"""Where there is none (macOS), a resident ends by itself: once its workspace is gone, or after ten idle minutes."""


def residents(below: Path) -> Iterator[int]:
    """Process ids of the residents whose socket or workspace lies below a folder."""
    mark = os.fsencode(f"{below}{os.sep}")
    for folder in PROCESSES.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"extgate.hook_resident" in words and any(word.startswith(mark) for word in words):
                yield int(folder.name)


def end_residents(below: Path) -> None:
    """Ends them. A hook starts its resident before it ends, so that none comes later."""
    for process in residents(below):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
