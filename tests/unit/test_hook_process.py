"""The hook as a process, as a runtime starts it: what it prints and how it ends, whatever is wrong around it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from extgate import hook_client
from extgate.control import Control
from extgate.hook_resident import Resident
from extgate.hook_session import Sessions
from tests.residents import end_residents, residents

DENY = "permissionDecision"
SOURCE = Path(hook_client.__file__).parent


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A workspace, and a home beside it; no process stays after the test."""
    root = tmp_path / "ws"
    (root / "agents").mkdir(parents=True)
    (root / "agents" / "a.yaml").write_text("id: a\ntools: {disabled: [bash]}\n")
    (tmp_path / "home").mkdir()
    yield tmp_path
    end_residents(tmp_path)


def run(
    place: Path,
    call: Any,
    *,
    runtime: str = "claude-code",
    words: tuple[str, ...] | None = None,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    body = call if isinstance(call, bytes) else json.dumps(call).encode()
    words = ("--agent", "a", "-w", str(place / "ws")) if words is None else words
    command = [sys.executable, "-I", "-S", hook_client.__file__, runtime, *words]
    env = {"PATH": os.environ["PATH"], "HOME": str(place / "home"), **(env or {})}
    done = subprocess.run(command, input=body, capture_output=True, env=env, cwd=cwd, timeout=100)
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/", "tool_name": tool, "tool_input": args}


def denied(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether Claude Code would not run the call."""
    return done.returncode == 2 or (done.returncode == 0 and f'"{DENY}": "deny"' in done.stdout)


def sockets(place: Path) -> list[Path]:
    return list((place / "home" / ".local" / "state" / "extgate" / "run").glob("*.sock"))


def wait_for_socket(place: Path) -> Path:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for path in sockets(place):
            with socket.socket(socket.AF_UNIX) as probe, contextlib.chdir(path.parent):
                try:
                    probe.connect(path.name)
                except OSError:
                    continue
                return path
        time.sleep(0.02)
    raise AssertionError("no process stays")


def test_a_call_is_judged_and_the_next_ones_by_the_process_that_stays(place: Path) -> None:
    first = run(place, call("Bash", command="ls"))
    assert denied(first)
    assert "disabled" in first.stdout
    path = wait_for_socket(place)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o077 == 0
    passed = run(place, call("Read", file_path="x"))
    assert (passed.returncode, passed.stdout, passed.stderr) == (0, "", "")
    assert denied(run(place, call("Bash", command="ls")))
    # An edit binds the next call, whoever answers it.
    (place / "ws" / "agents" / "a.yaml").write_text("id: a\ntools: {disabled: [read]}\n")
    assert denied(run(place, call("Read", file_path="x")))
    assert not denied(run(place, call("Bash", command="ls")))
    # So does a file that can no longer be read, and one that is gone.
    (place / "ws" / "agents" / "a.yaml").write_text("tools: [")
    assert denied(run(place, call("Read", file_path="x")))
    (place / "ws" / "agents" / "a.yaml").unlink()
    assert denied(run(place, call("WebFetch", url="x")))
    events = [json.loads(line) for line in next((place / "home").rglob("audit/*.jsonl")).read_text().splitlines()]
    assert [event["outcome"] for event in events][:3] == ["refused", "allowed", "refused"]
    assert {event["door"] for event in events} == {"hook:claude-code"}


def test_the_process_that_stays_is_ended_by_its_id(place: Path) -> None:
    run(place, call("Read", file_path="x"))
    wait_for_socket(place)
    assert len(list(residents(place))) == (1 if sys.platform == "linux" else 0)
    assert not list(residents(place / "ws" / "agents"))
    end_residents(place)
    deadline = time.monotonic() + 60
    while list(residents(place)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not list(residents(place))


@pytest.mark.parametrize("body", [b"", b'{"tool_name": "Read", "tool_input": {}, "tool_name": "Bash"}'], ids=repr)
def test_what_cannot_be_read_is_refused(place: Path, body: bytes) -> None:
    assert denied(run(place, body))


def test_a_call_that_is_too_long_is_refused_and_read_to_its_end(place: Path) -> None:
    done = run(place, b'{"tool_name": "Read", "x": "' + b"y" * (hook_client.MAX_PAYLOAD + 1) + b'"}')
    assert done.returncode == 2
    assert "longer than" in done.stderr


@pytest.mark.parametrize(
    ("words", "runtime"),
    [
        (("--agent", "nobody", "-w", "WS"), "claude-code"),
        (("--agent", "a", "-w", "/no/such/folder"), "claude-code"),
        (("--agent", "a", "-w", "WS", "--allow-all", "yes"), "claude-code"),
        (("--agent",), "claude-code"),
        (("--agent", "a", "-w", "WS"), "no-such-runtime"),
        ((), ""),
    ],
)
def test_a_hook_that_is_called_wrongly_refuses(place: Path, words: tuple[str, ...], runtime: str) -> None:
    words = tuple(str(place / "ws") if word == "WS" else word for word in words)
    assert denied(run(place, call("Read", file_path="x"), words=words, runtime=runtime))


def test_what_hermes_reads_is_printed_whatever_goes_wrong(place: Path) -> None:
    done = run(place, call("read_file", path="x"), runtime="hermes", words=("--no-such",))
    assert json.loads(done.stdout)["action"] == "block"
    done = run(place, b"{", runtime="hermes")
    assert json.loads(done.stdout)["action"] == "block"


def test_a_project_cannot_plant_code_that_the_hook_runs(place: Path) -> None:
    planted = place / "ws" / "planted"
    planted.mkdir()
    for name in ("json", "extgate", "site", "sitecustomize", "usercustomize", "os", "binascii", "yaml", "hook_session"):
        (planted / f"{name}.py").write_text(f"open({str(place / 'PWNED')!r}, 'w')\nraise SystemExit(0)\n")
    env = {"PYTHONPATH": str(planted), "PYTHONSTARTUP": str(planted / "json.py"), "PYTHONHOME": str(planted),
           "PYTHONUSERBASE": str(planted), "PYTHONINSPECT": "1"}  # fmt: skip
    assert denied(run(place, call("Bash", command="ls"), env=env, cwd=planted))
    wait_for_socket(place)
    assert denied(run(place, call("Bash", command="ls"), env=env, cwd=planted))
    assert not (place / "PWNED").exists()


def answering(path: Path, answer: bytes) -> threading.Thread:
    """A process that is not extgate's, which answers one connection."""
    listener = socket.socket(socket.AF_UNIX)
    with contextlib.chdir(path.parent):
        listener.bind(path.name)
    listener.listen(1)
    listener.settimeout(30)

    def serve() -> None:
        with listener, contextlib.suppress(OSError):
            client, _ = listener.accept()
            with client:
                client.recv(65536)
                client.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


@pytest.fixture
def socket_at(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the process that stays would listen, its folder made."""
    monkeypatch.setenv("HOME", str(place / "home"))
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    path = Path(hook_client.socket_path(str((place / "ws").resolve())))
    path.parent.mkdir(parents=True, mode=0o700)
    return path


@pytest.mark.parametrize("name", hook_client.PLACES)
def test_calls_with_other_places_of_the_users_files_do_not_ask_one_process(
    place: Path, socket_at: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    root = str((place / "ws").resolve())
    before = hook_client.socket_path(root)
    monkeypatch.setenv(name, str(place / "another"))
    assert hook_client.socket_path(root) != before


def test_every_variable_that_says_where_files_are_is_told_apart() -> None:
    code = "".join((SOURCE / name).read_text() for name in ("homes.py", "settings.py", "runtime_places.py"))
    found = set(re.findall(r'"((?:XDG_[A-Z_]+|[A-Z]+_CONFIG_DIR|[A-Z]+_HOME))"', code))
    assert found - {"XDG_RUNTIME_DIR"} <= set(hook_client.PLACES)
    assert {"XDG_CONFIG_HOME", "CODEX_HOME"} <= found


def test_an_open_folder_of_sockets_is_not_asked(place: Path, socket_at: Path) -> None:
    socket_at.parent.chmod(0o777)
    answering(socket_at, b"0 0 0\n")
    assert denied(run(place, call("Bash", command="ls")))


@pytest.mark.parametrize("answer", [b"", b"0 5 0\nab", b"nonsense\n"], ids=repr)
def test_half_an_answer_is_none(place: Path, socket_at: Path, answer: bytes) -> None:
    answering(socket_at, answer)
    assert denied(run(place, call("Bash", command="ls")))


def test_a_file_or_a_link_in_the_sockets_place_is_not_asked(place: Path, socket_at: Path) -> None:
    elsewhere = place / "elsewhere.sock"
    answering(elsewhere, b"0 0 0\n")
    socket_at.symlink_to(elsewhere)
    assert denied(run(place, call("Bash", command="ls")))


def test_the_process_that_stays_answers_for_its_own_workspace_only(place: Path) -> None:
    resident = Resident(str(place / "ws"))
    assert resident._answer(["claude-code", "a", str(place), str(place), ""], b"{}") == b""
    assert resident._answer(["claude-code", "a"], b"{}") == b""
    assert b"deny" in resident._answer(["claude-code", "a", str(place / "ws"), str(place / "ws"), ""], b"{}")


def test_a_command_whose_python_is_gone_still_refuses(place: Path) -> None:
    from extgate.applied.plan import Ground

    shell = Ground.shell_hook.fget  # type: ignore[attr-defined]
    made = type("G", (), {"hook": ("/no/such/python", hook_client.__file__, "claude-code")})()
    done = subprocess.run(["/bin/sh", "-c", shell(made)], input=b"{}", capture_output=True)
    assert done.returncode == 2


def test_what_is_required_is_met_by_what_a_running_gateway_holds(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place / "home"))
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    root = place / "ws"
    (root / "agents" / "a.yaml").write_text("id: a\nmcp: {required: [wiki]}\n")
    (root / ".mcp.json").write_text('{"mcpServers": {"wiki": {"command": "/bin/false"}}}')
    words, body = ["claude-code", "a", str(root), str(root), ""], json.dumps(call("Read", file_path="x")).encode()
    sessions = Sessions()
    assert b"unavailable" in sessions.answer(words, body)[1]
    live = ["wiki"]
    with Control(root, {"connected": lambda: {"connected": list(live)}}):
        assert sessions.answer(words, body) == (0, b"", b"")
        live.clear()
        assert b"unavailable" in sessions.answer(words, body)[1]
    assert b"unavailable" in sessions.answer(words, body)[1]
