"""One agent's gate as the wire asks it: names of the wire in, what they could be, and yes or no out.

A name's owners are looked up forward, never parsed out of it. A name that nothing installed has is of unknown origin:
it must pass every block that it could belong to (law 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from extgate.core.extension import Extension, Inventory
from extgate.core.names import cuts_of, in_namespace, starts_of, wire_names
from extgate.core.policy import STRICTNESS
from extgate.enforce.gate import Gate
from extgate.enforce.wire.clients import CALLABLE, Args, Client, Reader, Target
from extgate.enforce.wire.spans import UnclearError

UNKNOWN = "unknown"
_KEPT, _KEPT_ANSWERS = 20_000, 1_000
_HELD = 4 * 1024 * 1024
MAX_STRANGERS = 5_000
"""Most names that nothing installed has, and that were not in an earlier request, of one request: each is looked at in
every way that it could be meant."""

Owners = tuple[Extension, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that a request offers or announces, or that an answer calls, as the wire names it.

    alias: another spelling of the name, that a deny may use. also: names of other things that it could be run as; all
    must pass. namespace: the group it stands in (Codex). server, address: for an item of a server that the provider
    itself calls, what the request calls the server, and where it says that it is.
    """

    name: str
    kinds: tuple[str, ...] = CALLABLE
    alias: str = ""
    also: tuple[str, ...] = ()
    namespace: str = ""
    server: str | None = None
    address: str = ""


@dataclass(frozen=True, slots=True)
class Relayed:
    """What a client reaches through extgate's own MCP gateway. name: what the gateway is called in the client; empty:
    it is not known to be there. tools: by every wire name of the gateway's tools, what they are."""

    name: str = ""
    tools: Mapping[str, Extension] = field(default_factory=dict)


NOTHING_RELAYED = Relayed()


def relayed(name: str, by_gateway_name: Mapping[str, Extension]) -> Relayed:
    """The gateway under this name in the client, with its tools by the names that it gives them."""
    tools = {wire: ext for given, ext in by_gateway_name.items() for wire in wire_names(name, given)}
    return Relayed(name, tools)


@dataclass(slots=True)
class Memory:
    """What one agent's names were found to be, for one inventory and one program; shared by its requests.

    stopped: by a stored answer's id, what has to stand in a request that goes on from it, for the calls that were
    stopped in it.
    """

    inventory: Inventory | None = None
    behind: Relayed | None = None
    owners: dict[tuple[Entry, str], Owners] = field(default_factory=dict)
    stopped: dict[str, bytes] = field(default_factory=dict)
    rows: dict[tuple[str, bytes], tuple[Entry, list[tuple[str, str]]]] = field(default_factory=dict)
    """By a setting and an entry's own bytes, what it is and how it is called: clients send the same again."""
    held: int = 0
    quiet: set[bytes] = field(default_factory=set)
    """Digests of messages in which nothing was to be judged: clients send what was said before with each request."""

    def keep(self, setting: str, row: bytes, found: tuple[Entry, list[tuple[str, str]]]) -> None:
        """Remembers how an entry was read; all are forgotten when there are too many bytes of them."""
        self.held += len(row)
        if self.held > _HELD:
            self.rows, self.held = {}, len(row)
        self.rows[setting, row] = found

    def keep_quiet(self, digest: bytes) -> None:
        """Remembers a message in which nothing is to be judged; all are forgotten when there are too many."""
        if len(self.quiet) >= _KEPT:
            self.quiet.clear()
        self.quiet.add(digest)

    def note_stopped(self, answer: str, items: bytes) -> None:
        """Keeps that; the oldest goes when there are too many."""
        self.stopped.pop(answer, None)
        while len(self.stopped) >= _KEPT_ANSWERS:
            del self.stopped[next(iter(self.stopped))]
        self.stopped[answer] = items


