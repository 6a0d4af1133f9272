"""Discovery against the real servers of the examples, which `make test` installs: whole lists, from live answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from extgate.core.extension import Inventory
from extgate.discover.everything import Sources, discover

ROOT = Path(__file__).parents[3]
OFFICE = ROOT / "examples" / "office"
HANDED = ROOT / "tests" / "data" / "inventories"
SERVERS = ("arxiv", "excel", "fetch", "sqlite", "time", "github", "k8s", "slack")
SAME_RELEASE = {
    "time": "mcp-server-time",
    "fetch": "mcp-server-fetch",
    "sqlite": "mcp-server-sqlite",
    "github": "server-github",
    "slack": "server-slack",
    "k8s": "kubernetes-mcp-server",
    "arxiv": "arxiv-mcp-server",
}
"""Servers of which an inventory was handed over, made apart from this code."""

pytestmark = [
    pytest.mark.servers,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not (ROOT / ".cache" / "servers").is_dir(),
        reason="no servers are installed: run `make test`, or examples/servers.py",
    ),
]


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Inventory:
    cache = tmp_path_factory.mktemp("cache")
    return discover(Sources(root=OFFICE, server_files=(OFFICE / ".mcp.json",), cache=cache, timeout_s=120), trust=True)


def test_every_configured_server_has_a_state_and_a_failed_one_its_error(inventory: Inventory) -> None:
    assert sorted(server.name for server in inventory.servers) == sorted(SERVERS)
    assert all(server.state in ("connected", "failed") for server in inventory.servers)
    assert all(server.error for server in inventory.servers if server.state == "failed")


def test_at_least_six_real_servers_answer_where_node_is_present(inventory: Inventory) -> None:
    connected = [server.name for server in inventory.servers if server.state == "connected"]
    wanted = 6 if any(name in connected for name in ("github", "k8s", "slack")) else 5
    assert len(connected) >= wanted, {server.name: server.error for server in inventory.servers}


@pytest.mark.parametrize("name", SAME_RELEASE)
def test_the_tools_found_are_those_that_were_found_by_hand(inventory: Inventory, name: str) -> None:
    server = inventory.server(name)
    assert server is not None
    if server.state == "failed":
        pytest.skip(f"{name} did not start here: {server.error}")
    (row,) = json.loads((HANDED / f"{SAME_RELEASE[name]}.json").read_text())["mcp"]
    found = {e.name for e in inventory.of_kind("mcp_tool") if e.server == name}
    assert found == {tool["name"] for tool in row["tools"]}
