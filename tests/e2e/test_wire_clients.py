"""Real clients under nothing but the wire: whatever was denied did not happen, and what was not goes on.

.venv/bin/python -m pytest -q -m e2e tests/e2e/test_wire_clients.py -k claude
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.clients import wired
from tests.e2e.clients.cases import Case
from tests.e2e.clients.install import NotInstalled, installed, needed_programs
from tests.e2e.clients.intents import INTENTS
from tests.e2e.clients.lab import Lab
from tests.e2e.clients.observe import runtime

CLIENTS = ("claude-code", "codex", "opencode", "gemini", "hermes")
NOT_SEEN = {
    "skill-read": "a file tool reads a skill's file: a road that the wire does not see (docs/walls.md)",
    "wrong-case": "it is about a finding of `extgate check`",
}


def command_of(name: str) -> list[str]:
    try:
        return installed(name)
    except NotInstalled as error:
        pytest.skip(str(error))


@pytest.mark.e2e
@pytest.mark.timeout(600)
@pytest.mark.parametrize("intent", sorted(INTENTS))
@pytest.mark.parametrize("name", CLIENTS)
def test_what_is_denied_does_not_happen_behind_the_wire(name: str, intent: str, tmp_path: Path) -> None:
    if intent in NOT_SEEN:
        pytest.skip(NOT_SEEN[intent])
    command, driver = command_of(name), runtime(name)
    happened = {}
    for column in ("open", "denied"):
        lab = Lab(tmp_path / column, needed_programs(name))
        case = driver.cases(lab, False)[intent]
        if not isinstance(case, Case):
            pytest.skip(case.why)
        ran, read = wired.run(driver, lab, command, case, case.profile if column == "denied" else "")
        assert ran.code == 0, (column, ran, (lab.root / "serve.err").read_text())
        assert wired.reached(lab), (column, ran)
        happened[column] = lab.happened(case.effect, read)
    assert happened == {"open": True, "denied": False} or (intent == "near-miss" and not happened["denied"])


@pytest.mark.e2e
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_goes_on_for_ten_turns_after_calls_were_stopped(name: str, tmp_path: Path) -> None:
    command, driver = command_of(name), runtime(name)
    lab = Lab(tmp_path, needed_programs(name))
    case = driver.cases(lab, False)["builtin"]
    ran, read = wired.run(driver, lab, command, case, case.profile, after=10)
    assert ran.code == 0, ran
    assert not lab.happened(case.effect, read)
    calls = [row for row in lab.messages() if row["method"] == "tools/call"]
    assert len(calls) == 11
    assert "is disabled for this agent." in read
