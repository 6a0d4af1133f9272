"""Responses answers without the calls that may not run, whole and streamed, at every split of the bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extgate.enforce.wire.judge import Entry
from extgate.enforce.wire.openai import KEPT, RESPONSES
from extgate.enforce.wire.provider import Options
from extgate.enforce.wire.spans import UnclearError
from extgate.enforce.wire.turn import Turn
from tests.unit.enforce.wire.openai_world import every_split, filtered
from tests.unit.enforce.wire.responses_world import (
    body,
    by_sdk,
    call,
    custom,
    function,
    message,
    response,
    shell,
    streamed,
    told,
)
from tests.unit.enforce.wire.world import GENERIC, Json, event, offering

DENIED = (
    "tools: {disabled: [bash, local_shell, 'ops::wipe']}\nskills: {disabled: [secret]}\nsubagents: {disabled: [spy]}\n"
    "mcp: {disabled: [alpha/danger]}"
)
NAMES = ("bash", "read", "skill", "spawn_agent", "local_shell", "apply_patch")


def turn(text: str = DENIED, **more: Any) -> Turn:
    made = offering(text, *NAMES, client=GENERIC, **more)
    for namespace, name in (("mcp__alpha", "danger"), ("mcp__alpha", "safe"), ("ops", "wipe"), ("ops", "spawn_agent")):
        made.offer(Entry(name, namespace=namespace), name, namespace)
    return made


def whole(content: Json, one: Turn) -> Json:
    made: Json = json.loads(RESPONSES.answer(json.dumps(content).encode(), one))
    return made


def no(name: str, why: str = "is disabled for this agent.") -> tuple[str, str]:
    return ("message", f"'{name}' {why}")


READ, READS = call("read", path="/x"), ("function_call", "read")
PATCHES = ("custom_tool_call", "apply_patch")
CASES: list[tuple[list[Json], list[tuple[str, str]]]] = [
    ([call("bash", command="ls")], [no("bash")]),
    ([message("so"), call("bash", command="ls")], [("message", "so"), no("bash")]),
    ([call("bash"), READ], [no("bash"), READS]),
    ([READ, custom("bash", "rm"), custom("apply_patch", "x")], [READS, no("bash"), PATCHES]),
    ([shell("rm")], [no("local_shell")]),
    ([call("Read")], [no("Read", "was not offered to this agent.")]),
    ([call("danger", namespace="mcp__alpha")], [no("alpha/danger")]),
    ([call("safe", namespace="mcp__alpha")], [("function_call", "safe")]),
    ([call("wipe", namespace="ops")], [no("ops::wipe")]),
    ([call("mcp__alpha__safe")], [no("mcp__alpha__safe", "was not offered to this agent.")]),
    ([call("skill", name="secret"), READ], [no("secret"), READS]),
    ([call("skill", name="fine")], [("function_call", "skill")]),
    ([call("spawn_agent", agent_type="spy", namespace="ops")], [no("spy")]),
    ([{"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}],
     [("web_search_call", "")]),
    ([{"type": "fly_call", "id": "x", "name": "fly"}], [no("fly", "was not offered to this agent.")]),
    ([{"type": "reasoning", "id": "rs_1", "summary": []}, call("bash")], [("reasoning", ""), no("bash")]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_calls_that_may_not_run_become_messages_in_a_whole_answer(case: Any) -> None:
    output, wanted = case
    assert told(whole(response(*output), turn())["output"]) == wanted


@pytest.mark.parametrize("case", [case for case in CASES if case[0][0]["type"] != "fly_call"])
def test_the_official_client_reads_the_same_from_a_stream(case: Any) -> None:
    output, wanted = case
    by_events, at_the_end = by_sdk(filtered(RESPONSES, streamed(response(*output)), turn()))
    assert (by_events, at_the_end) == (wanted, wanted)


@pytest.mark.parametrize("case", [CASES[3], CASES[10]])
def test_every_split_of_the_bytes_gives_the_same_stream(case: Any) -> None:
    stream = streamed(response(*case[0]), 12)
    wanted = filtered(RESPONSES, stream, turn())
    assert {filtered(RESPONSES, stream, turn(), cuts) for cuts in every_split(len(stream), 23)} == {wanted}


@pytest.mark.parametrize("case", CASES)
def test_allowed_calls_come_out_as_the_very_same_bytes(case: Any) -> None:
    one = turn("")
    for name in ("Read", "mcp__alpha__safe", "fly"):
        one.offer(Entry(name), name)
    answer = json.dumps(response(*case[0])).encode()
    assert RESPONSES.answer(answer, one) == answer
    stream = streamed(response(*case[0]))
    assert filtered(RESPONSES, stream, one) == stream


def test_a_call_of_an_unknown_type_hides_no_arguments() -> None:
    fly = {"type": "fly_call", "id": "x", "name": "skill", "what": {"name": "secret"}}
    wanted = no("skill", "was called with arguments that are not one clear JSON object.")
    assert told(whole(response(fly), turn())["output"]) == [wanted]


def test_the_numbers_of_events_never_fall() -> None:
    made = filtered(RESPONSES, streamed(response(call("bash"), READ)), turn())
    numbers = [json.loads(line[6:])["sequence_number"] for line in made.decode().split("\n") if line[:5] == "data:"]
    assert numbers == sorted(numbers)


def test_a_stopped_call_leaves_nothing_in_the_stream() -> None:
    made = filtered(RESPONSES, streamed(response(call("bash", command="SECRET-ARGUMENT"))), turn())
    assert b"SECRET-ARGUMENT" not in made
    assert b"function_call" not in made


def added(item: Json, at: int = 0) -> bytes:
    return event("response.output_item.added", sequence_number=1, output_index=at, item=item)


def done(item: Json, at: int = 0) -> bytes:
    return event("response.output_item.done", sequence_number=9, output_index=at, item=item)


def delta(kind: str, at: int = 0, **fields: str) -> bytes:
    name = f"response.function_call_arguments.{kind}"
    return event(name, sequence_number=5, item_id="fc", output_index=at, **fields)


SKILL = call("skill", name="fine")
OPEN = added({**SKILL, "arguments": ""})
TWISTS = {
    "another name in the end": added(call("read")) + done(call("bash")),
    "another space in the end": added(call("read")) + done(call("read", namespace="ops")),
    "another type in the end": added(call("read")) + done(custom("read", "x")),
    "a message that becomes a call": added(call("read")) + done(message("x")),
    "another name in its arguments": added(call("read")) + delta("done", arguments="{}", name="bash"),
    "a name without a call": delta("done", arguments="{}", name="bash"),
    "other arguments in pieces": OPEN + delta("delta", delta='{"name": "secret"}') + done(SKILL),
    "other arguments at their end": OPEN + delta("done", arguments='{"name": "secret"}') + done(SKILL),
    "added twice": added(call("read")) + added(call("read")),
    "inside another": OPEN + added(call("read"), 1),
    "no index": event("response.output_item.added", sequence_number=1, item=call("read")),
    "no name": added({"type": "function_call", "arguments": "{}"}),
    "a named shell": added({**shell("x"), "name": "read"}),
    "another letter case": added({"type": "function_call", "name": "read", "Name": "bash", "arguments": "{}"}),
    "an item elsewhere": event("response.new_thing", sequence_number=1, item=call("bash")),
    "two types": b"event: response.created\n" + added(call("read")).split(b"\n", 1)[1],
    "it breaks off": OPEN,
}


@pytest.mark.parametrize("stream", TWISTS.values(), ids=list(TWISTS))
def test_a_stream_that_could_be_read_in_two_ways_ends(stream: bytes) -> None:
    with pytest.raises(UnclearError):
        filtered(RESPONSES, stream, turn())


def test_a_call_that_only_the_end_knows_is_judged_there() -> None:
    opened = event("response.created", sequence_number=0, response=response(status="in_progress"))
    stream = opened + event("response.completed", sequence_number=1, response=response(call("bash"), READ))
    made = filtered(RESPONSES, stream, turn())
    assert told(json.loads(made.decode().split("data: ")[2])["response"]["output"]) == [no("bash"), READS]


def test_other_arguments_at_the_end_are_judged_anew() -> None:
    stream = OPEN + done(SKILL)
    end = event(
        "response.completed", sequence_number=10, response=response({**SKILL, "arguments": '{"name":"secret"}'})
    )
    made = filtered(RESPONSES, stream + end, turn())
    assert made.startswith(stream)
    assert told(json.loads(made.decode().split("data: ")[3])["response"]["output"]) == [no("secret")]


def test_a_kept_answer_says_itself_what_it_was_offered() -> None:
    answer = response(call("read"), call("bash"), call("other"), tools=[function("read"), function("bash")])
    nothing = offering(DENIED, client=GENERIC)
    wanted = [READS, no("bash"), no("other", "was not offered to this agent.")]
    assert told(json.loads(KEPT.answer(json.dumps(answer).encode(), nothing))["output"]) == wanted
    made = filtered(KEPT, streamed(answer), offering(DENIED, client=GENERIC))
    assert by_sdk(made) == (wanted, wanted)


def goes_on(one: Turn, answer: Json, **more: Any) -> Json:
    """The request that goes on from an answer, as it goes to the provider."""
    RESPONSES.answer(json.dumps(answer).encode(), one)
    made: Json = json.loads(RESPONSES.request(body(**more), turn_after(one), Options()))
    return made


def turn_after(one: Turn) -> Turn:
    """The agent's next turn, with what is remembered of it."""
    made = turn()
    made.judge.memory = one.judge.memory
    return made


