"""Servers held open: what they offer, what becomes of them, and that they come back by themselves."""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from extgate.discover.mcp_live import Held, LiveServers
from extgate.discover.mcp_servers import ServerSpec
from extgate.discover.mcp_watch import ServerError

SERVER = str(Path(__file__).parents[2] / "live_server.py")
WAIT_S = 60

News = queue.Queue[Held]


def spec(name: str = "demo", **flags: Any) -> ServerSpec:
    return ServerSpec(name=name, command=sys.executable, args=(SERVER, json.dumps(flags)))


@contextmanager
def live(*specs: ServerSpec, **options: Any) -> Iterator[tuple[LiveServers, News]]:
    news: News = queue.Queue()
    options = {"trusted": lambda spec: True, "retry_s": (0.01,), "on_change": news.put, **options}
    with LiveServers(**options) as servers:
        servers.want(specs).result(WAIT_S)
        yield servers, news


def until(news: News, is_it: Callable[[Held], bool]) -> Held:
    while not is_it(held := news.get(timeout=WAIT_S)):
        pass
    return held


def text(answer: Mapping[str, Any]) -> dict[str, Any]:
    found = json.loads(answer["content"][0]["text"])
    assert isinstance(found, dict)
    return found


def test_a_held_server_is_connected_with_what_it_offers() -> None:
    with live(spec(tools=["echo", "add"])) as (servers, _):
        (held,) = servers.held
        assert held.server.state == "connected"
        assert [e.id for e in held.extensions] == ["mcp_tool:demo/echo", "mcp_tool:demo/add"]
        assert held.server.facts["version"] == "1"


def test_a_call_reaches_the_same_process_each_time() -> None:
    with live(spec()) as (servers, _):
        first = text(servers.call("demo", "echo", {"text": "a"}).result(WAIT_S))
        second = text(servers.call("demo", "echo", {"text": "b"}).result(WAIT_S))
        assert first["arguments"] == {"text": "a"}
        assert first["pid"] == second["pid"]
        assert servers.call("demo", "echo", {"fail": True}).result(WAIT_S)["isError"] is True


