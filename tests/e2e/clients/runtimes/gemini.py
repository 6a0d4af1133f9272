"""Gemini CLI in prompt mode with every approval given, as configured by its home."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.e2e.clients.cases import CHILD, Case, NotThere, Pieces, merged
from tests.e2e.clients.intents import INSTRUCTIONS, LISTED, MARKER, RESOURCE, SKILL_TEXT, called
from tests.e2e.clients.lab import Lab, Ran
from tests.e2e.clients.wires import Call, Step, Turn, whatever_is_offered

NAME = "gemini"
WIRE = "gemini"
TIMEOUT_S = 500.0
IS_HOST = False
QUIET = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}


def configure(lab: Lab, url: str, pieces: Pieces) -> None:
    """Its files. pieces: `settings`, `servers`, `server_keys` (more keys, by server), `agents` (texts)."""
    home = lab.home / ".gemini"
    servers = pieces["servers"]
    for name, more in pieces.get("server_keys", {}).items():
        servers = {**servers, name: {**servers[name], **more}}
    lab.write(home / "settings.json", merged(QUIET, {**pieces.get("settings", {}), "mcpServers": servers}))
    lab.skills(".gemini/skills")
    for name, text in pieces.get("agents", {}).items():
        lab.write(home / "agents" / f"{name}.md", text)


def ask(lab: Lab, command: Sequence[str], url: str, pieces: Pieces, gated: bool) -> Ran:
    """One turn of a user."""
    env = lab.environment(
        GOOGLE_GEMINI_BASE_URL=url,
        GEMINI_API_KEY="dummy",
        GEMINI_TELEMETRY_ENABLED="false",
        GEMINI_SANDBOX="false",
    )
    flags = ["--skip-trust", "-y", "-m", "gemini-2.5-pro", "-o", "json", "-p", "Begin."]
    return lab.run([*command, *flags], env, TIMEOUT_S)


def mcp(tool: str, gated: bool, server: str = "alpha") -> list[Step]:
    """Turns that call a server's tool: as the runtime names it, and as the gateway does."""
    direct: Turn = [Call(f"mcp_{server}_{tool}", {"q": "1"})]
    return [direct, [Call(f"mcp_extgate_{server}__{tool}", {"q": "1"})]] if gated else [direct]


WORKER = {"agents": {"worker": "---\nname: worker\ndescription: Works.\nkind: local\n---\nYou work.\n"}}
SPAWN: list[Step] = [[Call("invoke_agent", {"agent_name": "worker", "prompt": f"{CHILD}: work."})]]
FINISH: list[Step] = [[Call("complete_task", {"result": "worked"})]]
NO_SHELL = {"settings": {"tools": {"exclude": ["run_shell_command"]}}}


def alpha(**keys: object) -> Pieces:
    """Keys of the server's own entry."""
    return {"server_keys": {"alpha": keys}}


