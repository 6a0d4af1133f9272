"""What replicas have in common, in Redis or Valkey. Its clock counts, so replicas' clocks need not agree.

Everything lies under one hash tag, so that a cluster keeps it together. Reading is bounded; what is no news is dropped.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisError

from extgate.enforce.mcp.quotas import Counters, Taken, Want
from extgate.enforce.mcp.shared import SharedError, news_of

BEAT_S = 1.0
LEASE_S = 15
"""How long a replica counts as being there after it was last heard of, in seconds."""
TIMEOUT_S = 1.0
KEPT_S = 30 * 86400
"""How long marks that were in force once and tokens withdrawn are remembered, in seconds."""
MAX_OLD, MAX_WITHDRAWN = 200, 100_000
T = TypeVar("T")

_TAKE = """
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local left = {}
for i = 1, #KEYS / 2 do
  local rate, burst, at_once = tonumber(ARGV[4*i-2]), tonumber(ARGV[4*i-1]), tonumber(ARGV[4*i])
  if rate > 0 then
    local had = redis.call('HMGET', KEYS[2*i-1], 'n', 'at')
    local n, at = tonumber(had[1]) or burst, tonumber(had[2]) or now
    n = math.min(burst, n + math.max(0, now - at) * rate / 1000)
    if n < 1 then return {i, math.ceil((1 - n) / rate * 1000)} end
    left[i] = n
  end
  if at_once > 0 then
    redis.call('ZREMRANGEBYSCORE', KEYS[2*i], '-inf', now)
    if redis.call('ZCARD', KEYS[2*i]) >= at_once then return {i, 0} end
  end
end
for i = 1, #KEYS / 2 do
  local rate, burst = tonumber(ARGV[4*i-2]), tonumber(ARGV[4*i-1])
  local at_once, lease = tonumber(ARGV[4*i]), tonumber(ARGV[4*i+1])
  if rate > 0 then
    redis.call('HSET', KEYS[2*i-1], 'n', tostring(left[i] - 1), 'at', tostring(now))
    redis.call('PEXPIRE', KEYS[2*i-1], math.ceil(burst / rate * 1000) + 1000)
  end
  if at_once > 0 then
    redis.call('ZADD', KEYS[2*i], now + lease, ARGV[1])
    redis.call('PEXPIRE', KEYS[2*i], lease * 2)
  end
end
return {0, 0}
"""
"""KEYS: a bucket and a set of leases for each want; ARGV: the lease, then rate, burst, at once and lease ms of each."""

_LIVES = "return redis.call('ZADD', KEYS[1], redis.call('TIME')[1] + ARGV[1], ARGV[2])"
_AGREE = """
local current = redis.call('HGET', KEYS[1], ARGV[1])
local of, mine = tonumber(redis.call('HGET', KEYS[5], ARGV[1]) or '0'), tonumber(ARGV[7])
local now = redis.call('TIME')[1]
if current and current ~= ARGV[2] and mine <= of then
  if mine < of then return current end
  if current ~= ARGV[3] then
    if ARGV[3] ~= '' or redis.call('ZSCORE', KEYS[2], ARGV[2]) then return current end
    redis.call('ZREMRANGEBYSCORE', KEYS[6], '-inf', now)
    redis.call('ZREM', KEYS[6], ARGV[8])
    if redis.call('ZCARD', KEYS[6]) > 0 then return current end
  end
