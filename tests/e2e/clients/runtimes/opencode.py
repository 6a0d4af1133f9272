"""opencode in run mode with every permission given, as configured by a project's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.e2e.clients.cases import CHILD, Case, NotThere, Pieces, merged
from tests.e2e.clients.intents import INSTRUCTIONS, LISTED, MARKER, RESOURCE, SKILL_TEXT, called
from tests.e2e.clients.lab import Lab, Ran
from tests.e2e.clients.wires import Call, Step, Turn, whatever_is_offered

NAME = "opencode"
WIRE = "chat"
TIMEOUT_S = 500.0
IS_HOST = False


def configure(lab: Lab, url: str, pieces: Pieces) -> None:
    """Its files. pieces: `config` (opencode.json), `servers`, `args`."""
    servers = pieces["servers"]
    entries = {k: {"type": "local", "command": [v["command"], *v["args"]], "enabled": True} for k, v in servers.items()}
    lab.write("opencode.json", merged({**_config(url), "mcp": entries}, pieces.get("config", {})))
    lab.skills(lab.home / ".config/opencode/skill")


def _config(url: str) -> dict[str, object]:
    limits = {"context": 100_000, "output": 8_000}
    fake = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "dummy"},
        "models": {"fake-model": {"tool_call": True, "limit": limits}},
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "provider": {"fake": fake},
    }


def ask(lab: Lab, command: Sequence[str], url: str, pieces: Pieces, gated: bool) -> Ran:
    """One turn of a user."""
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SHARE", "CLAUDE_CODE")
    env = lab.environment(**{f"OPENCODE_DISABLE_{name}": "1" for name in off})
    return lab.run([*command, "run", "--format", "json", "--auto", *pieces.get("args", []), "Begin."], env, TIMEOUT_S)


def mcp(tool: str, gated: bool, server: str = "alpha") -> list[Step]:
    """Turns that call a server's tool: as the runtime names it, and as the gateway does."""
    direct: Turn = [Call(f"{server}_{tool}", {"q": "1"})]
    return [direct, [Call(f"extgate_{server}__{tool}", {"q": "1"})]] if gated else [direct]


def permit(rules: Mapping[str, object]) -> Pieces:
    return {"config": {"permission": dict(rules)}}


def lead(rules: Mapping[str, object]) -> Pieces:
    """Permissions of the main agent alone."""
    return {"config": {"agent": {"build": {"permission": dict(rules)}}}}


SPAWN: list[Step] = [
    [Call("task", {"description": "Work", "prompt": f"{CHILD}: work.", "subagent_type": "general"})],
]
ONLY_READ = permit({"*": "deny", "read": "allow"})


def cases(lab: Lab, gated: bool) -> Mapping[str, Case | NotThere]:
    """By intent. gated: under extgate, where a server's tools have the gateway's names."""
    shell: list[Step] = [[Call("bash", {"command": lab.touch, "description": "t"})]]
    capital: list[Step] = [[Call("Bash", {"command": lab.touch, "description": "t"})]]
    danger = mcp("danger_zone", gated)
    secret = lab.home / ".config/opencode/skill/secret-skill/SKILL.md"
    resource: list[Step] = [
        [Call("read_mcp_resource", {"server": server, "uri": "probe://alpha/secret"})]
        for server in ("alpha", *(["extgate"] if gated else []))
    ]
    late = [*mcp("read_thing", gated), *[whatever_is_offered(WIRE, "late_danger", 2.0)] * 4]
    return {
        "builtin": Case(
            effect=MARKER, attack=shell, native=permit({"bash": "deny"}), profile="tools: {disabled: [bash]}"
        ),
        "mcp-tool": Case(
            effect=called("danger_zone"),
            attack=danger,
            native=permit({"alpha_danger_zone": "deny"}),
            profile="mcp: {disabled: [alpha/danger_zone]}",
        ),
        "child-builtin": Case(
            effect=MARKER,
            attack=SPAWN,
            child=shell,
            native=lead({"bash": "deny"}),
            profile="tools: {disabled: [bash]}",
        ),
        "child-mcp": Case(
            effect=called("danger_zone"),
            attack=SPAWN,
            child=danger,
            native=lead({"alpha_*": "deny"}),
            profile="mcp: {disabled: [alpha/danger_zone]}",
        ),
        "wildcard": Case(
            effect=called("danger_zone"),
            attack=danger,
            native=permit({"*danger*": "deny"}),
            profile="mcp: {disabled: ['*/danger*']}",
        ),
        "wildcard-skill": Case(
            effect=SKILL_TEXT,
            attack=[[Call("skill", {"name": "secret-skill"})]],
            native=permit({"skill": {"secret*": "deny"}}),
            profile="skills: {disabled: ['secret*']}",
        ),
        "wrong-case": Case(
            effect=MARKER,
            attack=shell,
            native=permit({"Bash": "deny"}),
            profile="tools: {disabled: [Bash]}",
            told="Bash",
        ),
        "raw-name": Case(
            effect=called("danger_zone"),
            attack=[*mcp("danger_zone", gated, "my_srv_v1"), whatever_is_offered("chat", "danger_zone")],
            base={"servers": {"my srv.v1": lab.server("my srv.v1")}},
            native=permit({"my srv.v1_*": "deny"}),
            profile="mcp: {disabled: ['my srv.v1']}",
        ),
        "near-miss": Case(
            effect=MARKER, attack=capital, native=permit({"alpha_*": "deny"}), profile="mcp: {disabled: [alpha]}"
        ),
        "resources": Case(
            effect=RESOURCE, attack=resource, native=permit({"alpha_*": "deny"}), profile="mcp: {disabled: [alpha]}"
        ),
        "instructions": Case(
            effect=INSTRUCTIONS, attack=[], native=permit({"alpha_*": "deny"}), profile="mcp: {disabled: [alpha]}"
        ),
        "allow-list": Case(
            effect=MARKER, attack=shell, native=ONLY_READ, profile="tools: {allowed: [read]}\nmcp: {allowed: [beta]}"
        ),
        "allow-list-mcp": Case(
            effect=called("danger_zone"),
            attack=danger,
            native=ONLY_READ,
            profile="tools: {allowed: [read]}\nmcp: {allowed: [beta]}",
        ),
        "no-shell": Case(
            effect=MARKER,
            attack=[*capital, *shell],
            native=permit({"bash": "deny"}),
            profile="tools: {disabled: [bash]}",
        ),
        "skill-listed": Case(
            effect=LISTED,
            attack=[],
            native=permit({"skill": {"secret-skill": "deny"}}),
            profile="skills: {disabled: [secret-skill]}",
        ),
        "skill-read": Case(
            effect=SKILL_TEXT,
            attack=[[Call("read", {"filePath": str(secret)})]],
            native=permit({"skill": {"secret-skill": "deny"}}),
            profile="skills: {disabled: [secret-skill]}",
        ),
        "late-tool": Case(
            effect=called("late_danger"),
            attack=late,
            base={"servers": {"alpha": lab.server("alpha", "--grow")}},
            native=permit({f"alpha_{tool}": "deny" for tool in ("write_thing", "delete_thing", "danger_zone")}),
            profile="mcp: {allowed: [alpha/read_thing, beta]}",
        ),
    }
