"""A whole Responses answer without the calls that may not run: a message says why in the place of each."""

from __future__ import annotations

from collections.abc import Callable

from extgate.enforce.wire import parts, responses_items, responses_stopped, spans
from extgate.enforce.wire.judge import Entry
from extgate.enforce.wire.responses_items import Item
from extgate.enforce.wire.spans import Edits, Fields, Span
from extgate.enforce.wire.turn import Turn

_ANSWER = frozenset({"output", "id", "conversation", "tools", "status"})


def answer(data: bytes, turn: Turn) -> bytes:
    """The whole answer; the very same bytes when every call may run. Raises UnclearError."""
    edits = Edits(data)
    filtered(data, spans.checked(data), turn, edits, lambda call: responses_items.finished(turn, call))
    return edits.applied()


def kept(data: bytes, turn: Turn) -> bytes:
    """An answer that the provider has kept: it says itself what it was offered, of which the visible may be called."""
    top = parts.exact(data, spans.checked(data), _ANSWER, "the answer")
    offer_again(data, top, turn)
    return answer(data, turn)


def filtered(data: bytes, span: Span, turn: Turn, edits: Edits, judged: Callable[[Item], str]) -> None:
    """Takes the stopped calls out of an answer's output, and remembers them."""
    found = parts.exact(data, span, _ANSWER, "the answer")
    stopped: list[tuple[Item, str]] = []
    for row in parts.listed(data, found, "output"):
        call = responses_items.item(data, row)
        why = judged(call) if call is not None else ""
        if call is not None and why:
            stopped.append((call, why))
            edits.put(row, spans.encode(responses_items.message(call, why)))
    responses_stopped.note(data, found, stopped, turn)


def offer_again(data: bytes, found: Fields, turn: Turn) -> None:
    """Offers what an answer says that it was offered, as far as it may be seen now."""
    if not parts.has(data, found, "tools"):
        return
    for row in parts.listed(data, found, "tools"):
        tool = spans.fields(data, row, "a tool of the answer")
        name = parts.word(data, tool, "name")
        if parts.word(data, tool, "type") == "namespace":
            for inner in parts.listed(data, tool, "tools"):
                _offer(turn, parts.word(data, spans.fields(data, inner, "a tool of the answer"), "name"), name)
        else:
            _offer(turn, name or responses_items.hosted(parts.word(data, tool, "type")), "")


def _offer(turn: Turn, name: str, namespace: str) -> None:
    entry = Entry(name, namespace=namespace)
    if name and turn.judge.sees(entry):
        turn.offer(entry, name, namespace)
