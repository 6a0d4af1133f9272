"""A profile in a runtime's words: a deny reaches everything that does the same, an allow nothing that does more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from extgate.core.explain import Decider
from extgate.core.extension import Extension
from extgate.runtime_view import RuntimeView
from extgate.stamps import Stamps, settled
from extgate.workspace import Workspace


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "CODEX_HOME",
        "HERMES_HOME",
        "CLAUDE_CONFIG_DIR",
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def view(root: Path, runtime: str, text: str, config: str = "", relays: bool = False) -> RuntimeView:
    (root / "agents").mkdir(parents=True, exist_ok=True)
    (root / "agents" / "a.yaml").write_text(f"id: a\n{text}\n")
    (root / "extgate.yaml").write_text(config)
    return RuntimeView(workspace=Workspace.open(root), runtime=runtime, project=root, relays=relays)


def allowed(made: RuntimeView) -> set[str]:
    agent = made.workspace.agent("a")
    decider = Decider(made.profile(agent.profile), made.inventory)
    return {ext.name for ext in made.tools if decider.decide(ext).effect == "allow"}


@pytest.mark.parametrize(
    ("runtime", "gone"),
    [
        ("claude-code", {"Bash", "Monitor", "PowerShell"}),
        ("codex", {"exec_command", "write_stdin", "shell"}),
        ("gemini", {"run_shell_command", "list_background_processes"}),
        ("hermes", {"terminal", "process", "execute_code"}),
        ("opencode", {"bash", "execute"}),
    ],
)
@pytest.mark.parametrize("config", ["", "own"])
def test_no_shell_is_no_shell_by_any_tool(tmp_path: Path, runtime: str, gone: set[str], config: str) -> None:
    name = {"gemini": "gemini-cli"}.get(runtime, runtime)
    made = view(tmp_path, runtime, "tools: {disabled: [bash]}", f"runtime: {name}\n" if config else "")
    assert not allowed(made) & gone
    made = view(tmp_path, runtime, f"tools: {{disabled: [{sorted(gone)[0]}]}}", f"runtime: {name}\n" if config else "")
    assert not allowed(made) & gone


def test_a_deny_of_the_runtimes_own_name_is_that_tool_alone(tmp_path: Path) -> None:
    made = view(tmp_path, "claude-code", "tools: {disabled: [Write]}")
    assert "Write" not in allowed(made)
    assert {"Edit", "NotebookEdit"} <= allowed(made)
    assert not allowed(view(tmp_path, "claude-code", "tools: {disabled: [write]}")) & {"Edit", "Write", "NotebookEdit"}


def test_an_allow_list_admits_what_does_no_more(tmp_path: Path) -> None:
    made = view(tmp_path, "claude-code", "tools: {allowed: [read, grep]}")
    assert {"Read", "Grep"} <= allowed(made)
    assert not allowed(made) & {"Bash", "Write", "Edit", "Skill", "Agent", "WebFetch"}
    # Of two tools at home that do the same as one there, both have to be admitted.
    assert "Edit" not in allowed(view(tmp_path, "claude-code", "tools: {allowed: [edit]}"))
    assert allowed(view(tmp_path, "claude-code", "tools: {allowed: [Read]}")) == {"Read"}


def test_a_negative_pattern_is_no_allow(tmp_path: Path) -> None:
    made = view(tmp_path, "claude-code", 'tools: {patterns: ["impl:*:*", "!impl:*:bash"]}')
    assert not allowed(made) & {"Bash", "Monitor"}
    assert "Read" in allowed(made)
    own = view(tmp_path, "claude-code", 'tools: {patterns: ["impl:*:*", "!impl:*:Bash"]}', "runtime: claude-code\n")
    assert not allowed(own) & {"Bash", "Monitor", "PowerShell"}
    assert allowed(view(tmp_path, "claude-code", "tools: {patterns: []}")) == set()


def test_an_agents_own_file_denies_and_does_not_ask(tmp_path: Path) -> None:
    (tmp_path / ".claude" / "agents").mkdir(parents=True)
    (tmp_path / ".claude" / "agents" / "ro.md").write_text("---\nname: ro\ndescription: d\ntools: Read\n---\ntext\n")
    (tmp_path / ".claude" / "settings.json").write_text('{"permissions": {"ask": ["Read"]}}')
    made = view(tmp_path, "claude-code", "tools: {disabled: [Glob]}")
    own = made.own_profile("ro")
    assert own is not None
    decider = Decider(own, made.inventory)
    by_name = {ext.name: decider.decide(ext).effect for ext in made.tools}
    assert (by_name["Read"], by_name["Bash"], by_name["Agent"]) == ("allow", "deny", "deny")
    assert "deny" not in effects(made, "nobody").values()
    (tmp_path / "agents" / "ro.yaml").write_text("id: ro\ntools: [")
    assert "deny" not in effects(made, "nobody").values()
    broken = view(tmp_path, "claude-code", "{}".removeprefix("{}")).own_profile("ro")
    assert broken is not None
    assert broken.layers == ()


def effects(made: RuntimeView, agent: str, *, is_child: bool = True) -> dict[str, str]:
    """What the agent's own files say of each of the runtime's tools and of some servers' tools, gateway or not."""
    own = made.own_profile(agent, is_child=is_child)
    items = [*made.tools]
    for server, name in (("wiki", "find"), ("wiki", "late"), ("slack", "send"), ("slack", "question")):
        items.append(Extension(kind="mcp_tool", server=server, name=name))
    if own is None:
        return {ext.id: "allow" for ext in items}
    decider = Decider(own, made.inventory)
    return {ext.id.split(":", 1)[1]: str(decider.decide(ext).effect) for ext in items}


