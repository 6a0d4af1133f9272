"""What a program is started with: addresses, proofs and files of one process, and nothing of the user's changed."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from extgate.cli.main import cli
from extgate.enforce.wire.clients import client_of
from extgate.enforce.wire.front import WireSettings
from extgate.errors import WorkspaceError
from extgate.launch import HELD, STARTS, Place, Start, missing
from extgate.launch_run import Job, changed
from tests.unit.gateway.world import World

WIRE, MCP = "http://127.0.0.1:1/agents/a/wire", "http://127.0.0.1:1/agents/a/mcp"


def place(folder: Path, environ: Mapping[str, str] | None = None, **more: Any) -> Place:
    made = folder / "made"
    made.mkdir(exist_ok=True)
    home = {"HOME": str(folder / "home"), "XDG_CONFIG_HOME": str(folder / "home/.config")}
    given = {
        "wire": WIRE,
        "mcp": MCP,
        "token": "t0ken",
        "folder": made,
        "project": folder,
        "hook": "the-hook || exit 2",
    }
    return Place(**{**given, "environ": {**home, **(environ or {})}, **more})


def read(path: str) -> Any:
    assert Path(path).stat().st_mode & 0o077 == 0
    return json.loads(Path(path).read_text())


def test_claude_code_has_the_wire_the_gateway_alone_and_the_hook(tmp_path: Path) -> None:
    environ = {"ANTHROPIC_CUSTOM_HEADERS": "x-own: 1"}
    made = STARTS["claude-code"](place(tmp_path, environ, settings={"hooks": {}}))
    assert made.env["ANTHROPIC_BASE_URL"] == f"{WIRE}/anthropic"
    assert made.env["ANTHROPIC_CUSTOM_HEADERS"] == "x-own: 1\nx-extgate-authorization: Bearer t0ken"
    assert "ANTHROPIC_API_KEY" not in made.env
    flags = dict(zip(made.args[::2], made.args[1::2], strict=False))
    assert read(flags["--settings"]) == {"hooks": {}}
    server = {"type": "http", "url": MCP, "headers": {"Authorization": "Bearer t0ken"}}
    assert read(flags["--mcp-config"]) == {"mcpServers": {"extgate": server}}
    assert made.args[-1] == "--strict-mcp-config"


def test_a_key_that_extgate_holds_needs_none_of_the_programs(tmp_path: Path) -> None:
    held = frozenset({"anthropic", "openai", "gemini"})
    assert STARTS["claude-code"](place(tmp_path, holds=held)).env["ANTHROPIC_API_KEY"] == HELD
    assert STARTS["codex"](place(tmp_path, holds=held)).env["OPENAI_API_KEY"] == HELD
    assert STARTS["gemini"](place(tmp_path, holds=held)).env["GEMINI_API_KEY"] == HELD
    assert "ANTHROPIC_API_KEY" not in STARTS["claude-code"](place(tmp_path, {"ANTHROPIC_API_KEY": "k"}, holds=held)).env


def test_codex_gets_its_provider_and_its_servers_as_toml(tmp_path: Path) -> None:
    made = STARTS["codex"](place(tmp_path, {"OPENAI_API_KEY": "k"}))
    assert set(made.args[::2]) == {"-c"}
    said = dict(word.split("=", 1) for word in made.args[1::2])
    found = {key: tomllib.loads(f"value = {value}")["value"] for key, value in said.items()}
    assert found["model_provider"] == "extgate"
    assert found["mcp_servers"] == {"extgate": {"url": MCP, "bearer_token_env_var": "EXTGATE_TOKEN"}}
    provider = found["model_providers.extgate"]
    assert (provider["base_url"], provider["env_key"]) == (f"{WIRE}/openai/v1", "OPENAI_API_KEY")
    assert provider["env_http_headers"] == {"x-extgate-authorization": "EXTGATE_PROOF"}
    assert (made.env["EXTGATE_PROOF"], made.env["EXTGATE_TOKEN"]) == ("Bearer t0ken", "t0ken")
    assert "t0ken" not in " ".join(made.args), "the arguments of a process can be read by others"


def opencode(folder: Path, **more: Any) -> tuple[Start, dict[str, Any]]:
    made = STARTS["opencode"](place(folder, **more))
    return made, json.loads(made.env["OPENCODE_CONFIG_CONTENT"])


def test_opencode_is_told_by_its_environment_over_its_files(tmp_path: Path) -> None:
    (tmp_path / "opencode.json").write_text(
        """{ // comments are fine
        "mcp": {"own": {"type": "local", "command": ["x"]}},
        "provider": {"mine": {"options": {"baseURL": "http://model/v1"}}, "other": {"options": {"baseURL": "http://o"}}}}"""
    )
    before = {"OPENCODE_CONFIG_CONTENT": '{"share": "disabled", "mcp": {}}'}
    made, content = opencode(tmp_path, environ={**before}, upstreams={"openai": "http://model"})
    bases = {name: row["options"]["baseURL"] for name, row in content["provider"].items()}
    assert bases["anthropic"] == f"{WIRE}/anthropic/v1"
    assert bases["google"] == f"{WIRE}/gemini/v1beta"
    assert bases["mine"] == bases["openai"] == f"{WIRE}/openai/v1"
    assert "other" not in bases
    assert "`other` at http://o does not pass the wire" in made.left[0]
    assert content["share"] == "disabled"
    assert content["mcp"]["own"] == {"enabled": False}
    assert content["mcp"]["extgate"]["url"] == MCP


def test_a_file_of_the_programs_that_cannot_be_read_is_an_error_and_no_way_around(tmp_path: Path) -> None:
    (tmp_path / "opencode.json").write_text('{"provider": ')
    with pytest.raises(WorkspaceError):
        opencode(tmp_path)


def test_gemini_keeps_what_the_systems_settings_say(tmp_path: Path) -> None:
    system = tmp_path / "system.json"
    system.write_text('{"ui": {"theme": "x"}, "mcp": {"excluded": ["y"]}, "hooks": {"BeforeTool": [{"matcher": "m"}]}}')
    made = STARTS["gemini"](place(tmp_path, {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(system)}))
    found = read(made.env["GEMINI_CLI_SYSTEM_SETTINGS_PATH"])
    assert made.env["GEMINI_CLI_SYSTEM_SETTINGS_PATH"] != str(system)
    assert found["ui"] == {"theme": "x"}
    assert found["mcp"] == {"excluded": ["y"], "allowed": ["extgate"]}
    assert found["mcpServers"]["extgate"]["httpUrl"] == MCP
    assert [row["matcher"] for row in found["hooks"]["BeforeTool"]] == ["m", ".*"]
    assert made.env["GOOGLE_GEMINI_BASE_URL"] == f"{WIRE}/gemini"
    assert made.env["GEMINI_CLI_CUSTOM_HEADERS"] == "x-extgate-authorization: Bearer t0ken"


def test_hermes_has_a_home_that_is_the_users_but_for_its_config(tmp_path: Path) -> None:
    home = tmp_path / "hermes-home"
    (home / "skills").mkdir(parents=True)
    (home / "config.yaml").write_text(
        "model: {default: m, base_url: http://x, api_key: k}\nmcp_servers: {a: {}}\nz: 1\n"
    )
    made = STARTS["hermes"](place(tmp_path, {"HERMES_HOME": str(home)}, token=""))
    new = Path(made.env["HERMES_HOME"])
    found = json.loads((new / "config.yaml").read_text())
    assert found["model"] == {
        "default": "m", "base_url": f"{WIRE}/openai/v1", "api_key": "k", "provider": "custom",
    }  # fmt: skip
    assert list(found["mcp_servers"]) == ["extgate"]
    assert found["z"] == 1
    assert (new / "skills").resolve() == home / "skills"
    assert "http://x" in (home / "config.yaml").read_text()


def test_what_the_users_own_files_deny_leaves_the_gateways_tools(tmp_path: Path) -> None:
    denied = {"denied": ("wiki__find",)}
    said = dict(word.split("=", 1) for word in STARTS["codex"](place(tmp_path, **denied)).args[1::2])
    assert tomllib.loads(f"value = {said['mcp_servers']}")["value"]["extgate"]["disabled_tools"] == ["wiki__find"]
    found = read(STARTS["gemini"](place(tmp_path, **denied)).env["GEMINI_CLI_SYSTEM_SETTINGS_PATH"])
    assert found["mcpServers"]["extgate"]["excludeTools"] == ["wiki__find"]
    made = STARTS["hermes"](place(tmp_path, {"HERMES_HOME": str(tmp_path / "none")}, token="", **denied))
    config = json.loads((Path(made.env["HERMES_HOME"]) / "config.yaml").read_text())
    assert config["mcp_servers"]["extgate"]["tools"] == {"exclude": ["wiki__find"]}


@pytest.mark.parametrize(
    ("file", "environment", "expected"),
    [
        ({}, {}, []),
        ({"permission": {"bash": "deny"}}, {}, []),
        ({"permission": "deny"}, {}, [("*", "deny")]),
        ({"permission": "allow"}, {"permission": {"bash": "deny"}}, [("bash", "deny")]),
        ({}, {"permission": "ask"}, [("*", "ask")]),
    ],
    ids=repr,
)
def test_opencode_keeps_what_its_permissions_said(
    tmp_path: Path, file: Any, environment: Any, expected: list[tuple[str, str]]
) -> None:
    (tmp_path / "opencode.json").write_text(json.dumps(file))
    before = {"OPENCODE_CONFIG_CONTENT": json.dumps(environment)}
    _, content = opencode(tmp_path, environ=before, denied=("wiki__find",))
    assert list(content["permission"].items()) == [*expected, ("extgate_wiki__find", "deny")]
    _, content = opencode(tmp_path, environ=before)
    assert content.get("permission") == environment.get("permission")


@pytest.mark.parametrize(
    ("runtime", "client"), [("hermes", "hermes"), ("gemini", "gemini-cli"), ("claude-code", "claude-code")]
)
def test_the_wire_knows_the_program_that_was_started_whatever_it_says(
    tmp_path: Path, runtime: str, client: str
) -> None:
    job = Job(runtime=runtime, agent="a", root=tmp_path, project=tmp_path)
    made = changed(job, WireSettings(), {})
    assert (made.client, made.gateway) == (client, "extgate")
    assert client_of(made.clients, said=made.client, agent="OpenAI/Python 3.57.0").name == client
    assert changed(job, WireSettings(client="generic"), {}).client == "generic"


PROGRAM = """
import json, os, sys, urllib.request
url = os.environ["ANTHROPIC_BASE_URL"]
headers = dict(line.split(": ", 1) for line in os.environ["ANTHROPIC_CUSTOM_HEADERS"].split("\\n"))
headers["content-type"] = "application/json"
body = {"model": "m", "messages": [], "tools": [{"name": n, "input_schema": {}} for n in ("Bash", "Read")]}
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
def ask(headers):
    request = urllib.request.Request(url + "/v1/messages", json.dumps(body).encode(), headers)
    try:
        return opener.open(request).status
    except urllib.error.HTTPError as error:
        return error.code
