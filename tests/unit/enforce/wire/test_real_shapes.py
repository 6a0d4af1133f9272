"""Requests in the shapes that real clients send: what is denied is gone, all else is the same bytes.

`shapes/` holds one request each of Codex 0.171.0, opencode 1.18.33, Gemini CLI 0.61.0 and hermes-agent 0.19.0, made on
loopback against a scripted model on 2026-11-30: their keys, names and listings, with their texts and schemas left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from extgate.core.extension import Server
from extgate.discover.builtins import builtin_tools
from extgate.enforce.wire import gemini, openai
from extgate.enforce.wire.clients import CLIENTS
from extgate.enforce.wire.provider import Api, Options
from tests.unit.enforce.wire.world import Json, inventory, turn

SHAPES = Path(__file__).with_name("shapes")
APIS = {"codex": openai.RESPONSES, "opencode": openai.CHAT, "gemini": gemini.CONTENT, "hermes": openai.CHAT}
STOCK = inventory(servers=[Server(name="alpha"), Server(name="beta")])
DENIED = (
    "tools: {disabled: [exec_command, web_search, bash, run_shell_command, terminal]}\n"
    "mcp: {disabled: [alpha, beta/danger_zone]}\nskills: {disabled: [secret-skill]}\nsubagents: {disabled: [spy]}"
)


def shape(name: str) -> Json:
    made: Json = json.loads((SHAPES / f"{name}.json").read_text("utf-8"))
    return made


def sent(name: str, body: Json, text: str) -> bytes:
    runtime = {"gemini": "gemini-cli"}.get(name, name)
    client = replace(CLIENTS[runtime], builtins={tool.name: tool for tool in builtin_tools(runtime)})
    api: Api = APIS[name]
    return api.request(json.dumps(body, ensure_ascii=False).encode(), turn(text, STOCK, client), Options())


@pytest.mark.parametrize("name", APIS)
def test_a_profile_that_allows_everything_changes_no_byte(name: str) -> None:
    assert sent(name, shape(name), "") == json.dumps(shape(name), ensure_ascii=False).encode()


def is_denied(tool: Json) -> bool:
    name = str((tool.get("function") or tool).get("name") or tool.get("type"))
    shells = ("exec_command", "web_search", "bash", "run_shell_command", "terminal")
    return name in shells or "alpha" in name or ("beta" in name and "danger_zone" in name)


def without_tools(body: Json) -> Json:
    """The same request as it should go on, as far as tools go."""
    for tool in body["tools"]:
        key = "functionDeclarations" if "functionDeclarations" in tool else "tools"
        if key in tool:
            beta = tool.get("name") == "mcp__beta"
            tool[key] = [t for t in tool[key] if not is_denied(t) and not (beta and t["name"] == "danger_zone")]
    body["tools"] = [tool for tool in body["tools"] if not is_denied(tool)]
    return body


def in_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {key: in_texts(one, change) for key, one in value.items()}
    if isinstance(value, list):
        return [in_texts(one, change) for one in value if one != "secret-skill"]
    return change(value) if isinstance(value, str) else value


GONE = {
    "codex": ["- secret-skill: SECRET-SKILL-LISTED for tests. (file: r0/secret-skill/SKILL.md)\n"],
    "hermes": ["  secret-skill:\n    - secret-skill: SECRET-SKILL-LISTED for tests.\n"],
    "gemini": [
        "  <skill>\n    <name>secret-skill</name>\n    <description>SECRET-SKILL-LISTED for tests.</description>\n"
        "    <location>/tmp/project/.gemini/skills/secret-skill/SKILL.md</location>\n  </skill>\n",
        "- spy -> Spies.\n", "'secret-skill', ",
        "The following are instructions provided by the tool server 'alpha':\n---[start of server instructions]---\n"
        "INSTRUCTIONS-OF-alpha: use read_thing first.\n---[end of server instructions]---\n\n\n",
    ],
    "opencode": [
        "  <skill>\n    <name>secret-skill</name>\n    <description>SECRET-SKILL-LISTED for tests.</description>\n"
        "    <location>/tmp/home/.config/opencode/skill/secret-skill/SKILL.md</location>\n  </skill>\n",
        '  <server name="alpha">\n    INSTRUCTIONS-OF-alpha: use read_thing first.\n  </server>\n',
    ],
}  # fmt: skip
"""The pieces of their texts that go."""


@pytest.mark.parametrize("name", APIS)
def test_what_is_denied_is_gone_and_all_else_is_the_same(name: str) -> None:
    def change(text: str) -> str:
        for piece in GONE[name]:
            text = text.replace(piece, "")
        return text

    made = sent(name, shape(name), DENIED)
    wanted = in_texts(without_tools(shape(name)), change)
    assert json.loads(made) == wanted
    assert made == json.dumps(wanted, ensure_ascii=False).encode()
    assert made == sent(name, shape(name), DENIED)  # the same set gives the same bytes, so a cache holds
    assert not {word for word in ("SECRET", "alpha", "spy") if word in made.decode()}