def test_no_process_is_left_behind() -> None:
    with live(spec()) as (servers, _):
        pid = text(servers.call("demo", "echo", {}).result(WAIT_S))["pid"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_killed_server_fails_at_once_and_comes_back_by_itself() -> None:
    with live(spec(), ping_s=3600) as (servers, news):
        pid = text(servers.call("demo", "echo", {}).result(WAIT_S))["pid"]
        os.kill(pid, signal.SIGKILL)
        lost = until(news, lambda held: held.server.state == "failed")
        assert "signal SIGKILL" in (lost.server.error or "")
        assert not lost.extensions
        until(news, lambda held: held.server.state == "connected")
        assert text(servers.call("demo", "echo", {}).result(WAIT_S))["pid"] != pid


def test_a_server_that_cannot_start_yet_is_tried_again(tmp_path: Path) -> None:
    with live(spec(gate=str(tmp_path / "open"))) as (servers, news):
        assert servers.held[0].server.state == "failed"
        assert "exit code 3" in (servers.held[0].server.error or "")
        (tmp_path / "open").touch()
        until(news, lambda held: held.server.state == "connected")


def test_a_list_that_changed_is_read_again() -> None:
    with live(spec(tools=["echo", "plus"], grow="plus"), ping_s=3600) as (servers, news):
        servers.call("demo", "plus", {}).result(WAIT_S)
        grown = until(news, lambda held: len(held.extensions) == 3)
        assert [e.name for e in grown.extensions] == ["echo", "plus", "grown"]


def test_every_ping_that_is_answered_is_heard() -> None:
    heard: queue.Queue[str] = queue.Queue()
    with live(spec(), ping_s=0.01, on_heard=heard.put):
        assert [heard.get(timeout=WAIT_S) for _ in range(4)] == ["demo"] * 4


def test_a_server_that_no_longer_answers_fails() -> None:
    with live(spec(tools=["sulk"], mute="sulk"), ping_s=0.2) as (servers, news):
        servers.call("demo", "sulk", {}).result(WAIT_S)
        lost = until(news, lambda held: held.server.state == "failed")
        assert "no answer to `ping` within 0.2 s" in (lost.server.error or "")


def test_a_call_during_which_the_server_dies_is_an_error_in_words() -> None:
    with live(spec(tools=["quit"], die="quit"), retry_s=(3600,)) as (servers, news):
        with pytest.raises(ServerError, match="refused `quit`"):
            servers.call("demo", "quit", {}).result(WAIT_S)
        until(news, lambda held: held.server.state == "failed")
        with pytest.raises(ServerError, match=r"`demo` is failed: .*exit code 3"):
            servers.call("demo", "quit", {}).result(WAIT_S)


def test_a_call_during_which_the_server_is_turned_off_is_given_up() -> None:
    with live(spec(tools=["sulk"], mute="sulk", silent=True)) as (servers, _):
        waiting = servers.call("demo", "sulk", {})
        servers.switch("demo", is_on=False).result(WAIT_S)
        with pytest.raises(ServerError, match=r"ended during it|refused|is disabled"):
            waiting.result(WAIT_S)


def test_an_unknown_server_or_tool_is_an_error_in_words() -> None:
    with live(spec()) as (servers, _):
        with pytest.raises(ServerError, match="`ghost` is not configured"):
            servers.call("ghost", "echo", {}).result(WAIT_S)
        assert text(servers.call("demo", "no such", {}).result(WAIT_S))["tool"] == "no such"


def test_a_server_is_turned_off_and_on_again() -> None:
    with live(spec()) as (servers, _):
        pid = text(servers.call("demo", "echo", {}).result(WAIT_S))["pid"]
        servers.switch("demo", is_on=False).result(WAIT_S)
        assert servers.held[0].server.state == "disabled"
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        with pytest.raises(ServerError, match="is disabled"):
            servers.call("demo", "echo", {}).result(WAIT_S)
        servers.want([spec()]).result(WAIT_S)
        assert servers.held[0].server.state == "disabled"
        servers.switch("demo", is_on=True).result(WAIT_S)
        assert servers.held[0].server.state == "connected"


def test_other_wishes_start_and_end_only_what_changed() -> None:
    with live(spec("a"), spec("b"), spec("c")) as (servers, _):
        pids = {name: text(servers.call(name, "echo", {}).result(WAIT_S))["pid"] for name in "abc"}
        moved = ServerSpec(name="a", command=sys.executable, args=spec("a").args, file=".mcp.json", line=9)
        servers.want([moved, spec("b", tools=["other"]), spec("d")]).result(WAIT_S)
        assert [held.server.name for held in servers.held] == ["a", "b", "d"]
        assert text(servers.call("a", "echo", {}).result(WAIT_S))["pid"] == pids["a"]
        assert text(servers.call("b", "other", {}).result(WAIT_S))["pid"] != pids["b"]


def test_what_is_untrusted_or_disabled_or_broken_is_never_started() -> None:
    specs = [
        spec("stranger"),
        ServerSpec(name="off", command=sys.executable, is_disabled=True),
        ServerSpec(name="bad", error="no command"),
    ]
    with live(*specs, trusted=lambda spec: False) as (servers, _):
        states = {held.server.name: held.server.state for held in servers.held}
        assert states == {"stranger": "untrusted", "off": "disabled", "bad": "failed"}
        assert [f.code for held in servers.held for f in held.findings] == ["EG316"]
        with pytest.raises(ServerError, match="is untrusted"):
            servers.call("stranger", "echo", {}).result(WAIT_S)


def test_a_server_that_is_not_installed_fails_with_words() -> None:
    with live(ServerSpec(name="x", command="no-such-command-here")) as (servers, _):
        assert "is not installed" in (servers.held[0].server.error or "")
