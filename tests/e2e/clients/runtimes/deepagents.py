"""deepagents: an agent with a shell, files, skills, a general-purpose sub-agent, and a server's tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.e2e.clients import worker
from tests.e2e.clients.cases import CHILD, Case, NotThere, Pieces
from tests.e2e.clients.intents import LISTED, MARKER, SKILL_TEXT, called
from tests.e2e.clients.lab import Lab, Ran
from tests.e2e.clients.wires import Call, Step, Turn, whatever_is_offered

NAME = "deepagents"
WIRE = "chat"
TIMEOUT_S = 500.0
IS_HOST = True


def configure(lab: Lab, url: str, pieces: Pieces) -> None:
    lab.skills("skills")


def ask(lab: Lab, command: Sequence[str], url: str, pieces: Pieces, gated: bool) -> Ran:
    """One turn of a user."""
    return worker.play(NAME, lab, command, url, pieces, gated, TIMEOUT_S)


def mcp(tool: str, gated: bool, server: str = "alpha") -> list[Step]:
    """Turns that call a server's tool: by its bare name, and as an agent of a workspace has it."""
    direct: Turn = [Call(tool, {"q": "1"})]
    return [direct, [Call(f"{server}_{tool}", {"q": "1"})]] if gated else [direct]


def cases(lab: Lab, gated: bool) -> Mapping[str, Case | NotThere]:
    """By intent. gated: as an agent of a workspace, whose skills lie there."""
    shell: list[Step] = [[Call("execute", {"command": lab.touch})]]
    danger = mcp("danger_zone", gated)
    spawn: list[Step] = [[Call("task", {"description": f"{CHILD}: work.", "subagent_type": "general-purpose"})]]
    secret = (lab.workspace if gated else lab.project) / "skills/secret-skill/SKILL.md"
    names = ("delete_thing", "Write_Thing", "write_thng")
    return {
        "builtin": Case(
            effect=MARKER, attack=shell, native={"filter": ["execute"]}, profile="tools: {disabled: [execute]}"
        ),
        "mcp-tool": Case(
            effect=called("danger_zone"),
            attack=danger,
            native={"filter": ["danger_zone"]},
            profile="mcp: {disabled: [alpha/danger_zone]}",
        ),
        "child-builtin": Case(
            effect=MARKER,
            attack=spawn,
            child=shell,
            native={"block": ["execute"]},
            profile="tools: {disabled: [execute]}",
        ),
        "child-mcp": Case(
            effect=called("danger_zone"),
            attack=spawn,
            child=danger,
            native={"block": ["danger_zone"]},
            profile="mcp: {disabled: [alpha/danger_zone]}",
        ),
        "wildcard": Case(
            effect=called("danger_zone"),
            attack=danger,
            native={"excluded": ["danger*"]},
            profile="mcp: {disabled: ['*/danger*']}",
        ),
        "wildcard-skill": Case(effect=LISTED, attack=[], native=None, profile="skills: {disabled: ['secret*']}"),
        "wrong-case": Case(
            effect=MARKER,
            attack=shell,
            native={"excluded": ["Execute"]},
            profile="tools: {disabled: [Execute]}",
            told="Execute",
        ),
        "raw-name": Case(
            effect=called("danger_zone"),
            attack=[*mcp("danger_zone", gated), whatever_is_offered("chat", "danger_zone")],
            base={"servers": {"my srv.v1": lab.server("my srv.v1")}},
            native=None,
            profile="mcp: {disabled: ['my srv.v1']}",
        ),
        "near-miss": Case(
            effect=called("*"),
            attack=[step for name in names for step in mcp(name, gated)],
            native={"excluded": ["delete_thing"]},
            profile="mcp: {disabled: [alpha/delete_thing]}",
        ),
        "resources": NotThere(why="it gives the model no tool that reads resources"),
        "instructions": NotThere(why="it does not put servers' instructions into the prompt"),
        "allow-list": Case(
            effect=MARKER,
            attack=shell,
            native={"tools": ["read_thing"]},
            profile="tools: {allowed: [read_file]}\nmcp: {allowed: [beta]}",
        ),
        "allow-list-mcp": Case(
            effect=called("danger_zone"),
            attack=danger,
            native={"tools": ["read_thing"]},
            profile="tools: {allowed: [read_file]}\nmcp: {allowed: [beta]}",
        ),
        "no-shell": Case(
            effect=MARKER,
            attack=shell,
            native={"excluded": ["execute"]},
            profile="tools: {disabled: [execute]}",
        ),
        "skill-listed": Case(effect=LISTED, attack=[], native=None, profile="skills: {disabled: [secret-skill]}"),
        "skill-read": Case(
            effect=SKILL_TEXT,
            attack=[[Call("read_file", {"file_path": str(secret)})]],
            native=None,
            profile="skills: {disabled: [secret-skill]}",
        ),
        "late-tool": NotThere(why="its adapters do not follow a server's list_changed"),
    }
