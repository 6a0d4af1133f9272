"""LangChain and deepagents: the three walls as one middleware.

    agent = create_agent(model, visible_tools(gate, tools), middleware=[..., GateMiddleware(gate)])

Place it last of your middleware. What comes behind it all the same (deepagents' own) can only add to a request, and
the request is judged again where it leaves, in the model (`langchain_last_step`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware, ModelRequest, ToolCallRequest, hook_config
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Command

from extgate.core.extension import Extension
from extgate.enforce.answer import Answer
from extgate.enforce.gate import Gate, unavailable_because
from extgate.enforce.guarded_paths import GuardedPaths
from extgate.enforce.inproc.langchain_ask import Ask, Plan
from extgate.enforce.inproc.langchain_calls import Calls, Runner
from extgate.enforce.inproc.langchain_identity import UNKNOWN, Identities, Registry
from extgate.enforce.inproc.langchain_last_step import GatedModels, LastStep
from extgate.enforce.inproc.langchain_listings import Listings
from extgate.enforce.inproc.langchain_structured import structured_calls, without
from extgate.enforce.inproc.langchain_subagents import Spawns, under
from extgate.enforce.inproc.langchain_view import View

Result = ToolMessage | Command[Any]


def visible_tools(gate: Gate, tools: Sequence[Any], registry: Registry | None = None) -> list[Any]:
    """The first wall: those of the tools that the agent may see, in order, to hand to `create_agent`."""
    return View(gate, Identities(gate, registry or Registry())).keep(tools)


class GateMiddleware(AgentMiddleware[Any, Any, Any]):
    """Hides at each model call, and refuses at each tool call, what one agent may not have.

    registry: what tools are that are not the framework's; MCP tools belong there. paths: closes skills and policy files
    to the framework's file tools; with `langchain_files.gated_backend`. spawns: sub-agents behind gates; others are
    refused (`langchain_children.gated_subagents`). catalog: whose tool runs others.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        registry: Registry | None = None,
        paths: GuardedPaths | None = None,
        spawns: Spawns | None = None,
        catalog: Callable[[View], Runner] | None = None,
    ) -> None:
        super().__init__()
        self.gate = gate
        identities, spawns = Identities(gate, registry or Registry()), spawns or Spawns(gate)
        self.view = View(gate, identities)
        self._listings = Listings(self.view, spawns)
        self._step = LastStep(self.view, self._listings)
        self._models = GatedModels(self._step)
        runner = catalog(self.view) if catalog else None
        self._calls = Calls(identities=identities, view=self.view, spawns=spawns, paths=paths, catalog=runner)

    # ------------------------------------------------------------------------------------------ turns and model calls

    @hook_config(can_jump_to=["end"])
    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Ends the turn of an unavailable agent before anything is sent, and records that."""
        reason = self._unavailable()
        if not reason:
            return None
        answer = self.gate.refuse_item(Extension(kind="agent", name=self.gate.agent), reason, action="turn")
        return {"messages": [AIMessage(content=answer.message)], "jump_to": "end"}

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> Any:
        """Sends the request without what is hidden."""
        ready = self._ready(request)
        if isinstance(ready, AIMessage):
            return ready
        response = handler(ready)
        asks = structured_calls(self.gate, ready, response)
        return without(response, _refused([(call, ask.put(self.gate)) for call, ask in asks]))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Awaitable[Any]]) -> Any:
        """Sends the request without what is hidden."""
        ready = self._ready(request)
        if isinstance(ready, AIMessage):
            return ready
        response = await handler(ready)
        asks = structured_calls(self.gate, ready, response)
        return without(response, _refused([(call, await ask.aput(self.gate)) for call, ask in asks]))

    def _unavailable(self) -> str:
        available = self.gate.availability
        return "" if available.is_available else f"This agent is unavailable: {unavailable_because(available)}."

    def _ready(self, request: ModelRequest[Any]) -> ModelRequest[Any] | AIMessage:
        """The request as it may go on; an answer in the model's place when nothing may be sent."""
        try:
            if reason := self._unavailable():
                return AIMessage(content=reason)
            self._listings.see_skills(request.state)
            return request.override(tools=self._step.offer(request.tools), model=self._models.of(request.model))
        except Exception as error:  # a request that cannot be judged is not sent
            return AIMessage(content=f"The gate failed ({type(error).__name__}); no request was sent.")

    # ------------------------------------------------------------------------------------------ tool calls

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]) -> Result:
        """Runs the call, or answers it with the reason why not."""
        plan = self._planned(request)
        if isinstance(plan, ToolMessage):
            return plan
        for ask in plan.asks:
            if not (answer := ask.put(self.gate)):
                return _refusal(request.tool_call, plan.say(answer.message))
        with under(self.gate, plan.child):
            result: Result = plan.result(handler(plan.request))
            return result

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        """Runs the call, or answers it with the reason why not."""
        plan = self._planned(request)
        if isinstance(plan, ToolMessage):
            return plan
        for ask in plan.asks:
            if not (answer := await ask.aput(self.gate)):
                return _refusal(request.tool_call, plan.say(answer.message))
        with under(self.gate, plan.child):
            result: Result = plan.result(await handler(plan.request))
            return result

    def _planned(self, request: ToolCallRequest) -> Plan | ToolMessage:
        try:
            return self._calls.plan(request)
        except Exception as error:  # a call that cannot be judged does not run
            call, reason = request.tool_call, f"the gate failed ({type(error).__name__}); nothing was run."
            return _refusal(
                call, Ask(ext=Ask.native(call["name"], UNKNOWN), args={}, refusal=reason).put(self.gate).message
            )


def _refused(answers: Sequence[tuple[Any, Answer]]) -> dict[str | None, ToolMessage]:
    return {call["id"]: _refusal(call, answer.message) for call, answer in answers if not answer}


def _refusal(call: Any, reason: str) -> ToolMessage:
    return ToolMessage(content=reason, name=call["name"], tool_call_id=call["id"] or "", status="error")
