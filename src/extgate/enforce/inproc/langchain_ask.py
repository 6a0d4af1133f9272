"""The questions of one tool call, and the call that runs when all of them are answered with yes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage

from extgate.core.extension import Extension
from extgate.enforce import above
from extgate.enforce.answer import Answer
from extgate.enforce.gate import Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question to the gate. refusal: what the door itself has against it; empty: nothing."""

    ext: Extension
    args: Mapping[str, Any]
    action: str = "call"
    session: str = ""
    refusal: str = ""

    @staticmethod
    def native(name: str, source: str) -> Extension:
        """A tool that is not installed, and whose source is known all the same."""
        return Extension(kind="tool", name=name[:512], source=source)

    def put(self, gate: Gate) -> Answer:
        """The gate's answer, and that of every gate above it."""
        if self.refusal:
            return gate.refuse_item(self.ext, self.refusal, self.args, action=self.action, session=self.session)
        return above.use(gate, self.ext, self.args, action=self.action, session=self.session)

    async def aput(self, gate: Gate) -> Answer:
        """`put` for an approver that may have to be awaited."""
        if self.refusal or (gate.approver is None and not above.gates_above()):  # nobody to wait for
            return self.put(gate)
        return await above.ause(gate, self.ext, self.args, action=self.action, session=self.session)


@dataclass(slots=True, kw_only=True)
class Plan:
    """The questions of one call, in order, and the request that runs when all are answered with yes.

    child: the gate of the registered sub-agent that it spawns. say: how a refusal reads, from its reason.
    """

    request: ToolCallRequest
    asks: list[Ask] = field(default_factory=list)
    child: Gate | None = None
    say: Callable[[str], str] = str

    def result(self, result: Any) -> Any:
        """The tool's result; the framework's own words for a name that it does not know would list every tool."""
        if self.request.tool is None and isinstance(result, ToolMessage) and result.status == "error":
            return result.model_copy(update={"content": f"'{self.request.tool_call['name']}' is not installed."})
        return result
