"""Every door with its driver, one row each. A new door is its driver's file and a row here."""

from __future__ import annotations

import importlib
import os

from tests.doors.driver import Driver

DRIVERS = {
    "langchain": "driver_langchain:agents",
    "langchain-catalog": "driver_langchain:skills",
    "openai-agents": "driver_openai_agents:driver",
    "pydantic-ai": "driver_pydantic_ai:driver",
    "fastmcp": "driver_fastmcp:driver",
    "openai-chat": "driver_loops:chat",
    "openai-responses": "driver_loops:responses",
    "anthropic-messages": "driver_loops:messages",
    "mcp-http": "driver_mcp_gateway:http",
    "mcp-stdio": "driver_mcp_gateway:stdio",
    "hook:claude-code": "driver_hooks:claude_code",
    "hook:codex": "driver_hooks:codex",
    "hook:gemini": "driver_hooks:gemini",
    "hook:hermes": "driver_hooks:hermes",
    "hook:opencode": "driver_hooks:opencode",
    "wire-anthropic": "driver_wire:anthropic",
}
"""Where each door's driver is made. All of them share one environment, the one that `make venv` makes."""

CALLS_ONLY = frozenset(name for name in DRIVERS if name.startswith("hook:"))
"""Doors that are asked about calls and show nothing: their hosts' lists are written by `extgate apply`."""

ELSEWHERE = {"claude-agent-sdk": "driver_claude_agent:driver"}
"""The same for doors whose host needs an environment of its own; `tests/e2e` names them in EXTGATE_DOORS."""


def chosen() -> dict[str, str]:
    """The doors of EXTGATE_DOORS (names with commas), else those of this environment."""
    wanted = os.environ.get("EXTGATE_DOORS")
    return {name: (DRIVERS | ELSEWHERE)[name] for name in wanted.split(",")} if wanted else DRIVERS


def load(where: str) -> Driver:
    module, _, name = where.partition(":")
    made: Driver = getattr(importlib.import_module(f"tests.doors.{module}"), name)()
    return made
