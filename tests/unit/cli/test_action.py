"""The GitHub Action and the pre-commit hooks, run as their hosts run them, with a stand-in for `gh`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from extgate.analysis.diff_words import MARK
from extgate.cli.main import cli
from tests.unit.cli.test_diff import INVENTORY, OPS, SUPPORT, commit, git

ROOT = Path(__file__).parents[3]
GH = """#!/bin/sh
printf '%s\\n' "$*" >>"$GH_LOG"
case "$*" in *--paginate*) cat "$GH_FOUND" ;; esac
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A checkout with one commit and an edit, and what a runner gives to a step."""
    home = tmp_path / "home"
    (home / "agents").mkdir(parents=True)
    (home / "agents" / "support.yaml").write_text(SUPPORT)
    (home / "agents" / "ops.yaml").write_text(OPS)
    (home / "inventory.json").write_text(json.dumps(INVENTORY))
    git(home, "init", "-q")
    commit(home, "first")
    (home / "agents" / "support.yaml").write_text(SUPPORT.replace("bash, edit", "bash"))
    (tmp_path / "extgate").mkdir()
    (tmp_path / "extgate" / "bin").symlink_to(Path(sys.executable).parent)
    return tmp_path


def step(job: Path, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    revision = subprocess.run(["git", "-C", str(job / "home"), "rev-parse", "HEAD"], capture_output=True, text=True)
    given = {
        "RUNNER_TEMP": str(job),
        "GITHUB_STEP_SUMMARY": str(job / "summary"),
        "GITHUB_OUTPUT": str(job / "output"),
        "GITHUB_REPOSITORY": "o/r",
        "WORKSPACE": ".",
        "INVENTORY": "inventory.json",
        "BASE": revision.stdout.strip(),
    }
    return subprocess.run(
        ["bash", str(ROOT / "tools" / script)],
        cwd=job / "home",
        env={**os.environ, **given, **variables},
        capture_output=True,
        text=True,
    )


def test_the_comparison_goes_to_the_summary_and_the_outputs(job: Path) -> None:
    done = step(job, "action-diff.sh")
    assert done.returncode == 0, done.stderr
    assert "`support` may use more" in (job / "summary").read_text()
    assert (job / "output").read_text() == "verdict=differs\nwider=true\n"


def test_a_workspace_in_a_folder_is_compared_with_that_folder(job: Path) -> None:
    (job / "home" / "deep").mkdir()
    git(job / "home", "checkout", "-q", "--", ".")
    git(job / "home", "mv", "agents", "deep/agents")
    commit(job / "home", "moved")
    done = step(job, "action-diff.sh", WORKSPACE="./deep")
    assert done.returncode == 0, done.stderr
    assert (job / "output").read_text() == "verdict=equal\nwider=false\n"


@pytest.mark.parametrize(
    ("found", "where"), [("", "repos/o/r/issues/7/comments"), ("42\n", "--method PATCH repos/o/r/issues/comments/42")]
)
def test_one_comment_is_made_and_then_kept_up_to_date(job: Path, found: str, where: str) -> None:
    step(job, "action-diff.sh")
    (job / "bin").mkdir()
    (job / "bin" / "gh").write_text(GH)
    (job / "bin" / "gh").chmod(0o755)
    (job / "found").write_text(found)
    log = job / "log"
    path = f"{job / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = step(job, "action-comment.sh", PATH=path, GH_LOG=str(log), GH_FOUND=str(job / "found"), NUMBER="7")
    assert done.returncode == 0, done.stderr
    looked, put = log.read_text().splitlines()
    assert MARK in looked
    assert put.startswith(f"api {where} -F body=@")


@pytest.mark.parametrize(
    ("fail_on", "verdict", "wider", "status"),
    [
        ("never", "differs", "true", 0),
        ("wider", "differs", "true", 3),
        ("wider", "differs", "false", 0),
        ("wider", "undecided", "false", 5),
        ("any", "equal", "false", 0),
        ("any", "differs", "false", 3),
        ("often", "equal", "false", 1),
    ],
)
def test_the_job_fails_for_what_fail_on_names(job: Path, fail_on: str, verdict: str, wider: str, status: int) -> None:
    done = step(job, "action-check.sh", FAIL_ON=fail_on, VERDICT=verdict, WIDER=wider)
    assert done.returncode == status, done.stdout + done.stderr


def test_the_job_fails_for_a_broken_profile_and_a_refuted_statement(job: Path) -> None:
    (job / "home" / "extgate.yaml").write_text('assert: [{never: "tool:read"}]\n')
    assert step(job, "action-check.sh", FAIL_ON="never", VERDICT="equal", WIDER="false").returncode == 3
    (job / "home" / "extgate.yaml").unlink()
    (job / "home" / "agents" / "ops.yaml").write_text("tool: {disabled: [x]}\n")
    assert step(job, "action-check.sh", FAIL_ON="never", VERDICT="equal", WIDER="false").returncode == 3


def test_the_action_hands_every_input_over_as_a_variable_and_never_as_text_of_a_script() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert set(action["inputs"]) == {"workspace", "base", "inventory", "fail-on", "comment", "token"}
    for row in action["runs"]["steps"]:
        assert "${{" not in row["run"]
        script = row["run"].rpartition("/tools/")[2].rstrip('"')
        assert row["name"] == "Install" or (ROOT / "tools" / script).is_file()


def test_every_hook_is_a_command_that_runs(job: Path) -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["extgate-check", "extgate-prove", "extgate-diff"]
    for hook in hooks:
        words = [*shlex.split(hook["entry"])[1:], *hook.get("args", [])]
        words = [str(job / "home") if word == "." else word for word in words]
        inventory = str(job / "home" / "inventory.json")
        result = CliRunner().invoke(cli, ["-w", str(job / "home"), *words, "--inventory", inventory])
        assert result.exit_code == 0, result.output