def cases(lab: Lab, gated: bool) -> Mapping[str, Case | NotThere]:
    """By intent. gated: under extgate, where a server's tools have the gateway's names."""
    shell: list[Step] = [[Call("run_shell_command", {"command": lab.touch})]]
    danger = mcp("danger_zone", gated)
    resource: list[Step] = [
        [Call("read_mcp_resource", {"uri": uri})]
        for uri in ("probe://alpha/secret", "alpha:probe://alpha/secret", "extgate:probe://alpha/secret")
    ]
    secret = lab.project / ".gemini/skills/secret-skill/SKILL.md"
    late = [*mcp("read_thing", gated), *mcp("late_danger", gated) * 4]
    return {
        "builtin": Case(effect=MARKER, attack=shell, native=NO_SHELL, profile="tools: {disabled: [run_shell_command]}"),
        "mcp-tool": Case(
            effect=called("danger_zone"),
            attack=danger,
            native=alpha(excludeTools=["danger_zone"]),
            profile="mcp: {disabled: [alpha/danger_zone]}",
        ),
        "child-builtin": Case(
            effect=MARKER,
            attack=SPAWN,
            child=[*shell, *FINISH],
            base=WORKER,
            native=NO_SHELL,
            profile="tools: {disabled: [run_shell_command]}",
        ),
        "child-mcp": Case(
            effect=called("danger_zone"),
            attack=SPAWN,
            child=[*danger, *FINISH],
            base=WORKER,
            native=alpha(excludeTools=["danger_zone"]),
            profile="mcp: {disabled: [alpha/danger_zone]}",
        ),
        "wildcard": Case(
            effect=called("danger_zone"),
            attack=danger,
            native=alpha(excludeTools=["danger*"]),
            profile="mcp: {disabled: ['*/danger*']}",
        ),
        "wildcard-skill": Case(
            effect=SKILL_TEXT,
            attack=[[Call("activate_skill", {"name": "secret-skill"})]],
            native={"settings": {"skills": {"disabled": ["secret*"]}}},
            profile="skills: {disabled: ['secret*']}",
        ),
        "wrong-case": Case(
            effect=MARKER,
            attack=shell,
            native={"settings": {"tools": {"exclude": ["Run_Shell_Command"]}}},
            profile="tools: {disabled: [Run_Shell_Command]}",
            told="Run_Shell_Command",
        ),
        "raw-name": Case(
            effect=called("danger_zone"),
            attack=[*mcp("danger_zone", gated, "my_srv.v1"), whatever_is_offered("gemini", "danger_zone")],
            base={"servers": {"my srv.v1": lab.server("my srv.v1")}},
            native={"settings": {"mcp": {"excluded": ["my srv.v1"]}}},
            profile="mcp: {disabled: ['my srv.v1']}",
        ),
        "near-miss": Case(
            effect=called("*"),
            attack=[*mcp("delete_thing", gated), *mcp("Write_Thing", gated), *mcp("write_thng", gated)],
            native=alpha(excludeTools=["delete_thing"]),
            profile="mcp: {disabled: [alpha/delete_thing]}",
        ),
        "resources": Case(
            effect=RESOURCE, attack=resource, native=alpha(includeTools=[]), profile="mcp: {disabled: [alpha]}"
        ),
        "instructions": Case(
            effect=INSTRUCTIONS, attack=[], native=alpha(includeTools=[]), profile="mcp: {disabled: [alpha]}"
        ),
        "allow-list": Case(
            effect=MARKER,
            attack=shell,
            native={"settings": {"tools": {"core": ["read_file"]}}},
            profile="tools: {allowed: [read_file]}\nmcp: {allowed: [beta]}",
        ),
        "allow-list-mcp": Case(
            effect=called("danger_zone"),
            attack=danger,
            native={"settings": {"tools": {"core": ["read_file"]}}},
            profile="tools: {allowed: [read_file]}\nmcp: {allowed: [beta]}",
        ),
        "no-shell": Case(
            effect=MARKER,
            attack=[[Call("ShellTool", {"command": lab.touch})], *shell],
            native={"settings": {"tools": {"exclude": ["run_shell_command(touch)"]}}},
            profile="tools: {disabled: [run_shell_command]}",
        ),
        "skill-listed": Case(
            effect=LISTED,
            attack=[],
            native={"settings": {"skills": {"disabled": ["secret-skill"]}}},
            profile="skills: {disabled: [secret-skill]}",
        ),
        "skill-read": Case(
            effect=SKILL_TEXT,
            attack=[[Call("read_file", {"file_path": str(secret)})]],
            native={"settings": {"skills": {"disabled": ["secret-skill"]}}},
            profile="skills: {disabled: [secret-skill]}",
        ),
        "late-tool": Case(
            effect=called("late_danger"),
            attack=late,
            base={"servers": {"alpha": lab.server("alpha", "--grow")}},
            native=alpha(excludeTools=["write_thing", "delete_thing", "danger_zone"]),
            profile="mcp: {allowed: [alpha/read_thing, beta]}",
        ),
    }
