"""What was said before is read once, and whatever has to be judged is judged each time."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from extgate.enforce.wire.anthropic import MESSAGES
from extgate.enforce.wire.gemini import CONTENT
from extgate.enforce.wire.judge import Judge, Memory
from extgate.enforce.wire.openai import CHAT, RESPONSES
from extgate.enforce.wire.provider import Api, Options
from extgate.enforce.wire.spans import UnclearError
from extgate.enforce.wire.turn import Turn
from tests.unit.enforce.wire.world import GENERIC, Json, gate

DENY = "tools: {disabled: [Bash]}\nskills: {disabled: [secret]}"
LISTING = "<available_skills>\n  ops:\n    - open: O\n    - secret: S\n</available_skills>\n"
TEXTS = st.sampled_from(["hi", LISTING, "<available_skills>", "é"])
ANY = st.one_of(
    st.builds(lambda text: {"role": "user", "content": text}, TEXTS),
    st.builds(lambda text: {"role": "user", "content": [{"type": "text", "text": text}]}, TEXTS),
    st.builds(lambda text: {"role": "user", "parts": [{"text": text}]}, TEXTS),
    st.builds(lambda text: {"type": "message", "content": [{"type": "input_text", "text": text}]}, TEXTS),
    st.builds(
        lambda name: {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [
            {"type": "tool_reference", "tool_name": name}]}]},
        st.sampled_from(["Bash", "Read"]),
    ),
    st.builds(
        lambda name: {"type": "additional_tools", "role": "user", "tools": [{"type": "function", "name": name}]},
        st.sampled_from(["Bash", "Read"]),
    ),
    st.just({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]}),
    st.just({"role": "user", "content": "hi", "more_tools": [{"name": "Bash"}]}),
    st.just({"role": "user", "content": [{"type": "new", "tools": [{"name": "Bash"}]}]}),
)  # fmt: skip


def _bodies(messages: list[Json]) -> list[tuple[Api, bytes]]:
    """The same messages as each API would have them; most fit only one of them."""
    tools: list[Any] = [{"name": "Bash", "description": "", "input_schema": {}}]
    return [
        (MESSAGES, json.dumps({"model": "m", "messages": messages, "tools": tools}).encode()),
        (CHAT, json.dumps({"model": "m", "messages": messages}).encode()),
        (RESPONSES, json.dumps({"model": "m", "input": messages}).encode()),
        (CONTENT, json.dumps({"contents": messages}).encode()),
    ]


def _read(api: Api, data: bytes, unknown: Any, memory: Memory) -> tuple[str, bytes, frozenset[str]]:
    turn = Turn(Judge(gate(DENY), GENERIC, memory=memory))
    try:
        return "", api.request(data, turn, Options(unknown=unknown)), turn.names()
    except UnclearError as error:
        return str(error), b"", frozenset()


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.lists(ANY, min_size=1, max_size=4), st.sampled_from(["refuse", "pass"])), min_size=2, max_size=4
    )
)
def test_a_request_is_read_alike_whatever_was_read_before_it(requests: list[tuple[list[Json], str]]) -> None:
    memory = Memory()
    for messages, unknown in requests:
        for api, data in _bodies(messages):
            assert _read(api, data, unknown, memory) == _read(api, data, unknown, Memory())


def test_only_messages_without_anything_to_judge_are_remembered() -> None:
    memory = Memory()
    plain = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "text", "text": "yes"}]}]
    loud = [
        {"role": "user", "content": LISTING},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]},
    ]
    _read(*_bodies(plain + loud)[0], "refuse", memory)
    assert len(memory.quiet) == len(plain)
