"""Tasks of the stateless era: calls whose server goes on with them after it has answered, each of one caller alone.

A server decides by itself that a call becomes a task. Its client asks about it under an id of the gateway's own, which
nobody can guess and which says what replica knows it; the server's stays here. Each time it is asked about, the tool is
judged again, under the name and the arguments of its call. Ending a task needs no permission.
Source: modelcontextprotocol/ext-tasks, specification 2026-07-28 (seen 2026-11-30).
"""

from __future__ import annotations

import secrets
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from extgate.enforce.mcp import envelope as json
from extgate.enforce.mcp.call import META_CAPABILITIES, META_SUBSCRIPTION, Action, Ask, Call, Cancel, Reply
from extgate.enforce.mcp.envelope import INVALID_PARAMS, MISSING_CAPABILITY, REFUSED, Envelope, Fields, Id
from extgate.enforce.mcp.options import ASKED
from extgate.enforce.mcp.tasks import ENDED, EXTENSION, MAX_ARGUMENTS

if TYPE_CHECKING:
    from extgate.enforce.mcp.session import Session

LISTEN, ACKNOWLEDGED = "subscriptions/listen", "notifications/subscriptions/acknowledged"
MAX_STARTED, MAX_ALL = 1_000, 50_000
"""Tasks of one caller, and of all, that are known at a time."""
MAX_KEPT = 64 * 1024 * 1024
"""What the arguments of all tasks may take, in bytes."""
MAX_AGE_S = 24 * 3600.0
"""After which a task that nobody asked about makes room for others."""


@dataclass(slots=True, eq=False)
class Started:
    """id: the client's; its: the server's. name, arguments: of the call that began it, as the client gave them.
    until: when it may be forgotten, on a clock that goes forward."""

    id: str
    agent: str
    caller: str
    server: str
    its: str
    name: str
    arguments: bytes | None
    until: float
    has_ended: bool = False


@dataclass(slots=True, eq=False)
class _Stream:
    """Of a client, with news of tasks. id: of its request, as it came. unheard: the calls to servers that have not yet
    said that they will tell; begin: what the client gets once there are none."""

    id: bytes
    tasks: frozenset[str]
    calls: tuple[Call, ...]
    unheard: list[Call]
    begin: list[Action]


@dataclass(slots=True, eq=False)
class Book:
    """Every task that is known here. new_id: gives the ids that clients have."""

    new_id: Callable[[], str] = lambda: secrets.token_urlsafe(24)
    now: Callable[[], float] = time.monotonic
    _by_id: dict[str, Started] = field(default_factory=dict)
    _by_server: dict[tuple[str, str], Started] = field(default_factory=dict)
    _by_owner: Counter[tuple[str, str]] = field(default_factory=Counter)
    _kept: int = 0

    def has_room(self, agent: str, caller: str, arguments: json.Value | None) -> bool:
        """Whether one more may begin. Forgets those that have ended, or that nobody asks about, where there is none."""
        size = len(bytes(arguments)) if arguments is not None else 0
        if self._is_full(agent, caller, size):
            for task in [task for task in self._by_id.values() if task.has_ended or task.until < self.now()]:
                self._forget(task)
        return size <= MAX_ARGUMENTS and not self._is_full(agent, caller, size)

    def _is_full(self, agent: str, caller: str, size: int) -> bool:
        are_many = self._by_owner[(agent, caller)] >= MAX_STARTED or len(self._by_id) >= MAX_ALL
        return are_many or self._kept + size > MAX_KEPT

    def add(self, task: Started) -> None:
        """Takes note of a task. Where its server gave its id before, that task is no more."""
        before = self._by_server.get((task.server, task.its))
        if before is not None:
            self._forget(before)
        self._by_id[task.id] = self._by_server[(task.server, task.its)] = task
        self._by_owner[(task.agent, task.caller)] += 1
        self._kept += len(task.arguments or b"")

    def find(self, id: str, agent: str, caller: str) -> Started | None:
        """The task that a caller knows by this id; another's is none."""
        task = self._by_id.get(id)
        return task if task is not None and (task.agent, task.caller) == (agent, caller) else None

    def of_server(self, server: str, its: str) -> Started | None:
        """The task that a server knows by this id."""
        return self._by_server.get((server, its))

    def forget(self, server: str) -> None:
        """Forgets the tasks of a server that is another by now."""
        for task in [task for task in self._by_id.values() if task.server == server]:
            self._forget(task)

    def _forget(self, task: Started) -> None:
        del self._by_id[task.id], self._by_server[(task.server, task.its)]
        self._kept -= len(task.arguments or b"")
        self._by_owner[(task.agent, task.caller)] -= 1
        if not self._by_owner[(task.agent, task.caller)]:
            del self._by_owner[(task.agent, task.caller)]


