"""Limits on calls: each kind refuses in words that say what may be done, records it, and lets all else pass."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from extgate.enforce.mcp.quotas import MemoryCounters, Taken, Want
from extgate.errors import DialectError
from extgate.gateway.settings import read_gateway
from extgate.homes import find_homes
from tests.unit.gateway.world import Client, World, run, text_of


def limited(calls: str) -> str:
    return f"gateway: {{limits: {{calls: [{calls}]}}}}\n"


def is_refused(answer: dict[str, Any]) -> bool:
    return answer["result"].get("isError") is True and "refused for now" in text_of(answer)


def test_a_rate_that_is_used_up_says_when_to_come_back_and_nothing_reaches_the_server(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, limited("{items: habits/echo, rate: 2/day}"), a="", b="")
        async with world.open() as gateway:
            client, other = await Client(gateway).hello(), await Client(gateway, "b").hello()
            assert [is_refused(await client.call("echo")) for _ in range(4)] == [False, False, True, True]
            refused = text_of(await client.call("echo"))
            assert "the limit `rate 2/day` on `habits/echo` is used up; try again in 43" in refused
            assert not is_refused(await client.call("big"))
            assert not is_refused(await other.call("echo"))
            assert len([call for call in world.calls if call["tool"] == "echo"]) == 3
        last = [e for e in world.events if e["outcome"] == "refused"][-1]
        assert (last["agent"], last["action"], last["extension"]) == ("a", "limit", "mcp_tool:habits/echo")
        assert "try again in" in last["reason"]

    run(work())


def test_calls_in_flight_are_bounded_and_make_room_however_they_end(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, limited("{items: 'habits/[hw]*', at_once: 2}"))
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            until = tmp_path / "now"
            first = client.begin("tools/call", {"name": "habits__wait", "arguments": {"until": str(until)}})
            client.begin("tools/call", {"name": "habits__hang"})
            assert "try again when one of the calls in flight has ended" in text_of(await client.call("hang"))
            assert not is_refused(await client.call("echo"))
            until.touch()
            assert text_of(await first) == "waited"
            assert not is_refused(await client.call("wait", until=str(until)))
            client.send({"method": "notifications/cancelled", "params": {"requestId": 3}})
            for _ in range(3):
                assert not is_refused(await client.call("wait", until=str(until)))
            hanging = [client.begin("tools/call", {"name": "habits__hang"}) for _ in range(2)]
            assert is_refused(await client.call("hang"))
            await client.call("die")
            assert ["lost" in text_of(await call) for call in hanging] == [True, True]

    run(work())


def test_what_is_too_big_is_refused_whatever_key_it_lies_under(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, limited("{items: habits, argument_bytes: 2000, result_bytes: 5000}"))
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            assert not is_refused(await client.call("echo", text="x" * 1000))
            assert "allows 2000" in text_of(await client.call("echo", text="x" * 3000))
            hidden = await client.ask("tools/call", {"name": "habits__echo", "_meta": {"x": "y" * 3000}})
            assert is_refused(hidden)
            assert is_refused(await client.ask("tools/call", {"name": "habits__echo", "more": "y" * 3000}))
            assert len(text_of(await client.call("big", size=4000))) == 4000
            assert "allows 5000" in text_of(await client.call("big", size=6000))
            assert len(world.calls) == 3

    run(work())


def test_a_call_past_its_time_is_cancelled_with_its_server(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, limited("{items: habits/hang, call_s: 0.05, at_once: 1}"))
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            for _ in range(2):
                assert "had no answer within the 0.05 s" in text_of(await client.call("hang"))
            await client.call("echo")
            assert world.calls.count({"cancelled": True}) == 2

    run(work())


def test_an_edit_of_the_limits_binds_the_next_call(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            assert not is_refused(await client.call("echo"))
            config = tmp_path / "extgate.yaml"
            config.write_text("audit: audit.jsonl\n" + limited("{argument_bytes: 10}"))
            await asyncio.to_thread(gateway.host.reload)
            gateway.refresh()
            assert is_refused(await client.call("echo", text="longer than that"))
            config.write_text("audit: audit.jsonl\ngateway: {limits: {calls: [{rate: often}]}}\n")
            await asyncio.to_thread(gateway.host.reload)
            gateway.refresh()
            assert is_refused(await client.call("echo", text="longer than that"))

    run(work())


def test_a_call_that_the_profile_denies_uses_nothing_up(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, limited("{items: habits, rate: 1/day}"), a="mcp: {disabled: ['habits/big']}")
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            assert "disabled" in text_of(await client.call("big"))
            assert not is_refused(await client.call("echo"))
            assert is_refused(await client.call("echo"))

    run(work())


def take(counters: MemoryCounters, *wants: Want, lease: str = "x") -> Taken:
    found: list[Taken] = []
    counters.take(wants, lease, found.append)
    return found[0]


def test_a_bucket_fills_by_the_clock_and_never_past_its_burst() -> None:
    now = 0.0
    counters = MemoryCounters(clock=lambda: now)
    want = Want("k", 0.5, 2, None, 0.0)
    assert [take(counters, want).short for _ in range(3)] == [None, None, 0]
    assert take(counters, want).wait_s == 2.0
    now = 2.0
    assert [take(counters, want).short for _ in range(2)] == [None, 0]
    now = 1e9
    assert [take(counters, want).short for _ in range(3)] == [None, None, 0]


def test_a_call_takes_all_that_it_wants_or_nothing() -> None:
    counters = MemoryCounters(clock=lambda: 0.0)
    plenty, none = Want("plenty", 1.0, 1, None, 0.0), Want("none", None, 1, 1, 0.0)
    assert take(counters, none, lease="first") == Taken()
    assert take(counters, plenty, none) == Taken(1)
    assert take(counters, plenty) == Taken()
    counters.leave([none], "another")
    assert take(counters, none) == Taken(0)
    counters.leave([none], "first")
    assert take(counters, none) == Taken()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("rate: 60", "calls.rate"),
        ("rate: 0/minute", "calls.rate"),
        ("rate: 5/fortnight", "calls.rate"),
        ("at_once: 0", "calls.at_once"),
        ("at_once: 1.5", "calls.at_once"),
        ("call_s: true", "calls.call_s"),
        ("burst: 5", "calls"),
        ("burst: 5, at_once: 1", "calls.burst"),
        ("at_once: 1, items: 'a['", "calls.items"),
        ("at_once: 1, tools: x", "calls.tools"),
        ("items: x", "calls"),
    ],
)
def test_a_limit_that_has_no_meaning_is_an_error_at_its_line(tmp_path: Path, text: str, place: str) -> None:
    (tmp_path / "extgate.yaml").write_text("\n" + limited("{" + text + "}"))
    with pytest.raises(DialectError) as error:
        read_gateway(find_homes(tmp_path))
    assert error.value.line == 2
    assert f"gateway.limits.{place}" in str(error.value)
