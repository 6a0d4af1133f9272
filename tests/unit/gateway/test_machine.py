"""What the machine does to a gateway: a full disk, a port that is taken."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from extgate.enforce.sinks import JsonLines
from tests.unit.gateway.test_address import Web
from tests.unit.gateway.world import Client, World, run, text_of

BOUND = 60_000
COMMAND = [sys.executable, "-m", "extgate.cli.main"]


def test_nothing_runs_and_nothing_is_shown_while_the_record_cannot_be_written(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, a="mcp: {disabled: ['habits/die']}")
        (tmp_path / "extgate.yaml").write_text("audit: /dev/full\n")
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            refused = await client.call("echo")
            assert refused["result"]["isError"] is True
            assert "the record cannot be written" in text_of(refused)
            assert await client.tools() == []
            assert world.calls == []

    run(work())


def test_a_disk_that_fills_up_refuses_what_it_could_not_record_and_the_process_goes_on(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        command = [*COMMAND, "-w", str(tmp_path), "serve", "--trust", "--port", "0"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            port = int(process.stderr.readline().rstrip().rpartition(":")[2])
            while "ready: " not in process.stderr.readline():
                pass
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (BOUND, BOUND))
            web = Web(port)
            session = await web.hello()
            found = []
            for number in range(200):
                params = {"name": "habits__echo", "arguments": {f"{number:0>60}": number}}
                answer = await web.rpc("tools/call", params, **session)
                found.append(not answer.json["result"].get("isError", False))
            assert 0 < sum(found) < 200
            assert found == sorted(found, reverse=True)
            assert sum(call["tool"] == "echo" for call in world.calls) == sum(found)
            assert (await web.send("GET", "/healthz")).status == 200
            text = (tmp_path / "audit.jsonl").read_text()
            whole = [
                json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n") and line.strip()
            ]
            assert sum(event["outcome"] == "allowed" for event in whole if event["question"] == "use") == sum(found)
            web.origin.close()
        finally:
            process.kill()
            process.wait()
            process.stderr.close()

    run(work())


def test_a_record_that_took_a_part_of_a_line_says_so_and_begins_the_next_on_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = JsonLines(tmp_path / "record")
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:5]))
    with pytest.raises(OSError, match="No space"):
        lines.write(b'{"a": 1}\n')
    monkeypatch.setattr(os, "write", real)
    lines.write(b'{"b": 2}\n')
    lines.write(b'{"c": 3}\n')
    lines.close()
    assert (tmp_path / "record").read_bytes() == b'{"a":\n{"b": 2}\n{"c": 3}\n'


def test_a_port_that_is_taken_ends_the_command_with_why_and_starts_no_server(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.servers("habits", other={"command": "touch", "args": [str(tmp_path / "started")]})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [*COMMAND, "-w", str(tmp_path), "serve", "--trust", "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("extgate: ")
    assert "address already in use" in done.stderr.lower()
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "started").exists()


def test_a_second_process_of_one_workspace_runs_beside_the_first_on_a_port_of_its_own(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with world.open() as one, world.open() as other:
            for gateway in (one, other):
                assert text_of(await (await Client(gateway).hello()).call("echo")) == "{}"
        assert sum(event["question"] == "use" for event in world.events) == 2

    asyncio.run(work())
