"""One request and its answer: what was let through, and whether each call of the answer may reach the client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extgate.enforce.mcp.envelope import has_twins, value_of
from extgate.enforce.wire.clients import CALLABLE
from extgate.enforce.wire.judge import Entry, Judge

_NOT_OFFERED = "was not offered to this agent"
_NOT_JSON = "was called with arguments that are not one clear JSON object"
_TOO_LONG = "was called with longer arguments than are judged"

Key = tuple[str, str]


class Turn:
    """What a dialect fills while it reads a request, and asks while it reads the answer.

    max_arguments: longest arguments that are held back to be judged, in bytes. notes: what the rim should say of the
    request, if anything.
    """

    def __init__(self, judge: Judge, *, max_arguments: int = 1024 * 1024) -> None:
        self.judge, self.max_arguments = judge, max_arguments
        self._offered: dict[Key, Entry] = {}
        self._reads_arguments = judge.reads_arguments()

    def offer(self, entry: Entry, name: str, namespace: str = "") -> None:
        """Notes that this was let through: it may be called by exactly this name."""
        self._offered.setdefault((namespace, name), entry)

    def names(self) -> frozenset[str]:
        """Every name that was let through, outside of namespaces."""
        return frozenset(name for namespace, name in self._offered if not namespace)

    def offered(self, name: str, namespace: str = "") -> Entry | None:
        """What was let through under exactly this name."""
        return self._offered.get((namespace, name))

    def begin(self, name: str, namespace: str = "") -> str | None:
        """Asked as soon as a call's name is known: why it is stopped, or the empty text; None: `finish` has to say.

        What is stopped or let through is recorded.
        """
        entry = self.offered(name, namespace)
        if entry is None:
            return self._refuse(name, namespace)
        if self.reads_arguments(name):
            return None
        return self.judge.use(entry, {})

    def finish(self, name: str, arguments: bytes | None, namespace: str = "") -> str:
        """Asked once a call is whole: why it is stopped; empty when it may go on.

        arguments: as they came, empty for none; None when there were too many of them.
        """
        entry = self.offered(name, namespace)
        if entry is None:
            return self._refuse(name, namespace)
        if not self.reads_arguments(name):
            return self.judge.use(entry, {})
        if arguments is None:
            return self.judge.refuse(entry, _TOO_LONG)
        args = _object(arguments)
        if args is None:
            return self.judge.refuse(entry, _NOT_JSON)
        return self.judge_targets(name, args) or self.judge.use(entry, args)

    def judge_targets(self, name: str, args: Mapping[str, Any]) -> str:
        """Why what the call would run or open is refused; empty when it is not, or there is nothing such."""
        meta = self.judge.meta(name)
        for target in meta(args) if meta else ():
            if why := self.judge.use_target(target):
                return why
        return ""

    def reads_arguments(self, name: str) -> bool:
        """Whether a call of this name can only be judged with its arguments."""
        # Rules may change while an answer comes in: what is asked now must not be missed.
        return self.judge.meta(name) is not None or self._reads_arguments or self.judge.reads_arguments()

    def _refuse(self, name: str, namespace: str) -> str:
        return self.judge.refuse(Entry(name, CALLABLE, namespace=namespace), _NOT_OFFERED)


def _object(arguments: bytes) -> Mapping[str, Any] | None:
    if not arguments.strip():
        return {}
    found = value_of(arguments)
    return found if isinstance(found, dict) and not has_twins(arguments) else None
