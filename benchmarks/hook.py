"""What a hook adds to a tool call, beside a Python process that does nothing, in one run.

    python benchmarks/hook.py [--rounds N] [--json]

Each round starts, one after the other: `python -c pass` of the same interpreter, the hook as `extgate apply` writes it,
and the hook as the `extgate` command has it; for a call that is let pass, a refused one, and one that opens a file.
The process that stays is warm, as it is from a session's second call on; the first call of all has nobody to
ask. Once with the machine as it is, once with every core kept busy. Times are medians of wall seconds; read the ratios.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from extgate import hook_client

PROFILE = "id: a\ntools: {disabled: [Write, 'web_*']}\nskills: {disabled: ['ops-*']}\nmcp: {disabled: ['slack/*']}\n"
CALLS = {
    "let pass": {"tool_name": "TodoWrite", "tool_input": {"todos": []}},
    "refused": {"tool_name": "Write", "tool_input": {"file_path": "x", "content": "y" * 2000}},
    "opens a file": {"tool_name": "Read", "tool_input": {"file_path": "src/x.py"}},
}


def workspace(root: Path) -> Path:
    """A workspace with one agent and forty skills."""
    (root / "agents").mkdir(parents=True)
    (root / "agents" / "a.yaml").write_text(PROFILE)
    (root / "extgate.yaml").write_text("runtime: claude-code\n")
    for number in range(40):
        folder = root / "skills" / (f"ops-{number}" if number % 4 == 0 else f"skill-{number}")
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: d\n---\ntext\n")
    return root


def commands(root: Path) -> dict[str, list[str]]:
    """What is timed, by name. The hook goes through a shell, as runtimes start it."""
    words = ["claude-code", "--agent", "a", "-w", str(root), "--project", str(root)]
    direct = shlex.join([sys.executable, "-I", "-S", hook_client.__file__, *words])
    typed = shlex.join([str(Path(sys.executable).with_name("extgate")), "hook", *words])
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "the hook that apply writes": ["/bin/sh", "-c", f"{direct} || exit 2"],
        "extgate hook": ["/bin/sh", "-c", typed],
    }


def seconds(command: Sequence[str], body: bytes, env: dict[str, str], wanted: str) -> float:
    began = time.perf_counter()
    done = subprocess.run(command, input=body, capture_output=True, env=env, check=True)
    took = time.perf_counter() - began
    assert wanted in done.stdout.decode(), (command, done)
    return took


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Keeps as many cores at work."""
    spin = "x = 0\nwhile True: x += 1"
    others = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def measured(root: Path, env: dict[str, str], rounds: int) -> dict[str, dict[str, float]]:
    """Medians by call and command. The order within a round turns, so that no command always follows the same one."""
    found: dict[str, dict[str, list[float]]] = {}
    timed = list(commands(root).items())
    for number in range(rounds):
        for call, row in CALLS.items():
            body = json.dumps({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": str(root), **row}).encode()
            for name, command in timed[number % len(timed) :] + timed[: number % len(timed)]:
                wanted = "deny" if call == "refused" and "pass" not in name else ""
                found.setdefault(call, {}).setdefault(name, []).append(seconds(command, body, env, wanted))
    return {call: {name: statistics.median(times) for name, times in row.items()} for call, row in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="extgate-hook-", ignore_cleanup_errors=True) as made:
        root, home = workspace(Path(made) / "ws"), Path(made) / "home"
        home.mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": str(home)}
        command = commands(root)["the hook that apply writes"]
        body = json.dumps({"session_id": "s", "cwd": str(root), **CALLS["refused"]}).encode()
        cold = seconds(command, body, env, "deny")
        deadline = time.monotonic() + 60
        while not any((home / ".local/state/extgate/run").glob("*.sock")) and time.monotonic() < deadline:
            time.sleep(0.01)
        seconds(command, body, env, "deny")  # it opens the workspace for its first question
        report = {"idle": measured(root, env, options.rounds)}
        with busy(os.cpu_count() or 1):
            report["every core busy"] = measured(root, env, options.rounds)
    if options.json:
        print(json.dumps({"machine": platform.platform(), "cold": cold, "seconds": report}, indent=1))
        return
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores; the first call of all: {cold * 1e3:.0f} ms")
    for load, rows in report.items():
        for call, row in rows.items():
            base = row["python -c pass"]
            for name, took in row.items():
                print(f"{load:16} {call:13} {name:27} {took * 1e3:7.1f} ms   {took / base:5.2f}")


if __name__ == "__main__":
    main()
