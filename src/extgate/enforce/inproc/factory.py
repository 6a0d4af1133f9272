"""Running deepagents agents behind gates: a profile, an inventory, a folder and a model in; an agent out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepagents.backends import FilesystemBackend
from langchain.chat_models import init_chat_model

from extgate.core.extension import Inventory
from extgate.core.policy import Inherit, Profile
from extgate.enforce.gate import Approver, Gate
from extgate.enforce.guarded_paths import Closed
from extgate.enforce.inproc.deep_agent import Child, DeepAgents
from extgate.enforce.inproc.langchain_mcp import CallMcp
from extgate.enforce.inproc.langchain_subagents import GENERAL
from extgate.enforce.inproc.skill_cache import ReadSkill
from extgate.enforce.sinks import discard

__all__ = ["AgentFactory", "Child", "RunningAgent"]


async def _nothing() -> None:
    """Nothing has to be ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningAgent:
    """A deepagents graph behind its gate. close: ends what was started for it, on leaving the context."""

    graph: Any
    gate: Gate
    close: Callable[[], Awaitable[None]] = _nothing

    async def __aenter__(self) -> RunningAgent:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFactory:
    """What all agents of one host share.

    call: calls a tool of a connected MCP server, and asks no gate. read_skill: a skill's text, as it was judged.
    closed: what file tools may not open. sink: takes every event. mode: how sub-agents inherit where no profile says.
    """

    call: CallMcp
    read_skill: ReadSkill
    closed: Closed | None = None
    sink: Callable[[Any], None] = discard
    approver: Approver | None = None
    mode: Inherit = "ceiling"

    async def create(
        self,
        profile: Profile,
        inventory: Inventory,
        *,
        model: Any,
        root: Path,
        prompt: str = "",
        subagents: Mapping[str, Child] | None = None,
        backend: Any = None,
        checkpointer: Any = None,
        middleware: Sequence[Any] = (),
    ) -> RunningAgent:
        """An agent behind a new gate. What the arguments mean is said at `create_behind`."""
        gate = Gate(profile, inventory, door="langchain", sink=self.sink, approver=self.approver)
        return self.create_behind(
            gate, model=model, root=root, prompt=prompt, subagents=subagents, backend=backend,
            checkpointer=checkpointer, middleware=middleware,
        )  # fmt: skip

    def create_behind(
        self,
        gate: Gate,
        *,
        model: Any,
        root: Path,
        prompt: str = "",
        subagents: Mapping[str, Child] | None = None,
        backend: Any = None,
        checkpointer: Any = None,
        middleware: Sequence[Any] = (),
    ) -> RunningAgent:
        """An agent behind a gate that there is already; what the gate is swapped to binds its next step.

        model: a chat model, or a string as `init_chat_model` takes it. backend: None: the folder's files, no shell.
        subagents: by name; `general-purpose` is always among them, and the gate decides on each. middleware: the main
        agent's, before the gate.
        """
        agents = DeepAgents(
            model=init_chat_model(model) if isinstance(model, str) else model,
            backend=backend or FilesystemBackend(root_dir=root, virtual_mode=True),
            root=root,
            subagents={GENERAL: Child(), **(subagents or {})},
            call=self.call,
            read_skill=self.read_skill,
            closed=self.closed or Closed(root=root),
            mode=self.mode,
        )
        graph = agents.graph(gate, prompt, middleware=middleware, checkpointer=checkpointer)
        return RunningAgent(graph=graph, gate=gate)
