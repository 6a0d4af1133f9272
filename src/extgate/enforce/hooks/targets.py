"""What a call is used on, where a tool has a target: a skill, an agent, a resource, a file. Each is judged itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from extgate.core.explain import covers
from extgate.core.extension import Extension
from extgate.enforce.answer import Answer, unavailable_because
from extgate.enforce.gate import Gate
from extgate.enforce.hooks.call import Args, Call, Shape
from extgate.enforce.hooks.owners import Owners
from extgate.enforce.hooks.paths import CallPaths

GateOf = Callable[[str, bool], Gate]


class Targets:
    """Judges targets. gate_of: the gate of an agent of that type, as a sub-agent or as the session's own."""

    def __init__(self, shape: Shape, owners: Owners, paths: CallPaths, gate_of: GateOf) -> None:
        self._shape, self._owners, self._paths, self._gate_of = shape, owners, paths, gate_of

    def refusal(self, gate: Gate, items: Iterable[Extension], call: Call) -> str:
        """Why what the call is used on is refused; empty when it is not."""
        shape, tools = self._shape, {ext.name for ext in items if ext.server is None} | {call.tool}
        for tool in (tool for tool in tools if tool in shape.skills):
            if why := self._skill(gate, _named(call.args, shape.skills[tool]), call).message:
                return why
        for tool in (tool for tool in tools if tool in shape.spawns):
            keys, default = shape.spawns[tool]
            if why := self._spawn(gate, _named(call.args, keys) or default, call).message:
                return why
        if tools & shape.readers and (why := self._read(gate, call)):
            return why
        if tools & shape.listers and (listed := self._list(gate, call)) is not None:
            return listed.message
        return self._paths.refusal(gate, tools, call)

    def _skill(self, gate: Gate, name: str, call: Call) -> Answer:
        return gate.use_named(name.removeprefix("/"), kinds=("skill",), action="expand", session=call.session)

    def _spawn(self, gate: Gate, agent: str, call: Call) -> Answer:
        ext, child = Extension(kind="subagent", name=agent, source=self._shape.runtime), self._gate_of(agent, True)
        if not agent:
            return gate.refuse_unknown(agent, "subagent", session=call.session)
        if not child.availability.is_available:
            return gate.refuse_item(ext, f"'{{name}}' is unavailable: {unavailable_because(child.availability)}.")
        if not self._shape.tells_agents and child.own_profile and any(_beyond(gate, child)):
            return gate.refuse_item(
                ext, "'{name}' has rules of its own, and its calls cannot be told from others here."
            )
        # The runtime tells an agent's type, not who started it: no type may have what its starter is denied.
        # What no sub-agent has in this runtime is no such denial, so its starter is compared as the session's own.
        if call.agent and any(_beyond(child, self._gate_of(call.agent, False))):
            return gate.refuse_item(ext, "'{name}' may use what this agent may not, so it cannot be started here.")
        return gate.use(ext, action="spawn", session=call.session)

    def _read(self, gate: Gate, call: Call) -> str:
        """A URI without a server could be any server's that has it, and one after a server's name and a colon."""
        server, uri = _named(call.args, ("server",)), _named(call.args, ("uri",))
        items = gate.inventory.of_kind("mcp_resource")
        head, _, rest = uri.partition(":")
        found = [(ext.server or "", uri) for ext in items if covers(ext, uri)]
        found += [(head, rest) for ext in items if ext.server == head and covers(ext, rest)]
        found += [(head, rest)] if head and head == self._owners.gateway else []
        asked = [(server, uri)] if server else dict.fromkeys(found) or [("", uri)]
        if server and server == self._owners.gateway and self._owners.is_held:
            asked = [one for one in found if one[0] != server] or [("", uri)]  # whose it is, its name does not say
        judged = (
            gate.read_uri(*one, session=call.session) for one in asked if one[0] != self._owners.gateway or not one[0]
        )
        return next((answer.message for answer in judged if not answer), "")

    def _list(self, gate: Gate, call: Call) -> Answer | None:
        """The list cannot be filtered here, so it is refused as soon as something on it is hidden."""
        server = call.args.get("server")
        if server and server == self._owners.gateway:
            return None
        items = [e for e in gate.inventory.of_kind("mcp_resource") if not server or e.server == server]
        hidden = [ext for ext in items if not gate.is_visible(ext)]
        why = "The list of resources holds some that this agent may not see; read one by its URI."
        return gate.refuse_item(hidden[0], why) if hidden else None


def _named(args: Args, keys: Iterable[str]) -> str:
    """The text of the first key that is there; empty without one, or when it is no text."""
    value = next((args[key] for key in keys if args.get(key) is not None), "")
    return value if isinstance(value, str) else ""


def _beyond(wide: Gate, narrow: Gate) -> Iterator[Extension]:
    """What the first may see and the second may not."""
    return (ext for ext in wide.inventory.extensions if wide.is_visible(ext) and not narrow.is_visible(ext))
