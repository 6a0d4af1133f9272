"""What one agent may see of a request: which of its tools stay in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from operator import is_, is_not
from typing import Any

from extgate.core.extension import Extension
from extgate.enforce.above import gates_above
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.langchain_identity import Identities, code_of, marks_of, name_of

_LISTS = 4
"""Most lists of tools that are remembered."""
_FEW = 8
"""Most differences to a list before for which it is of use."""
_LATE = 10_000

Tools = list[Any]


@dataclass(slots=True)
class Memory:
    """What was found under one state of the gates. stamp: the objects that make that state.

    rows: each tool with its mark and whether it stays in a request, by identity. codes: the same by its code. lists:
    the same of the last whole lists.
    """

    stamp: tuple[object, ...]
    rows: dict[int, tuple[object, str, bool]] = field(default_factory=dict)
    codes: dict[object, bool] = field(default_factory=dict)
    lists: deque[tuple[Sequence[Any], list[str], list[bool]]] = field(default_factory=lambda: deque(maxlen=_LISTS))
    late: set[str] = field(default_factory=set)
    hidden: frozenset[str] | None = None
    texts: dict[str, str] = field(default_factory=dict)
    skills: object = None

    def hide(self, name: str) -> None:
        """Notes that something of this name is hidden, which no inventory says."""
        if name not in self.late and len(self.late) < _LATE:
            self.late.add(name)
            self.hidden, self.texts = None, {}


class View:
    """One agent's. The same object is judged once, until a policy or an inventory changes."""

    def __init__(self, gate: Gate, identities: Identities) -> None:
        self.gate, self._identities = gate, identities
        self.added: dict[str, Any] = {}
        """Visible tools that somebody added to a request after it was looked at, by name."""
        self.describe: Callable[[Any], Any] = lambda tool: tool
        """A tool as the model may read of it; set by who reduces listings."""
        self._last: Sequence[Any] = ()
        self._offered: tuple[Sequence[Any], list[str], dict[str, Any]] = ((), [], {})
        self._memory = Memory(())

    @property
    def offered(self) -> dict[str, Any]:
        """The tools of the last request as it came, hidden ones included, by name."""
        marks = marks_of(self._last)
        if self._offered[0] is not self._last or self._offered[1] != marks:
            self._offered = (self._last, marks, {name_of(tool): tool for tool in self._last})
        return self._offered[2]

    def offer(self, tools: Sequence[Any]) -> tuple[Tools, list[str]]:
        """The visible tools of a request with their marks; all of them become those that a catalog can reach."""
        self._last, marks = tools, marks_of(tools)
        stays = self._staying(tools, marks, self.memory(), False)
        return list(compress(tools, stays)), list(compress(marks, stays))

    def keep(self, tools: Sequence[Any], *, is_added: bool = False) -> Tools:
        """The tools that the model may see, in order. is_added: new ones were not in the request before."""
        return list(compress(tools, self._staying(tools, marks_of(tools), self.memory(), is_added)))

    def _staying(self, tools: Sequence[Any], marks: list[str], memory: Memory, is_added: bool) -> list[bool]:
        """Whether each tool stays; only what is not as in a list before is looked at."""
        changed: Sequence[int] = range(len(tools))
        stays = [False] * len(tools)
        for known, known_marks, before in tuple(memory.lists):
            if len(known) == len(tools):
                differing = [at for at, is_same in enumerate(map(is_, known, tools)) if not is_same]
                if marks != known_marks:  # something was renamed
                    differing = [at for at in changed if known[at] is not tools[at] or known_marks[at] != marks[at]]
                if len(differing) <= _FEW:
                    changed, stays = differing, list(before)
                    break
        if not changed:
            return stays
        if self._look_up(changed, tools, marks, stays, memory, is_added):
            memory.lists.appendleft((tuple(tools), marks, stays))
        return stays

    def _look_up(
        self, places: Sequence[int], tools: Sequence[Any], marks: Sequence[str], stays: list[bool], memory: Memory,
        is_added: bool,
    ) -> bool:  # fmt: skip
        """Sets whether the tools in these places stay; False when the list is not worth remembering.

        It is not with definitions, which may be changed in place, with copies, which are made anew, and while the gate
        cannot record, which may pass.
        """
        unknown: list[int] = []
        has_copies = False
        for at in places:
            tool, row = tools[at], memory.rows.get(id(tools[at]))
            found = row[2] if row is not None and row[0] is tool and row[1] == marks[at] else None
            if found is None:
                found = memory.codes.get(code_of(tool))  # somebody's copy of one that is known
                has_copies = has_copies or found is not None
            if found is None:
                unknown.append(at)
            else:
                stays[at] = found
        judged = self._judge([tools[at] for at in unknown], memory, is_added) if unknown else {}
        for at in unknown:
            stays[at] = judged.get(id(tools[at]), False)
            if judged and not isinstance(tools[at], Mapping):
                memory.rows[id(tools[at])] = (tools[at], marks[at], stays[at])
        is_lasting = not unknown or (bool(judged) and not any(isinstance(tools[at], Mapping) for at in unknown))
        return is_lasting and not has_copies

    def _judge(self, tools: Sequence[Any], memory: Memory, is_added: bool) -> dict[int, bool]:
        """Asks the gate whether each stays, by identity; nothing when it cannot record its answers now."""
        found = [self._identities.of(tool) for tool in tools]
        items, caps = [ext for owners in found for ext in owners], gates_above()
        seen = self.gate.see(items)
        if not seen and any(map(self.gate.is_visible, items)):
            return {}
        shown = {id(ext) for ext in seen if all(cap.is_visible(ext) for cap in caps)}
        judged = {}
        for tool, owners in zip(tools, found, strict=True):
            is_visible = all(id(ext) in shown for ext in owners)
            judged[id(tool)] = is_visible and self.gate.decide(owners[0]).delivery == "request"
            if code := code_of(tool):
                memory.codes[code] = judged[id(tool)]
            if not is_visible:
                memory.hide(name_of(tool))
            elif is_added:
                self.added = {} if len(self.added) > _LATE else self.added
                self.added[name_of(tool)] = tool
        return judged

    def memory(self) -> Memory:
        """What is remembered; nothing, when anything changed that an answer depends on."""
        memory, above = self._memory, gates_above()
        stamp: tuple[object, ...] = (self.gate.profile, self.gate.inventory)
        for gate in above:
            stamp += (gate.profile, gate.inventory)
        if len(stamp) != len(memory.stamp) or any(map(is_not, stamp, memory.stamp)):
            memory = self._memory = Memory(stamp)
        return memory

    def owners(self, name: str) -> tuple[Extension, ...]:
        """The installed tools of this name."""
        return self.gate.owners(name, ("tool", "mcp_tool"))

    def is_visible(self, ext: Extension) -> bool:
        """Whether this agent, and those above it, may know of an item."""
        return self.gate.is_visible(ext) and all(cap.is_visible(ext) for cap in gates_above())
