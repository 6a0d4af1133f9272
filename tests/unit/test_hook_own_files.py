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
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
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
