"""`extgate diff` and `extgate prove` as a user and a pipeline meet them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from extgate.cli.main import cli

INVENTORY: dict[str, Any] = {
    "tools": [{"name": name, "source": "builtin"} for name in ("bash", "edit", "read")],
    "skills": [{"name": "devops/prod-deploy", "category": "devops", "source": "project"}],
    "mcp": [{"server": "slack", "tools": [{"name": "send_message"}]}],
}
SUPPORT = "id: support\ntools:\n  disabled: [bash, edit]\nskills:\n  categories: [writing]\n"
OPS = "id: ops\nskills:\n  disabled: [prod-deploy]\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A git repository with one commit: a workspace of two agents."""
    root = tmp_path / "home"
    (root / "agents").mkdir(parents=True)
    (root / "agents" / "support.yaml").write_text(SUPPORT)
    (root / "agents" / "ops.yaml").write_text(OPS)
    (root / "inventory.json").write_text(json.dumps(INVENTORY))
    git(root, "init", "-q")
    commit(root, "first")
    return root


def git(root: Path, *words: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)


def commit(root: Path, message: str) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", message)


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["-w", str(home), *arguments, "--inventory", str(home / "inventory.json")])


def test_a_working_tree_equal_to_its_revision_exits_0(home: Path) -> None:
    result = run(home, "diff", "HEAD:", str(home))
    assert (result.exit_code, result.stdout) == (0, "equal for 2 agents, over all names\n")


def test_rules_written_differently_are_equal(home: Path) -> None:
    path = home / "agents" / "support.yaml"
    path.write_text("id: support\nskills: {categories: [writing]}\ntools:\n  disabled: ['[e]dit', bash, edit]\n")
    assert run(home, "diff", "HEAD:agents/support.yaml", str(path)).exit_code == 0


def test_an_edited_rule_exits_3_with_the_tool_and_the_rule(home: Path) -> None:
    (home / "agents" / "support.yaml").write_text(SUPPORT.replace("bash, edit", "bash"))
    result = run(home, "diff", "HEAD:", str(home))
    assert result.exit_code == 3
    assert "support may use more" in result.stdout
    assert "no longer hidden by `tools.disabled` `edit` in `agents/support.yaml:3`" in result.stdout
    assert "equal over all names: ops" in result.stdout


def test_two_revisions_are_compared_without_the_working_tree(home: Path) -> None:
    (home / "agents" / "ops.yaml").write_text("id: ops\n")
    commit(home, "second")
    (home / "agents" / "ops.yaml").write_text(OPS)
    report = json.loads(run(home, "diff", "HEAD~1:", "HEAD:", "--json").stdout)
    assert [(agent["agent"], agent["verdict"]) for agent in report["agents"]] == [
        ("ops", "wider"),
        ("support", "equal"),
    ]
    assert run(home, "diff", "HEAD~1:", str(home)).exit_code == 0


def test_agents_are_compared_by_id_and_files_whatever_their_ids(home: Path) -> None:
    report = json.loads(run(home, "diff", "support", "ops", "--json").stdout)
    assert [(agent["agent"], agent["status"]) for agent in report["agents"]] == [("ops", "changed")]


def test_one_file_against_a_folder_compares_that_agent_alone(home: Path) -> None:
    result = run(home, "diff", "HEAD:agents/ops.yaml", str(home))
    assert (result.exit_code, result.stdout) == (0, "equal for 1 agents, over all names\n".replace("agents", "agent"))


def test_a_new_and_a_gone_agent_are_told(home: Path) -> None:
    (home / "agents" / "ops.yaml").rename(home / "agents" / "sre.yaml")
    (home / "agents" / "sre.yaml").write_text("id: sre\n")
    result = run(home, "diff", "HEAD:", str(home), "--markdown")
    assert "#### `sre` is new" in result.stdout
    assert "#### `ops` is gone" in result.stdout


def test_a_profile_broken_by_the_change_is_told_and_not_fatal(home: Path) -> None:
    (home / "agents" / "ops.yaml").write_text("id: ops\ntool: {disabled: [x]}\n")
    result = run(home, "diff", "HEAD:", str(home))
    assert result.exit_code == 3
    assert "cannot be read after" in result.stdout


def test_a_small_budget_is_undecided_and_exits_5(home: Path) -> None:
    path = home / "agents" / "support.yaml"
    path.write_text(SUPPORT.replace("edit", "'[e]dit'"))
    result = run(home, "diff", "HEAD:agents/support.yaml", str(path), "--budget", "1")
    assert result.exit_code == 5
    assert "could not be decided" in result.stdout


