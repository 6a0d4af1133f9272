"""A session's tasks: calls that a server goes on with after it has answered (2025-11-25), each of its client alone.

A task is asked about under the name and the arguments of the call that began it, which are judged again each time: what
an agent may no longer use it may no longer have the result of. Ending a task needs no permission.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from extgate.enforce.mcp import envelope as json
from extgate.enforce.mcp.call import Action, Call, Reply
from extgate.enforce.mcp.envelope import INVALID_PARAMS, METHOD_NOT_FOUND, REFUSED, Envelope, Value
from extgate.enforce.mcp.long import Data, Long

if TYPE_CHECKING:
    from extgate.enforce.mcp.session import Session

VERSION = "2025-11-25"
MAX_TASKS = 200
MAX_ARGUMENTS = 256 * 1024
"""Longest arguments of a task, which are kept to be judged again, in bytes."""
EXTENSION = "io.modelcontextprotocol/tasks"
"""What the stateless era calls them; see `started`."""
ENDED = frozenset({"completed", "failed", "cancelled"})


@dataclass(slots=True)
class Task:
    """name, arguments: of the call that began it, as the client gave them. about: what its server last told of it."""

    server: str
    name: str
    arguments: Value | None
    about: json.Fields


class Tasks:
    """The tasks that one session has begun, by the id that their server gave them."""

    def __init__(self, session: Session) -> None:
        self._session: Session = weakref.proxy(session)  # so that one that ended goes at once
        self._known: dict[str, Task] = {}

    def why_not(self, arguments: Value | None) -> str:
        """Why no further task may be begun; empty when one may. Forgets the oldest of those that have ended."""
        if arguments is not None and len(bytes(arguments)) > MAX_ARGUMENTS:
            return f"the arguments of a task may have {MAX_ARGUMENTS} bytes"
        if len(self._known) >= MAX_TASKS:
            ended = next((id for id, t in self._known.items() if json.text_of(t.about.get("status")) in ENDED), None)
            if ended is None:
                return f"more than {MAX_TASKS} tasks are under way"
            del self._known[ended]
        return ""

    def ask(self, message: Envelope) -> list[Action]:
        """What becomes of `tasks/get`, `tasks/result` and `tasks/cancel`."""
        session, id = self._session, json.text_of(message.params.get("taskId"))
        if session.version != VERSION:
            return session.fail(message, METHOD_NOT_FOUND, f"no method `{message.method}`")
        if id is None:
            return session.fail(message, INVALID_PARAMS, "`taskId` is no text")
        task, action = self._known.get(id), message.method.partition("/")[2]
        if task is None:
            session.door.gate.refuse_unknown(id, "mcp_tool", {}, action=f"task {action}", session=session.id)
            return session.fail(message, INVALID_PARAMS, "this session has no such task")
        if action == "cancel":
            return session.ask(message, task.server, message.params)
        judged = session.door.judge("mcp_tool", task.name, task.arguments, action=f"task {action}", session=session.id)
        if judged.ext is None or judged.ext.server != task.server:
            why = judged.message or f"'{task.name}' is another tool by now."
            return session.fail(message, REFUSED, why)
        return session.ask(message, task.server, message.params, judged.ext)

    def page(self, message: Envelope) -> list[Action]:
        """The session's tasks, as their servers last told of them; one page."""
        if self._session.version != VERSION:
            return self._session.fail(message, METHOD_NOT_FOUND, "no method `tasks/list`")
        rows = b",".join(json.write(task.about) for task in self._known.values())
        return [Reply(json.result(message.id, b'{"tasks":[' + rows + b"]}"), message.key, is_last=True)]

    def answered(self, call: Call, data: Data) -> Data:
        """Takes note of what an answer says of a task; the answer, or an error where it cannot be the client's."""
        if isinstance(data, Long):
            return data
        about = json.object_of(json.object_of(data).get("result"))
        about = about if call.task is None else json.object_of(about.get("task"))
        id = json.text_of(about.get("taskId"))
        if id is None:
            return data
        known = self._known.get(id)
        if call.task is None:
            if known is not None and known.server == call.server:
                known.about = {key: value for key, value in about.items() if key != "_meta"}
        elif known is not None:
            return json.refusal(call.id, f"the server `{call.server}` gave its task an id that another task has")
        else:
            self._known[id] = Task(call.server, *call.task, about)
        return data

    def told(self, server: str, message: Envelope) -> list[Action]:
        """What becomes of a server's news of a task: it goes to its client, while that may use the tool."""
        task = self._known.get(json.text_of(message.params.get("taskId")) or "")
        if task is None or task.server != server:
            return []
        task.about = {key: value for key, value in message.params.items() if key != "_meta"}
        door = self._session.door
        ext = door.view.by_name.get(("mcp_tool", task.name))
        is_known = ext is not None and ext.server == server and door.gate.is_visible(ext)
        return [Reply(json.write(message.fields))] if is_known and not door.why_unavailable() else []


def are_offered(capabilities: Value | None) -> bool:
    """Whether a server's `tasks` capability is one for tool calls."""
    return "call" in json.object_of(json.object_of(json.object_of(capabilities).get("requests")).get("tools"))
