"""The commands as the contract has them: output on stdout, errors on stderr with place and fix, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from extgate.cli.main import VERBS, cli

INVENTORY: dict[str, Any] = {
    "tools": [{"name": "bash", "source": "builtin"}, {"name": "read", "source": "builtin"}],
    "skills": [
        {"name": "devops/prod-deploy", "category": "devops", "declared_name": "prod-deploy", "source": "project"}
    ],
    "mcp": [
        {"server": "slack", "tools": [{"name": "send_message"}], "resources": [{"uri": "slack://a"}], "prompts": []}
    ],
    "subagents": [{"name": "explorer"}],
}
RESEARCH = "id: research\ntools:\n  disabled: [bash]\nmcp:\n  allowed: ['arxiv*']\n"


@pytest.fixture
def office(tmp_path: Path) -> Path:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "research.yaml").write_text(RESEARCH)
    (tmp_path / "agents" / "ops.yaml").write_text("id: ops\nmcp: {required: ['k8s*']}\n")
    (tmp_path / "agents" / "broken.yaml").write_text("id: broken\ntool: {disabled: [bash]}\n")
    (tmp_path / "inventory.json").write_text(json.dumps(INVENTORY))
    return tmp_path


def run(office: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["-w", str(office), *arguments])


def asked(office: Path, *arguments: str) -> Result:
    return run(office, *arguments, "--inventory", str(office / "inventory.json"))


def test_explain_prints_the_contracts_json(office: Path) -> None:
    answer = json.loads(asked(office, "explain", "research", "--json").stdout)
    assert (answer["agent"], answer["dialect"], answer["available"], answer["missing"]) == (
        "research",
        "profile",
        True,
        [],
    )
    row = next(d for d in answer["decisions"] if d["id"] == "mcp_tool:slack/send_message")
    expected = {
        "kind": "mcp_tool", "server": "slack", "name": "send_message", "visible": False, "callable": False,
        "approval": "auto", "effect": "deny", "reason": "'slack/send_message' is not in this agent's allowed list.",
        "rule": {"text": "mcp.allowed", "pattern": None, "file": "agents/research.yaml", "line": 5},
    }  # fmt: skip
    assert {key: row[key] for key in expected} == expected


def test_decisions_come_by_kind_then_id(office: Path) -> None:
    ids = [d["id"] for d in json.loads(asked(office, "explain", "research", "--json").stdout)["decisions"]]
    assert ids == [
        "tool:bash", "tool:read", "skill:devops/prod-deploy", "mcp_tool:slack/send_message",
        "mcp_resource:slack/slack://a", "subagent:explorer",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("agent", "names", "code"),
    [
        ("research", [], 0),
        ("research", ["read"], 0),
        ("research", ["bash"], 2),
        ("research", ["read", "bash"], 2),
        ("research", ["nothing"], 1),
        ("research", ["slack/send_message"], 2),
        ("research", ["mcp__slack__send_message"], 2),
        ("research", ["skill:devops/prod-deploy"], 0),
        ("ops", [], 4),
        ("ops", ["read"], 4),
        ("broken", [], 4),
        ("nobody", [], 1),
    ],
)
def test_explain_exits_as_the_contract_says(office: Path, agent: str, names: list[str], code: int) -> None:
    assert asked(office, "explain", agent, *names).exit_code == code


def test_an_unavailable_agent_says_what_is_missing_and_shows_nothing(office: Path) -> None:
    answer = json.loads(asked(office, "explain", "ops", "--json").stdout)
    assert (answer["available"], answer["missing"]) == (False, ["k8s*"])
    assert not any(d["visible"] or d["callable"] for d in answer["decisions"])
    assert {d["effect"] for d in answer["decisions"]} == {"allow"}


def test_a_profile_file_can_be_asked_about_outside_any_workspace(office: Path, tmp_path: Path) -> None:
    lone = tmp_path / "lone.json"
    lone.write_text('{"tools": {"allowed": ["read"]}}')
    result = CliRunner().invoke(cli, ["explain", str(lone), "bash", "--inventory", str(office / "inventory.json")])
    assert result.exit_code == 2


def test_list_json_is_an_inventory_file(office: Path) -> None:
    first = asked(office, "list", "--json").stdout
    (office / "again.json").write_text(first)
    assert run(office, "list", "--json", "--inventory", str(office / "again.json")).stdout == first
    assert set(json.loads(first)) >= {"tools", "skills", "mcp", "subagents"}


def test_list_of_an_agent_holds_what_it_sees(office: Path) -> None:
    answer = json.loads(asked(office, "list", "research", "--json").stdout)
    assert [d["id"] for d in answer["decisions"]] == ["tool:read", "skill:devops/prod-deploy", "subagent:explorer"]


def test_check_exits_3_on_errors_and_0_without(office: Path) -> None:
    result = asked(office, "check", "--json")
    found = json.loads(result.stdout)["findings"]
    assert result.exit_code == 3
    assert [(f["code"], f["file"], f["line"]) for f in found if f["severity"] == "error"] == [
        ("EG002", "agents/broken.yaml", 2)
    ]
    (office / "agents" / "broken.yaml").unlink()
    assert asked(office, "check").exit_code == 0


def test_a_finding_is_silenced_by_its_own_file_and_an_error_never(office: Path) -> None:
    profile = office / "agents" / "research.yaml"
    profile.write_text("# extgate: ignore EG018, EG010\n" + RESEARCH)
    codes = [f["code"] for f in json.loads(asked(office, "explain", "research", "--json").stdout)["findings"]]
    assert "EG010" not in codes
    profile.write_text("# extgate: ignore EG002\n" + RESEARCH + "tool: {}\n")
    assert asked(office, "explain", "research").exit_code == 4


def test_two_profiles_with_one_id_are_both_unavailable(office: Path) -> None:
    (office / "agents" / "other.yaml").write_text("id: research\n")
    answer = json.loads(asked(office, "explain", "research", "--json").stdout)
    assert (answer["available"], [f["code"] for f in answer["findings"]]) == (False, ["EG008"])


def test_a_workspace_without_agents_gates_nothing_and_says_so(tmp_path: Path, office: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    result = CliRunner().invoke(
        cli, ["-w", str(empty), "explain", "default", "--json", "--inventory", str(office / "inventory.json")]
    )
    rules = {d["rule"]["text"] for d in json.loads(result.stdout)["decisions"]}
    assert (result.exit_code, rules) == (0, {"default: allow"})


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"tools": 1}', '{"tools": [1]}', '{"mcp": [{"server": "a", "state": "up"}]}']
)
def test_a_bad_inventory_is_an_error_with_its_place(office: Path, text: str) -> None:
    (office / "bad.json").write_text(text)
    result = run(office, "explain", "research", "--inventory", str(office / "bad.json"))
    assert result.exit_code == 1
    assert "bad.json" in result.stderr


def test_untrusted_names_reach_no_terminal_raw(office: Path) -> None:
    stock = {"tools": [{"name": "x\u001b[2Jy", "source": "builtin", "description": "\u001b]0;title\u0007"}]}
    (office / "inventory.json").write_text(json.dumps(stock))
    for arguments in (["list"], ["explain", "research"], ["check"], ["list", "--json"]):
        assert "\u001b" not in asked(office, *arguments).stdout


def test_each_verb_takes_the_workspace_before_or_after_it(office: Path) -> None:
    stock = ["--inventory", str(office / "inventory.json")]
    assert CliRunner().invoke(cli, ["explain", "research", "-w", str(office), *stock]).exit_code == 0


def test_every_verb_has_help() -> None:
    for verb in VERBS:
        result = CliRunner().invoke(cli, [verb, "--help"])
        assert result.exit_code == 0, verb
        assert len(result.stdout.splitlines()) > 3


def test_the_shell_completes_verbs_and_agents(office: Path) -> None:
    shell = {**os.environ, "_EXTGATE_COMPLETE": "bash_complete", "COMP_WORDS": "extgate explain re", "COMP_CWORD": "2"}
    program = [str(Path(sys.executable).with_name("extgate"))]
    found = subprocess.run(program, env=shell, cwd=office, capture_output=True, text=True, check=False).stdout
    assert "plain,research" in found
