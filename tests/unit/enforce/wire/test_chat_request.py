"""Chat Completions requests without what the agent may not know of, all else in the same bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extgate.core.extension import Extension
from extgate.enforce.wire.openai import CHAT, PROVIDER
from extgate.enforce.wire.provider import Options
from extgate.enforce.wire.spans import UnclearError
from tests.unit.enforce.wire.openai_world import call, chat, function
from tests.unit.enforce.wire.world import GENERIC, Json, inventory, turn

DENIED = "tools: {disabled: [bash, web_search]}\nmcp: {disabled: [alpha/danger]}\nskills: {disabled: [secret]}"
STRICT, LOOSE = Options(), Options(unknown="pass")
ITEM = Extension(kind="mcp_tool", name="danger", server="alpha")


def sent(body: bytes, text: str = DENIED, options: Options = STRICT) -> Json:
    made: Json = json.loads(CHAT.request(body, turn(text, inventory(ITEM), GENERIC), options))
    return made


def names(body: Json) -> list[str]:
    return [(t.get("function") or t.get("custom") or {}).get("name") or t["type"] for t in body.get("tools", [])]


OFFERED = [
    function("bash"), function("read"), function("alpha_danger"), function("mcp__alpha__danger"),
    {"type": "custom", "custom": {"name": "bash", "format": {"type": "text"}}},
]  # fmt: skip


def test_denied_tools_are_gone_and_all_else_is_the_same_bytes() -> None:
    body = chat(tools=OFFERED, stream=True)
    made = CHAT.request(body, turn(DENIED, inventory(ITEM), GENERIC), STRICT)
    kept = json.dumps(OFFERED[1], ensure_ascii=False).encode()
    assert made == body.replace(json.dumps(OFFERED, ensure_ascii=False).encode(), b"[" + kept + b"]")


def test_a_profile_that_allows_everything_changes_no_byte() -> None:
    body = chat(tools=OFFERED, tool_choice={"type": "function", "function": {"name": "bash"}}, x=[1, {"y": None}])
    assert CHAT.request(body, turn("", inventory(ITEM), GENERIC), STRICT) is body


def test_without_a_tool_left_nothing_speaks_of_tools() -> None:
    made = sent(chat(tools=[function("bash")], tool_choice="required", parallel_tool_calls=True))
    assert set(made) == {"model", "messages"}


def test_the_older_functions_are_judged() -> None:
    given = [{"name": "bash", "parameters": {}}, {"name": "read", "parameters": {}}]
    made = sent(chat(functions=given, function_call={"name": "bash"}))
    assert ([f["name"] for f in made["functions"]], made["function_call"]) == (["read"], "auto")
    assert set(sent(chat(functions=given[:1], function_call="auto"))) == {"model", "messages"}


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ({"type": "function", "function": {"name": "bash"}}, "auto"),
        ({"type": "custom", "custom": {"name": "bash"}}, "auto"),
        ({"type": "function", "function": {"name": "read"}}, {"type": "function", "function": {"name": "read"}}),
    ],
)
def test_a_choice_of_a_tool_that_is_gone_becomes_a_free_one(choice: Any, wanted: Any) -> None:
    assert sent(chat(tools=OFFERED, tool_choice=choice))["tool_choice"] == wanted


def test_a_choice_among_tools_keeps_those_that_are_left() -> None:
    def choice(*offered: str) -> Json:
        tools = [{"type": "function", "function": {"name": name}} for name in offered]
        return {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": tools}}

    assert sent(chat(tools=OFFERED, tool_choice=choice("bash", "read")))["tool_choice"] == choice("read")
    assert sent(chat(tools=OFFERED, tool_choice=choice("bash")))["tool_choice"] == "none"


@pytest.mark.parametrize("key", ["web_search_options", "search_parameters", "enable_search"])
def test_a_key_that_makes_the_provider_search_is_the_search_tool(key: str) -> None:
    body = chat(**{key: {"mode": "auto"}})
    assert key not in sent(body)
    assert key in sent(body, "tools: {disabled: [bash]}")


@pytest.mark.parametrize("kind", ["web_search", "web_search_preview", "web_search_2025_08_26"])
def test_a_tool_of_the_provider_is_what_its_type_says(kind: str) -> None:
    tools = [{"type": kind}, function("read")]
    assert names(sent(chat(tools=tools))) == ["read"]
    assert names(sent(chat(tools=tools), f"tools: {{disabled: [{kind}]}}")) == ["read"]


def test_history_of_tools_that_are_gone_stays() -> None:
    history = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call("bash", command="ls")]},
        {"role": "tool", "tool_call_id": "call_bash", "content": "x"},
        {"role": "assistant", "content": "'bash' is disabled for this agent."},
        {"role": "user", "content": "then?"},
    ]
    assert sent(chat(messages=history, tools=OFFERED))["messages"] == history


HIDDEN: list[Json] = [
    {"Tools": [function("bash")]},
    {"tools": [function("bash")], "extra_tools": [function("bash")]},
    {"extra_body": {"tools": [function("bash")]}},
    {"plugins": [{"id": "web"}]},
    {"tools": [{"type": "mcp", "server_url": "https://x"}]},
    {"tools": [{"type": "function", "function": {"name": "read"}, "custom": {"name": "bash"}}]},
    {"tools": [{"type": "function", "name": "bash", "function": {"name": "read"}}]},
    {"tools": [{"type": "function", "function": {"name": "read", "tools": [function("bash")]}}]},
    {"tools": [{"type": "function", "function": {"name": ""}}]},
    {"tools": [{"type": "function"}]},
    {"tools": [{}]},
    {"tools": ["bash"]},
    {"tools": {"0": function("bash")}},
    {"tools": [{"type": "agent_builder"}]},
    {"messages": [{"role": "system", "content": "x", "tools": [function("bash")]}]},
    {"messages": [{"role": "user", "content": [{"type": "tool_use", "tool": {"name": "bash"}}]}]},
    {"tool_choice": {"type": "function", "function": {"name": "bash"}, "tools": [function("bash")]},
     "tools": [function("read")]},
]  # fmt: skip


@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_could_hide_a_tool_is_refused(hidden: Json) -> None:
    with pytest.raises(UnclearError):
        sent(chat(**hidden))


@pytest.mark.parametrize(
    "raw",
    [
        b'{"messages":[],"tools":[],"tools":[{"type":"function","function":{"name":"bash"}}]}',
        b'{"messages":[],"tools":[{"type":"function","function":{"name":"read","name":"bash"}}]}',
        b'{"messages":[],"tools":[{"type":"function","function":{"name":"\\ud800"}}]}',
        b'\xef\xbb\xbf{"messages":[]}',
        b'{"messages":[]} {"tools":[]}',
        b"[]",
        b"",
        b"[" * 100_000,
    ],
)
def test_bodies_that_two_parsers_read_differently_are_refused(raw: bytes) -> None:
    with pytest.raises(UnclearError):
        sent(raw)


@pytest.mark.parametrize("name", ["Bash", "bash ", "b\\u0061sh", "ｂash"])
def test_a_name_is_judged_as_it_is_spelled(name: str) -> None:
    body = chat(tools=[function("x")]).replace(b'"name": "x"', f'"name": "{name}"'.encode())
    assert names(sent(body, "tools: {allowed: [read]}")) == []
    assert (names(sent(body)) == []) == (name == "b\\u0061sh")


def test_what_is_not_known_and_holds_no_tool_passes() -> None:
    body = chat(top_k=3, guided={"a": [1]}, tools=[function("read")])
    assert CHAT.request(body, turn(DENIED, inventory(), GENERIC), STRICT) is body
    made = sent(chat(extra_tools=[], tools=[{"type": "agent_builder"}, function("bash")]), options=LOOSE)
    assert names(made) == ["agent_builder"]


SKILL = "  <skill>\n    <name>secret</name>\n    <description>S</description>\n  </skill>\n"
SKILLS = """<available_skills>
  <skill>
    <name>secret</name>
    <description>S</description>
  </skill>
  <skill>
    <name>open</name>
    <description>O</description>
  </skill>