@pytest.mark.parametrize("text", ["nowhere", "HEAD:nowhere", "nosuchrevision:agents", "--upload-pack=x:y"])
def test_what_is_no_side_is_one_line_on_stderr(home: Path, text: str) -> None:
    result = (
        run(home, "diff", "--", text, str(home)) if not text.startswith("-") else run(home, "diff", str(home), text)
    )
    assert result.exit_code in (1, 2)
    assert result.stdout == "" or "Usage" in result.output


def test_links_of_a_revision_that_lead_out_are_not_followed(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text("id: outside\n")
    (home / "agents" / "link.yaml").symlink_to(outside)
    (home / "agents" / "inside.yaml").symlink_to("ops.yaml")
    commit(home, "links")
    report = json.loads(run(home, "diff", "HEAD:", "HEAD:", "--json").stdout)
    assert "outside" not in [agent["agent"] for agent in report["agents"]]


# ---------------------------------------------------------------------------------------------- prove


def test_statements_of_both_places_are_proved(home: Path) -> None:
    (home / "extgate.yaml").write_text('assert:\n  - never: "skill:prod-deploy"\n    for: [support]\n')
    (home / "agents" / "ops.yaml").write_text(OPS + 'assert:\n  - always: "tool:read"\n')
    result = run(home, "prove")
    assert result.exit_code == 0
    assert "proved: never skill:prod-deploy for support" in result.stdout
    assert "extgate.yaml:2)" in result.stdout
    assert "proved: always tool:read for ops (agents/ops.yaml:5)" in result.stdout


def test_a_shell_that_is_left_in_refutes_with_its_name(home: Path) -> None:
    result = run(home, "prove", "--never", "skill:prod-deploy", "--for", "ops")
    assert result.exit_code == 3
    assert "residual road: tool bash: commands or code" in result.stdout


def test_the_report_of_a_proof_is_json(home: Path) -> None:
    report = json.loads(run(home, "prove", "--never", "skill:prod-deploy", "--for", "*", "--json").stdout)
    assert report["verdict"] == "refuted"
    assert {proof["agent"]: proof["verdict"] for proof in report["proofs"]} == {"ops": "refuted", "support": "proved"}


def test_nothing_to_prove_says_so_and_exits_0(home: Path) -> None:
    result = run(home, "prove")
    assert (result.exit_code, result.stdout.startswith("nothing to prove")) == (0, True)


def test_a_statement_about_no_agent_is_undecided_and_exits_5(home: Path) -> None:
    assert run(home, "prove", "--never", "tool:x", "--for", "nobody").exit_code == 5


def test_a_bad_statement_exits_1_with_its_place(home: Path) -> None:
    (home / "extgate.yaml").write_text("assert:\n  - nevr: x\n")
    result = run(home, "prove")
    assert result.exit_code == 1
    assert "extgate.yaml:2: assert: a statement has exactly one of" in result.stderr


# ---------------------------------------------------------------------------------------------- the office

OFFICE = Path(__file__).parents[3] / "examples" / "office"


def office(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["-w", str(OFFICE), *arguments])


def test_what_the_office_claims_of_its_agents_is_proved() -> None:
    result = office("prove")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "6 proved")
    assert "proved: never skill:prod-deploy for research" in result.stdout


ROADS = ("bash", "process", "gui_agent", "cron", "scheduler", "agent_browser", "playwright_browser")


def test_in_the_office_customer_service_reaches_prod_deploy_only_over_roads_that_are_named() -> None:
    report = json.loads(office("prove", "--never", "skill:prod-deploy", "--for", "customer-*", "--json").stdout)
    proof = report["proofs"][-1]
    assert (proof["file"], proof["verdict"], proof["installed"], proof["witness"]) == (None, "refuted", [], None)
    open_roads = {road["via"][0] for road in proof["roads"] if road["state"] != "closed"}
    assert open_roads == {f"tool {name}" for name in ROADS}


@pytest.mark.parametrize("left_in", ["", *ROADS])
def test_in_the_office_prod_deploy_is_out_of_reach_over_every_road_until_one_tool_is_left_in(
    tmp_path: Path, left_in: str
) -> None:
    shutil.copytree(OFFICE, tmp_path / "office")
    file = tmp_path / "office" / "agents" / "customer-service.yaml"
    denied = ", ".join(f'"{name}"' for name in ROADS if name != left_in)
    file.write_text(file.read_text().replace('"execute_*", ', f'"execute_*", {denied}, '))
    arguments = ("prove", "--never", "skill:prod-deploy", "--for", "customer-service", "--json")
    report = json.loads(CliRunner().invoke(cli, ["-w", str(tmp_path / "office"), *arguments]).stdout)
    proof = report["proofs"][-1]
    named = [road["via"] for road in proof["roads"] if road["state"] != "closed"]
    assert (proof["verdict"], named) == (("refuted", [[f"tool {left_in}"]]) if left_in else ("proved", []))
