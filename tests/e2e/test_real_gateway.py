"""Real MCP servers behind one gateway, three profiles, and the official clients before it: list and call are `explain`.

Every client lists everything, calls every tool, reads every resource and gets every prompt that `explain` knows, over
`serve` and over `mcp`. Arguments are empty, so that most servers answer with what they miss; what counts here is who
answers. MCP Inspector's CLI starts anew for each thing that it does, so it lists everything and calls a sample. Not
called where they are allowed: the tools in `SLOW`. A server that does not install is left out, and the test says which;
with fewer than twelve it fails.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.environments import environment
from tests.e2e.npm import node, packages
from tests.e2e.real_servers import entries, installed
from tests.e2e.test_conformance import free_port, process
from tests.e2e.test_mcp_clients import EXTGATE, explained

PROFILES = {
    "all": "",
    "some": """
mcp:
  disabled: ['github/*', 'slack', '*/create_*', 'git/git_[cr]*', 'k8s/*_delete', 'everything/*-env', 'excel/*sheet*']
resources: {disabled: ['demo://*']}
prompts: {disabled: ['everything/*', 'arxiv/[a-m]*']}
""",
    "few": """
mcp: {allowed: ['time', 'memory', 'filesystem/read_*', 'git/git_log', 'sqlite/*table*', 'everything/echo']}
prompts: {allowed: ['fetch/*']}
""",
}
CLIENTS = {
    "python 1": ("python", "mcp==1.30.0", ""),
    "python 2": ("python", "mcp==2.3.0", ""),
    "python 2, stateless": ("python", "mcp==2.3.0", "auto"),
    "typescript 1": ("typescript", "@modelcontextprotocol/sdk", ""),
    "typescript 2": ("typescript", "@modelcontextprotocol/client", ""),
}
NPM = (
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/inspector@2.12.0",
)
SLOW = frozenset({"everything__trigger-long-running-operation", "everything__simulate-research-query"})
FEWEST = 12
KINDS = {"calls": "mcp_tool", "reads": "mcp_resource", "gets": "mcp_prompt"}


@dataclass(frozen=True)
class Here:
    """The workspace, the port of its gateway, and what `explain` says by agent, kind and name."""

    root: Path
    port: int
    said: dict[str, dict[str, dict[str, Any]]]

    def where(self, transport: str, agent: str) -> list[str]:
        if transport == "http":
            return [f"http://127.0.0.1:{self.port}/agents/{agent}/mcp"]
        return [*EXTGATE, "-w", str(self.root), "mcp", agent, "--trust"]

    def wanted(self, agent: str) -> dict[str, Any]:
        rows = self.said[agent]
        tools = [name for name, row in rows["mcp_tool"].items() if name not in SLOW or not row["callable"]]
        uris = [uri for uri in rows["mcp_resource"] if "{" not in uri]
        return {"tools": tools, "resources": uris, "prompts": list(rows["mcp_prompt"]), "arguments": {}}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    there, missing = installed()
    print(f"real servers: {', '.join(sorted(there))}; left out: {missing or 'none'}")
    assert len(there) >= FEWEST, missing
    root = tmp_path_factory.mktemp("real")
    (root / "agents").mkdir()
    for name, text in PROFILES.items():
        (root / "agents" / f"{name}.yaml").write_text(f"id: {name}\n{text}")
    (root / "extgate.yaml").write_text("audit: audit.jsonl\ntimeout_s: 240\ngateway: {limits: {start_s: 240}}\n")
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": entries(there, root)}))
    said = {agent: explained(root, agent) for agent in PROFILES}
    assert {name.partition("__")[0] for name in said["all"]["mcp_tool"]} == set(there)
    port = free_port()
    serve = [*EXTGATE, "-w", str(root), "serve", "--trust", "--port", str(port)]
    with process(*serve, url=f"http://127.0.0.1:{port}/readyz"):
        yield Here(root, port, said)


def visible(rows: dict[str, dict[str, Any]], kind: str) -> set[str]:
    return {name for name, row in rows[kind].items() if row["visible"]}


def agree(rows: dict[str, dict[str, Any]], answers: dict[str, str], kind: str, *, is_alone: bool) -> None:
    """Each answer is a refusal with the reason of `explain`, or none at all of the gateway's."""
    for name, answer in answers.items():
        row = rows[kind][name]
        # For one agent alone, a server that it can use nothing of is not even started.
        reasons = [row["reason"], *([f"'{name}' is not installed."] if is_alone else [])]
        is_refused = answer.startswith("refused: ") and any(reason in answer for reason in reasons)
        assert is_refused == (not row["callable"]), (name, answer, row["reason"])


@pytest.mark.e2e
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("agent", list(PROFILES))
@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize("client", list(CLIENTS))
def test_a_client_sees_and_uses_of_real_servers_what_explain_says(
    client: str, transport: str, agent: str, here: Here
) -> None:
    language, release, era = CLIENTS[client]
    script = Path(__file__).with_name("mcp_client.py" if language == "python" else "mcp_client.mjs")
    command = [environment(release), script] if language == "python" else [node(), script, release]
    where = here.where(transport, agent)
    done = subprocess.run(
        [*command, transport, *where], capture_output=True, text=True, timeout=900,
        cwd=None if language == "python" else packages("mcp-clients", *NPM),
        env=os.environ | {"ASK_FOR": json.dumps(here.wanted(agent)), "ERA": era},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found, rows = json.loads(done.stdout), here.said[agent]
    assert set(found["tools"]) == visible(rows, "mcp_tool")
    assert set(found["prompts"]) == visible(rows, "mcp_prompt")
    assert {*found["resources"], *found["resource_templates"]} == visible(rows, "mcp_resource")
    for said, kind in KINDS.items():
        agree(rows, found[said], kind, is_alone=transport == "stdio")


def inspect(here: Here, agent: str, method: str, *rest: str) -> Any:
    """What MCP Inspector's CLI prints for one request; its error text when it fails."""
    home = packages("mcp-clients", *NPM)
    script = home / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    command = [node(), script, "--cli", *here.where("http", agent), "--transport", "http", "--method", method, *rest]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=home, env=os.environ | {"HOME": str(here.root)}
    )
    try:
        return json.loads(done.stdout)
    except ValueError:
        return f"refused: {done.stdout}{done.stderr}"


@pytest.mark.e2e
@pytest.mark.timeout(900)
@pytest.mark.parametrize("agent", list(PROFILES))
def test_the_inspector_sees_and_uses_of_real_servers_what_explain_says(agent: str, here: Here) -> None:
    rows = here.said[agent]
    for method, key, kind in (("tools/list", "tools", "mcp_tool"), ("prompts/list", "prompts", "mcp_prompt")):
        assert {row["name"] for row in inspect(here, agent, method)[key]} == visible(rows, kind)
    uris = {row["uri"] for row in inspect(here, agent, "resources/list")["resources"]}
    uris |= {row["uriTemplate"] for row in inspect(here, agent, "resources/templates/list")["resourceTemplates"]}
    assert uris == visible(rows, "mcp_resource")
    tools = here.wanted(agent)["tools"]
    for name in tools[:: max(1, len(tools) // 12)]:
        said = inspect(here, agent, "tools/call", "--tool-name", name)
        row = rows["mcp_tool"][name]
        if row["visible"]:
            text = said if isinstance(said, str) else f"{said.get('isError')} {said['content'][0].get('text')}"
            assert ("True" in text and row["reason"] in text) == (not row["callable"]), (name, text, row)
        else:  # the Inspector looks the tool up in its list first, and sends nothing
            assert isinstance(said, str), said
            assert "tool_not_found" in said
