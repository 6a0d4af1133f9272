"""Other MCP gateways and proxies, each in an environment of its own under `.cache/bench/peers`, installed when missing.

Each in the settings that cost it least of those that its users have: one process, quiet logs, no limits, no plugins, no
database where it runs without one.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "bench" / "peers"
FASTMCP = ("fastmcp", "fastmcp==4.2.3", "uvloop")
MCP_PROXY = ("mcp-proxy", "mcp-proxy==0.13.0")
CONTEXTFORGE = ("contextforge", "mcp-contextforge-gateway==1.0.7.post20260921")
LITELLM = ("litellm", "litellm[proxy]==1.108.7")
NPM = "mcp-proxy@6.7.19"


class NotInstalledError(Exception):
    """Why a peer is not there, in one line."""


def environment(name: str, *packages: str) -> Path:
    """The `bin` of an environment with these. Raises NotInstalledError."""
    folder, wanted = CACHE / name, "\n".join(packages)
    marker = folder / ".installed"
    if not marker.exists() or marker.read_text() != wanted:
        print(f"installing {name} ...", file=sys.stderr, flush=True)
        uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        python = str(folder / "bin" / "python")
        if uv:
            _run([uv, "venv", "-q", "--clear", "-p", sys.executable, str(folder)])
            _run([uv, "pip", "install", "-q", "--python", python, *packages])
        else:
            _run([sys.executable, "-m", "venv", "--clear", str(folder)])
            _run([python, "-m", "pip", "install", "-q", *packages])
        marker.write_text(wanted)
    return folder / "bin"


def npm(package: str) -> Path:
    """The folder where npm has installed it. Raises NotInstalledError."""
    folder = CACHE / "npm"
    marker = folder / ".installed"
    if not marker.exists() or marker.read_text() != package:
        if shutil.which("npm") is None:
            raise NotInstalledError("npm is not on the path")
        print(f"installing {package} ...", file=sys.stderr, flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}\n')
        _run(["npm", "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", package])
        marker.write_text(package)
    return folder


def _run(command: list[str]) -> None:
    env = dict(os.environ)
    authorities = "/etc/ssl/certs/ca-certificates.crt"
    if os.path.exists(authorities):
        env = {"UV_SYSTEM_CERTS": "true", "NODE_EXTRA_CA_CERTS": authorities, **env}
    if "PIP_INDEX_URL" in env:
        env.setdefault("UV_DEFAULT_INDEX", env["PIP_INDEX_URL"])
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise NotInstalledError(lines[-1] if lines else f"`{command[0]}` ended with {done.returncode}")


def litellm(bin: Path, folder: Path, back: int, front: int) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Command, environment, and the headers of its clients; its endpoint is `/echo/mcp`."""
    key = "sk-" + secrets.token_urlsafe(24)
    server = {"url": f"http://127.0.0.1:{back}/mcp", "transport": "http"}
    config = {"mcp_servers": {"echo": server}, "general_settings": {"master_key": key}}
    (folder / "litellm.yaml").write_text(json.dumps(config))
    where = ["--config", str(folder / "litellm.yaml"), "--host", "127.0.0.1", "--port", str(front)]
    return [str(bin / "litellm"), *where], {"LITELLM_LOG": "CRITICAL"}, {"Authorization": f"Bearer {key}"}


class ContextForge:
    """Its endpoint is `/mcp`, its tool `echo-echo`. Its database is kept: to make one takes a minute."""

    def __init__(self, bin: Path, front: int) -> None:
        self.bin, self.front = bin, front
        self.key = secrets.token_urlsafe(24)
        self.env = {
            "DATABASE_URL": f"sqlite:///{bin.parent / 'bench.db'}",
            "JWT_SECRET_KEY": self.key,
            "AUTH_ENCRYPTION_SECRET": secrets.token_urlsafe(24),
            "BASIC_AUTH_PASSWORD": secrets.token_urlsafe(24),
            "LOG_LEVEL": "CRITICAL",
            "CACHE_TYPE": "memory",
            "PLUGINS_ENABLED": "false",
            "MCPGATEWAY_UI_ENABLED": "false",
            "MCPGATEWAY_ADMIN_API_ENABLED": "true",
            "SSRF_ALLOW_LOCALHOST": "true",
            "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
            "RATE_LIMITING_ENABLED": "false",
            "TOOL_RATE_LIMIT": "1000000",
        }
        self.command = [str(bin / "mcpgateway"), "--host", "127.0.0.1", "--port", str(front)]
        make = [str(bin / "python"), "-m", "mcpgateway.utils.create_jwt_token", "--username", "admin@example.com"]
        done = subprocess.run(
            [*make, "--exp", "10080", "--secret", self.key, "--admin"],
            env=os.environ | self.env, capture_output=True, text=True, check=True,
        )  # fmt: skip
        self.headers = {"Authorization": f"Bearer {done.stdout.strip().splitlines()[-1]}"}

    async def register(self, back: int) -> None:
        """Makes it know the server behind `back`, and no other. Returns when it does."""
        await asyncio.to_thread(self._until_up)
        for known in await asyncio.to_thread(self._ask, "GET", "/gateways"):
            await asyncio.to_thread(self._ask, "DELETE", f"/gateways/{known['id']}")
        entry = {"name": "echo", "url": f"http://127.0.0.1:{back}/mcp", "transport": "STREAMABLEHTTP"}
        await asyncio.to_thread(self._ask, "POST", "/gateways", entry)

    def _until_up(self) -> None:
        import time

        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.front}/health", timeout=5).close()
                return
            except OSError:
                time.sleep(0.5)
        raise NotInstalledError("ContextForge does not come up")

    def _ask(self, verb: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = self.headers | {"content-type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.front}{path}", data, headers, method=verb)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.loads(answer.read() or b"null")
