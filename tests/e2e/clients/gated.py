"""A lab's workspace, and putting a command-line runtime under it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.e2e.clients.lab import Lab, Ran


def write_workspace(lab: Lab, profile: str, servers: Mapping[str, Any], runtime: str = "") -> None:
    """The agent `probe` with this profile, over these servers and the two skills. runtime: whose tools there are."""
    root = lab.workspace
    lab.write(root / "agents" / "probe.yaml", f"id: probe\n{profile}\n")
    said = f"runtime: {runtime}\n" if runtime else ""
    lab.write(root / "extgate.yaml", f"{said}audit: audit.jsonl\n")
    lab.write(root / ".mcp.json", json.dumps({"mcpServers": dict(servers)}))
    lab.skills(root / "skills")


WHOSE = {"gemini": "gemini-cli", "openai-agents": "", "pydantic-ai": ""} | {
    name: name for name in ("claude-code", "codex", "opencode", "hermes", "deepagents")
}
"""The runtime of a driver, as `extgate.yaml` calls it."""
OPEN = 3
EXTGATE = [sys.executable, "-m", "extgate.cli.main"]


def finding_about(lab: Lab, entry: str) -> str:
    """The code of a warning or error of `extgate check` that quotes this entry; the empty text for none."""
    ran = lab.run([*EXTGATE, "-w", str(lab.workspace), "check", "--trust", "--json"], lab.environment(), 300)
    rows = json.loads(ran.out)["findings"]
    return next((row["code"] for row in rows if row["severity"] != "info" and f"`{entry}`" in row["message"]), "")


def apply(lab: Lab, runtime: str) -> Ran:
    """Puts the lab's project under the agent: `extgate trust`, then `extgate apply`.

    Its exit 3 says that something denied stays open, which the run will show.
    """
    for words in (["trust", "--yes"], ["apply", runtime, "probe", "--project", str(lab.project)]):
        ran = lab.run([*EXTGATE, "-w", str(lab.workspace), *words], lab.environment(), 300)
        if ran.code not in (0, OPEN):
            return ran
    return replace(ran, code=0)
