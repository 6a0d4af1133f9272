"""`extgate hook` itself: hands a call to the process that stays, or judges it here when there is none. Runs as a file.

Only modules that are part of the interpreter are imported, so that it costs little more than starting Python. Whatever
goes wrong is a deny in a form that every runtime takes: exit 2 with the reason on stderr, and what Hermes reads on
stdout. The process that stays is asked only at a socket of this user, in a folder that nobody else can write.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import os
import sys
from binascii import crc32

Answer = tuple[int, bytes, bytes]
MAX_PAYLOAD = 16 * 1024 * 1024
"""A longer call is refused, in bytes; the same as in `reading.py`, which this file cannot import."""
DEADLINE_S = 45
"""Seconds until a call that nobody answered is refused; the hooks that `apply` writes are given 60."""
STAY_S = 10.0
"""Seconds that the process that stays has for an answer, before the call is judged here."""
GREETING = b"extgate-hook 1\n"
PLACES = (
    "HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
    "CLAUDE_CONFIG_DIR", "CODEX_HOME", "HERMES_HOME",
)  # fmt: skip
"""The variables that say where the user's own files are: a call in another place of these is another's."""
OPTIONS = {"--agent": 1, "-w": 2, "--workspace": 2, "--project": 3, "--gateway": 4}
"""By option the place in a question: runtime, agent, workspace, project, gateway."""


def main(argv: list[str]) -> int:
    """The exit code, everything printed. argv: RUNTIME [--agent A] [-w DIR] [--project DIR] [--gateway NAME].

    Does not return when anything goes wrong: the process ends then, with a deny.
    """
    runtime = argv[0] if argv else ""
    is_answered = False
    try:
        _signal.signal(_signal.SIGALRM, lambda *_: _end(runtime, "the gate did not answer in time"))
        _signal.alarm(DEADLINE_S)
        code = _answered(argv)
        is_answered = True
    finally:
        if not is_answered:  # whatever was raised: a call that cannot be judged does not run
            _end(runtime, "it could not be judged")
    return code


def _answered(argv: list[str]) -> int:
    question, body = parsed(argv), stdin()
    if body is None:
        return refuse(question[0], f"it is longer than {MAX_PAYLOAD:,} bytes")
    path = socket_path(question[2])
    found = asked(path, question, body)
    answer = found or judged_here(question, body)
    printed(*answer)
    if found is None:
        stay(path, question[2])
    return answer[0]


def parsed(argv: list[str]) -> list[str]:
    """The question's five words. Raises ValueError for what is no such option."""
    question = [argv[0], "", "", "", ""]
    rest = argv[1:]
    while rest:
        name, sep, value = rest.pop(0).partition("=")
        question[OPTIONS[name]] = value if sep else rest.pop(0)
    question[2] = os.path.realpath(question[2] or ".")
    question[3] = os.path.realpath(question[3] or question[2])
    if any("\0" in word for word in question):
        raise ValueError("a word holds a zero byte")
    return question


def stdin() -> bytes | None:
    """All of stdin; None when it is too long. It is read to its end, so that no writer sees a broken pipe."""
    parts, size = [], 0
    while part := os.read(0, 1 << 20):
        size += len(part)
        if size <= MAX_PAYLOAD:
            parts.append(part)
    return b"".join(parts) if size <= MAX_PAYLOAD else None


def folder() -> str:
    """Where sockets lie; the same as `settings.user_runtime_dir`."""
    runtime, state = os.environ.get("XDG_RUNTIME_DIR", ""), os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(runtime):
        return runtime + "/extgate"
    base = state if os.path.isabs(state) else os.path.expanduser("~/.local/state")
    return base + "/extgate/run"


def socket_path(root: str) -> str:
    """Where the process that stays for a workspace listens, of this installation of extgate and this user's places."""
    here = os.path.realpath(__file__)
    places = "\0".join(os.environ.get(name, "") for name in PLACES)
    key = f"{root}\0{here}\0{os.stat(here).st_mtime_ns}\0{sys.version}\0{places}"
    return f"{folder()}/hook-{crc32(os.fsencode(key)):08x}.sock"


def is_ours(path: str) -> bool:
    """Whether the socket is this user's, in a folder that is this user's alone."""
    place, entry, me = os.lstat(os.path.dirname(path)), os.lstat(path), os.getuid()
    is_private = place.st_mode & 0o170000 == 0o040000 and not place.st_mode & 0o022 and place.st_uid == me
    return is_private and entry.st_mode & 0o170000 == 0o140000 and entry.st_uid == me


def asked(path: str, question: list[str], body: bytes) -> Answer | None:
    """The answer of the process that stays: code, stdout, stderr; None when nobody gives a whole one."""
    try:
        if not is_ours(path):
            return None
        stream = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            stream.settimeout(STAY_S)
            os.chdir(os.path.dirname(path))  # the kernel takes no long path; all that is named later is absolute
            stream.connect(os.path.basename(path))
            peer = stream.getsockopt(_socket.SOL_SOCKET, getattr(_socket, "SO_PEERCRED", 17), 12)
            if int.from_bytes(peer[4:8], sys.byteorder) != os.getuid():
                return None
            head = os.fsencode("\0".join(question))
            data = memoryview(GREETING + b"%d %d\n" % (len(head), len(body)) + head + body)
            while data:
                data = data[stream.send(data) :]
            return _answer(stream)
        finally:
            stream.close()
    except (OSError, ValueError):
        return None


def _answer(stream: _socket.socket) -> Answer | None:
    data = b""
    while part := stream.recv(1 << 16):
        data += part
    line, found, rest = data.partition(b"\n")
    code, out, err = map(int, line.split())
    if not found or len(rest) != out + err:
        return None
    return code, rest[:out], rest[out:]


def judged_here(question: list[str], body: bytes) -> Answer:
    """The answer, made in this process."""
    if "site" not in sys.modules:
        import site

        site.main()
    from extgate.hook_session import answer

    return answer(question, body)


def stay(path: str, root: str) -> None:
    """Starts the process that stays, for the next calls. Where that cannot be done they are judged like this one."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LD_"))}
    null = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)]
    words = [sys.executable, "-I", "-m", "extgate.hook_resident", path, root]
    try:
        os.posix_spawn(sys.executable, words, env, file_actions=null, setsid=True)
    except (OSError, NotImplementedError, ValueError):
        return


def printed(code: int, out: bytes, err: bytes) -> None:
    """Writes an answer out whole. Raises OSError."""
    for number, text in ((1, out), (2, err)):
        data = memoryview(text)
        while data:
            data = data[os.write(number, data) :]


def refuse(runtime: str, reason: str) -> int:
    """A deny that every runtime takes, and its exit code. reason: ASCII without quotes."""
    reason = f"extgate refuses this call: {reason}."
    out = b'{"action": "block", "message": "%s"}\n' % reason.encode() if runtime == "hermes" else b""
    try:  # noqa: SIM105  (contextlib would have to be loaded)
        printed(2, out, reason.encode() + b"\n")
    except OSError:
        pass  # nobody reads; the code still says it
    return 2


def _end(runtime: str, reason: str) -> None:
    os._exit(refuse(runtime, reason))


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
