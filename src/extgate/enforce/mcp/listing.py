"""A session's lists: pages with honest cursors, and one notice for each list that became another."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from extgate.enforce.mcp import envelope as json
from extgate.enforce.mcp import tasks
from extgate.enforce.mcp.call import META_SUBSCRIPTION, MODERN, Action, Reply, is_modern
from extgate.enforce.mcp.catalog import CHANGED, View
from extgate.enforce.mcp.envelope import INVALID_PARAMS, REFUSED, Envelope, Id
from extgate.enforce.mcp.long import Long, parts_of
from extgate.enforce.mcp.started import ACKNOWLEDGED, is_declared, undeclared

if TYPE_CHECKING:
    from extgate.enforce.mcp.session import Session

_WHAT = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}

SHARED = 64 * 1024
"""Longer pages are sent from where they are kept, without a copy for each client; in bytes."""


class Lists:
    """What one client was told, and the streams on which it listens for news."""

    def __init__(self, session: Session) -> None:
        self._session: Session = weakref.proxy(session)  # so that one that ended goes at once
        self._told: dict[str, str] = {}
        self._listening: dict[Id, tuple[bytes, frozenset[str]]] = {}

    def page(self, message: Envelope) -> list[Action]:
        """One page of a list. A cursor of a list that is another by now is refused, never answered with a gap."""
        session, what = self._session, _WHAT[message.method]
        if (why := session.door.why_unavailable()) and session.door.options.unavailable == "error":
            return [Reply(json.error(message.id, REFUSED, why), message.key, is_last=True)]
        view = session.door.view
        start = _start(message.params.get("cursor"), view.marks[what])
        if start is None:
            text = "the cursor is not of this list as it is now; list it from the start"
            return [Reply(json.error(message.id, INVALID_PARAMS, text), message.key, is_last=True)]
        self._tell(view)
        end = start + session.limits.page
        page = view.page(what, start, session.limits.page)
        body: dict[str, json.Value] = {what: page}
        if end < len(view.lists[what]):
            body["nextCursor"] = json.encode(f"{view.marks[what]}.{end}")
        if is_modern(message):
            body |= {"resultType": b'"complete"', "ttlMs": b"0", "cacheScope": b'"private"'}
        if len(page) < SHARED:
            return [Reply(json.result(message.id, json.write(body)), message.key, is_last=True)]
        parts = parts_of({"jsonrpc": b'"2.0"', "id": message.id, "result": parts_of(body)})
        again = json.error(message.id, REFUSED, "this answer was sent once; ask for the list again")
        return [Reply(Long(parts, None, again), message.key, is_last=True)]

    def listen(self, message: Envelope) -> list[Action]:
        """Opens a stream of notices; the request stays open. What is not offered is left out of the acknowledgement."""
        wanted = json.object_of(message.params.get("notifications"))
        words = frozenset(w for w in ("tools", "prompts", "resources") if is_true(wanted.get(f"{w}ListChanged")))
        assert message.key is not None
        if len(self._listening) >= self._session.limits.in_flight:
            return [Reply(json.error(message.id, REFUSED, "too many streams are open"), message.key, is_last=True)]
        if "taskIds" in wanted and not is_declared(message):
            return undeclared(self._session, message)
        self._listening[message.key] = (message.id, words)
        self._tell(self._session.door.view)
        honoured = {f"{word}ListChanged": b"true" for word in sorted(words)}
        tasks = self._session.started.wanted(wanted)
        if tasks:
            honoured["taskIds"] = json.encode(list(tasks))
        begin = self._notice(ACKNOWLEDGED, message.key, {"notifications": json.write(honoured)})
        return self._session.started.listen(message, tasks, [begin])

    def unlisten(self, key: Id | None) -> list[Action]:
        """Closes a stream."""
        if key is not None:
            self._listening.pop(key, None)
        return self._session.started.unlisten(key)

    def _tell(self, view: View) -> None:
        """Once a client has any list it is told of changes in all: it may have them from before."""
        self._told = self._told or dict(view.marks)

    def changed(self) -> list[Action]:
        """One notice for each kind whose list is another than the client was last told."""
        if not self._told:
            return []
        marks = dict(self._session.door.view.marks)
        words = dict.fromkeys(CHANGED[what] for what, mark in marks.items() if mark != self._told.get(what))
        self._told = marks
        actions: list[Action] = []
        for word in words:
            method = f"notifications/{word}/list_changed"
            if self._session.is_open:
                actions.append(Reply(json.request(b"", method, None)))
            keys = [key for key, (_, wanted) in self._listening.items() if word in wanted]
            actions += [self._notice(method, key, {}) for key in keys]
        return actions

    def _notice(self, method: str, key: Id, params: dict[str, json.Value]) -> Reply:
        meta = json.write({META_SUBSCRIPTION: self._listening[key][0]})
        return Reply(json.request(b"", method, {**params, "_meta": meta}), key)


def is_true(value: json.Value | None) -> bool:
    return value is not None and bytes(value) == b"true"


def _start(cursor: json.Value | None, mark: str) -> int | None:
    if cursor is None or bytes(cursor) == b"null":
        return 0
    of, _, offset = (json.text_of(cursor) or "").partition(".")
    return int(offset) if of == mark and offset.isascii() and offset.isdigit() and len(offset) < 10 else None


def capabilities(view: View, version: str) -> dict[str, object]:
    """What the gateway offers: every list, which may be empty and may change, and what some visible server has."""
    is_modern = version in MODERN
    resources: dict[str, object] = {"listChanged": True}
    if "subscribe" in view.capabilities and not is_modern:
        resources["subscribe"] = True
    found: dict[str, object] = {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": resources,
    }
    if "completions" in view.capabilities:
        found["completions"] = {}
    if "logging" in view.capabilities and not is_modern:
        found["logging"] = {}
    if "tasks" in view.capabilities and version == tasks.VERSION:
        found["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    if tasks.EXTENSION in view.capabilities and is_modern:
        found["extensions"] = {tasks.EXTENSION: {}}
    return found
