"""The conformance corpus of the runtimes, row by row: as the version ran that was looked at, and as documented.

A row's `visible` and `callable` are what the version did. Where the documentation, or the law above it, says otherwise,
the row carries `documented`, the divergence by id, and the reason.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from extgate.dialects.as_run import divergences
from tests.dialects.runtime_rows import BUILD, Row, Said, answer

DATA = Path(__file__).parent.parent / "data" / "dialects.jsonl"
ALL = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
ROWS = [row for row in ALL if row.get("reader") == "native"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_row_read_as_its_version_runs_is_what_was_observed(row: Row) -> None:
    assert answer(row, as_run=True) == Said(row["visible"], row["callable"])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_row_read_as_documented_is_what_was_observed_or_says_why_not(row: Row) -> None:
    expected = row.get("documented", {"visible": row["visible"], "callable": row["callable"]})
    assert answer(row, as_run=False) == Said(**expected)


@pytest.mark.parametrize("row", [row for row in ROWS if "documented" in row], ids=lambda row: row["id"])
def test_a_difference_is_a_known_divergence_with_its_reason(row: Row) -> None:
    known = {divergence.id: divergence for divergence in divergences(row["runtime"])}
    assert row["divergence"] in known
    assert row["why_differs"]
    assert row["id"] in known[row["divergence"]].seen


def test_every_row_of_a_runtime_that_is_read_runs_or_says_why_it_does_not_apply() -> None:
    silent = [
        row["id"] for row in ALL if row["runtime"] in BUILD and row.get("reader") != "native" and not row.get("reason")
    ]
    assert silent == []
    assert len(ROWS) == 219


def test_every_divergence_says_all_it_must() -> None:
    rows = divergences()
    assert len({row.id for row in rows}) == len(rows)
    for row in rows:
        assert row.id.startswith(f"{row.runtime}/")
        assert row.runtime in BUILD
        assert row.documented.endswith(".")
        assert row.actual.endswith(".")
        assert row.seen