class StatelessTasks:
    """What one client of the stateless era may know of its tasks."""

    def __init__(self, session: Session, book: Book) -> None:
        self._ref = weakref.ref(session)  # so that one that ended goes at once
        self._book = book
        self._listening: dict[Id, _Stream] = {}

    @property
    def _session(self) -> Session:
        session = self._ref()
        assert session is not None
        return session

    def may_begin(self, message: Envelope) -> bool:
        """Whether the server may be told that this call may become a task."""
        arguments = message.params.get("arguments")
        return is_declared(message) and self._book.has_room(*self._owner, arguments)

    def begun(self, call: Call, result: Fields) -> Fields | None:
        """The result for the client of a call that became a task; None for what cannot be the client's."""
        its = json.text_of(result.get("taskId"))
        if call.task is None or call.method != "tools/call" or not its:
            return None
        name, arguments = call.task
        task = Started(
            id=self._book.new_id(), agent=self._owner[0], caller=self._owner[1], server=call.server, its=its, name=name,
            arguments=None if arguments is None else bytes(arguments), until=0.0,
        )  # fmt: skip
        self._note(task, result)
        self._book.add(task)
        return {**result, "taskId": json.encode(task.id)}

    def told(self, call: Call, result: Fields) -> Fields | None:
        """The answer to a question about a task, for the client; None when it is of another task."""
        its = json.text_of(call.params.get("taskId"))
        task = self._book.of_server(call.server, its or "")
        if task is None or json.text_of(result.get("taskId")) != its:
            return None
        self._note(task, result)
        return {**result, "taskId": json.encode(task.id)}

    def ask(self, message: Envelope) -> list[Action]:
        """What becomes of `tasks/get`, `tasks/update` and `tasks/cancel`."""
        session, id = self._session, json.text_of(message.params.get("taskId"))
        if not is_declared(message):
            return undeclared(session, message)
        if id is None:
            return session.fail(message, INVALID_PARAMS, "`taskId` is no text")
        task, action = self._book.find(id, *self._owner), message.method.partition("/")[2]
        if task is None:
            session.door.gate.refuse_unknown(id, "mcp_tool", {}, action=f"task {action}", session=session.id)
            return session.fail(message, INVALID_PARAMS, "no such task")
        params = {**message.params, "taskId": json.encode(task.its)}
        if action == "cancel":
            return session.ask(message, task.server, params)
        judged = session.door.judge("mcp_tool", task.name, task.arguments, action=f"task {action}", session=session.id)
        if judged.ext is None or judged.ext.server != task.server:
            return session.fail(message, REFUSED, judged.message or f"'{task.name}' is another tool by now.")
        return session.ask(message, task.server, params, judged.ext)

    # ------------------------------------------------------------------------------------------ news

    def wanted(self, wanted: Fields) -> dict[str, Started]:
        """The tasks, by id, whose news a client asks for and may have."""
        ids = json.value_of(wanted.get("taskIds"))
        known = [self._book.find(id, *self._owner) for id in _texts(ids)[:MAX_STARTED]]
        return {task.id: task for task in known if task is not None and self._may_hear_of(task)}

    def listen(self, message: Envelope, tasks: Mapping[str, Started], begin: list[Action]) -> list[Action]:
        """Opens a stream of news of these. begin: its first message, which waits for the servers of the tasks."""
        by_server: dict[str, list[str]] = {}
        for task in tasks.values():
            by_server.setdefault(task.server, []).append(task.its)
        calls = tuple(self._call(message, server, its) for server, its in by_server.items())
        if not calls:
            return begin
        assert message.key is not None
        self._listening[message.key] = _Stream(message.id, frozenset(tasks), calls, list(calls), begin)
        return [Ask(call) for call in calls]

    def unlisten(self, key: Id | None) -> list[Action]:
        """What has to be done when a stream closes."""
        found = self._listening.pop(key, None) if key is not None else None
        calls = [call for call in found.calls if call.key in self._session.in_flight] if found else []
        for call in calls:
            self._session.in_flight.pop(call.key or "", None)
        return [Cancel(call) for call in calls]

    def heard(self, server: str, call: Call | None = None) -> list[Action]:
        """What follows when a server says that it will tell of tasks; or, of a call, that it will not."""
        for stream in self._listening.values():
            found = next(
                (one for one in stream.unheard if one is call or (call is None and one.server == server)), None
            )
            if found is not None:
                stream.unheard.remove(found)
                return [] if stream.unheard else stream.begin
        return []

    def noted(self, server: str, message: Envelope) -> list[Action]:
        """What becomes of a server's news of a task: it goes to its client, while that may use the tool."""
        if message.method == ACKNOWLEDGED:
            return self.heard(server)
        task = self._book.of_server(server, json.text_of(message.params.get("taskId")) or "")
        if task is None or (task.agent, task.caller) != self._owner:
            return []
        self._note(task, message.params)
        key = next((key for key, stream in self._listening.items() if task.id in stream.tasks), None)
        if key is None or not self._may_hear_of(task) or why_not_asked(self._session, server, message.params):
            return []
        about = json.object_of(message.params.get("_meta")) | {META_SUBSCRIPTION: self._listening[key].id}
        params = {**message.params, "taskId": json.encode(task.id), "_meta": json.write(about)}
        return [Reply(json.write({**message.fields, "params": json.write(params)}), key)]

    def _call(self, message: Envelope, server: str, its: list[str]) -> Call:
        key = f"extgate {server} {json.encode(message.key).decode()}"
        params: Fields = {"notifications": json.write({"taskIds": json.encode(its)})}
        if "_meta" in message.params:
            params["_meta"] = message.params["_meta"]
        call = Call(session=self._session, server=server, method=LISTEN, params=params, key=key, is_modern=True)
        self._session.in_flight[key] = call
        return call

    def _may_hear_of(self, task: Started) -> bool:
        door = self._session.door
        ext = door.view.by_name.get(("mcp_tool", task.name))
        is_its = ext is not None and ext.server == task.server and door.gate.is_visible(ext)
        return is_its and not door.why_unavailable()

    @property
    def _owner(self) -> tuple[str, str]:
        return self._session.door.gate.agent, self._session.caller

    def _note(self, task: Started, about: Fields) -> None:
        ttl_ms = json.value_of(about.get("ttlMs"))
        ttl_s = ttl_ms / 1000 if isinstance(ttl_ms, int | float) and ttl_ms >= 0 else MAX_AGE_S
        task.until = self._book.now() + min(ttl_s, MAX_AGE_S)
        task.has_ended = json.text_of(about.get("status")) in ENDED


def why_not_asked(session: Session, server: str, result: Fields) -> str:
    """Why what a server asks of the client in a result may not reach it, recorded; empty when it may."""
    for request in json.object_of(result.get("inputRequests")).values():
        method = json.text_of(json.object_of(request).get("method")) or ""
        what = ASKED.get(method)
        if session.door.may_ask(server, what or method, has=what is not None, session=session.id):
            return f"`{server}` asks the client for `{method[:60]}`, which is not permitted for this agent"
    return ""


def is_declared(message: Envelope) -> bool:
    """Whether a client says with its request that it knows tasks."""
    declared = json.object_of(json.object_of(message.params.get("_meta")).get(META_CAPABILITIES))
    return EXTENSION in json.object_of(declared.get("extensions"))


def are_offered(capabilities: Mapping[str, json.Value]) -> bool:
    """Whether a server says that it has tasks."""
    return EXTENSION in json.object_of(capabilities.get("extensions"))


def undeclared(session: Session, message: Envelope) -> list[Action]:
    """What a client is answered that uses tasks without saying that it knows them."""
    data: dict[str, object] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    return session.fail(message, MISSING_CAPABILITY, f"declare the extension `{EXTENSION}` with the request", data)


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, Iterable) else []
