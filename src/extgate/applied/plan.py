"""What has to be written so that a runtime runs under a profile: its own lists, the hook, the gateway, its skills."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from extgate.applied.account import Account, FilePlan, without_ours
from extgate.core.explain import Decider
from extgate.core.extension import Extension
from extgate.core.names import runtime_names
from extgate.core.policy import Effect, Policy, Profile
from extgate.dialects.outline import Outline
from extgate.runtime_view import RuntimeView
from extgate.workspace import Agent

Scope = Literal["project", "user"]
GATEWAY = "extgate"
"""What extgate's own MCP server is called in a runtime."""
HOOK = Path(__file__).resolve().parent.parent / "hook_client.py"
"""What runs as the hook; it is never imported here, for a hook opens sessions that look at what was applied."""
HOOK_S = 60
"""Seconds that a runtime gives the hook; it answers by itself before."""


@dataclass(frozen=True, kw_only=True)
class Ground:
    """One agent for one runtime, laid out. account: of what was written there before. program: of the gateway."""

    view: RuntimeView
    agent: Agent
    account: Account
    scope: Scope = "project"
    program: str = ""

    @cached_property
    def profile(self) -> Profile:
        """The agent's profile in the runtime's words."""
        return self.view.profile(self.agent.profile)

    @cached_property
    def decider(self) -> Decider:
        return Decider(self.profile, self.view.inventory, has_approver=True)

    @cached_property
    def outline(self) -> Outline:
        """What the profile's policy says of names that come later."""
        policies = self.profile.policies
        policy = policies[0] if policies else Policy(dialect="profile", default="deny")
        return Outline(policy=policy, stock=self.view.inventory, name=self.agent.id, target=self.view.dialect)

    def text(self, path: Path) -> str:
        """A file of the runtime without what extgate wrote there; empty when there is none."""
        return without_ours(self.account, path)

    def tools(self, effect: Effect) -> list[str]:
        """The runtime's tools of which every call has this effect, in their order."""
        return [ext.name for ext in self.view.tools if self.decider.decide(ext).effect == effect]

    def skills(self, effect: Effect) -> list[Extension]:
        return [ext for ext in self.view.inventory.of_kind("skill") if self.decider.decide(ext).effect == effect]

    def subagents(self, effect: Effect) -> list[str]:
        found = self.view.inventory.of_kind("subagent")
        return [ext.name for ext in found if self.decider.decide(ext).effect == effect]

    @cached_property
    def direct(self) -> tuple[str, ...]:
        """The servers that the runtime's own files name, besides the gateway."""
        named = dict.fromkeys((*(spec.name for spec in self.view.wanted[1].specs), *self.view.user_servers))
        return tuple(name for name in named if name != GATEWAY)

    @cached_property
    def behind(self) -> tuple[str, ...]:
        """The servers that the workspace asks for: those behind the gateway."""
        return tuple(spec.name for spec in self.view.wanted[0].specs if spec.name != GATEWAY)

    @cached_property
    def closed_servers(self) -> tuple[str, ...]:
        """The direct servers of which nothing is left to the agent, or that the gateway has instead."""
        moved = set(self.behind) if self.view.relays else set()
        return tuple(name for name in self.direct if name in moved or self.is_denied(name))

    def is_denied(self, server: str) -> bool:
        """Whether nothing of a server is left to the agent, now or later."""
        items = [ext for ext in self.view.inventory.extensions if ext.server == server]
        known = [self.decider.decide(ext).effect for ext in items]
        new = self.outline.effect(Extension(kind="mcp_tool", server=server, name="zz-new-name-of-tomorrow"))
        return {*known, new} == {"deny"}

    @property
    def untold(self) -> tuple[str, ...]:
        """Servers that the agent could use, and of which nothing is known."""
        known = {ext.server for ext in self.view.inventory.extensions}
        return tuple(n for n in dict.fromkeys((*self.direct, *self.behind)) if n not in known and not self.is_denied(n))

    def server_items(self, server: str, effect: Effect) -> list[str]:
        """Tools of a direct server that have this effect."""
        found = (ext for ext in self.view.inventory.of_kind("mcp_tool") if ext.server == server)
        return [ext.name for ext in found if self.decider.decide(ext).effect == effect]

    @cached_property
    def relayed_denies(self) -> tuple[str, ...]:
        """What the gateway calls the tools that the runtime's own files deny by the names of its direct servers."""
        own = self.view.server_denies
        if own is None:
            return ()
        decider = Decider(Profile(id="own", layers=(own,)), self.view.inventory)
        names = self.view.relayed_names(self.agent)
        return tuple(sorted(name for ext, name in names.items() if decider.decide(ext).effect == "deny"))

    def mcp_patterns(self, effect: Effect) -> list[str]:
        """The patterns of rules with this effect on what servers offer, as written."""
        found = (clause.entry for clause in self.outline.mcp.clauses if clause.effect == effect)
        return list(dict.fromkeys(entry.text for entry in found if len(entry.tests) == 1))

    def wire(self, server: str, item: str) -> str:
        """The name that the runtime gives a tool of a server."""
        names = {str(facet): found for facet, found in runtime_names(server, item).items()}
        return names[self.view.dialect][0]

    # ------------------------------------------------------------------------------------------ commands

    @cached_property
    def hook(self) -> tuple[str, ...]:
        """The hook's command, for a program that starts it without a shell."""
        words = [sys.executable, "-I", "-S", str(HOOK), self.view.runtime, "--agent", self.agent.id]
        words += ["-w", str(self.view.workspace.homes.root.absolute()), "--project", str(self.view.project.absolute())]
        return (*words, *(("--gateway", GATEWAY) if self.view.relays else ()))

    @property
    def shell_hook(self) -> str:
        """The same for a shell; whatever ends it, even a Python that is gone, is a deny."""
        return f"{shlex.join(self.hook)} || exit 2"

    @cached_property
    def gateway(self) -> tuple[str, ...]:
        """The gateway's command."""
        program = (self.program,) if self.program else (sys.executable, "-I", "-m", "extgate.start")
        return (*program, "mcp", self.agent.id, "-w", str(self.view.workspace.homes.root.absolute()))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What `apply` writes. walls: which stand then. needs: what is left for a person to do.

    env, argv: what a process needs that is started under the plan and not under the runtime's own files.
    """

    files: tuple[FilePlan, ...]
    walls: frozenset[str]
    needs: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    argv: tuple[str, ...] = ()


def merged(*parts: Mapping[str, object] | None) -> dict[str, object]:
    """One mapping of those that are there."""
    return {key: value for part in parts if part for key, value in part.items()}


def leaves(skills: list[Extension]) -> Iterator[str]:
    """Every name that a runtime could know a skill by."""
    for ext in skills:
        yield from dict.fromkeys(name for name in (ext.leaf, ext.declared_name) if name)
