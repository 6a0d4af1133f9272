"""The Action and the pre-commit hooks as GitHub and pre-commit run them, from a clone of this repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.environments import ROOT, environment
from tests.e2e.github_runner import GH, Comments, Job, run_action

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SUPPORT = """\
id: support
tools:
  disabled: [bash, "delete_*"]
skills:
  categories: [support]
"""
SKILL = "---\nname: {name}\ndescription: {name}.\ncategory: {category}\n---\n\nDo it.\n"


def git(place: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(place), *who, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This repository as the working tree has it, committed: what a runner or pre-commit clones."""
    place = tmp_path_factory.mktemp("extgate") / "extgate"
    names = git(ROOT, "ls-files", "-z", "--", "src", "tools", "action.yml", ".pre-commit-hooks.yaml", "pyproject.toml",
                "README.md", "LICENSE").split("\0")  # fmt: skip
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "-A")
    git(place, "commit", "-q", "-m", "as it is")
    return place


class World:
    """A project's repository with a pull request, and a runner's place."""

    def __init__(self, place: Path, action: Path, comments: Comments) -> None:
        self.origin, self.checkout, self.place = place / "origin", place / "checkout", place
        self.action, self.comments = action, comments
        for name, text in {
            "agents/support.yaml": SUPPORT,
            "skills/refunds/SKILL.md": SKILL.format(name="refunds", category="support"),
            "skills/prod-deploy/SKILL.md": SKILL.format(name="prod-deploy", category="ops"),
            "extgate.yaml": 'assert:\n  - {never: "skill:prod-deploy", roads: gate}\n',
        }.items():
            (self.origin / name).parent.mkdir(parents=True, exist_ok=True)
            (self.origin / name).write_text(text)
        git(self.origin, "init", "-q", "-b", "main")
        git(self.origin, "config", "uploadpack.allowReachableSHA1InWant", "true")  # as GitHub's servers have it
        git(self.origin, "add", "-A")
        git(self.origin, "commit", "-q", "-m", "base")
        self.base = git(self.origin, "rev-parse", "HEAD")
        (place / "bin").mkdir()
        (place / "bin" / "gh").write_text(GH)
        (place / "bin" / "gh").chmod(0o755)

    def edit(self, text: str, name: str = "agents/support.yaml") -> None:
        (self.origin / name).write_text(text)
        git(self.origin, "commit", "-q", "-am", "edit")

    def run(self, **given: str) -> Job:
        """One run over a shallow checkout of the head, as actions/checkout leaves it."""
        shutil.rmtree(self.checkout, ignore_errors=True)
        git(self.place, "clone", "-q", "--depth=1", f"file://{self.origin}", str(self.checkout))
        event: dict[str, Any] = {"pull_request": {"number": 7, "base": {"sha": self.base}}}
        variables = {
            "PATH": f"{self.place / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "FAKE_API": self.comments.url,
            "HOME": str(self.place / "home"),
        }
        return run_action(self.action, self.checkout, self.place / "temp", event, given, variables)


@pytest.fixture
def world(tmp_path: Path, source: Path) -> Iterator[World]:
    assert shutil.which("jq"), "this needs jq, as the runner's gh has it built in; on Debian: apt-get install jq"
    comments = Comments()
    yield World(tmp_path, source, comments)
    comments.close()


def test_a_pull_request_gets_one_comment_that_is_kept_up_to_date(world: World) -> None:
    world.edit(SUPPORT.replace('"delete_*"', '"delete_[a-m]*"'))
    job = world.run()
    assert job.failed == "", job.log
    assert job.outputs == {"verdict": "differs", "wider": "true"}
    (body,) = world.comments.bodies.values()
    assert body == job.summary
    assert "`support` may use more" in body
    assert "`delete_`" in body
    world.edit(SUPPORT)
    assert world.run().outputs == {"verdict": "equal", "wider": "false"}
    (body,) = world.comments.bodies.values()
    assert "`delete_`" not in body


def test_the_job_fails_where_it_was_asked_to_and_for_a_statement_that_does_not_hold(world: World) -> None:
    world.edit(SUPPORT.replace("[support]", "[support, ops]"))
    job = world.run(**{"fail-on": "wider"})
    assert job.failed == "Check"
    assert "::error::an agent may see or use more than before" in job.log
    assert "refuted: never skill:prod-deploy for support" in job.log
    (body,) = world.comments.bodies.values()
    assert "prod-deploy" in body


def test_a_comment_that_is_not_let_through_fails_nothing_and_says_where_to_look(world: World) -> None:
    world.comments.is_closed = True
    world.edit(SUPPORT.replace("bash, ", ""))
    job = world.run()
    assert job.failed == ""
    assert "::notice::extgate could not comment; see the summary of this job" in job.log
    assert "`bash`" in job.summary


def test_a_profile_that_does_not_read_fails_the_job_and_is_told_in_the_comment(world: World) -> None:
    world.edit("id: support\ntool:\n  disabled: [bash]\n")
    job = world.run(comment="false")
    assert job.failed == "Check"
    assert world.comments.bodies == {}
    assert "`tool`" in job.summary


# ---------------------------------------------------------------------------------------------- pre-commit


def pre_commit(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = environment("pre-commit==4.7.0").with_name("pre-commit")
    variables = {**os.environ, "PRE_COMMIT_HOME": str(ROOT / ".cache" / "pre-commit"), "NO_COLOR": "1"}
    return subprocess.run([str(command), *words], cwd=place, env=variables, capture_output=True, text=True)


def test_the_hooks_run_under_pre_commit_from_a_clone(world: World) -> None:
    place = world.origin
    (place / "agents" / "support.yaml").write_text(SUPPORT.replace('"delete_*"', '"delete_[a-m]*"'))
    git(place, "add", "-A")
    done = pre_commit(place, "try-repo", str(world.action), "--verbose", "--all-files")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tools such as `delete_`" in done.stdout
    (place / "agents" / "support.yaml").write_text(SUPPORT.replace("[support]", "[support, ops]"))
    git(place, "add", "-A")
    done = pre_commit(place, "try-repo", str(world.action), "extgate-prove", "--all-files")
    assert done.returncode == 1
    assert "refuted: never skill:prod-deploy" in done.stdout
    (place / "agents" / "support.yaml").write_text("id: support\ntool: {}\n")
    git(place, "add", "-A")
    done = pre_commit(place, "try-repo", str(world.action), "extgate-check", "--all-files")
    assert done.returncode == 1
    assert "agents/support.yaml:2" in done.stdout


def test_a_commit_that_touches_no_policy_runs_no_hook(world: World) -> None:
    (world.origin / "notes.txt").write_text("x")
    git(world.origin, "add", "-A")
    done = pre_commit(world.origin, "try-repo", str(world.action), "extgate-check", "--files", "notes.txt")
    assert done.returncode == 0
    assert "Skipped" in done.stdout
