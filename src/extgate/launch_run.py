"""One agent program behind all walls: a gateway with its wire in this process, and the program started against it."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from extgate.applied.account import account_of
from extgate.applied.claude_code import settings as claude_settings
from extgate.applied.plan import GATEWAY, Ground
from extgate.applied.puts import put_all
from extgate.applied.trees import edit
from extgate.applied.work import Wish, ground_of
from extgate.enforce.wire.front import Upstream, WireSettings
from extgate.errors import WorkspaceError
from extgate.gateway.address import open_front
from extgate.gateway.callers import CallerSettings
from extgate.gateway.running import open_gateway
from extgate.gateway.settings import read_gateway
from extgate.gateway.wire import open_wire, read_wire
from extgate.launch import CLIENTS, NO_PROOF, PROGRAMS, STARTS, Place, missing
from extgate.workspace import Workspace

HOST = "127.0.0.1"
BASES = {"anthropic": "ANTHROPIC_BASE_URL", "gemini": "GOOGLE_GEMINI_BASE_URL", "openai": "OPENAI_BASE_URL"}
"""By provider the variable in which somebody may have put another address already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is asked for. program: its path; empty: found by its usual name. at: a gateway that runs; empty: one is
    started. token: for that gateway."""

    runtime: str
    agent: str
    root: Path
    project: Path
    args: tuple[str, ...] = ()
    program: str = ""
    at: str = ""
    token: str = ""
    trust: bool = False


async def run(job: Job, say: Callable[[str], None], environ: Mapping[str, str] = os.environ) -> int:
    """Runs the program to its end; its exit code. Raises ExtgateError, OSError."""
    program = job.program or shutil.which(PROGRAMS[job.runtime], path=environ.get("PATH"))
    if not program:
        message = f"`{PROGRAMS[job.runtime]}` is not on the path"
        raise WorkspaceError(message, fix="install it, or name it with --program PATH")
    wish = Wish(runtime=job.runtime, agent=job.agent, root=job.root, project=job.project, gateway=True, trust=job.trust)
    ground = await asyncio.to_thread(ground_of, wish, account_of(job.runtime, job.project))
    with tempfile.TemporaryDirectory(prefix="extgate-run-") as made:
        async with _served(job, Path(made), say, environ) as (url, token):
            place = _place(job, ground, Path(made), url, token, environ)
            start = STARTS[job.runtime](place)
            say(f"{job.runtime} runs as `{ground.agent.id}` behind: {', '.join(start.walls)}")
            for line in (*missing(job.runtime, ground.agent.id, start), *start.left):
                say(line)
            env = {**environ, **start.env, **_unproxied(environ)}
            return await _child((program, *start.args, *job.args), env, job.project)


def _place(job: Job, ground: Ground, made: Path, url: str, token: str, environ: Mapping[str, str]) -> Place:
    agent = f"{url}/agents/{quote(ground.agent.id, safe='')}"
    wire = read_wire(ground.view.workspace.homes)
    known = {name: one.url for name, one in wire.upstreams.items()}
    settings: Mapping[str, Any] = {}
    if job.runtime == "claude-code":
        editor = edit("", "json", "settings.json")
        put_all(editor, claude_settings(ground))
        settings = json.loads(editor.text)
    return Place(
        wire=f"{agent}/wire", mcp=f"{agent}/mcp", token=token, folder=made, project=job.project, hook=ground.shell_hook,
        environ=environ, settings=settings, upstreams=known,
        holds=frozenset(name for name, one in wire.upstreams.items() if one.key is not None),
        denied=ground.relayed_denies,
    )  # fmt: skip


@asynccontextmanager
async def _served(
    job: Job, made: Path, say: Callable[[str], None], environ: Mapping[str, str]
) -> AsyncIterator[tuple[str, str]]:
    """A gateway's address, and the token for it: the one that runs, or one that lives as long as the program."""
    if job.at:
        yield job.at.rstrip("/"), job.token
        return
    homes = Workspace.open(job.root).homes
    token = "" if job.runtime in NO_PROOF else secrets.token_urlsafe(24)
    callers = CallerSettings()
    if token:
        file = made / "tokens.json"
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            json.dump({job.agent: [token]}, opened)
        callers = CallerSettings(tokens=file)
    settings = replace(read_gateway(homes), callers=callers)
    async with (
        open_front(settings, HOST, 0, say) as front,
        open_gateway(job.root, agents=frozenset({job.agent}), trust=job.trust, say=say) as gateway,
    ):
        front.serve(gateway)
        gateway.on_settings = lambda settings: None  # who may call is this program alone, whatever files say
        assert front.front is not None
        front.front.wire = open_wire(gateway, lambda: not token, lambda found: changed(job, found, environ))
        yield front.url, token


def changed(job: Job, found: WireSettings, environ: Mapping[str, str]) -> WireSettings:
    """The wire's settings for this program: which it is, how it calls the gateway, where providers were before."""
    before = {name: Upstream(url=environ[key]) for name, key in BASES.items() if environ.get(key)}
    client = found.client or CLIENTS.get(job.runtime, job.runtime)
    return replace(found, client=client, gateway=GATEWAY, upstreams={**before, **found.upstreams})


def _unproxied(environ: Mapping[str, str]) -> dict[str, str]:
    """So that a proxy of the company's is not asked for this machine."""
    names = [name for name in ("NO_PROXY", "no_proxy") if environ.get(name)] or ["NO_PROXY", "no_proxy"]
    return {name: ",".join(filter(None, (environ.get(name, ""), HOST))) for name in names}


async def _child(command: tuple[str, ...], env: Mapping[str, str], project: Path) -> int:
    """Runs it in the foreground; Ctrl-C is the program's own business, and an end of this process is its end."""
    child = await asyncio.create_subprocess_exec(*command, env=env, cwd=project)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    loop.add_signal_handler(signal.SIGTERM, child.terminate)
    try:
        code = await child.wait()
    finally:
        if child.returncode is None:
            child.kill()
    return 128 - code if code < 0 else code
