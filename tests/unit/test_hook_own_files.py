"""Agents of runtimes' own files under the hook that `apply` wrote: nothing of its own is in their way."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from extgate.applied.work import Wish, carried_out, prepared, undone
from extgate.hook_session import Sessions
from extgate.runtime_view import RuntimeView
from extgate.workspace import Workspace

SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("find", "send")]
        hello = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                 "serverInfo": {"name": "w", "version": "1"}}
        result = {"initialize": hello, "tools/list": {"tools": tools}}.get(message["method"], {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG", "CACHE", "DATA", "STATE"):
        monkeypatch.delenv(f"XDG_{name}_HOME", raising=False)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "HERMES_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


class Place:
    """A project with an agent `a`, a server `wiki` and Claude Code's agent `lead`, and what the hook says there."""

    def __init__(self, root: Path, profile: str = "", *, config: str = "", runtime: str = "claude-code") -> None:
        self.root, self.runtime, self.sessions = root / "p", runtime, Sessions()
        self.write("agents/a.yaml", f"id: a\n{profile}\n")
        self.write("extgate.yaml", f"runtime: {runtime}\n{config}\n")
        self.write(".claude/agents/lead.md", "---\nname: lead\ndescription: d\n---\nx\n")
        server = self.write("server.py", SERVER)
        spec = {"command": sys.executable, "args": [str(server)]}
        self.write(".mcp.json", json.dumps({"mcpServers": {"wiki": spec}}))

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    @property
    def wish(self) -> Wish:
        return Wish(runtime=self.runtime, agent="a", root=self.root, project=self.root, gateway=True, trust=True)

    def applied(self) -> Place:
        carried_out(prepared(self.wish))
        return self

    def says(self, tool: str, args: Any = None, **more: Any) -> str:
        """The reason of a deny; empty for none. more: of Claude Code's payload, besides `lead` as the agent."""
        call = {"tool_name": tool, "tool_input": args or {}, "agent_type": "lead", "cwd": str(self.root), **more}
        return self._said(json.dumps(call))

    def says_in_opencode(self, tool: str, **more: Any) -> str:
        return self._said(json.dumps({"tool": tool, "args": {}, "agent": "build", "cwd": str(self.root), **more}))

    def _said(self, body: str) -> str:
        words = (self.runtime, "a", str(self.root), str(self.root), "extgate")
        _, out, _ = self.sessions.answer(words, body.encode())
        found = json.loads(out) if out else {}
        found = found.get("hookSpecificOutput", found)
        is_deny = "deny" in (found.get("permissionDecision"), found.get("decision"))
        return str(found.get("permissionDecisionReason") or found.get("reason")) if is_deny else ""


GATEWAY = {"mcp_server": {"name": "extgate"}}
FIND, LATE = "mcp__extgate__wiki__find", "mcp__extgate__wiki__late"
START = {"subagent_type": "general-purpose", "prompt": "x"}


def test_what_apply_wrote_takes_nothing_from_an_agent_of_the_users(tmp_path: Path) -> None:
    place = Place(tmp_path).applied()
    assert "wiki" in (place.root / ".claude" / "settings.local.json").read_text()
    for child in ({}, {"agent_id": "1"}):
        assert [place.says(tool, **GATEWAY, **child) for tool in (FIND, LATE)] == ["", ""]
        assert place.says("Bash", {"command": "ls"}, **child) == ""
        assert place.says("Agent", START, **child) == ""
    assert place.says("AskUserQuestion") == ""
    assert "never in sub-agents" in place.says("AskUserQuestion", agent_id="1")
    assert place.says("mcp__wiki__find", mcp_server={"name": "wiki"}) == ""  # Claude Code itself has it off