def remembering() -> Turn:
    made = turn()
    made.judge.memory = type(made.judge.memory)()
    return made


def test_the_next_request_tells_the_provider_what_became_of_stopped_calls() -> None:
    answer = response(call("bash"), custom("bash", "x"), shell("x"), READ)
    made = goes_on(remembering(), answer, previous_response_id="resp_1", input=[{"type": "function_call_output"}])
    why = "'bash' is disabled for this agent."
    assert made["input"] == [
        {"call_id": "call_bash", "output": why, "type": "function_call_output"},
        {"call_id": "call_bash", "output": why, "type": "custom_tool_call_output"},
        {"type": "local_shell_call_output", "id": "call_1", "output": why.replace("bash", "local_shell")},
        {"type": "function_call_output"},
    ]


def test_a_text_that_goes_on_becomes_a_message_behind_the_outcomes() -> None:
    made = goes_on(remembering(), response(call("bash")), previous_response_id="resp_1", input="then?")
    assert [i.get("type") or i for i in made["input"]] == [
        "function_call_output",
        {"role": "user", "content": "then?"},
    ]


def test_other_answers_have_nothing_to_tell() -> None:
    request = {"previous_response_id": "resp_2", "input": "then?"}
    assert goes_on(remembering(), response(call("bash")), **request)["input"] == "then?"
    assert goes_on(remembering(), response(READ), previous_response_id="resp_1", input="x")["input"] == "x"


