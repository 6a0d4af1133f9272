"""Law 9: doubt denies, out loud, and for one agent alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.build import inventory, server, tools
from tests.dialects.adapter import decide_case, decide_text, run
from tests.dialects.requirement import requirement
from tests.laws.asking import assert_refused, refused_text, sees
from tests.oracle.law import Unreadable, Verdict, judge

STOCK = inventory(tools("bash", "read"), ["notes"], [server("slack", "send")])
WHOLE = {
    "id": "x",
    "tools": {"disabled": ["bash"], "allowed": ["read", "bash"]},
    "skills": {"disabled": ["notes"]},
    "mcp": {"disabled": ["slack"], "required": ["k8s*"]},
}


@requirement("profile:unreadable-refuses")
@pytest.mark.parametrize(
    "text",
    [
        "{ broken",
        "tools: [",
        "\ttools: {}",
        "a: b: c",
        "tools: {disabled: [bash]",
        '{"tools": {"disabled": ["bash"]}',
        "\x00",
        "&a [*a",
        "!!python/object:os.system {}",
    ],
)
def test_a_profile_that_cannot_be_read_shows_nothing_and_says_why(text: str) -> None:
    refused_text(text)


@requirement("profile:unreadable-bytes")
@pytest.mark.parametrize("raw", [b"\xff\xfe\x00", b"tools: {disabled: [\xe9]}", b"\x80" * 40])
def test_a_profile_that_is_not_utf8_is_refused(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_bytes(raw)
    (tmp_path / "i.json").write_text(json.dumps(STOCK))
    code, out, err = run(
        "explain", str(tmp_path / "agent.yaml"), "--inventory", str(tmp_path / "i.json"), "--json", "-w", str(tmp_path)
    )
    assert code in (1, 4)
    assert '"visible": true' not in out
    assert "agent.yaml" in err + out


def judged(text: str, suffix: str) -> Verdict | Unreadable:
    """What the oracle says of a file's text; a text that does not parse is unreadable."""
    try:
        parsed = json.loads(text) if suffix == ".json" else yaml.safe_load(text)
    except (json.JSONDecodeError, yaml.YAMLError):
        return Unreadable(frozenset({"does not parse"}))
    return judge(parsed, STOCK)


@requirement("profile:truncation")
@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_a_profile_cut_short_anywhere_never_shows_more_unless_it_is_whole_in_itself(suffix: str) -> None:
    text = json.dumps(WHOLE) if suffix == ".json" else YAML_WHOLE
    seen_whole = decide_text(text, STOCK, suffix)
    assert not seen_whole.available
    for cut in range(len(text)):
        answer, law = decide_text(text[:cut], STOCK, suffix), judged(text[:cut], suffix)
        if isinstance(law, Unreadable):
            assert_refused(answer)
        else:
            assert answer.allowed == law.allowed, text[:cut]


YAML_WHOLE = """\
tools: {disabled: [bash], allowed: [read, bash]}
skills:
  disabled: ["notes"]
mcp:
  disabled: [slack]
  required: ["k8s*"]
"""


@requirement("profile:duplicate-key")
@pytest.mark.parametrize(
    "text",
    [
        "tools:\n  disabled: [bash]\ntools: {}\n",
        "tools:\n  disabled: [bash]\n  disabled: []\n",
        '{"tools": {"disabled": ["bash"], "disabled": []}}',
    ],
)
def test_a_key_written_twice_is_an_error_never_a_silent_winner(text: str) -> None:
    refused_text(text)


@requirement("profile:several-documents")
def test_a_file_of_two_documents_is_an_error() -> None:
    refused_text("tools: {disabled: [bash]}\n---\ntools: {}\n")


def workspace(folder: Path, **agents: str) -> tuple[str, ...]:
    """A workspace with these profiles; the arguments that open it."""
    (folder / "agents").mkdir()
    for name, text in agents.items():
        (folder / "agents" / f"{name}.yaml").write_text(text)
    (folder / "i.json").write_text(json.dumps(STOCK))
    return ("--inventory", str(folder / "i.json"), "--json", "-w", str(folder))


@requirement("profile:others-go-on")
def test_a_broken_profile_makes_its_agent_unavailable_and_others_go_on(tmp_path: Path) -> None:
    common = workspace(tmp_path, good="tools: {disabled: [bash]}\n", bad="tools: {disabled: [\n")
    code, out, _ = run("explain", "good", *common)
    assert code == 0
    assert [d["id"] for d in json.loads(out)["decisions"] if not d["visible"]] == ["tool:bash"]
    code, out, err = run("explain", "bad", *common)
    assert code in (1, 4)
    assert '"visible": true' not in out
    assert "bad.yaml" in err + out
    code, out, err = run("check", *common)
    assert code == 3
    assert "bad.yaml" in out + err


@requirement("profile:unknown-agent")
def test_an_unknown_agent_is_an_error_and_not_the_open_default(tmp_path: Path) -> None:
    common = workspace(tmp_path, good="{}\n")
    code, out, err = run("explain", "nobody", *common)
    assert code == 1
    assert "nobody" in err
    assert '"visible": true' not in out


@requirement("profile:empty-is-not-absent")
def test_empty_is_not_absent() -> None:
    assert "tool:bash" in sees({}, STOCK)
    assert "tool:bash" not in sees({"tools": []}, STOCK)
    assert "tool:bash" not in sees({"tools": {"allowed": [" "]}}, STOCK)
    assert decide_case({"tools": None}, STOCK).readable is False


@requirement("profile:no-off-switch")
@pytest.mark.parametrize("key", ["enabled", "gate", "enforce", "off", "disable_gating", "bypass"])
def test_no_key_of_a_profile_turns_the_gate_off(key: str) -> None:
    for value in (False, True):
        assert "tool:bash" not in decide_case({key: value, "tools": {"disabled": ["bash"]}}, STOCK).visible


@requirement("profile:no-off-switch")
def test_no_option_of_the_command_turns_the_gate_off() -> None:
    _, out, _ = run("explain", "--help")
    for word in ("--off", "--no-gate", "--force", "--bypass", "--allow-all"):
        assert word not in out


@requirement("profile:open-default")
def test_who_configures_nothing_gets_an_explicit_policy_that_shows_in_every_explanation() -> None:
    answer = decide_case({}, STOCK)
    assert answer.visible == ["mcp_tool:slack/send", "skill:notes", "tool:bash", "tool:read"]
    assert all(d["reason"] and d["rule"]["text"] for d in answer.decisions)
