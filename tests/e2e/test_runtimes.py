"""Real runtimes under extgate: whatever was denied did not happen, and without the deny it would have.

The cells are run by `tests.e2e.table`, which keeps what was seen with the same code.
"""

from __future__ import annotations

import pytest

from tests.e2e.clients.install import CLIENTS
from tests.e2e.clients.intents import INTENTS
from tests.e2e.clients.verdicts import verdicts
from tests.e2e.table import run


@pytest.mark.e2e
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", list(CLIENTS))
def test_nothing_that_is_denied_happens_under_extgate(name: str) -> None:
    record = run([name], list(INTENTS))
    if name in record.skipped:
        pytest.skip(f"not installed here: {record.skipped[name]}")
    rows = [row for row in verdicts(record) if row.runtime == name]
    assert len(rows) == len(INTENTS)
    failed = [row for row in rows if row.after in ("leaked", "broken", "not run") or row.native == "broken"]
    assert not failed
