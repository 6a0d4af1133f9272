"""The examples: their files read, their servers are pinned, and nothing in them reaches outside the clone."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from extgate.discover.builtins import builtin_tools

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
CONFIGS = {"office": ".mcp.json", "smoke": ".msagent/config.mcp.json"}
SKILLS = sorted(EXAMPLES.glob("*/skills/**/SKILL.md"))
CHAT_TOOLS = {tool.name for tool in builtin_tools("deepagents")}
"""What `extgate chat` calls its own tools; the first design has OpenProgram's names, of which some differ."""
OFFICE_CATEGORIES = {"customer-service", "writing", "research", "devops"}


def _load_servers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("examples_servers", EXAMPLES / "servers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


servers = _load_servers()


def _entries(example: str) -> dict[str, dict[str, Any]]:
    text = (EXAMPLES / example / CONFIGS[example]).read_text(encoding="utf-8")
    entries = json.loads(text)["mcpServers"]
    assert isinstance(entries, dict)
    return entries


def _header(skill: Path) -> dict[str, Any]:
    _, header, _ = skill.read_text(encoding="utf-8").split("---\n", 2)
    fields = yaml.safe_load(header)
    assert isinstance(fields, dict)
    return fields


def _profile(name: str) -> dict[str, Any]:
    profile = yaml.safe_load((EXAMPLES / "office" / "agents" / f"{name}.yaml").read_text(encoding="utf-8"))
    assert isinstance(profile, dict)
    return profile


def _arguments() -> Iterator[tuple[str, str]]:
    for example in CONFIGS:
        for entry in _entries(example).values():
            for text in (entry["command"], *entry["args"], *entry.get("env", {}).values()):
                yield example, text


def test_every_yaml_file_of_the_examples_is_a_mapping() -> None:
    files = [path for suffix in ("yaml", "yml") for path in EXAMPLES.rglob(f"*.{suffix}")]
    assert len(files) >= 5
    for path in files:
        assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict), path


def test_the_three_profiles_say_what_the_first_design_says() -> None:
    blocks = {
        "customer-service": {
            "tools": {"disabled": ["write", "edit", "execute_*", "apply_patch"]},
            "skills": {"categories": ["customer-service", "writing"]},
            "mcp": {"disabled": ["*"]},
        },
        "devops": {
            "skills": {"disabled": ["prod-deploy", "drop-database"]},
            "mcp": {"required": ["github*", "k8s*"]},
        },
        "research": {
            "tools": {"allowed": ["read", "grep", "glob", "web_search", "web_fetch"]},
            "skills": {"categories": ["research"]},
            "mcp": {"allowed": ["arxiv*", "scholar*"]},
        },
    }
    for name, expected in blocks.items():
        profile = _profile(name)
        assert profile.pop("id") == name
        assert profile.pop("description")
        for key, names in profile.get("tools", {}).items():
            profile["tools"][key] = [
                entry for entry in names if entry not in CHAT_TOOLS or entry in expected["tools"][key]
            ]
        assert profile == expected


def test_the_office_profiles_close_and_open_the_same_tools_under_the_names_that_chat_has_for_them() -> None:
    assert {"write_file", "edit_file", "delete", "execute"} <= set(_profile("customer-service")["tools"]["disabled"])
    assert set(_profile("research")["tools"]["allowed"]) & CHAT_TOOLS == {"grep", "glob", "read_file"}


def test_the_smoke_agent_names_four_tools_one_server_and_two_skills_that_exist() -> None:
    path = EXAMPLES / "smoke" / ".msagent" / "agents" / "msagent-filter-smoke.yml"
    agent = yaml.safe_load(path.read_text(encoding="utf-8"))
    tools = [pattern.split(":") for pattern in agent["tools"]["patterns"]]
    built_in = [name for category, module, name in tools if (category, module) == ("impl", "deepagents")]
    assert built_in == ["get_tool", "run_tool", "fetch_skills", "get_skill"]
    assert [module for category, module, _ in tools if category == "mcp"] == list(_entries("smoke"))
    for pattern in agent["skills"]["patterns"]:
        category, name = pattern.split(":")
        assert category == "default"
        assert (EXAMPLES / "smoke" / "skills" / name / "SKILL.md").is_file()


def test_the_smoke_agent_leaves_some_skills_out() -> None:
    named = yaml.safe_load((EXAMPLES / "smoke/.msagent/agents/msagent-filter-smoke.yml").read_text(encoding="utf-8"))
    assert len(list((EXAMPLES / "smoke" / "skills").glob("**/SKILL.md"))) > len(named["skills"]["patterns"])


@pytest.mark.parametrize("skill", SKILLS, ids=lambda path: str(path.relative_to(EXAMPLES).parent))
def test_a_skill_has_a_header_with_its_folder_s_name_and_a_description(skill: Path) -> None:
    header = _header(skill)
    assert header["name"] == skill.parent.name
    assert len(header["description"]) >= 20


def test_the_office_has_a_skill_of_each_category_and_one_of_none() -> None:
    categories = [_header(skill).get("category") for skill in SKILLS if "office" in skill.parts]
    assert set(categories) == OFFICE_CATEGORIES | {None}
    assert categories.count(None) == 1


@pytest.mark.parametrize("name", ["prod-deploy", "drop-database"])
def test_a_skill_that_devops_disables_is_there_once(name: str) -> None:
    assert [path for path in SKILLS if path.parent.name == name] == [
        EXAMPLES / "office" / "skills" / "devops" / name / "SKILL.md"
    ]


