"""Agents of LangChain for tests: a chat model in this process that plays a script, tools that leave marks, gates."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, Field

from extgate.core.extension import Extension, Inventory, Server
from extgate.core.policy import Profile
from extgate.discover.builtins import builtin_tools
from extgate.enforce.gate import Gate
from tests.doors.policies import profile

Calls = list[dict[str, Any]]
Turn = str | Calls
NATIVE = builtin_tools("deepagents")


def call(name: str, /, **args: Any) -> Calls:
    """A turn that calls one tool; add two of them for parallel calls."""
    return [{"name": name, "args": args}]


class Offer:
    """One request as it left: tools in the provider's form, messages."""

    def __init__(self, messages: Sequence[BaseMessage], settings: Mapping[str, Any]) -> None:
        self.messages, self.settings = list(messages), dict(settings)

    @property
    def definitions(self) -> list[dict[str, Any]]:
        return list(self.settings.get("tools", ()))

    @property
    def names(self) -> list[str]:
        return [(tool.get("function") or tool).get("name") or tool.get("type") or "" for tool in self.definitions]

    @property
    def system(self) -> str:
        return "\n".join(message.text for message in self.messages if isinstance(message, SystemMessage))

    @property
    def results(self) -> list[str]:
        return [message.text for message in self.messages if isinstance(message, ToolMessage)]

    def description(self, name: str) -> str:
        return next(t["function"]["description"] for t in self.definitions if t["function"]["name"] == name)


class Scripted(BaseChatModel):
    """Says its turns one after the other, counted by its own answers in the request; then `done`.

    before: called with each request before it is answered. by_word: scripts for conversations whose first human message
    holds the word.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    turns: list[Any] = Field(default_factory=list)
    by_word: dict[str, list[Any]] = Field(default_factory=dict)
    offers: list[Any] = Field(default_factory=list)
    before: Callable[[Offer], object] = lambda offer: None

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: Any = None, **options: Any) -> Any:
        choice = {} if tool_choice is None else {"tool_choice": tool_choice}
        shown = [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=shown, **choice, **options)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **settings: Any) -> ChatResult:
        offer = Offer(messages, settings)
        self.offers.append(offer)
        self.before(offer)
        first = next((m.text for m in messages if m.type == "human"), "")
        turns = next((turns for word, turns in self.by_word.items() if word in first), self.turns)
        at = sum(isinstance(m, AIMessage) for m in messages)
        turn: Turn = turns[at] if at < len(turns) else "done"
        return ChatResult(generations=[ChatGeneration(message=_message(turn, at))])


def _message(turn: Turn, at: int) -> AIMessage:
    if isinstance(turn, str):
        return AIMessage(content=turn)
    return AIMessage(
        content="", tool_calls=[{**c, "id": f"c{at}.{i}", "type": "tool_call"} for i, c in enumerate(turn)]
    )


class Marks:
    """Counts what really ran, by name."""

    def __init__(self) -> None:
        self.by_name: Counter[str] = Counter()

    def tool(self, name: str, result: str = "ran") -> BaseTool:
        """A tool that counts."""

        def run(**arguments: Any) -> str:
            self.by_name[name] += 1
            return result

        async def arun(**arguments: Any) -> str:
            return run(**arguments)

        schema = {"type": "object", "title": name, "description": name, "properties": {}, "additionalProperties": True}
        return StructuredTool(name=name, description=f"the tool {name}", args_schema=schema, func=run, coroutine=arun)


def tool(name: str, source: str = "app") -> Extension:
    return Extension(kind="tool", name=name, source=source)


def skill(name: str, **more: Any) -> Extension:
    return Extension(kind="skill", name=name, source="project", **more)


def mcp(server: str, name: str, **facts: Any) -> Extension:
    return Extension(kind="mcp_tool", server=server, name=name, facts=facts)


def stock(*extensions: Extension, servers: Sequence[str] = ()) -> Inventory:
    """deepagents' own tools and these."""
    return Inventory(extensions=(*NATIVE, *extensions), servers=tuple(Server(name=name) for name in servers))


def gate(policy: str | Profile, inventory: Inventory | None = None, **more: Any) -> Gate:
    """A gate under a profile's text."""
    under = profile(policy) if isinstance(policy, str) else policy
    return Gate(under, inventory or stock(), door="langchain", **more)


def run(agent: Any, text: str = "go", *, how: str = "ainvoke", **state: Any) -> list[BaseMessage]:
    """One turn of the agent, synchronously or not; the messages."""
    given = {"messages": [("user", text)], **state}
    result = agent.invoke(given) if how == "invoke" else asyncio.run(agent.ainvoke(given))
    messages: list[BaseMessage] = result["messages"]
    return messages


def results(messages: Sequence[BaseMessage]) -> list[tuple[str, str]]:
    """(status, text) of every tool's answer, in order."""
    return [(m.status, m.text) for m in messages if isinstance(m, ToolMessage)]
