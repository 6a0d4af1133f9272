"""Specs of the fixture server, and a probe with the tests' defaults."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from extgate.core.extension import Extension, Finding, Server
from extgate.discover.mcp_servers import Limits, ServerSpec, probe_servers

FIXTURE = str(Path(__file__).with_name("fixture_server.py"))
LIMITS = Limits(grace_s=0.3)


def fixture(name: str = "demo", spec: dict[str, Any] | None = None, **flags: Any) -> ServerSpec:
    """A spec of the fixture server with these flags; `spec` adds fields."""
    fields = {"env": {}, "cwd": os.path.dirname(FIXTURE), **(spec or {})}
    return ServerSpec(name=name, command=sys.executable, args=(FIXTURE, json.dumps(flags)), **fields)


def run(*specs: ServerSpec, **options: Any) -> tuple[list[Server], list[Extension], list[Finding]]:
    options = {"trusted": lambda spec: True, "limits": LIMITS, **options}
    servers, extensions, findings = probe_servers(specs, **options)
    return list(servers), list(extensions), list(findings)


def run_one(*, spec: dict[str, Any] | None = None, options: dict[str, Any] | None = None, **flags: Any) -> Any:
    """The server, its extensions and the findings of one fixture server."""
    (server,), extensions, findings = run(fixture(spec=spec, **flags), **(options or {}))
    return server, extensions, findings
