"""One conversation with an agent behind its gate: turns, and who takes them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extgate.agents import agent_factory, children_of, prompt_of
from extgate.core.names import show
from extgate.enforce.dispatch import Standing
from extgate.enforce.gate import Gate
from extgate.errors import ExtgateError, WorkspaceError
from extgate.host import Host
from extgate.workspace import Agent, Workspace

if TYPE_CHECKING:
    from extgate.enforce.inproc.factory import RunningAgent

MAX_STEPS = 500
"""Model calls and tool rounds in one turn, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a turn as it comes. kind: `text` of the answer, a tool `call` by name, or a tool's `refusal`."""

    kind: str
    text: str
    name: str = ""


class TurnError(Exception):
    """A turn that ended by an error of the model or its endpoint, in one line."""


class Session:
    """A conversation. The agent is built with the first turn, and again when the workspace was read again."""

    def __init__(
        self, host: Host, agent: str, make_model: Callable[[Agent], Any], *, also: tuple[Path, ...] = ()
    ) -> None:
        self.host, self.agent_id = host, agent
        self._make_model, self._also = make_model, also
        self._model: Any = None
        self._built: tuple[Workspace, RunningAgent] | None = None
        self._messages: list[Any] = []
        self._thread = uuid.uuid4().hex

    @property
    def gate(self) -> Gate:
        """The gate that the agent runs behind."""
        return self.host.dispatcher.seated(self.agent_id).gate

    @property
    def standing(self) -> Standing:
        """Whether the agent may take a turn now."""
        return self.host.dispatcher.standing(self.agent_id)

    async def turn(self, text: str, tell: Callable[[Piece], None]) -> None:
        """The agent's turn; `tell` gets it piece by piece. Raises TurnError; all then stands as before the turn."""
        messages = [*self._messages, {"role": "user", "content": text}]
        # What a provider's library raises is its own; it comes back as a value, and is told in one line.
        results = await asyncio.gather(self._run(messages, tell), return_exceptions=True)
        ended: list[Any] | BaseException = results[0]
        if isinstance(ended, asyncio.CancelledError):
            raise ended
        if isinstance(ended, BaseException):
            raise TurnError(_told(ended))
        self._messages = ended

    async def _run(self, messages: list[Any], tell: Callable[[Piece], None]) -> list[Any]:
        config = {"recursion_limit": MAX_STEPS, "configurable": {"thread_id": self._thread}}
        streamed: set[str] = set()
        last = messages
        news = self._graph().astream({"messages": messages}, config=config, stream_mode=["messages", "values"])
        async for mode, item in news:
            if mode == "values":
                last = item["messages"]
                for piece in _unstreamed(last[len(messages) :], streamed):
                    tell(piece)
            elif found := _streamed(item[0], streamed):
                tell(found)
        return list(last)

    def turn_to(self, agent: str) -> None:
        """Talks to another agent from now on, which hears nothing of what was said to this one."""
        self.agent_id, self._built, self._model, self._also = agent, None, None, ()
        self.forget()

    def forget(self) -> None:
        """Starts the conversation anew."""
        self._messages, self._thread = [], uuid.uuid4().hex

    def _graph(self) -> Any:
        workspace = self.host.workspace
        if self._built is None or self._built[0] is not workspace:
            self._built = (workspace, self._build(workspace))
        return self._built[1].graph

    def _build(self, workspace: Workspace) -> RunningAgent:
        agent = self._agent(workspace)
        self._model = self._model or self._make_model(agent)
        try:
            factory = agent_factory(
                workspace, self.host.servers, sink=self.host.sink, approver=self.gate.approver, also=self._also
            )
        except ImportError as error:
            raise WorkspaceError(f"a package is missing ({error})", fix="install extgate[chat]") from None
        seats = self.host.dispatcher.seats
        children = {
            name: replace(child, profile=seats[name].gate.profile) if name in seats else child
            for name, child in children_of(workspace, agent).items()
        }
        root = workspace.homes.root.absolute()
        return factory.create_behind(
            self.gate, model=self._model, root=root, prompt=prompt_of(agent), subagents=children
        )

    def _agent(self, workspace: Workspace) -> Agent:
        """The agent as its file says; one whose file is broken or gone goes on with what its gate is under."""
        policies = self.gate.profile.policies
        last = Agent(id=self.agent_id, file="", policy=policies[0] if policies else None)
        try:
            found = workspace.agent(str(self._also[0]) if self._also else self.agent_id)
        except WorkspaceError:
            return last
        return found if found.policy is not None else last


def _streamed(message: Any, streamed: set[str]) -> Piece | None:
    if getattr(message, "type", "") == "AIMessageChunk":
        if message.id:
            streamed.add(message.id)
        text = str(message.text)
        return Piece(kind="text", text=text) if text else None
    return None


def _unstreamed(messages: list[Any], streamed: set[str]) -> list[Piece]:
    """What came whole: calls, refusals, and answers that no model gave."""
    pieces = []
    for message in messages:
        key = f"whole {message.id}"
        if key in streamed:
            continue
        streamed.add(key)
        if message.type == "ai":
            text = str(message.text)
            if text and message.id not in streamed:
                pieces.append(Piece(kind="text", text=text))
            pieces += [Piece(kind="call", text="", name=call["name"]) for call in message.tool_calls]
        elif message.type == "tool" and message.status == "error":
            pieces.append(Piece(kind="refusal", text=str(message.text), name=message.name or ""))
    return pieces


def _told(error: BaseException) -> str:
    if isinstance(error, ExtgateError):
        return show(str(error))
    first_line = next((line for line in str(error).splitlines() if line.strip()), "")
    return show(f"{type(error).__name__}: {first_line[:500]}")
