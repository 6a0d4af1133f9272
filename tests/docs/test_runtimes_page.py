"""The page of real runtimes says what was observed, of every intent and every runtime."""

from __future__ import annotations

from tests.e2e.clients.install import CLIENTS
from tests.e2e.clients.intents import INTENTS
from tests.e2e.clients.page import page
from tests.e2e.clients.record import KEPT, PAGE, load
from tests.e2e.clients.verdicts import verdicts


def test_the_page_is_what_the_record_comes_to() -> None:
    assert PAGE.read_text() == page(load(KEPT))


def test_the_record_is_of_the_pinned_clients_and_of_every_cell() -> None:
    record = load(KEPT)
    assert record.versions == {name: client.version for name, client in CLIENTS.items()}
    rows = verdicts(record)
    assert len(rows) == len(CLIENTS) * len(INTENTS)
    assert {row.runtime for row in rows if "not run" in (row.native, row.after)} == set(record.unfinished)
    assert all(record.unfinished.values())


def test_nothing_in_the_record_leaked_under_extgate() -> None:
    assert not [row for row in verdicts(load(KEPT)) if row.after in ("leaked", "broken") or row.native == "broken"]
