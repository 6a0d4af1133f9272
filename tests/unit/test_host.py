"""A running host: servers live as its agents need them, edits take effect, and what dies comes back by itself."""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from extgate.control import ask, sockets
from extgate.discover.inventory_file import load_inventory
from extgate.enforce.in_force import Change
from extgate.host import Host, Wishes, could_use, open_host
from extgate.reload import Report
from extgate.workspace import Workspace

SERVER = str(Path(__file__).parents[1] / "live_server.py")
WAIT_S = 60


class Office:
    """A workspace on disk; `open` gives a host over it whose news come in queues."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.root, self._stack = root, stack
        self.changes: queue.Queue[Change] = queue.Queue()
        self.reports: queue.Queue[Report] = queue.Queue()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # In one step, as editors save: a file seen while it is half written would be a report of its own.
        whole = self.root.parent / f"{self.root.name}.whole"
        whole.write_text(text)
        whole.replace(path)

    def servers(self, **flags: dict[str, Any]) -> None:
        entries = {}
        for name, asked in flags.items():
            leaves_a_mark = ["-c", f'touch {name}.started; exec "$0" "$@"', sys.executable, SERVER, json.dumps(asked)]
            entries[name] = {"command": "sh", "args": leaves_a_mark}
        self.write(".mcp.json", json.dumps({"mcpServers": entries}))

    def open(self, *agents: str, **wishes: Any) -> Host:
        given = {"trust": True, "agents": frozenset(agents) or None, **wishes}
        host = open_host(
            self.root, Wishes(door="test", on_change=self.changes.put, on_report=self.reports.put, **given)
        )
        opened = self._stack.enter_context(host)
        opened.servers.retry_s = (0.01,)
        return opened

    def was_started(self, server: str) -> bool:
        return (self.root / f"{server}.started").exists()

    def until(self, is_it: Callable[[Change], bool]) -> Change:
        while not is_it(change := self.changes.get(timeout=WAIT_S)):
            pass
        return change


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / "xdg" / name.lower()))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "xdg/run"))
    (tmp_path / "office").mkdir()
    with ExitStack() as stack:
        office = Office(tmp_path / "office", stack)
        office.write("agents/devops.yaml", "id: devops\nmcp: {required: ['github*', 'k8s*']}\n")
        office.write("agents/writer.yaml", "id: writer\nmcp: {disabled: ['*']}\n")
        yield office


def pid_of(host: Host, server: str) -> int:
    answer = host.servers.call(server, "echo", {}).result(WAIT_S)
    return int(json.loads(answer["content"][0]["text"])["pid"])


def test_only_servers_that_its_agents_could_use_are_started(office: Office) -> None:
    office.servers(github={}, k8s={})
    host = office.open("writer")
    assert not office.was_started("github")
    assert [(s.name, s.state) for s in host.dispatcher.inventory.servers] == [
        ("github", "configured"),
        ("k8s", "configured"),
    ]
    host.start_all()
    office.until(lambda change: change.agent == "devops" and change.is_available)


def test_an_agent_whose_server_is_killed_is_unavailable_and_comes_back_by_itself(office: Office) -> None:
    office.servers(github={}, k8s={})
    host = office.open("devops")
    assert host.dispatcher.standing("devops").is_available
    gate = host.dispatcher.seated("devops").gate
    echo = gate.owners("k8s/echo")[0]
    assert gate.use(echo)
    os.kill(pid_of(host, "github"), signal.SIGKILL)
    lost = office.until(lambda change: change.agent == "devops" and not change.is_available)
    assert lost.was_available
    assert "github" in gate.use(echo).message
    office.until(lambda change: change.agent == "devops" and change.is_available)
    assert gate.use(echo)


def test_a_missing_server_is_named_with_its_state(office: Office) -> None:
    office.servers(github={"gate": "nowhere"})
    reason = office.open("devops").dispatcher.standing("devops").reason
    assert "required `github*` is not met (`github` is failed" in reason
    assert "required `k8s*` is not met (no such server" in reason


def test_without_trust_nothing_is_started(office: Office) -> None:
    office.servers(github={}, k8s={})
    host = office.open(trust=False)
    assert not office.was_started("github")
    assert "`github` is untrusted" in host.dispatcher.standing("devops").reason


def test_trust_for_a_run_does_not_reach_what_files_ask_for_later(office: Office) -> None:
    office.servers(github={})
    host = office.open()
    office.servers(github={}, k8s={})
    office.reports.get(timeout=WAIT_S)
    host.servers.want(host._needed(host.workspace)).result(WAIT_S)
    assert not office.was_started("k8s")
    assert "`k8s` is untrusted" in host.dispatcher.standing("devops").reason


def test_a_server_taken_out_of_its_file_is_gone_for_the_next_call(office: Office) -> None:
    office.servers(github={}, k8s={})
    host = office.open()
    gate = host.dispatcher.seated("devops").gate
    office.servers(github={})
    report = office.reports.get(timeout=WAIT_S)
    assert not gate.owners("k8s/echo")
    assert not host.dispatcher.standing("devops").is_available
    # The reload and the server's own end are heard by two threads; whichever is first tells it, and it is told once.
    told = list(report.changes)
    while not any(change.gone for change in told):
        told.append(office.changes.get(timeout=WAIT_S))
    assert [ext.id for change in told for ext in change.gone] == ["mcp_tool:k8s/echo"]


def test_a_server_is_switched_off_and_on_and_the_agent_follows(office: Office) -> None:
    office.servers(github={}, k8s={})
    host = office.open()
    host.switch("github", is_on=False)
    assert "`github` is disabled" in host.dispatcher.standing("devops").reason
    host.switch("github", is_on=True)
    assert host.dispatcher.standing("devops").is_available


def test_an_edit_is_reported_and_in_force(office: Office) -> None:
    office.servers(github={}, k8s={})
    host = office.open()
    gate = host.dispatcher.seated("devops").gate
    echo = gate.owners("k8s/echo")[0]
    assert gate.use(echo)
    office.write("agents/devops.yaml", "id: devops\nmcp: {disabled: [k8s/echo], required: ['github*']}\n")
    report = office.reports.get(timeout=WAIT_S)
    assert [d.extension.id for c in report.changes for d in c.lost] == ["mcp_tool:k8s/echo"]
    assert not gate.use(echo)


def test_what_waits_takes_effect_when_somebody_asks_from_outside(office: Office) -> None:
    office.write("extgate.yaml", "reload: narrow\n")
    office.write("agents/writer.yaml", "id: writer\ntools: {disabled: [write_file]}\n")
    host = office.open("writer")
    gate = host.dispatcher.seated("writer").gate
    write_file = gate.owners("write_file")[0]
    office.write("agents/writer.yaml", "id: writer\n")
    assert office.reports.get(timeout=WAIT_S).is_waiting
    assert not gate.use(write_file)
    (socket,) = sockets(office.root)
    assert "writer: + tool write_file" in ask(socket, "accept")["lines"]
    assert gate.use(write_file)


def test_a_host_whose_socket_cannot_be_made_says_so_and_runs(office: Office) -> None:
    folder = Path(os.environ["XDG_RUNTIME_DIR"]) / "extgate"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    said: list[str] = []
    host = office.open("writer", say=said.append)
    assert host.dispatcher.standing("writer").is_available
    assert [line for line in said if "`extgate reload` does not reach this process" in line]


def test_every_answer_is_in_the_record(office: Office) -> None:
    host = office.open("writer")
    host.dispatcher.seated("writer").gate.use_named("no-such-tool")
    lines = [json.loads(line) for line in host.sink.path.read_text().splitlines()]
    assert [(e["agent"], e["door"], e["outcome"]) for e in lines] == [("writer", "test", "refused")]


def test_a_given_inventory_starts_nothing_and_never_grows_old(office: Office) -> None:
    office.servers(github={}, k8s={})
    given = load_inventory('{"mcp": [{"server": "github", "tools": []}, {"server": "k8s", "tools": []}]}', "i.json")
    host = office.open(inventory=given)
    assert not office.was_started("github")
    assert host.dispatcher.standing("devops").is_available


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("{}", True),
        ("mcp: {disabled: ['*']}", False),
        ("mcp: {disabled: ['git*']}", False),
        ("mcp: {disabled: ['github/*']}", False),
        ("mcp: {disabled: ['github/delete*']}", True),
        ("mcp: {allowed: ['arxiv*']}", False),
        ("mcp: {allowed: ['github/get_*']}", True),
        ("tools: {allowed: [read]}", True),
    ],
)
def test_a_server_is_needed_when_some_item_of_it_could_pass(office: Office, block: str, expected: bool) -> None:
    office.write("agents/a.yaml", f"id: a\n{block}\n" if block != "{}" else "id: a\n")
    assert could_use(Workspace.open(office.root).agent("a").profile, "github") is expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("mcp:github:get_issue", True), ("mcp:git*:*", True), ("*:*:*", True), ("impl:*:*", False), ("mcp:k8s:*", False)],
)
def test_a_server_is_needed_when_a_positive_pattern_is_for_an_item_of_it(
    office: Office, pattern: str, expected: bool
) -> None:
    office.write(".msagent/agents/b.yml", f'name: b\ntools: {{patterns: ["{pattern}"]}}\n')
    assert could_use(Workspace.open(office.root).agent("b").profile, "github") is expected