</available_skills>
"""
TREE = "<available_skills>\n  ops:\n    - open: O\n    - secret: S\n  x:\n    - secret: S\n</available_skills>\n"
BULLETS = "<skills_instructions>\n## Skills\n- `r0` = `/x`\n- secret: S (file: r0)\n- open: O\n</skills_instructions>"
SERVERS = '<mcp_instructions>\n  <server name="alpha">\n    A\n  </server>\n  <server name="b">\n    B\n  </server>\n'
TOLD = (
    "provided by the tool server '{0}':\n---[start of server instructions]---\n"
    "{0}!\n---[end of server instructions]---\n"
)
NOTES = "".join("The following are instructions " + TOLD.format(server) for server in ("alpha", "b"))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (SKILLS, SKILLS.replace(SKILL, "")),
        (TREE, "<available_skills>\n  ops:\n    - open: O\n</available_skills>\n"),
        (BULLETS, BULLETS.replace("- secret: S (file: r0)\n", "")),
        (SERVERS, SERVERS.replace('  <server name="alpha">\n    A\n  </server>\n', "")),
        (NOTES, "The following are instructions " + TOLD.format("b")),
        ("a skill called secret", "a skill called secret"),
    ],
)  # fmt: skip
def test_hidden_entries_leave_the_listings_of_prompts(text: str, wanted: str) -> None:
    policy = DENIED.replace("alpha/danger", "alpha")
    made = sent(chat(messages=[{"role": "system", "content": f"é\n{text}tail"}]), policy)
    assert made["messages"][0]["content"] == f"é\n{wanted}tail"
    parted = [{"role": "system", "content": [{"type": "text", "text": f"{text}tail"}]}]
    assert sent(chat(messages=parted), policy)["messages"][0]["content"][0]["text"] == f"{wanted}tail"


def test_hidden_skills_leave_a_tool_s_choices() -> None:
    schema = {"properties": {"name": {"type": "string", "enum": ["secret", "open"]}}}
    tool = function("activate_skill", description="By name (Available: 'secret', 'open').", parameters=schema)
    made = sent(chat(tools=[tool]))["tools"][0]["function"]
    assert made["parameters"]["properties"]["name"]["enum"] == ["open"]
    assert made["description"] == "By name (Available: 'open')."
    only = function("skill", parameters={"properties": {"name": {"type": "string", "enum": ["secret"]}}})
    assert sent(chat(tools=[only]))["tools"][0]["function"]["parameters"]["properties"]["name"] == {"type": "string"}


def test_errors_are_of_the_client_s_form() -> None:
    assert json.loads(PROVIDER.error(403, "x"))["error"]["type"] == "permission_error"


@pytest.mark.parametrize(
    ("method", "path", "act"),
    [
        ("POST", "/v1/chat/completions", "gate"),
        ("GET", "/v1/models", "pass"),
        ("GET", "/v1/models/gpt-5", "pass"),
        ("POST", "/v1/embeddings", "pass"),
        ("GET", "/v1/chat/completions", "refuse"),
        ("GET", "/v1/chat/completions/chatcmpl-1", "refuse"),
        ("POST", "/v1/chat/completions/", "refuse"),
        ("POST", "/v1/chat/../chat/completions", "refuse"),
        ("POST", "/v1//chat/completions", "refuse"),
        ("POST", "/v1/Chat/completions", "refuse"),
        ("POST", "/v1/batches", "refuse"),
        ("POST", "/v1/threads/x/runs", "refuse"),
        ("POST", "/v1/realtime/sessions", "refuse"),
        ("DELETE", "/v1/models/x", "refuse"),
    ],
)
def test_only_known_paths_are_served(method: str, path: str, act: str) -> None:
    assert PROVIDER.route(method, path).act == act


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["bash", "read", "function", "custom", "auto", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "name", "function", "tools", "Tools", "x", "custom"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
BODIES = st.dictionaries(
    st.sampled_from(["tools", "functions", "tool_choice", "function_call", "messages", "Tools", "extra", "model"]),
    JSONS,
)


@settings(max_examples=50, deadline=None)
@given(BODIES)
def test_no_request_brings_a_denied_definition_through(body: Json) -> None:
    try:
        made = sent(json.dumps(body).encode())
    except UnclearError:
        return
    for tool in [*(made.get("tools") or []), *(made.get("functions") or [])]:
        assert "bash" not in [tool.get("name"), *(v.get("name") for v in tool.values() if isinstance(v, dict))]
    assert "Tools" not in made
