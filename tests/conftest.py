"""Settings that all tests share.

`make test` tries the same examples each time, so that what it says is of the change; `make explore` tries new ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.residents import end_residents

with suppress(ImportError):  # the environments of tests/e2e, one a framework, hold pytest alone
    from hypothesis import HealthCheck, settings

    # Machines are shared and noisy: how long one example takes says nothing of the code.
    settings.register_profile(
        "extgate", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow], derandomize=True
    )
    settings.register_profile("explore", settings.get_profile("extgate"), derandomize=False, max_examples=1000)
    settings.load_profile("extgate")


@pytest.fixture(scope="session", autouse=True)
def no_resident_stays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hooks that tests ran leave no process behind."""
    yield
    end_residents(tmp_path_factory.getbasetemp())
