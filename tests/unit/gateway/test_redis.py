"""What replicas share, in a real Redis: counts, marks, news; and what is left when it goes, comes back, or forgets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from extgate.enforce.mcp.quotas import Taken, Want
from extgate.enforce.mcp.shared import SharedError, news_of
from extgate.errors import WorkspaceError
from extgate.gateway.address import open_front
from extgate.gateway.replicas import open_replicas
from extgate.gateway.settings import read_gateway
from extgate.homes import find_homes
from tests.unit.gateway.redis_process import RedisProcess, needs_redis
from tests.unit.gateway.test_address import HELLO, Web
from tests.unit.gateway.world import World, run

pytestmark = needs_redis


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisProcess]:
    process = RedisProcess()
    yield process.start()
    process.stop()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


class Replica:
    """One replica's way to Redis, and what it heard."""

    def __init__(self, redis: RedisProcess, name: str, replica: str, **options: Any) -> None:
        from extgate.enforce.mcp.shared_redis import RedisShared, connect

        self.now = 0.0
        place = f"http://127.0.0.1/{replica}"
        self.shared = RedisShared(connect(redis.url), replica=replica, place=place, prefix=name, **options)
        self.marks: dict[str, str] = {}
        self.withdrawn: frozenset[str] = frozenset()
        self.heard: list[str] = []
        self.emptied = 0
        self.shared.on_marks = self._marks
        self.shared.on_withdrawn = self._withdrawn
        self.shared.on_news = self.heard.append
        self.shared.on_empty = self._empty

    def _marks(self, marks: Mapping[str, str]) -> None:
        self.marks.update(marks)

    def _withdrawn(self, digests: frozenset[str]) -> None:
        self.withdrawn = digests

    async def _empty(self) -> None:
        self.emptied += 1

    async def take(self, *wants: Want, lease: str = "x") -> Taken:
        future: asyncio.Future[Taken] = asyncio.get_running_loop().create_future()
        self.shared.take(wants, lease, future.set_result)
        return await asyncio.wait_for(future, 30)


@asynccontextmanager
async def two(redis: RedisProcess, name: str, **options: Any) -> AsyncIterator[list[Replica]]:
    found = [Replica(redis, name, replica, **options) for replica in ("1" * 16, "2" * 16)]
    for one in found:
        one.shared.start()
    try:
        await until(lambda: all(one.emptied and not one.shared.why_blind() for one in found))
        yield found
    finally:
        for one in found:
            await one.shared.stop()


async def until(holds: Any) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)


def test_a_rate_is_used_up_by_all_together_and_the_wait_is_told(redis: RedisProcess, name: str) -> None:
    async def work() -> None:
        async with two(redis, name) as both:
            want = Want("k", 1 / 3600, 3, None, 1.0)
            found = [await both[n % 2].take(want) for n in range(5)]
            assert [taken.short for taken in found] == [None, None, None, 0, 0]
            assert 3590 < found[-1].wait_s <= 3600
            assert await both[0].take(Want("other", 1.0, 1, None, 1.0)) == Taken()

    run(work())


def test_calls_in_flight_are_counted_together_and_all_or_nothing_is_taken(redis: RedisProcess, name: str) -> None:
    async def work() -> None:
        async with two(redis, name) as (one, other):
            few, rate = Want("few", None, 1, 2, 60.0), Want("rate", 0.001, 1, None, 60.0)
            assert await one.take(few, lease="a") == Taken()
            assert await other.take(few, lease="b") == Taken()
            assert await other.take(rate, few, lease="c") == Taken(1)
            assert await other.take(rate, lease="d") == Taken()
            one.shared.leave([few], "a")
            while (await other.take(few, lease="e")).short is not None:
                pass
            many = [one.take(few, lease=str(n)) for n in range(20)]
            assert {taken.short for taken in await asyncio.gather(*many)} == {0}

    run(work())


def test_a_lease_whose_replica_died_lapses(redis: RedisProcess, name: str) -> None:
    async def work() -> None:
        async with two(redis, name) as (one, other):
            assert await one.take(Want("k", None, 1, 1, -59.95), lease="a") == Taken()  # 50 ms
            async with asyncio.timeout(30):
                while (await other.take(Want("k", None, 1, 1, 60.0), lease="b")).short is not None:
                    pass

    run(work())


def test_marks_tokens_and_changed_lists_reach_the_others(redis: RedisProcess, name: str) -> None:
    async def work() -> None:
        async with two(redis, name) as (one, other):
            assert await one.shared.agree("a", "1", "") == "1"
            await until(lambda: other.marks == {"a": "1"})
            assert await other.shared.agree("a", "2", "1") == "2"
            await until(lambda: one.marks == {"a": "2"})
            assert await one.shared.agree("a", "1", "") == "2"
            assert await one.shared.agree("a", "1", "2") == "1"
            assert await one.shared.agree("a", "new", "") == "1"
            assert await one.shared.agree("a", "new", "between") == "1"
            assert await one.shared.agree("a", "new", "1") == "new"
            await one.shared.withdraw(["d" * 64, "e" * 64], [])
            await until(lambda: other.withdrawn == {"d" * 64, "e" * 64})
            await other.shared.withdraw([], ["d" * 64])
            await until(lambda: one.withdrawn == {"e" * 64})
            one.shared.tell("habits")
            await until(lambda: other.heard == ["habits"])
            assert one.heard == []
            assert await one.shared.place_of("2" * 16) == f"http://127.0.0.1/{'2' * 16}"
            assert await one.shared.place_of("3" * 16) == ""

    run(work())


