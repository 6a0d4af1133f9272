"""Official SDK clients, 1.x and 2.x, over stdio and HTTP: what they list and call is what `explain` says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.environments import environment
from tests.e2e.test_conformance import free_port, process
from tests.unit.discover.http_servers import sdk_app, served

CLIENTS = {
    "mcp 1": ("mcp==1.30.0", "", "2025-11-25"),
    "mcp 2": ("mcp==2.3.0", "", "2025-11-25"),
    "mcp 2, stateless": ("mcp==2.3.0", "auto", "2026-07-28"),
}
"""Release, era, and the protocol version that it comes to."""
PROFILES = {
    "all": "",
    "some": "mcp: {disabled: ['demo/add', 'habits/d*']}\nresources: {disabled: ['*']}",
    "none": "mcp: {allowed: ['elsewhere']}",
}
EXTGATE = [sys.executable, "-m", "extgate.cli.main"]
SERVER = str(Path(__file__).parents[1] / "unit" / "gateway" / "server.py")
SAFE = ("echo", "add", "big", "garbage")
"""Tools that answer at once whatever they are given."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("clients")
    (folder / "agents").mkdir()
    (folder / "extgate.yaml").write_text("audit: audit.jsonl\n")
    for name, text in PROFILES.items():
        (folder / "agents" / f"{name}.yaml").write_text(f"id: {name}\n{text}\n")
    with served(sdk_app("http")) as url:
        servers = {
            "demo": {"url": f"{url}/mcp"},
            "habits": {"command": sys.executable, "args": [SERVER, str(folder / "calls.jsonl")]},
        }
        (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
        yield folder


@pytest.fixture(scope="module")
def port(root: Path) -> Iterator[int]:
    found = free_port()
    serve = [*EXTGATE, "-w", str(root), "serve", "--trust", "--port", str(found)]
    with process(*serve, url=f"http://127.0.0.1:{found}/readyz"):
        yield found


def explained(root: Path, agent: str) -> dict[str, dict[str, Any]]:
    """The decisions on servers' items, by kind and the name that the gateway gives them."""
    command = [*EXTGATE, "-w", str(root), "explain", agent, "--json", "--trust"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [row for row in json.loads(done.stdout)["decisions"] if row["kind"].startswith("mcp_")]
    found: dict[str, dict[str, Any]] = {"mcp_tool": {}, "mcp_resource": {}, "mcp_prompt": {}}
    for row in rows:
        name = row["name"] if row["kind"] == "mcp_resource" else f"{row['server']}__{row['name']}"
        found[row["kind"]][name] = row
    return found


@pytest.mark.e2e
@pytest.mark.timeout(600)
@pytest.mark.parametrize("agent", list(PROFILES))
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("client", list(CLIENTS))
def test_a_client_sees_and_uses_what_explain_says(
    client: str, transport: str, agent: str, root: Path, port: int
) -> None:
    release, era, version = CLIENTS[client]
    rows = explained(root, agent)
    assert {name.partition("__")[0] for name in rows["mcp_tool"]} == {"demo", "habits"}
    tools = [name for name in rows["mcp_tool"] if name.partition("__")[2] in SAFE]
    uris = [uri for uri in rows["mcp_resource"] if "{" not in uri]
    wanted = {"tools": tools, "resources": uris, "prompts": list(rows["mcp_prompt"])}
    where = [*EXTGATE, "-w", str(root), "mcp", agent, "--trust"]
    if transport == "http":
        where = [f"http://127.0.0.1:{port}/agents/{agent}/mcp"]
    script = str(Path(__file__).with_name("mcp_client.py"))
    done = subprocess.run(
        [environment(release), script, transport, *where],
        capture_output=True, text=True, env=os.environ | {"ASK_FOR": json.dumps(wanted), "ERA": era}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["version"] == version
    visible = {kind: {name for name, row in named.items() if row["visible"]} for kind, named in rows.items()}
    assert set(found["tools"]) == visible["mcp_tool"]
    assert set(found["prompts"]) == visible["mcp_prompt"]
    assert {*found["resources"], *found["resource_templates"]} == visible["mcp_resource"]
    for said, kind in (("calls", "mcp_tool"), ("reads", "mcp_resource"), ("gets", "mcp_prompt")):
        for name, answer in found[said].items():
            row = rows[kind][name]
            # For one agent alone, a server that it can use nothing of is not even started.
            reasons = (row["reason"], f"'{name}' is not installed.") if agent == "none" else (row["reason"],)
            is_refused = answer.startswith("refused: ") and any(reason in answer for reason in reasons)
            assert is_refused == (not row["callable"]), (name, answer, row["reason"])
