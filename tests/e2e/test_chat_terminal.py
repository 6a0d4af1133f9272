"""A conversation in a real terminal: a prompt, commands, a turn, and what a reload reports while nobody types."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_model import FakeModel, call

pytest.importorskip("deepagents", reason="extgate[deepagents] is not installed")
pytest.importorskip("prompt_toolkit", reason="extgate[chat] is not installed")

SERVER = str(Path(__file__).parents[1] / "live_server.py")
WRITER = "id: writer\nmcp:\n  disabled: [demo/secret]\n"


class Terminal:
    """A process behind a terminal; `until` reads what it prints up to a text."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        self._here, there = pty.openpty()
        self.process = subprocess.Popen(
            command, stdin=there, stdout=there, stderr=there, env=environ, start_new_session=True
        )
        os.close(there)
        self.seen = ""

    def until(self, text: str) -> str:
        """Everything up to the text, without terminal sequences."""
        while text not in self.seen:
            data = os.read(self._here, 65536).decode(errors="replace")
            self.seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r", "", data)
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text: str) -> None:
        os.write(self._here, text.encode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._here)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "office"
    entry = {"command": sys.executable, "args": [SERVER, json.dumps({"tools": ["echo", "secret"]})]}
    for file, text in {
        "agents/writer.yaml": WRITER,
        "skills/tone/SKILL.md": "---\nname: tone\ndescription: Sets the tone.\n---\nBe kind.\n",
        ".mcp.json": json.dumps({"mcpServers": {"demo": entry}}),
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    return root


@pytest.fixture
def chat(root: Path, tmp_path: Path) -> Iterator[tuple[Terminal, FakeModel]]:
    xdg = {f"XDG_{name}_HOME": str(tmp_path / "xdg" / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    with FakeModel([call("demo_echo", text="x"), "Hello from the \x1b[31mmodel."]) as model:
        environ = {**os.environ, **xdg, "XDG_RUNTIME_DIR": str(tmp_path / "xdg/run"), "OPENAI_BASE_URL": model.url}
        environ |= {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "COLUMNS": "200"}
        command = [sys.executable, "-m", "extgate.cli.main", "-w", str(root), "chat", "writer", "--trust"]
        terminal = Terminal([*command, "--model", "openai:fake"], environ)
        yield terminal, model
        terminal.close()


def test_a_conversation_in_a_terminal(chat: tuple[Terminal, FakeModel], root: Path, tmp_path: Path) -> None:
    terminal, _ = chat
    terminal.until("/help lists the commands")
    terminal.until("writer>")
    terminal.type("/skills\r")
    terminal.until("tone: Sets the tone.")
    terminal.until("writer>")
    terminal.type("hello\r")
    terminal.until("· demo_echo")
    terminal.until("Hello from the \\u{1b}[31mmodel.")
    terminal.until("writer>")
    (root / "agents/writer.yaml").write_text(WRITER.replace("demo/secret", "demo/*"))
    terminal.until("writer: - mcp_tool demo/echo: 'demo/echo' is disabled for this agent.")
    terminal.until("in force")
    terminal.type("/why demo/echo\r")
    terminal.until("mcp_tool:demo/echo: no.")
    terminal.until("writer>")  # typed before there is a prompt, the end of input would be nobody's
    terminal.type("\x04")
    assert terminal.process.wait(60) == 0
    history = tmp_path / "xdg/state/extgate/chat-history"
    assert "/skills" in history.read_text()
    assert history.stat().st_mode & 0o777 == 0o600


def test_a_chat_that_is_terminated_leaves_no_server_behind(chat: tuple[Terminal, FakeModel]) -> None:
    terminal, _ = chat
    terminal.until("writer>")
    children = _children(terminal.process.pid)
    assert any("live_server.py" in command for command in children.values())
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.process.wait(60) == 128 + signal.SIGTERM
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


def _children(pid: int) -> dict[int, str]:
    """Commands of a process's children, by process id."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found[int(child)] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
    return found
