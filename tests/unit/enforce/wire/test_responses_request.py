"""Responses requests without what the agent may not know of, all else in the same bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extgate.core.extension import Extension, Inventory, Server
from extgate.enforce.wire.openai import PROVIDER, RESPONSES
from extgate.enforce.wire.provider import Options
from extgate.enforce.wire.spans import UnclearError
from tests.unit.enforce.wire.responses_world import body, call, custom, function, space
from tests.unit.enforce.wire.world import GENERIC, Json, inventory, turn

DENIED = (
    "tools: {disabled: [bash, web_search, 'ops::wipe', shell]}\nmcp: {disabled: [alpha/danger]}\n"
    "skills: {disabled: [secret]}"
)
STRICT, LOOSE = Options(), Options(unknown="pass")


def item(name: str, server: str = "alpha") -> Extension:
    return Extension(kind="mcp_tool", name=name, server=server)


STOCK = inventory(item("danger"), item("safe"), servers=[Server(name="alpha", facts={"url": "https://alpha.test"})])


def sent(raw: bytes, text: str = DENIED, options: Options = STRICT, stock: Inventory = STOCK) -> Json:
    made: Json = json.loads(RESPONSES.request(raw, turn(text, stock, GENERIC), options))
    return made


def names(tools: list[Json]) -> list[str]:
    return [tool.get("name") or tool["type"] for tool in tools]


MCP_SPACE = space("mcp__alpha", function("danger"), function("safe"))
OFFERED = [
    function("bash"), function("read"), {"type": "custom", "name": "bash"}, {"type": "web_search"}, MCP_SPACE,
    space("ops", function("wipe")), {"type": "shell"}, {"type": "apply_patch"},
]  # fmt: skip


def test_denied_tools_are_gone_and_all_else_is_the_same_bytes() -> None:
    raw = body(tools=OFFERED, stream=True, store=False)
    made = RESPONSES.request(raw, turn(DENIED, STOCK, GENERIC), STRICT)
    kept = [OFFERED[1], space("mcp__alpha", function("safe")), OFFERED[7]]
    assert made == raw.replace(json.dumps(OFFERED).encode(), json.dumps(kept).encode())


def test_a_profile_that_allows_everything_changes_no_byte() -> None:
    mcp = {"type": "mcp", "server_label": "x", "server_url": "https://x", "require_approval": "never"}
    raw = body(tools=[*OFFERED, mcp], tool_choice={"type": "function", "name": "bash"}, new=[1])
    assert RESPONSES.request(raw, turn("", STOCK, GENERIC), STRICT) is raw


def test_without_a_tool_left_nothing_speaks_of_tools() -> None:
    tools = [function("bash"), space("ops", function("wipe"))]
    assert set(sent(body(tools=tools, tool_choice="auto", parallel_tool_calls=True))) == {"model", "input"}


def test_tools_that_items_bring_are_judged() -> None:
    more = {"type": "additional_tools", "role": "developer", "tools": [function("bash"), function("read")]}
    only = {**more, "tools": [function("bash")]}
    found = {"type": "tool_search_output", "call_id": "c", "tools": [space("ops", function("wipe"))]}
    listed = {"type": "mcp_list_tools", "id": "m", "server_label": "alpha",
              "tools": [{"name": "danger", "input_schema": {}}, {"name": "safe", "input_schema": {}}]}  # fmt: skip
    said = {"role": "user", "content": "hi"}
    made = sent(body(input=[more, only, said, found, listed]))["input"]
    assert made[0] == {**more, "tools": [function("read")]}
    assert made[1:3] == [said, {**found, "tools": []}]
    assert names(made[3]["tools"]) == ["safe"]


def mcp(**more: Any) -> Json:
    return {"type": "mcp", "server_label": "alpha", "server_url": "https://alpha.test"} | more


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (mcp(), mcp(allowed_tools=["safe"])),
        (mcp(allowed_tools=["safe"]), mcp(allowed_tools=["safe"])),
        (mcp(allowed_tools=["danger", "safe"]), mcp(allowed_tools=["safe"])),
        (mcp(allowed_tools={"read_only": True}), mcp(allowed_tools={"read_only": True, "tool_names": ["safe"]})),
        (mcp(allowed_tools=["danger"]), None),
        (mcp(allowed_tools=[]), None),
    ],
)
def test_a_server_that_the_provider_calls_is_closed_to_what_is_allowed(given: Json, wanted: Json | None) -> None:
    made = sent(body(tools=[given, function("read")]))["tools"]
    assert made == [*([wanted] if wanted else []), function("read")]


def test_a_server_s_label_alone_is_believed_for_denies_only() -> None:
    elsewhere = mcp(server_url="https://evil.test")
    allowed = "mcp: {allowed: [alpha]}"
    assert sent(body(tools=[mcp()]), allowed)["tools"] == [mcp(allowed_tools=["danger", "safe"])]
    assert "tools" not in sent(body(tools=[elsewhere]), allowed)


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        ("required", "required"),
        ({"type": "function", "name": "bash"}, "auto"),
        ({"type": "function", "name": "read"}, {"type": "function", "name": "read"}),
        ({"type": "web_search"}, "auto"),
        ({"type": "apply_patch"}, {"type": "apply_patch"}),
        ({"type": "mcp", "server_label": "alpha"}, "auto"),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "bash"}]}, "none"),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}, {"type": "apply_patch"}]},
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "apply_patch"}]},
        ),
    ],
)
def test_a_choice_of_a_tool_that_is_gone_becomes_a_free_one(choice: Any, wanted: Any) -> None:
    assert sent(body(tools=OFFERED, tool_choice=choice))["tool_choice"] == wanted


def test_skills_of_a_shell_are_judged() -> None:
    skills = [{"name": "secret", "description": "S", "path": "/s"}, {"name": "open", "description": "O", "path": "/o"}]
    shell = {"type": "shell", "environment": {"type": "local", "skills": skills}}
    policy = "skills: {disabled: [secret]}"
    assert sent(body(tools=[shell]), policy)["tools"][0]["environment"]["skills"] == skills[1:]
    shell["environment"]["skills"] = [{"type": "skill_reference", "skill_id": "secret"}]  # type: ignore[index]
    assert sent(body(tools=[shell]), policy)["tools"][0]["environment"] == {"type": "local"}


def test_history_of_tools_that_are_gone_stays() -> None:
    history = [
        {"role": "user", "content": "hi"},
        call("bash", command="ls"),
        {"type": "function_call_output", "call_id": "call_bash", "output": "x"},
        custom("bash", "tools: agents"),
        {"type": "custom_tool_call_output", "call_id": "call_bash", "output": [{"type": "input_text", "text": "x"}]},
        {"type": "local_shell_call", "id": "l", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}},
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "no"}]},
    ]
    assert sent(body(input=history, tools=OFFERED))["input"] == history


def test_hidden_skills_leave_a_developer_s_message() -> None:
    text = "<skills_instructions>\n### Available skills\n- secret: S (file: r0)\n- open: O\n</skills_instructions>"
    message = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]}
    wanted = text.replace("- secret: S (file: r0)\n", "")
    made = sent(body(input=[message], instructions=text))
    assert (made["input"][0]["content"][0]["text"], made["instructions"]) == (wanted, wanted)


HIDDEN: list[Json] = [
    {"prompt": {"id": "pmpt_1"}},
    {"Tools": [function("bash")]},
    {"tool_sets": [function("bash")]},
    {"tools": [{"type": "mcp", "server_url": "https://x"}]},
    {"tools": [mcp(), mcp()]},
    {"tools": [mcp(connector_id="connector_gmail")]},
    {"tools": [mcp(tool_filter={})]},
    {"tools": [mcp(allowed_tools={"exclude_tools": []})]},
    {"tools": [{"type": "function", "name": ""}]},
    {"tools": [{"type": "function", "name": "read", "tools": [function("bash")]}]},
    {"tools": [{"type": "namespace", "tools": [function("bash")]}]},
    {"tools": [space("ops", space("deep", function("bash")))]},
    {"tools": [space("ops", mcp())]},
    {"tools": [{"type": "toolbox"}]},
    {"tools": [{"type": "web_search_evil"}]},
    {"tools": [{"type": "web_search", "tools": [function("bash")]}]},
    {"tools": [{"type": "shell", "environment": {"type": "local", "plugins": ["x"]}}]},
    {"input": [{"type": "toolbox", "tools": [function("bash")]}]},
    {"input": [{"type": "message", "role": "user", "content": "x", "tools": [function("bash")]}]},
    {"input": [{"type": "message", "role": "user", "content": [{"type": "x", "tools": [function("bash")]}]}]},
    {"input": [{"type": "additional_tools", "tools": [{"type": "toolbox"}]}]},
    {"tools": [function("read")], "tool_choice": {"type": "function", "name": "read", "definition": {}}},
]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_could_hide_a_tool_is_refused(hidden: Json) -> None:
    with pytest.raises(UnclearError):
        sent(body(**hidden))


def test_what_is_not_known_passes_where_that_is_wanted() -> None:
    made = sent(body(prompt={"id": "p"}, tools=[{"type": "toolbox"}, function("bash")]), options=LOOSE)
    assert (names(made["tools"]), made["prompt"]) == (["toolbox"], {"id": "p"})


@pytest.mark.parametrize(
    ("method", "path", "act"),
    [
        ("POST", "/v1/responses", "gate"),
        ("POST", "/v1/responses/input_tokens", "gate"),
        ("POST", "/v1/responses/compact", "gate"),
        ("GET", "/v1/responses/resp_1", "gate"),
        ("POST", "/v1/responses/resp_1/cancel", "gate"),
        ("GET", "/v1/responses/resp_1/input_items", "pass"),
        ("POST", "/v1/conversations", "gate"),
        ("GET", "/v1/responses", "refuse"),
        ("POST", "/v1/responses/resp_1", "refuse"),
        ("POST", "/v1/responses/resp_1/../x", "refuse"),
        ("GET", "/v1/responses/..", "refuse"),
    ],
)
def test_only_known_paths_are_served(method: str, path: str, act: str) -> None:
    assert PROVIDER.route(method, path).act == act


JSONS = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from(["bash", "read", "function", "custom", "namespace", "mcp", "shell", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "name", "tools", "Tools", "x", "role", "content"]), inner, max_size=4
        )
    ),
    max_leaves=14,
)
BODIES = st.dictionaries(st.sampled_from(["tools", "tool_choice", "input", "instructions", "Tools", "extra"]), JSONS)


def definitions(value: Any) -> list[str]:
    """Names of everything that looks like a tool of a list of tools, at any depth."""
    if isinstance(value, list):
        return [name for one in value for name in definitions(one)]
    if not isinstance(value, dict):
        return []
    own = [str(one.get("name")) for one in value.get("tools") or [] if isinstance(one, dict)]
    return own + [name for one in value.values() for name in definitions(one)]


@settings(max_examples=50, deadline=None)
@given(BODIES)
def test_no_request_brings_a_denied_definition_through(content: Json) -> None:
    try:
        made = sent(json.dumps(content).encode())
    except UnclearError:
        return
    made.pop("tool_choice", None)
    assert "bash" not in definitions(made)
    assert "Tools" not in made
