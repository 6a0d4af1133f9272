"""The names that known runtimes give an MCP item before a model sees them: spellings that only ever deny.

Every row says who does it and where that was seen. Nothing here is read backwards.
"""

from __future__ import annotations

WIRE_LIMIT = 64  # OpenAI's limit on a tool name; Anthropic's was the same


def keep(text: str, allowed: str) -> str:
    """The text with every character that is no ASCII letter, digit or one of `allowed` turned into `_`."""
    return "".join(c if (c.isascii() and c.isalnum()) or c in allowed else "_" for c in text)


def keep_unicode(text: str) -> str:
    """The same, but letters and digits of every script stay (OpenProgram `mcp/adapter.py`, run)."""
    return "".join(c if c.isalnum() or c in "_-" else "_" for c in text)


def claude_code(server: str, item: str) -> list[str]:
    """`mcp__server__item`, kept `A-Za-z0-9_-`. Claude Code 2.1.332 on the wire: `my srv.v1` -> `my_srv_v1`."""
    return [f"mcp__{keep(server, '_-')}__{keep(item, '_-')}"]


def opencode(server: str, item: str) -> list[str]:
    """`server_item`, kept `A-Za-z0-9_-`. opencode 1.18.33, captured request."""
    return [f"{keep(server, '_-')}_{keep(item, '_-')}"]


def gemini(server: str, item: str) -> list[str]:
    """`mcp_server_item`, kept `A-Za-z0-9_.:-`, `mcp_` not doubled, the middle of more than 63 characters is `...`.

    @google/gemini-cli-core 0.61.0, tools/mcp-tool.js.
    """
    raw = f"{server}_{item}"
    whole = keep(raw if raw.startswith("mcp_") else f"mcp_{raw}", "_.:-")
    return [whole] if len(whole) <= 63 else [whole[:30] + "..." + whole[-30:]]


def hermes(server: str, item: str) -> list[str]:
    """`mcp__server__item`, kept `A-Za-z0-9_`: the hyphen goes too. hermes-agent 0.19.0, tools/mcp_tool.py."""
    return [f"mcp__{keep(server, '_')}__{keep(item, '_')}"]


def codex(server: str, item: str) -> list[str]:
    """Namespace `mcp__server` and the raw tool name; flat it is `mcp__server__item`. Codex 0.171.0, black box."""
    return [f"mcp__{server}__{item}"]


def openprogram(server: str, item: str) -> list[str]:
    """`server__item`, Unicode letters kept; over 64 the tool's end stays, or all is cut when fewer than 8 would.

    OpenProgram `mcp/adapter.py` `namespace_tool_name` (run).
    """
    first, second = keep_unicode(server), keep_unicode(item)
    whole = f"{first}__{second}"
    room = WIRE_LIMIT - len(first) - 2
    if len(whole) <= WIRE_LIMIT:
        return [whole]
    return [f"{first}__{second[-room:]}" if room >= 8 else whole[:WIRE_LIMIT]]


def prefixed(server: str, item: str) -> list[str]:
    """`server_item` as it stands: msAgent (langchain-mcp-adapters, `tool_name_prefix`) and deepagents-code."""
    return [f"{server}_{item}"]


def wire_names(server: str, item: str) -> list[str]:
    """Every wire name of one item, and each cut at 64 characters."""
    names: list[str] = []
    for runtime in (claude_code, opencode, gemini, hermes, codex, openprogram, prefixed):
        names += runtime(server, item)
    names += [name[:WIRE_LIMIT] for name in names]
    return list(dict.fromkeys(names))


def clean_servers(server: str) -> list[str]:
    """What a known runtime makes of the server's name alone."""
    return list(dict.fromkeys([keep(server, "_-"), keep(server, "_"), keep(server, "_.:-"), keep_unicode(server)]))
