"""Runtimes' own files are closed to gated file tools, as profiles are."""

from __future__ import annotations

from pathlib import Path

import pytest

from extgate.enforce.guarded_paths import GuardedPaths
from extgate.homes import find_homes
from extgate.policy_places import closed_places


@pytest.mark.parametrize(
    "path",
    [
        *(".claude/settings.json", ".claude/settings.local.json", ".claude/agents/a.md", "opencode.json"),
        *(".opencode/agent/deep/er.md", ".codex/config.toml", ".codex/rules/a.rules", ".gemini/settings.json"),
        *(".gemini/policies/a.toml", ".hermes/config.yaml", ".mcp.json", "agents/a.yaml"),
    ],
)
def test_a_gated_file_tool_cannot_write_what_holds_a_runtime(tmp_path: Path, path: str) -> None:
    guarded = GuardedPaths(closed_places(find_homes(tmp_path)), base=tmp_path)
    assert guarded.refusal(path, "write")


@pytest.mark.parametrize("path", ["config.yaml", "settings.json", "config.toml", "src/a.py", ".claude/notes.txt"])
def test_files_that_others_use_stay_open(tmp_path: Path, path: str) -> None:
    guarded = GuardedPaths(closed_places(find_homes(tmp_path)), base=tmp_path)
    assert guarded.refusal(path, "write") is None
