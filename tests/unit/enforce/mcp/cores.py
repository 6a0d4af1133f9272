"""A session and its link to servers without sockets: what a client sends, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from extgate.core.extension import Extension, Inventory, Server
from extgate.core.policy import Policy
from extgate.enforce.gate import Gate
from extgate.enforce.mcp import envelope
from extgate.enforce.mcp.call import Ask, Reply, Return
from extgate.enforce.mcp.catalog import Offer
from extgate.enforce.mcp.door import Door
from extgate.enforce.mcp.link import Link
from extgate.enforce.mcp.options import Limits, Options
from extgate.enforce.mcp.session import Session
from extgate.enforce.sinks import Memory
from tests.doors.policies import profile

ROWS = {
    "tools": ({"name": "send", "x-vendor": [1, {"a": None}]}, {"name": "find", "_meta": {"k": "é"}}),
    "prompts": ({"name": "triage"},),
    "resources": ({"uri": "wiki://public/a", "name": "a"}, {"uri": "wiki://secret/b", "name": "b"}),
    "resourceTemplates": ({"uriTemplate": "wiki://page/{name}", "name": "page"},),
}
CAPABILITIES = {"tools": b"{}", "logging": b"{}", "completions": b"{}", "resources": b'{"subscribe":true}'}


def offer(server: str, rows: Mapping[str, tuple[dict[str, Any], ...]] = ROWS, instructions: str = "") -> Offer:
    """What a server says it has."""
    keys = {"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}
    raw = {
        what: {row[keys[what]]: envelope.fields_of(json.dumps(row, ensure_ascii=False).encode()) for row in found}
        for what, found in rows.items()
    }
    return Offer(server=server, rows=raw, capabilities=CAPABILITIES, instructions=instructions)


def inventory(*offers: Offer, state: Any = "connected") -> Inventory:
    kinds = {"tools": "mcp_tool", "prompts": "mcp_prompt"}
    items = [
        Extension(
            kind=kinds.get(what, "mcp_resource"), server=one.server, name=name,
            facts={"template": True} if what == "resourceTemplates" else {},
        )
        for one in offers
        for what, rows in one.rows.items()
        for name in rows
    ]  # fmt: skip
    servers = tuple(Server(name=one.server, state=state) for one in offers)
    return Inventory(extensions=tuple(items), servers=servers)


class World:
    """One agent's door over some servers, and the record of its gate."""

    def __init__(
        self, text: str = "{}", *more: Policy, offers: tuple[Offer, ...] = (), options: Options | None = None
    ) -> None:
        self.offers = offers or (offer("slack"),)
        self.memory = Memory()
        self.gate = Gate(profile(text, *more), inventory(*self.offers), door="mcp", sink=self.memory)
        self.door = Door(self.gate, options or Options(), lambda: self.offers)

    def client(self, capabilities: dict[str, Any] | None = None, limits: Limits | None = None) -> Client:
        """A client that has said hello."""
        client = Client(self, limits)
        hello = {"protocolVersion": "2025-11-25", "capabilities": capabilities or {}, "clientInfo": {"name": "t"}}
        assert "result" in client.ask("initialize", hello)
        client.note("notifications/initialized")
        return client

    def uses(self) -> list[tuple[str, str]]:
        """What was asked of the gate, and the outcome."""
        return [(event.extension, event.outcome) for event in self.memory.events if event.question == "use"]


class Client:
    """Sends messages; keeps what would go to servers in `asked`, in order, and what comes back in `got`."""

    def __init__(self, world: World, limits: Limits | None = None) -> None:
        self.session = Session(world.door, id="s", limits=limits)
        self.links: dict[str, Link] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.got: list[dict[str, Any]] = []
        self.returned: list[dict[str, Any]] = []
        self._last = 0

    def send(self, message: Any) -> list[dict[str, Any]]:
        """What the client gets at once."""
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        before = len(self.got)
        self.run(self.session.receive(envelope.read(data)))
        return self.got[before:]

    def run(self, actions: Any) -> None:
        for action in actions:
            if isinstance(action, Reply):
                self.got.append(json.loads(action.data))
            elif isinstance(action, Ask):
                link = self.links.setdefault(action.call.server, Link(action.call.server))
                self.asked.append((action.call.server, json.loads(link.ask(action.call)[1])))
            elif isinstance(action, Return):
                self.returned.append(json.loads(action.data))

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer, or nothing yet when a server has to give it."""
        self._last += 1
        got = self.send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params or {}})
        assert len(got) <= 1
        return got[0] if got else {}

    def note(self, method: str, params: dict[str, Any] | None = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.ask("tools/call", {"name": name, "arguments": arguments or {}})

    def names(self, method: str = "tools/list") -> list[str]:
        result = self.ask(method)["result"]
        rows = next(rows for rows in result.values() if isinstance(rows, list))
        return [row.get("uri") or row.get("uriTemplate") or row["name"] for row in rows]

    def answer(self, server: str, data: bytes) -> bytes:
        """What the client gets for a server's message, as bytes."""
        event: Any = self.links[server].receive(data)
        return bytes(event.data)


def refused(answer: dict[str, Any]) -> str:
    """The reason that an answer refuses with; the empty text when it is no refusal."""
    if "error" in answer:
        return str(answer["error"]["message"])
    result = answer.get("result", {})
    return str(result["content"][0]["text"]) if result.get("isError") else ""
