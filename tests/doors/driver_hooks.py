"""Runtimes' hooks: the bytes that a runtime sends, and what it does with what the hook's process prints.

`tests/e2e` runs the runtimes themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from extgate.core.extension import Extension, Inventory
from extgate.core.names import runtime_names
from extgate.enforce.gate import Gate
from extgate.enforce.guarded_paths import Closed
from extgate.enforce.hooks.call import Call, Reply
from extgate.enforce.hooks.door import HookDoor
from extgate.enforce.hooks.owners import Owners
from extgate.enforce.hooks.paths import CallPaths
from extgate.enforce.hooks.reading import PayloadError, parse
from extgate.enforce.hooks.registry import HOOKS
from tests.doors.driver import Called, Hits

ROOT = Path("/nowhere")


def claude_code_payload(call: Call) -> dict[str, Any]:
    found = {"hook_event_name": "PreToolUse", "tool_name": call.tool, "tool_input": call.args, "session_id": "s"}
    return {**found, **({"mcp_server": {"name": call.server, "source": "project"}} if call.server else {})}


def codex_payload(call: Call) -> dict[str, Any]:
    return {"hook_event_name": "PreToolUse", "tool_name": call.tool, "tool_input": call.args, "session_id": "s"}


def gemini_payload(call: Call) -> dict[str, Any]:
    found = {"hook_event_name": "BeforeTool", "tool_name": call.tool, "tool_input": call.args, "session_id": "s"}
    told = {"server_name": call.server, "tool_name": call.item}
    return {**found, **({"mcp_context": told} if call.server else {})}


def hermes_payload(call: Call) -> dict[str, Any]:
    return {"hook_event_name": "pre_tool_call", "tool_name": call.tool, "tool_input": call.args, "extra": {}}


def opencode_payload(call: Call) -> dict[str, Any]:
    return {"tool": call.tool, "args": call.args, "agent": "build", "is_child": False, "session": "s"}


def claude_code_reason(reply: Reply) -> str:
    """The reason of a refusal as the runtime takes it; empty when the call goes on."""
    if not reply.stdout:
        return ""
    said = json.loads(reply.stdout)["hookSpecificOutput"]
    return str(said["permissionDecisionReason"]) if said["permissionDecision"] == "deny" else ""


def gemini_reason(reply: Reply) -> str:
    said = json.loads(reply.stdout) if reply.stdout else {}
    return str(said["reason"]) if said.get("decision") in ("deny", "block") else ""


def hermes_reason(reply: Reply) -> str:
    said = json.loads(reply.stdout) if reply.stdout else {}
    return str(said["message"]) if said.get("action") == "block" else ""


def opencode_reason(reply: Reply) -> str:
    said = json.loads(reply.stdout)
    return "" if said["decision"] == "pass" else str(said["reason"])


RUNTIMES: Mapping[str, tuple[Callable[[Call], dict[str, Any]], Callable[[Reply], str]]] = {
    "claude-code": (claude_code_payload, claude_code_reason),
    "codex": (codex_payload, claude_code_reason),
    "gemini": (gemini_payload, gemini_reason),
    "hermes": (hermes_payload, hermes_reason),
    "opencode": (opencode_payload, opencode_reason),
}


class Host:
    """One runtime. Its own tools stand before what they are used on."""

    hits: Hits

    def __init__(self, runtime: str) -> None:
        self.runtime, self.hook = runtime, HOOKS[runtime]
        shape = self.hook.SHAPE
        tools = {"skill": shape.skills, "subagent": shape.spawns, "mcp_resource": shape.readers}
        names = {kind: next(iter(sorted(given))) for kind, given in tools.items() if given}
        self.own = {kind: Extension(kind="tool", name=name, source="runtime") for kind, name in names.items()}
        self.kinds = frozenset({"tool", "mcp_tool", *self.own})

    def means(self, gate: Gate, ext: Extension) -> tuple[Extension, ...]:
        if ext.kind in self.own:
            return (ext, self.own[ext.kind])
        self._install(gate)
        return Owners().of(gate.inventory, self._call(ext, {}))

    def list_visible(self, gate: Gate) -> set[str]:
        raise NotImplementedError("a hook is asked about calls only")

    def call(self, gate: Gate, ext: Extension, args: Mapping[str, Any], between: Callable[[], object]) -> Called:
        self.hits = hits = Hits()
        payload, reason_of = RUNTIMES[self.runtime]
        door = self._door(gate)
        between()
        body = json.dumps(payload(self._call(ext, args))).encode()
        try:
            verdict = door.judge(self.hook.read(parse(body)))
        except PayloadError as error:
            verdict = door.unreadable(str(error))
        reason = reason_of(self.hook.reply(verdict))
        if not reason:
            hits.of(ext)()
        return Called(ran=bool(hits.by_id[ext.id]), message=reason)

    def _door(self, gate: Gate) -> HookDoor:
        self._install(gate)
        shape = self.hook.SHAPE
        return HookDoor(shape, gate, paths=CallPaths(shape, Closed(root=ROOT), ROOT))

    def _install(self, gate: Gate) -> None:
        stock = gate.inventory
        own = [ext for ext in self.own.values() if ext not in stock.extensions]
        gate.swap(inventory=Inventory(extensions=(*stock.extensions, *own), servers=stock.servers))

    def _call(self, ext: Extension, args: Mapping[str, Any]) -> Call:
        shape, dialect = self.hook.SHAPE, {"gemini": "gemini-cli"}.get(self.runtime, self.runtime)
        if ext.kind == "mcp_resource":
            given = {"server": ext.server, "uri": ext.name.replace("{name}", "one")}
            return Call(tool=self.own[ext.kind].name, args=given)
        if ext.kind in self.own:
            name = self.own[ext.kind].name
            keys = shape.skills[name] if ext.kind == "skill" else shape.spawns[name][0]
            return Call(tool=name, args={**args, keys[0]: ext.name})
        if ext.server is None:
            return Call(tool=ext.name, args=dict(args))
        wires = {str(facet): names for facet, names in runtime_names(ext.server, ext.name).items()}
        name = wires.get(dialect, wires["claude-code"])[0]
        return replace(Call(tool=name, args=dict(args)), server=ext.server, item=ext.name)


def claude_code() -> Host:
    return Host("claude-code")


def codex() -> Host:
    return Host("codex")


def gemini() -> Host:
    return Host("gemini")


def hermes() -> Host:
    return Host("hermes")


def opencode() -> Host:
    return Host("opencode")
