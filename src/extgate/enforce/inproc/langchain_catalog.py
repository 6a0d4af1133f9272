"""The catalog's five tools as LangChain tools, bound to one agent's view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool

from extgate.core.extension import Extension
from extgate.core.names import is_runtime_source
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.catalog import RUN_TOOL, Catalog, CatalogError, Offered
from extgate.enforce.inproc.langchain_identity import RUNTIME, Identities, Registry
from extgate.enforce.inproc.langchain_view import View
from extgate.enforce.inproc.skill_cache import SkillCache

_TEXT = {"type": "string"}
_NAME = {"tool_name": {**_TEXT, "description": "The tool's exact name."}}
_PATTERN = {"pattern": {**_TEXT, "default": ".*", "description": "Regular expression for name and description."}}
_ARGS = {
    "tool_args": {"type": "object", "default": {}, "description": "The arguments that the tool's schema asks for."}
}
_SKILL = {
    "name": {**_TEXT, "description": "The skill's name."},
    "category": {"anyOf": [_TEXT, {"type": "null"}], "default": None, "description": "Where two share a name."},
}


class LangChainCatalog:
    """One agent's catalog. `tools` are registered as the runtime's own; `run_tool` is run by the middleware."""

    def __init__(self, gate: Gate, registry: Registry, skills: SkillCache, *, with_tools: bool = True) -> None:
        self._identities = Identities(gate, registry)
        self._view: View | None = None
        self._kept: tuple[object, object, dict[str, Offered]] = (None, None, {})
        self.catalog = Catalog(gate, self._offered, skills)
        made = [
            _tool("fetch_skills", "Lists the available skills.", _PATTERN, self.catalog.fetch_skills),
            _tool("get_skill", "Reads a skill's full instructions.", _SKILL, self.catalog.get_skill,
                  self.catalog.aget_skill, needs="name"),
        ]  # fmt: skip
        if with_tools:
            made += [
                _tool("fetch_tools", "Lists the available tools.", _PATTERN, self.catalog.fetch_tools),
                _tool("get_tool", "Shows a tool's description and parameters.", _NAME, self.catalog.get_tool,
                      needs="tool_name"),
                _tool(RUN_TOOL, "Runs a tool by its name.", _NAME | _ARGS, _never, needs="tool_name"),
            ]  # fmt: skip
        self.tools: tuple[BaseTool, ...] = tuple(registry.add(tool, _own(tool, gate)) for tool in made)

    def bind(self, view: View) -> LangChainCatalog:
        """Shows and runs what this view's requests are made of."""
        self._view = view
        return self

    def is_runner(self, tool: object) -> bool:
        """Whether this is the tool that runs others."""
        return any(tool is mine and mine.name == RUN_TOOL for mine in self.tools)

    def target(self, args: Mapping[str, Any]) -> tuple[Any, dict[str, Any], str]:
        """The tool that a call of `run_tool` means, its arguments, and why there is none."""
        name, given = args.get("tool_name"), args.get("tool_args") or {}
        tool = self._view.offered.get(name) if self._view and isinstance(name, str) else None
        if tool is None or not isinstance(tool, BaseTool):
            return None, {}, f"Tool '{name}' not found"
        if self.is_runner(tool):
            return None, {}, f"'{RUN_TOOL}' does not run itself."
        return tool, given if isinstance(given, dict) else {"tool_args": given}, ""

    def answer(self, reason: str) -> str:
        """A refusal as `run_tool` answers it."""
        return self.catalog.missing(reason)

    def _offered(self) -> dict[str, Offered]:
        if self._view is None:
            return {}
        offered, texts = self._view.offered, self._view.memory().texts
        if self._kept[0] is not offered or self._kept[1] is not texts:
            tools = {name: tool for name, tool in offered.items() if isinstance(tool, BaseTool)}
            self._kept = (offered, texts, {name: self._row(tool, self._view) for name, tool in tools.items()})
        return self._kept[2]

    def _row(self, tool: BaseTool, view: View) -> Offered:
        schema = convert_to_openai_tool(tool)["function"]
        return Offered(
            name=tool.name,
            description=view.describe(tool).description,
            parameters=schema.get("parameters", {}),
            owners=self._identities.of(tool),
        )


def _own(tool: BaseTool, gate: Gate) -> Extension:
    """What the inventory calls the catalog's tool, else the runtime's."""
    installed = [ext for ext in gate.owners(tool.name, ("tool",)) if is_runtime_source(ext) and ext.name == tool.name]
    return installed[0] if installed else Extension(kind="tool", name=tool.name, source=RUNTIME)


def _tool(
    name: str,
    description: str,
    properties: dict[str, Any],
    answer: Callable[..., str],
    awaited: Callable[..., Any] | None = None,
    needs: str = "",
) -> StructuredTool:
    def run(**arguments: Any) -> str:
        try:
            return answer(**arguments)
        except CatalogError as error:
            raise ToolException(str(error)) from None

    async def arun(**arguments: Any) -> str:
        try:
            return str(await awaited(**arguments)) if awaited else answer(**arguments)
        except CatalogError as error:
            raise ToolException(str(error)) from None

    schema = {"type": "object", "title": name, "description": description, "properties": properties}
    return StructuredTool(
        name=name,
        description=description,
        args_schema=schema | {"required": [needs] if needs else []},
        func=run,
        coroutine=arun,
        handle_tool_error=True,
    )


def _never(**arguments: Any) -> str:
    """What `run_tool` itself does: the middleware runs its target instead, behind the gate."""
    raise CatalogError("run_tool runs behind a GateMiddleware only")
