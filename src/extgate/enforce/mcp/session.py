"""One client's session: a message in, actions out. No clock, no socket: the rim does what the actions say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from extgate import __version__
from extgate.core.extension import Extension
from extgate.core.names import show
from extgate.enforce.mcp import envelope as json
from extgate.enforce.mcp import tasks
from extgate.enforce.mcp.call import (
    LEGACY,
    META_CAPABILITIES,
    META_CLIENT,
    META_SERVER,
    META_VERSION,
    MODERN,
    Action,
    Ask,
    Call,
    Cancel,
    Reply,
    Return,
    SetLevel,
    Tell,
    is_modern,
)
from extgate.enforce.mcp.envelope import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, REFUSED, Envelope, Id
from extgate.enforce.mcp.listing import Lists, capabilities
from extgate.enforce.mcp.long import Data
from extgate.enforce.mcp.options import ASKED, ASKS, Limits
from extgate.enforce.mcp.started import ACKNOWLEDGED, LISTEN, Book, StatelessTasks
from extgate.enforce.mcp.tasks import Tasks

if TYPE_CHECKING:
    from extgate.enforce.mcp.door import Door

Actions = list[Action]

_REF = json.Keys("type", "name", "uri")


class Session:
    """One client of one agent.

    version: negotiated, empty before. is_open: it has been initialised. capabilities: what the client declared, as it
    came. is_bound: it has asked for something that only a session of its own with a server can give. headers: of the
    client's request, that go on to an HTTP server. caller: who it was found to be. book: what tasks are known.
    """

    def __init__(
        self, door: Door, *, id: str, limits: Limits | None = None, caller: str = "", book: Book | None = None
    ) -> None:
        self.door, self.id, self.limits, self.caller = door, id, limits or Limits(), caller
        self.version = ""
        self.capabilities: json.Fields = {}
        self.about: json.Value = b"null"
        self.is_bound = self.is_open = False
        self.level = b""
        self.headers: dict[str, str] = {}
        self.subscribed: dict[tuple[str, str], None] = {}
        self.in_flight: dict[Id, Call] = {}
        self.lists, self.tasks, self.started = Lists(self), Tasks(self), StatelessTasks(self, book or Book())
        self._asked: dict[Id, tuple[object, bytes]] = {}
        self._tokens: dict[Id, str] = {}
        self._asks = 0

    # ------------------------------------------------------------------------------------------ from the client

    def receive(self, message: Envelope) -> Actions:
        """What is to be done about one message of the client."""
        if not message.method:
            return self._answered(message)
        if not message.id:
            return self._noted(message)
        if message.key in self.in_flight:
            return self.fail(message, INVALID_REQUEST, "a request with this id is in flight")
        if len(self.in_flight) >= self.limits.in_flight:
            return self.fail(message, REFUSED, f"more than {self.limits.in_flight} requests are in flight")
        return self._modern(message) if is_modern(message) else self._legacy(message)

    def _legacy(self, message: Envelope) -> Actions:
        if message.method == "initialize":
            return self._initialize(message)
        handler = _LEGACY.get(message.method)
        if handler is None:
            return self.fail(message, METHOD_NOT_FOUND, f"no method `{message.method[:100]}`")
        if not self.is_open and message.method != "ping":
            return self.fail(message, INVALID_REQUEST, "send `initialize` first")
        return handler(self, message)

    def _modern(self, message: Envelope) -> Actions:
        meta = json.object_of(message.params.get("_meta"))
        version = json.value_of(meta[META_VERSION])
        if version not in MODERN:
            data = {"supported": [*MODERN, *LEGACY], "requested": version}
            return self.fail(message, json.UNSUPPORTED_VERSION, "Unsupported protocol version", data)
        if META_CAPABILITIES not in meta:
            return self.fail(message, INVALID_PARAMS, f"params._meta lacks `{META_CAPABILITIES}`")
        handler = _MODERN.get(message.method)
        if handler is None:
            return self.fail(message, METHOD_NOT_FOUND, f"no method `{message.method[:100]}`")
        return handler(self, message)

    def peek(self, message: Envelope) -> None:
        """Takes note of what the client declares in its first message, before that is answered."""
        meta = json.object_of(message.params.get("_meta"))
        if META_VERSION in meta:
            self.capabilities = json.object_of(meta.get(META_CAPABILITIES))
            self.about = meta.get(META_CLIENT, b"null")
            return
        asked = json.text_of(message.params.get("protocolVersion"))
        self.version = asked if asked in LEGACY else LEGACY[-1]
        self.capabilities = json.object_of(message.params.get("capabilities"))
        self.about = message.params.get("clientInfo", b"null")

    def _initialize(self, message: Envelope) -> Actions:
        if self.is_open:
            return self.fail(message, INVALID_REQUEST, "this session is initialised already")
        if (why := self.door.why_unavailable()) and self.door.options.unavailable == "error":
            return self.fail(message, REFUSED, why)
        self.peek(message)
        self.is_open = True
        result: dict[str, object] = {
            "protocolVersion": self.version,
            "capabilities": capabilities(self.door.view, self.version),
            "serverInfo": {"name": "extgate", "version": __version__},
        }
        said = "\n\n".join(filter(None, (why, self.door.view.instructions)))
        return self._reply(message, result | ({"instructions": said} if said else {}))

    def _discover(self, message: Envelope) -> Actions:
        if (why := self.door.why_unavailable()) and self.door.options.unavailable == "error":
            return self.fail(message, REFUSED, why)
        said = "\n\n".join(filter(None, (why, self.door.view.instructions)))
        result: dict[str, object] = {
            "supportedVersions": [*MODERN, *LEGACY],
            "capabilities": capabilities(self.door.view, MODERN[-1]),
            "serverInfo": {"name": "extgate", "version": __version__},
            "_meta": {META_SERVER: {"name": "extgate", "version": __version__}},
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
        }
        return self._reply(message, result | ({"instructions": said} if said else {}))

    def _ping(self, message: Envelope) -> Actions:
        return self._reply(message, {})

    def _set_level(self, message: Envelope) -> Actions:
        level = message.params.get("level")
        if json.text_of(level) is None or level is None:
            return self.fail(message, INVALID_PARAMS, "`level` is no text")
        self.level, self.is_bound = bytes(level), True
        return [SetLevel(self.level), *self._reply(message, {})]

    def _list(self, message: Envelope) -> Actions:
        return self.lists.page(message)

    def _call_tool(self, message: Envelope) -> Actions:
        name = json.text_of(message.params.get("name"))
        if name is None:
            return self.fail(message, INVALID_PARAMS, "`name` is no text")
        judged = self.door.judge(
            "mcp_tool", name, message.params.get("arguments"), action="call", session=self.id
        )  # fmt: skip
        if judged.ext is None:
            return self._refuse(message, judged.message)
        is_task = "task" in message.params and self.version == tasks.VERSION and not is_modern(message)
        if is_task and (why := self.tasks.why_not(message.params.get("arguments"))):
            return self._refuse(message, why)
        params = {**message.params, "name": json.encode(judged.ext.name)}
        actions = self.ask(message, judged.ext.server, params, judged.ext)
        self.is_bound = self.is_bound or is_task  # its server must know it again, and tell it from others' tasks
        if is_task or (is_modern(message) and self.started.may_begin(message)):
            self.in_flight[message.key].task = (name, message.params.get("arguments"))  # type: ignore[index]
        return actions

    def _refuse(self, message: Envelope, why: str) -> Actions:
        modern = {"resultType": "complete"} if is_modern(message) else {}
        return self._reply(message, {"content": [{"type": "text", "text": why}], "isError": True, **modern})

    def _task(self, message: Envelope) -> Actions:
        return self.started.ask(message) if is_modern(message) else self.tasks.ask(message)

    def _tasks(self, message: Envelope) -> Actions:
        return self.tasks.page(message)

    def _get_prompt(self, message: Envelope) -> Actions:
        name = json.text_of(message.params.get("name"))
        if name is None:
            return self.fail(message, INVALID_PARAMS, "`name` is no text")
        arguments = message.params.get("arguments")
        judged = self.door.judge("mcp_prompt", name, arguments, action="get", session=self.id)
        if judged.ext is None:
            return self.fail(message, INVALID_PARAMS, judged.message)
        return self.ask(
            message, judged.ext.server, {**message.params, "name": json.encode(judged.ext.name)}, judged.ext
        )

    def _read(self, message: Envelope) -> Actions:
        uri = json.text_of(message.params.get("uri"))
        if uri is None:
            return self.fail(message, INVALID_PARAMS, "`uri` is no text")
        judged = self.door.judge_uri(uri, session=self.id)
        if judged.ext is None:
            code = INVALID_PARAMS if is_modern(message) else RESOURCE_NOT_FOUND
            return self.fail(message, code, judged.message, {"uri": uri})
        server = judged.ext.server or ""
        if message.method == "resources/subscribe":
            self.is_bound = True
            if len(self.subscribed) >= self.limits.items:
                return self.fail(message, REFUSED, f"more than {self.limits.items} subscriptions")
            self.subscribed[(server, uri)] = None
        return self.ask(message, server, message.params, judged.ext)

    def _unsubscribe(self, message: Envelope) -> Actions:
        """Nobody needs a permission to hear less; it goes to the server that was subscribed with."""
        uri = json.text_of(message.params.get("uri"))
        server = next((server for server, subscribed in self.subscribed if subscribed == uri), None)
        if server is None or uri is None:
            return self._reply(message, {})
        del self.subscribed[(server, uri)]
        return self.ask(message, server, message.params)

    def _complete(self, message: Envelope) -> Actions:
        ref = json.object_of(message.params.get("ref"))
        for key in _REF.otherwise(ref):
            return self.fail(message, INVALID_PARAMS, f"the key `{show(key)[:60]}` of `ref` is one in other letters")
        kind, name = json.text_of(ref.get("type")), json.text_of(ref.get("name"))
        uri = json.text_of(ref.get("uri"))
        if kind == "ref/prompt" and name is not None:
            judged = self.door.judge("mcp_prompt", name, None, action="complete", session=self.id)
            ref = {**ref, "name": json.encode(judged.ext.name)} if judged.ext else ref
        elif kind == "ref/resource" and uri is not None:
            judged = self.door.judge_template(uri, session=self.id)
        else:
            return self.fail(message, INVALID_PARAMS, "`ref` names neither a prompt nor a resource")
        if judged.ext is None:
            return self.fail(message, INVALID_PARAMS, judged.message)
        return self.ask(message, judged.ext.server, {**message.params, "ref": json.write(ref)}, judged.ext)

    def _listen(self, message: Envelope) -> Actions:
        return self.lists.listen(message)

    # ------------------------------------------------------------------------------------------ what it leads to

    def ask(self, message: Envelope, server: str | None, params: json.Fields, ext: Extension | None = None) -> Actions:
        meta = json.object_of(params.get("_meta"))
        token = meta.get("progressToken")
        call = Call(
            session=self, server=server or "", method=message.method, params=params, id=message.id, key=message.key,
            token=bytes(token) if json.id_of(token) is not None and token is not None else b"",
            is_modern=is_modern(message), headers=self.headers, ext=ext,
        )  # fmt: skip
        assert message.key is not None
        self.in_flight[message.key] = call
        return [Ask(call)]

    def fail(self, message: Envelope, code: int, text: str, data: object = None) -> Actions:
        return [Reply(json.error(message.id, code, text, data), message.key, is_last=True)]

    def _reply(self, message: Envelope, body: object) -> Actions:
        return [Reply(json.result(message.id, json.encode(body)), message.key, is_last=True)]

    def _answered(self, message: Envelope) -> Actions:
        """The client's answer to a server: only to what was asked, and once."""
        asked = self._asked.pop(message.key, None) if message.key is not None else None
        return [] if asked is None else [Return(asked[0], json.readdressed(message, asked[1]))]

    def _noted(self, message: Envelope) -> Actions:
        if message.method == "notifications/cancelled":
            key = json.id_of(message.params.get("requestId"))
            call = self.in_flight.pop(key, None) if key is not None else None
            more = self.lists.unlisten(key)
            return more if call is None else [Cancel(call, bytes(message.params.get("reason", b"")))]
        if message.method == "notifications/progress":
            token = json.id_of(message.params.get("progressToken"))
            server = self._tokens.get(token) if token is not None else None
            return [Tell(server, message.method, message.params)] if server is not None else []
        if message.method == "notifications/roots/list_changed" and "roots" in self.capabilities:
            return [Tell("", message.method, message.params)]
        return []

    # ------------------------------------------------------------------------------------------ from the servers

    def finish(self, call: Call, data: Data) -> Actions:
        """The answer to a call, for the client; nothing when it no longer waits."""
        if call.key is None or self.in_flight.get(call.key) is not call:
            return []
        del self.in_flight[call.key]
        if call.method == LISTEN:
            return self.started.heard(call.server, call)
        if not call.is_modern and (call.task is not None or call.method.startswith("tasks/")):
            data = self.tasks.answered(call, data)
        return [Reply(data, call.key, is_last=True)]

    def asked(self, server: str, message: Envelope, to: object) -> Actions:
        """What becomes of a server's own request: it goes to the client, or back as an error."""
        what = ASKED.get(message.method)
        if what is None:
            return [Return(to, json.error(message.id, METHOD_NOT_FOUND, f"no method `{message.method[:100]}`"))]
        if len(self._asked) >= self.limits.in_flight:
            return [Return(to, json.error(message.id, REFUSED, "too many questions wait for this client"))]
        if why := self.door.may_ask(server, what, has=what in self.capabilities, session=self.id):
            return [Return(to, json.error(message.id, METHOD_NOT_FOUND, why))]
        self._asks += 1
        key = f"extgate-{self._asks}"
        self._asked[key] = (to, message.id)
        token = json.id_of(json.object_of(message.params.get("_meta")).get("progressToken"))
        if token is not None:
            self._tokens = dict(list(self._tokens.items())[-self.limits.in_flight :]) | {token: server}
        return [Reply(json.readdressed(message, json.encode(key)), self._about(server))]

    def noted(self, server: str, message: Envelope, to: object) -> Actions:
        """What becomes of a notification from a session that this client has alone with a server."""
        if message.method == "notifications/message" and "logging" in self.door.view.capabilities:
            return [Reply(json.write(message.fields), self._about(server))]
        if message.method == "notifications/tasks/status":
            return self.tasks.told(server, message)
        if message.method in ("notifications/tasks", ACKNOWLEDGED):
            return self.started.noted(server, message)
        if message.method == "notifications/resources/updated":
            uri = json.text_of(message.params.get("uri"))
            is_wanted = uri is not None and (server, uri) in self.subscribed and self.door.may_hear_of(server, uri)
            return [Reply(json.write(message.fields))] if is_wanted else []
        if message.method == "notifications/cancelled":
            raw = bytes(message.params.get("requestId", b""))
            key = next((k for k, (owner, id) in self._asked.items() if owner is to and id == raw), None)
            if key is not None:
                del self._asked[key]
                params = {**message.params, "requestId": json.encode(key)}
                return [Reply(json.write({**message.fields, "params": json.write(params)}), self._about(server))]
        return []

    def _about(self, server: str) -> Id | None:
        """The newest request that waits for this server: what it says of itself most likely belongs there."""
        return next((key for key, call in reversed(self.in_flight.items()) if call.server == server), None)

    def allowed_capabilities(self, server: str) -> json.Fields:
        """What the client declared, less what the profile keeps from this server. Nothing is ever added."""
        return {
            key: value
            for key, value in self.capabilities.items()
            if key != "tasks" and (key not in ASKS or self.door.options.may_ask(server, key))
        }

    def wants_own(self, server: str) -> bool:
        """Whether this client needs a session of its own with a server, and may have it."""
        share = self.door.options.share
        if share != "auto":
            return share == "never"
        return self.is_bound or any(what in ASKS for what in self.allowed_capabilities(server))

    def changed(self) -> Actions:
        """The notices of lists that are others than this client was last told, one for each."""
        return self.lists.changed()


RESOURCE_NOT_FOUND = -32002


_LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
Handler = Callable[[Session, Envelope], Actions]


def _handlers(*rows: tuple[Iterable[str], Handler]) -> dict[str, Handler]:
    return {method: handler for methods, handler in rows for method in methods}


_COMMON: tuple[tuple[Iterable[str], Handler], ...] = (
    (_LISTS, Session._list),
    (("tools/call",), Session._call_tool),
    (("prompts/get",), Session._get_prompt),
    (("resources/read",), Session._read),
    (("completion/complete",), Session._complete),
)
_MODERN = _handlers(
    *_COMMON,
    (("server/discover",), Session._discover),
    (("subscriptions/listen",), Session._listen),
    (("tasks/get", "tasks/update", "tasks/cancel"), Session._task),
)
_LEGACY = _handlers(
    *_COMMON,
    (("ping",), Session._ping),
    (("tasks/get", "tasks/result", "tasks/cancel"), Session._task),
    (("tasks/list",), Session._tasks),
    (("logging/setLevel",), Session._set_level),
    (("resources/subscribe",), Session._read),
    (("resources/unsubscribe",), Session._unsubscribe),
)
