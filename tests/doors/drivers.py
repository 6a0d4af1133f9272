"""Every door with its driver, one row each. A new door is its driver's file and a row here."""

from __future__ import annotations

import importlib
import os

from tests.doors.driver import Driver

DRIVERS = {
    "openai-agents": "tests.doors.driver_openai_agents",
    "pydantic-ai": "tests.doors.driver_pydantic_ai",
}
"""Modules with a `driver()`, by door. All of them share one environment, the one that `make venv` makes."""

ELSEWHERE: dict[str, str] = {}
"""The same for doors whose host needs an environment of its own; `tests/e2e` names them in EXTGATE_DOORS."""


def chosen() -> dict[str, str]:
    """The doors of EXTGATE_DOORS (names with commas), else those of this environment."""
    wanted = os.environ.get("EXTGATE_DOORS")
    return {name: (DRIVERS | ELSEWHERE)[name] for name in wanted.split(",")} if wanted else DRIVERS


def load(module: str) -> Driver:
    made: Driver = importlib.import_module(module).driver()
    return made
