"""`extgate chat AGENT`: a terminal agent behind the gate."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from extgate.cli.chat_commands import COMMANDS, Reply, answer
from extgate.cli.chat_model import FORM, make_model
from extgate.cli.chat_screen import Lines, Screen
from extgate.cli.chat_session import Piece, Session, TurnError
from extgate.cli.options import complete_agents, print_json
from extgate.core.decide import Decision
from extgate.core.names import show, shown_name
from extgate.enforce.dispatch import Standing, refusal_line
from extgate.enforce.in_force import Change
from extgate.errors import ExtgateError, WorkspaceError
from extgate.host import Host, Wishes, open_host
from extgate.reload import change_lines, report_lines
from extgate.settings import user_state_dir
from extgate.workspace import Agent, Workspace, load_inventory_file

UNAVAILABLE = 4
FAILED = 1


@click.command("chat")
@click.argument("agent", shell_complete=complete_agents)
@click.option("--once", metavar="TEXT", help="Take one turn with this text, print the answer, and end.")
@click.option("--model", metavar="NAME", help="openai:NAME, anthropic:NAME, or as LangChain writes it.")
@click.option("-w", "--workspace", "root", default=None, metavar="DIR", help="The workspace; default: this directory.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --once.")
@click.option(
    "--inventory", "inventory_file", metavar="FILE", help="Use this inventory; nothing is discovered or started."
)
@click.option("--trust", is_flag=True, help="Start the servers that project files ask for, for this run.")
def command(
    agent: str, once: str | None, model: str | None, root: str | None, as_json: bool, inventory_file: str | None,
    trust: bool,
) -> None:  # fmt: skip
    """Talk to AGENT (an id or a profile file) behind its gate.

    The model's endpoint and key are OPENAI_BASE_URL and OPENAI_API_KEY, or ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY.
    /help lists what a line can be besides a message. Answers go to stdout, all else to stderr.
    Exit: 0; 1 when the turn failed; 4 when the agent is unavailable.
    """
    if as_json and once is None:
        raise click.UsageError("--json needs --once")
    try:
        chat = _Chat(Path(root or click.get_current_context().obj or "."), agent, model, once, as_json)
        with _ended_by_signal():
            sys.exit(chat.run(trust, inventory_file))
    except (ExtgateError, OSError) as error:
        click.echo(f"extgate: {show(str(error))}", err=True)
        sys.exit(FAILED)


@contextmanager
def _ended_by_signal() -> Iterator[None]:
    """Makes SIGTERM an exit, so that servers are ended first."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Chat:
    """One run of the command."""

    def __init__(self, root: Path, agent: str, model: str | None, once: str | None, as_json: bool) -> None:
        self._workspace = Workspace.open(root)
        self._agent = self._workspace.agent(agent)
        self._root, self._model, self._once, self._as_json = root, model, once, as_json
        self._also = () if self._agent in self._workspace.agents else tuple(_existing(root, self._agent.file))
        self._screen = Screen()
        self._session: Session | None = None
        self._lines: Lines | None = None

    def run(self, trust: bool, inventory_file: str | None) -> int:
        """The exit code."""
        has_person = self._once is None and sys.stdin.isatty()
        wishes = Wishes(
            door="chat",
            agents=frozenset({self._agent.id}),
            trust=trust,
            inventory=load_inventory_file(Path(inventory_file)) if inventory_file else None,
            also=self._also,
            approver=_Asking(self) if has_person else None,
            say=self._screen.note,
            on_report=lambda report: self._screen.notes(report_lines(report)),
            on_change=self._on_change,
        )
        with open_host(self._root, wishes) as host:
            self._session = Session(host, self._agent.id, self._make_model, also=self._also)
            return asyncio.run(self._one_turn() if self._once is not None else self._conversation(host))

    def _on_change(self, change: Change) -> None:
        """Tells what a server's coming or going did: to this agent in full, of the others whether they are there."""
        if self._session is not None and change.agent == self._session.agent_id:
            self._screen.notes(change_lines(change))
        elif change.was_available != change.is_available:
            self._screen.note(f"{change.agent}: {'available' if change.is_available else 'unavailable'}")

    def _make_model(self, agent: Agent) -> Any:
        name = self._model or (agent.policy.facts.get("model") if agent.policy else None)
        if not isinstance(name, str) or not name:
            raise WorkspaceError("no model is named", fix=f"pass --model; {FORM}")
        return make_model(name, os.environ)

    # ------------------------------------------------------------------------------------------ one turn

    async def _one_turn(self) -> int:
        assert self._session is not None
        assert self._once is not None
        if not self._session.standing.is_available:
            return self._unavailable(self._session.standing)
        reply = await answer(self._session, self._once)
        told: list[Piece] = []
        error = await self._turn(reply.turn, told) if reply.turn else ""
        if self._as_json:
            print_json(_turn_dict(self._session, reply, told, error))
        else:
            self._print(reply)
        if error:
            return FAILED
        standing = self._session.standing
        if not standing.is_available:
            self._screen.note(f"extgate: {refusal_line(standing)}")
        return 0 if standing.is_available else UNAVAILABLE

    async def _turn(self, text: str, told: list[Piece]) -> str:
        """Takes a turn; returns the error that ended it, or nothing."""
        assert self._session is not None

        def tell(piece: Piece) -> None:
            told.append(piece)
            if not self._as_json:
                self._screen.piece(piece)

        try:
            await self._session.turn(text, tell)
        except TurnError as error:
            self._screen.note(f"extgate: the turn failed: {error}")
            return str(error)
        finally:
            self._screen.end()
        return ""

    def _unavailable(self, standing: Standing) -> int:
        """Says what is missing, pattern by pattern."""
        if self._as_json:
            missing = [{"pattern": m.pattern, "state": m.state, "detail": m.detail} for m in standing.missing]
            print_json(
                {"agent": standing.agent, "available": False, "missing": missing, "error": standing.error or None}
            )
        self._screen.note(f"extgate: {refusal_line(standing)}")
        return UNAVAILABLE

    def _print(self, reply: Reply) -> None:
        for line in reply.lines:
            self._screen.line(line)

    # ------------------------------------------------------------------------------------------ a conversation

    async def _conversation(self, host: Host) -> int:
        assert self._session is not None
        session = self._session
        words = [command.name for command in COMMANDS]
        self._lines = lines = Lines(user_state_dir() / "chat-history", words, self._screen.note)
        host.start_all()
        with lines.around():
            self._screen.note(f"{session.agent_id} behind the gate; /help lists the commands")
            if not session.standing.is_available:
                self._screen.note(refusal_line(session.standing))
            while (line := await lines.next(f"{show(session.agent_id)}> ")) is not None:
                reply = await answer(session, line.strip())
                self._print(reply)
                if reply.is_end:
                    break
                if reply.turn:
                    await self._routed(reply.turn)
        return 0

    async def _routed(self, text: str) -> None:
        """A turn, if the agent may take one now; Ctrl-C ends the turn and not the chat."""
        assert self._session is not None
        route = self._session.host.dispatcher.route(self._session.agent_id)
        if route.agent is None:
            self._screen.note(refusal_line(route.skipped[0]))
            return
        task = asyncio.ensure_future(self._turn(text, []))
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            self._screen.note("interrupted")
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    async def ask(self, question: str) -> bool:
        """Whether the person says yes."""
        said = await self._lines.next(question) if self._lines else None
        return said is not None and said.strip().lower() in ("y", "yes")


class _Asking:
    """Asks the person in the terminal about an `ask`."""

    name = "terminal"

    def __init__(self, chat: _Chat) -> None:
        self._chat = chat

    async def __call__(self, decision: Decision, args: Mapping[str, Any]) -> bool:
        shown = show(str(dict(args)))[:500]
        return await self._chat.ask(f"{shown_name(decision.extension)} {shown}: {show(decision.reason)} Run it? [y/N] ")


def _existing(root: Path, file: str) -> list[Path]:
    return [path for path in (Path(file), root / file) if file and path.is_file()][:1]


def _turn_dict(session: Session, reply: Reply, told: list[Piece], error: str) -> dict[str, Any]:
    """One turn as JSON."""
    return {
        "agent": session.agent_id,
        "available": session.standing.is_available,
        "answer": "".join(piece.text for piece in told if piece.kind == "text"),
        "lines": list(reply.lines),
        "calls": [piece.name for piece in told if piece.kind == "call"],
        "errors": [{"tool": p.name, "message": p.text} for p in told if p.kind == "refusal"],
        "error": error or None,
        "policy_version": session.gate.profile.version,
        "inventory_version": session.gate.inventory.version,
    }
