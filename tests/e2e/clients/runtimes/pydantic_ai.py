"""Pydantic AI: a program with two tools of its own and a server's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.e2e.clients import worker
from tests.e2e.clients.cases import CHILD, Case, NotThere, Pieces
from tests.e2e.clients.intents import INSTRUCTIONS, MARKER, called
from tests.e2e.clients.lab import Lab, Ran
from tests.e2e.clients.wires import Call, Step

NAME = "pydantic-ai"
WIRE = "chat"
TIMEOUT_S = 500.0
IS_HOST = True
NO_SKILLS = NotThere(why="the framework has no skills")


def configure(lab: Lab, url: str, pieces: Pieces) -> None:
    """It has none: its configuration is the program."""


def ask(lab: Lab, command: Sequence[str], url: str, pieces: Pieces, gated: bool) -> Ran:
    """One turn of a user."""
    return worker.play(NAME, lab, command, url, pieces, gated, TIMEOUT_S)


def cases(lab: Lab, gated: bool) -> Mapping[str, Case | NotThere]:
    """By intent. gated: behind the in-process door; names are the same there."""
    shell: list[Step] = [[Call("run_command", {"command": lab.touch})]]
    danger: list[Step] = [[Call("danger_zone", {"q": "1"})]]
    names = ("delete_thing", "Write_Thing", "write_thng")
    spawn: list[Step] = [[Call("worker", {"task": f"{CHILD}: work."})]]
    return {
        "builtin": Case(
            effect=MARKER,
            attack=shell,
            native={"tools": ["read_file"]},
            profile="tools: {disabled: [run_command]}",
        ),
        "mcp-tool": Case(
            effect=called("danger_zone"),
            attack=danger,
            native={"blocked": ["danger_zone"]},
            profile="mcp: {disabled: [alpha/danger_zone]}",
        ),
        "child-builtin": Case(
            effect=MARKER,
            attack=spawn,
            child=shell,
            base={"child": True},
            native={"tools": ["read_file"]},
            profile="tools: {disabled: [run_command]}",
        ),
        "child-mcp": Case(
            effect=called("danger_zone"),
            attack=spawn,
            child=danger,
            base={"child": True},
            native={"blocked": ["danger_zone"]},
            profile="mcp: {disabled: [alpha/danger_zone]}",
        ),
        "wildcard": Case(
            effect=called("danger_zone"),
            attack=danger,
            native=None,
            profile="mcp: {disabled: ['*/danger*']}",
        ),
        "wildcard-skill": NO_SKILLS,
        "wrong-case": Case(
            effect=called("danger_zone"),
            attack=danger,
            native={"blocked": ["Danger_Zone"]},
            profile="mcp: {disabled: [alpha/Danger_Zone]}",
            told="alpha/Danger_Zone",
        ),
        "raw-name": Case(
            effect=called("danger_zone"),
            attack=danger,
            base={"servers": {"my srv.v1": lab.server("my srv.v1")}},
            native=None,
            profile="mcp: {disabled: ['my srv.v1']}",
        ),
        "near-miss": Case(
            effect=called("*"),
            attack=[[Call(name, {"q": "1"})] for name in names],
            native={"blocked": ["delete_thing"]},
            profile="mcp: {disabled: [alpha/delete_thing]}",
        ),
        "resources": NotThere(why="it gives the model no tool that reads resources"),
        "instructions": Case(
            effect=INSTRUCTIONS,
            attack=[],
            base={"instructions": True},
            native={"blocked": ["read_thing", "write_thing", "delete_thing", "danger_zone"]},
            profile="mcp: {disabled: [alpha]}",
        ),
        "allow-list": Case(
            effect=MARKER,
            attack=shell,
            native={"tools": ["read_file"]},
            profile="tools: {allowed: [read_file]}\nmcp: {allowed: [beta]}",
        ),
        "allow-list-mcp": Case(
            effect=called("danger_zone"),
            attack=danger,
            native={"tools": ["read_file"]},
            profile="tools: {allowed: [read_file]}\nmcp: {allowed: [beta]}",
        ),
        "no-shell": NotThere(why="the framework has no shell of its own"),
        "skill-listed": NO_SKILLS,
        "skill-read": NO_SKILLS,
        "late-tool": Case(
            effect=called("late_danger"),
            attack=[[Call("read_thing", {"q": "1"})], *[[Call("late_danger", {"q": "1"})]] * 2],
            base={"servers": {"alpha": lab.server("alpha", "--grow")}},
            native={"blocked": ["write_thing", "delete_thing", "danger_zone"]},
            profile="mcp: {allowed: [alpha/read_thing, beta]}",
        ),
    }
