"""What is remembered of calls that were stopped in answers which the provider keeps.

A request that goes on from such an answer (`previous_response_id`, `conversation`) has to bring an outcome for each of
its calls. The client knows nothing of those that were stopped, so their outcomes are put in for it.
"""

from __future__ import annotations

from extgate.enforce.wire import parts, spans
from extgate.enforce.wire.responses_items import Item, outcome
from extgate.enforce.wire.spans import Edits, Fields, Span
from extgate.enforce.wire.turn import Turn


def answered(data: bytes, turn: Turn) -> bytes:
    """The request with the outcomes of the calls that were stopped in the answer before it."""
    memory = turn.judge.memory
    if not memory.stopped:
        return data
    top = spans.fields(data, Span(0, len(data)), "the request")
    known = [items for key in _keys(data, top, "previous_response_id") if (items := memory.stopped.get(key))]
    if not known:
        return data
    items, edits = b",".join(known), Edits(data)
    if not parts.has(data, top, "input"):
        last = list(top.values())[-1].end
        edits.put(Span(last, last), b',"input":[' + items + b"]")
        return edits.applied() if "input" not in top else data
    span = top["input"].span
    if spans.is_text(data, span):
        edits.put(span, b"[" + items + b',{"role":"user","content":' + parts.cut(data, span) + b"}]")
    else:
        comma = b"," if spans.rows(data, span, "`input`") else b""
        edits.put(Span(span.start, span.start + 1), b"[" + items + comma)
    return edits.applied()


def note(data: bytes, answer: Fields, stopped: list[tuple[Item, str]], turn: Turn) -> None:
    """Remembers an answer's stopped calls. answer: its keys."""
    memory = turn.judge.memory
    items = b",".join(outcome(call, why) for call, why in stopped)
    for key in _keys(data, answer, "id"):
        if items:
            memory.note_stopped(key, items)
        else:
            memory.stopped.pop(key, None)


def _keys(data: bytes, found: Fields, answer: str) -> list[str]:
    """What an answer is remembered by: its id, and the conversation that it stands in."""
    keys = [parts.word(data, found, answer)]
    if parts.has(data, found, "conversation"):
        span = found["conversation"].span
        is_text = spans.is_text(data, span)
        keys.append(
            spans.text(data, span) if is_text else parts.word(data, parts.inner(data, found, "conversation"), "id")
        )
    return [key for key in keys if key]
