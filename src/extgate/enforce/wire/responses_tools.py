"""What the entries of a Responses request's `tools` offer, wherever such a list stands.

Source: the types of the official SDK, openai 3.57.0, and Codex 0.171.0's requests (2026-11-30).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from extgate.enforce.wire import parts, spans
from extgate.enforce.wire.judge import Entry
from extgate.enforce.wire.listings_schema import describe
from extgate.enforce.wire.listings_tagged import read_text
from extgate.enforce.wire.openai_entries import HOSTED, hosted_entry
from extgate.enforce.wire.reading import Group, Reading
from extgate.enforce.wire.responses_mcp import Servers
from extgate.enforce.wire.spans import Fields, Span, UnclearError

_CALLED = frozenset(
    {"type", "name", "description", "parameters", "strict", "defer_loading", "allowed_callers", "output_schema"}
    | {"async", "format", "cache_control"}
)
_SPACE = frozenset({"type", "name", "description", "tools", "defer_loading", "cache_control"})
_ENVIRONMENT = frozenset({"type", "file_ids", "memory_limit", "network_policy", "skills", "container_id"})


class Tools:
    """Reads every list of tools of one request into a reading's groups. servers: those that the provider calls."""

    def __init__(self, reading: Reading, servers: Servers) -> None:
        self._reading, self._data, self._servers = reading, reading.data, servers

    def read(self, rows: list[Span], empty: Callable[[], None] | None, namespace: str = "") -> Group:
        """One list's group. empty: what is done when nothing is left of it."""
        later: list[Callable[[Group], None]] = [self._entry(at, row, namespace) for at, row in enumerate(rows)]
        group = self._reading.group(rows, empty)  # behind those inside it, which may take its rows out
        for add in later:
            add(group)
        return group

    def _entry(self, at: int, row: Span, namespace: str) -> Callable[[Group], None]:
        where = f"tool {at}"
        found = spans.fields(self._data, row, where)
        kind = parts.word(self._data, found, "type") or ("function" if "name" in found else "")
        if kind in ("function", "custom"):
            return partial(self._called, found, at, namespace)
        if namespace:
            raise UnclearError(f"{where} of the namespace `{namespace[:60]}` is of the type `{kind[:60]}`")
        if kind == "namespace":
            return self._space(found, at)
        if kind == "mcp":
            return partial(self._servers.add, found, at)
        self._reading.check_keys(found, HOSTED, where)
        if kind == "shell":
            self._skills(parts.inner(self._data, found, "environment"))
        entry = hosted_entry(kind, self._reading.options, where)
        if "description" in found and spans.is_text(self._data, found["description"].span):
            read_text(self._reading, found["description"].span)
        return lambda group: group.add(at, entry, names=[("", entry.name)])

    def _called(self, found: Fields, at: int, namespace: str, group: Group) -> None:
        self._reading.check_keys(found, _CALLED, f"tool {at}")
        name = parts.word(self._data, found, "name")
        if not name:
            raise UnclearError(f"tool {at} has no name")
        group.add(at, Entry(name, namespace=namespace), names=[(namespace, name)])
        describe(self._reading, found, name)

    def _space(self, found: Fields, at: int) -> Callable[[Group], None]:
        """A namespace, which goes when nothing is left in it."""
        self._reading.check_keys(found, _SPACE, f"tool {at}")
        name = parts.word(self._data, found, "name")
        if not name:
            raise UnclearError(f"tool {at} is a namespace without a name")
        outer: list[Group] = []
        self.read(parts.listed(self._data, found, "tools"), lambda: outer[0].hidden.add(at), name)
        return outer.append

    def _skills(self, environment: Fields) -> None:
        """The skills that a shell's environment brings."""
        self._reading.check_keys(environment, _ENVIRONMENT, "a shell's environment")
        rows = parts.listed(self._data, environment, "skills")
        group = self._reading.group(rows, partial(self._reading.drop_keys, environment, ("skills",)))
        for at, row in enumerate(rows):
            found = spans.fields(self._data, row, "a skill of a shell")
            names = [parts.word(self._data, found, key) for key in ("name", "skill_id")]
            if not any(names):
                raise UnclearError("a skill of a shell has neither `name` nor `skill_id`")
            group.add(at, *(Entry(name, ("skill",)) for name in names if name))