def test_what_the_user_denies_stays_denied_whenever_it_was_written(tmp_path: Path) -> None:
    settings = json.dumps({"permissions": {"deny": ["mcp__wiki", "Bash"]}})
    for number, is_before in enumerate((True, False)):
        place = Place(tmp_path / str(number))
        if is_before:
            place.write(".claude/settings.local.json", settings)
        place.applied()
        if not is_before:
            place.write(".claude/settings.json", settings)
        for child in ({}, {"agent_id": "1"}, {"agent_type": "general-purpose", "agent_id": "1"}):
            assert "permissions.deny" in place.says(FIND, **GATEWAY, **child)
            assert place.says(LATE, **GATEWAY, **child)
            assert "permissions.deny" in place.says("Bash", {"command": "ls"}, **child)
            assert place.says("Read", {"file_path": "x"}, **child) == ""
        assert place.says("Agent", START) == ""  # it is under the same settings


def test_what_the_user_adds_to_the_file_that_apply_wrote_holds(tmp_path: Path) -> None:
    place = Place(tmp_path).applied()
    file = place.root / ".claude" / "settings.local.json"
    assert place.says(FIND, **GATEWAY) == ""
    found = json.loads(file.read_text())
    found["permissions"]["deny"] += ["Bash", "mcp__wiki__find"]
    file.write_text(json.dumps(found))
    assert "permissions.deny" in place.says("Bash", {"command": "ls"})
    assert "permissions.deny" in place.says(FIND, **GATEWAY)
    file.write_text("{")
    assert place.says(FIND, **GATEWAY)


