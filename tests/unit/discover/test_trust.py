"""Approvals outside the project: exactly what was shown, for this workspace, and nothing in doubt."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest

from extgate.discover.server_config import ServerSpec
from extgate.discover.trust import TrustStore, trust_file
from extgate.errors import DiscoveryError

SPEC = ServerSpec(name="s", command="npx", args=("x",), cwd="/p", shown="npx x")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "extgate" / "trust.json"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_nothing_is_trusted_before_somebody_says_so(file: Path, workspace: Path) -> None:
    store = TrustStore.open(file, workspace)
    assert (store.is_trusted(SPEC), store.problem) == (False, None)


def test_trust_is_kept_for_the_same_server_and_workspace(file: Path, workspace: Path) -> None:
    given = TrustStore.open(file, workspace).trust([SPEC])
    assert given.is_trusted(SPEC)
    assert TrustStore.open(file, workspace).is_trusted(replace(SPEC))


def test_trust_holds_for_no_other_workspace(file: Path, workspace: Path, tmp_path: Path) -> None:
    TrustStore.open(file, workspace).trust([SPEC])
    (tmp_path / "other").mkdir()
    assert not TrustStore.open(file, tmp_path / "other").is_trusted(SPEC)


def test_a_link_to_the_workspace_is_the_workspace(file: Path, workspace: Path, tmp_path: Path) -> None:
    TrustStore.open(file, workspace).trust([SPEC])
    (tmp_path / "link").symlink_to(workspace)
    assert TrustStore.open(file, tmp_path / "link").is_trusted(SPEC)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "t"},
        {"command": "npm"},
        {"args": ("x", "--evil")},
        {"env": {"NODE_OPTIONS": "--require ./evil.js"}},
        {"cwd": "/q"},
        {"source": "plugin:p"},
        {"transport": "http", "url": "https://h"},
        {"headers": {"A": "b"}},
    ],
)
def test_any_change_of_what_runs_needs_trust_again(file: Path, workspace: Path, change: dict[str, object]) -> None:
    store = TrustStore.open(file, workspace).trust([SPEC])
    assert not store.is_trusted(replace(SPEC, **change))  # type: ignore[arg-type]


def test_a_server_in_error_is_never_trusted(file: Path, workspace: Path) -> None:
    broken = replace(SPEC, error="the variable `X` is not set")
    assert not TrustStore.open(file, workspace).trust([broken]).is_trusted(broken)


def test_trust_can_be_taken_back_one_by_one_or_whole(file: Path, workspace: Path) -> None:
    other = replace(SPEC, name="t")
    TrustStore.open(file, workspace).trust([SPEC, other])
    left = TrustStore.open(file, workspace).revoke([SPEC])
    assert (left.is_trusted(SPEC), left.is_trusted(other)) == (False, True)
    assert not TrustStore.open(file, workspace).revoke().is_trusted(other)
    assert not TrustStore.open(file, workspace).is_trusted(other)


def test_trusting_more_keeps_what_was_trusted(file: Path, workspace: Path) -> None:
    stale = TrustStore.open(file, workspace)
    TrustStore.open(file, workspace).trust([SPEC])
    assert stale.trust([replace(SPEC, name="t")]).is_trusted(SPEC)


def test_the_store_is_private_and_holds_no_secret(file: Path, workspace: Path) -> None:
    spec = replace(SPEC, env={"TOKEN": "hunter2"}, secrets=("hunter2",))
    TrustStore.open(file, workspace).trust([spec])
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert "hunter2" not in file.read_text()
    assert [entry for entry in file.parent.iterdir() if entry.name.endswith("~")] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 2, "workspaces": {}}',
        '{"version": 1, "workspaces": []}',
        '{"version": 1, "workspaces": {"/p": ["d"]}}',
        '{"version": 1, "workspaces": {"/p": {"d": true}}}',
        "[" * 100_000,
    ],
)
def test_a_store_that_cannot_be_read_trusts_nothing_and_is_not_overwritten(
    file: Path, workspace: Path, text: str
) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text)
    file.chmod(0o600)
    store = TrustStore.open(file, workspace)
    assert not store.is_trusted(SPEC)
    assert store.problem is not None
    assert store.problem.code == "EG320"
    with pytest.raises(DiscoveryError):
        store.trust([SPEC])
    assert file.read_text() == text


def test_a_store_that_others_can_write_trusts_nothing(file: Path, workspace: Path) -> None:
    TrustStore.open(file, workspace).trust([SPEC])
    file.chmod(0o622)
    store = TrustStore.open(file, workspace)
    assert not store.is_trusted(SPEC)
    assert store.problem is not None
    assert "chmod 600" in store.problem.fix


def test_a_store_inside_the_workspace_trusts_nothing(workspace: Path) -> None:
    inside = workspace / "state" / "trust.json"
    store = TrustStore.open(inside, workspace)
    assert store.problem is not None
    with pytest.raises(DiscoveryError, match="inside the workspace"):
        store.trust([SPEC])
    assert not inside.exists()


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DiscoveryError, match="cannot be"):
        TrustStore.open(tmp_path / "file" / "trust.json", workspace).trust([SPEC])


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"HOME": "/h"}, "/h/.local/state/extgate/trust.json"),
        ({"HOME": "/h", "XDG_STATE_HOME": "/s"}, "/s/extgate/trust.json"),
        ({"HOME": "/h", "XDG_STATE_HOME": "relative"}, "/h/.local/state/extgate/trust.json"),
    ],
)
def test_the_store_lies_in_the_state_folder(environ: dict[str, str], expected: str) -> None:
    assert str(trust_file(environ)) == expected


def _trust(file: Path, workspace: Path, name: str) -> None:
    TrustStore.open(file, workspace).trust([replace(SPEC, name=name)])


def test_processes_that_trust_at_the_same_time_lose_nothing(file: Path, workspace: Path) -> None:
    names = [f"s{n}" for n in range(6)]
    context = multiprocessing.get_context("fork")
    jobs = [context.Process(target=_trust, args=(file, workspace, name)) for name in names]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(60)
    kept = json.loads(file.read_text())["workspaces"][str(workspace.resolve())]
    assert sorted(row["server"] for row in kept.values()) == names
