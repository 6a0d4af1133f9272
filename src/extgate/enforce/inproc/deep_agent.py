"""A deepagents graph for one gate, and below it one for each sub-agent that is spawned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from deepagents.middleware.subagents import GENERAL_PURPOSE_SUBAGENT
from langchain_core.runnables import Runnable

from extgate.core.names import cleaned
from extgate.core.policy import Inherit, Profile
from extgate.enforce.gate import Gate
from extgate.enforce.guarded_paths import Closed, GuardedPaths, skill_folders
from extgate.enforce.inproc.langchain import GateMiddleware
from extgate.enforce.inproc.langchain_catalog import LangChainCatalog
from extgate.enforce.inproc.langchain_children import inheritance
from extgate.enforce.inproc.langchain_files import gated_backend
from extgate.enforce.inproc.langchain_identity import Registry
from extgate.enforce.inproc.langchain_mcp import CallMcp, Toolbox
from extgate.enforce.inproc.langchain_skills import SkillsPrompt
from extgate.enforce.inproc.langchain_subagents import GENERAL, Spawns
from extgate.enforce.inproc.skill_cache import ReadSkill, SkillCache


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A sub-agent that may be spawned. profile: its own; None: it is under its parent's. prompt: empty: deepagents'."""

    profile: Profile | None = None
    description: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepAgents:
    """What an agent and all below it have in common. subagents: whom any of them may ask for, by name."""

    model: Any
    backend: Any
    root: Path
    subagents: Mapping[str, Child]
    call: CallMcp
    read_skill: ReadSkill
    closed: Closed
    mode: Inherit

    def graph(self, gate: Gate, prompt: str, *, middleware: Sequence[Any] = (), checkpointer: Any = None) -> Any:
        """The agent's graph, with a cache, a catalog and tools of its own."""
        registry, spawns = Registry(), Spawns(gate)
        skills = SkillCache(gate, self.read_skill)
        catalog = LangChainCatalog(gate, registry, skills, with_tools=gate.profile.dialect == "patterns")
        wall = GateMiddleware(
            gate, registry=registry, paths=self._paths(gate, self.root), spawns=spawns, catalog=catalog.bind
        )
        toolbox = Toolbox(gate, catalog.tools, self.call, registry)
        return create_deep_agent(
            model=self.model,
            system_prompt=prompt or None,
            middleware=[SkillsPrompt(gate, skills, self.root), toolbox, *middleware, wall],
            subagents=[self._spec(name, child, gate, spawns) for name, child in self.subagents.items()],
            backend=gated_backend(self.backend, lambda base: self._paths(gate, base)),
            checkpointer=checkpointer,
            name=cleaned(gate.agent),
        )

    def _paths(self, gate: Gate, base: Path) -> GuardedPaths:
        return GuardedPaths(self.closed, base=base, skills=lambda: skill_folders(gate))

    def _spec(self, name: str, child: Child, parent: Gate, spawns: Spawns) -> Any:
        """A sub-agent behind a gate below its parent's, built when it is first spawned."""
        mode = inheritance(parent, self.mode)
        gate = parent.child(child.profile, agent=f"{parent.agent}/{name}", mode=mode)
        spawns.add(name, gate)
        usual = GENERAL_PURPOSE_SUBAGENT
        prompt = child.prompt or str(usual.get("system_prompt", ""))
        description = " ".join((child.description or (usual["description"] if name == GENERAL else name)).split())
        return {"name": name, "description": description, "runnable": _Lazy(lambda: self.graph(gate, prompt))}


class _Lazy(Runnable[Any, Any]):
    """An agent that is built when it first runs: agents may spawn each other in circles."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self._build, self._made = build, None

    def _agent(self) -> Any:
        self._made = self._made or self._build()
        return self._made

    def invoke(self, input: Any, config: Any = None, **options: Any) -> Any:
        return self._agent().invoke(input, config, **options)

    async def ainvoke(self, input: Any, config: Any = None, **options: Any) -> Any:
        return await self._agent().ainvoke(input, config, **options)
