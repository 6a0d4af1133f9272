"""The way into a running process: this user only, one question and one answer."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from extgate.cli.main import cli
from extgate.control import Control, ask, sockets
from extgate.errors import WorkspaceError

ANSWER = {"lines": ["a: + tool edit"], "waiting": False}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # A socket's path is short on every system, and a test's own folder may be too long for the tests' plain clients.
    with tempfile.TemporaryDirectory(prefix="eg") as short:
        monkeypatch.setenv("XDG_RUNTIME_DIR", f"{short}/run")
        (tmp_path / "office").mkdir()
        yield tmp_path / "office"


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "extgate.cli.main", *args], capture_output=True, text=True, check=False
    )


def test_a_handler_answers_what_it_is_asked(root: Path) -> None:
    with Control(root, {"accept": lambda: ANSWER}) as control:
        assert ask(control.path, "accept") == ANSWER
        assert ask(control.path, "accept") == ANSWER
        assert ask(control.path, "other") == {"error": "expected one of accept"}


def test_only_this_user_reaches_the_socket_and_it_goes_with_the_process(root: Path) -> None:
    with Control(root, {"accept": lambda: ANSWER}) as control:
        assert stat.S_IMODE(control.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(control.path.parent.stat().st_mode) == 0o700
        assert sockets(root) == [control.path]
    assert sockets(root) == []


def test_a_folder_that_others_may_write_is_refused(root: Path) -> None:
    folder = Path(os.environ["XDG_RUNTIME_DIR"]) / "extgate"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.raises(WorkspaceError, match="open to other users"):
        Control(root, {})


@pytest.mark.parametrize("sent", [b"\n", b"[]\n", b"no json\n", b"[" * 4000 + b"\n", b"x" * 10_000, b""])
def test_what_is_no_request_gets_an_error_and_the_next_one_an_answer(root: Path, sent: bytes) -> None:
    with Control(root, {"accept": lambda: ANSWER}) as control:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(os.fspath(control.path))
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            assert b'{"error"' in client.recv(4096)
        assert ask(control.path, "accept") == ANSWER


def test_a_handler_that_fails_answers_with_the_error(root: Path) -> None:
    def fail() -> dict[str, object]:
        raise WorkspaceError("cannot", fix="mend it")

    with Control(root, {"accept": fail}) as control:
        assert ask(control.path, "accept") == {"error": "cannot; mend it"}


def test_a_folder_deep_down_is_reached_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(root / ("d" * 100) / ("e" * 100)))
    with Control(root, {"accept": lambda: ANSWER}) as control:
        assert ask(control.path, "accept") == ANSWER


def test_reload_prints_what_each_process_says(root: Path) -> None:
    with Control(root, {"accept": lambda: ANSWER}):
        done = run("-w", str(root), "reload")
        assert done.stdout == f"process {os.getpid()}:\n  a: + tool edit\n"
        assert done.returncode == 0
        assert '"waiting": false' in run("reload", "-w", str(root), "--json").stdout


def test_reload_without_a_process_says_so_and_sweeps_what_a_dead_one_left(root: Path) -> None:
    with Control(root, {}) as control:
        left = control.path.with_name(control.path.name.replace(str(os.getpid()), "1"))
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(os.fspath(left))
    done = run("reload", "-w", str(root))
    assert done.stdout == "nothing runs here; the next start reads the files as they are\n"
    assert done.returncode == 0
    assert not left.exists()


def test_reload_fails_when_a_process_does(root: Path) -> None:
    def fail() -> dict[str, object]:
        raise WorkspaceError("cannot\x1b[2J")

    with Control(root, {"accept": fail}):
        done = run("reload", "-w", str(root))
    assert done.returncode == 1
    assert "cannot" in done.stderr
    assert "\x1b" not in done.stderr


def test_reload_of_no_workspace_is_an_error(root: Path) -> None:
    assert run("reload", "-w", str(root / "nowhere")).returncode == 1
    assert "reload" in cli.list_commands(None)  # type: ignore[arg-type]
