"""What one tool call has to be asked for before it runs: the tool, a catalog's target, a sub-agent, a path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from langchain.agents.middleware.types import ToolCallRequest

from extgate.enforce.guarded_paths import Action, GuardedPaths
from extgate.enforce.inproc.langchain_ask import Ask, Plan
from extgate.enforce.inproc.langchain_identity import RUNTIME, UNKNOWN, Identities, is_of_framework, name_of
from extgate.enforce.inproc.langchain_subagents import SPAWNING, Spawns, spawned
from extgate.enforce.inproc.langchain_view import View

_FILE_TOOLS: Mapping[str, Action] = {
    "ls": "read",
    "read_file": "read",
    "glob": "read",
    "grep": "read",
    "write_file": "write",
    "edit_file": "write",
    "delete": "write",
}
"""deepagents' own, 0.4.8 to 0.7.32 (seen 2026-11-30)."""
_PATHS = ("file_path", "path", "pattern", "glob")
"""Arguments that are paths, or globs that begin like one; grep's pattern is text."""


class Runner(Protocol):
    """A catalog, whose tool runs other tools."""

    def is_runner(self, tool: object) -> bool: ...

    def target(self, args: Mapping[str, Any]) -> tuple[Any, dict[str, Any], str]:
        """The tool that is meant, its arguments, and why there is none."""

    def answer(self, reason: str) -> str:
        """A refusal as the catalog writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """One agent's tool calls. paths: None where the file tools are not its host's to close."""

    identities: Identities
    view: View
    spawns: Spawns
    paths: GuardedPaths | None = None
    catalog: Runner | None = None

    def plan(self, request: ToolCallRequest) -> Plan:
        """Everything that the call has to be asked for. A call of the catalog's runner becomes that of its target."""
        session = str((getattr(request.runtime, "config", None) or {}).get("configurable", {}).get("thread_id", ""))
        plan = Plan(request=request)
        name, args, tool = request.tool_call["name"], request.tool_call["args"], request.tool
        plan.asks += self._of_tool(name, args, tool, session)
        if self.catalog is not None and self.catalog.is_runner(tool):
            plan.say = self.catalog.answer
            tool, args, reason = self.catalog.target(args)
            if reason:
                ext = Ask.native(name, UNKNOWN)
                plan.asks.append(Ask(ext=ext, args=args, session=session, refusal=reason))
                return plan
            name = tool.name
            plan.request = request.override(tool_call={**request.tool_call, "name": name, "args": args}, tool=tool)
            plan.asks += self._of_tool(name, args, tool, session)
        if (name in _FILE_TOOLS or name in SPAWNING) and tool is not None and is_of_framework(tool):
            plan.asks += self._of_paths(name, args, session)
            self._add_spawn(plan, name, args, session)
        return plan

    def _of_tool(self, name: str, args: Mapping[str, Any], tool: object, session: str) -> Iterator[Ask]:
        known = tool if tool is not None else self.view.added.get(name, self.view.offered.get(name))
        known = known if known is not None and name_of(known) == name else None  # it was renamed: nobody knows it so
        owners = self.view.owners(name) if known is None else self.identities.of(known)
        for ext in owners:
            yield Ask(ext=ext, args=args, session=session)
        if known is None:  # nothing here has the name, whatever is installed elsewhere
            yield Ask(ext=Ask.native(name, UNKNOWN), args=args, session=session, refusal="'{name}' is not installed.")

    def _of_paths(self, name: str, args: Mapping[str, Any], session: str) -> Iterator[Ask]:
        action = _FILE_TOOLS.get(name)
        if action is None or self.paths is None:
            return
        for key in _PATHS:
            is_text = name == "grep" and key == "pattern"
            reason = self.paths.refusal(args[key], action) if args.get(key) is not None and not is_text else None
            if reason:
                yield Ask(ext=Ask.native(name, RUNTIME), args=args, action=action, session=session, refusal=reason)

    def _add_spawn(self, plan: Plan, tool: str, args: Mapping[str, Any], session: str) -> None:
        name = spawned(tool, args, plan.request.state)
        if name is None:
            return
        ask = Ask(ext=self.spawns.extension(name), args={}, action="spawn", session=session)
        plan.asks.append(ask)
        plan.child = self.spawns.child(name)
        if reason := self.spawns.refusal(name):
            plan.asks.append(Ask(ext=ask.ext, args={}, action="spawn", session=session, refusal=reason))
