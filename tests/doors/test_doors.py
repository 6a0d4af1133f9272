"""Every door gives the answers of the one table, for lists and for calls; what ran is counted where it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import pytest

from extgate.core.extension import Extension
from extgate.enforce.gate import Approver, Gate
from extgate.enforce.sinks import Memory
from tests.doors.driver import Driver
from tests.doors.drivers import CALLS_ONLY, chosen, load
from tests.doors.table import CASES, Case

rows = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


class Says:
    name = "ann"

    def __init__(self, said: bool) -> None:
        self.said = said

    def __call__(self, decision: object, args: Mapping[str, Any]) -> bool:
        return self.said


def gate_of(case: Case, memory: Memory | None = None) -> Gate:
    approver: Approver | None = None if case.says is None else Says(case.says)
    return Gate(case.profile, case.stock, door="table", approver=approver, sink=memory or Memory())


@pytest.fixture(params=list(chosen().items()), ids=lambda row: row[0])
def driver(request: pytest.FixtureRequest) -> Driver:
    return load(request.param[1])


@pytest.fixture(params=[row for row in chosen().items() if row[0] not in CALLS_ONLY], ids=lambda row: row[0])
def lister(request: pytest.FixtureRequest) -> Driver:
    return load(request.param[1])


def asked(driver: Driver, case: Case) -> list[Extension]:
    return [ext for ext in case.stock.extensions if ext.kind in driver.kinds]


def takes(gate: Gate, meant: tuple[Extension, ...], case: Case, ids: frozenset[str]) -> bool:
    """Whether one of the ids is meant; what is not in the table (a host's own tool on the way) is asked of the gate."""
    return any(e.id in ids if e in case.stock.extensions else not gate.is_visible(e) for e in meant)


@rows
def test_the_gate_itself_answers_as_the_table_says(case: Case) -> None:
    gate = gate_of(case)
    assert {e.id for e in case.stock.extensions} - {e.id for e in gate.see(case.stock.extensions)} == case.hidden
    if case.later:
        gate.swap(profile=case.later)
    refused = {e.id for e in case.stock.extensions if not gate.use(e, case.args.get(e.id, {}))}
    assert refused == case.not_run


@rows
def test_a_door_lists_what_the_table_shows(lister: Driver, case: Case) -> None:
    gate = gate_of(case)
    seen = lister.list_visible(gate)
    hidden = {ext.id for ext in asked(lister, case) if takes(gate, lister.means(gate, ext), case, case.hidden)}
    assert seen == {ext.id for ext in asked(lister, case)} - hidden


@rows
def test_a_door_runs_what_the_table_runs_and_says_why_not(driver: Driver, case: Case) -> None:
    for ext in asked(driver, case):
        memory = Memory()
        gate = gate_of(case, memory)

        def between(gate: Gate = gate) -> None:
            if case.later:
                gate.swap(profile=case.later)

        called = driver.call(gate, ext, case.args.get(ext.id, {}), between)
        wanted = not takes(gate, driver.means(gate, ext), case, case.not_run)
        assert called.ran == wanted, (ext.id, called.message)
        assert wanted or called.message.strip(), f"the refusal of {ext.id} is readable"
        uses = [event for event in memory.events if event.question == "use"]
        assert {event.outcome for event in uses[:-1]} <= {"allowed"}, "a refusal is the last word"
        assert uses[-1].outcome == ("allowed" if wanted else "refused"), ext.id
        assert wanted or uses[-1].reason in called.message, (ext.id, called.message)


class Broken(Gate):
    """A gate that fails at every question about a use."""

    def _fail(self, *rest: Any, **more: Any) -> Any:
        raise RuntimeError("the gate is broken")

    use = ause = use_named = ause_named = read_uri = aread_uri = decide = _fail


def test_a_door_whose_gate_fails_runs_nothing(driver: Driver) -> None:
    for ext in (ext for ext in CASES[0].stock.extensions if ext.kind in driver.kinds):
        gate = Broken(CASES[0].profile, CASES[0].stock, door="table")
        with contextlib.suppress(Exception):
            assert not driver.call(gate, ext, {}, lambda: None).ran
        assert not driver.hits.by_id, ext.id
