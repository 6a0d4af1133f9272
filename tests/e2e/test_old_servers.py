"""Real servers of the older HTTP transport, with one stream of events, behind the gateway: Python SDK 1, and npm."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.environments import environment
from tests.e2e.real_servers import installed
from tests.e2e.test_conformance import free_port, process
from tests.e2e.test_mcp_clients import EXTGATE, explained

SDK_SERVER = """
import sys
from mcp.server.fastmcp import FastMCP
server = FastMCP("old", host="127.0.0.1", port=int(sys.argv[1]), log_level="CRITICAL")
@server.tool()
def echo(message: str) -> str: return message
@server.tool()
def secret() -> str: return "never"
server.run(transport="sse")
"""


@contextmanager
def old_server(which: str) -> Iterator[str]:
    """The address of one that runs."""
    port = free_port()
    if which == "python":
        command, env = [str(environment("mcp==1.30.0")), "-c", SDK_SERVER, str(port)], {}
    else:
        there, missing = installed()
        if "everything" not in there:
            pytest.skip(f"server-everything does not install here: {missing['everything']}")
        command, env = [there["everything"], "sse"], {"PORT": str(port)}
    child = subprocess.Popen(command, env=os.environ | env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}/sse"
    finally:
        child.kill()
        child.wait()


@pytest.mark.e2e
@pytest.mark.timeout(300)
@pytest.mark.parametrize("which", ["python", "npm"])
def test_a_real_server_of_the_older_transport_is_listed_called_and_gated(which: str, tmp_path: Path) -> None:
    hidden = {"python": "secret", "npm": "get-env"}[which]
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "a.yaml").write_text(f"id: a\nmcp: {{disabled: ['old/{hidden}']}}\n")
    (tmp_path / "extgate.yaml").write_text("audit: audit.jsonl\n")
    port = free_port()
    serve = [*EXTGATE, "-w", str(tmp_path), "serve", "--trust", "--port", str(port)]
    with old_server(which) as url:
        (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"old": {"type": "sse", "url": url}}}))
        rows = {}
        while not rows:  # the server is up once something was found
            rows = explained(tmp_path, "a")["mcp_tool"]
        with process(*serve, url=f"http://127.0.0.1:{port}/readyz"):
            asked = json.dumps({"tools": list(rows), "resources": [], "prompts": [], "arguments": {"message": "hi"}})
            script = Path(__file__).with_name("mcp_client.py")
            done = subprocess.run(
                [environment("mcp==1.30.0"), script, "http", f"http://127.0.0.1:{port}/agents/a/mcp"],
                capture_output=True, text=True, timeout=200, env=os.environ | {"ASK_FOR": asked, "ERA": ""},
            )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert set(found["tools"]) == {name for name, row in rows.items() if row["visible"]}
    assert f"old__{hidden}" not in found["tools"]
    assert rows[f"old__{hidden}"]["reason"] in found["calls"][f"old__{hidden}"]
    assert "hi" in found["calls"]["old__echo"]
