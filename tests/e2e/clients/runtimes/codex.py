"""Codex in `exec` mode without approvals and sandbox, as configured by its home."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.e2e.clients.cases import CHILD, Case, NotThere, Pieces
from tests.e2e.clients.intents import INSTRUCTIONS, LISTED, MARKER, RESOURCE, SKILL_TEXT, called
from tests.e2e.clients.lab import Lab, Ran
from tests.e2e.clients.toml_text import toml
from tests.e2e.clients.wires import Call, Json, Step, Turn

NAME = "codex"
WIRE = "responses"
TIMEOUT_S = 500.0
IS_HOST = False


def configure(lab: Lab, url: str, pieces: Pieces) -> None:
    """Its files. pieces: `config` (config.toml), `servers`, `roles` (by name: its file)."""
    home = lab.home / ".codex"
    for name, role in pieces.get("roles", {}).items():
        lab.write(home / "agents" / f"{name}.toml", toml(role))
    lab.skills(home / "skills")
    servers = pieces["servers"]
    config = pieces.get("config", {})
    for name, more in config.get("mcp_servers", {}).items():
        servers = {**servers, name: {**servers[name], **more}}
    lab.write(home / "config.toml", toml({**_config(url), **config, "mcp_servers": servers}))


def _config(url: str) -> dict[str, Any]:
    provider = {"name": "fake", "base_url": f"{url}/v1", "env_key": "FAKE_KEY", "wire_api": "responses"}
    return {
        "model": "fake-model",
        "model_provider": "fake",
        "check_for_update_on_startup": False,
        "analytics": {"enabled": False},
        "model_providers": {"fake": provider},
    }


def ask(lab: Lab, command: Sequence[str], url: str, pieces: Pieces, gated: bool) -> Ran:
    """One turn of a user."""
    env = lab.environment(CODEX_HOME=str(lab.home / ".codex"), FAKE_KEY="dummy")
    flags = ["--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox"]
    return lab.run([*command, "exec", *flags, *pieces.get("args", []), "Begin."], env, TIMEOUT_S)


def mcp(tool: str, gated: bool, server: str = "alpha") -> list[Step]:
    """Turns that call a server's tool, in its namespace: as configured, and as the gateway has it."""
    direct: Turn = [Call(tool, {"q": "1"}, namespace=f"mcp__{server}")]
    return [direct, [Call(f"{server}__{tool}", {"q": "1"}, namespace="mcp__extgate")]] if gated else [direct]


def spawn(role: str) -> list[Step]:
    """A sub-agent that is waited for; a role of the empty text is the default one."""
    given = {"message": f"{CHILD}: work.", **({"agent_type": role} if role else {})}
    return [[Call("spawn_agent", given, namespace="multi_agent_v1")], _wait]


def _wait(body: Json) -> Turn:
    found = re.findall(r"agent_id\W+([0-9a-f-]{36})", json.dumps(body["input"]))
    return [Call("wait_agent", {"targets": found[-1:], "timeout_ms": 30000}, namespace="multi_agent_v1")]


def alpha(**rows: object) -> Pieces:
    """Keys of the server's own table."""
    return {"config": {"mcp_servers": {"alpha": rows}}}


def skill(name: str) -> Pieces:
    return {"config": {"skills": {"config": [{"name": name, "enabled": False}]}}}


NO_SHELL = {"config": {"features": {"shell_tool": False}}}
ALL = ["read_thing", "write_thing", "delete_thing", "danger_zone"]


