"""A request while it is read: what it offers is gathered, judged at once, and the hidden is taken out.

For every dialect: a group is a list or an object whose rows stand for entries, a text is one with listings in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from extgate.core.names import server_names, show
from extgate.enforce.wire import spans
from extgate.enforce.wire.judge import Entry
from extgate.enforce.wire.listings import Listed, Section, cuts
from extgate.enforce.wire.provider import Options
from extgate.enforce.wire.spans import Edits, Field, Fields, Span, UnclearError
from extgate.enforce.wire.turn import Turn

_SUSPECT = re.compile(r"tool|function|mcp|skill|agent|plugin|connector|server|definition|schema|action|command", re.I)
"""Words in a key nobody here knows that make it a place where a tool could hide."""
MAX_DEPTH = 60
MAX_ENTRIES = 100_000
"""Most rows of lists and entries of listings of one request."""


@dataclass(slots=True)
class Group:
    """Rows of one list, or keys of one object, of which those that stand for something hidden go.

    empty: what is done when no row is left, instead of leaving an empty list. offers: by row what it stands for; the
    row goes when any of that is hidden. names: by row the (namespace, name)s by which what stays may be called.
    """

    rows: Sequence[Span | Field]
    empty: Callable[[], None] | None = None
    offers: dict[int, list[Entry]] = field(default_factory=dict)
    names: dict[int, list[tuple[str, str]]] = field(default_factory=dict)
    hidden: set[int] = field(default_factory=set)

    def add(self, row: int, *found: Entry, names: Iterable[tuple[str, str]] = ()) -> None:
        """Notes what a row stands for."""
        self.offers.setdefault(row, []).extend(found)
        self.names.setdefault(row, []).extend(names)

    @property
    def is_empty(self) -> bool:
        return len(self.hidden) == len(self.rows)


class Reading:
    """One request's. Raises UnclearError for what must not be guessed at."""

    def __init__(self, data: bytes, turn: Turn, options: Options) -> None:
        self.data, self.turn, self.options = data, turn, options
        self.edits = Edits(data)
        self._groups: list[Group] = []
        self._texts: list[tuple[Span, str, list[Section]]] = []
        self._entries = 0

    # ------------------------------------------------------------------------------------------ gathering

    def group(self, rows: Sequence[Span | Field], empty: Callable[[], None] | None = None) -> Group:
        """A new group over these rows."""
        self._grow(len(rows))
        made = Group(rows, empty)
        self._groups.append(made)
        return made

    def add_text(self, span: Span, text: str, found: list[Section]) -> None:
        """A text with listings in it, at its place."""
        if found:
            self._grow(sum(len(section.items) for section in found))
            self._texts.append((span, text, found))

    def _grow(self, more: int) -> None:
        self._entries += more
        if self._entries > MAX_ENTRIES:
            raise UnclearError(f"the request lists more than {MAX_ENTRIES} things")

    def unless_quiet(self, reader: str, span: Span, read: Callable[[], bool]) -> None:
        """Reads a message, but not one that was found, byte by byte the same, to have nothing in it to judge.

        reader: names what reads it. read: says whether it found something besides entries and listings that matters.
        """
        memory, before = self.turn.judge.memory, (len(self._groups), len(self._texts))
        # Such a message reads alike for every agent and inventory; what it may hide in unknown keys is a setting.
        digest = blake2b(f"{reader} {self.options.unknown} ".encode(), digest_size=16)
        digest.update(memoryview(self.data)[span.start : span.end])
        key = digest.digest()
        if key in memory.quiet:
            return
        is_loud = read() or len(self._texts) > before[1] or any(group.offers for group in self._groups[before[0] :])
        if not is_loud:
            memory.keep_quiet(key)

    def check_keys(self, found: Fields, known: Set[str], where: str) -> None:
        """Refuses keys that are not known where a tool could hide; others may pass, whatever they are."""
        if found.keys() <= known:
            return
        for key, place in found.items():
            if key in known:
                continue
            if key.upper().casefold() in known:
                raise UnclearError(f"{where} has the key `{show(key)[:60]}`, a known one in other letters")
            if self.options.unknown == "refuse" and self._could_hide(key, place.span):
                raise UnclearError(f"{where} has the key `{show(key)[:60]}`, which is not known and could hold tools")

    def _could_hide(self, key: str, span: Span) -> bool:
        if _SUSPECT.search(key):
            return True
        if not (spans.is_object(self.data, span) or spans.is_array(self.data, span)):
            return False
        return _has_suspect_key(spans.value(self.data, span), 0)

    # ------------------------------------------------------------------------------------------ judging

    def judge(self) -> None:
        """Asks about everything, takes the hidden out and offers the rest."""
        judge = self.turn.judge
        asked = [entry for group in self._groups for found in group.offers.values() for entry in found]
        listed = [i for _, _, found in self._texts for s in found for i in s.items if not i.is_server]
        answers = iter(judge.see([*asked, *(item.entry for item in listed)]))
        for group in self._groups:
            for row, found in group.offers.items():
                passed = [next(answers) for _ in found]
                if not all(passed):
                    group.hidden.add(row)
                else:
                    for namespace, name in group.names[row]:
                        self.turn.offer(found[0], name, namespace)
        seen = {id(item): next(answers) for item in listed}
        self._edit(seen)

    def _edit(self, seen: dict[int, bool]) -> None:
        for group in self._groups:
            if group.is_empty and group.empty is not None and group.hidden:
                group.empty()
            else:
                self.edits.drop(group.rows, group.hidden)
        for span, text, found in self._texts:
            pieces = cuts(text, found, lambda item: not self._is_listed(item, seen))
            if pieces:
                self.edits.put(span, spans.cut_text(self.data, span, pieces))
            for section in found:
                for item in section.items if section.announces else ():
                    if seen[id(item)]:
                        self.turn.offer(item.entry, item.entry.name)

    def _is_listed(self, item: Listed, seen: dict[int, bool]) -> bool:
        return self.sees_server(item.entry.name) if item.is_server else seen[id(item)]

    def sees_server(self, said: str) -> bool:
        """Whether something of the servers that a text means by this may be seen, of all that it could mean."""
        judge = self.turn.judge
        known = [s.name for s in judge.gate.inventory.servers if said in server_names(s.name)]
        return all(judge.sees_server(name) for name in known or [said])

    # ------------------------------------------------------------------------------------------ taking out

    def drop_keys(self, found: Fields, keys: Collection[str]) -> None:
        """Takes keys out of an object."""
        self.edits.drop(list(found.values()), [at for at, key in enumerate(found) if key in keys])


def _has_suspect_key(value: Any, depth: int) -> bool:
    if depth > MAX_DEPTH:
        return True
    if isinstance(value, dict):
        return any(_SUSPECT.search(k) or _has_suspect_key(v, depth + 1) for k, v in value.items())
    return isinstance(value, list) and any(_has_suspect_key(v, depth + 1) for v in value)
