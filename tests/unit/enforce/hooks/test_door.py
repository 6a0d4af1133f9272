"""What is judged of a call besides its name: who makes it, what it is used on, and which server it goes to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from extgate.core.extension import Extension, Inventory, Server
from extgate.core.names import gateway_names
from extgate.core.policy import Profile
from extgate.enforce.gate import Gate
from extgate.enforce.guarded_paths import Closed
from extgate.enforce.hooks import claude_code, codex, gemini, opencode
from extgate.enforce.hooks.call import Call, Shape
from extgate.enforce.hooks.door import HookDoor, UserAsks
from extgate.enforce.hooks.owners import Owners
from extgate.enforce.hooks.paths import MAX_PATHS, CallPaths
from extgate.enforce.sinks import Memory
from tests.doors.policies import layer, profile, rule
from tests.doors.table import mcp

NAMES = ("Bash", "Read", "Grep", "Write", "Agent", "Skill", "ReadMcpResourceTool", "ListMcpResourcesTool")


def stock(root: Path, tools: tuple[str, ...] = NAMES) -> Inventory:
    skills = []
    for name in ("open", "secret"):
        file = root / "skills" / name / "SKILL.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("text")
        skills.append(Extension(kind="skill", name=name, source="project", file=str(file)))
    items = (
        mcp("mcp_tool", "slack", "send"),
        mcp("mcp_tool", "slack", "find"),
        mcp("mcp_tool", "extgate_evil", "find"),
        mcp("mcp_resource", "wiki", "wiki://a"),
        mcp("mcp_resource", "wiki", "wiki://b"),
    )
    native = (Extension(kind="tool", name=name, source="runtime") for name in tools)
    servers = tuple(Server(name=name) for name in ("slack", "wiki", "extgate_evil"))
    return Inventory(extensions=(*native, *skills, *items), servers=servers)


class Made:
    """A door over the stock, with its record."""

    def __init__(self, root: Path, text: str, *more: Any, shape: Shape = claude_code.SHAPE, **options: Any) -> None:
        self.memory = Memory()
        tools = tuple(dict.fromkeys([*NAMES, *shape.spawns, *shape.readers, *shape.patches, *shape.searches]))
        asks = options.get("asks")
        self.gate = Gate(profile(text, *more), stock(root, tools), door="t", sink=self.memory, approver=asks)
        closed = Closed(root=root, files=("agents/*.yaml", ".claude/*.json"), skills=(root / "skills",))
        self.door = HookDoor(shape, self.gate, paths=CallPaths(shape, closed, root), **options)

    def says(self, tool: str, args: Mapping[str, Any] | None = None, **more: Any) -> str:
        """`pass`, `ask`, or the reason of a deny."""
        verdict = self.door.judge(Call(tool=tool, args=args or {}, **more))
        return verdict.reason if verdict.effect == "deny" else verdict.effect


# ---------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    "name", ["bash", "BASH", "Bash ", " Bash", "Bаsh", "Ba\u200bsh", "Bash\0", "mcp__slack", "Bash/Bash"]
)
def test_another_spelling_of_an_allowed_tool_is_not_that_tool(tmp_path: Path, name: str) -> None:
    made = Made(tmp_path, "{}")
    assert made.says("Bash", {"command": "ls"}) == "pass"
    assert "is not installed" in made.says(name) or "name" in made.says(name)


def test_a_tool_goes_to_the_server_that_the_runtime_names(tmp_path: Path) -> None:
    made = Made(tmp_path, "mcp: {disabled: [slack/send]}")
    assert made.says("mcp__slack__find", server="slack") == "pass"
    assert "disabled" in made.says("mcp__slack__send", server="slack")
    assert "is not installed" in made.says("mcp__slack__find", server="slack2")
    assert "is not installed" in made.says("mcp__slack__late", server="slack")


def test_a_servers_tool_named_as_a_native_one_is_judged_as_the_servers(tmp_path: Path) -> None:
    made = Made(tmp_path, "mcp: {disabled: [slack]}")
    assert "is not installed" in made.says("Bash", server="slack")


# ---------------------------------------------------------------------------------------------- the gateway


def relayed(tmp_path: Path, text: str, **options: Any) -> Made:
    items = stock(tmp_path).of_kind("mcp_tool")
    names = gateway_names([ext for ext in items if ext.server == "slack"])
    return Made(tmp_path, text, owners=Owners("extgate", names), **options)


def test_what_the_gateway_offers_is_judged_by_its_own_name_here_too(tmp_path: Path) -> None:
    made = relayed(tmp_path, "mcp: {disabled: [slack/send]}")
    assert made.says("mcp__extgate__slack__find", server="extgate") == "pass"
    assert "disabled" in made.says("mcp__extgate__slack__send", server="extgate")


def test_what_only_the_gateway_knows_is_left_to_it(tmp_path: Path) -> None:
    made = relayed(tmp_path, "{}")
    assert made.says("mcp__extgate__slack__late", server="extgate") == "pass"
    assert made.says("mcp__extgate__slack__late") == "pass"
    assert "is not installed" in Made(tmp_path, "{}").says("mcp__extgate__slack__late", server="extgate")


def test_a_server_named_like_the_gateway_is_not_the_gateway(tmp_path: Path) -> None:
    made = relayed(tmp_path, "{}")
    assert "is not installed" in made.says("mcp__extgate_evil__late", server="extgate_evil")
    assert "is not installed" in made.says("mcp__extgate_evil__late")
    assert "is not installed" in made.says("mcp__extgat__late")
    assert "is not installed" in made.says("mcp__extgate__")


def test_a_narrower_sub_agent_gets_nothing_of_the_gateway_that_cannot_be_judged(tmp_path: Path) -> None:
    own = profile("mcp: {disabled: [slack]}", id_="worker")
    made = relayed(tmp_path, "{}", own=lambda name, is_child: own if name == "worker" else None)
    child = {"agent": "worker", "is_child": True}
    assert made.says("mcp__extgate__slack__late", server="extgate", **child) != "pass"
    assert made.says("mcp__extgate__slack__find", server="extgate", **child) != "pass"
    assert made.says("mcp__extgate__slack__late", server="extgate", agent="other", is_child=True) == "pass"


# ---------------------------------------------------------------------------------------------- sub-agents


def test_a_sub_agent_never_has_what_the_session_is_denied(tmp_path: Path) -> None:
    wide = profile("{}", id_="worker")
    made = Made(tmp_path, "tools: {disabled: [Bash]}", own=lambda name, is_child: wide if name == "worker" else None)
    for agent in ("worker", "general-purpose"):
        assert "disabled" in made.says("Bash", {"command": "ls"}, agent=agent, is_child=True)
        assert made.says("Read", {"file_path": "x"}, agent=agent, is_child=True) == "pass"


def test_a_sub_agents_own_profile_holds_for_it_alone(tmp_path: Path) -> None:
    own = profile("tools: {disabled: [Bash]}", id_="worker")
    made = Made(tmp_path, "{}", own=lambda name, is_child: own if name == "worker" else None)
    assert "disabled" in made.says("Bash", agent="worker", is_child=True)
    assert made.says("Bash", agent="other", is_child=True) == "pass"
    assert made.says("Bash") == "pass"


def test_a_narrow_agent_does_not_start_a_wider_one(tmp_path: Path) -> None:
    own = profile("tools: {disabled: [Bash]}", id_="lead")
    made = Made(tmp_path, "{}", own=lambda name, is_child: own if name == "lead" else None)
    assert made.says("Agent", {"subagent_type": "general-purpose"}) == "pass"
    assert "may use what this agent may not" in made.says("Agent", {"subagent_type": "worker"}, agent="lead")
    assert "may use what this agent may not" in made.says("Agent", {}, agent="lead", is_child=True)
    assert made.says("Agent", {"subagent_type": "lead"}, agent="lead") == "pass"


def test_an_agent_with_an_unreadable_profile_is_not_started(tmp_path: Path) -> None:
    made = Made(tmp_path, "{}", own=lambda name, is_child: Profile(id=name) if name == "broken" else None)
    assert made.says("Bash", agent="broken", is_child=True) != "pass"


def test_agents_whose_calls_cannot_be_told_apart_have_no_rules_of_their_own(tmp_path: Path) -> None:
    own = profile("tools: {disabled: [Read]}", id_="worker")
    made = Made(tmp_path, "{}", shape=gemini.SHAPE, own=lambda name, is_child: own if name == "worker" else None)
    assert "rules of its own" in made.says("invoke_agent", {"agent_name": "worker"})
    assert made.says("invoke_agent", {"agent_name": "other"}) == "pass"


@pytest.mark.parametrize("args", [{}, {"subagent_type": None}, {"subagent_type": ["general"]}, {"subagent_type": ""}])
def test_a_start_without_a_type_is_refused_where_there_is_no_default(tmp_path: Path, args: dict[str, Any]) -> None:
    assert Made(tmp_path, "{}", shape=opencode.SHAPE).says("task", args) != "pass"


# ---------------------------------------------------------------------------------------------- targets


@pytest.mark.parametrize(
    "args", [{"skill": "secret"}, {"skill": "/secret"}, {"command": "secret"}, {"skill": ["open"]}, {}]
)
def test_a_denied_skill_is_not_started_by_any_argument(tmp_path: Path, args: dict[str, Any]) -> None:
    made = Made(tmp_path, "skills: {disabled: [secret]}")
    assert made.says("Skill", args) != "pass"
    assert made.says("Skill", {"skill": "open"}) == "pass"


def test_a_resource_is_judged_by_its_uri(tmp_path: Path) -> None:
    made = Made(tmp_path, "resources: {disabled: ['wiki/wiki://b']}")
    read = "ReadMcpResourceTool"
    assert made.says(read, {"server": "wiki", "uri": "wiki://a"}) == "pass"
    assert made.says(read, {"server": "wiki", "uri": "wiki://b"}) != "pass"
    assert made.says(read, {"server": "wiki", "uri": "wiki://%62"}) != "pass"
    assert made.says(read, {"server": "other", "uri": "wiki://a"}) != "pass"
    assert made.says(read, {"server": ["wiki"], "uri": "wiki://b"}) != "pass"
    assert "some that this agent may not see" in made.says("ListMcpResourcesTool", {})
    assert made.says("ListMcpResourcesTool", {"server": "slack"}) == "pass"


def test_a_resource_without_a_server_is_every_server_that_has_it(tmp_path: Path) -> None:
    made = Made(tmp_path, "resources: {disabled: ['wiki/wiki://b']}", shape=gemini.SHAPE)
    assert made.says("read_mcp_resource", {"uri": "wiki://a"}) == "pass"
    assert made.says("read_mcp_resource", {"uri": "wiki:wiki://a"}) == "pass"
    for uri in ("wiki://b", "wiki:wiki://b", "wiki://c", ""):
        assert made.says("read_mcp_resource", {"uri": uri}) != "pass", uri


# ---------------------------------------------------------------------------------------------- paths


@pytest.mark.parametrize(
    "path",
    ["skills/secret/SKILL.md", "./skills/../skills/SECRET/skill.md", "skills/secret", "skills/secret/more/x.txt"],
)
def test_a_hidden_skill_is_not_opened(tmp_path: Path, path: str) -> None:
    made = Made(tmp_path, "skills: {disabled: [secret]}")
    assert "skill" in made.says("Read", {"file_path": path})
    assert "skill" in made.says("Read", {"file_path": str(tmp_path / path)})
    assert "skill" in made.says("Read", {"file_path": path}, cwd=str(tmp_path))
    assert made.says("Read", {"file_path": "skills/open/SKILL.md"}) == "pass"


def test_a_link_to_a_hidden_skill_is_not_opened(tmp_path: Path) -> None:
    made = Made(tmp_path, "skills: {disabled: [secret]}")
    (tmp_path / "innocent").symlink_to(tmp_path / "skills" / "secret")
    assert "skill" in made.says("Read", {"file_path": "innocent/SKILL.md"})


def test_a_path_is_taken_from_where_the_call_is(tmp_path: Path) -> None:
    made = Made(tmp_path, "skills: {disabled: [secret]}")
    assert "skill" in made.says("Read", {"file_path": "SKILL.md"}, cwd=str(tmp_path / "skills" / "secret"))


@pytest.mark.parametrize("args", [{"file_path": 1}, {"file_path": "a\0b"}, {"file_path": {"x": 1}}])
def test_a_path_that_is_none_is_refused(tmp_path: Path, args: dict[str, Any]) -> None:
    assert Made(tmp_path, "{}").says("Read", args) != "pass"


def test_the_gated_does_not_move_the_gate(tmp_path: Path) -> None:
    made = Made(tmp_path, "{}")
    for path in ("agents/a.yaml", ".claude/settings.json", "skills/new/SKILL.md", "AGENTS/b.yaml"):
        assert made.says("Write", {"file_path": path, "content": ""}) != "pass", path
    assert made.says("Write", {"file_path": "src/x.py", "content": ""}) == "pass"


def test_a_search_does_not_look_into_a_hidden_skill(tmp_path: Path) -> None:
    made = Made(tmp_path, "skills: {disabled: [secret]}")
    (tmp_path / "src").mkdir()
    assert "skill" in made.says("Grep", {"pattern": "x"})
    assert "skill" in made.says("Grep", {"pattern": "x", "path": "."})
    assert "skill" in made.says("Grep", {"pattern": "x", "path": str(tmp_path / "skills")})
    assert made.says("Grep", {"pattern": "x", "path": "src"}) == "pass"
    assert Made(tmp_path, "{}").says("Grep", {"pattern": "x"}) == "pass"


def test_a_patch_is_judged_by_the_files_in_it(tmp_path: Path) -> None:
    made = Made(tmp_path, "{}", shape=codex.SHAPE)
    good = "*** Begin Patch\n*** Update File: src/x.py\n@@\n-a\n+b\n*** End Patch"
    assert made.says("apply_patch", {"command": good}) == "pass"
    for line in ("*** Add File: agents/a.yaml", "*** Delete File: agents/a.yaml", "*** Move to: agents/a.yaml"):
        assert made.says("apply_patch", {"command": f"*** Begin Patch\n{line}\n+x\n*** End Patch"}) != "pass", line
    for args in ({}, {"command": ""}, {"command": [good]}, {"command": "***Update File agents/a.yaml"}):
        assert made.says("apply_patch", args) != "pass", args


@pytest.mark.parametrize("padding", ["\n" * 300_000, " " * 300_000, "*** Update File: x" + " " * 300_000 + "y\n"])
def test_a_padded_patch_costs_no_more_than_its_length_and_hides_nothing(tmp_path: Path, padding: str) -> None:
    """In squares of the length this would not come back, and a runtime takes a hook that is late for no opinion."""
    made = Made(tmp_path, "{}", shape=codex.SHAPE)
    patch = f"*** Begin Patch\n{padding}*** Delete File: agents/a.yaml  \n*** End Patch"
    assert made.says("apply_patch", {"command": patch}) != "pass"


def test_more_paths_than_are_looked_at_are_refused(tmp_path: Path) -> None:
    made = Made(tmp_path, "{}", shape=gemini.SHAPE)
    gate = made.gate
    gate.swap(inventory=stock(tmp_path, ("read_many_files",)))
    assert made.says("read_many_files", {"include": ["a"] * (MAX_PATHS + 1)}) != "pass"
    assert made.says("read_many_files", {"include": ["a", "b"]}) == "pass"


# ---------------------------------------------------------------------------------------------- the rest


def test_an_ask_is_handed_to_the_user_where_there_is_one(tmp_path: Path) -> None:
    asking = layer(rule("ask", "Bash"))
    assert Made(tmp_path, "{}", asking, asks=UserAsks()).says("Bash") == "ask"
    assert "Nobody is here" in Made(tmp_path, "{}", asking).says("Bash")
    made = Made(tmp_path, "{}", asking, asks=UserAsks())
    assert [made.says(name) for name in ("Bash", "Write", "Bash")] == ["ask", "pass", "ask"]


def test_every_refusal_is_recorded(tmp_path: Path) -> None:
    made = Made(tmp_path, "skills: {disabled: [secret]}")
    for tool, args in (("Nope", {}), ("Skill", {"skill": "secret"}), ("Read", {"file_path": "skills/secret/SKILL.md"})):
        assert made.says(tool, args) != "pass"
        assert made.memory.events[-1].outcome == "refused", tool
    assert made.door.unreadable("the call is not JSON").effect == "deny"
    assert "not JSON" in made.memory.events[-1].reason


def test_a_record_that_cannot_be_written_refuses(tmp_path: Path) -> None:
    def full(event: object) -> None:
        raise OSError("disk full")

    made = Made(tmp_path, "{}")
    made.gate.sink = full
    assert "record" in made.says("Bash")


@pytest.mark.parametrize("name", ["collaborationspawn_agent", "multi_agent_v1spawn_agent"])
def test_codex_starts_no_agent_that_may_do_more_than_its_starter(tmp_path: Path, name: str) -> None:
    own = profile("tools: {disabled: [Bash]}", id_="lead")
    made = Made(tmp_path, "{}", shape=codex.SHAPE, own=lambda name, is_child: own if name == "lead" else None)
    payload = {"tool_name": name, "tool_input": {"message": "go"}, "agent_type": "lead", "agent_id": "1"}
    assert made.door.judge(codex.read(payload)).effect == "deny"
    assert made.door.judge(codex.read({**payload, "agent_type": None, "agent_id": None})).effect == "pass"
    assert codex.read({"tool_name": "Bash", "tool_input": {"command": "ls"}}).tool == "exec_command"


@pytest.mark.parametrize(
    "path", ["**/*.md", "skills/*/SKILL.md", "./sk?lls/secret/SKILL.md", "{skills,x}/**", "skills/[s]*/*"]
)
def test_a_wildcard_does_not_reach_a_hidden_skill(tmp_path: Path, path: str) -> None:
    (tmp_path / "src").mkdir()
    for text, wanted in (("skills: {disabled: [secret]}", False), ("{}", True)):
        made = Made(tmp_path, text, shape=gemini.SHAPE)
        made.gate.swap(inventory=stock(tmp_path, ("read_many_files",)))
        assert (made.says("read_many_files", {"include": [path]}) == "pass") == wanted
        assert (made.says("read_many_files", {"include": [str(tmp_path / path)]}) == "pass") == wanted
        assert made.says("read_many_files", {"include": ["src/**/*.py"]}) == "pass"
