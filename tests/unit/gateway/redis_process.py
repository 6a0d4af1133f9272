"""A real Redis for tests, on a port of its own, without anything on disk; and what replicas share, in memory."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

import pytest

from extgate.enforce.mcp.quotas import Counters, MemoryCounters
from extgate.enforce.mcp.shared import SharedError

SERVER = shutil.which("redis-server") or shutil.which("valkey-server")
needs_redis = pytest.mark.skipif(SERVER is None, reason="needs redis-server (on Debian: apt-get install redis-server)")


class RedisProcess:
    """A server that can be stopped and started again with nothing in it."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> RedisProcess:
        assert SERVER is not None
        command = [SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        while b"eady to accept connections" not in self._process.stdout.readline():
            assert self._process.poll() is None
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


async def _nothing() -> None:
    return


@dataclass
class Common:
    """What members share. is_gone: it cannot be reached."""

    marks: dict[str, str] = field(default_factory=dict)
    old: set[tuple[str, str]] = field(default_factory=set)
    withdrawn: set[str] = field(default_factory=set)
    counters: MemoryCounters = field(default_factory=MemoryCounters)
    members: list[Member] = field(default_factory=list)
    is_gone: bool = False

    def ask(self) -> None:
        if self.is_gone:
            raise SharedError("the state that replicas share cannot be reached")


class Member:
    """One replica's way to it. See `extgate.enforce.mcp.shared.Shared`."""

    def __init__(self, common: Common, replica: str, place: str) -> None:
        self.common, self.replica, self.place = common, replica, place
        self.counters: Counters = common.counters
        self.on_marks: Callable[[Mapping[str, str]], None] = lambda marks: None
        self.on_withdrawn: Callable[[frozenset[str]], None] = lambda digests: None
        self.on_news: Callable[[str], None] = lambda server: None
        self.on_empty: Callable[[], Awaitable[None]] = _nothing
        common.members.append(self)

    def why_blind(self) -> str:
        return "the state that replicas share cannot be reached" if self.common.is_gone else ""

    async def agree(self, agent: str, mine: str, before: str) -> str:
        self.common.ask()
        current = self.common.marks.get(agent)
        is_first = before == "" and (agent, mine) not in self.common.old and len(self.common.members) == 1
        if current is not None and (current == mine or (current != before and not is_first)):
            return current
        if current:
            self.common.old = self.common.old - {(agent, mine)} | {(agent, current)}
        self.common.marks[agent] = mine
        for member in self.common.members:
            member.on_marks({agent: mine})
        return mine

    async def withdraw(self, gone: Iterable[str], back: Iterable[str]) -> None:
        self.common.ask()
        self.common.withdrawn = self.common.withdrawn - set(back) | set(gone)
        for member in self.common.members:
            member.on_withdrawn(frozenset(self.common.withdrawn))

    def tell(self, server: str) -> None:
        for member in self.common.members:
            if member is not self:
                asyncio.get_running_loop().call_soon(member.on_news, server)

    async def place_of(self, replica: str) -> str:
        self.common.ask()
        return next((member.place for member in self.common.members if member.replica == replica), "")