def cases(lab: Lab, gated: bool) -> Mapping[str, Case | NotThere]:
    """By intent. gated: under extgate, where a server's tools have the gateway's names."""
    shell: list[Step] = [[Call("exec_command", {"cmd": lab.touch})]]
    danger = mcp("danger_zone", gated)
    resource: list[Step] = [
        [Call("read_mcp_resource", {"server": server, "uri": "probe://alpha/secret"})]
        for server in ("alpha", *(["extgate"] if gated else []))
    ]
    secret = lab.home / ".codex/skills/secret-skill/SKILL.md"
    role = {"name": "worker", "description": "Works.", "developer_instructions": "You work."}
    narrowed = {**role, "mcp_servers": {"alpha": {**lab.server(), "disabled_tools": ["danger_zone"]}}}
    other_shells: list[Step] = [
        [Call("shell", {"command": ["touch", str(lab.marker)]})],
        [Call("local_shell", {"command": ["touch", str(lab.marker)]})],
    ]
    flat: list[Step] = [[Call("mcp__alpha__write_thing", {})], [Call("mcp__extgate__alpha__write_thing", {})]]
    return {
        "builtin": Case(effect=MARKER, attack=shell, native=NO_SHELL, profile="tools: {disabled: [exec_command]}"),
        "mcp-tool": Case(
            effect=called("danger_zone"),
            attack=danger,
            native=alpha(disabled_tools=["danger_zone"]),
            profile="mcp: {disabled: [alpha/danger_zone]}",
        ),
        "child-builtin": Case(
            effect=MARKER,
            attack=spawn(""),
            child=shell,
            native=NO_SHELL,
            profile="tools: {disabled: [exec_command]}",
        ),
        "child-mcp": Case(
            effect=called("danger_zone"),
            attack=spawn("worker"),
            child=danger,
            base={"roles": {"worker": role}},
            native={"roles": {"worker": narrowed}},
            profile="mcp: {disabled: [alpha/danger_zone]}",
        ),
        "wildcard": Case(
            effect=called("danger_zone"),
            attack=danger,
            native=alpha(disabled_tools=["danger*"]),
            profile="mcp: {disabled: ['*/danger*']}",
        ),
        "wildcard-skill": Case(
            effect=LISTED, attack=[], native=skill("secret*"), profile="skills: {disabled: ['secret*']}"
        ),
        "wrong-case": Case(
            effect=called("danger_zone"),
            attack=danger,
            native=alpha(disabled_tools=["Danger_Zone"]),
            profile="mcp: {disabled: [alpha/Danger_Zone]}",
            told="alpha/Danger_Zone",
        ),
        "raw-name": NotThere(why="a server's name cannot hold what a wire name cannot"),
        "near-miss": Case(
            effect=called("*"),
            attack=[*mcp("delete_thing", gated), *mcp("Write_Thing", gated), *mcp("write_thng", gated), *flat],
            native=alpha(disabled_tools=["delete_thing"]),
            profile="mcp: {disabled: [alpha/delete_thing]}",
        ),
        "resources": Case(
            effect=RESOURCE, attack=resource, native=alpha(disabled_tools=ALL), profile="mcp: {disabled: [alpha]}"
        ),
        "instructions": Case(
            effect=INSTRUCTIONS, attack=[], native=alpha(disabled_tools=ALL), profile="mcp: {disabled: [alpha]}"
        ),
        "allow-list": Case(
            effect=MARKER, attack=shell, native=None, profile="tools: {allowed: [view_image]}\nmcp: {allowed: [beta]}"
        ),
        "allow-list-mcp": Case(
            effect=called("danger_zone"),
            attack=danger,
            native=None,
            profile="tools: {allowed: [view_image]}\nmcp: {allowed: [beta]}",
        ),
        "no-shell": Case(
            effect=MARKER,
            attack=[*other_shells, *shell],
            native=NO_SHELL,
            profile="tools: {disabled: [exec_command, write_stdin]}",
        ),
        "skill-listed": Case(
            effect=LISTED, attack=[], native=skill("secret-skill"), profile="skills: {disabled: [secret-skill]}"
        ),
        "skill-read": Case(
            effect=SKILL_TEXT,
            attack=[[Call("exec_command", {"cmd": f"cat {secret}"})]],
            native=skill("secret-skill"),
            profile="skills: {disabled: [secret-skill]}",
        ),
        "late-tool": NotThere(why="it does not follow a server's list_changed"),
    }
