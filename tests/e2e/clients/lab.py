"""A throw-away place for one run: a home, a project, extgate's workspace, and the traces that tell what really ran."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.clients.install import node
from tests.e2e.clients.intents import Effect

Json = dict[str, Any]
PROBE = Path(__file__).with_name("probe_server.py")
PYTHON = str(Path(sys.executable))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a client ended. code: None when it was stopped after its time."""

    code: int | None
    out: str
    err: str


@dataclass
class Lab:
    """The place. extra: further folders for the path."""

    root: Path
    extra: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for folder in (self.home, self.project, self.workspace / "agents"):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def workspace(self) -> Path:
        return self.root / "gate"

    @property
    def marker(self) -> Path:
        return self.root / "RAN"

    @property
    def log(self) -> Path:
        return self.root / "probe.jsonl"

    @property
    def touch(self) -> str:
        """The shell command whose effect is looked at."""
        return f"touch {self.marker}"

    def server(self, name: str = "alpha", *flags: str) -> Json:
        """The probe server as an entry of an MCP configuration."""
        return {"command": PYTHON, "args": [str(PROBE), name, str(self.log), *flags]}

    def write(self, path: str | Path, content: object) -> Path:
        """A file of the project (or at an absolute path), as JSON unless it is text."""
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return file

    def skills(self, folder: str | Path) -> None:
        """Two skills below a folder: one that a test denies, one that stays."""
        for name, mark in (("secret-skill", "SECRET-SKILL"), ("open-skill", "OPEN-SKILL")):
            head = f"---\nname: {name}\ndescription: {mark}-LISTED for tests.\n---\n"
            self.write(Path(folder) / name / "SKILL.md", f"{head}\n{mark}-TEXT: do nothing.\n")

    def environment(self, **extra: str) -> dict[str, str]:
        """A small environment with this home and nothing of the caller's but the path."""
        folders = [*self.extra, str(Path(PYTHON).parent), str(node().parent), os.environ.get("PATH", os.defpath)]
        kept = {k: v for k, v in os.environ.items() if k in ("LANG", "LC_ALL", "SSL_CERT_FILE")}
        return {**kept, "HOME": str(self.home), "PATH": os.pathsep.join(folders), "NO_COLOR": "1", **extra}

    def run(self, command: Sequence[str], env: Mapping[str, str], timeout_s: float, given: str = "") -> Ran:
        """Runs it in the project; after its time it is stopped with all that it started."""
        with (self.root / "out").open("w+") as out, (self.root / "err").open("w+") as err:
            child = subprocess.Popen(
                command, cwd=self.project, env=env, stdin=subprocess.PIPE, stdout=out, stderr=err,
                start_new_session=True, text=True,
            )  # fmt: skip
            code: int | None = None
            try:
                child.communicate(given, timeout=timeout_s)
                code = child.returncode
            except subprocess.TimeoutExpired:
                pass
            finally:
                stop_group(child)
            return Ran(code=code, out=(self.root / "out").read_text("utf-8", "replace"), err=_read(self.root / "err"))

    def messages(self) -> list[Json]:
        """What the probe servers got."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line) for line in lines]

    def happened(self, effect: Effect, prompt: str) -> bool:
        """Whether the effect is there. prompt: all that the model was sent."""
        if effect.kind == "marker":
            return self.marker.exists()
        if effect.kind == "prompt":
            return effect.what in prompt
        rows = self.messages()
        if effect.kind == "read":
            return any(row["method"] == "resources/read" for row in rows)
        names = [row["params"]["name"] for row in rows if row["method"] == "tools/call"]
        return bool({*names} - {"ping_thing"}) if effect.what == "*" else effect.what in names


def _read(path: Path) -> str:
    return path.read_text("utf-8", "replace")


def stop_group(child: subprocess.Popen[Any]) -> None:
    """Ends a process and all of its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
