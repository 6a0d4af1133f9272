"""Tools of Codex, Gemini CLI, Hermes and opencode that run or open others: judged by what they would run or open."""

from __future__ import annotations

import json
from typing import Any

import pytest

from extgate.core.extension import Extension, Server
from extgate.enforce.wire.clients import CLIENTS
from tests.unit.enforce.wire.world import Json, inventory, offering

STOCK = inventory(
    Extension(kind="skill", name="open"),
    Extension(kind="skill", name="secret"),
    Extension(kind="mcp_resource", name="x://one", server="my srv"),
    Extension(kind="mcp_resource", name="x://two", server="my srv"),
    servers=[Server(name="my srv")],
)
DENIED = "skills: {disabled: [secret]}\nsubagents: {disabled: [spy, default]}\nresources: {disabled: ['*/x://two']}"


def why(client: str, tool: str, args: Json, text: str = DENIED) -> str:
    turn = offering(text, tool, stock=STOCK, client=CLIENTS[client])
    return turn.finish(tool, json.dumps(args).encode())


@pytest.mark.parametrize(
    ("client", "tool", "args", "refused"),
    [
        ("opencode", "skill", {"name": "secret"}, "secret"),
        ("opencode", "skill", {"name": "open"}, ""),
        ("opencode", "task", {"subagent_type": "spy", "prompt": "x"}, "spy"),
        ("opencode", "read_mcp_resource", {"server": "my srv", "uri": "x://two"}, "x://two"),
        ("opencode", "list_mcp_resources", {}, "x://two"),
        ("codex", "spawn_agent", {"message": "x", "agent_type": "spy"}, "spy"),
        ("codex", "spawn_agent", {"message": "x"}, "default"),
        ("codex", "spawn_agent", {"message": "x", "agent_type": "worker"}, ""),
        ("gemini-cli", "activate_skill", {"name": "secret"}, "secret"),
        ("gemini-cli", "invoke_agent", {"agent_name": "spy", "prompt": "x"}, "spy"),
        ("gemini-cli", "read_mcp_resource", {"uri": "x://one"}, "x://two"),
        ("hermes", "skill_view", {"name": "secret"}, "secret"),
        ("hermes", "skill_manage", {"action": "patch", "name": "secret"}, "secret"),
        ("hermes", "skills_list", {}, "secret"),
        ("hermes", "mcp__my_srv__read_resource", {"uri": "x://two"}, "x://two"),
        ("hermes", "mcp__my_srv__list_resources", {}, "x://two"),
        ("hermes", "mcp__my_srv__list_prompts", {}, ""),
    ],
)
def test_a_call_is_judged_by_what_it_would_open(client: str, tool: str, args: Any, refused: str) -> None:
    assert refused in why(client, tool, args)
    assert bool(why(client, tool, args)) == bool(refused)
    assert why(client, tool, args, "") == ""


def test_a_prompt_is_judged_by_its_server_and_name() -> None:
    denied = "prompts: {disabled: ['my srv/hello']}"
    assert "hello" in why("hermes", "mcp__my_srv__get_prompt", {"name": "hello"}, denied)
    assert why("hermes", "mcp__my_srv__get_prompt", {"name": "other"}, denied) == ""
    assert why("hermes", "mcp__my_srv__get_prompt", {"name": "other"}, "prompts: {disabled: ['*']}")


@pytest.mark.parametrize(("rule", "tool"), [("google_web_search", "google_search"), ("web_fetch", "url_context")])
def test_a_tool_of_the_provider_is_the_program_s_own_that_asks_for_it(rule: str, tool: str) -> None:
    assert CLIENTS["gemini-cli"].hosted[tool] == rule
