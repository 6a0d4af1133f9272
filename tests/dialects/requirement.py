"""Says which sentence of a manifest a test proves; `test_requirements.py` reads it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Test = TypeVar("Test", bound=Callable[..., Any])


def requirement(*ids: str) -> Callable[[Test], Test]:
    """Mark a test as proof of these requirements (`profile:...` or `patterns:...`)."""

    def mark(test: Test) -> Test:
        setattr(test, "requirements", (*getattr(test, "requirements", ()), *ids))  # noqa: B010 - a function has no such field
        return test

    return mark
