"""The gateway before a real process: what servers do to it, and what edits do at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from extgate.enforce.mcp.upstream import Upstream
from extgate.enforce.sinks import JsonLines
from extgate.errors import DialectError
from extgate.gateway.running import open_gateway
from tests.unit.gateway.world import Client, World, run, text_of

DENY_ECHO = "mcp: {disabled: ['habits/echo']}"


def test_a_call_in_flight_when_its_server_dies_is_answered_and_the_server_comes_back(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            assert "echo" in await client.tools()
            hanging = client.begin("tools/call", {"name": "habits__hang"})
            assert "lost: it ended with exit code 3" in text_of(await client.call("die"))
            assert "lost" in text_of(await hanging)
            await client.news("notifications/tools/list_changed")
            await client.news("notifications/tools/list_changed")
            assert text_of(await client.call("echo", a=1)) == '{"a": 1}'
            assert gateway.hub.bases["habits"].restarts == 1

    run(work())


def test_a_server_that_gives_no_answer_costs_only_its_call(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, "gateway: {limits: {call_s: 0.3}}\n")
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            hanging = client.begin("tools/call", {"name": "habits__hang"})
            assert text_of(await client.call("echo")) == "{}"
            assert "gave no answer within 0.3 s" in text_of(await hanging)
            await client.call("echo")
            assert {"cancelled": True} in world.calls

    run(work())


def test_an_answer_past_the_bound_fails_its_call_alone(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, "gateway: {limits: {message_bytes: 100000, answer_bytes: 1}}\n")
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            assert len(text_of(await client.call("big", size=90_000))) == 90_000
            assert "longer than 100000 bytes" in text_of(await client.call("big", size=3_000_000))
            assert text_of(await client.call("echo", still="here")) == '{"still": "here"}'

    run(work())


def test_what_is_no_message_and_answers_that_nobody_asked_for_reach_no_client(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            assert text_of(await client.call("garbage")) == "{}"
            assert client.told == []

    run(work())


def test_a_tool_that_comes_is_told_once_and_only_to_who_may_see_it(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, a="", b="mcp: {allowed: ['habits/echo']}")
        async with world.open() as gateway:
            client, other = await Client(gateway).hello(), await Client(gateway, "b").hello()
            assert "grown" not in await client.tools()
            assert await other.tools() == ["echo"]
            await client.call("grow")
            await client.news("notifications/tools/list_changed")
            assert "grown" in await client.tools()
            assert client.told == []
            assert other.told == []

    run(work())


def test_an_edit_is_obeyed_by_the_next_call_and_told_to_that_agent_alone(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, a="", b="")
        async with world.open() as gateway:
            client, other = await Client(gateway).hello(), await Client(gateway, "b").hello()
            assert "echo" in await client.tools()
            await other.tools()
            world.profile("a", DENY_ECHO)
            await client.news("notifications/tools/list_changed")
            assert "disabled" in text_of(await client.call("echo"))
            assert "echo" not in await client.tools()
            assert text_of(await other.call("echo")) == "{}"
            assert other.told == []

    run(work())


def test_no_call_passes_under_the_old_policy_once_the_edit_is_acknowledged(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            storm = [asyncio.ensure_future(_repeat(client, 60)) for _ in range(8)]
            await client.call("echo")
            world.profile("a", DENY_ECHO)
            await asyncio.to_thread(gateway.host.reload)
            known = len(world.events)
            await asyncio.gather(*storm)
            await client.call("echo")
            later = [e for e in world.events[known:] if e["question"] == "use"]
            assert {event["outcome"] for event in later} == {"refused"}
            ran = sum(call.get("tool") == "echo" for call in world.calls)
            assert ran == sum(e["outcome"] == "allowed" for e in world.events if e["question"] == "use")

    async def _repeat(client: Client, count: int) -> None:
        for _ in range(count):
            await client.call("echo")

    run(work())


def test_a_server_that_is_taken_out_of_the_file_is_refused_at_once(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            assert "echo" in await client.tools()
            world.servers()
            await asyncio.to_thread(gateway.host.reload)
            assert "not installed" in text_of(await client.call("echo"))
            assert await client.tools() == []

    run(work())


def test_a_client_of_an_agent_whose_server_is_missing_is_told_why_until_it_is_there(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, a="mcp: {required: [habits]}")
        world.servers()
        async with world.open() as gateway:
            answer = await Client(gateway).ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
            assert "`habits` is not met" in answer["error"]["message"]
            world.servers("habits")
            gateway.host._trusted = frozenset(s.digest for s in _specs(world))
            await asyncio.to_thread(gateway.host.reload)
            await gateway.hub.settled()
            client = await Client(gateway).hello()
            assert "echo" in await client.tools()

    run(work())


def _specs(world: World):  # type: ignore[no-untyped-def]
    from extgate.discover.everything import wanted_servers
    from extgate.workspace import Workspace

    return wanted_servers(Workspace.open(world.root).sources()).specs


def test_plain_clients_share_a_process_and_one_that_can_be_asked_has_its_own(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with world.open() as gateway:
            plain = [await Client(gateway).hello() for _ in range(2)]
            asked = await Client(gateway).hello(elicitation={})
            pids = [(await client.call("echo"))["result"]["pid"] for client in (*plain, asked)]
            assert pids[0] == pids[1] != pids[2]
            hello = gateway.hub.clients[asked.session].owned["habits"].hello
            assert hello["version"] == '{"elicitation": {}}'
            assert gateway.hub.bases["habits"].hello["version"] == "{}"

    run(work())


@pytest.mark.parametrize("is_allowed", [True, False])
def test_a_question_reaches_the_client_that_the_call_came_from_if_the_profile_lets_it(
    tmp_path: Path, is_allowed: bool
) -> None:
    async def work() -> None:
        world = World(tmp_path, a="" if is_allowed else "gateway: {client: {disabled: [elicitation]}}")
        async with world.open() as gateway:
            client, other = await Client(gateway).hello(elicitation={}), await Client(gateway).hello(elicitation={})
            answer = client.begin("tools/call", {"name": "habits__elicit"})
            if is_allowed:
                asked = await client.news("elicitation/create")
                client.send({"id": asked["id"], "result": {"action": "accept"}})
                assert text_of(await answer) == '{"action": "accept"}'
            else:
                assert "no client to ask" in text_of(await answer)
                assert client.told == []
            assert other.told == []

    run(work())


def test_progress_is_told_to_who_asked_for_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with World(tmp_path).open() as gateway:
            client, other = await Client(gateway).hello(), await Client(gateway).hello()
            params = {"name": "habits__progress", "_meta": {"progressToken": "p"}}
            await client.ask("tools/call", params)
            assert (await client.news("notifications/progress"))["params"] == {"progressToken": "p", "progress": 1}
            assert other.told == []

    run(work())


def test_a_call_in_flight_ends_before_the_gateway_does(tmp_path: Path) -> None:
    async def work() -> None:
        until = tmp_path / "now"
        async with World(tmp_path).open() as gateway:
            client = await Client(gateway).hello()
            params = {"name": "habits__wait", "arguments": {"until": str(until)}}
            answer = client.begin("tools/call", params)
            await client.call("echo")
            asyncio.get_running_loop().call_later(0.1, until.touch)
        assert text_of(answer.result()) == "waited"

    run(work())


def test_alone_with_one_client_the_server_starts_with_it_and_learns_what_it_declares(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with world.open(is_exclusive=True, agents=frozenset({"a"})) as gateway:
            assert gateway.hub.bases == {}
            client = await Client(gateway).hello(elicitation={}, sampling={})
            assert "echo" in await client.tools()
            assert gateway.hub.bases["habits"].hello["version"] == '{"elicitation": {}, "sampling": {}}'
            answer = client.begin("tools/call", {"name": "habits__elicit"})
            asked = await client.news("elicitation/create")
            client.send({"id": asked["id"], "result": {"action": "decline"}})
            assert text_of(await answer) == '{"action": "decline"}'

    run(work())


def test_a_server_that_nobody_approved_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path.parent / f"{tmp_path.name}-state"))
        world = World(tmp_path)
        async with open_gateway(world.root) as gateway:
            client = await Client(gateway).hello()
            assert await client.tools() == []
            assert gateway.hub.bases == {}

    run(work())


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("gateway: {prefix: sometimes}", "gateway.prefix"),
        ("gateway: {prefixes: always}", "gateway.prefixes"),
        ("gateway: {aliases: [a]}", "gateway.aliases"),
        ("gateway: {client: {deny: [sampling]}}", "gateway.client"),
        ("gateway: {limits: {call_s: 0}}", "gateway.limits.call_s"),
        ("gateway: {limits: {page: 1.5}}", "gateway.limits.page"),
        ("gateway: [x]", "gateway: expected a mapping"),
    ],
)
def test_a_setting_without_a_meaning_is_an_error_at_its_line(tmp_path: Path, text: str, where: str) -> None:
    async def work() -> None:
        world = World(tmp_path, text + "\n")
        async with world.open():
            raise AssertionError("opened")

    with pytest.raises(DialectError) as found:
        run(work())
    assert where in str(found.value)
    assert found.value.line == 2


def test_a_profile_s_gateway_that_cannot_be_read_closes_what_it_speaks_of(tmp_path: Path) -> None:
    async def work() -> None:
        said: list[str] = []
        world = World(tmp_path, a="gateway: {client: {disabled: 3, x: 1}}")
        async with world.open(say=said.append) as gateway:
            client = await Client(gateway).hello(elicitation={})
            assert client.session.allowed_capabilities("habits") == {}
            assert any("gateway.client" in line for line in said)

    run(work())


def test_no_call_of_a_batch_runs_when_the_record_cannot_be_written_and_the_next_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            await client.tools()

            def full(self: JsonLines, lines: bytes) -> None:
                raise OSError("disk full")

            with monkeypatch.context() as patch:
                patch.setattr(JsonLines, "write", full)
                answers = [client.begin("tools/call", {"name": "habits__echo"}) for _ in range(5)]
                for answer in answers:
                    assert "the record cannot be written" in text_of(await asyncio.wait_for(answer, 30))
            assert world.calls == []
            assert text_of(await client.call("echo")) == "{}"
        assert [e["outcome"] for e in world.events if e["question"] == "use"] == ["allowed"]

    run(work())


def test_a_call_stands_in_the_record_before_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        world = World(tmp_path)
        order: list[str] = []
        write, send = JsonLines.write, Upstream.ask
        monkeypatch.setattr(JsonLines, "write", lambda self, lines: (order.append("write"), write(self, lines))[1])
        monkeypatch.setattr(Upstream, "ask", lambda self, call: (order.append("send"), send(self, call))[1])
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            order.clear()
            calls = [client.begin("tools/call", {"name": "habits__echo"}) for _ in range(3)]
            await asyncio.gather(*calls)
            assert order == ["write", "send", "send", "send"]

    run(work())
