"""Tests of policies in extgate.yaml, and where a failing one is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from extgate.core.extension import Finding, Inventory
from extgate.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    place = tmp_path / "work"
    (place / "agents").mkdir(parents=True)
    (place / "agents" / "support.yaml").write_text("id: support\ntools:\n  disabled: [bash]\n")
    (place / "agents" / "ops.yaml").write_text("id: ops\n")
    return place


def findings(root: Path) -> list[Finding]:
    return [row for row in Workspace.open(root).check(Inventory()) if row.code == "EG048"]


def put(root: Path, text: str) -> None:
    (root / "extgate.yaml").write_text(text)


def test_a_test_of_the_workspace_that_fails_is_told_at_its_line_with_its_agent(root: Path) -> None:
    put(
        root, 'tests:\n  - {for: [support], given: "tool:bash", expect: deny}\n  - {given: "tool:bash", expect: deny}\n'
    )
    (row,) = findings(root)
    assert (row.file, row.line, row.severity) == (str(root / "extgate.yaml"), 3, "error")
    assert row.message == "tests of ops: row 2: `tool:bash`: expected deny, got allow: no rule denies 'bash'."


def test_a_test_beside_a_profile_that_fails_is_told_at_its_own_line(root: Path) -> None:
    text = 'id: support\ntests:\n  - {given: "tool:read", expect: allow}\n  - {given: "tool:read", expect: deny}\n'
    (root / "agents" / "support.yaml").write_text(text)
    put(root, 'tests:\n  - {for: support, given: "tool:read", expect: allow}\n')
    (row,) = findings(root)
    assert (row.file, row.line) == ("agents/support.yaml", 4)
    assert "tests: row 2" in row.message


def test_a_test_beside_a_patterns_agent_is_told_at_its_line(root: Path) -> None:
    text = 'dialect: patterns\nname: p\ntests:\n  - {given: "tool:read", expect: allow}\n'
    (root / "agents" / "p.yaml").write_text(text)
    (row,) = findings(root)
    assert (row.file, row.line) == ("agents/p.yaml", 4)


def test_a_test_about_nobody_is_an_error(root: Path) -> None:
    put(root, 'tests:\n  - {for: [suport], given: "tool:bash", expect: deny}\n')
    (row,) = findings(root)
    assert (row.line, "no agent is called suport" in row.message, "support" in row.fix) == (2, True, True)


def test_a_row_that_is_no_test_is_an_error_for_every_agent_it_is_about(root: Path) -> None:
    put(root, "tests:\n  - 7\n")
    assert [row.line for row in findings(root)] == [2, 2]


def test_tests_are_run_for_the_agents_of_a_runtimes_own_files(root: Path) -> None:
    (root / ".claude").mkdir()
    (root / ".claude" / "settings.json").write_text('{"permissions": {"deny": ["WebFetch"]}}')
    rows = '  - {for: claude-code/main, given: "tool:WebFetch", expect: deny}\n'
    put(root, "tests:\n" + rows + rows.replace("deny", "allow"))
    (row,) = findings(root)
    assert (row.line, "expected allow, got deny" in row.message) == (3, True)


def test_rules_that_only_the_workspaces_tests_exercise_are_exercised(root: Path) -> None:
    put(root, 'tests:\n  - {for: support, given: "tool:bash", expect: deny}\n')
    assert [row for row in Workspace.open(root).check(Inventory()) if row.code == "EG049"] == []