def test_a_starter_with_a_deny_of_its_own_starts_no_wider_agent(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write(".claude/agents/lead.md", "---\nname: lead\ndescription: d\ndisallowedTools: Bash\n---\nx\n")
    place.applied()
    assert "may use what this agent may not" in place.says("Agent", START)
    assert "may use what this agent may not" in place.says("Agent", START, agent_id="1")


@pytest.mark.parametrize("mode", ["ceiling", "own", "union"])
def test_a_runtimes_own_file_never_leads_out_of_the_sessions_profile(tmp_path: Path, mode: str) -> None:
    place = Place(tmp_path, "tools: {disabled: [Bash]}\nmcp: {disabled: [wiki]}", config=f"inherit: {mode}").applied()
    for more in ({}, {"agent_id": "1"}, {"agent_type": "general-purpose", "agent_id": "1"}, {"agent_type": "a"}):
        assert "disabled" in place.says("Bash", {"command": "ls"}, **more)
        assert "disabled" in place.says(FIND, **GATEWAY, **more)


def test_opencodes_agent_calls_what_only_the_gateway_knows(tmp_path: Path) -> None:
    place = Place(tmp_path, runtime="opencode")
    place.write("opencode.json", json.dumps({"mcp": {"wiki": {"type": "local", "command": ["x"], "enabled": True}}}))
    place.applied()
    assert '"wiki_*": "deny"' in (place.root / "opencode.json").read_text()
    assert [place.says_in_opencode(f"extgate_wiki__{name}") for name in ("find", "late")] == ["", ""]
    assert place.says_in_opencode("extgate_wiki__late", agent="general", is_child=True) == ""
    found = json.loads((place.root / "opencode.json").read_text())
    found["permission"]["wiki_f*"] = "deny"
    place.write("opencode.json", json.dumps(found))
    assert place.says_in_opencode("extgate_wiki__find")
    assert place.says_in_opencode("extgate_wiki__late")


DIRECT = {"command": "/bin/false"}
TOML = 'command = "/bin/false"\n'
OWN = {
    "claude-code": ("home/.claude/settings.json", '{"permissions": {"deny": ["mcp__wiki__find"]}}'),
    "codex": ("home/.codex/config.toml", f'[mcp_servers.wiki]\n{TOML}disabled_tools = ["find"]\n'),
    "gemini": ("home/.gemini/settings.json", json.dumps({"mcpServers": {"wiki": DIRECT | {"excludeTools": ["find"]}}})),
    "hermes": ("home/.hermes/config.yaml", 'mcp_servers: {wiki: {command: /bin/false, tools: {exclude: ["find"]}}}\n'),
    "opencode": ("home/.config/opencode/opencode.json", '{"permission": {"wiki_find": "deny"}}'),
}
"""The user's own file, where each runtime has it, with a deny of a direct server's tool."""
HEADS = {"gemini": "mcp_extgate_wiki__", "opencode": "extgate_wiki__"}
NAMES = {"gemini": "gemini-cli"}


def call_of(runtime: str, item: str) -> str:
    """What the runtime's hook is sent when the session's own agent calls a tool of `wiki` through the gateway."""
    tool = HEADS.get(runtime, "mcp__extgate__wiki__") + item
    if runtime == "opencode":
        return json.dumps({"tool": tool, "args": {}})
    context = {
        "claude-code": {"mcp_server": {"name": "extgate"}},
        "gemini": {"mcp_context": {"server_name": "extgate"}},
    }
    return json.dumps({"tool_name": tool, "tool_input": {}, **context.get(runtime, {})})


def answers(place: Place, *items: str) -> list[bool]:
    """Whether each call is let through."""
    words = (place.runtime, "a", str(place.root), str(place.root), "extgate")
    said = [place.sessions.answer(words, call_of(place.runtime, item).encode())[1].decode() for item in items]
    return [not out or '"decision": "pass"' in out for out in said]


def change_paths(place: Place) -> list[Path]:
    return [change.path for change in prepared(place.wish).made if change.entry and not change.entry.is_whole]


@pytest.mark.parametrize("runtime", list(OWN))
def test_what_the_users_file_denies_of_a_server_holds_for_the_sessions_own_agent(tmp_path: Path, runtime: str) -> None:
    place = Place(tmp_path, runtime=NAMES.get(runtime, runtime))
    place.runtime = runtime
    name, text = OWN[runtime]
    place.write(f"../{name}", text)
    place.applied()
    # What only the gateway knows goes on to it, unless its name could be that of something denied.
    assert answers(place, "find", "send", "late", "find_0123456789abcdef") == [False, True, True, False]
    written = "".join(path.read_text() for path in change_paths(place))
    assert written.count("wiki__find") == 1  # and its own list loses the name as well
    (tmp_path / name).write_text("{" if "json" in name else "= [")
    assert answers(place, "find", "send", "late") == [False] * 3  # nobody knows what it denies


@pytest.mark.parametrize("runtime", list(OWN))
def test_a_user_who_denies_nothing_loses_nothing_behind_the_gateway(tmp_path: Path, runtime: str) -> None:
    place = Place(tmp_path, runtime=NAMES.get(runtime, runtime))
    place.runtime = runtime
    place.applied()
    assert answers(place, "find", "send", "late", "find_0123456789abcdef") == [True] * 4


def test_a_sub_agents_profile_does_not_lead_out_of_the_users_denies(tmp_path: Path) -> None:
    place = Place(tmp_path, config="inherit: own")
    place.write("agents/lead.yaml", "id: lead\n")
    place.write(f"../{OWN['claude-code'][0]}", OWN["claude-code"][1])
    place.applied()
    assert place.says(FIND, **GATEWAY, agent_id="1")
    assert place.says(FIND.replace("find", "send"), **GATEWAY, agent_id="1") == ""


@pytest.mark.parametrize("runtime", ["claude-code", "codex", "gemini", "hermes", "opencode"])
def test_files_that_apply_made_say_nothing_once_they_are_taken_away(tmp_path: Path, runtime: str) -> None:
    place = Place(tmp_path, "tools: {disabled: [bash, Bash]}", runtime={"gemini": "gemini-cli"}.get(runtime, runtime))
    place.runtime = runtime
    place.applied()
    made = RuntimeView(workspace=Workspace.open(place.root), runtime=runtime, project=place.root, relays=True)
    own = made.own_profile("worker")
    rules = [rule for policy in own.policies for rule in policy.rules] if own else []
    assert own is None or own.layers
    assert not [rule.text for rule in rules if rule.effect == "deny" and rule.file]
    carried_out(undone(place.wish))
    assert not list(place.root.glob(".claude/settings*"))
