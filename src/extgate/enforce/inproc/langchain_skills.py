"""The visible skills as a block of the system prompt, from the agent's own cache."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from operator import is_not
from pathlib import Path
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware, ModelRequest
from langchain_core.messages import SystemMessage

from extgate.core.extension import Extension
from extgate.core.names import is_runtime_source
from extgate.enforce.above import is_visible, state_of
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.langchain_identity import RUNTIME
from extgate.enforce.inproc.skill_cache import CachedSkill, SkillCache

_GET = "Read a skill's instructions with `get_skill` before you follow it."
_READ = "Read a skill's file with `read_file` before you follow it."


class SkillsPrompt(AgentMiddleware[Any, Any, Any]):
    """Lists the skills that are delivered in the request; the catalog's are fetched by the model itself.

    root: what the paths of the file tools begin at.
    """

    def __init__(self, gate: Gate, skills: SkillCache, root: Path) -> None:
        super().__init__()
        self._gate, self._skills, self._root = gate, skills, root
        self._text: tuple[tuple[object, ...], str] = ((), "")

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Any]) -> Any:
        """Adds the block."""
        return handler(self._with_block(request))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[..., Awaitable[Any]]) -> Any:
        """Adds the block."""
        return await handler(self._with_block(request))

    def _with_block(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        listed = self._listed()
        if not listed:
            return request
        before = request.system_message.content_blocks if request.system_message else []
        text = f"\n\n{listed}" if before else listed
        return request.override(system_message=SystemMessage(content_blocks=[*before, {"type": "text", "text": text}]))

    def _listed(self) -> str:
        state, text = self._text
        now = state_of(self._gate)
        if len(state) != len(now) or any(map(is_not, state, now)):
            rows = [skill for skill in self._skills.skills() if self._gate.decide(skill.ext).delivery == "request"]
            text = self._block(rows) if rows else ""
            self._text = (now, text)
        return text

    def _block(self, skills: list[CachedSkill]) -> str:
        lines = ["## Skills", ""]
        is_gettable, is_readable = self._has("get_skill"), self._has("read_file")
        for skill in skills:
            path = f" (`{self._path(skill)}`)" if is_readable and not is_gettable else ""
            lines.append(f"- **{skill.display_name}**: {' '.join(skill.ext.description.split())}{path}")
        how = _GET if is_gettable else _READ if is_readable else ""
        return "\n".join([*lines, "", how] if how else lines)

    def _has(self, tool: str) -> bool:
        owners = [ext for ext in self._gate.owners(tool, ("tool",)) if is_runtime_source(ext)]
        owners = owners or [Extension(kind="tool", name=tool, source=RUNTIME)]
        return all(is_visible(self._gate, ext) for ext in owners)

    def _path(self, skill: CachedSkill) -> str:
        """The skill's file as the file tools name it."""
        file = Path(os.path.abspath(skill.ext.file or ""))
        root = Path(os.path.abspath(self._root))
        return f"/{file.relative_to(root).as_posix()}" if file.is_relative_to(root) else str(file)
