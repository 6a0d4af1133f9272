"""Claude Code in print mode with all permission questions off, as configured by a project's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.e2e.clients.cases import CHILD, Case, NotThere, Pieces
from tests.e2e.clients.intents import INSTRUCTIONS, LISTED, MARKER, RESOURCE, SKILL_TEXT, called
from tests.e2e.clients.lab import Lab, Ran
from tests.e2e.clients.wires import Call, Step, Turn, whatever_is_offered

NAME = "claude-code"
WIRE = "anthropic"
TIMEOUT_S = 500.0
IS_HOST = False
LEAD = {"agents": {"lead": {"description": "Leads.", "body": "You lead."}}, "args": ["--agent", "lead"]}


def configure(lab: Lab, url: str, pieces: Pieces) -> None:
    """Its files. pieces: `settings`, `servers`, `agents` (by name: header fields and `body`), `args`."""
    lab.write(".mcp.json", {"mcpServers": pieces["servers"]})
    lab.write(".claude/settings.json", pieces.get("settings", {}))
    lab.skills(".claude/skills")
    for name, fields in pieces.get("agents", {}).items():
        head = "\n".join(f"{k}: {v}" for k, v in {"name": name, **fields}.items() if k != "body")
        lab.write(f".claude/agents/{name}.md", f"---\n{head}\n---\n{fields['body']}\n")


def ask(lab: Lab, command: Sequence[str], url: str, pieces: Pieces, gated: bool) -> Ran:
    """One turn of a user."""
    env = lab.environment(
        ANTHROPIC_BASE_URL=url,
        ANTHROPIC_API_KEY="sk-ant-dummy",
        DISABLE_TELEMETRY="1",
        DISABLE_AUTOUPDATER="1",
        DISABLE_ERROR_REPORTING="1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        IS_SANDBOX="1",
        ENABLE_TOOL_SEARCH="false",
        MCP_CONNECTION_NONBLOCKING="false",
        CLAUDE_CODE_MCP_STARTUP_WAIT_MS="30000",
    )
    head = [*command, "-p", "Begin.", "--output-format", "json", "--dangerously-skip-permissions"]
    return lab.run([*head, *pieces.get("args", [])], env, TIMEOUT_S)


def mcp(tool: str, gated: bool, server: str = "alpha") -> list[Step]:
    """Turns that call a server's tool: as the runtime names it, and as the gateway does."""
    direct: Turn = [Call(f"mcp__{server}__{tool}", {"q": "1"})]
    return [direct, [Call(f"mcp__extgate__{server}__{tool}", {"q": "1"})]] if gated else [direct]


def spawn(kind: str = "general-purpose") -> list[Step]:
    given = {"description": "Work", "prompt": f"{CHILD}: work.", "subagent_type": kind, "run_in_background": False}
    return [[Call("Agent", given)]]


def deny(*rules: str) -> Pieces:
    return {"settings": {"permissions": {"deny": list(rules)}}}


