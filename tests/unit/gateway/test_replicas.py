"""Two replicas of one gateway: what one learns the other obeys, sessions are found, and doubt serves nothing."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from extgate.enforce.mcp.quotas import Quotas
from extgate.errors import DialectError
from extgate.gateway.address import Address, open_front
from extgate.gateway.replicas import Replicas
from extgate.gateway.running import Gateway
from extgate.gateway.settings import read_gateway
from extgate.gateway.shared import SharedSettings
from extgate.homes import find_homes
from tests.unit.gateway.redis_process import Common, Member
from tests.unit.gateway.test_address import HEADERS, HELLO, META, Web
from tests.unit.gateway.test_callers import OTHER, TOKEN, bearer, keep, with_files
from tests.unit.gateway.world import World, run

SETTINGS = SharedSettings(url="redis://nowhere")
MODERN = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "habits__echo"}
ECHO = {"name": "habits__echo", "arguments": {}}


class Replica:
    """One of them, with a client."""

    def __init__(self, gateway: Gateway, front: Address, replicas: Replicas) -> None:
        self.gateway, self.front, self.replicas = gateway, front, replicas
        self.web = Web(front.port)

    async def reload(self) -> None:
        await asyncio.to_thread(self.gateway.host.reload)
        self.gateway.refresh()

    async def modern(self, name: str = "echo", agent: str = "a", **said: str) -> Any:
        params = {"name": f"habits__{name}", "arguments": {}, "_meta": META}
        return await self.web.rpc("tools/call", params, agent=agent, **MODERN | {"mcp_name": f"habits__{name}"}, **said)


@asynccontextmanager
async def replicas(common: Common, *worlds: World) -> AsyncIterator[list[Replica]]:
    """A replica for each workspace."""
    async with AsyncExitStack() as stack:
        found: list[Replica] = []
        for number, world in enumerate(worlds):
            settings = read_gateway(find_homes(world.root))
            front = await stack.enter_async_context(open_front(settings, "127.0.0.1", 0))
            gateway = await stack.enter_async_context(world.open())
            front.serve(gateway)
            member = Member(common, f"{number:016x}", front.url)
            joined = Replicas(SETTINGS, gateway, member)
            joined.attach(front)
            stack.callback(joined.close)
            found.append(Replica(gateway, front, joined))
            stack.callback(found[-1].web.origin.close)
            await member.on_empty()
        yield found


async def until(holds: Any) -> None:
    """Returns when it holds."""
    async with asyncio.timeout(30):
        while not (holds() if not asyncio.iscoroutinefunction(holds) else await holds()):
            await asyncio.sleep(0.01)


def two(tmp_path: Path, config: str = "", **agents: str) -> tuple[World, World]:
    """Two copies of one workspace."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    first, second = (World(folder, config, **agents) for folder in folders)
    return first, second


def test_a_session_of_one_replica_is_served_through_the_other_to_its_caller_alone(tmp_path: Path) -> None:
    async def work() -> None:
        world = with_files(tmp_path)
        async with replicas(Common(), world, world) as (one, two):
            mine = bearer(TOKEN)
            opened = await one.web.rpc("initialize", {**HELLO, "capabilities": {"elicitation": {}}}, **mine)
            session = {"mcp_session_id": opened.headers["mcp-session-id"]} | mine
            answer = await two.web.rpc("tools/call", ECHO, **session)
            assert answer.json["result"]["content"][0]["text"] == "{}"
            assert len(two.front.front.sessions) == 0
            for other in ({"authorization": ""}, bearer(OTHER)):
                assert (await two.web.rpc("tools/call", ECHO, **session | other)).status == 401
            assert (await two.web.rpc("tools/call", ECHO, agent="b", **session | bearer(OTHER))).status == 404
            asked, _ = _begin(two, "elicit", session)
            question = await asked.event()
            said = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}
            headers = _lines(session)
            assert (await two.web.send("POST", "/agents/a/mcp", headers, json.dumps(said).encode())).status == 202
            assert "accept" in (await asked.event())["result"]["content"][0]["text"]
            own, _ = two.web.begin("GET", "/agents/a/mcp", headers)
            await until(lambda: own.status == 200)
            await two.web.rpc("tools/list", **session)
            world.profile("a", "mcp: {disabled: ['habits/die']}")
            assert (await own.event())["method"] == "notifications/tools/list_changed"
            await until(lambda: not two.replicas.agreement.behind and not one.replicas.agreement.behind)
            assert (await two.web.send("DELETE", "/agents/a/mcp", headers)).status == 200
            assert (await one.web.rpc("tools/call", ECHO, **session)).status == 404

    run(work())


