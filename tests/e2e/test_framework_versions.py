"""The oldest and the newest supported version of each framework: the doors table, the door's own tests, its recipe.

Each version has an environment of its own under `.cache/frameworks`; `make test` runs the same on what `.venv` holds.
The LangChain door has its versions in `langchain-oldest.txt`, and the Claude program runs here only.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.environments import ROOT, environment

VERSIONS = {
    "openai-agents": ("openai-agents==0.18.1", "openai-agents==0.24.0"),
    "pydantic-ai": ("pydantic-ai-slim[mcp]==1.80.0 fastmcp==3.2.4", "pydantic-ai-slim[mcp]==2.68.0 fastmcp==4.2.3"),
    "fastmcp": ("fastmcp==3.0.0", "fastmcp==4.2.3"),
    "claude-agent-sdk": ("claude-agent-sdk==0.2.182", "claude-agent-sdk==0.2.189"),
}
"""By door: the ends of the range in `pyproject.toml`, with what the tests need besides."""

UNIT = "tests/unit/enforce/inproc"
OWN = {
    "openai-agents": (f"{UNIT}/test_openai_agents.py",),
    "pydantic-ai": (f"{UNIT}/test_pydantic_ai.py",),
    "fastmcp": (f"{UNIT}/test_fastmcp.py",),
    "claude-agent-sdk": (f"{UNIT}/test_claude_agent_sdk.py", f"{UNIT}/test_claude_program.py"),
}
ROWS = [(door, version) for door, versions in VERSIONS.items() for version in versions]


def run(python: Path, door: str) -> subprocess.CompletedProcess[str]:
    files = ("tests/doors", "tests/docs/test_framework_recipes.py", *OWN[door])
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", "-rs", *files]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | {"EXTGATE_DOORS": door}, capture_output=True, text=True, check=False
    )


@pytest.mark.e2e
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("door", "requirements"), ROWS, ids=[requirements for _, requirements in ROWS])
def test_a_door_holds_on_this_version_of_its_framework(door: str, requirements: str) -> None:
    found = run(environment(*requirements.split()), door)
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-1000:]
    skipped = [line for line in found.stdout.splitlines() if line.startswith("SKIPPED")]
    assert all("has another environment" in line or "FastMCP has completions" in line for line in skipped), skipped


def test_the_versions_are_the_ends_of_the_ranges_that_the_extras_name() -> None:
    extras = (ROOT / "pyproject.toml").read_text()
    for oldest, _ in VERSIONS.values():
        name, _, version = oldest.split()[0].partition("==")
        assert f'"{name.partition("[")[0]}>={version.removesuffix(".0")}' in extras, name
