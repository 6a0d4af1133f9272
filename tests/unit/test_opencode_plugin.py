"""opencode's plugin under Node: anything but a clear yes of its gate is a refusal."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PLUGIN = Path(__file__).parents[2] / "src" / "extgate" / "npm" / "opencode" / "index.js"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="opencode's plugin needs Node, which is not installed")

SCRIPT = """
const { Extgate } = await import(process.argv[1])
const rows = JSON.parse(process.argv[2])
const told = []
for (const row of rows) {
  const hooks = await Extgate({ directory: "/project" }, row.options)
  for (const agent of row.agents ?? []) await hooks["chat.message"]({ sessionID: "s" }, { message: { agent } })
  if (row.child) await hooks.event({ event: { type: "session.created", properties: { info: row.child } } })
  try {
    const session = row.child?.id ?? "s"
    await hooks["tool.execute.before"]({ tool: "bash", sessionID: session, callID: "c" }, { args: { command: "ls" } })
    told.push("")
  } catch (error) { told.push(error.message) }
}
console.log(JSON.stringify(told))
"""


def told(*rows: dict[str, Any]) -> list[str]:
    command = [NODE or "node", "--input-type=module", "-e", SCRIPT, PLUGIN.as_uri(), json.dumps(rows)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    found: list[str] = json.loads(done.stdout)
    return found


def gate(code: str) -> dict[str, Any]:
    return {"command": [sys.executable, "-I", "-S", "-c", code]}


def test_only_a_clear_yes_lets_a_call_run(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    said = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n'); "
    options = {
        "pass": gate(said + 'print(\'{"decision": "pass"}\')'),
        "deny": gate(said + 'print(\'{"decision": "deny", "reason": "not you"}\')'),
        "failed": gate(said + 'print(\'{"decision": "pass"}\'); sys.exit(1)'),
        "silent": gate(said),
        "nonsense": gate(said + "print('yes')"),
        "null": gate(said + "print('null')"),
        "long": gate(said + "print('{\"decision\": \"pass\"}' + ' ' * 200000)"),
        "unread": gate('print(\'{"decision": "deny"}\')'),
        "gone": {"command": ["/no/such/program"]},
        "slow": {**gate("import time; time.sleep(60)"), "timeout_ms": 300},
        "none": None,
        "text": {"command": "extgate hook opencode"},
        "empty": {"command": []},
    }
    for name in ("pass", "deny", "failed", "silent", "nonsense", "null", "long"):
        options[name]["command"].append(str(seen))  # type: ignore[index]
    found = dict(zip(options, told(*({"options": o, "agents": ["build"]} for o in options.values())), strict=True))
    assert found.pop("pass") == ""
    assert found["deny"] == "not you"
    assert all(found.values()), found
    call = json.loads(seen.read_text().splitlines()[0])
    assert call == {"tool": "bash", "args": {"command": "ls"}, "agent": "build", "is_child": False, "session": "s",
                    "cwd": "/project"}  # fmt: skip


def test_who_calls_is_told_and_a_call_of_nobody_is_refused(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    code = f"import sys; open({str(seen)!r}, 'a').write(sys.stdin.read() + '\\n'); print('{{\"decision\": \"pass\"}}')"
    child = {"id": "c", "parentID": "s", "agent": "general"}
    found = told(
        {"options": gate(code), "agents": ["build", "plan"]},
        {"options": gate(code), "agents": ["build"], "child": child},
        {"options": gate(code)},
    )
    assert found[:2] == ["", ""]
    assert "which agent" in found[2]
    calls = [json.loads(line) for line in seen.read_text().splitlines()]
    assert [(call["agent"], call["is_child"]) for call in calls] == [("plan", False), ("general", True)]
