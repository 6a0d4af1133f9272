"""A workspace goes on whatever one of its files does."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from extgate import Inventory, Workspace, workspace
from extgate.core.policy import Policy
from extgate.dialects.document import Document
from extgate.homes import find_homes
from extgate.watch import Watcher


@pytest.fixture
def office(tmp_path: Path) -> Path:
    (tmp_path / "agents").mkdir()
    for name in ("bad", "good"):
        (tmp_path / "agents" / f"{name}.yaml").write_text(f"id: {name}\n")
    return tmp_path


@pytest.mark.parametrize("mistake", [IndexError, RecursionError, AssertionError, UnicodeError, ZeroDivisionError])
def test_a_mistake_in_a_reader_takes_down_one_agent_and_no_other(
    office: Path, monkeypatch: pytest.MonkeyPatch, mistake: type[Exception]
) -> None:
    real = workspace.read_agent

    def read(document: Document) -> Policy:
        if "bad" in document.path:
            raise mistake("boom")
        return real(document)

    monkeypatch.setattr(workspace, "read_agent", read)
    opened = Workspace.open(office, inventory=Inventory())
    bad, good = opened.agents
    assert (bad.policy, bad.errors[0].code) == (None, "EG001")
    assert opened.explain(good, Inventory()).availability.is_available
    assert not opened.explain(bad, Inventory()).availability.is_available


def test_a_look_that_fails_is_said_and_is_not_the_last(office: Path) -> None:
    said: list[str] = []
    seen = threading.Event()
    rounds: list[int] = []

    def on_files(*_: object) -> None:
        rounds.append(1)
        if len(rounds) == 1:
            raise IndexError("boom")
        seen.set()

    def say(line: str) -> None:
        said.append(line)
        (office / "agents" / "good.yaml").write_text("id: good\nname: again\n")

    homes = find_homes(office)
    with Watcher(lambda: homes, on_files, say=say):
        (office / "agents" / "good.yaml").write_text("id: good\nname: edited\n")
        assert seen.wait(20)
    assert "could not be taken" in said[0]
