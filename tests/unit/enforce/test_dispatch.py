"""Who takes a turn: the unavailable are skipped with the reason, and come back by themselves."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass

import pytest

from extgate.core.extension import Extension, Inventory, Server, ServerState
from extgate.core.policy import Profile
from extgate.dialects.document import Document
from extgate.dialects.registry import read_agent
from extgate.enforce.dispatch import Dispatcher, Expiry, Liveness, refusal_line
from extgate.enforce.gate import Gate
from extgate.enforce.in_force import Change
from extgate.errors import WorkspaceError

DEVOPS = "mcp: {required: ['github*', 'k8s*']}"


@dataclass
class Clock:
    """Seconds that pass when a test says so."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


def installed(**states: ServerState) -> Inventory:
    """Servers by state; a connected one offers `ping`."""
    servers = tuple(
        Server(name=name, state=state, error="exit code 1" if state == "failed" else None)
        for name, state in states.items()
    )
    live = [name for name, state in states.items() if state == "connected"]
    return Inventory(
        extensions=tuple(Extension(kind="mcp_tool", server=name, name="ping") for name in live), servers=servers
    )


def gate(agent: str, text: str, inventory: Inventory) -> Gate:
    policy = read_agent(Document(path=f"agents/{agent}.yaml", text=text))
    return Gate(Profile(id=agent, layers=(policy,)), inventory, door="test")


def office(inventory: Inventory, clock: Clock | None = None) -> Dispatcher:
    dispatcher = Dispatcher(inventory, liveness=Liveness(now=clock or Clock()))
    for agent, text in {"devops": DEVOPS, "research": "{}", "writer": "mcp: {disabled: ['*']}"}.items():
        dispatcher.seat(gate(agent, text, inventory))
    return dispatcher


def test_every_agent_is_listed_with_its_availability() -> None:
    standings = office(installed(github="connected")).standings()
    assert [(s.agent, s.is_available) for s in standings] == [("devops", False), ("research", True), ("writer", True)]


def test_the_unavailable_is_skipped_with_the_missing_patterns_and_the_state_of_the_nearest_servers() -> None:
    route = office(installed(github="failed", slack="connected")).route("devops", "writer")
    assert route.agent == "writer"
    assert [m.pattern for m in route.skipped[0].missing] == ["github*", "k8s*"]
    line = refusal_line(route.skipped[0])
    assert "required `github*` is not met (`github` is failed: exit code 1)" in line
    assert "required `k8s*` is not met (no such server" in line


def test_nobody_takes_the_turn_when_nobody_may() -> None:
    route = office(installed()).route("devops")
    assert route.agent is None
    assert [s.agent for s in route.skipped] == ["devops"]


def test_an_unknown_agent_is_an_error_that_names_the_known() -> None:
    with pytest.raises(WorkspaceError, match="devops, research, writer"):
        office(installed()).route("ghost")


def test_an_agent_comes_back_by_itself_when_its_server_does() -> None:
    told: list[Change] = []
    dispatcher = Dispatcher(installed(github="connected", k8s="failed"), on_change=told.append)
    dispatcher.seat(gate("devops", DEVOPS, dispatcher.inventory))
    assert dispatcher.route("devops").agent is None
    dispatcher.install(installed(github="connected", k8s="connected"))
    assert dispatcher.route("devops").agent == "devops"
    dispatcher.install(installed(github="failed", k8s="connected"))
    assert dispatcher.route("devops").agent is None
    assert [(c.was_available, c.is_available) for c in told] == [(False, True), (True, False)]


def test_a_server_that_was_not_heard_of_within_the_bound_is_not_connected() -> None:
    clock = Clock()
    dispatcher = office(installed(github="connected", k8s="connected"), clock)
    assert dispatcher.route("devops").agent == "devops"
    clock.seconds = 30.0
    assert dispatcher.route("devops").agent == "devops"
    dispatcher.hear("github")
    clock.seconds = 30.5
    skipped = dispatcher.route("devops").skipped[0]
    assert [m.pattern for m in skipped.missing] == ["k8s*"]
    assert "not heard of for 30 s; more than 30 s is not connected" in skipped.reason


def test_every_call_is_refused_while_a_required_server_is_stale() -> None:
    clock = Clock()
    dispatcher = office(installed(github="connected", k8s="connected"), clock)
    guarded = dispatcher.seated("devops").gate
    ping = guarded.inventory.extensions[0]
    assert guarded.use(ping)
    clock.seconds = 31.0
    dispatcher.refresh()
    assert "this agent is unavailable" in guarded.use(ping).message
    dispatcher.hear("github")
    dispatcher.hear("k8s")
    assert guarded.use(ping)


def test_an_agent_without_a_readable_profile_is_listed_and_skipped_and_others_go_on() -> None:
    dispatcher = office(installed())
    dispatcher.seat(Gate(Profile(id="broken"), installed(), door="test"), error="agents/broken.yaml:3: tools: expected")
    route = dispatcher.route("broken", "research")
    assert route.agent == "research"
    assert route.skipped[0].reason == "agents/broken.yaml:3: tools: expected"
    assert not route.skipped[0].missing


def test_a_sub_agents_gate_follows_its_own_profile_and_the_inventory() -> None:
    dispatcher = office(installed(slack="connected"))
    parent = dispatcher.seated("research").gate
    own = Profile(id="child", layers=(read_agent(Document(path="agents/child.yaml", text="{}")),))
    child = parent.child(own, agent="research/child")
    ping = child.inventory.extensions[0]
    assert child.use(ping)
    narrower = read_agent(Document(path="agents/child.yaml", text="mcp: {disabled: [slack]}"))
    dispatcher.put(dispatcher.inventory, {"child": Profile(id="child", layers=(narrower,))})
    assert not child.use(ping)
    assert parent.use(ping)
    dispatcher.put(dispatcher.inventory, {"child": own})
    assert child.use(ping)
    dispatcher.install(installed(slack="failed"))
    assert child.inventory.server("slack") == dispatcher.inventory.server("slack")
    assert "research/child" not in [s.agent for s in dispatcher.standings()]


def test_a_name_cannot_move_the_terminal() -> None:
    dispatcher = Dispatcher(installed())
    dispatcher.seat(Gate(Profile(id="a\x1b[31m"), installed(), door="test"), error="e\x1b[2J")
    assert "\x1b" not in refusal_line(dispatcher.standings()[0])


def test_staleness_takes_effect_without_anybody_asking() -> None:
    told: queue.Queue[Change] = queue.Queue()
    liveness = Liveness(bound_s=0.05)
    dispatcher = Dispatcher(installed(github="connected", k8s="connected"), liveness=liveness, on_change=told.put)
    dispatcher.seat(gate("devops", DEVOPS, dispatcher.inventory))
    with Expiry(dispatcher):
        change = told.get(timeout=60)
    assert not change.is_available
    assert not [t for t in threading.enumerate() if t.name == "extgate-liveness"]