def lead(root: Path, header: str = "", settings: object = None) -> None:
    (root / ".claude" / "agents").mkdir(parents=True, exist_ok=True)
    text = f"---\nname: lead\ndescription: d\n{header}\n---\nx\n"
    (root / ".claude" / "agents" / "lead.md").write_text(text)
    if settings is not None:
        (root / ".claude" / "settings.json").write_text(json.dumps(settings))


def test_a_file_that_denies_nothing_takes_nothing_from_the_sessions_own_agent(tmp_path: Path) -> None:
    lead(tmp_path, settings={})
    made = view(tmp_path, "claude-code", "{}", relays=True)
    assert set(effects(made, "lead", is_child=False).values()) == {"allow"}
    assert effects(made, "lead")["AskUserQuestion"] == "deny"  # no sub-agent has it


@pytest.mark.parametrize("agent", ["lead", "general-purpose"])
@pytest.mark.parametrize(
    "settings",
    [
        {"permissions": {"deny": ["mcp__wiki"]}},
        {"deniedMcpServers": [{"serverName": "wiki"}]},
        {"disabledMcpjsonServers": ["wiki"]},
    ],
)
def test_a_server_that_the_users_file_denies_stays_denied_behind_the_gateway(
    tmp_path: Path, settings: object, agent: str
) -> None:
    lead(tmp_path, settings=settings)
    for is_child in (True, False):
        found = effects(view(tmp_path, "claude-code", "{}", relays=True), agent, is_child=is_child)
        assert (found["wiki/find"], found["wiki/late"], found["slack/send"]) == ("deny", "deny", "allow")


def test_a_tool_that_an_agents_file_denies_stays_denied_behind_the_gateway(tmp_path: Path) -> None:
    lead(tmp_path, 'disallowedTools: mcp__wiki__find, "*end*", Bash')
    found = effects(view(tmp_path, "claude-code", "{}", relays=True), "lead", is_child=False)
    assert (found["wiki/find"], found["wiki/late"], found["Bash"], found["Read"]) == ("deny", "allow", "deny", "allow")


@pytest.mark.parametrize(
    ("tools", "effect"),
    [
        ("Read", "deny"),
        ("Read, mcp__slack__send", "deny"),
        ("Read, mcp__extgate", "allow"),
        ("Read, mcp__extgate__wiki__find", "allow"),
    ],
)
def test_a_list_that_names_the_gateway_leaves_its_tools_to_the_runtime(tmp_path: Path, tools: str, effect: str) -> None:
    lead(tmp_path, f"tools: {tools}")
    made = view(tmp_path, "claude-code", "{}", relays=True)
    assert effects(made, "lead")["wiki/find"] == effect
    assert effects(made, "lead")["Bash"] == "deny"
    lead(tmp_path, f"tools: {tools}\ndisallowedTools: mcp__wiki")
    assert effects(view(tmp_path, "claude-code", "{}", relays=True), "lead")["wiki/find"] == "deny"


def test_what_opencode_does_by_itself_says_nothing_of_what_the_gateway_has(tmp_path: Path) -> None:
    file = tmp_path / "opencode.json"
    file.write_text(json.dumps({"permission": {"slack_send": "deny"}}))
    found = effects(view(tmp_path, "opencode", "{}", relays=True), "build", is_child=False)
    assert (found["slack/send"], found["slack/question"], found["wiki/late"]) == ("deny", "allow", "allow")
    assert found["plan_exit"] == "deny"
    file.write_text(json.dumps({"permission": {"*": "deny"}}))
    assert effects(view(tmp_path, "opencode", "{}", relays=True), "build")["wiki/find"] == "deny"
    file.write_text(json.dumps({"permission": {"*": "deny", "extgate_*": "allow"}}))
    assert effects(view(tmp_path, "opencode", "{}", relays=True), "build")["wiki/find"] == "allow"
    file.write_text(json.dumps({"permission": {"wiki_*": "deny", "extgate_*": "allow"}}))
    assert effects(view(tmp_path, "opencode", "{}", relays=True), "build")["wiki/find"] == "deny"


# ---------------------------------------------------------------------------------------------- stamps


def test_every_edit_is_another_stamp(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "skills" / "a").mkdir(parents=True)
    (tmp_path / "skills" / "a" / "SKILL.md").write_text("x")
    stamps = Stamps.of([(tmp_path, "agents/*.yaml"), (tmp_path, "extgate.yaml")], [tmp_path / "skills"])
    seen = [stamps.now()]

    def is_new() -> bool:
        seen.append(Stamps.of(stamps.globs, [tmp_path / "skills"]).now())
        return seen[-1] not in seen[:-1] and not stamps.still(seen[0])

    (tmp_path / "agents" / "a.yaml").write_text("1")
    assert is_new()
    (tmp_path / "agents" / "a.yaml").write_text("12")
    assert is_new()
    (tmp_path / "extgate.yaml").write_text("")
    assert is_new()
    (tmp_path / "skills" / "b").mkdir()
    assert is_new()
    (tmp_path / "skills" / "a" / "SKILL.md").write_text("xy")
    assert is_new()
    (tmp_path / "agents" / "a.yaml").unlink()
    assert is_new()


def test_a_stamp_of_this_very_moment_is_not_relied_on(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("1")
    stamps = Stamps.of([(tmp_path, "*.yaml")], [])
    assert settled(stamps.now()) is None
    assert not stamps.still(None)
    assert settled(Stamps.of([(tmp_path, "missing")], []).now()) is not None
