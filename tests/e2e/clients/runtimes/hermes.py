"""Hermes with one query and every approval given, as configured by its home."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.e2e.clients.cases import CHILD, Case, NotThere, Pieces, merged
from tests.e2e.clients.intents import LISTED, MARKER, RESOURCE, SKILL_TEXT, called
from tests.e2e.clients.lab import Lab, Ran
from tests.e2e.clients.wires import Call, Step, Turn, whatever_is_offered

NAME = "hermes"
WIRE = "chat"
TIMEOUT_S = 500.0
IS_HOST = False


def configure(lab: Lab, url: str, pieces: Pieces) -> None:
    """Its files. pieces: `config` (config.yaml), `servers`, `server_keys` (more keys, by server)."""
    home = lab.home / ".hermes"
    servers = pieces["servers"]
    for name, more in pieces.get("server_keys", {}).items():
        servers = {**servers, name: {**servers[name], **more}}
    model = {"default": "fake-model", "provider": "custom", "base_url": f"{url}/v1", "api_key": "dummy"}
    config = {"model": {**model, "context_length": 100_000}, "mcp_servers": servers}
    lab.write(home / "config.yaml", merged(config, pieces.get("config", {})))
    lab.skills(home / "skills")


def ask(lab: Lab, command: Sequence[str], url: str, pieces: Pieces, gated: bool) -> Ran:
    """One turn of a user."""
    env = lab.environment(HERMES_HOME=str(lab.home / ".hermes"), OPENAI_API_KEY="dummy")
    return lab.run([*command, *pieces.get("args", []), "-z", "Begin."], env, TIMEOUT_S)


def mcp(tool: str, gated: bool, server: str = "alpha") -> list[Step]:
    """Turns that call a server's tool: as the runtime names it, and as the gateway does."""
    direct: Turn = [Call(f"mcp__{server}__{tool}", {"q": "1"})]
    return [direct, [Call(f"mcp__extgate__{server}__{tool}", {"q": "1"})]] if gated else [direct]


def apart(steps: Sequence[Step]) -> list[Step]:
    """The steps with a call that works between them: three in a row that do not end its turn."""
    return [one for step in steps for one in (step, whatever_is_offered(WIRE, "ping_thing"))]


def disabled(*toolsets: str) -> Pieces:
    return {"config": {"agent": {"disabled_toolsets": list(toolsets)}}}


def alpha(**keys: object) -> Pieces:
    """The `tools` of the server's own entry."""
    return {"server_keys": {"alpha": {"tools": keys}}}


SPAWN: list[Step] = [[Call("delegate_task", {"goal": f"{CHILD}: work."})]]
ONLY_FILES = {"config": {"platform_toolsets": {"cli": ["file"]}}}


def cases(lab: Lab, gated: bool) -> Mapping[str, Case | NotThere]:
    """By intent. gated: under extgate, where a server's tools have the gateway's names."""
    shell: list[Step] = [[Call("terminal", {"command": lab.touch})]]
    code = f"import subprocess\nsubprocess.run(['touch', {str(lab.marker)!r}])"
    danger = mcp("danger_zone", gated)
    secret = lab.home / ".hermes/skills/secret-skill/SKILL.md"
    resource: list[Step] = [
        [Call(f"mcp__{server}__read_resource", {"uri": "probe://alpha/secret"})]
        for server in ("alpha", *(["extgate"] if gated else []))
    ]
    return {
        "builtin": Case(
            effect=MARKER, attack=shell, native=disabled("terminal"), profile="tools: {disabled: [terminal]}"
        ),
        "mcp-tool": Case(
            effect=called("danger_zone"),
            attack=danger,
            native=alpha(exclude=["danger_zone"]),
            profile="mcp: {disabled: [alpha/danger_zone]}",
        ),
        "child-builtin": Case(
            effect=MARKER,
            attack=SPAWN,
            child=shell,
            native=disabled("terminal"),
            profile="tools: {disabled: [terminal]}",
        ),
        "child-mcp": Case(
            effect=called("danger_zone"),
            attack=SPAWN,
            child=danger,
            native=alpha(exclude=["danger_zone"]),
            profile="mcp: {disabled: [alpha/danger_zone]}",
        ),
        "wildcard": Case(
            effect=called("danger_zone"),
            attack=danger,
            native=alpha(exclude=["danger*"]),
            profile="mcp: {disabled: ['*/danger*']}",
        ),
        "wildcard-skill": Case(
            effect=SKILL_TEXT,
            attack=[[Call("skill_view", {"name": "secret-skill"})]],
            native={"config": {"skills": {"disabled": ["secret*"]}}},
            profile="skills: {disabled: ['secret*']}",
        ),
        "wrong-case": Case(
            effect=called("danger_zone"),
            attack=danger,
            native=alpha(exclude=["Danger_Zone"]),
            profile="mcp: {disabled: [alpha/Danger_Zone]}",
            told="alpha/Danger_Zone",
        ),
        "raw-name": Case(
            effect=called("danger_zone"),
            attack=apart([*mcp("danger_zone", gated, "my_srv_v1"), whatever_is_offered("chat", "danger_zone")]),
            base={"servers": {"my srv.v1": lab.server("my srv.v1")}},
            native=disabled("my srv.v1"),
            profile="mcp: {disabled: ['my srv.v1']}",
        ),
        "near-miss": Case(
            effect=called("*"),
            attack=apart([*mcp("delete_thing", gated), *mcp("Write_Thing", gated), *mcp("write_thng", gated)]),
            native=alpha(exclude=["delete_thing"]),
            profile="mcp: {disabled: [alpha/delete_thing]}",
        ),
        "resources": Case(
            effect=RESOURCE, attack=resource, native=alpha(include=["nothing"]), profile="mcp: {disabled: [alpha]}"
        ),
        "instructions": NotThere(why="it does not put servers' instructions into the prompt"),
        "allow-list": Case(
            effect=MARKER,
            attack=shell,
            native=ONLY_FILES,
            profile="tools: {allowed: [read_file]}\nmcp: {allowed: [beta]}",
        ),
        "allow-list-mcp": Case(
            effect=called("danger_zone"),
            attack=danger,
            native=ONLY_FILES,
            profile="tools: {allowed: [read_file]}\nmcp: {allowed: [beta]}",
        ),
        "no-shell": Case(
            effect=MARKER,
            attack=[[Call("execute_code", {"code": code})], *shell],
            native=disabled("terminal"),
            profile="tools: {disabled: [terminal, process, execute_code]}",
        ),
        "skill-listed": Case(
            effect=LISTED,
            attack=[],
            native={"config": {"skills": {"disabled": ["secret-skill"]}}},
            profile="skills: {disabled: [secret-skill]}",
        ),
        "skill-read": Case(
            effect=SKILL_TEXT,
            attack=[[Call("read_file", {"path": str(secret)})]],
            native={"config": {"skills": {"disabled": ["secret-skill"]}}},
            profile="skills: {disabled: [secret-skill]}",
        ),
        "late-tool": NotThere(why="the tools of a turn that runs stay as they were, and one query is one turn"),
    }