@pytest.mark.parametrize("server", servers.SERVERS, ids=lambda server: server.name)
def test_a_server_is_pinned_to_exact_releases(server: Any) -> None:
    exact = r"[a-z0-9-]+==\d+(\.\d+)+" if server.registry == "pypi" else r"(@[a-z]+/)?[a-z-]+@\d+\.\d+\.\d+"
    assert server.pins
    for pin in server.pins:
        assert re.fullmatch(exact, pin), pin


def test_a_python_server_says_which_mcp_release_it_lives_with() -> None:
    for server in servers.SERVERS:
        assert (server.registry == "pypi") == any(pin.startswith("mcp==") for pin in server.pins), server.name


def test_the_constraints_are_exact_releases_and_leave_mcp_to_each_server() -> None:
    lines = [line for line in servers.CONSTRAINTS.read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==\d+(\.\w+)+", line) for line in lines)
    assert not [line for line in lines if line.startswith("mcp==")]
    assert lines == sorted(set(lines))


@pytest.mark.parametrize("example", list(CONFIGS))
def test_a_configured_server_is_one_that_the_installer_makes(example: str) -> None:
    made = {server.name: servers.command_path(server) for server in servers.SERVERS if server.example == example}
    entries = _entries(example)
    assert set(entries) == set(made)
    for name, entry in entries.items():
        command = (EXAMPLES / example / entry["command"]).resolve(strict=False)
        # bin/python of a virtual environment is a link; its scripts are files, so resolving stays in place.
        assert command == made[name]
        assert command.is_relative_to(ROOT / ".cache" / "servers" / name)


def test_no_argument_points_outside_the_clone() -> None:
    for example, text in _arguments():
        assert not text.startswith(("/", "~", "$")), text
        if "/" in text:
            assert (EXAMPLES / example / text).resolve(strict=False).is_relative_to(ROOT), text


def test_no_link_leads_out_of_the_examples() -> None:
    for path in EXAMPLES.rglob("*"):
        assert path.resolve().is_relative_to(EXAMPLES), path


def test_a_server_s_credentials_are_plainly_dummies() -> None:
    values = [
        value for example in CONFIGS for entry in _entries(example).values() for value in entry.get("env", {}).values()
    ]
    assert values
    assert set(values) <= {"dummy", "T0"}


def test_listing_the_servers_installs_nothing(tmp_path: Path) -> None:
    copy = tmp_path / "examples"
    copy.mkdir()
    for name in ("servers.py", "constraints.txt"):
        (copy / name).write_bytes((EXAMPLES / name).read_bytes())
    done = subprocess.run(
        [sys.executable, str(copy / "servers.py"), "all", "--list"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert [line.split()[0] for line in done.stdout.splitlines()] == [server.name for server in servers.SERVERS]
    assert done.stdout.count("needs Node 18 or newer") == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["examples"]


def _at(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(servers, "SERVERS_DIR", folder / "servers")
    monkeypatch.setattr(servers, "DATA_DIR", folder / "data")


def _named(name: str) -> Any:
    return next(server for server in servers.SERVERS if server.name == name)


def test_without_node_an_npm_server_is_skipped_aloud_and_its_command_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _at(monkeypatch, tmp_path)
    monkeypatch.setattr(servers.shutil, "which", lambda name: None)
    assert servers.install_all([_named("github"), _named("slack")], with_node=False) == 0
    assert "skipped github, slack: needs Node 18 or newer" in capsys.readouterr().out
    done = subprocess.run([servers.command_path(_named("github"))], capture_output=True, text=True, timeout=60)
    assert done.returncode == 127
    assert done.stderr.startswith("github: needs Node 18 or newer")
    assert not servers.is_installed(_named("github"), None)


def _break(folder: Path, pins: list[str]) -> None:
    raise servers.InstallError("no such release")


def test_a_server_that_does_not_install_fails_the_run_and_its_command_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _at(monkeypatch, tmp_path)
    monkeypatch.setattr(servers, "install_python", _break)
    assert servers.install_all([_named("time")], with_node=False) == 3
    assert "failed: no such release" in capsys.readouterr().out
    done = subprocess.run([servers.command_path(_named("time"))], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (127, "time: could not be installed: no such release\n")


def test_an_interrupted_install_is_done_again_and_a_finished_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _at(monkeypatch, tmp_path)
    made = []

    def make(folder: Path, pins: list[str]) -> None:
        servers.write_script(folder / "bin" / "mcp-server-time", "exit 0")
        made.append(pins)
        if len(made) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(servers, "install_python", make)
    monkeypatch.setattr(servers, "SERVERS", (_named("time"),))
    assert servers.main(["office"]) == 130
    assert servers.main(["office"]) == 0
    capsys.readouterr()
    assert servers.main(["office"]) == 0
    assert len(made) == 2
    assert capsys.readouterr().out == ""


def test_another_pin_installs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _at(monkeypatch, tmp_path)
    time = _named("time")
    servers.write_script(servers.command_path(time), "exit 0")
    (servers.home(time) / ".installed").write_text(servers.recipe(time, None))
    assert servers.is_installed(time, None)
    newer = servers.Server(
        name="time", example="office", registry="pypi", pins=("mcp-server-time==2027.1.1",), command=time.command
    )
    assert not servers.is_installed(newer, None)
