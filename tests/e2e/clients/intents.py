"""What somebody wants denied, in words that no runtime owns; and what tells that it happened all the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One intent. id: in files and options. text: as the table says it."""

    id: str
    text: str


INTENTS = {
    intent.id: intent
    for intent in (
        Intent(id="builtin", text="a denied tool of the runtime does not run when the model calls it"),
        Intent(id="mcp-tool", text="a denied tool of a server does not run when the model calls it"),
        Intent(id="child-builtin", text="a sub-agent does not get a tool of the runtime that its parent is denied"),
        Intent(id="child-mcp", text="a sub-agent does not get a server's tool that its parent is denied"),
        Intent(id="wildcard", text="a wildcard that denies tools denies them"),
        Intent(id="wildcard-skill", text="a wildcard that denies skills denies them"),
        Intent(id="wrong-case", text="a deny in the wrong case does not pass silently"),
        Intent(id="raw-name", text="a server denied by the name that it was configured under is denied"),
        Intent(id="near-miss", text="a call by a near miss of a name runs nothing else"),
        Intent(id="resources", text="a denied server's resources are closed"),
        Intent(id="instructions", text="a denied server's instructions leave the prompt"),
        Intent(id="allow-list", text="an allow-list keeps the runtime's other tools out"),
        Intent(id="allow-list-mcp", text="an allow-list of tools holds for servers' tools too"),
        Intent(id="no-shell", text="no terminal means no shell by another tool"),
        Intent(id="skill-listed", text="a denied skill is not listed"),
        Intent(id="skill-read", text="a denied skill's file is not read with a file tool"),
        Intent(id="late-tool", text="a tool that a server adds later obeys"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What tells that the denied thing happened.

    marker: the file that the shell command makes is there. called: the probe server got a call of this tool, or with
    `*` of any but the canary. read: it got `resources/read`. prompt: the model was sent this text, which stands in one
    place only.
    """

    kind: str
    what: str = ""


MARKER = Effect(kind="marker")
RESOURCE = Effect(kind="read")
INSTRUCTIONS = Effect(kind="prompt", what="INSTRUCTIONS-OF-alpha")
LISTED = Effect(kind="prompt", what="SECRET-SKILL-LISTED")
SKILL_TEXT = Effect(kind="prompt", what="SECRET-SKILL-TEXT")


def called(tool: str) -> Effect:
    return Effect(kind="called", what=tool)


CANARY = called("ping_thing")
"""A call that no case denies: under extgate it must arrive, or what is between has failed and nothing is proved."""
