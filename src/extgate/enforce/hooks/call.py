"""What a runtime's hook asks: one call, in the runtime's own words; and what of those words means which target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from extgate.enforce.guarded_paths import Action

Args = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call that a runtime is about to make.

    tool: the name as the runtime has it. server: the registered name of the MCP server; item: the tool's name there;
    both empty where the runtime does not tell. agent: the type of the agent that calls; empty for the session's own.
    is_child: whether that is a sub-agent.
    """

    tool: str
    args: Args
    server: str = ""
    item: str = ""
    agent: str = ""
    is_child: bool = False
    session: str = ""
    cwd: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the tools of a runtime do that are used on something else. Keys name arguments, in the order of preference.

    skills: tools that start a skill. spawns: tools that start an agent, with the type that no argument means (empty:
    such a call is refused). readers: of one resource; listers: of all. files: tools that open paths, with what they do;
    an argument that holds a list holds many. searches: tools that show what lies in files below a path.
    patches: tools that are given a patch. tells_agents: whether a call says which agent makes it.
    asks: whether the runtime can be told to ask its user.
    """

    runtime: str
    skills: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spawns: Mapping[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    readers: frozenset[str] = frozenset()
    listers: frozenset[str] = frozenset()
    files: Mapping[str, tuple[Action, tuple[str, ...]]] = field(default_factory=dict)
    searches: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    patches: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tells_agents: bool = False
    asks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`deny` with a reason for the model, `ask` with one for the user, or `pass`, which is no opinion."""

    effect: Literal["pass", "ask", "deny"]
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the hook's process does: prints, and ends with a code."""

    stdout: str = ""
    stderr: str = ""
    code: int = 0


class Hook(Protocol):
    """One runtime's hook: what each of the modules here offers."""

    SHAPE: Shape

    def read(self, payload: Args) -> Call: ...
    def reply(self, verdict: Verdict) -> Reply: ...
