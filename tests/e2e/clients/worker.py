"""A program of one Python framework that stays, so that its imports are paid once, and plays job after job."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from tests.e2e.clients.cases import Pieces
from tests.e2e.clients.lab import Lab, Ran, stop_group
from tests.e2e.environments import ROOT

_WORKERS: dict[str, Worker] = {}
_NUMBERS = count(1)


@dataclass
class Worker:
    """The process. log: what it says besides its answers."""

    child: subprocess.Popen[str]
    log: Path

    def ask(self, job: dict[str, Any], timeout_s: float) -> Ran:
        """Its answer; a job that takes longer ends the process."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(json.dumps(job) + "\n")
        self.child.stdin.flush()
        timer = threading.Timer(timeout_s, stop_group, [self.child])
        timer.start()
        line = self.child.stdout.readline()
        timer.cancel()
        if not line:
            return Ran(code=None, out="", err=self.log.read_text("utf-8", "replace")[-2000:])
        error = json.loads(line)["error"]
        return Ran(code=1 if error else 0, out="", err=error)


def play(
    name: str, lab: Lab, command: Sequence[str], url: str, pieces: Pieces, is_gated: bool, timeout_s: float
) -> Ran:
    """One job by a framework's worker, started where it does not run."""
    worker = _WORKERS.get(name)
    if worker is None or worker.child.poll() is not None:
        worker = _WORKERS[name] = _started(name, command)
    job = {
        "url": url,
        "project": str(lab.project),
        "workspace": str(lab.workspace),
        "servers": pieces["servers"],
        "pieces": {k: v for k, v in pieces.items() if k != "servers"},
        "is_gated": is_gated,
        "number": next(_NUMBERS),
    }
    return worker.ask(job, timeout_s)


def _started(name: str, command: Sequence[str]) -> Worker:
    log = ROOT / ".cache" / "clients" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    module = f"tests.e2e.clients.programs.{name.replace('-', '_')}_program"
    quiet = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGSMITH_TRACING": "false", "PYTHONPATH": str(ROOT)}
    with log.open("w") as err:
        child = subprocess.Popen(
            [*command, "-m", module], cwd=ROOT, env=os.environ | quiet, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=err, text=True, start_new_session=True,
        )  # fmt: skip
    return Worker(child=child, log=log)


def stop_all() -> None:
    """Ends the workers."""
    while _WORKERS:
        stop_group(_WORKERS.popitem()[1].child)