end
redis.call('HSET', KEYS[5], ARGV[1], math.max(of, mine))
if current == ARGV[2] then return current end
if current then
  redis.call('ZADD', KEYS[2], now, current)
  redis.call('ZREM', KEYS[2], ARGV[2])
  redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -1 - tonumber(ARGV[4]))
  redis.call('EXPIRE', KEYS[2], ARGV[5])
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('INCR', KEYS[3])
redis.call('PUBLISH', KEYS[4], ARGV[6])
return ARGV[2]
"""
"""Another mark comes in force only by a replica that had the one in force until now, by a later revision, or, where it
was never in force, by a replica that starts while no other is there. Files that come late bring nothing.
ARGV: agent, mine, before, how many old ones, for how long, news, revision, replica."""


class RedisShared:
    """The shared state in one Redis. place: where other replicas reach this one. stale_s: how long it may be out of
    reach before nothing is known any more. revision: of the files, higher for later ones. clock: seconds that only go
    forward."""

    def __init__(
        self,
        redis: Redis,
        *,
        replica: str,
        place: str,
        prefix: str = "extgate",
        stale_s: float = 5.0,
        revision: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.replica, self.place, self.stale_s, self.revision = replica, place, stale_s, revision
        self._redis, self._clock, self._prefix = redis, clock, "{" + prefix + "}:"
        self.counters: Counters = self
        self.on_marks: Callable[[Mapping[str, str]], None] = lambda marks: None
        self.on_withdrawn: Callable[[frozenset[str]], None] = lambda digests: None
        self.on_news: Callable[[str], None] = lambda server: None
        self._take = redis.register_script(_TAKE)
        self._agree = redis.register_script(_AGREE)
        self._lives = redis.register_script(_LIVES)
        self._heard_at: float | None = None
        self._why = "not reached yet"
        self.on_empty: Callable[[], Awaitable[None]] = _nothing
        self._version = -1
        self._epoch: object = None
        self._withdrawn: frozenset[str] = frozenset()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False

    def start(self) -> None:
        """Begins to tell that this replica is there, and to hear of the others."""
        self._later(self._beat())
        self._later(self._listen())

    async def stop(self) -> None:
        """Says that this replica is no more, if that can be said."""
        self._is_over = True
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:  # a library that swallows what cancels it must not hold up the end
            await asyncio.wait(self._tasks, timeout=TIMEOUT_S * 2)
        with suppress(SharedError):
            await self._ask(self._redis.delete(self._key("replica", self.replica)))
            await self._ask(self._redis.zrem(self._key("alive"), self.replica))
        await self._redis.aclose()

    # ------------------------------------------------------------------------------------------ contact

    def why_blind(self) -> str:
        if self._heard_at is not None and self._clock() - self._heard_at <= self.stale_s:
            return ""
        return f"the state that replicas share cannot be reached ({self._why})"

    async def _beat(self) -> None:
        while not self._is_over:
            with suppress(SharedError):
                await self._look()  # first: who starts alone must not take itself for another
                await self._ask(self._redis.set(self._key("replica", self.replica), self.place, ex=LEASE_S))
                await self._ask(self._lives(keys=[self._key("alive")], args=[LEASE_S, self.replica]))
            await asyncio.sleep(BEAT_S)

    async def _listen(self) -> None:
        """Hears of news at once; what is missed while it is out of reach is looked up by the beat."""
        while not self._is_over:
            pubsub = self._redis.pubsub()
            try:
                await pubsub.subscribe(self._key("news"))
                while not self._is_over:
                    message = await pubsub.get_message(ignore_subscribe_messages=True, timeout=BEAT_S)
                    if message is not None:
                        await self._hear(news_of(message["data"]))
            except (RedisError, OSError, TimeoutError):
                await asyncio.sleep(BEAT_S)
            except SharedError:
                continue
            finally:
                with suppress(RedisError, OSError):
                    await pubsub.aclose()  # type: ignore[no-untyped-call]

    async def _hear(self, news: tuple[str, str, str] | None) -> None:
        if news is None:
            return
        kind, name, mark = news
        if kind == "mark":
            self.on_marks({name: mark})
        elif kind == "server" and mark != self.replica:
            self.on_news(name)
        elif kind == "look":
            await self._look()

    async def _look(self) -> None:
        """Reads everything that is in force, unless nothing has become other. A state that has lost what it knew is
        told of it again: what was withdrawn stays so."""
        keys = [self._key("version"), self._key("epoch")]
        said, epoch = await self._ask(self._redis.mget(keys))
        version = int(said or 0)
        if epoch is None:  # whoever comes first names it; a state that was lost has another name, or an older version
            await self._ask(self._redis.set(keys[1], secrets.token_hex(8), nx=True))
            epoch = await self._ask(self._redis.get(keys[1]))
        if epoch != self._epoch or version < self._version:
            if self._withdrawn:
                await self.withdraw(self._withdrawn, ())
            await self.on_empty()
        elif version == self._version:
            return
        marks = await self._ask(self._redis.hgetall(self._key("marks")))
        withdrawn = await self._ask(self._redis.zrange(self._key("withdrawn"), 0, MAX_WITHDRAWN))
        self._epoch, self._version, self._withdrawn = epoch, version, frozenset(map(_text, withdrawn))
        self.on_withdrawn(self._withdrawn)
        self.on_marks({_text(agent): _text(mark) for agent, mark in marks.items()})

    async def _ask(self, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                found = await work
        except (RedisError, OSError, TimeoutError) as error:
            self._why = type(error).__name__
            raise SharedError(f"the state that replicas share cannot be reached ({self._why})") from None
        self._heard_at = self._clock()
        return found

    def _key(self, *parts: str) -> str:
        return self._prefix + ":".join(parts)

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ------------------------------------------------------------------------------------------ what is in force

    async def agree(self, agent: str, mine: str, before: str) -> str:
        keys = [self._key("marks"), self._key("old", _digest(agent)), self._key("version"), self._key("news"),
                self._key("revisions"), self._key("alive")]  # fmt: skip
        news = json.dumps(["mark", agent, mine])
        args: list[str | int] = [agent, mine, before, MAX_OLD, KEPT_S, news, self.revision, self.replica]
        found = await self._ask(self._agree(keys=keys, args=args))
        return _text(found)

    async def withdraw(self, gone: Iterable[str], back: Iterable[str]) -> None:
        key, now = self._key("withdrawn"), time.time()
        batch = self._redis.pipeline(transaction=True)
        batch.zremrangebyscore(key, 0, now - KEPT_S)
        gone, back = list(gone), list(back)
        if gone:
            batch.zadd(key, dict.fromkeys(gone, now))
        if back:
            batch.zrem(key, *back)
        batch.incr(self._key("version"))
        batch.publish(self._key("news"), json.dumps(["look", "", ""]))
        await self._ask(batch.execute())

    def tell(self, server: str) -> None:
        self._later(self._tell(json.dumps(["server", server, self.replica])))

    async def _tell(self, news: str) -> None:
        with suppress(SharedError):
            await self._ask(self._redis.publish(self._key("news"), news))

    async def place_of(self, replica: str) -> str:
        found = await self._ask(self._redis.get(self._key("replica", replica)))
        return _text(found) if found is not None else ""

    # ------------------------------------------------------------------------------------------ counts

    def take(self, wants: Sequence[Want], lease: str, then: Callable[[Taken], None]) -> None:
        self._later(self._take_later(wants, lease, then))

    async def _take_later(self, wants: Sequence[Want], lease: str, then: Callable[[Taken], None]) -> None:
        keys = [key for want in wants for key in self._counts(want)]
        args: list[Any] = [lease]
        for want in wants:
            lease_ms = int((want.lease_s + 60) * 1000)
            args += [want.rate or 0, want.burst, want.at_once or 0, lease_ms]
        try:
            place, wait_ms = await self._ask(self._take(keys=keys, args=args))
        except SharedError as error:
            self.leave(wants, lease)  # it may have been counted, and the answer lost
            then(Taken(error=str(error)))
            return
        then(Taken() if place == 0 else Taken(place - 1, wait_ms / 1000))

    def leave(self, wants: Sequence[Want], lease: str) -> None:
        if any(want.at_once is not None for want in wants):
            self._later(self._leave_later(wants, lease))

    async def _leave_later(self, wants: Sequence[Want], lease: str) -> None:
        """Gives a lease back; where that cannot be said, it lapses by itself."""
        batch = self._redis.pipeline(transaction=False)
        for want in wants:
            batch.zrem(self._counts(want)[1], lease)
        with suppress(SharedError):
            await self._ask(batch.execute())

    def _counts(self, want: Want) -> tuple[str, str]:
        digest = _digest(want.key)
        return self._key("bucket", digest), self._key("running", digest)


async def _nothing() -> None:
    return


def _text(found: object) -> str:
    return found.decode(errors="replace") if isinstance(found, bytes) else str(found)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def connect(url: str) -> Redis:
    """A connection to come. Raises ValueError for an address that is none."""
    again = Retry(NoBackoff(), 1)  # a connection of the pool may have been lost since it was used last
    return Redis.from_url(
        url, socket_timeout=TIMEOUT_S * 5, socket_connect_timeout=TIMEOUT_S, max_connections=64, retry=again,
        retry_on_error=[ConnectionError],
    )  # fmt: skip
