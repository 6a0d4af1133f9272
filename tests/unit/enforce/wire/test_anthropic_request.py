"""Anthropic's requests: the hidden is gone from every place, and nothing else is other than it came."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extgate.core.extension import Extension, Inventory, Server
from extgate.enforce.sinks import Memory as Events
from extgate.enforce.wire.anthropic import COUNT, MESSAGES
from extgate.enforce.wire.judge import Judge
from extgate.enforce.wire.provider import Options
from extgate.enforce.wire.spans import UnclearError
from extgate.enforce.wire.turn import Turn
from tests.unit.enforce.wire.world import CLAUDE, GENERIC, Json, body, call, gate, inventory, said, tool, turn

DENIED = (
    "tools: {disabled: [Bash]}\nskills: {disabled: [secret]}\nsubagents: {disabled: [spy]}\nmcp: {disabled: [beta]}"
)


def sent(data: bytes, text: str = DENIED, stock: Inventory | None = None, **more: Any) -> Json:
    made: Json = json.loads(MESSAGES.request(data, turn(text, stock, **more), Options()))
    return made


def names(request: Json) -> list[str]:
    return [row.get("name") or row["type"] for row in request.get("tools", [])]


def refusal(data: bytes, text: str = DENIED, **more: Any) -> str:
    with pytest.raises(UnclearError) as caught:
        MESSAGES.request(data, turn(text, **more), Options())
    return str(caught.value)


# ---------------------------------------------------------------------------------------------- tools


def test_a_denied_tool_goes_and_every_other_byte_stays() -> None:
    data = body(tools=[tool("Read"), tool("Bash"), tool("Grep")], temperature=1e-2, custom={"é": "\u2028"})
    gone = json.dumps(tool("Bash"), ensure_ascii=False).encode() + b", "
    assert MESSAGES.request(data, turn(DENIED), Options()) == data.replace(gone, b"")


def test_a_request_of_which_everything_is_allowed_is_the_very_same_bytes() -> None:
    data = body(tools=[tool("Read"), tool("Bash")], mcp_servers=[{"type": "url", "name": "x", "url": "https://x"}])
    assert MESSAGES.request(data, turn(""), Options()) is data


def test_the_same_set_gives_the_same_bytes_each_time() -> None:
    data = body(tools=[tool("Read"), tool("Bash"), tool("mcp__beta__x"), tool("Grep")])
    first = MESSAGES.request(data, turn(DENIED), Options())
    longer = data.replace(b'"content": "hi"', b'"content": "hi, and more"')
    assert MESSAGES.request(longer, turn(DENIED), Options()) == first.replace(b'"hi"', b'"hi, and more"')


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["Bash", "Read", "Grep", "mcp__beta__x", "mcp__alpha__y"]), max_size=8, unique=True))
def test_what_is_left_is_what_the_gate_shows_in_the_order_it_came(offered: list[str]) -> None:
    made = sent(body(tools=[tool(name) for name in offered]))
    left = [name for name in offered if name not in ("Bash", "mcp__beta__x")]
    assert names(made) == left
    assert ("tools" in made) == bool(left) or not offered


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ({"type": "bash_20250124", "name": "bash"}, "bash"),
        ({"type": "bash_20250124", "name": "bash"}, "bash_2025*"),
        ({"type": "bash_20250124", "name": "harmless"}, "bash"),
        ({"type": "web_search_20250305", "name": "web_search", "max_uses": 3}, "web_search"),
        ({"type": "code_execution_20250825", "name": "code_execution"}, "code_execution"),
        ({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}, "text_editor"),
        ({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}, "str_replace_*"),
        ({"type": "computer_20250124", "name": "computer", "display_width_px": 1}, "computer"),
        ({"type": "memory_20250818", "name": "memory"}, "memory"),
        ({"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}, "tool_search_*"),
        ({"type": "computer_toolset_20260801"}, "computer"),
        ({"type": "browser_toolset_20260801", "configs": {"click": {"enabled": True}}}, "browser_toolset"),
        ({"type": "brand_new_20300101", "name": "x"}, "brand_new"),
        ({"type": "custom", "name": "evil", "input_schema": {}}, "evil"),
        ({"name": "e\\u0076il", "input_schema": {}}, "evil"),
        ({"name": "evil", "input_schema": {}, "defer_loading": True}, "evil"),
    ],
    ids=range(16),
)
def test_a_tool_of_the_providers_own_goes_by_its_name_and_by_its_type(row: Json, rule: str) -> None:
    data = body(tools=[row, tool("Read")]).replace(b"\\\\u", b"\\u")
    assert names(sent(data, f"tools: {{disabled: ['{rule}']}}", client=GENERIC)) == ["Read"]
    assert names(sent(data, "tools: {disabled: [nothing]}", client=GENERIC)) != ["Read"]


def test_claude_codes_own_web_search_is_what_the_providers_stands_for() -> None:
    data = body(tools=[{"type": "web_search_20250305", "name": "web_search"}])
    assert names(sent(data, "tools: {allowed: [WebSearch]}")) == ["web_search"]
    assert names(sent(data, "tools: {disabled: [WebSearch]}")) == []


@pytest.mark.parametrize(
    "rows",
    [
        [{"input_schema": {}}], [{"name": 5}], ["Bash"], [None], [{"type": "server_thing_20250101"}],
        [{"name": "Read", "function": {"name": "Bash"}}], [{"name": "Read", "tools": [{"name": "Bash"}]}],
        [{"type": "mcp_toolset"}], [{"type": ["custom"], "name": "x"}], {"name": "Bash"}, "Bash",
    ],
    ids=range(11),
)  # fmt: skip
def test_an_entry_that_cannot_be_understood_where_tools_stand_is_refused(rows: Any) -> None:
    assert refusal(body(tools=rows))


@pytest.mark.parametrize(
    "data",
    [
        body(tools=[tool("Read")]).replace(b'"model"', b'"tools": [{"name": "Bash"}], "model"'),
        body(tools=[tool("Read")]).replace(b'"name": "Read"', b'"name": "Read", "name": "Bash"'),
        body(tools=[tool("Read")]).replace(b'"name": "Read"', b'"name": "Read", "n\\u0061me": "Bash"'),
        body(tools=[tool("Read")]).replace(b'"name": "Read"', b'"name": "Read", "NAME": "Bash"'),
        body(Tools=[tool("Bash")]), body(toolsets=[1]), body(functions=[{"name": "x"}]), body(agent="spy"),
        body(extra={"deep": [{"tool_definitions": 1}]}), b"\xef\xbb\xbf" + body(), body() + b"x", b"[" + body() + b"]",
        body().replace(b"hi", b"\xff"), b"{",
    ],
    ids=range(14),
)  # fmt: skip
def test_a_body_that_another_parser_could_read_otherwise_is_refused(data: bytes) -> None:
    assert refusal(data)


def test_a_setting_lets_unknown_fields_pass_where_a_tool_could_hide() -> None:
    data = body(toolsets=[1])
    assert MESSAGES.request(data, turn(DENIED), Options(unknown="pass")) is data


def test_fields_in_which_no_tool_could_hide_pass_untouched() -> None:
    data = body(new_field={"mode": "x", "list": [1, {"deep": None}]}, another=3, service_tier="auto", betas=["x"])
    assert MESSAGES.request(data, turn(DENIED), Options()) is data


def test_an_unsound_name_is_left_out_even_where_everything_is_allowed() -> None:
    data = body(tools=[tool("Read"), tool("Re\u200bad"), tool("")])
    assert names(sent(data, "")) == ["Read"]


def test_a_choice_of_a_tool_that_is_gone_becomes_a_free_one() -> None:
    choice = {"type": "tool", "name": "Bash", "disable_parallel_tool_use": True}
    made = sent(body(tools=[tool("Read"), tool("Bash")], tool_choice=choice))
    assert made["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    kept = sent(body(tools=[tool("Read"), tool("Bash")], tool_choice={"type": "tool", "name": "Read"}))
    assert kept["tool_choice"] == {"type": "tool", "name": "Read"}


def test_without_any_tool_the_keys_about_tools_go_and_history_becomes_text() -> None:
    history = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [said("so"), call("Bash", command="ls")]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_Bash", "content": "a\nb"},
            {"type": "tool_result", "tool_use_id": "2", "content": [said("c"), {"type": "image", "source": {}}]},
            {"type": "tool_result", "tool_use_id": "3"},
        ]},
    ]  # fmt: skip
    made = sent(body(tools=[tool("Bash")], tool_choice={"type": "any"}, messages=history))
    assert not {"tools", "tool_choice"} & made.keys()
    assert made["messages"][1]["content"] == [said("so"), said("(`Bash` was called.)")]
    told = [said("a\nb"), said("c"), {"type": "image", "source": {}}, said("(It returned nothing.)")]
    assert made["messages"][2]["content"] == told


def test_history_stays_as_it_is_while_some_tool_is_left() -> None:
    history = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [call("Bash", command="ls")]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_Bash", "content": "a"}]},
    ]
    assert sent(body(tools=[tool("Bash"), tool("Read")], messages=history))["messages"] == history


def test_counting_is_gated_like_asking() -> None:
    made = json.loads(COUNT.request(body(tools=[tool("Read"), tool("Bash")]), turn(DENIED), Options()))
    assert names(made) == ["Read"]


# ---------------------------------------------------------------------------------------------- tools in messages


def content(*rows: Json, role: str = "user") -> bytes:
    return body(
        tools=[tool("Read")], messages=[{"role": "user", "content": "hi"}, {"role": role, "content": list(rows)}]
    )


def changed(kind: str, **rest: Any) -> Json:
    return {"type": kind, "tool": rest}


def test_references_to_hidden_tools_are_not_loaded() -> None:
    found = [{"type": "tool_reference", "tool_name": name} for name in ("mcp__beta__x", "mcp__alpha__y")]
    made = sent(content({"type": "tool_result", "tool_use_id": "1", "content": found}))
    assert made["messages"][1]["content"][0]["content"] == found[1:]
    made = sent(content({"type": "tool_result", "tool_use_id": "1", "content": found[:1]}))
    assert made["messages"][1]["content"][0]["content"][0]["type"] == "text"
    hosted = {"type": "tool_search_tool_search_result", "tool_references": found}
    made = sent(content({"type": "tool_search_tool_result", "tool_use_id": "1", "content": hosted}, role="assistant"))
    assert made["messages"][1]["content"][0]["content"]["tool_references"] == found[1:]


def test_tools_that_a_message_adds_are_judged_like_those_of_the_request() -> None:
    rows = [
        changed("tool_addition", type="tool_reference", name="Bash"),
        changed("tool_addition", type="tool_definition", definition=tool("mcp__beta__x")),
        changed("tool_addition", type="tool_definition", definition=tool("mcp__alpha__x")),
        changed("tool_addition", type="mcp_tool_reference", name="x", server_name="beta"),
        changed("tool_removal", type="tool_reference", name="Bash"),
        changed("tool_removal", type="tool_reference", name="Read"),
    ]
    asked = turn(DENIED)
    made = json.loads(MESSAGES.request(content(*rows, role="system"), asked, Options()))
    assert made["messages"][1]["content"] == [rows[2], rows[5]]
    assert asked.offered("mcp__alpha__x")
    assert not asked.offered("mcp__beta__x")


def test_a_message_of_which_nothing_is_left_goes_as_a_whole() -> None:
    made = sent(content(changed("tool_addition", type="tool_reference", name="Bash"), role="system"))
    assert [m["role"] for m in made["messages"]] == ["user"]


def test_the_changes_that_a_compaction_brings_along_are_judged_too() -> None:
    rows = [changed("tool_addition", type="tool_definition", definition=tool(name)) for name in ("Bash", "Read")]
    made = sent(content({"type": "compaction", "content": "x", "tool_changes": rows}, role="assistant"))
    assert made["messages"][1]["content"][0]["tool_changes"] == rows[1:]


@pytest.mark.parametrize(
    "row",
    [
        changed("tool_addition", type="brand_new", name="x"), changed("tool_addition", type="tool_reference"),
        changed("tool_addition", type="tool_definition", definition={"type": "mcp_toolset", "mcp_server_name": "b"}),
        changed("tool_addition", type="tool_definition", definition={"type": "mcp\\u005ftoolset"}),
        {"type": "brand_new", "tools": [tool("Bash")]}, {"type": "text", "text": "x", "tool": tool("Bash")},
        {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "tool_reference"}]}, {"type": 5}, [], "x",
    ],
    ids=range(10),
)  # fmt: skip
def test_a_block_that_could_bring_tools_and_is_not_understood_is_refused(row: Any) -> None:
    assert refusal(content(row).replace(b"\\\\u", b"\\u"))


def test_new_blocks_in_which_no_tool_could_hide_pass_untouched() -> None:
    new = {"type": "new_tool_result", "tool_use_id": "1", "content": [{"type": "new", "text": "x"}]}
    image = {"type": "image", "source": {"type": "url", "url": "u"}}
    data = content({"type": "brand_new", "x": {"y": [1]}}, image, new)
    assert MESSAGES.request(data, turn(DENIED), Options()) is data


# ---------------------------------------------------------------------------------------------- servers, skills, edits

GITHUB = Server(name="github", facts={"url": "https://github.example/mcp"})
STOCK = inventory(
    *(Extension(kind="mcp_tool", server="github", name=name) for name in ("get", "wipe", "list")), servers=[GITHUB]
)
RULE = "mcp: {disabled: ['github/wipe']}"


def hosted(**more: Any) -> Json:
    return {"type": "url", "name": "github", "url": "https://github.example/mcp"} | more


def test_a_server_that_the_provider_calls_is_closed_to_what_is_allowed() -> None:
    data = body(
        mcp_servers=[hosted(authorization_token="t")], tools=[{"type": "mcp_toolset", "mcp_server_name": "github"}]
    )
    made = sent(data, RULE, STOCK)
    assert made["mcp_servers"] == [hosted(authorization_token="t")]
    on = {"enabled": True}
    assert made["tools"][0]["default_config"] == {"enabled": False}
    assert made["tools"][0]["configs"] == {"get": on, "list": on}


def test_a_toolset_with_a_list_of_its_own_keeps_the_allowed_of_it() -> None:
    toolset = {"type": "mcp_toolset", "mcp_server_name": "github", "default_config": {"enabled": False},
               "configs": {"wipe": {"enabled": True}, "get": {"enabled": True, "defer_loading": True}}}  # fmt: skip
    made = sent(body(mcp_servers=[hosted()], tools=[toolset]), RULE, STOCK)
    assert made["tools"][0]["configs"] == {"get": {"enabled": True, "defer_loading": True}}
    only = {**toolset, "configs": {"wipe": {"enabled": True}}}
    made = sent(body(mcp_servers=[hosted()], tools=[only, tool("Read")]), RULE, STOCK)
    assert (names(made), "mcp_servers" in made) == (["Read"], False)


def test_the_older_form_of_a_server_is_narrowed_as_well() -> None:
    made = sent(body(mcp_servers=[hosted()]), RULE, STOCK)
    assert made["mcp_servers"][0]["tool_configuration"] == {"allowed_tools": ["get", "list"]}
    config = {"enabled": True, "allowed_tools": ["wipe", "get"]}
    made = sent(body(mcp_servers=[hosted(tool_configuration=config)]), RULE, STOCK)
    assert made["mcp_servers"][0]["tool_configuration"] == {"enabled": True, "allowed_tools": ["get"]}
    made = sent(body(mcp_servers=[hosted(), {"type": "url", "name": "x", "url": "https://x"}]), RULE, STOCK)
    assert [row["name"] for row in made["mcp_servers"]] == ["github"]


def test_a_server_of_that_name_at_another_address_is_of_unknown_origin() -> None:
    elsewhere = {"type": "url", "name": "github", "url": "https://evil.example/mcp"}
    assert "mcp_servers" not in sent(body(mcp_servers=[elsewhere]), "mcp: {allowed: [github]}", STOCK)
    assert "mcp_servers" in sent(body(mcp_servers=[hosted()]), "mcp: {allowed: [github]}", STOCK)


def test_skills_of_a_container_are_skills() -> None:
    skills = [{"type": "anthropic", "skill_id": "pptx"}, {"type": "custom", "skill_id": "secret"}]
    made = sent(body(container={"id": "c", "skills": skills}))
    assert made["container"] == {"id": "c", "skills": skills[:1]}
    assert sent(body(container={"id": "c", "skills": skills[1:]}))["container"] == {"id": "c"}
    assert sent(body(container="c"))["container"] == "c"
    assert refusal(body(container={"skills": [{"type": "custom"}]}))


def test_names_of_hidden_tools_leave_the_edits_of_the_context() -> None:
    edit = {"type": "clear_tool_uses_20250919", "exclude_tools": ["Bash", "Read"], "clear_tool_inputs": True}
    made = sent(body(context_management={"edits": [edit]}))
    assert made["context_management"]["edits"] == [{**edit, "exclude_tools": ["Read"]}]


# ---------------------------------------------------------------------------------------------- what a turn knows


def test_only_what_was_let_through_may_be_called() -> None:
    asked = turn(DENIED)
    MESSAGES.request(body(tools=[tool("Read"), tool("Bash")]), asked, Options())
    assert asked.begin("Read") == ""
    assert asked.begin("Bash") == "'Bash' is disabled for this agent."
    assert asked.begin("Grep") == "'Grep' was not offered to this agent."
    assert asked.begin("read") == "'read' was not offered to this agent."


def test_a_member_of_a_toolset_is_called_in_its_name() -> None:
    asked = turn("", client=GENERIC)
    MESSAGES.request(body(tools=[{"type": "computer_toolset_20260801"}]), asked, Options())
    assert asked.begin("computer", "toolset") == ""
    assert asked.begin("computer")
    assert asked.begin("browser", "toolset")


def test_what_is_hidden_and_what_is_refused_is_recorded() -> None:
    events = Events()
    asked = Turn(Judge(gate(DENIED, events=events), CLAUDE))
    MESSAGES.request(body(tools=[tool("Read"), tool("Bash")]), asked, Options())
    asked.begin("Bash")
    asked.begin("Read")
    told = [(e.door, e.question, e.extension, e.outcome) for e in events.events]
    assert told == [
        ("wire", "see", "tool:Bash", "refused"),
        ("wire", "use", "tool:Bash", "refused"),
        ("wire", "use", "tool:Read", "allowed"),
    ]


def test_a_record_that_cannot_be_written_shows_nothing() -> None:
    def broken(event: object) -> None:
        raise OSError("full")

    asked = Turn(Judge(gate(DENIED, events=broken), CLAUDE))  # type: ignore[arg-type]
    made = json.loads(MESSAGES.request(body(tools=[tool("Read"), tool("Bash")]), asked, Options()))
    assert names(made) == []
    assert asked.begin("Read")


SEED = body(tools=[tool("Read"), tool("Bash"), {"type": "web_search_20250305", "name": "web_search"}],
            container={"skills": [{"type": "custom", "skill_id": "secret"}]})  # fmt: skip


@given(st.integers(0, len(SEED)), st.integers(0, 30), st.binary(max_size=5))
def test_no_broken_request_brings_a_denied_tool_through(at: int, cut: int, new: bytes) -> None:
    data = SEED[:at] + new + SEED[at + cut :]
    try:
        out = MESSAGES.request(data, turn(DENIED), Options())
    except UnclearError:
        return
    made = json.loads(out)
    assert "Bash" not in [row.get("name") for row in made.get("tools") or []]
    box = made.get("container")
    assert "secret" not in [row["skill_id"] for row in (box.get("skills") or [] if isinstance(box, dict) else [])]