def _lines(session: dict[str, str]) -> dict[str, str]:
    return HEADERS | {name.replace("_", "-"): value for name, value in session.items()}


def _begin(replica: Replica, tool: str, session: dict[str, str]) -> Any:
    call = {"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": {"name": f"habits__{tool}"}}
    return replica.web.begin("POST", "/agents/a/mcp", _lines(session), json.dumps(call).encode())


def test_hanging_up_on_a_relayed_call_reaches_its_replica(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, "gateway: {limits: {drain_s: 0.01}}\n")
        async with replicas(Common(), world, world) as (one, two):
            session = await one.web.hello()
            waiting, sent = _begin(two, "hang", session)
            await until(lambda: world.calls)
            assert two.replicas._elsewhere.in_flight
            sent.abort()
            await until(lambda: not two.replicas._elsewhere.in_flight)
            assert not waiting.status

    run(work())


@pytest.mark.parametrize("place", ["", "http://127.0.0.1:9", "http://10.1.2.3:80", "http://evil.example", "no address"])
def test_a_session_whose_replica_is_gone_or_where_no_replica_may_be_is_told_so(tmp_path: Path, place: str) -> None:
    async def work() -> None:
        common = Common()
        async with replicas(common, World(tmp_path)) as (one,):
            if place:
                Member(common, "f" * 16, place)
            id = f"{'f' * 16}.{'x' * 32}"
            answer = await one.web.rpc("tools/call", ECHO, mcp_session_id=id)
            assert answer.status == (502 if place == "http://127.0.0.1:9" else 404)
            assert (await one.web.rpc("tools/call", ECHO, mcp_session_id=id, x_extgate_relayed="1")).status == 404
            common.is_gone = True
            one.front.front.why_not_here = lambda agent: ""
            assert (await one.web.rpc("tools/call", ECHO, mcp_session_id=id)).status == 503

    run(work())


def test_an_edit_on_one_is_obeyed_by_the_other_before_its_own_files_have_it(tmp_path: Path) -> None:
    async def work() -> None:
        first, second = two(tmp_path, a="", b="")
        async with replicas(Common(), first, second) as (one, other):
            assert (await other.modern()).status == 200
            first.profile("a", "mcp: {disabled: ['habits/echo']}")
            await one.reload()
            await until(lambda: other.replicas.agreement.behind)
            known = len(second.calls)
            refused = await other.modern()
            assert refused.status == 503
            assert "another version of this agent's policy" in refused.json["error"]["message"]
            assert (await other.modern(agent="b")).status == 200
            assert (await one.modern()).json["result"]["isError"] is True
            second.profile("a", "mcp: {disabled: ['habits/echo']}")
            await until(lambda: not other.replicas.agreement.behind)
            assert (await other.modern()).json["result"]["isError"] is True
            assert len(second.calls) == known + 1

    run(work())


