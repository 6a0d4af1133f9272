"""Gemini's requests and answers at the wire: what the agent may not know of is gone, all else in the same bytes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extgate.enforce.wire.gemini import CONTENT, PROVIDER
from extgate.enforce.wire.provider import Options
from extgate.enforce.wire.spans import UnclearError
from extgate.enforce.wire.turn import Turn
from tests.unit.enforce.wire.gemini_world import answer, body, by_sdk, call, functions, streamed, told
from tests.unit.enforce.wire.openai_world import every_split, filtered
from tests.unit.enforce.wire.world import GENERIC, Json, inventory, offering, turn

DENIED = "tools: {disabled: [bash, google_search]}\nskills: {disabled: [secret]}\nsubagents: {disabled: [spy]}"
STRICT, LOOSE = Options(), Options(unknown="pass")


def sent(raw: bytes, text: str = DENIED, options: Options = STRICT) -> Json:
    made: Json = json.loads(CONTENT.request(raw, turn(text, inventory(), GENERIC), options))
    return made


# ---------------------------------------------------------------------------------------------- requests


def test_denied_tools_are_gone_and_all_else_is_the_same_bytes() -> None:
    tools = [functions("bash", "read"), {"googleSearch": {}, "urlContext": {}}, {"google_search": {}}]
    raw = body(tools=tools, generationConfig={"temperature": 1})
    made = CONTENT.request(raw, turn(DENIED, inventory(), GENERIC), STRICT)
    assert made == raw.replace(json.dumps(tools).encode(), json.dumps([functions("read"), {"urlContext": {}}]).encode())


def test_a_profile_that_allows_everything_changes_no_byte() -> None:
    tools = [functions("bash"), {"googleSearch": {}}, {"mcpServers": [{"name": "x"}]}]
    raw = body(tools=tools, new={"x": 1}, toolConfig={"functionCallingConfig": {"mode": "ANY"}})
    assert CONTENT.request(raw, turn("", inventory(), GENERIC), STRICT) is raw


@pytest.mark.parametrize(
    "tools",
    [
        [functions("bash")],
        functions("bash"),
        [{"functionDeclarations": {"name": "bash"}}],
        [{"function_declarations": [{"name": "bash"}]}],
        [{"googleSearch": {}, "functionDeclarations": [{"name": "bash"}]}],
        [{"googleSearchRetrieval": {}}],
        {"enterprise_web_search": {}},
        [{"mcpServers": [{"name": "alpha", "streamableHttpTransport": {"url": "https://x"}}]}],
    ],
)
def test_without_a_tool_left_nothing_speaks_of_tools(tools: Any) -> None:
    config = {"functionCallingConfig": {"mode": "ANY"}}
    assert set(sent(body(tools=tools, toolConfig=config))) == {"contents"}
    assert set(sent(body(tools=tools, tool_config=config))) == {"contents"}


@pytest.mark.parametrize("key", ["allowedFunctionNames", "allowed_function_names"])
def test_a_choice_among_functions_keeps_those_that_are_left(key: str) -> None:
    def config(*names: str) -> Json:
        return {"functionCallingConfig": {"mode": "ANY", key: list(names)}}

    tools = [functions("bash", "read")]
    assert sent(body(tools=tools, toolConfig=config("bash", "read")))["toolConfig"] == config("read")
    none = {"functionCallingConfig": {"mode": "NONE"}}
    assert sent(body(tools=tools, toolConfig=config("bash")))["toolConfig"] == none


def test_a_count_is_read_as_the_request_in_it() -> None:
    inner = {"model": "m", "contents": [], "tools": [functions("bash", "read")]}
    made = sent(json.dumps({"generateContentRequest": inner}).encode())
    assert made["generateContentRequest"]["tools"] == [functions("read")]


def test_hidden_skills_and_agents_leave_the_instructions() -> None:
    skills = (
        "<available_skills>\n  <skill>\n    <name>secret</name>\n  </skill>\n"
        "  <skill>\n    <name>open</name>\n  </skill>\n</available_skills>"
    )
    agents = "The following sub-agents are available:\n\n- spy -> Spies:\non all\n- help -> Helps.\n\nRemember it."
    made = sent(body(systemInstruction={"parts": [{"text": skills}, {"text": agents}]}))
    assert [part["text"] for part in made["systemInstruction"]["parts"]] == [
        skills.replace("  <skill>\n    <name>secret</name>\n  </skill>\n", ""),
        "The following sub-agents are available:\n\n- help -> Helps.\n\nRemember it.",
    ]
    assert (
        "spy" not in sent(body(system_instruction={"parts": {"text": agents}}))["system_instruction"]["parts"]["text"]
    )


def test_history_of_tools_that_are_gone_stays() -> None:
    contents = [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [call("bash", command="ls"), {"text": "x", "thoughtSignature": "eA=="}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "bash", "response": {"tools": ["x"]}}}]},
    ]
    raw = body(contents=contents, tools=[functions("bash", "read")])
    assert sent(raw)["contents"] == contents


HIDDEN: list[Json] = [
    {"cachedContent": "cachedContents/x"},
    {"cached_content": "cachedContents/x"},
    {"Tools": [functions("bash")]},
    {"tools": [functions("read")], "TOOLS": [functions("bash")]},
    {"toolset": [functions("bash")]},
    {"tools": [{"functionDeclarations": [{"name": "read"}], "function_declarations": [{"name": "bash"}]}]},
    {"tools": [{"functiondeclarations": [{"name": "bash"}]}]},
    {"tools": [{"FunctionDeclarations": [{"name": "bash"}]}]},
    {"tools": [{"functionDeclarations": [{"name": ""}]}]},
    {"tools": [{"functionDeclarations": [{"name": "read", "functions": []}]}]},
    {"tools": [{"newThing": {}}]},
    {"tools": ["bash"]},
    {"contents": [{"parts": [{"text": "x"}], "tools": [functions("bash")]}]},
    {"contents": [{"parts": [{"text": "x", "toolDefinition": {}}]}]},
    {"tools": [functions("read")], "toolConfig": {"functionCallingConfig": {"allowedfunctionnames": ["bash"]}}},
    {"systemInstruction": {"parts": []}, "system_instruction": {"parts": []}},
]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_could_hide_a_tool_is_refused(hidden: Json) -> None:
    with pytest.raises(UnclearError):
        sent(body(**hidden))


def test_what_is_not_known_passes_where_that_is_wanted() -> None:
    made = sent(body(cachedContent="x", tools=[{"newThing": {}}, functions("bash")]), options=LOOSE)
    assert made["tools"] == [{"newThing": {}}]
    assert sent(body(tools=[{"newThing": {}}]), "tools: {disabled: [newThing]}", LOOSE).keys() == {"contents"}


@pytest.mark.parametrize(
    ("method", "path", "act"),
    [
        ("POST", "/v1beta/models/gemini-2.5-pro:generateContent", "gate"),
        ("POST", "/v1/models/gemini-2.5-pro:streamGenerateContent", "gate"),
        ("POST", "/v1beta/models/m:countTokens", "gate"),
        ("POST", "/v1beta/models/m:embedContent", "pass"),
        ("GET", "/v1beta/models", "pass"),
        ("GET", "/v1beta/models/m", "pass"),
        ("POST", "/v1beta/models/m:batchGenerateContent", "refuse"),
        ("POST", "/v1beta/cachedContents", "refuse"),
        ("POST", "/v1beta/models/..:generateContent", "refuse"),
        ("POST", "/v1beta/models/m:GenerateContent", "refuse"),
        ("POST", "/v1beta/models/m%3AgenerateContent", "refuse"),
        ("POST", "/v1beta/interactions", "refuse"),
        ("GET", "/v1beta/models/..", "refuse"),
    ],
)
def test_only_known_paths_are_served(method: str, path: str, act: str) -> None:
    assert PROVIDER.route(method, path).act == act


# ---------------------------------------------------------------------------------------------- answers


def may(text: str = DENIED) -> Turn:
    return offering(text, "bash", "read", "activate_skill", "invoke_agent", client=GENERIC)


NO = "'bash' is disabled for this agent."
TEXT = {"text": "so"}
CASES: list[tuple[list[Json], list[Any]]] = [
    ([call("bash", command="ls")], [NO]),
    ([TEXT, call("bash"), call("read", path="/x")], ["so", NO, "read"]),
    ([call("Read")], ["'Read' was not offered to this agent."]),
    ([call("activate_skill", name="secret")], ["'secret' is disabled for this agent."]),
    ([call("activate_skill", name="open"), TEXT], ["activate_skill", "so"]),
    ([call("invoke_agent", agent_name="spy")], ["'spy' is disabled for this agent."]),
    ([{"executableCode": {"language": "PYTHON", "code": "1"}}], [None]),
    ([{"text": "thinking", "thought": True}, call("bash")], ["thinking", NO]),
]


@pytest.mark.parametrize("case", CASES)
def test_calls_that_may_not_run_become_text(case: Any) -> None:
    content, wanted = case
    whole = json.dumps(answer(*content)).encode()
    assert told([json.loads(CONTENT.answer(whole, may()))]) == wanted
    assert told(json.loads(CONTENT.answer(b" [" + whole + b",\n" + whole + b"]", may()))) == wanted * 2
    assert by_sdk(filtered(CONTENT, streamed(answer(*content), answer(TEXT)), may())) == [*wanted, "so"]


@pytest.mark.parametrize("case", CASES)
def test_allowed_calls_come_out_as_the_very_same_bytes(case: Any) -> None:
    one = offering("", "bash", "read", "Read", "activate_skill", "invoke_agent", client=GENERIC)
    whole, stream = json.dumps(answer(*case[0])).encode(), streamed(answer(*case[0]))
    assert CONTENT.answer(whole, one) == whole
    assert filtered(CONTENT, stream, one) == stream


def test_every_split_of_the_bytes_gives_the_same_stream() -> None:
    stream = streamed(answer(TEXT), answer(call("bash"), call("read")), answer({"text": "é"}))
    wanted = filtered(CONTENT, stream, may())
    assert {filtered(CONTENT, stream, may(), cuts) for cuts in every_split(len(stream), 5)} == {wanted}


def pieces(name: str, index: int | None = 0) -> bytes:
    first = {"functionCall": {"name": name, "willContinue": True}}
    middle = {"functionCall": {"partialArgs": [{"jsonPath": "$.x", "stringValue": "SECRET"}], "willContinue": True}}
    return streamed(*(answer(part, index=index) for part in (first, middle, {"functionCall": {}})))


def test_a_call_in_pieces_is_stopped_with_all_of_them() -> None:
    made = filtered(CONTENT, pieces("bash") + streamed(answer(call("read"))), may())
    assert b"SECRET" not in made
    assert by_sdk(made) == [NO, "", "", "read"]
    assert filtered(CONTENT, pieces("read"), may()) == pieces("read")


def test_a_call_in_pieces_whose_arguments_decide_ends_the_stream() -> None:
    with pytest.raises(UnclearError):
        filtered(CONTENT, pieces("activate_skill"), may())


def test_a_function_of_the_computer_tool_may_be_called_where_that_was_let_through() -> None:
    one = turn(DENIED, inventory(), GENERIC)
    CONTENT.request(body(tools=[{"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}]), one, STRICT)
    made = CONTENT.answer(json.dumps(answer(call("click_at", x=1, y=2), call("bash"))).encode(), one)
    assert told([json.loads(made)]) == ["click_at", NO]


@pytest.mark.parametrize(
    "part",
    [
        {"functionCall": {"args": {}}},
        {"functionCall": {"name": "read", "Name": "bash"}},
        {"functionCall": {"name": "read"}, "function_call": {"name": "bash"}},
        {"functioncall": {"name": "bash"}},
        {"functionCall": {"name": 7}},
        {"functionCall": ["bash"]},
    ],
)
def test_calls_that_could_be_read_in_two_ways_end_the_answer(part: Json) -> None:
    with pytest.raises(UnclearError):
        filtered(CONTENT, streamed(answer(part)), may())


def test_errors_of_the_provider_go_on() -> None:
    stream = streamed({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}})
    assert filtered(CONTENT, stream, may()) == stream
    assert json.loads(PROVIDER.error(403, "x"))["error"]["status"] == "PERMISSION_DENIED"


PARTS = st.dictionaries(
    st.sampled_from(["text", "functionCall", "function_call", "FunctionCall"]),
    st.sampled_from(["x"]) | st.dictionaries(
        st.sampled_from(["name", "args", "willContinue", "partialArgs", "will_continue"]),
        st.sampled_from(["bash", "read", "activate_skill", True, False, {"name": "secret"}, {}, None]), max_size=3,
    ),
    max_size=2,
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(PARTS, max_size=3), max_size=4))
def test_no_stream_brings_out_a_call_that_was_not_let_through(parts: list[list[Json]]) -> None:
    try:
        made = filtered(CONTENT, streamed(*(answer(*one) for one in parts)), may())
    except UnclearError:
        return
    for line in re.split(r"\r?\n\r?\n", made.decode()):
        for part in json.loads(line[6:])["candidates"][0]["content"]["parts"] if line.startswith("data: ") else ():
            for one in (part.get("functionCall"), part.get("function_call")):
                assert not one or one.get("name") in (None, "read", "activate_skill")
                assert not one or one.get("name") != "activate_skill" or one.get("args") != {"name": "secret"}


JSONS = st.recursive(
    st.none() | st.booleans() | st.sampled_from(["bash", "read", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["functionDeclarations", "function_declarations", "name", "googleSearch", "parts"]), inner
        )
    ),
    max_leaves=12,
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(["tools", "Tools", "contents", "toolConfig", "extra"]), JSONS))
def test_no_request_brings_a_denied_definition_through(content: Json) -> None:
    try:
        made = sent(json.dumps(content).encode())
    except UnclearError:
        return
    tools = made.get("tools") or []
    for tool in tools if isinstance(tools, list) else [tools]:
        given = tool.get("functionDeclarations") or tool.get("function_declarations") or []
        assert "bash" not in [one["name"] for one in (given if isinstance(given, list) else [given])]
        assert "googleSearch" not in tool
    assert "Tools" not in made
