"""`extgate serve` and `extgate mcp` where they cannot start."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from extgate.cli.main import cli


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "a.yaml").write_text("id: a\n")
    (tmp_path / "extgate.yaml").write_text("audit: audit.jsonl\n")
    return str(tmp_path)


def test_an_address_that_others_reach_is_not_served_without_tokens(root: str) -> None:
    done = CliRunner().invoke(cli, ["serve", "-w", root, "--host", "0.0.0.0", "--port", "0"])
    assert done.exit_code == 1
    assert "who would need no token" in done.output


def test_a_port_that_is_taken_is_told_and_nothing_starts(root: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = CliRunner().invoke(cli, ["serve", "-w", root, "--port", str(taken.getsockname()[1])])
    assert done.exit_code == 1
    assert "address already in use" in done.output.lower()


def test_an_agent_that_is_not_there_is_told(root: str) -> None:
    done = CliRunner().invoke(cli, ["mcp", "nobody", "-w", root])
    assert done.exit_code == 1
    assert "no agent `nobody`" in done.output
