"""The way into a running process: a Unix socket that only this user can reach, one request and one answer a connection.

Lies in the user's runtime folder (0700), itself 0600, named after the workspace and the process. A request is a JSON
line `{"do": NAME}`; the answer is a JSON line. Who asks must be the same user, by what the kernel says.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import stat
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from extgate.errors import ExtgateError, WorkspaceError
from extgate.settings import user_runtime_dir

MAX_REQUEST = 4096
MAX_ANSWER = 16 * 1024 * 1024
TIMEOUT_S = 30.0
"""How long either side waits for the other, in seconds."""
_MAX_PATH = 100
"""Bytes that a socket's path may have; Linux takes 107, macOS 103."""

Handler = Callable[[], Mapping[str, Any]]


def socket_prefix(root: Path) -> str:
    """What the names of a workspace's sockets begin with."""
    real = os.path.realpath(root).encode("utf-8", "surrogateescape")
    return hashlib.sha256(real).hexdigest()[:16] + "-"


def sockets(root: Path) -> list[Path]:
    """The sockets of processes that run, or ran, on a workspace."""
    folder = user_runtime_dir()
    return sorted(folder.glob(f"{socket_prefix(root)}*.sock")) if folder.is_dir() else []


class Control:
    """Answers requests while it is entered. handlers: by the name that a request asks for.

    Raises WorkspaceError when the folder is not this user's alone.
    """

    def __init__(self, root: Path, handlers: Mapping[str, Handler]) -> None:
        self._handlers = dict(handlers)
        self.path = _private(user_runtime_dir()) / f"{socket_prefix(root)}{os.getpid()}.sock"
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._thread = threading.Thread(target=self._run, name="extgate-control", daemon=True)

    def __enter__(self) -> Control:
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        with _short(self.path) as address:
            self._server.bind(address)  # nobody else can pass the folder meanwhile
            os.chmod(address, 0o600)
        self._server.listen(8)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(OSError):  # closed already when the thread ended by an error
            self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()

    def _run(self) -> None:
        with self._server:
            while True:
                try:
                    client, _ = self._server.accept()
                except OSError:  # shut down
                    return
                with client, contextlib.suppress(OSError):
                    client.settimeout(TIMEOUT_S)
                    client.sendall(self._answer(client))

    def _answer(self, client: socket.socket) -> bytes:
        if _peer(client) not in (None, os.getuid()):
            return _line({"error": "another user may not ask"})
        try:
            request = json.loads(_read_line(client, MAX_REQUEST))
            handler = self._handlers.get(str(request.get("do"))) if isinstance(request, dict) else None
        except (ValueError, RecursionError):
            handler = None
        if handler is None:
            return _line({"error": f"expected one of {', '.join(self._handlers)}"})
        try:
            return _line(handler())
        except (ExtgateError, OSError) as error:
            return _line({"error": str(error)})


def ask(path: Path, what: str) -> dict[str, Any]:
    """The answer of the process behind a socket. Raises OSError when nobody answers, ValueError for no answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(TIMEOUT_S)
        with _short(path) as address:
            client.connect(address)
        client.sendall(_line({"do": what}))
        answer = json.loads(_read_line(client, MAX_ANSWER))
    if not isinstance(answer, dict):
        raise ValueError("the answer is no mapping")
    return answer


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _read_line(client: socket.socket, limit: int) -> bytes:
    data = bytearray()
    while not data.endswith(b"\n") and (part := client.recv(65536)):
        data += part
        if len(data) > limit:
            raise ValueError("the message is too long")
    return bytes(data)


def _private(folder: Path) -> Path:
    """The folder, made where absent. Raises WorkspaceError when others could put sockets there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022:
        fix = f"make it yours alone: chmod 700 {folder}"
        raise WorkspaceError("is open to other users, so no control socket is put there", file=str(folder), fix=fix)
    return folder


def _peer(client: socket.socket) -> int | None:
    """The user id at the other end; None where the system does not tell, and the folder's mode must do."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    _, uid, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return int(uid)


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """An address for the path that the kernel takes, however deep the folder lies."""
    text = os.fspath(path)
    if len(os.fsencode(text)) <= _MAX_PATH:
        yield text
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
