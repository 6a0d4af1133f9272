"""What the doors table does not ask of the Claude Agent SDK: sub-agents, resources, permission callbacks, options.

The SDK brings half a gigabyte, so `make venv` leaves it out; `tests/e2e/test_framework_versions.py` runs this file.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sdk = pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is tested in environments of its own")

from extgate.core.extension import Extension, Inventory  # noqa: E402
from extgate.enforce.gate import Gate  # noqa: E402
from extgate.enforce.inproc.claude_agent import ClaudeDoor, gated_options  # noqa: E402
from extgate.enforce.sinks import Memory  # noqa: E402
from tests.doors.policies import profile  # noqa: E402
from tests.doors.table import STOCK  # noqa: E402

OWN = ("Bash", "Read", "Write", "Skill", "Agent", "ReadMcpResourceTool", "ListMcpResourcesTool")
FACTS = {"Agent": {"aliases": ["Task"]}}


def gate(text: str = "{}", **more: Any) -> Gate:
    own = [Extension(kind="tool", name=name, source="claude-code", facts=FACTS.get(name, {})) for name in OWN]
    agents = [Extension(kind="subagent", name=name) for name in ("general-purpose", "reviewer")]
    stock = Inventory(extensions=(*STOCK.extensions, *own, *agents), servers=STOCK.servers)
    return Gate(profile(text), stock, door="test", **more)


def refusal(door: ClaudeDoor, name: str, args: dict[str, Any] | None = None, **payload: Any) -> str:
    """The reason of the hook, or the empty text."""
    given = {"hook_event_name": "PreToolUse", "tool_name": name, "tool_input": args or {}, **payload}
    said = asyncio.run(door.pre_tool_use(given, "t", None))
    return str(said["hookSpecificOutput"]["permissionDecisionReason"]) if said else ""


def options(door: Gate, **given: Any) -> Any:
    return gated_options(door, sdk.ClaudeAgentOptions(**given))


# -------------------------------------------------------------------------------------------------------------- options


def test_tools_are_the_visible_ones_and_the_hidden_ones_are_disallowed_as_well() -> None:
    made = options(gate("tools: {disabled: [Bash, Agent]}"), disallowed_tools=["Mine"])
    assert "Read" in made.tools
    assert "Bash" not in made.tools
    assert {"Mine", "Bash", "Agent", "Task"} <= set(made.disallowed_tools)
    assert options(gate("tools: {disabled: [Bash]}"), tools=["Bash", "Write", "Nonsense"]).tools == ["Write"]
    assert options(gate(), tools=[]).tools == []


def test_hidden_tools_of_servers_are_disallowed_by_wire_name_and_whole_servers_go() -> None:
    servers: Any = {name: {"command": "true"} for name in ("slack", "github", "surprise")}
    made = options(gate("mcp: {disabled: ['slack/send', github]}"), mcp_servers=servers)
    assert list(made.mcp_servers) == ["slack"]
    assert made.strict_mcp_config
    assert {"mcp__slack__send", "mcp__github", "mcp__github__wipe_all"} <= set(made.disallowed_tools)
    assert "mcp__slack__find" not in made.disallowed_tools


def test_a_file_of_servers_is_left_and_its_hidden_tools_are_disallowed() -> None:
    made = options(gate("mcp: {disabled: [github]}"), mcp_servers="/etc/servers.json")
    assert made.mcp_servers == "/etc/servers.json"
    assert "mcp__github" in made.disallowed_tools


@pytest.mark.parametrize(
    ("given", "left"), [(None, ["notes"]), ("all", ["notes"]), (["rollback", "notes"], ["notes"]), (["rollback"], [])]
)
def test_skills_are_the_visible_ones(given: Any, left: list[str]) -> None:
    assert options(gate("skills: {disabled: ['ops/*']}"), skills=given).skills == left


def test_hidden_skills_are_off_in_the_settings_which_reach_sub_agents_too(tmp_path: Path) -> None:
    door = gate("skills: {disabled: ['ops/*']}")
    wanted = {"skillOverrides": {"rollback": "off"}, "disableBundledSkills": True}
    assert json.loads(options(door).settings) == wanted
    file = tmp_path / "settings.json"
    file.write_text('{"model": "m", "skillOverrides": {"rollback": "on", "mine": "off"}}')
    merged = {"model": "m", "skillOverrides": {"rollback": "off", "mine": "off"}, "disableBundledSkills": True}
    for own in (str(file), file.read_text()):
        assert json.loads(options(door, settings=own).settings) == merged


def test_what_is_hidden_is_not_approved_beforehand() -> None:
    made = options(gate("tools: {disabled: [Bash]}"), allowed_tools=["Bash(ls:*)", "Bash", "Read"])
    assert made.allowed_tools == ["Read"]


def test_sub_agents_are_reduced_to_the_visible_ones_and_to_their_own_gates() -> None:
    door = gate("subagents: {disabled: [auditor]}\ntools: {disabled: [Bash]}")
    child = door.child(profile("tools: {disabled: [Write]}\nmcp: {disabled: [slack]}", id_="helper"))
    agents = {
        "helper": sdk.AgentDefinition(description="", prompt="", mcpServers=["slack", "github", {"inline": {}}]),
        "auditor": sdk.AgentDefinition(description="", prompt=""),
    }
    made = gated_options(door, sdk.ClaudeAgentOptions(agents=agents), children={"helper": child})
    assert list(made.agents) == ["helper"]
    assert {"Bash", "Write", "mcp__slack"} <= set(made.agents["helper"].disallowedTools)
    assert made.agents["helper"].mcpServers == ["github"]


def test_the_hosts_own_hooks_stay_and_the_original_options_too() -> None:
    own = sdk.HookMatcher(matcher="Bash", hooks=[])
    given = sdk.ClaudeAgentOptions(hooks={"PreToolUse": [own], "Stop": [own]})
    made = gated_options(gate(), given)
    assert made.hooks["Stop"] == [own]
    assert made.hooks["PreToolUse"][0] is own
    assert len(made.hooks["PreToolUse"]) == 2
    assert given.hooks == {"PreToolUse": [own], "Stop": [own]}
    assert made.hooks["PreToolUse"][1].timeout > gate().approval_timeout_s, "a hook that is too slow has no opinion"


# ----------------------------------------------------------------------------------------------------------------- hook


def test_a_tool_is_known_by_its_older_name() -> None:
    door = ClaudeDoor(gate("tools: {disabled: [Agent]}"))
    assert refusal(door, "Task", {"subagent_type": "reviewer"}) == "'Agent' is disabled for this agent."


@pytest.mark.parametrize("name", ["BASH", "Bash ", "mcp__slack__Send", "Nonsense", ""])
def test_a_near_miss_of_a_name_is_refused(name: str) -> None:
    assert refusal(ClaudeDoor(gate()), name)


@pytest.mark.parametrize("payload", [{"tool_name": "Read"}, {"tool_input": {}}, {"tool_name": "Read", "tool_input": 7}])
def test_a_payload_that_makes_no_sense_is_a_deny(payload: dict[str, Any]) -> None:
    said = asyncio.run(ClaudeDoor(gate("mcp: {required: [k8s]}")).pre_tool_use(payload, "t", None))
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_the_skill_tool_is_judged_by_the_skill() -> None:
    door = ClaudeDoor(gate("skills: {disabled: ['ops/*']}"))
    assert refusal(door, "Skill", {"skill": "notes"}) == ""
    assert "disabled" in refusal(door, "Skill", {"skill": "rollback"})
    assert "disabled" in refusal(door, "Skill", {"skill": "ops/rollback"})
    assert "not installed" in refusal(door, "Skill", {"skill": "surprise"})
    assert "not installed" in refusal(door, "Skill", {})


def test_resources_are_judged_by_their_uri_and_the_list_is_refused_when_it_would_show_too_much() -> None:
    door = ClaudeDoor(gate("resources: {disabled: ['wiki/wiki://secret/*']}"))
    read = {"server": "wiki", "uri": "wiki://public/a"}
    assert refusal(door, "ReadMcpResourceTool", read) == ""
    for uri in ("wiki://secret/b", "wiki://public/../secret/b", "wiki://%73ecret/b", "wiki://unknown"):
        assert refusal(door, "ReadMcpResourceTool", read | {"uri": uri})
    assert "may not see" in refusal(door, "ListMcpResourcesTool", {})
    assert "may not see" in refusal(door, "ListMcpResourcesTool", {"server": "wiki"})
    assert refusal(ClaudeDoor(gate()), "ListMcpResourcesTool", {}) == ""


def test_a_sub_agent_is_judged_as_such_and_runs_under_its_own_gate() -> None:
    door = gate("subagents: {disabled: [auditor]}\ntools: {disabled: [Bash]}")
    claude = ClaudeDoor(door, {"reviewer": door.child(profile("tools: {disabled: [Write]}", id_="reviewer"))})
    assert refusal(claude, "Agent", {"subagent_type": "reviewer"}) == ""
    assert "auditor" in refusal(claude, "Agent", {"subagent_type": "auditor"})
    inside = {"agent_id": "1", "agent_type": "reviewer"}
    assert refusal(claude, "Write") == ""
    assert "disabled" in refusal(claude, "Write", **inside)
    assert "disabled" in refusal(claude, "Bash", **inside)
    assert refusal(claude, "Read", **inside) == ""
    other = {"agent_id": "2", "agent_type": "general-purpose"}
    assert "disabled" in refusal(claude, "Bash", **other)
    door.swap(profile=profile("tools: {disabled: [Read]}"))
    assert "disabled" in refusal(claude, "Read", **inside)


def test_a_sub_agent_does_not_spawn_one_that_may_use_more() -> None:
    door = gate("{}")
    claude = ClaudeDoor(door, {"reviewer": door.child(profile("tools: {disabled: [Bash]}", id_="reviewer"))})
    inside = {"agent_id": "1", "agent_type": "reviewer"}
    assert "cannot be spawned here" in refusal(claude, "Agent", {"subagent_type": "general-purpose"}, **inside)
    assert refusal(claude, "Agent", {"subagent_type": "reviewer"}, **inside) == ""
    assert refusal(claude, "Agent", {"subagent_type": "general-purpose"}) == ""


def test_an_unavailable_sub_agent_is_not_spawned() -> None:
    door = gate("{}")
    claude = ClaudeDoor(door, {"reviewer": door.child(profile("mcp: {required: [k8s]}", id_="reviewer"))})
    assert "'reviewer' is unavailable" in refusal(claude, "Agent", {"subagent_type": "reviewer"})


def test_a_gate_that_is_not_under_the_sessions_own_is_not_taken_for_a_sub_agent() -> None:
    claude = ClaudeDoor(gate("tools: {disabled: [Bash]}"), {"reviewer": gate("{}")})
    assert "disabled" in refusal(claude, "Bash", agent_id="1", agent_type="reviewer")


# ------------------------------------------------------------------------------------------------- permission callback


def test_the_hosts_permission_callback_is_asked_after_the_hook_and_never_without_it() -> None:
    asked: list[str] = []

    async def own(name: str, args: dict[str, Any], context: Any) -> Any:
        asked.append(name)
        return sdk.PermissionResultAllow(updated_input=args)

    memory = Memory()
    made = options(gate("tools: {disabled: [Bash]}", sink=memory), can_use_tool=own)
    hook = made.hooks["PreToolUse"][0].hooks[0]

    def may(name: str, id_: str) -> str:
        return str(asyncio.run(made.can_use_tool(name, {}, SimpleNamespace(tool_use_id=id_))).behavior)

    assert may("Read", "unseen") == "deny"
    asyncio.run(hook({"tool_name": "Read", "tool_input": {}}, "a", None))
    asyncio.run(hook({"tool_name": "Bash", "tool_input": {}}, "b", None))
    assert may("Read", "a") == "allow"
    assert may("Bash", "b") == "deny"
    assert asked == ["Read"]
    assert options(gate()).can_use_tool is None