def test_going_back_to_old_files_takes_a_later_revision(redis: RedisProcess, name: str) -> None:
    async def work() -> None:
        async with two(redis, name) as (one, other):
            assert await one.shared.agree("a", "old", "") == "old"
            assert await one.shared.agree("a", "new", "old") == "new"
            assert await other.shared.agree("a", "old", "") == "new"
            other.shared.revision = 7
            assert await other.shared.agree("a", "old", "") == "old"
            assert await one.shared.agree("a", "new", "") == "old"
            assert await one.shared.agree("a", "newest", "old") == "old"
            await until(lambda: one.marks == {"a": "old"})

    run(work())


def test_files_that_were_never_in_force_come_in_force_where_no_other_replica_is(redis: RedisProcess, name: str) -> None:
    async def work() -> None:
        async with two(redis, name) as (one, _):
            assert await one.shared.agree("a", "before", "") == "before"
            assert await one.shared.agree("a", "edited meanwhile", "") == "before"
        alone = Replica(redis, name, "3" * 16)
        assert await alone.shared.agree("a", "edited meanwhile", "") == "edited meanwhile"
        assert await alone.shared.agree("a", "before", "") == "edited meanwhile"
        await alone.shared.stop()

    run(work())


def test_while_redis_is_gone_limits_refuse_and_all_is_known_again_when_it_is_back(
    redis: RedisProcess, name: str
) -> None:
    async def work() -> None:
        now = 0.0
        async with two(redis, name, clock=lambda: now) as (one, other):
            await one.shared.withdraw(["d" * 64], [])
            await until(lambda: other.withdrawn)
            try:
                redis.stop()
                assert "cannot be reached" in (await one.take(Want("k", 1.0, 5, None, 1.0))).error
                with pytest.raises(SharedError):
                    await one.shared.agree("a", "1", "")
                assert one.shared.why_blind() == ""
                now = 5.1
                assert "cannot be reached" in one.shared.why_blind()
            finally:
                redis.start()
            await until(lambda: not one.shared.why_blind() and not other.shared.why_blind())
            await until(lambda: one.emptied == 2 and other.emptied == 2)
            assert one.withdrawn == other.withdrawn == {"d" * 64}
            assert await one.take(Want("k", 1.0, 5, None, 1.0)) == Taken()
            one.shared.tell("habits")  # news are heard again as well
            async with asyncio.timeout(30):
                while not other.heard:
                    one.shared.tell("habits")
                    await asyncio.sleep(0.05)

    run(work())


@pytest.mark.parametrize(
    "data", [None, 7, b"", b"{", b"[1,2,3]", b'["mark","a"]', b'"x"', b"[" * 5000, b'["' + b"x" * 70_000 + b'","",""]']
)
def test_what_is_no_news_is_none(data: object) -> None:
    assert news_of(data) is None


def test_what_others_write_into_the_news_breaks_nothing(redis: RedisProcess, name: str) -> None:
    async def work() -> None:
        async with two(redis, name) as (one, other):
            for data in (b"\xff", b"[]", b'["mark","",""]', b'["server","nobody","x"]', b'["what","",""]'):
                await one.shared._redis.publish(one.shared._key("news"), data)
            one.shared.tell("habits")
            await until(lambda: "habits" in other.heard)
            assert other.marks == {"": ""}
            assert other.heard == ["nobody", "habits"]

    run(work())


def test_a_gateway_joins_by_its_settings_and_says_so_when_it_cannot(
    redis: RedisProcess, name: str, tmp_path: Path
) -> None:
    world = World(tmp_path, f"gateway: {{shared: {{url: '{redis.url}', name: '{name}'}}}}\n")

    async def work() -> None:
        settings = read_gateway(find_homes(tmp_path))
        assert settings.shared is not None
        async with AsyncExitStack() as stack:
            front = await stack.enter_async_context(open_front(settings, "127.0.0.1", 0))
            gateway = await stack.enter_async_context(world.open())
            front.serve(gateway)
            web = Web(front.port)
            async with open_replicas(settings.shared, gateway, front) as joined:
                await until(lambda: not joined.why_not_ready())
                session = (await web.rpc("initialize", HELLO)).headers["mcp-session-id"]
                assert session.startswith(joined.shared.replica)
                assert await joined.shared.place_of(joined.shared.replica) == front.url
            front.host = "0.0.0.0"
            with pytest.raises(WorkspaceError, match="cannot reach this one"):
                async with open_replicas(settings.shared, gateway, front):
                    pass
            with suppress(ConnectionError):
                web.origin.close()

    run(work())
