"""The three agents of examples/office through `extgate chat --once`: real servers, and a scripted model on loopback.

Each is asked what it has, then told to call what it may not: the requests hold exactly what the profile allows, the
calls are refused, and nothing of them happened.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake_model import FakeModel, Turn, call

pytest.importorskip("deepagents", reason="extgate[deepagents] is not installed")
pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache"

READING = {"ls", "read_file", "glob", "grep"}
CHANGING = {"write_file", "edit_file", "delete"}
CATALOG = {"fetch_skills", "get_skill"}
SKILLS = {
    "customer-service": {"escalate-complaint", "refund-policy"},
    "writing": {"reply-tone", "release-notes"},
    "research": {"check-citations", "literature-review"},
    "devops": {"restart-service", "drop-database", "prod-deploy"},
    "": {"meeting-notes"},
}


class Office:
    """A copy of examples/office beside the installed servers, and the runs of chat in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "examples" / "office"
        shutil.copytree(ROOT / "examples" / "office", self.root)
        (folder / ".cache").symlink_to(CACHE)
        self._xdg = {f"XDG_{n}_HOME": str(folder / "xdg" / n.lower()) for n in ("CONFIG", "DATA", "STATE", "CACHE")}
        self._xdg["XDG_RUNTIME_DIR"] = str(folder / "xdg" / "run")
        self.before = self.files()

    def files(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.root)): p.read_bytes() for p in self.root.rglob("*") if p.is_file()}

    def chat(self, agent: str, model: FakeModel, *options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "extgate.cli.main", "-w", str(self.root), "chat", agent, "--trust"]
        command += ["--model", "openai:fake", *options]
        environ = {**os.environ, **self._xdg, "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "none"}
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=250)


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def needs(*servers: str) -> None:
    missing = [name for name in servers if not (CACHE / "servers" / name / "bin").is_dir()]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; `make run` installs them, github and k8s with NODE=1")


def skills_in(prompt: str) -> set[str]:
    return {name.rpartition("/")[2] for name in re.findall(r"^- \*\*(.+?)\*\*:", prompt, re.MULTILINE)} - {"label"}


def asked(name: str, path: str) -> list[Turn]:
    """Calls of every kind that some agent may not make, and then an end."""
    return [
        call("execute", command="touch made-by-execute"),
        call("write_file", file_path="/made.txt", content="x"),
        call("edit_file", file_path="/kubeconfig.yaml", old_string="apiVersion", new_string="x"),
        call("delete", file_path="/kubeconfig.yaml"),
        call("get_skill", name=name),
        call("read_file", file_path=path),
        call("slack_slack_post_message", channel_id="C1", text="x"),
        call("run_tool", tool_name="write_file", tool_args={"file_path": "/made.txt", "content": "x"}),
        call("read_file", file_path="/agents/devops.yaml"),
        "done",
    ]


def test_customer_service_has_what_its_profile_says_and_changes_nothing(office: Office) -> None:
    with FakeModel(asked("prod-deploy", "/skills/devops/prod-deploy/SKILL.md")) as model:
        done = office.chat("customer-service", model, "--once", "你有哪些mcp、tool、skills")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    for request in model.requests:
        assert set(request.tools) - {"write_todos"} == READING | CATALOG | {"task"}  # todos: deepagents before 0.7
        assert skills_in(request.system) == SKILLS["customer-service"] | SKILLS["writing"]
    results = model.requests[-1].results
    assert len(results) == 9
    assert all("is disabled for this agent" in results[at] for at in (0, 1, 2, 3)), results
    assert "is not permitted" in results[4]
    assert "may not use" in results[5]
    assert "not installed" in results[6]
    assert "policy" in results[8]
    assert office.files() == office.before


def test_customer_service_starts_no_server(office: Office) -> None:
    with FakeModel() as model:
        done = office.chat("customer-service", model, "--once", "/mcp")
    assert "slack: configured, 0 items" in done.stdout
    assert "connected" not in done.stdout


def test_research_reads_through_few_doors(office: Office) -> None:
    needs("arxiv")
    with FakeModel(asked("reply-tone", "/skills/writing/reply-tone/SKILL.md")) as model:
        done = office.chat("research", model, "--once", "你有哪些mcp、tool、skills")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    for request in model.requests:
        own = {name for name in request.tools if not name.startswith("arxiv_")}
        assert own == {"read_file", "glob", "grep"}
        assert {"arxiv_search_papers", "arxiv_read_paper"} <= set(request.tools)
        assert skills_in(request.system) == SKILLS["research"]
    results = model.requests[-1].results
    assert len(results) == 9
    assert all("is not in this agent's allowed list" in results[at] for at in (1, 2, 3, 4)), results
    assert "may not use" in results[5]
    assert "policy" in results[8]
    assert office.files() == office.before


def test_devops_without_its_servers_is_refused_with_the_missing_patterns(office: Office) -> None:
    servers = json.loads((office.root / ".mcp.json").read_text())["mcpServers"]
    kept = {name: entry for name, entry in servers.items() if name not in ("github", "k8s")}
    (office.root / ".mcp.json").write_text(json.dumps({"mcpServers": kept}))
    with FakeModel(["never said"]) as model:
        done = office.chat("devops", model, "--once", "你有哪些mcp、tool、skills")
    assert done.returncode == 4
    assert "required `github*` is not met (no such server" in done.stderr
    assert "required `k8s*` is not met (no such server" in done.stderr
    assert not done.stdout
    assert model.requests == []


def test_devops_with_its_servers_has_everything_but_two_skills(office: Office) -> None:
    needs("github", "k8s", "slack", "arxiv")
    script = [
        call("get_skill", name="prod-deploy"),
        call("get_skill", name="drop-database"),
        call("read_file", file_path="/skills/devops/drop-database/SKILL.md"),
        call("get_skill", name="restart-service"),
        call("write_file", file_path="/skills/devops/prod-deploy/SKILL.md", content="x"),
        call("write_file", file_path="/agents/devops.yaml", content="id: devops"),
        call("write_file", file_path="/note.txt", content="allowed"),
        "done",
    ]
    with FakeModel(script) as model:
        done = office.chat("devops", model, "--once", "你有哪些mcp、tool、skills")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    request = model.requests[-1]
    assert set(request.tools) >= READING | CHANGING | CATALOG | {"task", "github_create_issue"}
    assert any(name.startswith("k8s_") for name in request.tools)
    everything = {skill for skills in SKILLS.values() for skill in skills}
    assert skills_in(request.system) == everything - {"prod-deploy", "drop-database"}
    results = request.results
    assert all("is disabled for this agent" in results[at] for at in (0, 1)), results
    assert "may not use" in results[2]
    assert "restart" in results[3].lower()
    assert all("closed to this agent's file tools" in results[at] for at in (4, 5)), results
    assert office.files() == {**office.before, "note.txt": b"allowed"}
