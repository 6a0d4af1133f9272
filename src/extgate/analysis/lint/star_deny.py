"""EG027: `tools.disabled: ["*"]` does not reach MCP tools, and servers are installed."""

from __future__ import annotations

from collections.abc import Iterator

from extgate.analysis.lint.context import Context
from extgate.core.extension import Finding

CODES = ("EG027",)


def check(context: Context) -> Iterator[Finding]:
    """One finding for each star-only entry while some MCP tool is let through."""
    if context.policy.dialect != "profile" or not any(d.extension.kind == "mcp_tool" for d in context.visible):
        return
    for spot in context.spots:
        if spot.list == "tools.disabled" and spot.entry.text and not spot.entry.text.strip("*?"):
            message = f"{spot.list}: `{spot.entry.text}` stays among native tools; MCP tools are still let through"
            yield context.warn("EG027", message, at=spot.entry, fix='write `mcp: {disabled: ["*"]}` as well')
