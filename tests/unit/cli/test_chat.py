"""A chat behind the gate, against a scripted model on loopback and servers that live."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner, Result

from extgate.cli.chat import command
from extgate.cli.chat_model import make_model
from extgate.cli.chat_screen import safe
from extgate.cli.chat_session import Piece, Session, TurnError
from extgate.enforce.in_force import Change
from extgate.errors import WorkspaceError
from extgate.host import Host, Wishes, open_host
from extgate.reload import Report
from tests.fake_model import FakeModel, Request, Turn, call

pytest.importorskip("deepagents", reason="extgate[deepagents] is not installed")

SERVER = str(Path(__file__).parents[2] / "live_server.py")
WAIT_S = 60
BODY = "Ask twice before you deploy."

WRITER = """\
id: writer
tools:
  disabled: [write_file, edit_file, delete, execute]
skills:
  disabled: [deploy]
mcp:
  disabled: ["demo/secret"]
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / "xdg" / name.lower()))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "xdg/run"))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "office"
    flags = {"tools": ["echo", "secret"], "calls": str(tmp_path / "calls.jsonl")}
    entry = {"command": sys.executable, "args": [SERVER, json.dumps(flags)]}
    for file, text in {
        "agents/writer.yaml": WRITER,
        "agents/devops.yaml": "id: devops\nmcp: {required: ['github*', 'k8s*']}\n",
        "skills/ops/deploy/SKILL.md": f"---\nname: deploy\ndescription: Deploys.\n---\n{BODY}\n",
        "skills/tone/SKILL.md": "---\nname: tone\ndescription: Sets the tone.\n---\nBe kind and short.\n",
        ".mcp.json": json.dumps({"mcpServers": {"demo": entry}}),
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    return root


@pytest.fixture
def chat(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    def run(model: FakeModel, *args: str, lines: str | None = None) -> Result:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        full = ["-w", str(root), "--trust", "--model", "openai:fake", *args]
        return CliRunner().invoke(command, full, input=lines)

    return run


Chat = Callable[..., Result]


def calls(root: Path) -> list[str]:
    file = root.parent / "calls.jsonl"
    return [json.loads(line)["tool"] for line in file.read_text().splitlines()] if file.exists() else []


# ---------------------------------------------------------------------------------------------- one turn


def test_once_prints_the_answer_alone_and_the_request_holds_what_the_agent_may_have(chat: Chat, root: Path) -> None:
    with FakeModel([call("demo_echo", text="x"), "Here you are."]) as model:
        done = chat(model, "writer", "--once", "hello")
    assert done.exit_code == 0
    assert done.stdout == "Here you are.\n"
    assert "· demo_echo" in done.stderr
    assert calls(root) == ["echo"]
    for request in model.requests:
        own = set(request.tools) - {"write_todos"}  # of deepagents before 0.7
        assert own == {"ls", "read_file", "glob", "grep", "task", "fetch_skills", "get_skill", "demo_echo"}
        assert "**tone**" in request.system
        assert "deploy" not in request.system.lower()
    assert model.requests[0].user == "hello"


def test_calls_of_what_is_denied_are_refused_and_nothing_runs(chat: Chat, root: Path) -> None:
    script: list[Turn] = [
        call("write_file", file_path="/made.txt", content="x"),
        call("demo_secret", text="x"),
        call("get_skill", name="deploy"),
        call("read_file", file_path="/skills/ops/deploy/SKILL.md"),
        call("read_file", file_path="/agents/writer.yaml"),
        call("task", description="x", subagent_type="general-purpose"),
        call("execute", command=f"touch {root}/made.txt"),
        "done",
    ]
    with FakeModel({"begin": script, "x": [call("write_file", file_path="/made.txt", content="x"), "sub"]}) as model:
        done = chat(model, "writer", "--once", "begin")
    assert done.exit_code == 0
    assert not (root / "made.txt").exists()
    assert calls(root) == []
    results = model.about("begin")[-1].results
    assert results[0] == "'write_file' is disabled for this agent."
    assert "'demo/secret' is disabled" in results[1]
    assert "'ops/deploy' is disabled" in results[2]
    assert "skill that this agent may not use" in results[3]
    assert "policy that gates this agent" in results[4]
    assert BODY not in json.dumps([request.body for request in model.requests])
    assert "disabled: [" not in json.dumps([request.body for request in model.requests])
    assert "write_file" not in model.about("x")[0].tools
    assert "· write_file answered: 'write_file' is disabled for this agent." in done.stderr


def test_an_unavailable_agent_takes_no_turn_and_names_each_missing_pattern(chat: Chat) -> None:
    with FakeModel() as model:
        done = chat(model, "devops", "--once", "hello")
        told = chat(model, "devops", "--once", "hello", "--json")
    assert done.exit_code == told.exit_code == 4
    assert "required `github*` is not met" in done.stderr
    assert "required `k8s*` is not met" in done.stderr
    assert not done.stdout
    assert model.requests == []
    said = json.loads(told.stdout)
    assert [m["pattern"] for m in said["missing"]] == ["github*", "k8s*"]
    assert said["available"] is False


def test_an_agent_whose_profile_cannot_be_read_takes_no_turn_and_says_where(chat: Chat, root: Path) -> None:
    (root / "agents/devops.yaml").write_text("id: devops\ntools: {disabled: no}\n")
    with FakeModel() as model:
        done = chat(model, "devops", "--once", "hello")
    assert done.exit_code == 4
    assert "agents/devops.yaml:2" in done.stderr
    assert model.requests == []


def test_once_as_json_gives_answer_calls_and_refusals(chat: Chat) -> None:
    with FakeModel([call("delete", file_path="/x"), "no"]) as model:
        said = json.loads(chat(model, "writer", "--once", "hello", "--json").stdout)
    assert said["answer"] == "no"
    assert said["calls"] == ["delete"]
    assert said["errors"] == [{"tool": "delete", "message": "'delete' is disabled for this agent."}]


def test_a_given_inventory_stands_in_for_discovery(chat: Chat, tmp_path: Path) -> None:
    mcp = [{"server": name, "tools": [{"name": "ping"}]} for name in ("github", "k8s")]
    (tmp_path / "i.json").write_text(json.dumps({"tools": [], "skills": [], "mcp": mcp}))
    with FakeModel(["fine"]) as model:
        done = chat(model, "devops", "--once", "hello", "--inventory", str(tmp_path / "i.json"))
    assert done.exit_code == 0
    assert {"github_ping", "k8s_ping"} <= set(model.requests[0].tools)


def test_what_a_model_says_cannot_move_the_terminal(chat: Chat) -> None:
    with FakeModel([call("no\x1b[2Jtool"), "red \x1b[31m and \u202eback\nsecond\tline"]) as model:
        done = chat(model, "writer", "--once", "hello")
    assert done.stdout == "red \\u{1b}[31m and \\u{202e}back\nsecond\tline\n"
    assert "\x1b" not in done.stderr


def test_a_model_that_fails_is_one_line_and_exit_1(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(FakeModel):
        def answer(self, request: Request) -> Turn:
            raise ConnectionError

    monkeypatch.setenv("OPENAI_MAX_RETRIES", "0")
    with Broken() as model:
        done = chat(model, "writer", "--once", "hello")
    assert done.exit_code == 1
    assert "extgate: the turn failed: " in done.stderr
    assert not done.stdout


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY is not set"),
        ("anthropic:claude-x", "ANTHROPIC_API_KEY is not set"),
        ("gpt-5", "OPENAI_API_KEY is not set"),
        ("nobody:x", "no model can be made of `nobody:x`"),
        ("what", "no model can be made of `what`"),
    ],
)
def test_a_model_that_cannot_be_made_says_what_to_do(name: str, words: str) -> None:
    with pytest.raises(WorkspaceError, match=words):
        make_model(name, {})


def test_endpoints_and_keys_come_from_the_environment() -> None:
    model = make_model("openai:x", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    assert (model.openai_api_base, model.model_name) == ("http://127.0.0.1:1/v1", "x")
    model = make_model("anthropic:x", {"ANTHROPIC_BASE_URL": "http://127.0.0.1:2", "ANTHROPIC_API_KEY": "k"})
    assert (model.anthropic_api_url, model.anthropic_api_key.get_secret_value()) == ("http://127.0.0.1:2", "k")
    assert make_model("openai:ft:gpt:me", {"OPENAI_API_KEY": "k"}).model_name == "ft:gpt:me"


class Anthropic(BaseHTTPRequestHandler):
    """Answers each request of the Messages API with the same streamed text, and keeps its body and key."""

    kept: ClassVar[list[tuple[str, str, dict[str, object]]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        key = self.headers["x-api-key"] or self.headers["authorization"].removeprefix("Bearer ")
        self.kept.append((self.path, key, body))
        message = {"id": "m", "type": "message", "role": "assistant", "model": "fake", "content": [], "usage": {}}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
        start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Guten Tag."}}
        end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}
        events = [{"type": "message_start", "message": message}, start, delta]
        events += [{"type": "content_block_stop", "index": 0}, end, {"type": "message_stop"}]
        data = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Says nothing."""


def test_an_anthropic_compatible_endpoint_answers_as_well(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Anthropic)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    done = CliRunner().invoke(command, ["writer", "-w", str(root), "--model", "anthropic:fake", "--once", "hello"])
    server.shutdown()
    server.server_close()
    assert done.stdout == "Guten Tag.\n", done.stderr
    ((path, key, body),) = Anthropic.kept
    assert (path, key) == ("/v1/messages", "key")
    assert "write_file" not in json.dumps(body["tools"])


def test_no_model_at_all_is_an_error(root: Path) -> None:
    done = CliRunner().invoke(command, ["writer", "-w", str(root), "--once", "hello"])
    assert done.exit_code == 1
    assert "no model is named" in done.stderr


def test_an_unknown_agent_is_an_error_that_names_the_known(root: Path) -> None:
    done = CliRunner().invoke(command, ["ghost", "-w", str(root), "--once", "hello"])
    assert done.exit_code == 1
    assert "the agents are devops, writer" in done.stderr


def test_an_agent_may_be_a_file_and_is_closed_to_its_own_tools(chat: Chat, root: Path) -> None:
    (root / "elsewhere.yaml").write_text("id: guest\ntools: {disabled: [delete]}\n")
    with FakeModel([call("write_file", file_path="/elsewhere.yaml", content="id: guest"), "done"]) as model:
        done = chat(model, str(root / "elsewhere.yaml"), "--once", "hello")
    assert done.exit_code == 0
    assert "delete" not in model.requests[0].tools
    assert "policy that gates this agent" in model.requests[-1].results[0]
    assert "disabled" in (root / "elsewhere.yaml").read_text()


# ---------------------------------------------------------------------------------------------- commands


def test_a_gated_skill_gives_its_reason_and_its_text_is_never_expanded(chat: Chat) -> None:
    with FakeModel() as model:
        for name in ("deploy", "ops/deploy"):
            done = chat(model, "writer", "--once", f"/skill {name}")
            assert done.stdout == "'ops/deploy' is disabled for this agent.\n"
            assert done.exit_code == 0
        assert model.requests == []


def test_an_open_skill_is_expanded_into_the_turn(chat: Chat) -> None:
    with FakeModel(["ok"]) as model:
        done = chat(model, "writer", "--once", "/skill tone write to Ann")
    assert done.stdout == "ok\n"
    assert model.requests[0].user == "Follow the skill `tone`:\n\nBe kind and short.\n\nwrite to Ann"


LINES = """\
/skills
/tools
/mcp
/agents
/why secret
/why deploy
/why nothing-like-it
/skill nope
/skill
/mcp off demo
/mcp on demo
/mcp off ghost
/mcp sideways
/agents ghost
/skil
/help
/exit
never said
"""


def test_the_commands_answer_without_the_model(chat: Chat) -> None:
    with FakeModel() as model:
        done = chat(model, "writer", lines=LINES)
        assert model.requests == []
    assert done.exit_code == 0
    said = done.stdout.splitlines()
    for line in (
        "tone: Sets the tone.",
        "1 skill (1 more hidden; /why NAME says why)",
        "demo/echo: Does echo.",
        "8 tools (4 more hidden; /why NAME says why)",
        "demo: connected, 2 items",
        "devops is unavailable: required `github*` is not met (no such server); "
        "required `k8s*` is not met (no such server)",
        "writer: available",
        "mcp_tool:demo/secret: no. 'demo/secret' is disabled for this agent. "
        "(mcp.disabled `demo/secret` agents/writer.yaml:7)",
        "'nope' is not installed.",
        "usage: /skill NAME [TEXT]; /skills lists them",
        "demo: disabled",
        "demo: connected",
        "no server `ghost` is held here; /mcp lists them",
        "usage: /mcp [on|off NAME]",
        "no agent `ghost`; /agents lists them",
        "/skil is no command; do you mean /skill?",
    ):
        assert line in said, line
    assert any(line.startswith("skill:ops/deploy: no. ") for line in said)
    assert any(line.startswith("`nothing-like-it` is not installed") for line in said)
    assert any(line.startswith("/exit") for line in said)


def test_a_conversation_remembers_and_starts_anew(chat: Chat) -> None:
    with FakeModel(["one", "two", "three"]) as model:
        done = chat(model, "writer", lines="first\n//second\n/new\nthird\n")
    assert done.exit_code == 0
    said = [[m["content"] for m in r.body["messages"] if m["role"] == "user"] for r in model.requests]
    assert said == [["first"], ["first", "/second"], ["third"]]


def test_an_unavailable_agent_is_skipped_in_a_conversation_and_another_may_be_asked(chat: Chat) -> None:
    with FakeModel(["hello from the writer"]) as model:
        done = chat(model, "devops", lines="hello\n/agents writer\nhello\n")
    assert done.exit_code == 0
    assert "devops is unavailable: required `github*`" in done.stderr
    assert "hello from the writer" in done.stdout
    assert len(model.requests) == 1


def test_reload_in_a_conversation_lets_what_waited_take_effect(chat: Chat, root: Path) -> None:
    (root / "extgate.yaml").write_text("reload: narrow\n")

    class Edits(FakeModel):
        def answer(self, request: Request) -> Turn:
            (root / "agents/writer.yaml").write_text("id: writer\nmcp: {disabled: [demo/secret]}\n")
            return "edited"

    with Edits() as model:
        done = chat(model, "writer", lines="begin\n/reload\n")
    assert "writer: + tool write_file" in done.stdout
    assert "writer: + skill ops/deploy" in done.stdout


# ---------------------------------------------------------------------------------------------- while it runs


class Running:
    """A session over a host, whose news come in queues; a model's answers may do things first."""

    def __init__(self, host: Host, session: Session, runner: asyncio.Runner) -> None:
        self.host, self.session, self._runner = host, session, runner
        self.reports: queue.Queue[Report] = queue.Queue()
        self.changes: queue.Queue[Change] = queue.Queue()
        self.refusals: list[str] = []

    def turn(self, text: str) -> str:
        """Takes a turn; returns the answer's text, and keeps what was refused."""
        told: list[Piece] = []
        self._runner.run(self.session.turn(text, told.append))
        self.refusals += [piece.text for piece in told if piece.kind == "refusal"]
        return "".join(piece.text for piece in told if piece.kind == "text")

    def until(self, is_it: Callable[[Change], bool]) -> None:
        while not is_it(self.changes.get(timeout=WAIT_S)):
            pass


class Model(FakeModel):
    """`before`: called with each request before it is answered."""

    before: Callable[[Request], None] = staticmethod(lambda request: None)

    def answer(self, request: Request) -> Turn:
        self.before(request)
        return super().answer(request)


@pytest.fixture
def model() -> Iterator[Model]:
    with Model() as model:
        yield model


@pytest.fixture
def running(root: Path, model: Model) -> Iterator[Running]:
    found: list[Running] = []
    wishes = Wishes(
        door="chat",
        trust=True,
        on_report=lambda report: found[0].reports.put(report),
        on_change=lambda change: found[0].changes.put(change) if found else None,
    )
    with open_host(root, wishes) as host, asyncio.Runner() as runner:
        host.servers.retry_s = (0.01,)
        environ = {"OPENAI_BASE_URL": model.url}
        session = Session(host, "writer", lambda agent: make_model("openai:fake", environ))
        found.append(Running(host, session, runner))
        yield found[0]


def test_an_edit_during_a_turn_denies_its_next_call(running: Running, model: Model, root: Path) -> None:
    model.script = [call("demo_echo", text="1"), call("demo_echo", text="2"), "done"]

    def edit(request: Request) -> None:
        if request.turn == 1:
            assert "demo_echo" in request.tools
            (root / "agents/writer.yaml").write_text(WRITER.replace("demo/secret", "demo/*"))
            report = running.reports.get(timeout=WAIT_S)
            gate = running.session.gate
            assert [c.policy_version for c in report.changes if c.agent == "writer"] == [gate.profile.version]

    model.before = edit
    assert running.turn("begin") == "done"
    assert calls(root) == ["echo"]
    assert running.refusals == ["'demo/echo' is disabled for this agent."]
    assert "demo_echo" not in model.requests[-1].tools


def test_a_broken_edit_during_a_turn_keeps_the_last_good_policy_and_is_told(
    running: Running, model: Model, root: Path
) -> None:
    model.script = [call("demo_secret", text="1"), call("demo_echo", text="2"), "done"]

    def edit(request: Request) -> None:
        if request.turn == 0:
            (root / "agents/writer.yaml").write_text(WRITER.replace("[deploy]", "[deploy"))
            report = running.reports.get(timeout=WAIT_S)
            assert report.kept == ("writer",)
            assert (report.errors[0].file, report.errors[0].line) == ("agents/writer.yaml", 6)

    model.before = edit
    running.turn("begin")
    assert calls(root) == ["echo"]
    assert running.turn("again") == "done"


def test_a_new_skill_is_in_the_next_request(running: Running, model: Model, root: Path) -> None:
    model.script = ["one", "two"]
    running.turn("begin")
    assert "**late**" not in model.requests[-1].system
    (root / "skills/late").mkdir()
    (root / "skills/late/SKILL.md").write_text("---\nname: late\ndescription: Came late.\n---\nLate.\n")
    running.reports.get(timeout=WAIT_S)
    running.turn("again")
    assert "**late**" in model.requests[-1].system


def test_a_killed_server_stops_the_agent_that_requires_it_and_it_comes_back_by_itself(
    running: Running, model: Model, root: Path
) -> None:
    model.script = ["one", "two"]
    (root / "agents/writer.yaml").write_text(WRITER + "  required: [demo]\n")
    running.reports.get(timeout=WAIT_S)
    assert running.turn("begin") == "one"
    answer = running.host.servers.call("demo", "echo", {}).result(WAIT_S)
    pid = json.loads(answer["content"][0]["text"])["pid"]
    requests = len(model.requests)
    running.host.servers.retry_s = (3600.0,)
    os.kill(pid, signal.SIGKILL)
    running.until(lambda change: change.agent == "writer" and not change.is_available)
    assert running.host.dispatcher.route("writer").agent is None
    assert running.turn("again").startswith("This agent is unavailable: required `demo` is not met (`demo` is failed")
    assert len(model.requests) == requests
    running.host.switch("demo", is_on=False)
    running.host.switch("demo", is_on=True)
    assert running.host.dispatcher.route("writer").agent == "writer"
    assert running.turn("again") == "done"


def test_a_call_of_a_server_that_dies_answers_in_words_and_the_turn_goes_on(
    running: Running, model: Model, root: Path
) -> None:
    model.script = [call("demo_echo", text="1"), "done"]

    def kill(request: Request) -> None:
        if request.turn == 0 and request.user == "begin":
            answer = running.host.servers.call("demo", "echo", {}).result(WAIT_S)
            running.host.servers.retry_s = (3600.0,)
            os.kill(json.loads(answer["content"][0]["text"])["pid"], signal.SIGKILL)
            running.until(lambda change: change.agent == "writer" and bool(change.gone))

    model.before = kill
    assert running.turn("begin") == "done"
    assert running.refusals


def test_a_failed_turn_leaves_the_conversation_as_it_was(running: Running, model: Model) -> None:
    model.script = ["one", "two"]
    running.turn("begin")

    def fail(request: Request) -> None:
        if request.body["messages"][-1]["content"] == "bad":
            raise ConnectionError

    model.before = fail
    with pytest.raises(TurnError):
        running.turn("bad")
    running.turn("good")
    said = [m["content"] for m in model.requests[-1].body["messages"] if m["role"] == "user"]
    assert said == ["begin", "good"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\nb\tc", "a\nb\tc"), ("\x1b[31m", "\\u{1b}[31m"), ("\r\n", "\\u{d}\n"), ("\u200b", "\\u{200b}"), ("é", "é")],
)
def test_text_keeps_its_lines_and_tabs_and_nothing_else_that_moves(text: str, shown: str) -> None:
    assert safe(text) == shown
