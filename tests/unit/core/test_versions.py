"""A policy's version names what decides, wherever it was read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
FILES = {
    ".claude/settings.json": {
        "permissions": {"deny": ["Bash(rm:*)", "mcp__beta", "Read(./secret/**)"], "ask": ["WebFetch(domain:a.org)"]},
    },
    ".claude/agents/reviewer.md": "---\nname: reviewer\ndescription: reads\ntools: Read, Grep, mcp__alpha\n---\n",
    "opencode.json": {"permission": {"bash": {"*": "ask", "git *": "allow"}, "edit": "deny", "task": {"x*": "deny"}}},
    ".gemini/settings.json": {"tools": {"exclude": ["run_shell_command(rm)"], "core": ["read_file", "glob"]}},
    "agents/a.yaml": "tools: {disabled: [b]}\nmcp: {allowed: ['x*'], required: [x]}\nresources: {disabled: ['f:*']}\n",
    ".mcp.json": {"mcpServers": {"alpha": {"command": "alpha"}, "beta": {"command": "beta"}}},
}  # fmt: skip
SCRIPT = """
import json, sys
from extgate import Workspace
workspace = Workspace.open(sys.argv[1])
print(json.dumps({agent.id: agent.profile.version for agent in (*workspace.agents, *workspace.natives)}))
"""


def _versions(root: Path, seed: str) -> dict[str, str]:
    env = {**os.environ, "PYTHONHASHSEED": seed, "HOME": str(root / "home"), "XDG_CONFIG_HOME": str(root / "home")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(root)], capture_output=True, text=True, env=env, check=True, timeout=120
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_every_process_gives_the_same_files_the_same_version(tmp_path: Path) -> None:
    for name, content in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
    versions = [_versions(tmp_path, seed) for seed in ("1", "2", "77")]
    assert {"a", "claude-code/main", "claude-code/reviewer", "opencode/build"} <= set(versions[0])
    assert versions[0] == versions[1] == versions[2]