class Judge:
    """Asks one gate, for one request. session: what the events name. memory: kept by the caller between requests."""

    def __init__(
        self,
        gate: Gate,
        client: Client,
        *,
        session: str = "",
        memory: Memory | None = None,
        behind: Relayed = NOTHING_RELAYED,
    ) -> None:
        self.gate, self.client, self.session = gate, client, session
        self.memory = memory if memory is not None else Memory()
        self._behind = behind
        self._added: dict[str, Reader] = {}
        self._strangers = 0

    # ------------------------------------------------------------------------------------------ what a name means

    def owners(self, entry: Entry) -> Owners:
        """Every extension that it could be, never none; it passes when all of them do."""
        memory, inventory = self.memory, self.gate.inventory
        is_same = memory.inventory is inventory and memory.behind is self._behind
        if not is_same or len(memory.owners) >= _KEPT:
            memory.inventory, memory.behind, memory.owners = inventory, self._behind, {}
        key = (entry, self.client.name)
        found = memory.owners.get(key)
        if found is None:
            found = memory.owners[key] = tuple(dict.fromkeys(self._find(entry)))
        return found

    def _find(self, entry: Entry) -> Iterable[Extension]:
        if entry.server is not None:
            return self._hosted(entry, entry.server)
        names = in_namespace(entry.namespace, entry.name)
        if "skill" in entry.kinds and ":" in entry.name:  # `plugin:skill`, `folder:skill`
            names = (entry.name.rpartition(":")[2], entry.name)
        found = [ext for name in names for ext in self._own(name, entry.kinds)] or self._unknown(names, entry.kinds)
        for name in entry.also:
            found += self._own(name, entry.kinds) or self._unknown((name,), entry.kinds)
        aliases = {entry.alias, *(names if len(names) > 1 else ()), entry.name if entry.namespace else ""} - {""}
        return [_with_aliases(ext, sorted(aliases - {ext.name})) for ext in found] if aliases else found

    def _own(self, name: str, kinds: Sequence[str]) -> list[Extension]:
        own = self.client.builtins.get(self.client.hosted.get(name, name))
        mine = [own] if own is not None and "tool" in kinds else []
        behind = self._behind.tools.get(name) if "mcp_tool" in kinds else None
        return [*mine, *([behind] if behind is not None else []), *self.gate.owners(name, kinds)]

    def _unknown(self, names: Sequence[str], kinds: Sequence[str]) -> list[Extension]:
        """All that something of unknown origin could be: of one kind, or native, or an item of a server."""
        self._strangers += 1
        if self._strangers > MAX_STRANGERS:
            self.memory.owners = {}  # what was not judged is not known the next time either
            raise UnclearError(f"the request names more than {MAX_STRANGERS} things that nobody here knows")
        if "mcp_tool" not in kinds:
            return [Extension(kind=kind, name=names[-1], source=UNKNOWN) for kind in kinds]
        name, mark = names[0], self.client.mark
        native = Extension(kind="tool", name=names[-1], source=UNKNOWN)
        if mark and not name.startswith(mark):
            return [native]  # this program marks the tools of servers, and no others
        known = starts_of(name, (server.name for server in self.gate.inventory.servers))
        items = [Extension(kind="mcp_tool", name=item, server=server) for server, item in known]
        if mark and items:
            return items
        other = Extension(kind="mcp_tool", name=name, server=UNKNOWN)
        cuts = [Extension(kind="mcp_tool", name=item, server=server) for server, item in cuts_of(name)]
        return [native, other, *items, *cuts]

    def _hosted(self, entry: Entry, label: str) -> Owners:
        """An item of a server that the provider calls: the configured server's only at that one's own address."""
        item, server = Extension(kind="mcp_tool", name=entry.name, server=label), self.gate.inventory.server(label)
        # A label alone is what the request says.
        is_there = server is not None and entry.address != "" and server.facts.get("url") == entry.address
        if is_there:
            return (item,)
        return (item, Extension(kind="mcp_tool", name=entry.name, server=UNKNOWN))

    # ------------------------------------------------------------------------------------------ what may be seen

    @property
    def allows_everything(self) -> bool:
        """Whether no rule, now, could hide anything that has a sound name."""
        policies = self.gate.profile.policies
        is_open = bool(policies) and all(p.default == "allow" and not p.rules for p in policies)
        return is_open and self.gate.availability.is_available

    def see(self, entries: Sequence[Entry]) -> list[bool]:
        """Which of them the model may learn of; what is hidden is recorded."""
        owners = [self.owners(entry) for entry in entries]
        seen = {id(ext) for ext in self.gate.see([e for found in owners for e in found], session=self.session)}
        return [all(id(ext) in seen for ext in found) for found in owners]

    def sees(self, entry: Entry) -> bool:
        """Whether the model may learn of it; nothing is recorded."""
        return all(self.gate.is_visible(ext) for ext in self.owners(entry))

    def sees_server(self, server: str) -> bool:
        """Whether the model may learn of something that the server has; of one never heard of, of anything at all."""
        if server == self._behind.name:
            return True  # what it says is filtered already
        items = [ext for ext in self.gate.inventory.extensions if ext.server == server]
        items = items or [Extension(kind="mcp_tool", name="*", server=server)]
        return any(self.gate.is_visible(ext) for ext in items)

    # ------------------------------------------------------------------------------------------ what may be used

    def reads_arguments(self, kinds: Iterable[str] = CALLABLE) -> bool:
        """Whether some rule on these kinds looks at what a call is given."""
        wanted = set(kinds)
        return any(rule.when and wanted & rule.kinds for policy in self.gate.profile.policies for rule in policy.rules)

    def use(self, entry: Entry, args: Mapping[str, Any], action: str = "call") -> str:
        """Why it may not be used, for the model; empty when it may. Recorded once, unless rules change meanwhile."""
        owners = sorted(self.owners(entry), key=lambda ext: self._strictness(ext, args), reverse=True)
        for at, ext in enumerate(owners):
            if at and self._strictness(ext, args)[0] == 0:
                continue  # no stricter than what was just recorded
            answer = self.gate.use(ext, args, action=action, session=self.session)
            if not answer:
                return answer.message
        return ""

    def _strictness(self, ext: Extension, args: Mapping[str, Any]) -> tuple[bool, int]:
        decision = self.gate.decide(ext, args)
        return (not decision.callable, STRICTNESS[decision.effect])

    def refuse(self, entry: Entry, why: str) -> str:
        """The recorded refusal, for the reason that the rules have, else for the door's own; its message."""
        for ext in self.owners(entry):
            decision = self.gate.decide(ext)
            if decision.effect == "deny":
                return self.gate.use(ext, session=self.session).message
        ext = self.owners(entry)[0]
        reason = f"'{{name}}' {why}."
        return self.gate.refuse_item(ext, reason, session=self.session).message

    def meta(self, name: str) -> Reader | None:
        """What a call of this name would run or open, where it is of a tool that does."""
        found = self.client.metas.get(name)
        if found is not None or not self.client.server_tools or not name.startswith(self.client.mark):
            return found
        if not self._added:
            for server in self.gate.inventory.servers:
                for item, reader in self.client.server_tools.items():
                    bound = partial(_of_server, reader, server.name)
                    self._added |= dict.fromkeys(wire_names(server.name, item), bound)
        return self._added.get(name)

    def use_target(self, target: Target) -> str:
        """Why what a call would run or open may not be used; empty when it may."""
        if target.kinds == ("mcp_prompt",) and target.server is not None:
            ext = Extension(kind="mcp_prompt", name=target.name, server=target.server)
            return self.gate.use(ext, action="open", session=self.session).message
        if target.kinds == ("skill",) and not target.name:
            return self._use_all([*self.gate.inventory.of_kind("skill"), Extension(kind="skill", name="*")])
        if target.kinds != ("mcp_resource",):
            return self.use(Entry(target.name, target.kinds), target.args, "open")
        if target.server is not None and target.server == self._behind.name:
            return ""  # the gateway asks by itself
        if not target.name or target.server is None:
            return self._use_listing(target)
        server = self.gate.inventory.server(target.server)
        if server is not None and server.state == "connected":
            return self.gate.read_uri(target.server, target.name, session=self.session).message
        # What a server has that only the client knows is not known; the rules on its name and the URI's forms hold.
        ext = Extension(kind="mcp_resource", name=target.name, server=target.server)
        return self.gate.use(ext, {"uri": target.name}, action="read", session=self.session).message

    def _use_listing(self, target: Target) -> str:
        """A listing of resources shows whatever there is, so all of it must be visible."""
        items = [ext for ext in self.gate.inventory.extensions if ext.server is not None and ext.kind == "mcp_resource"]
        servers = [target.server] if target.server is not None else [s.name for s in self.gate.inventory.servers]
        shown = [ext for ext in items if ext.server in servers]
        shown += [Extension(kind="mcp_resource", name="*", server=server) for server in servers]
        return self._use_all(shown)

    def _use_all(self, items: Iterable[Extension]) -> str:
        """Why a listing of all of them may not be asked for; empty when each may be seen."""
        for ext in items:
            if not self.gate.is_visible(ext):
                return self.gate.use(ext, action="list", session=self.session).message
        return ""


def _of_server(reader: Reader, server: str, args: Args) -> Sequence[Target]:
    return [replace(target, server=server) for target in reader(args)]


def _with_aliases(ext: Extension, aliases: Sequence[str]) -> Extension:
    """The item with further spellings, which only a deny may use."""
    return replace(ext, facts={**ext.facts, "aliases": (*ext.facts.get("aliases", ()), *aliases)})
