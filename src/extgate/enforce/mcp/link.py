"""One session with a server, as messages: ids and progress tokens of its own, and every answer finds its question.

No clock, no socket. What goes out and what comes in differs from what the other side sent in the id, the name, the
progress token and, between protocol eras, in what the era demands.
"""

from __future__ import annotations

from dataclasses import dataclass

from extgate import __version__
from extgate.enforce.mcp import envelope as json
from extgate.enforce.mcp.call import META_CAPABILITIES, META_CLIENT, META_VERSION, MODERN, Call
from extgate.enforce.mcp.envelope import INTERNAL, REFUSED, Envelope, EnvelopeError
from extgate.enforce.mcp.long import Data, Long, parts_of
from extgate.enforce.mcp.options import ASKS
from extgate.enforce.mcp.session import ASKED
from extgate.enforce.mcp.tasks import EXTENSION

ABOUT = json.encode({"name": "extgate", "version": __version__})
_META_PREFIX = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Answered:
    """A call has its answer. data: for the client; message: as the server gave it, None when there is none."""

    call: Call
    data: Data
    message: Envelope | None


@dataclass(frozen=True, slots=True)
class Progressed:
    """News of a call that its client asked for."""

    call: Call
    data: bytes


@dataclass(frozen=True, slots=True)
class Asked:
    """The server asks something."""

    message: Envelope


@dataclass(frozen=True, slots=True)
class Noted:
    """The server says something unasked."""

    message: Envelope


@dataclass(frozen=True, slots=True)
class Noise:
    """What came was no message."""

    why: str


Event = Answered | Progressed | Asked | Noted | Noise


class Link:
    """The calls that wait for one server. is_modern: it is spoken to in the 2026-07-28 protocol."""

    def __init__(self, server: str) -> None:
        self.server, self.is_modern = server, False
        self.pending: dict[int, Call] = {}
        self._last = 0

    def ask(self, call: Call) -> tuple[int, bytes]:
        """The id that the call has with this server, and its message."""
        self._last += 1
        number = self._last
        self.pending[number] = call
        return number, json.request(b"%d" % number, call.method, self._params(call, number))

    def cancel(self, call: Call, reason: bytes = b"") -> bytes | None:
        """The notification that tells the server; None when it has answered already."""
        number = next((number for number, waiting in self.pending.items() if waiting is call), None)
        if number is None:
            return None
        del self.pending[number]
        params: json.Fields = {"requestId": b"%d" % number} | ({"reason": reason} if reason else {})
        return json.request(b"", "notifications/cancelled", params)

    def receive(self, data: bytes | memoryview) -> Event:
        """What one message of the server means. A memoryview is so long a one that only an answer is passed on."""
        try:
            message = json.read(data)
        except EnvelopeError as error:
            return Noise(error.message)
        if message.method:
            if isinstance(data, memoryview):
                return Noise("a message that is too long")
            return Asked(message) if message.id else self._noted(message)
        call = self.pending.pop(message.key, None) if isinstance(message.key, int) else None
        if call is None:
            return Noise("an answer to nothing that was asked")
        if isinstance(data, memoryview) and call.session is None:
            return Answered(call, b"", json.read(json.error(message.id, INTERNAL, "its answer is too long")))
        return Answered(call, self._answer(call, message, data if isinstance(data, memoryview) else None), message)

    def fail(self, reason: str, call: Call | None = None) -> list[Answered]:
        """Ends one call, or all, that will have no answer."""
        calls = [c for c in self.pending.values() if call is None or c is call]
        self.pending = {} if call is None else {n: c for n, c in self.pending.items() if c is not call}
        return [Answered(c, failure(c, reason), None) for c in calls]

    def _noted(self, message: Envelope) -> Event:
        if message.method != "notifications/progress":
            return Noted(message)
        token = json.id_of(message.params.get("progressToken"))
        call = self.pending.get(token) if isinstance(token, int) else None
        if call is None or not call.token:
            return Noise("progress of nothing that was asked")
        params = json.write({**message.params, "progressToken": call.token})
        return Progressed(call, json.write({**message.fields, "params": params}))

    def _params(self, call: Call, number: int) -> json.Fields:
        meta = json.object_of(call.params.get("_meta"))
        if call.token:
            meta["progressToken"] = b"%d" % number
        if call.is_modern and not self.is_modern:
            meta = {key: value for key, value in meta.items() if not key.startswith(_META_PREFIX)}
        elif self.is_modern and not call.is_modern:
            meta |= {META_VERSION: json.encode(MODERN[-1]), META_CLIENT: ABOUT, META_CAPABILITIES: b"{}"}
        elif self.is_modern and call.session is not None:
            meta[META_CAPABILITIES] = json.write(self._capabilities(call, meta))
        if not meta:
            return (
                {key: value for key, value in call.params.items() if key != "_meta"}
                if "_meta" in call.params
                else call.params
            )
        return {**call.params, "_meta": json.write(meta)}

    def _capabilities(self, call: Call, meta: json.Fields) -> json.Fields:
        """What the client declared with this request, less what the profile keeps from the server."""
        assert call.session is not None
        may = call.session.door.options.may_ask
        declared = json.object_of(meta.get(META_CAPABILITIES))
        if "extensions" in declared:
            extensions = json.object_of(declared["extensions"])
            declared["extensions"] = json.write({k: v for k, v in extensions.items() if k != EXTENSION})
        return {key: value for key, value in declared.items() if key not in ASKS or may(self.server, key)}

    def _answer(self, call: Call, message: Envelope, source: memoryview | None = None) -> Data:
        fields, more = message.fields, json.Fields()
        if "result" in fields and (call.is_modern != self.is_modern or self.is_modern):
            found = json.object_of(fields["result"])
            kind = json.text_of(found.get("resultType"))
            if kind == "input_required" and (why := self._why_not_ask(call, found)):
                return json.error(call.id, REFUSED, why)
            if call.is_modern and kind is None:
                more = {**found, "resultType": b'"complete"', **_cache(call)}
        if source is not None:
            result = {"result": parts_of(more)} if more else {}
            parts = parts_of({**fields, "id": call.id, **result})
            return Long(parts, source, failure(call, "the answer was too long to be kept for a second time"))
        if more:
            fields = {**fields, "result": json.write(more)}
        return json.write({**fields, "id": call.id})

    def _why_not_ask(self, call: Call, result: json.Fields) -> str:
        """Why a result that asks the client something may not reach it; empty when it may."""
        if not call.is_modern or call.session is None:
            return f"`{self.server}` asks the client something, which this client's protocol version cannot carry"
        for request in json.object_of(result.get("inputRequests")).values():
            method = json.text_of(json.object_of(request).get("method")) or ""
            what = ASKED.get(method)
            if call.session.door.may_ask(self.server, what or method, has=what is not None, session=call.session.id):
                return f"`{self.server}` asks the client for `{method[:60]}`, which is not permitted for this agent"
        return ""


def _cache(call: Call) -> json.Fields:
    return {"ttlMs": b"0", "cacheScope": b'"private"'} if call.method == "resources/read" else {}


def failure(call: Call, reason: str) -> bytes:
    """The answer to a call that its server does not give: a result for the model where there is one, else an error."""
    if call.method != "tools/call":
        return json.error(call.id, INTERNAL, reason)
    modern = {"resultType": "complete"} if call.is_modern else {}
    body = {"content": [{"type": "text", "text": reason}], "isError": True, **modern}
    return json.result(call.id, json.encode(body))
