"""Anthropic's answers without the calls that may not run, as the official client reads them, at every split."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import anthropic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extgate.enforce.wire.anthropic import MESSAGES
from extgate.enforce.wire.spans import UnclearError
from extgate.enforce.wire.turn import Turn
from tests.unit.enforce.wire.world import Json, call, event, gate, message, offering, said, streamed

DENIED = "tools: {disabled: [Bash]}\nskills: {disabled: [secret]}\nsubagents: {disabled: [spy]}"


def whole(content: Json, turn: Turn) -> Json:
    made: Json = json.loads(MESSAGES.answer(json.dumps(content).encode(), turn))
    return made


def filtered(data: bytes, turn: Turn, cuts: Sequence[int] = ()) -> bytes:
    """What comes out of the stream when the bytes come in pieces that end at these places."""
    stream = MESSAGES.stream(turn)
    places = [0, *sorted(cuts), len(data)]
    parts = [stream.feed(data[a:b]) for a, b in pairwise(places)]
    return b"".join([*parts, stream.close()])


httpx: Any = importlib.import_module("httpx2" if hasattr(anthropic._base_client, "httpx2") else "httpx")
"""The HTTP library that this version of the official client uses."""
REPLY = [b""]


def replies(request: object) -> Any:
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=REPLY[0])


SDK = anthropic.Anthropic(
    api_key="x", max_retries=0, http_client=httpx.Client(transport=httpx.MockTransport(replies), trust_env=False)
)


def by_sdk(data: bytes) -> Json:
    """The message that the official client makes of a stream."""
    REPLY[0] = data
    with SDK.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]) as stream:
        made: Json = json.loads(stream.get_final_message().model_dump_json(exclude_none=True))
    return made


def blocks(answer: Json) -> list[tuple[str, Any]]:
    return [(b["type"], b.get("text") if b["type"] == "text" else (b["name"], b["input"])) for b in answer["content"]]


NO_BASH = ("text", "'Bash' is disabled for this agent.")
READ = ("tool_use", ("Read", {"file_path": "/x"}))
CASES: list[tuple[list[Json], list[tuple[str, Any]], str]] = [
    ([call("Bash", command="ls")], [NO_BASH], "end_turn"),
    ([said("so"), call("Bash", command="ls")], [("text", "so"), NO_BASH], "end_turn"),
    ([call("Bash"), call("Read", file_path="/x")], [NO_BASH, READ], "tool_use"),
    ([call("Read", file_path="/x"), call("Bash"), call("Bash")], [READ, NO_BASH, NO_BASH], "tool_use"),
    ([call("read", file_path="/x")], [("text", "'read' was not offered to this agent.")], "end_turn"),
    ([call("Skill", skill="secret")], [("text", "'secret' is disabled for this agent.")], "end_turn"),
    ([call("Skill", skill="/secret now")], [("text", "'secret' is disabled for this agent.")], "end_turn"),
    ([call("Skill", skill="fine")], [("tool_use", ("Skill", {"skill": "fine"}))], "tool_use"),
    ([call("Skill", skill="secret"), call("Read", file_path="/x")],
     [("text", "'secret' is disabled for this agent."), READ], "tool_use"),
    ([call("Agent", subagent_type="spy", prompt="…")], [("text", "'spy' is disabled for this agent.")], "end_turn"),
    ([call("ToolSearch", query="select:Read, Bash")], [NO_BASH], "end_turn"),
    ([call("Write", file_path="/x")], [("text", "'Write' was not offered to this agent.")], "end_turn"),
]  # fmt: skip


def turn() -> Turn:
    return offering(DENIED, "Bash", "Read", "Skill", "Agent", "ToolSearch")


@pytest.mark.parametrize(("content", "wanted", "stop"), CASES, ids=range(len(CASES)))
def test_a_call_that_may_not_run_becomes_text_in_a_whole_answer(
    content: list[Json], wanted: list[tuple[str, Any]], stop: str
) -> None:
    made = whole(message(*content), turn())
    assert (blocks(made), made["stop_reason"]) == (wanted, stop)


@pytest.mark.parametrize(("content", "wanted", "stop"), CASES, ids=range(len(CASES)))
def test_the_official_client_reads_a_rewritten_stream(
    content: list[Json], wanted: list[tuple[str, Any]], stop: str
) -> None:
    made = by_sdk(filtered(streamed(message(*content)), turn()))
    assert (blocks(made), made["stop_reason"]) == (wanted, stop)


@pytest.mark.parametrize("at", [1, 8])
def test_every_split_of_the_bytes_gives_the_same_stream(at: int) -> None:
    data = streamed(message(*CASES[at][0]), piece=99)
    first = filtered(data, turn())
    assert filtered(data, turn(), range(1, len(data))) == first
    for at in range(1, len(data)):
        assert filtered(data, turn(), [at]) == first


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
CALLS = st.builds(
    lambda name, args: call(name, **args),
    st.sampled_from(["Bash", "Read", "Skill", "read", "Nope"]),
    st.dictionaries(st.sampled_from(["skill", "x"]), st.sampled_from(["secret", "fine"]) | TEXTS, max_size=2),
)


@settings(max_examples=30)
@given(st.lists(TEXTS.map(said) | CALLS, max_size=4), st.data())
def test_any_answer_is_the_same_to_the_official_client_whole_or_streamed_however_split(
    content: list[Json], data: st.DataObject
) -> None:
    stop = "tool_use" if any(b["type"] == "tool_use" for b in content) else "end_turn"
    answer = message(*content, stop=stop)
    stream = streamed(answer, data.draw(st.integers(1, 9)))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8))
    out = by_sdk(filtered(stream, turn(), cuts))
    made = whole(answer, turn())
    assert (blocks(out), out["stop_reason"]) == (blocks(made), made["stop_reason"])
    ran = {b["name"] for b in made["content"] if b["type"] == "tool_use"}
    assert ran <= {"Read", "Skill"}
    skills = [b["input"].get("skill") for b in made["content"] if b.get("name") == "Skill"]
    assert "secret" not in skills


def test_an_answer_whose_calls_may_all_run_is_the_very_same_bytes() -> None:
    content = message(said("é"), call("Read", file_path="/x"), call("Skill", skill="fine"))
    data = json.dumps(content, indent=1).encode()
    assert MESSAGES.answer(data, turn()) is data
    stream = streamed(content)
    assert filtered(stream, turn()) == stream


def test_a_refused_call_is_stopped_as_soon_as_its_name_is_known() -> None:
    stream = MESSAGES.stream(turn())
    start = event("content_block_start", index=0, content_block=call("Bash") | {"input": {}})
    assert b"disabled for this agent" in stream.feed(start)
    more = event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": '{"a'})
    assert stream.feed(more) == b""


def test_an_allowed_call_goes_on_as_soon_as_its_name_is_known() -> None:
    start = event("content_block_start", index=0, content_block=call("Read") | {"input": {}})
    assert MESSAGES.stream(turn()).feed(start) == start


def test_only_the_call_that_is_judged_by_its_arguments_is_held_back() -> None:
    stream = MESSAGES.stream(turn())
    text = event("content_block_start", index=0, content_block=said(""))
    assert stream.feed(text) == text
    start = event("content_block_start", index=1, content_block=call("Skill") | {"input": {}})
    piece = event(
        "content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": '{"skill":"fine"}'}
    )
    stop = event("content_block_stop", index=1)
    assert stream.feed(start + piece) == b""
    assert stream.feed(stop) == start + piece + stop


def test_an_edit_of_the_profile_obeys_at_the_next_call_of_a_running_stream() -> None:
    from extgate.enforce.wire.judge import Entry, Judge
    from tests.unit.enforce.wire.world import CLAUDE, profile

    one = gate("")
    asked = Turn(Judge(one, CLAUDE))
    asked.offer(Entry("Read"), "Read")
    stream = MESSAGES.stream(asked)
    start = event("content_block_start", index=0, content_block=call("Read") | {"input": {}})
    assert stream.feed(start) == start
    one.swap(profile=profile("tools: {disabled: [Read]}"))
    assert b"'Read' is disabled" in stream.feed(start.replace(b'"index": 0', b'"index": 1'))


def test_arguments_are_judged_where_a_rule_reads_them() -> None:
    from extgate.core.policy import ArgTest, Entry, Policy, Profile, Rule, Test
    from extgate.enforce.gate import Gate
    from extgate.enforce.wire.judge import Entry as Offered
    from extgate.enforce.wire.judge import Judge
    from tests.unit.enforce.wire.world import CLAUDE, inventory

    bash = Entry(text="Bash(rm *)", tests=(Test(facets=("name",), pattern="Bash"),))
    rule = Rule(text="deny", effect="deny", kinds=frozenset({"tool"}), entries=(bash,),
                when=(ArgTest(name="command", pattern="rm *"),))  # fmt: skip
    made = Profile(id="a", layers=(Policy(dialect="x", rules=(rule,)),))

    def asked() -> Turn:
        one = Turn(Judge(Gate(made, inventory(), door="wire"), CLAUDE), max_arguments=100)
        one.offer(Offered("Bash"), "Bash")
        return one

    good, bad = message(call("Bash", command="ls")), message(call("Bash", command="rm -r /"))
    assert filtered(streamed(good), asked()) == streamed(good)
    assert [kind for kind, _ in blocks(by_sdk(filtered(streamed(bad), asked())))] == ["text"]
    assert [kind for kind, _ in blocks(whole(bad, asked()))] == ["text"]
    long = message(call("Bash", command="x" * 200))
    assert "longer arguments" in blocks(by_sdk(filtered(streamed(long), asked())))[0][1]
    assert "longer arguments" in blocks(whole(long, asked()))[0][1]
    twice = json.dumps(message(call("Bash", command="ls"))).replace('"command"', '"command": "rm x", "command"')
    assert b"one clear JSON object" in MESSAGES.answer(twice.encode(), asked())


_START = b'data: {"type":"content_block_start","index":0,'
_CALL = b'"content_block":{"type":"tool_use","name":"Bash"}}\n\n'
SMUGGLED = [
    _START + b'"content_block":{"type":"tool_use","id":"t","name":"Read","name":"Bash","input":{}}}\n\n',
    _START + b'"content_block":{"type":"text","text":""},' + _CALL,
    b'data: {"type":"ping","type":"content_block_start","index":0,' + _CALL,
    b'event: content_block_start\ndata: {"type":"ping","index":0,' + _CALL,
    b"event: ping\n" + _START + _CALL,
    b'data: {"type":"content_block_begin","index":0,' + _CALL,
    b'data: {"type":"message_start","message":{"content":[{"type":"tool_use","name":"Bash","input":{}}]}}\n\n',
    _START + b'"content_block":{"type":"tool_use","name":"B\\ud800","input":{}}}\n\n',
    _START + b'"content_block":{"type":"tool_use","input":{}}}\n\n',
    b'data: {"type":"content_block_start","index":"0",' + _CALL,
    _START + b'"Content_Block":1,"content_block":{"type":"text"}}\n\n',
    b"data: [1]\n\n",
    b"data: \xff\n\n",
]


@pytest.mark.parametrize("data", SMUGGLED, ids=range(len(SMUGGLED)))
def test_an_event_that_two_parsers_could_read_otherwise_ends_the_answer(data: bytes) -> None:
    with pytest.raises(UnclearError):
        MESSAGES.stream(turn()).feed(data)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "name": "Bash", "input": {}},
        {"type": "shiny_tool_use", "name": "Bash", "input": {}},
        {"type": "function_call", "name": "Bash"},
        {"type": "shiny", "name": "Bash", "input": {}},
        {"type": "tool_use", "name": "Bash", "input": {}, "caller": {"type": "code_execution_20260120"}},
        {"type": "tool_use", "name": "click", "toolset_name": "computer", "input": {}},
    ],
    ids=lambda block: block["type"],
)
def test_a_call_in_a_block_of_a_type_nobody_knows_is_a_call(block: Json) -> None:
    assert [kind for kind, _ in blocks(whole(message(block), turn()))] == ["text"]
    start = event("content_block_start", index=0, content_block=block)
    assert b'"type":"text"' in MESSAGES.stream(turn()).feed(start)


def test_what_the_provider_ran_itself_and_new_events_pass_untouched() -> None:
    ran = [
        event("content_block_start", index=0, content_block=call("web_search") | {"type": "server_tool_use"}),
        event("content_block_start", index=1, content_block={"type": "web_search_tool_result", "content": []}),
        event("content_block_start", index=2, content_block={"type": "brand_new", "x": [1]}),
        event("brand_new_event", x=1),
        event("error", error={"type": "overloaded_error", "message": "…"}),
        b": a comment\n\n",
    ]  # fmt: skip
    data = b"".join(ran)
    assert filtered(data, turn()) == data
    error = b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}'
    assert MESSAGES.answer(error, turn()) is error


def test_an_answer_that_breaks_off_inside_a_held_call_is_no_call() -> None:
    data = streamed(message(call("Skill", skill="fine")))
    stream = MESSAGES.stream(turn())
    out = stream.feed(data[: data.index(b"content_block_stop")])
    assert b"tool_use" not in out.replace(b"message_start", b"")
    with pytest.raises(UnclearError):
        stream.close()


def test_more_behind_a_held_call_than_is_held_back_ends_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extgate.enforce.wire.anthropic_answer.MAX_EVENT", 1000)
    stream = MESSAGES.stream(offering(DENIED, "Skill", max_arguments=1000))
    stream.feed(event("content_block_start", index=0, content_block=call("Skill") | {"input": {}}))
    piece = event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": "x" * 100})
    with pytest.raises(UnclearError):
        _ = [stream.feed(piece) for _ in range(100)]


def mutations(data: bytes) -> Iterator[st.SearchStrategy[bytes]]:
    yield st.tuples(st.integers(0, len(data)), st.integers(0, 40)).map(lambda at: data[: at[0]] + data[at[0] + at[1] :])
    yield st.tuples(st.integers(0, len(data)), st.binary(max_size=6)).map(
        lambda at: data[: at[0]] + at[1] + data[at[0] :]
    )
    yield st.tuples(st.integers(0, len(data)), st.integers(0, 80)).map(
        lambda at: data[: at[0]] + data[at[0] : at[0] + at[1]] + data[at[0] :]
    )


FUZZED = streamed(
    message(said("hm"), call("Read", file_path="/x"), call("Bash", command="ls"), call("Skill", skill="secret"))
)


@given(st.one_of(*mutations(FUZZED)))
def test_no_broken_stream_brings_a_denied_call_through(data: bytes) -> None:
    stream = MESSAGES.stream(turn())
    out = b""
    try:
        for at in range(0, len(data), 64):
            out += stream.feed(data[at : at + 64])
        out += stream.close()
    except UnclearError:
        pass
    for frame in out.replace(b"\r\n", b"\n").split(b"\n\n"):
        for line in frame.split(b"\n"):
            if line.startswith(b"data:"):
                started = json.loads(line[5:]).get("content_block") or {}
                assert started.get("name") in (None, "Read", "Skill")
                assert b'"skill": "secret"' not in line


def test_the_asynchronous_client_reads_it_too() -> None:
    data = filtered(streamed(message(call("Bash"), call("Read", file_path="/x"))), turn())

    async def read() -> Any:
        REPLY[0] = data
        transport = httpx.MockTransport(replies)
        client = anthropic.AsyncAnthropic(api_key="x", http_client=httpx.AsyncClient(transport=transport))
        async with client.messages.stream(model="m", max_tokens=9, messages=[]) as stream:
            return await stream.get_final_message()

    made = asyncio.run(read())
    assert [block.type for block in made.content] == ["text", "tool_use"]