with open(sys.argv[-1], "w") as file:
    said = {"with": ask(headers), "without": ask({"content-type": "application/json"}), "args": sys.argv[1:]}
    json.dump(said, file)
sys.exit(7)
"""


def test_a_program_that_is_run_reaches_its_model_by_the_wire_and_its_end_is_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.fake_anthropic import FakeAnthropic

    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    program = tmp_path / "claude"
    program.write_text(f"#!{sys.executable}\n{PROGRAM}")
    program.chmod(0o755)
    with FakeAnthropic(["done"]) as model:
        World(tmp_path, f"wire: {{anthropic: {{url: '{model.url}'}}}}\n", a="tools: {disabled: [Bash]}").servers()
        words = ["-w", str(tmp_path), "run", "claude-code", "--agent", "a", "--program", str(program)]
        words += ["--project", str(tmp_path), "--", "--flag", str(tmp_path / "out")]
        ran = CliRunner().invoke(cli, words)
        assert ran.exit_code == 7, ran.output
        (request,) = model.requests
        assert request.tools == ["Read"]
    found = json.loads((tmp_path / "out").read_text())
    assert (found["with"], found["without"]) == (200, 401)
    assert found["args"][-2:] == ["--flag", str(tmp_path / "out")]
    assert not Path(found["args"][found["args"].index("--settings") + 1]).exists()


def test_a_wall_that_does_not_stand_is_said(tmp_path: Path) -> None:
    assert missing("gemini", "a", Start(env={})) == []
    (said,) = missing("codex", "a", Start(env={}, walls=("wire", "gateway")))
    assert "no hook" in said
    assert "`extgate apply codex a`" in said


def test_a_program_that_is_not_there_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    World(tmp_path).servers()
    ran = CliRunner(env={"PATH": "/nowhere"}).invoke(cli, ["-w", str(tmp_path), "run", "codex", "--agent", "a"])
    assert ran.exit_code == 1
    assert "name it with --program PATH" in ran.output