def cases(lab: Lab, gated: bool) -> Mapping[str, Case | NotThere]:
    """By intent. gated: under extgate, where a server's tools have the gateway's names."""
    shell: list[Step] = [[Call("Bash", {"command": lab.touch, "description": "t"})]]
    danger = mcp("danger_zone", gated)
    resource: list[Step] = [
        [Call("ReadMcpResourceTool", {"server": server, "uri": "probe://alpha/secret"})]
        for server in ("alpha", *(["extgate"] if gated else []))
    ]
    secret = lab.project / ".claude/skills/secret-skill/SKILL.md"
    raw = [*mcp("danger_zone", gated, "my_srv_v1"), whatever_is_offered("anthropic", "danger_zone")]
    late = [*mcp("read_thing", gated), *mcp("late_danger", gated) * 4]
    return {
        "builtin": Case(effect=MARKER, attack=shell, native=deny("Bash"), profile="tools: {disabled: [Bash]}"),
        "mcp-tool": Case(
            effect=called("danger_zone"),
            attack=danger,
            native=deny("mcp__alpha__danger_zone"),
            profile="mcp: {disabled: [alpha/danger_zone]}",
        ),
        "child-builtin": Case(
            effect=MARKER,
            attack=spawn(),
            child=shell,
            base={} if gated else LEAD,
            native={"agents": {"lead": {"disallowedTools": "Bash"}}},
            profile="tools: {disabled: [Bash]}",
        ),
        "child-mcp": Case(
            effect=called("danger_zone"),
            attack=spawn(),
            child=danger,
            base={} if gated else LEAD,
            native={"agents": {"lead": {"disallowedTools": "mcp__alpha__danger_zone"}}},
            profile="mcp: {disabled: [alpha/danger_zone]}",
        ),
        "wildcard": Case(
            effect=called("danger_zone"),
            attack=danger,
            base={} if gated else LEAD,
            native={"agents": {"lead": {"disallowedTools": '"*danger*"'}}},
            profile="mcp: {disabled: ['*/danger*']}",
        ),
        "wildcard-skill": Case(
            effect=SKILL_TEXT,
            attack=[[Call("Skill", {"skill": "secret-skill"})]],
            native=deny("Skill(secret*)"),
            profile="skills: {disabled: ['secret*']}",
        ),
        "wrong-case": Case(
            effect=MARKER, attack=shell, native=deny("bash"), profile="tools: {disabled: [bash]}", told="bash"
        ),
        "raw-name": Case(
            effect=called("danger_zone"),
            attack=raw,
            base={"servers": {"my srv.v1": lab.server("my srv.v1")}},
            native=deny("mcp__my srv.v1"),
            profile="mcp: {disabled: ['my srv.v1']}",
        ),
        "near-miss": Case(
            effect=called("*"),
            attack=[*mcp("delete_thing", gated), *mcp("Write_Thing", gated), *mcp("write_thng", gated)],
            native=deny("mcp__alpha__delete_thing"),
            profile="mcp: {disabled: [alpha/delete_thing]}",
        ),
        "resources": Case(
            effect=RESOURCE, attack=resource, native=deny("mcp__alpha"), profile="mcp: {disabled: [alpha]}"
        ),
        "instructions": Case(
            effect=INSTRUCTIONS, attack=[], native=deny("mcp__alpha"), profile="mcp: {disabled: [alpha]}"
        ),
        "allow-list": Case(
            effect=MARKER,
            attack=shell,
            native={"args": ["--allowedTools", "Read"]},
            profile="tools: {allowed: [Read]}\nmcp: {allowed: [beta]}",
        ),
        "allow-list-mcp": Case(
            effect=called("danger_zone"),
            attack=danger,
            native={"args": ["--tools", "Read"]},
            profile="tools: {allowed: [Read]}\nmcp: {allowed: [beta]}",
        ),
        "no-shell": Case(
            effect=MARKER,
            attack=[[Call("Monitor", {"command": lab.touch, "description": "t", "timeout_ms": 5000})], *shell],
            native=deny("Bash"),
            profile="tools: {disabled: [Bash, Monitor]}",
        ),
        "skill-listed": Case(
            effect=LISTED,
            attack=[],
            native=deny("Skill(secret-skill)"),
            profile="skills: {disabled: [secret-skill]}",
        ),
        "skill-read": Case(
            effect=SKILL_TEXT,
            attack=[[Call("Read", {"file_path": str(secret)})]],
            native=deny("Skill(secret-skill)"),
            profile="skills: {disabled: [secret-skill]}",
        ),
        "late-tool": Case(
            effect=called("late_danger"),
            attack=late,
            base={"servers": {"alpha": lab.server("alpha", "--grow")}},
            native=deny("mcp__alpha__write_thing", "mcp__alpha__delete_thing", "mcp__alpha__danger_zone"),
            profile="mcp: {allowed: [alpha/read_thing, beta]}",
        ),
    }
