"""The record as people and programs read it, and its documented shape."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from extgate.audit.event import SHAPE, Event
from extgate.enforce.sinks import JsonLines
from extgate.settings import default_audit_file

DOC = Path(__file__).parents[3] / "docs" / "reference" / "events.md"


def event(agent: str = "a", outcome: str = "refused", extension: str = "tool:bash") -> Event:
    return Event(
        when=datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC),
        agent=agent,
        door="chat",
        question="use",
        action="call",
        extension=extension,
        outcome="refused" if outcome == "refused" else "allowed",
        effect="deny",
        reason="'bash' is disabled for this agent.",
        rule={"text": "tools.disabled", "pattern": "bash", "file": "agents/a.yaml", "line": 3},
        policy_version="0" * 16,
        inventory_version="1" * 16,
    )


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "office").mkdir()
    return tmp_path / "office"


def tail(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "extgate.cli.main", "-w", str(root), "audit", "tail", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_reference_page_lists_each_key_of_an_event_and_no_other() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", DOC.read_text(), re.MULTILINE)
    assert listed == list(event().as_dict())
    assert f"`{SHAPE}`" in DOC.read_text()


def test_the_page_s_example_is_an_event() -> None:
    block = re.search(r"```json\n(.*?)```", DOC.read_text(), re.DOTALL)
    assert block is not None
    assert list(json.loads(block[1])) == list(event().as_dict())


def test_the_last_events_are_shown_oldest_first_with_reason_and_place(root: Path) -> None:
    sink = JsonLines(default_audit_file(root))
    for number in range(5):
        sink(event(extension=f"tool:t{number}"))
    done = tail(root, "-n", "2")
    assert done.returncode == 0
    assert [line.split(": ")[0].split()[-1] for line in done.stdout.splitlines()] == ["tool:t3", "tool:t4"]
    assert done.stdout.splitlines()[0] == (
        "2026-11-30 12:00:00.123 a chat call refused tool:t3: "
        "'bash' is disabled for this agent. (tools.disabled `bash` agents/a.yaml:3)"
    )


def test_events_are_chosen_by_agent_and_outcome(root: Path) -> None:
    sink = JsonLines(default_audit_file(root))
    for one in (event("a"), event("b"), event("a", "allowed")):
        sink(one)
    assert len(tail(root, "--agent", "a").stdout.splitlines()) == 2
    assert len(tail(root, "--agent", "a", "--refused").stdout.splitlines()) == 1
    rows = [json.loads(line) for line in tail(root, "--json", "--refused").stdout.splitlines()]
    assert [row["agent"] for row in rows] == ["a", "b"]
    assert rows[0] == event("a").as_dict()


def test_without_a_record_it_says_where_it_would_be(root: Path) -> None:
    done = tail(root)
    assert done.returncode == 0
    assert not done.stdout
    assert str(default_audit_file(root)) in done.stderr


def test_the_record_may_lie_where_the_workspace_says(root: Path) -> None:
    (root / "extgate.yaml").write_text("audit: record.jsonl\n")
    JsonLines(root / "record.jsonl")(event())
    assert "tool:bash" in tail(root).stdout


def test_what_is_no_event_is_passed_over_and_a_name_cannot_move_the_terminal(root: Path) -> None:
    file = default_audit_file(root)
    sink = JsonLines(file)
    sink(event(extension="tool:x\x1b[2J"))
    with file.open("ab") as record:
        record.write(b"not json\n[1]\n{}\n\xff\xfe\n" + b"[" * 100_000 + b"\n" + b"x" * 3_000_000 + b"\n")
        record.write(json.dumps({"shape": SHAPE, "rule": 7, "agent": ["a"], "reason": "\x1b]0;x"}).encode() + b"\n")
        record.write(b'{"shape": "extgate.event/1", "half')
    done = tail(root)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 2
    assert "\x1b" not in done.stdout


def test_follow_goes_on_with_what_comes_and_with_a_file_that_takes_its_place(root: Path) -> None:
    file = default_audit_file(root)
    sink = JsonLines(file)
    sink(event(extension="tool:one"))
    command = [sys.executable, "-u", "-m", "extgate.cli.main", "-w", str(root), "audit", "tail", "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "tool:one" in process.stdout.readline()
        sink(event(extension="tool:two"))
        assert "tool:two" in process.stdout.readline()
        os.replace(file, file.with_suffix(".old"))
        JsonLines(file)(event(extension="tool:three"))
        assert "tool:three" in process.stdout.readline()
        process.terminate()
