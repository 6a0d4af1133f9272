"""The last step before a request leaves: the model itself takes out what the agent may not see.

Middleware that runs after ours, and LangChain itself, still add to a request: tools that a skill discloses, schemas for
structured output, tools in `model_settings`, definitions inside messages. All of it passes through the model's
`bind_tools` and `invoke`, so a copy of the model, of a class made from its own, judges it there.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableBinding
from pydantic import PrivateAttr

from extgate.enforce.inproc.langchain_identity import marks_of, name_of
from extgate.enforce.inproc.langchain_listings import Listings
from extgate.enforce.inproc.langchain_view import Memory, View

_STEP = "_extgate_step"
_DISCLOSING = ("tool_addition", "additional_tools")
"""Types of the blocks that define a tool inside a message (deepagents 0.7.32, seen 2026-11-30)."""
_ADDED = ("tools", "functions", "mcp_servers")
"""Keys of a model's own settings that offer tools."""
_RECENT = 64
"""Most lists that are remembered; one leaves right after it was made."""
_NEED_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")
_ANY_TOOL = ("auto", "any", "required", "none")


class LastStep:
    """What one agent's requests go through: `offer` when the door first sees one, the others when it leaves."""

    def __init__(self, view: View, listings: Listings) -> None:
        self._view, self._listings = view, listings
        self._sent: dict[tuple[int, ...], tuple[Memory, list[Any], list[str]]] = {}
        self._bound: dict[int, object] = {}

    def offer(self, tools: Sequence[Any]) -> list[Any]:
        """The visible tools of a request, described without what is hidden."""
        visible, marks = self._view.offer(tools)
        kept = self._listings.described(visible, marks)
        if "" not in marks:  # a definition may be changed in place
            _remember(self._sent, tuple(map(id, kept)), (self._view.memory(), kept, marks))
        return kept

    def tools(self, tools: Sequence[Any]) -> list[Any]:
        """The visible ones of all that leaves; nothing is asked twice when nothing was added."""
        judged_in, _, marks = self._sent.pop(tuple(map(id, tools)), (None, [], []))
        if judged_in is self._view.memory() and marks == marks_of(tools):
            return list(tools)
        visible = self._view.keep(tools, is_added=True)
        return self._listings.described(visible, marks_of(visible))

    def bound(self, model: Any) -> Any:
        """Notes the provider's form of what was judged already; an empty list of tools is no list."""
        if type(model) is not RunnableBinding and not isinstance(model, RunnableBinding):
            return model
        given: Any = model.kwargs
        if tools := given.get("tools"):
            _remember(self._bound, id(tools), tools)
            return model
        return model.model_copy(update={"kwargs": {k: v for k, v in given.items() if k not in _NEED_TOOLS}})

    def settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings of a call without the hidden tools that somebody put there."""
        for key in _ADDED:
            offered = settings.get(key)
            if offered is None or self._bound.pop(id(offered), None) is offered:  # judged before it took this form
                continue
            rows = offered if isinstance(offered, list) else []
            kept = [row for row in rows if self._view.keep([_as_tool(key, row)])]
            settings = {k: v for k, v in settings.items() if k not in (key, "tool_choice")}
            settings |= {key: kept} if kept else {}
        return settings

    def messages(self, messages: Any) -> Any:
        """The messages, with listings in system messages reduced and hidden definitions taken out."""
        if not isinstance(messages, list):
            return messages
        return [m if m.type != "system" and isinstance(m.content, str) else self._message(m) for m in messages]

    def _message(self, message: BaseMessage) -> BaseMessage:
        is_system = message.type == "system"
        if isinstance(message.content, str):
            text = self._listings.reduce(message.content)
            return message if text == message.content else message.model_copy(update={"content": text})
        if not is_system and not any(_defines(block) for block in message.content):
            return message
        blocks = [self._block(block) if is_system or _defines(block) else block for block in message.content]
        return message.model_copy(update={"content": [block for block in blocks if block is not None]})

    def _block(self, block: str | dict[str, Any]) -> str | dict[str, Any] | None:
        """A part of a message; None when nothing of it is left."""
        if isinstance(block, str):
            return self._listings.reduce(block)
        if _defines(block):
            inner = block.get("tool") or {}
            offered = [inner.get("definition", inner)] if inner else block.get("tools") or [{}]
            return block if len(self._view.keep(offered, is_added=True)) == len(offered) else None
        text = block.get("text")
        left = self._listings.reduce(text) if isinstance(text, str) else text
        return block if left == text else (block | {"text": left} if left else None)


def _remember(kept: dict[Any, Any], key: object, value: object) -> None:
    """Keeps what is asked for once, right afterwards; what nobody asked for goes when there is too much."""
    if len(kept) >= _RECENT:
        kept.clear()
    kept[key] = value


def _defines(block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") in _DISCLOSING


def _as_tool(key: str, row: Any) -> Any:
    return {"type": "mcp", "server_label": row.get("name")} if key == "mcp_servers" and isinstance(row, dict) else row


def _is_choice_of(choice: Any, tools: list[Any]) -> bool:
    """Whether a request with these tools can ask for that choice."""
    name = choice
    if isinstance(choice, Mapping):
        name = (choice.get("function") or choice).get("name")
    return bool(tools) and (not isinstance(name, str) or name in _ANY_TOOL or name in map(name_of, tools))


class _Gated:
    """The methods through which LangChain sends a request."""

    def bind_tools(self: Any, tools: Sequence[Any], **options: Any) -> Any:
        step: LastStep = getattr(self, _STEP)
        kept = step.tools(tools)
        if "tool_choice" in options and not _is_choice_of(options["tool_choice"], kept):
            options["tool_choice"] = None
        return step.bound(super().bind_tools(kept, **options))  # type: ignore[misc]

    def invoke(self: Any, input: Any, config: Any = None, **settings: Any) -> Any:
        step: LastStep = getattr(self, _STEP)
        return super().invoke(step.messages(input), config, **step.settings(settings))  # type: ignore[misc]

    async def ainvoke(self: Any, input: Any, config: Any = None, **settings: Any) -> Any:
        step: LastStep = getattr(self, _STEP)
        return await super().ainvoke(step.messages(input), config, **step.settings(settings))  # type: ignore[misc]


class GatedModels:
    """Models behind one agent's last step, each made once: what LangChain remembers of a model stays with its copy."""

    def __init__(self, step: LastStep) -> None:
        self._step = step
        self._made: dict[int, tuple[BaseChatModel, BaseChatModel]] = {}

    def of(self, model: Any) -> Any:
        """The same model, still an instance of its class. Raises TypeError for what is no chat model."""
        made = self._made.get(id(model))
        if made is None or made[0] is not model:
            if isinstance(model, RunnableBinding):
                return model.model_copy(update={"bound": self.of(model.bound)})
            if len(self._made) >= _RECENT:
                self._made.clear()
            made = self._made[id(model)] = (model, _gated(model, self._step))
        return made[1]


def _gated(model: Any, step: LastStep) -> BaseChatModel:
    if not isinstance(model, BaseChatModel):
        raise TypeError(f"expected a chat model, got `{type(model).__name__}`")
    gated = copy.copy(model)
    object.__setattr__(gated, "__pydantic_private__", {**(model.__pydantic_private__ or {}), _STEP: step})
    object.__setattr__(gated, "__class__", _gated_class(type(model)))
    return gated


@cache
def _gated_class(made_from: type[BaseChatModel]) -> type[BaseChatModel]:
    names = {"__module__": made_from.__module__, "__qualname__": made_from.__qualname__, _STEP: PrivateAttr()}
    make: Any = type(made_from)
    made: type[BaseChatModel] = make(made_from.__name__, (_Gated, made_from), names)
    return made
