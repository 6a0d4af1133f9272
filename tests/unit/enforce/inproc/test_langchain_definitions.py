"""A definition, or an object, that could be run under another name than it shows is judged by all of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, ConfigDict

from extgate.core.extension import Inventory, Server
from extgate.enforce.inproc.langchain import GateMiddleware, visible_tools
from extgate.enforce.inproc.langchain_definitions import parts_of
from extgate.enforce.inproc.langchain_identity import Identities, Registry
from extgate.enforce.inproc.langchain_view import View
from tests.unit.enforce.inproc.hosts import Marks, Scripted, call, gate, mcp, results, run, tool

STOCK = Inventory(
    extensions=(*map(tool, ["read", "bash", "bash_20250124", "google_search"]), mcp("arxiv", "x"), mcp("arxiv", "y")),
    servers=(Server(name="arxiv", facts={"url": "https://arxiv.example/mcp"}),),
)
BASH = {"type": "bash_20250124", "name": "bash"}
HERE = {"type": "mcp", "server_label": "arxiv", "server_url": "https://arxiv.example/mcp"}
NO_BASH, NO_CODE = "tools: {disabled: [bash]}", "tools: {disabled: [code_execution]}"


def is_shown(policy: str, definition: Any) -> bool:
    return bool(visible_tools(gate(policy, STOCK), [definition]))


@pytest.mark.parametrize(
    ("policy", "definition"),
    [
        (NO_BASH, {"name": "bash", "input_schema": {}, "function": {"name": "read"}}),
        (NO_BASH, {"name": "read", "input_schema": {}, "function": {"name": "bash"}}),
        (NO_BASH, {**BASH, "tools": [{"name": "read"}]}),
        (NO_BASH, {"tools": [{"name": "read"}], "function_declarations": [{"name": "bash"}]}),
        (NO_BASH, {"functionDeclarations": [{"name": "bash"}], "function_declarations": [{"name": "read"}]}),
        (NO_BASH, {"tools": {"name": "bash"}, "name": "read"}),
        (NO_BASH, {"tools": [{"tools": [{"name": "bash"}]}], "name": "read"}),
        (NO_BASH, {"name": "read", "toolSpec": {"name": "bash", "inputSchema": {"json": {}}}}),
        (NO_BASH, {"type": "custom", "name": "read", "custom": {"name": "bash"}}),
        (NO_BASH, {"title": "bash", "type": "object", "properties": {}}),
        (NO_BASH, {"type": "bash_20250124", "name": "read"}),
        (NO_BASH, {"type": "bash_20250124"}),
        ("tools: {disabled: ['bash_*']}", {"type": "bash_20250124", "name": "read"}),
        ("tools: {disabled: ['bash_*']}", BASH),
        ("tools: {allowed: [read]}", {"type": "bash_20250124", "name": "read"}),
        (NO_CODE, {"functionDeclarations": [{"name": "read"}], "code_execution": {}}),
        (NO_CODE, {"name": "read", "code_execution": {}}),
        (NO_CODE, {"name": "read", "codeExecution": {}}),
        (NO_CODE, {"google_search": {}, "code_execution": object()}),
        ("tools: {disabled: [codeExecution]}", {"name": "read", "code_execution": {}}),
        ("{}", {"name": "read", "mcp_servers": [{"name": "x"}]}),
        ("{}", {"tools": ["read"]}),
        ("{}", {"function": {}, "name": "read"}),
        ("{}", {"name": 5}),
        ("mcp: {allowed: [arxiv]}", {**HERE, "server_url": "https://evil.example", "allowed_tools": ["x"]}),
        (
            "mcp: {allowed: [arxiv]}",
            {"type": "mcp", "server_label": "arxiv", "connector_id": "c", "allowed_tools": ["x"]},
        ),
        ("mcp: {allowed: [arxiv]}", {"type": "mcp", "server_label": "arxiv", "allowed_tools": ["x"]}),
        ("mcp: {disabled: [arxiv/x]}", {**HERE, "allowed_tools": ["y", "x"]}),
        (
            "mcp: {disabled: [arxiv/x]}",
            {**HERE, "server_label": "other", "mcp_server_name": "arxiv", "allowed_tools": ["x"]},
        ),
        (
            "mcp: {disabled: [arxiv/x]}",
            {
                "type": "mcp_toolset",
                "mcp_server_name": "arxiv",
                "allowed_tools": ["y"],
                "default_config": {"enabled": True},
            },
        ),
        (
            "mcp: {disabled: [arxiv/x]}",
            {"type": "mcp_toolset", "mcp_server_name": "arxiv", "configs": {"y": {"enabled": True}}},
        ),
        (NO_BASH, {**HERE, "name": "bash", "allowed_tools": ["x"]}),
    ],
)
def test_a_definition_is_hidden_when_any_name_it_could_be_run_under_is(policy: str, definition: Any) -> None:
    assert not is_shown(policy, definition)


@pytest.mark.parametrize(
    ("policy", "definition"),
    [
        ("tools: {allowed: [bash]}", BASH),
        ("tools: {allowed: [bash, read]}", {**BASH, "tools": [{"name": "read"}]}),
        ("tools: {allowed: [read, bash_20250124]}", {"type": "bash_20250124", "name": "read"}),
        (NO_BASH, {"type": "web_search_20250305", "name": "web_search", "user_location": {"type": "approximate"}}),
        (
            "tools: {allowed: [read]}",
            {"name": "read", "input_schema": {"properties": {"bash": {}}}, "cache_control": {}},
        ),
        ("tools: {allowed: [read]}", {"type": "function", "function": {"name": "read", "parameters": {}}}),
        ("tools: {allowed: [google_search]}", {"google_search": {}}),
        ("mcp: {allowed: [arxiv]}", {**HERE, "allowed_tools": ["x"]}),
        (
            "mcp: {disabled: [arxiv/x]}",
            {
                "type": "mcp_toolset",
                "mcp_server_name": "arxiv",
                "default_config": {"enabled": False},
                "configs": {"y": {"enabled": True}, "x": {}},
            },
        ),
    ],
)
def test_a_definition_is_shown_when_all_its_names_are_allowed(policy: str, definition: Any) -> None:
    assert is_shown(policy, definition)


keys = st.sampled_from(["type", "function", "tools", "allowed_tools", "configs", "server_label"])
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "type", "tools", "z"]), inner),
    max_leaves=6,
)


@given(st.dictionaries(keys, values))
def test_whatever_else_a_definition_says_a_denied_name_in_it_is_seen(more: dict[str, Any]) -> None:
    assert "bash" in {part.name for part in parts_of({**more, "name": "bash"})}
    assert "bash" in {part.name for part in parts_of({**more, "function_declarations": [{"name": "bash"}]})}


def bash_in_disguise() -> BaseTool:
    made = Marks().tool("read")
    return made.model_copy(update={"extras": {"provider_tool_definition": BASH}})


def test_an_object_that_brings_a_providers_definition_is_judged_by_that_too() -> None:
    mine = gate(NO_BASH, STOCK)
    view = View(mine, Identities(mine, Registry()))
    plain = Marks().tool("read")
    assert view.keep([plain]) == [plain]
    assert view.keep([plain.model_copy(update={"extras": {"provider_tool_definition": BASH}})]) == []
    assert not is_shown(NO_BASH, bash_in_disguise())
    assert is_shown("{}", bash_in_disguise())
    plain.extras = {"provider_tool_definition": BASH}
    assert view.keep([plain]) == []


def test_a_schema_whose_title_is_another_name_is_judged_by_both() -> None:
    class Read(BaseModel):
        """Reads."""

        model_config = ConfigDict(title="bash")
        x: int = 0

    assert not is_shown(NO_BASH, Read)
    assert not is_shown("tools: {disabled: [Read]}", Read)
    assert is_shown("{}", Read)


# ---------------------------------------------------------------------------------------------------- renamed objects


@pytest.mark.parametrize("is_registered", [True, False])
def test_a_renamed_tool_is_judged_by_the_name_that_it_has_now(is_registered: bool) -> None:
    mine, registry, made = gate(NO_BASH, STOCK), Registry(), Marks().tool("read")
    if is_registered:
        registry.native([made], "app")
    view = View(mine, Identities(mine, registry))
    assert view.keep([made]) == [made]
    assert list(view.offered) == []
    view.offer([made])
    assert list(view.offered) == ["read"]
    made.name = "bash"
    assert view.keep([made]) == []
    assert list(view.offered) == ["bash"]
    made.name = "read"
    assert view.keep([made]) == [made]


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_a_tool_that_was_renamed_in_a_running_turn_does_not_run(how: str) -> None:
    marks = Marks()
    made = marks.tool("read")

    def rename(offer: Any) -> None:
        made.name = "bash" if len(model.offers) == 1 else made.name

    model = Scripted(turns=[call("read"), call("bash")], before=rename)
    messages = run(create_agent(model, [made], middleware=[GateMiddleware(gate(NO_BASH, STOCK))]), how=how)
    assert [status for status, _ in results(messages)] == ["error", "error"]
    assert not marks.by_name
    assert model.offers[1].names == []


def test_a_copy_of_a_registered_tool_under_another_name_is_not_taken_for_it() -> None:
    registry, made = Registry(), Marks().tool("read")
    assert isinstance(made, StructuredTool)
    registry.native([made], "app")
    copied = StructuredTool(name="bash", description="x", args_schema={}, func=made.func)
    assert registry.of(made) is not None
    assert registry.of(copied) is None
