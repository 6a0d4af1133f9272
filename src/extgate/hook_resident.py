"""The process that stays behind a workspace's hooks: it answers calls at a Unix socket, and ends when nobody asks.

Started by the first hook call (`hook_client.py`), one for a workspace and an installation. It ends after ten
minutes without a call, and as soon as its socket or its workspace is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import sys
import threading
import time
from pathlib import Path

IDLE_S = 600.0
LOOK_S = 2.0
"""How often it looks whether its socket is still its own, in seconds."""
TALK_S = 5.0
"""How long a hook may take to send its call, in seconds."""
MAX_HEAD = 64 * 1024


def main(path: str, root: str) -> None:
    """Serves until it is not needed. A second one for the same socket ends at once."""
    place = Path(path)
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    os.chdir(place.parent)
    os.umask(0o077)
    with contextlib.suppress(FileNotFoundError):
        place.unlink()
    server = Resident(root)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(place.name)  # relative, so that a deep folder is no longer than the kernel takes
        listener.listen(64)
        try:
            server.run(listener, place)
        finally:
            with contextlib.suppress(FileNotFoundError):
                place.unlink()


class Resident:
    """Answers calls of one workspace's hooks, one after the other."""

    def __init__(self, root: str, *, idle_s: float = IDLE_S) -> None:
        from extgate.hook_session import Sessions  # after the lock: a second process loads nothing

        self._root, self._idle_s, self._sessions = root, idle_s, Sessions()
        self._lock = threading.Lock()
        self._last = time.monotonic()

    def run(self, listener: socket.socket, place: Path) -> None:
        """Accepts until it has been idle for long, or its socket or its workspace is gone."""
        mine = os.stat(place).st_ino
        listener.settimeout(LOOK_S)
        while self._is_needed(place, mine):
            with contextlib.suppress(TimeoutError):
                client, _ = listener.accept()
                self._last = time.monotonic()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _is_needed(self, place: Path, mine: int) -> bool:
        try:
            is_there = os.stat(place).st_ino == mine and os.path.isdir(self._root)
        except OSError:
            return False
        return is_there and time.monotonic() - self._last < self._idle_s

    def _serve(self, client: socket.socket) -> None:
        from extgate.hook_client import GREETING, MAX_PAYLOAD

        with client, contextlib.suppress(OSError, ValueError):
            client.settimeout(TALK_S)
            stream = client.makefile("rb")
            if stream.readline(64) != GREETING:
                return
            head, body = map(int, stream.readline(64).split())
            if not 0 <= head <= MAX_HEAD or not 0 <= body <= MAX_PAYLOAD:
                return
            words, text = stream.read(head), stream.read(body)
            if len(words) != head or len(text) != body:
                return
            client.sendall(self._answer(os.fsdecode(words).split("\0"), text))

    def _answer(self, words: list[str], body: bytes) -> bytes:
        """One whole answer; nothing when the call is for another workspace, which the hook then judges by itself."""
        if len(words) != 5 or words[2] != self._root:
            return b""
        with self._lock:
            code, out, err = self._sessions.answer(words, body)
        return b"%d %d %d\n" % (code, len(out), len(err)) + out + err


if __name__ == "__main__":
    main(*sys.argv[1:3])