def test_a_policy_has_one_mark_in_every_process_and_place(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from extgate.gateway.replicas import written; "
        "from extgate.workspace import Workspace; root = sys.argv[1]; "
        "print([written(a.profile.policies).replace(root, '') for a in Workspace.open(Path(root)).agents])"
    )
    found = set()
    for number in range(2):
        root = tmp_path / str(number)
        root.mkdir()
        World(root, a="mcp: {disabled: ['habits/echo'], required: [habits]}\nskills: {allowed: [x]}")
        environ = os.environ | {"PYTHONHASHSEED": str(number)}
        done = subprocess.run([sys.executable, "-c", code, str(root)], env=environ, capture_output=True, check=True)
        found.add(done.stdout)
    assert len(found) == 1


def test_what_a_replica_that_is_behind_reads_on_the_way_comes_in_force_nowhere(tmp_path: Path) -> None:
    async def work() -> None:
        first, second = two(tmp_path, a="")
        common = Common()
        async with replicas(common, first, second) as (one, other):
            first.profile("a", "mcp: {disabled: ['*']}")
            await one.reload()
            await until(lambda: other.replicas.agreement.behind)
            wanted = common.marks["a"]
            for text in ("mcp: {disabled: [x]}", "mcp: {disabled: ["):
                second.profile("a", text)
                await other.reload()
                assert (await other.modern()).status == 503
            assert common.marks["a"] == wanted
            assert (await one.modern()).json["result"]["isError"] is True

    run(work())


def test_edits_that_follow_each_other_at_once_are_all_told(tmp_path: Path) -> None:
    async def work() -> None:
        first, second = two(tmp_path, a="")
        common = Common()
        async with replicas(common, first, second) as (one, _):
            common.is_gone = True
            for number in range(3):
                first.profile("a", f"mcp: {{disabled: [x{number}]}}")
                await one.reload()
            common.is_gone = False
            await until(lambda: common.marks["a"] == one.replicas.agreement.mine["a"])
            assert (await one.modern()).status == 200

    run(work())


def test_old_files_that_come_late_do_not_bring_an_old_policy_back(tmp_path: Path) -> None:
    async def work() -> None:
        first, second = two(tmp_path, a="mcp: {disabled: [one]}")
        common = Common()
        async with replicas(common, first, second) as (one, other):
            for rule in ("two", "three"):
                first.profile("a", f"mcp: {{disabled: [{rule}]}}")
                await one.reload()
                await until(lambda rule=rule: one.replicas.agreement.mine["a"] == common.marks["a"])
            second.profile("a", "mcp: {disabled: [two]}")
            await other.reload()
            await until(lambda: len(common.old) == 2)
            assert (await other.modern()).status == 503
            assert (await one.modern()).status == 200
            second.profile("a", "mcp: {disabled: [three]}")
            await other.reload()
            assert (await other.modern()).status == 200
            first.profile("a", "mcp: {disabled: [one]}")
            await one.reload()
            await until(lambda: one.replicas.agreement.mine["a"] == common.marks["a"])
            assert (await one.modern()).status == 200
            assert (await other.modern()).status == 503

    run(work())


def test_a_replica_that_starts_with_old_files_serves_nothing_of_them(tmp_path: Path) -> None:
    async def work() -> None:
        first, second = two(tmp_path, a="")
        common = Common()
        async with replicas(common, first) as (one,):
            first.profile("a", "mcp: {disabled: ['*']}")
            await one.reload()
            await until(lambda: len(common.old) == 1)
            async with replicas(common, second) as (late,):
                assert (await late.modern()).status == 503
            first.profile("a", "mcp: {disabled: [x]}")
            (first.root / "agents" / "a.yaml").unlink()
            await one.reload()
            await until(lambda: common.marks["a"] == "-")
            async with replicas(common, second) as (late,):
                assert (await late.modern()).status == 503

    run(work())


