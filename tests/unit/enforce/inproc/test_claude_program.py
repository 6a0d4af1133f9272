"""Claude Code itself, through the Agent SDK and in its strongest mode, against a scripted model on loopback.

What happened is told by files and counters, never by text. `tests/e2e/test_framework_versions.py` runs this file.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

sdk = pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is tested in environments of its own")

from extgate.core.extension import Extension, Inventory, Server  # noqa: E402
from extgate.enforce.gate import Gate  # noqa: E402
from extgate.enforce.inproc.claude_agent import gated_options  # noqa: E402
from tests.doors.policies import profile  # noqa: E402
from tests.fake_anthropic import FakeAnthropic  # noqa: E402
from tests.fake_model import call  # noqa: E402

STOCK = Inventory(
    extensions=(
        *(Extension(kind="tool", name=n, source="claude-code") for n in ("Bash", "Read", "Write", "Skill", "Agent")),
        *(Extension(kind="mcp_tool", server="office", name=name) for name in ("safe", "danger")),
        *(Extension(kind="skill", name=name, source="project") for name in ("open", "secret")),
        Extension(kind="subagent", name="general-purpose"),
    ),
    servers=(Server(name="office"),),
)
DENY = "tools: {disabled: [Bash]}\nmcp: {disabled: ['office/danger']}\nskills: {disabled: [secret]}"


class Session:
    """One run of Claude Code in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran: list[str] = []
        for name in ("open", "secret"):
            file = folder / ".claude" / "skills" / name / "SKILL.md"
            file.parent.mkdir(parents=True)
            file.write_text(f"---\nname: {name}\ndescription: The {name} skill.\n---\nBODY OF {name.upper()}\n")

    def play(self, is_gated: bool) -> FakeAnthropic:
        script = {
            "SUBMARK": [call("Bash", command=f"touch {self.folder}/by-child"), "sub done"],
            "go": [
                call("Bash", command=f"touch {self.folder}/by-main"),
                call("mcp__office__danger") + call("mcp__office__safe"),
                call("Skill", skill="secret"),
                call("Skill", skill="open"),
                call("Agent", subagent_type="general-purpose", description="x", prompt="SUBMARK"),
                "done",
            ],
        }
        options = sdk.ClaudeAgentOptions(
            permission_mode="bypassPermissions", cwd=str(self.folder), mcp_servers={"office": self._server()},
            setting_sources=["project"], skills="all", max_turns=12,
        )  # fmt: skip
        if is_gated:
            options = gated_options(Gate(profile(DENY), STOCK, door="claude"), options)

        async def run(url: str) -> None:
            options.env = self._environ(url)
            async for _ in sdk.query(prompt="go", options=options):
                pass

        with FakeAnthropic(script) as model:
            asyncio.run(run(model.url))
        return model

    def _server(self) -> Any:
        def tool(name: str) -> Any:
            async def run(args: Any) -> Any:
                self.ran.append(name)
                return {"content": [{"type": "text", "text": "ok"}]}

            return sdk.tool(name, name, {})(run)

        return sdk.create_sdk_mcp_server("office", tools=[tool("safe"), tool("danger")])

    def _environ(self, url: str) -> dict[str, str]:
        switches = ("DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "IS_SANDBOX",
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC")  # fmt: skip
        return dict.fromkeys(switches, "1") | {
            "HOME": str(self.folder / "home"), "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none",
            "ENABLE_TOOL_SEARCH": "false",
        }  # fmt: skip

    def files(self) -> set[str]:
        return {path.name for path in self.folder.glob("by-*")}


@pytest.mark.timeout(300)
def test_behind_the_gate_nothing_denied_is_offered_or_happens(tmp_path: Path) -> None:
    session = Session(tmp_path)
    model = session.play(is_gated=True)
    mains = [r for r in model.requests if r.tools and "SUBMARK" not in r.user]
    subs = [r for r in model.requests if r.tools and "SUBMARK" in r.user]
    assert session.files() == set()
    assert session.ran == ["safe"]
    assert "mcp__office__safe" in mains[0].tools
    assert not {"Bash", "mcp__office__danger"} & {name for r in model.requests for name in r.tools}
    assert subs, "the sub-agent was spawned"
    assert "BODY OF OPEN" in mains[-1].text
    assert "BODY OF SECRET" not in "".join(r.text for r in model.requests)
    assert "The secret skill" not in "".join(r.text for r in model.requests), "nor to the sub-agent"
    assert "The open skill" in subs[0].text


@pytest.mark.timeout(300)
def test_without_the_gate_the_same_calls_happen(tmp_path: Path) -> None:
    session = Session(tmp_path)
    model = session.play(is_gated=False)
    assert session.files() == {"by-main", "by-child"}
    assert sorted(session.ran) == ["danger", "safe"]
    assert "BODY OF SECRET" in "".join(r.text for r in model.requests)
