"""One session with a server, as messages: ids and progress tokens of its own, and every answer finds its question.

No clock, no socket. What goes out and what comes in differs from what the other side sent in the id, the name, the
progress token and, between protocol eras, in what the era demands.
"""

from __future__ import annotations

from dataclasses import dataclass

from extgate import __version__
from extgate.enforce.mcp import envelope as json
from extgate.enforce.mcp.call import (
    META_CAPABILITIES,
    META_CLIENT,
    META_SUBSCRIPTION,
    META_VERSION,
    MODERN,
    Call,
)
from extgate.enforce.mcp.envelope import INTERNAL, REFUSED, Envelope, EnvelopeError
from extgate.enforce.mcp.long import Data, Long, parts_of
from extgate.enforce.mcp.options import ASKS
from extgate.enforce.mcp.started import why_not_asked
from extgate.enforce.mcp.tasks import EXTENSION

ABOUT = json.encode({"name": "extgate", "version": __version__})
_TASKS = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})
_META_PREFIX = "io.modelcontextprotocol/"
_META = json.Keys("progressToken", META_VERSION, META_CLIENT, META_CAPABILITIES)


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
    """The server says something unasked. about: the call whose stream it belongs to, where it says so."""

    message: Envelope
    about: Call | None = None


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
        self.pending[number], call.number = call, number
        return number, json.request(b"%d" % number, call.method, self._params(call, number))

    def is_waiting(self, call: Call) -> bool:
        """Whether the call has no answer yet."""
        return self.pending.get(call.number) is call

    def cancel(self, call: Call, reason: bytes = b"") -> bytes | None:
        """The notification that tells the server; None when it has answered already."""
        number = call.number
        if not self.is_waiting(call):
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
            of = json.id_of(json.object_of(message.params.get("_meta")).get(META_SUBSCRIPTION))
            return Noted(message, self.pending.get(of) if isinstance(of, int) else None)
        token = json.id_of(message.params.get("progressToken"))
        call = self.pending.get(token) if isinstance(token, int) else None
        if call is None or not call.token:
            return Noise("progress of nothing that was asked")
        params = json.write({**message.params, "progressToken": call.token})
        return Progressed(call, json.write({**message.fields, "params": params}))

    def _params(self, call: Call, number: int) -> json.Fields:
        meta = json.object_of(call.params.get("_meta"))
        for key in _META.otherwise(meta):
            del meta[key]
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
            may_be_task = call.task is not None or call.method.startswith(("tasks/", "subscriptions/"))
            kept = {key: value for key, value in extensions.items() if may_be_task or key != EXTENSION}
            declared["extensions"] = json.write(kept)
        return {key: value for key, value in declared.items() if key not in ASKS or may(self.server, key)}

    def _answer(self, call: Call, message: Envelope, source: memoryview | None = None) -> Data:
        fields, more = message.fields, json.Fields()
        if "result" in fields and (call.is_modern != self.is_modern or self.is_modern):
            found = json.object_of(fields["result"])
            kind = json.text_of(found.get("resultType"))
            if kind == "input_required" and (why := self._why_not_ask(call, found)):
                return json.error(call.id, REFUSED, why)
            if kind == "task" or call.method in _TASKS:
                told = self._of_task(call, found, kind)
                if isinstance(told, str):
                    return failure(call, told)
                more = told
            if call.is_modern and kind is None:
                more = {**(more or found), "resultType": b'"complete"', **_cache(call)}
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
        return why_not_asked(call.session, self.server, result)

    def _of_task(self, call: Call, result: json.Fields, kind: str | None) -> json.Fields | str:
        """A result that begins a task, or is of one, for the client; or why it cannot have it."""
        if not call.is_modern or call.session is None:
            return f"`{self.server}` began a task, which this client's protocol version cannot carry"
        if kind == "task":
            begun = call.session.started.begun(call, result)
            return begun or f"`{self.server}` began a task where none was asked for"
        if call.method != "tasks/get":
            return {key: value for key, value in result.items() if key in ("resultType", "_meta")}
        if why := self._why_not_ask(call, result):
            return why
        return call.session.started.told(call, result) or f"`{self.server}` told of another task"


def _cache(call: Call) -> json.Fields:
    return {"ttlMs": b"0", "cacheScope": b'"private"'} if call.method == "resources/read" else {}


def failure(call: Call, reason: str) -> bytes:
    """The answer to a call that its server does not give: a result for the model where there is one, else an error."""
    if call.method != "tools/call":
        return json.error(call.id, INTERNAL, reason)
    modern = {"resultType": "complete"} if call.is_modern else {}
    body = {"content": [{"type": "text", "text": reason}], "isError": True, **modern}
    return json.result(call.id, json.encode(body))