def test_a_conversation_is_told_once() -> None:
    one = remembering()
    answer = response(call("bash"), conversation={"id": "conv_1"})
    assert len(goes_on(one, answer, conversation="conv_1")["input"]) == 2
    assert goes_on(one, response(READ, conversation={"id": "conv_1"}), conversation={"id": "conv_1"})["input"] == "hi"


ITEMS = st.builds(
    lambda kind, name, space, given: {
        "type": kind,
        "id": "i",
        "call_id": "c",
        "arguments": given,
        "input": given,
        **({"name": name} if name else {}),
        **({"namespace": space} if space else {}),
    },
    st.sampled_from(
        ["function_call", "custom_tool_call", "local_shell_call", "message", "fly_call", "web_search_call"]
    ),
    st.sampled_from(["bash", "read", "Read", "skill", ""]),
    st.sampled_from(["", "", "ops", "mcp__alpha"]),
    st.sampled_from(["", "{}", '{"name": "secret"}', '{"name": "fine"}']),
)
EVENTS = st.one_of(
    st.builds(added, ITEMS, st.sampled_from([0, 1])),
    st.builds(done, ITEMS, st.sampled_from([0, 1])),
    st.builds(delta, st.just("delta"), st.sampled_from([0, 1]), delta=st.sampled_from(["{}", '{"name": "secret"}'])),
    st.builds(
        lambda items: event("response.completed", sequence_number=1, response=response(*items)),
        st.lists(ITEMS, max_size=3),
    ),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(EVENTS, max_size=8), st.data())
def test_no_stream_brings_out_a_call_that_was_not_let_through(events: list[bytes], draw: st.DataObject) -> None:
    stream = b"".join(events)
    try:
        made = filtered(RESPONSES, stream, turn(), draw.draw(st.lists(st.integers(0, len(stream)), max_size=4)))
    except UnclearError:
        return
    for line in made.decode().split("\n"):
        said = json.loads(line[6:]) if line.startswith("data: ") else {}
        for item in [*([said["item"]] if "item" in said else []), *said.get("response", {}).get("output", [])]:
            if item["type"] in ("function_call", "custom_tool_call"):
                assert (item.get("namespace", ""), item["name"]) in {("", "read"), ("", "skill")}
                assert item["name"] == "read" or "secret" not in item["arguments"] or said["type"].endswith("added")
            assert item["type"] != "local_shell_call"
            assert item["type"] != "fly_call" or item["name"] in ("read", "skill")
