"""Chat Completions answers without the calls that may not run, whole and streamed, at every split of the bytes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extgate.enforce.wire.openai import CHAT
from extgate.enforce.wire.spans import UnclearError
from extgate.enforce.wire.turn import Turn
from tests.unit.enforce.wire.openai_world import (
    by_sdk,
    call,
    chosen,
    chunk,
    completion,
    custom,
    data,
    delta,
    every_split,
    filtered,
    streamed,
    told,
)
from tests.unit.enforce.wire.world import GENERIC, Json, offering

DENIED = "tools: {disabled: [bash]}\nskills: {disabled: [secret]}\nsubagents: {disabled: [spy]}"
ASKS_ARGUMENTS = "tools: {disabled: [bash]}"


def turn(text: str = DENIED, *names: str, **more: Any) -> Turn:
    return offering(text, *(names or ("bash", "read", "skill", "task")), client=GENERIC, **more)


def whole(content: Json, one: Turn) -> Json:
    made: Json = json.loads(CHAT.answer(json.dumps(content).encode(), one))
    return made


NO = "'bash' is disabled for this agent."
READ = call("read", path="/x")
READS = ("read", '{"path": "/x"}')
CASES: list[tuple[Json, tuple[str | None, list[tuple[str, str]], str | None]]] = [
    (chosen(call("bash", command="ls")), (NO, [], "stop")),
    (chosen(call("bash", command="ls"), content="so"), (f"so\n\n{NO}", [], "stop")),
    (chosen(call("bash"), READ), (NO, [READS], "tool_calls")),
    (chosen(READ, call("bash"), call("bash")), (f"{NO}\n\n{NO}", [READS], "tool_calls")),
    (chosen(call("Read", path="/x")), ("'Read' was not offered to this agent.", [], "stop")),
    (chosen(call("skill", name="secret")), ("'secret' is disabled for this agent.", [], "stop")),
    (chosen(call("skill", name="fine")), (None, [("skill", '{"name": "fine"}')], "tool_calls")),
    (chosen(call("task", subagent_type="spy"), READ), ("'spy' is disabled for this agent.", [READS], "tool_calls")),
    (chosen(content="text", end="stop"), ("text", [], "stop")),
]


@pytest.mark.parametrize("case", CASES)
def test_calls_that_may_not_run_become_text_in_a_whole_answer(case: Any) -> None:
    given, wanted = case
    assert told(whole(completion(given), turn())) == [wanted]


def joined(text: str | None) -> str:
    """Without the blank lines, which stand where the reasons came apart."""
    return re.sub(r"\s+", " ", text or "").strip().replace("..", ". ")


@pytest.mark.parametrize("case", CASES)
def test_the_official_client_reads_the_same_from_a_stream(case: Any) -> None:
    given, (text, calls, end) = case
    [(said, made, ended)] = by_sdk(filtered(CHAT, streamed(completion(given)), turn()))
    assert (joined(said).replace(".'", ". '"), made, ended) == (joined(text), calls, end)


@pytest.mark.parametrize("case", CASES[1:4:2])
def test_every_split_of_the_bytes_gives_the_same_stream(case: Any) -> None:
    stream = streamed(completion(case[0]), 9)
    wanted = filtered(CHAT, stream, turn())
    assert {filtered(CHAT, stream, turn(), cuts) for cuts in every_split(len(stream), 11)} == {wanted}


@pytest.mark.parametrize("case", CASES)
def test_allowed_calls_come_out_as_the_very_same_bytes(case: Any) -> None:
    answer = json.dumps(completion(case[0])).encode()
    one = turn("", "bash", "read", "Read", "skill", "task")
    assert CHAT.answer(answer, one) == answer
    stream = streamed(completion(case[0]))
    assert filtered(CHAT, stream, one) == stream


def test_choices_are_told_apart() -> None:
    both = completion(chosen(call("bash")), chosen(READ, index=1))
    assert told(whole(both, turn())) == [(NO, [], "stop"), (None, [READS], "tool_calls")]
    assert by_sdk(filtered(CHAT, streamed(both), turn())) == [(NO, [], "stop"), (None, [READS], "tool_calls")]


def test_choices_that_come_in_turns_are_told_apart() -> None:
    name = {"index": 0, "id": "a", "type": "function", "function": {"name": "bash", "arguments": ""}}
    other = {"index": 0, "id": "b", "type": "function", "function": {"name": "read", "arguments": ""}}
    stream = b"".join(
        [
            chunk(delta(0, role="assistant", tool_calls=[name]), delta(1, role="assistant", tool_calls=[other])),
            chunk(delta(1, tool_calls=[{"index": 0, "function": {"arguments": "{}"}}])),
            chunk(delta(0, tool_calls=[{"index": 0, "function": {"arguments": "{}"}}])),
            chunk(delta(0, end="tool_calls"), delta(1, end="tool_calls")),
        ]
    )
    assert by_sdk(filtered(CHAT, stream, turn())) == [(NO, [], "stop"), (None, [("read", "{}")], "tool_calls")]


def piece(index: int, **function: str) -> bytes:
    return chunk(delta(tool_calls=[{"index": index, "function": function}]))


def test_a_name_in_pieces_is_judged_whole() -> None:
    stream = b"".join(
        [piece(0, name="ba"), piece(0, name="sh"), piece(0, arguments="{}"), chunk(delta(end="tool_calls"))]
    )
    assert by_sdk(filtered(CHAT, stream, turn("", "ba", "sh"))) == [
        ("'bash' was not offered to this agent.", [], "stop")
    ]
    made = filtered(CHAT, stream, turn("", "bash"))
    assert by_sdk(made) == [(None, [("bash", "{}")], "tool_calls")]
    assert b'"ba"' not in made  # nobody who takes the first piece for the name runs another tool


def test_a_name_that_is_said_again_is_said_once() -> None:
    stream = b"".join([piece(0, name="read", arguments="{"), piece(0, name="read", arguments="}")])
    with pytest.raises(UnclearError):
        filtered(CHAT, stream + piece(0, name="bash"), turn())
    assert filtered(CHAT, stream, turn()).count(b'"read"') in (1, 2)


def test_numbers_close_up_behind_a_stopped_call() -> None:
    answer = completion(chosen(READ, call("bash"), call("skill", name="fine")))
    made = filtered(CHAT, streamed(answer), turn())
    assert sorted(set(re.findall(rb'"tool_calls": ?\[\{"index": ?(\d)', made))) == [b"0", b"1"]


def test_a_call_without_a_number_is_judged() -> None:
    one = {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    stream = chunk(delta(tool_calls=[one, one | {"function": {"name": "read", "arguments": "{}"}}]))
    made = filtered(CHAT, stream, turn())
    assert b'"bash"' not in made
    assert b'"read"' in made


def test_the_older_function_call_is_stopped() -> None:
    old = completion(chosen(end="function_call", function_call={"name": "bash", "arguments": '{"a": 1}'}))
    made = whole(old, turn())["choices"][0]
    assert (made["message"], made["finish_reason"]) == ({"role": "assistant", "content": NO}, "stop")
    assert by_sdk(filtered(CHAT, streamed(old), turn())) == [(NO, [], "stop")]
    assert b"function_call" not in filtered(CHAT, streamed(old), turn())


def test_a_custom_call_is_judged_by_its_name() -> None:
    answer = completion(chosen(custom("bash", "rm -r /"), custom("read", "/x")))
    assert [c["custom"]["name"] for c in whole(answer, turn())["choices"][0]["message"]["tool_calls"]] == ["read"]
    made = filtered(CHAT, streamed(answer), turn())
    assert b'"bash"' not in made
    assert b'"name": "read"' in made


def test_arguments_too_long_to_be_judged_are_refused() -> None:
    answer = completion(chosen(call("skill", name="fine", text="x" * 200)))
    short = turn(max_arguments=100)
    wanted = "'skill' was called with longer arguments than are judged."
    assert told(whole(answer, short)) == [(wanted, [], "stop")]
    assert by_sdk(filtered(CHAT, streamed(answer), turn(max_arguments=100))) == [(wanted, [], "stop")]


@pytest.mark.parametrize(
    "row",
    [
        {"index": 0, "function": {"name": "bash", "Name": "read"}},
        {"index": 0, "function": {"name": "read"}, "custom": {"name": "bash"}},
        {"index": 0, "name": "bash", "function": {"name": "read"}},
        {"index": 0, "Function": {"name": "bash"}},
        {"index": "0", "function": {"name": "read"}},
        {"index": -1, "function": {"name": "read"}},
        {"index": 0, "function": {"arguments": "{}"}},
        {"index": 0, "function": {"name": 7}},
    ],
)
def test_calls_that_could_be_read_in_two_ways_end_the_stream(row: Json) -> None:
    with pytest.raises(UnclearError):
        filtered(CHAT, chunk(delta(tool_calls=[row])), turn())


@pytest.mark.parametrize(
    "raw",
    [
        b'{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"read","name":"bash"}}]}}]}',
        b'{"choices":[{"index":0,"delta":{"Tool_Calls":[{"index":0,"function":{"name":"bash"}}]}}]}',
        b'{"choices":[{"index":0,"message":{"tool_calls":[{"index":0,"function":{"name":"bash"}}]}}]}',
        b'{"Choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"bash"}}]}}]}',
    ],
)
def test_events_that_could_be_read_in_two_ways_end_the_stream(raw: bytes) -> None:
    with pytest.raises(UnclearError):
        filtered(CHAT, b"data: " + raw + b"\n\n", turn())


def test_a_name_in_escapes_is_the_same_name() -> None:
    raw = (
        rb'{"id":"c","object":"chat.completion.chunk","created":1,"model":"m",'
        rb'"choices":[{"index":0,"delta":{"tool\u005fcalls":[{"index":0,'
        rb'"function":{"name":"\u0062ash","arguments":"{}"}}]}}]}'
    )
    stream = chunk(delta(role="assistant")) + b"data: " + raw + b"\n\n" + chunk(delta(end="tool_calls"))
    assert by_sdk(filtered(CHAT, stream, turn())) == [(NO, [], "stop")]


def test_errors_of_the_provider_go_on() -> None:
    stream = data({"error": {"message": "overloaded", "type": "server_error"}})
    assert filtered(CHAT, stream, turn()) == stream
    body = b'{"error": {"message": "bad"}}'
    assert CHAT.answer(body, turn()) == body


NAMES = st.sampled_from(["bash", "read", "Bash", "read ", "skill", "other"])
PIECES = st.fixed_dictionaries(
    {},
    optional={
        "index": st.sampled_from([0, 1, 2, None]),
        "id": st.sampled_from(["a", "b", None]),
        "function": st.fixed_dictionaries(
            {}, optional={"name": NAMES, "arguments": st.sampled_from(["", "{", "}", '{"name": "secret"}'])}
        ),
    },
)
DELTAS = st.builds(
    delta,
    st.sampled_from([0, 1]),
    st.sampled_from([None, None, "tool_calls", "stop"]),
    content=st.sampled_from([None, "", "so"]),
    tool_calls=st.lists(PIECES, max_size=3),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(DELTAS, max_size=2).map(lambda choices: chunk(*choices)), max_size=8), st.data())
def test_no_stream_brings_out_a_name_that_was_not_let_through(chunks: list[bytes], draw: st.DataObject) -> None:
    stream = b"".join(chunks)
    cuts = draw.draw(st.lists(st.integers(0, len(stream)), max_size=4))
    try:
        made = filtered(CHAT, stream, turn(), cuts)
    except UnclearError:
        return
    names: dict[tuple[int, Any], str] = {}
    for line in made.decode().split("\n\n"):
        for choice in json.loads(line.removeprefix("data: "))["choices"] if line else ():
            for row in choice["delta"].get("tool_calls") or ():
                name = (row.get("function") or {}).get("name") or ""
                number = row.get("index")  # without one each is a call of its own
                key = (choice["index"], number if number is not None else len(names) + 100)
                names[key] = names.get(key, "") + name
    assert set(names.values()) <= {"", "read", "skill"}
