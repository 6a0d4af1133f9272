"""A short run of `fuzz_gateway.py`; an hour of it is `python -m tests.e2e.fuzz_gateway --minutes 60`."""

from __future__ import annotations

import asyncio
import io
import json

import pytest

from tests.e2e.fuzz_gateway import fuzz


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_nothing_malformed_ends_the_gateway_or_leaves_a_request_unanswered() -> None:
    out = io.StringIO()
    asyncio.run(fuzz(20.0, 20261130, out))
    last = json.loads(out.getvalue().splitlines()[-1])
    assert last["held"]
    assert last["messages"] > 300
    assert last["requests"] > 60
