"""The homes of servers read together."""

from __future__ import annotations

import json
from pathlib import Path

from extgate.discover.everything import Sources, wanted_servers

ENTRY = {"mcpServers": {"a": {"command": "x", "include": [], "exclude": []}}}


def wanted(root: Path, name: str) -> tuple[str, ...] | None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(ENTRY))
    (spec,) = wanted_servers(Sources(root=root, server_files=(path,))).specs
    return spec.include


def test_an_empty_include_puts_no_limit_in_a_msagent_home(tmp_path: Path) -> None:
    assert wanted(tmp_path, ".msagent/config.mcp.json") is None


def test_an_empty_include_admits_nothing_elsewhere(tmp_path: Path) -> None:
    assert wanted(tmp_path, ".mcp.json") == ()
