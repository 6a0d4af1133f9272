"""Edits of a profile as official clients hear of them: one notice for the agent that it concerns, none for others."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.environments import environment
from tests.e2e.npm import node, packages
from tests.e2e.test_conformance import free_port, process
from tests.e2e.test_mcp_clients import EXTGATE, SERVER
from tests.e2e.test_real_gateway import NPM

HERE = Path(__file__).parent
CLIENTS = {"python 1": "mcp==1.30.0", "python 2": "mcp==2.3.0", "typescript": ""}
NOTICE = "changed notifications/tools/list_changed"


class Listener:
    """A client's process; its lines in order."""

    def __init__(self, client: str, transport: str, where: list[str]) -> None:
        is_python, cwd = client != "typescript", None
        command = [environment(CLIENTS[client]), HERE / "listening_client.py"] if is_python else []
        if not is_python:
            command, cwd = [node(), HERE / "listening_client.mjs"], packages("mcp-clients", *NPM)
        self.child = subprocess.Popen(
            [*command, transport, *where], cwd=cwd, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def line(self) -> str:
        assert self.child.stdout is not None
        return self.child.stdout.readline().strip()

    def tools(self) -> tuple[list[str], int]:
        """What it lists, and how many notices came before the list."""
        assert self.child.stdin is not None
        self.child.stdin.write("\n")
        notices = 0
        while (line := self.line()) == NOTICE:
            notices += 1
        return json.loads(line), notices

    def end(self) -> None:
        self.child.kill()
        self.child.communicate()


@contextmanager
def listening(client: str, transport: str, root: Path, port: int) -> Iterator[tuple[Listener, Listener]]:
    """A client of agent `a` and one of `b`."""
    opened = []
    try:
        for agent in "ab":
            where = [f"http://127.0.0.1:{port}/agents/{agent}/mcp"]
            if transport == "stdio":
                where = [*EXTGATE, "-w", str(root), "mcp", agent, "--trust"]
            opened.append(Listener(client, transport, where))
        yield opened[0], opened[1]
    finally:
        for each in opened:
            each.end()


@pytest.mark.e2e
@pytest.mark.timeout(300)
@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize("client", list(CLIENTS))
def test_a_client_hears_once_of_an_edit_that_concerns_it_and_of_no_other(
    client: str, transport: str, tmp_path: Path
) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "extgate.yaml").write_text("audit: audit.jsonl\n")
    profiles = {agent: tmp_path / "agents" / f"{agent}.yaml" for agent in "ab"}
    for agent, path in profiles.items():
        path.write_text(f"id: {agent}\n")
    entry = {"command": sys.executable, "args": [SERVER, str(tmp_path / "calls.jsonl")]}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"habits": entry}}))
    port = free_port()
    serve = [*EXTGATE, "-w", str(tmp_path), "serve", "--trust", "--port", str(port)]
    with (
        process(*serve, url=f"http://127.0.0.1:{port}/readyz"),
        listening(client, transport, tmp_path, port) as (mine, other),
    ):
        assert "habits__echo" in mine.tools()[0]
        assert "habits__echo" in other.tools()[0]
        edit(profiles["a"], "id: a\nmcp: {disabled: ['habits/echo']}\n")
        assert mine.line() == NOTICE
        tools, more = mine.tools()
        assert "habits__echo" not in tools
        assert "habits__die" in tools
        edit(profiles["b"], "id: b\nmcp: {disabled: ['habits/die']}\n")
        assert other.line() == NOTICE
        tools, too_many = other.tools()
        assert "habits__die" not in tools
        assert "habits__echo" in tools
        assert (more, too_many, mine.tools()[1]) == (0, 0, 0)


def edit(path: Path, text: str) -> None:
    """Writes a file at once."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)
