"""The oldest and the newest supported langchain and deepagents: the doors table, and every test of that door."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.e2e.environments import ROOT, environment

OLDEST = (
    *("deepagents==0.4.8", "langchain==1.2.10", "langchain-core==1.2.20", "langchain-openai==1.1.11"),
    # Later releases of these no longer import beside langgraph 1.0.
    *("langgraph==1.0.10", "langgraph-prebuilt==1.0.8"),
)
NEWEST = ("deepagents==0.7.32", "langchain==1.5.2", "langchain-openai==1.7.4")
OWN = (ROOT / "tests/unit/enforce/inproc").glob("test_langchain*.py")
TESTS = ("tests/doors", "tests/unit/test_agents.py", *sorted(str(path.relative_to(ROOT)) for path in OWN))


@pytest.mark.e2e
@pytest.mark.servers
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("versions", [OLDEST, NEWEST], ids=["oldest", "newest"])
def test_the_door_holds_on_both_ends_of_its_range(versions: tuple[str, ...]) -> None:
    python = environment(*versions, "mcp==1.30.0", "hypothesis")
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    environ = {"EXTGATE_DOORS": "langchain,langchain-catalog"}
    found = subprocess.run(command, cwd=ROOT, env=os.environ | environ, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout[-6000:] + found.stderr[-1000:]
