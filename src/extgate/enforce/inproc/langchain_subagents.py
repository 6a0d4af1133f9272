"""Sub-agents of LangChain and deepagents under the inheritance law: each behind a gate, or not spawned.

Two ways that hold together. A registered sub-agent's gate is a child of its parent's, and follows it. Whatever else
runs an agent behind a gate inside a tool call, at any depth, is held to the gates above it, which travel with the
context.
A sub-agent behind no gate is refused: it would have whatever the framework gives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from extgate.core.extension import Extension
from extgate.enforce.above import ABOVE
from extgate.enforce.gate import Gate, unavailable_because
from extgate.enforce.inproc.langchain_identity import RUNTIME

SPAWNING: Mapping[str, str] = {
    "task": "subagent_type",
    "start_async_task": "subagent_type",
    "update_async_task": "task_id",
}
"""The framework's tools that start or instruct another agent, and the argument that says which."""

GENERAL = "general-purpose"
"""The sub-agent that deepagents adds by itself."""

MAX_DEPTH = 8
"""Agents that may run inside each other."""

_DEPTH: ContextVar[int] = ContextVar("extgate_depth", default=0)


@contextmanager
def under(gate: Gate, child: Gate | None = None) -> Iterator[None]:
    """Holds what runs inside to this gate as well. child: that of the registered sub-agent, which follows by itself."""
    gates = ABOVE.get()
    above = ABOVE.set(gates if child is not None or gate in gates else (*gates, gate))
    depth = _DEPTH.set(_DEPTH.get() + 1)
    try:
        yield
    finally:
        _DEPTH.reset(depth)
        ABOVE.reset(above)


class Spawns:
    """The sub-agents that one agent may be asked to spawn, with the gate that each runs behind."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self._gates: dict[str, Gate] = {}
        self._children: set[str] = set()
        self._closed: dict[str, str] = {}
        self._inventory: object = None
        self._known: tuple[Extension, ...] = ()

    def add(self, name: str, gate: Gate, *, is_child: bool = True) -> None:
        """Notes that the sub-agent of this name runs behind this gate. is_child: the gate was made by `Gate.child`."""
        self._gates[name] = gate
        self._children |= {name} if is_child else set()

    def close(self, name: str, reason: str) -> None:
        """Notes why a sub-agent that the framework knows is never spawned. reason: `{name}` stands for it."""
        self._closed[name] = reason

    def child(self, name: str) -> Gate | None:
        """The gate of a registered sub-agent that follows this agent's; None for any other."""
        return self._gates[name] if name in self._children else None

    def extension(self, name: str) -> Extension:
        """What a sub-agent is to the gate."""
        owners = self.gate.owners(name, ("subagent",))
        return owners[0] if owners else Extension(kind="subagent", name=name[:512], source=RUNTIME)

    def extensions(self) -> tuple[Extension, ...]:
        """All that may be spawned as far as the door knows."""
        if self._inventory is not self.gate.inventory or len(self._known) != len(self._gates):
            self._inventory = self.gate.inventory
            self._known = tuple(self.extension(name) for name in self._gates)
        return self._known

    @property
    def closed(self) -> frozenset[str]:
        """The names that are never spawned."""
        return frozenset(self._closed)

    def refusal(self, name: str) -> str:
        """Why this one is not spawned now, whatever the policy says; empty when nothing stands in the way."""
        gate = self._gates.get(name)
        if gate is None:
            return self._closed.get(name, "'{name}' is no sub-agent of this agent.")
        if not gate.availability.is_available:
            return f"'{{name}}' is unavailable: {unavailable_because(gate.availability)}."
        return f"'{{name}}' would run more than {MAX_DEPTH} agents deep." if _DEPTH.get() >= MAX_DEPTH else ""


def spawned(tool: str, args: Mapping[str, Any], state: Any) -> str | None:
    """The name of the sub-agent that a call of one of the framework's tools is about; None when of none."""
    argument = SPAWNING.get(tool)
    if argument is None:
        return None
    value = str(args.get(argument) or "")
    if argument != "task_id":
        return value
    tasks = state.get("async_tasks") if isinstance(state, Mapping) else None
    task = tasks.get(value) if isinstance(tasks, Mapping) else None
    return str(task.get("agent_name") or "") if isinstance(task, Mapping) else ""
