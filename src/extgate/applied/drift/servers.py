"""EG092: a server stands in the runtime's own files that was not there when `extgate apply` closed the others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from extgate.applied.drift.look import Look
from extgate.core.extension import Finding
from extgate.core.names import show
from extgate.runtime_places import claude_state

CODES = ("EG092",)


def check(look: Look) -> Iterator[Finding]:
    """Servers that the gateway has too, or of which the agent may use nothing, and that the runtime still starts."""
    then = look.account.facts.get("closed")
    if not isinstance(then, list):
        return
    places = {spec.name: (spec.file, spec.line) for spec in look.ground.view.wanted[1].specs}
    for server in look.ground.closed_servers:
        if server in then:
            continue
        file, _ = places.get(server, ("", None))
        path = Path(os.path.realpath(look.project / file)) if file else claude_state()
        has = server in look.ground.behind and look.ground.view.relays
        why = "which has it too" if has else "and this agent may use nothing of it"
        message = f"the server `{show(server)}` was added beside extgate's gateway, {why}"
        yield look.finding("EG092", message, path, _keys(look.runtime, server))


def _keys(runtime: str, server: str) -> tuple[str, str]:
    return {"opencode": "mcp", "codex": "mcp_servers", "hermes": "mcp_servers"}.get(runtime, "mcpServers"), server