def test_a_token_that_one_takes_out_is_taken_by_none(tmp_path: Path) -> None:
    async def work() -> None:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        first, second = with_files(tmp_path / "one"), with_files(tmp_path / "two")
        async with replicas(Common(), first, second) as (one, other):
            mine = bearer(TOKEN)
            assert (await other.modern(**mine)).status == 200
            keep(first.root / "tokens.json", {"a": ["n" * 32], "b": [OTHER]})
            one.front.configure(one.gateway.settings)
            await until(lambda: other.front.withdrawn)
            assert (await other.modern(**mine)).status == 401
            other.front.configure(other.gateway.settings)
            assert (await other.modern(**mine)).status == 401
            assert (await other.modern(agent="b", **bearer(OTHER))).status == 200
            keep(first.root / "tokens.json", {"a": ["n" * 32, TOKEN], "b": [OTHER]})
            one.front.configure(one.gateway.settings)
            await until(lambda: not other.front.withdrawn)
            assert (await other.modern(**mine)).status == 200

    run(work())


def test_a_limit_counts_the_calls_of_all(tmp_path: Path) -> None:
    async def work() -> None:
        first, second = two(tmp_path, "gateway: {limits: {calls: [{rate: 3/day}]}}\n", a="")
        async with replicas(Common(), first, second) as both:
            found = [(await both[n % 2].modern()).json["result"].get("isError", False) for n in range(6)]
            assert found == [False] * 3 + [True] * 3
            assert len(first.calls) + len(second.calls) == 3

    run(work())


def test_lists_that_change_behind_one_are_told_to_the_sessions_of_the_other(tmp_path: Path) -> None:
    async def work() -> None:
        first, second = two(tmp_path, a="", b="mcp: {disabled: ['*']}")
        async with replicas(Common(), first, second) as (one, other):
            listed: list[str] = []
            other.gateway.hub.bases["habits"].list_again = lambda: listed.append("habits")  # type: ignore[method-assign]
            await one.modern("grow")
            await until(lambda: listed)

    run(work())


def test_without_the_shared_state_nothing_is_served_and_it_comes_back_by_itself(tmp_path: Path) -> None:
    async def work() -> None:
        common = Common()
        world = World(tmp_path)
        async with replicas(common, world) as (one,):
            session = await one.web.hello()
            assert (await one.web.rpc("tools/call", ECHO, **session)).status == 200
            common.is_gone = True
            refused = await one.web.rpc("tools/call", ECHO, **session)
            assert refused.status == 503
            assert "cannot be reached" in refused.json["error"]["message"]
            assert (await one.web.send("GET", "/readyz")).status == 503
            assert len(world.calls) == 1
            common.is_gone = False
            assert (await one.web.rpc("tools/call", ECHO, **session)).status == 200

    run(work())


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{url: 'http://x'}", "gateway.shared.url"),
        ("{url: '${NO_SUCH_VARIABLE}'}", "gateway.shared.url"),
        ("{url: 'redis://x', address: 'http://10.0.0.1:80'}", "gateway.shared.address"),
        ("{url: 'redis://x', address: 'http://evil.example'}", "gateway.shared.address"),
        ("{url: 'redis://x', peers: [all]}", "gateway.shared.peers"),
        ("{url: 'redis://x', stale_s: 3600}", "gateway.shared.stale_s"),
        ("{url: 'redis://x', password: x}", "gateway.shared.password"),
        ("redis://x", "gateway.shared"),
    ],
)
def test_settings_of_replicas_that_have_no_meaning_are_errors(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "extgate.yaml").write_text(f"gateway: {{shared: {text}}}\n")
    with pytest.raises(DialectError) as error:
        read_gateway(find_homes(tmp_path))
    assert word in str(error.value)


def test_an_address_of_redis_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://:secret@10.0.0.1/0")
    (tmp_path / "extgate.yaml").write_text("gateway: {shared: {url: '${env:REDIS_URL}'}}\n")
    found = read_gateway(find_homes(tmp_path)).shared
    assert found is not None
    assert found.url.endswith("@10.0.0.1/0")
    assert "secret" not in repr(found)
    assert Quotas().rows == ()
