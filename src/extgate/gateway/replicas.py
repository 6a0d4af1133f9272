"""Several replicas of one gateway: what each may serve, sessions of others, tokens withdrawn, lists that changed.

Each replica reads its own files. What they say is compared by marks, and a replica that is behind serves nothing of
what differs until its files have come. Limits are counted together. Without the shared state, nothing is served for
long.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import fields, is_dataclass
from urllib.parse import urlsplit

from extgate.enforce.callers.proxies import is_within
from extgate.enforce.mcp.elsewhere import Elsewhere
from extgate.enforce.mcp.front_http import Front
from extgate.enforce.mcp.quotas import MemoryCounters
from extgate.enforce.mcp.shared import SETTINGS, Agreement, Shared, SharedError
from extgate.errors import WorkspaceError
from extgate.gateway.address import Address
from extgate.gateway.running import TICK_S, Gateway
from extgate.gateway.shared import SharedSettings

GONE = "-"
"""The mark of an agent whose file is no more."""


@asynccontextmanager
async def open_replicas(
    settings: SharedSettings, gateway: Gateway, address: Address | None = None
) -> AsyncIterator[Replicas]:
    """Joins the other replicas, for as long as it is open. address: None for one that is reached over stdin alone.

    Raises WorkspaceError when that cannot be.
    """
    try:
        from extgate.enforce.mcp.shared_redis import RedisShared, connect
    except ImportError:
        fix = "install extgate[shared]"
        raise WorkspaceError("gateway.shared needs the package `redis`", fix=fix) from None
    place = "" if address is None else settings.address or address.url
    if place and not _is_reached(place, settings):
        fix = "write `gateway: {shared: {address: http://ADDRESS:PORT, peers: [NETWORK]}}`"
        raise WorkspaceError(f"other replicas cannot reach this one at `{place}`", fix=fix)
    try:
        redis = connect(settings.url)
    except ValueError as problem:
        raise WorkspaceError(f"gateway.shared.url: {problem}") from None
    replica = secrets.token_hex(8)
    shared = RedisShared(
        redis, replica=replica, place=place, prefix=settings.name, stale_s=settings.stale_s, revision=settings.revision
    )
    replicas = Replicas(settings, gateway, shared)
    if address is not None:
        replicas.attach(address)
    shared.start()
    try:
        yield replicas
    finally:
        replicas.close()
        await shared.stop()


class Replicas:
    """This replica among the others."""

    def __init__(self, settings: SharedSettings, gateway: Gateway, shared: Shared) -> None:
        self._settings, self._gateway, self.shared = settings, gateway, shared
        self.agreement = Agreement(mine=self._marks())
        self.has_joined = asyncio.Event()
        self._strange, self._telling = set(self.agreement.mine), set[str]()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reloading: asyncio.Task[None] | None = None
        longest = gateway.hub.limits.message
        self._elsewhere = Elsewhere(shared.replica, shared.place_of, settings.peers, longest)
        self._front: Front | None = None
        gateway.hub.book.new_id = self._elsewhere.new_id
        gateway.hub.quotas.counters = shared.counters
        gateway.hub.on_list_changed = shared.tell
        gateway.on_refreshed = self._refreshed
        shared.on_marks, shared.on_news, shared.on_empty = self._on_marks, self._on_news, self._join

    def attach(self, address: Address) -> None:
        """Has an address serve only what this replica may serve, and relay what belongs to others."""
        self._front = front = address.front
        assert front is not None
        front.elsewhere, front.why_not_here, front.not_ready = self._elsewhere, self.why_not, self.why_not_ready
        address.on_tokens, self.shared.on_withdrawn = self._tokens, address.withdraw

    def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        if self._front is not None:
            self._front.elsewhere = None
        self._elsewhere.close()
        self._gateway.hub.quotas.counters = MemoryCounters()

    async def drain(self) -> None:
        """Lets calls that were relayed to other replicas end, for a while."""
        until = time.monotonic() + self._gateway.hub.limits.drain_s
        while self._elsewhere.in_flight and time.monotonic() < until:
            await asyncio.sleep(0.02)

    def why_not(self, agent: str) -> str:
        """Why an agent is not served here now; empty when it is."""
        if why := self.shared.why_blind():
            return why
        if not self.has_joined.is_set():
            return "this replica has not yet heard what the others know"
        return self.agreement.why_not(agent)

    def why_not_ready(self) -> str:
        """Why this replica takes no clients now; empty when it does."""
        return self.shared.why_blind() or ("" if self.has_joined.is_set() else "joining")

    # ------------------------------------------------------------------------------------------ policies

    def _marks(self) -> dict[str, str]:
        """A digest of each agent's policy as its files say it, wherever the workspace lies, and of the settings."""
        host = self._gateway.host
        root = str(host.homes.root)
        marks = dict.fromkeys(host.dispatcher.seats, GONE)
        for agent in host.workspace.agents:
            marks[agent.id] = self._digest(agent.text, written(agent.profile.policies).replace(root, ""))
        node = host.homes.node
        settings = node.value if node is not None else {}
        if isinstance(own := settings.get("gateway"), dict):  # where each replica is, is its own
            settings = settings | {"gateway": {key: value for key, value in own.items() if key != "shared"}}
        marks[SETTINGS] = self._digest(json.dumps(settings, sort_keys=True, default=str))
        return marks

    @staticmethod
    def _digest(*parts: str) -> str:
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]

    async def _join(self) -> None:
        """Tells what is in force, as far as is known here, and learns what is."""
        for agent, mine in self.agreement.mine.items():
            known = self.agreement.theirs.get(agent)
            self._learn(agent, await self.shared.agree(agent, known or mine, known or ""))
        if not self.has_joined.is_set():
            self._later(self._try_again())
        self.has_joined.set()

    async def _try_again(self) -> None:
        """Files that no replica ever had in force come in force once no other replica is there."""
        while self._strange:
            for agent in self._strange & self.agreement.behind:
                self._tell(agent, "")
            await asyncio.sleep(TICK_S * 5)

    def _learn(self, agent: str, mark: str) -> None:
        self.agreement.theirs[agent] = mark
        if self.agreement.mine.get(agent) == mark:
            self._strange.discard(agent)

    def _refreshed(self) -> None:
        """Compares after the files were read again. An edit of a replica that had what is in force is told; one that is
        behind has read something on the way there."""
        before, self.agreement.mine = self.agreement.mine, self._marks()
        for agent, mark in self.agreement.mine.items():
            was, theirs = before.get(agent, ""), self.agreement.theirs.get(agent)
            if mark == theirs:
                self._strange.discard(agent)
            elif self.has_joined.is_set() and (was == theirs or theirs is None or agent in self._strange):
                self._tell(agent, was if was == theirs else "")

    def _tell(self, agent: str, before: str) -> None:
        if agent not in self._telling:
            self._telling.add(agent)
            self._later(self._tell_until_told(agent, before))

    async def _tell_until_told(self, agent: str, before: str) -> None:
        """Tells an edit, and those that follow it meanwhile."""
        try:
            while True:
                mark = self.agreement.mine[agent]
                try:
                    self._learn(agent, await self.shared.agree(agent, mark, before))
                except SharedError:
                    await asyncio.sleep(TICK_S)
                    continue
                if self.agreement.theirs[agent] != mark or self.agreement.mine[agent] == mark:
                    return
                before = mark
        finally:
            self._telling.discard(agent)

    def _on_marks(self, marks: Mapping[str, str]) -> None:
        known = {name: mark for name, mark in marks.items() if name in self.agreement.mine}
        is_news = any(self.agreement.theirs.get(name) != mark for name, mark in known.items())
        for name, mark in known.items():
            self._learn(name, mark)
        if (is_news or set(marks) - set(known)) and (self.agreement.behind or set(marks) - set(known)):
            self._reload()

    def _reload(self) -> None:
        """Reads the files again now, for they may have what others have."""
        if self._reloading is None:
            self._reloading = asyncio.ensure_future(asyncio.to_thread(self._gateway.host.on_files, ()))
            self._reloading.add_done_callback(self._reloaded)

    def _reloaded(self, task: asyncio.Task[None]) -> None:
        self._reloading = None
        self._gateway.refresh()

    # ------------------------------------------------------------------------------------------ tokens and servers

    def _tokens(self, gone: Iterable[str], back: Iterable[str]) -> None:
        self._later(self._withdraw(tuple(gone), tuple(back)))

    async def _withdraw(self, gone: tuple[str, ...], back: tuple[str, ...]) -> None:
        while True:
            try:
                await self.shared.withdraw(gone, back)
                return
            except SharedError:
                await asyncio.sleep(TICK_S)

    def _on_news(self, server: str) -> None:
        self._gateway.hub.list_again(server)

    def _later(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _is_reached(place: str, settings: SharedSettings) -> bool:
    host = urlsplit(place).hostname or ""
    return is_within(host, settings.peers) and host not in ("0.0.0.0", "::")


def written(value: object) -> str:
    """A value as text that is the same in every process; sets have no order of their own."""
    if is_dataclass(value) and not isinstance(value, type):
        return written([(field.name, getattr(value, field.name)) for field in fields(value)])
    if isinstance(value, Mapping):
        return "{" + ",".join(sorted(f"{written(key)}:{written(item)}" for key, item in value.items())) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ",".join(sorted(map(written, value))) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(written, value)) + "]"
    return repr(value)
