"""Listings in texts lose exactly the hidden entries, in the forms in which agent programs write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from extgate.core.extension import Server
from extgate.enforce.wire.anthropic import MESSAGES
from extgate.enforce.wire.provider import Options
from extgate.enforce.wire.spans import UnclearError
from tests.unit.enforce.wire.world import body, inventory, said, tool, turn

TOOLS = """Our house rules.

The following deferred tools are now available via ToolSearch. Load them first:
CronCreate
WebFetch
mcp__alpha__read
mcp__alpha__wipe
mcp__beta__read

More of our rules."""
AGENTS = """Available agent types for the Agent tool:
- helper: Helps. (Tools: *)
- spy: Spies on things.
Second line of it.

- with a paragraph
 (Tools: All tools)
- worker: Works: hard (Tools: Read, Bash)

When you launch multiple agents, do it at once."""
SERVERS = """# MCP Server Instructions

What servers say of themselves:

## alpha
Use read first.

## beta
Never tell.
### really
"""
SKILLS = """The following skills are available for use with the Skill tool:

- fine: Does fine things
- secret: Does secret things. Two
lines of them.
- plug:tidy: Tidies: up
"""
RULES = """
tools: {disabled: [WebFetch]}
mcp: {disabled: [beta, 'alpha/wipe']}
subagents: {disabled: [spy, worker]}
skills: {disabled: [secret]}"""


def without(text: str, *parts: str) -> str:
    for part in parts:
        assert text.count(part) == 1, part
        text = text.replace(part, "")
    return text


WANTED = [
    (TOOLS, without(TOOLS, "WebFetch\n", "mcp__alpha__wipe\n", "\nmcp__beta__read")),
    (AGENTS, without(AGENTS, AGENTS[AGENTS.index("- spy") : AGENTS.index("- worker")],
                     "\n- worker: Works: hard (Tools: Read, Bash)")),
    (SERVERS, without(SERVERS, SERVERS[SERVERS.index("## beta") :])),
    (SKILLS, without(SKILLS, "- secret: Does secret things. Two\nlines of them.\n")),
]  # fmt: skip


def reminder(text: str) -> str:
    return f"<system-reminder>\n{text}\n</system-reminder>"


def sent(messages: list[Any], rules: str = RULES, **more: Any) -> Any:
    data = body(tools=[tool("Read")], messages=messages)
    return json.loads(MESSAGES.request(data, turn(rules, **more), Options()))["messages"]


@pytest.mark.parametrize(("text", "wanted"), WANTED, ids=["tools", "agents", "servers", "skills"])
def test_a_listing_loses_the_hidden_entries_wherever_it_stands(text: str, wanted: str) -> None:
    made = sent([{"role": "system", "content": [said(text)]}, {"role": "user", "content": text}])
    assert [made[0]["content"][0]["text"], made[1]["content"]] == [wanted, wanted]
    result = {"type": "tool_result", "tool_use_id": "1", "content": [said(text)]}
    made = sent([{"role": "user", "content": [result, {**result, "content": text}]}])
    assert made[0]["content"][0]["content"] == [said(wanted)]
    assert made[0]["content"][1]["content"] == wanted


@pytest.mark.parametrize(("text", "wanted"), WANTED, ids=["tools", "agents", "servers", "skills"])
def test_a_listing_in_a_reminder_ends_with_it(text: str, wanted: str) -> None:
    (made,) = sent([{"role": "user", "content": [said(reminder(text) + reminder("- spy: mentioned"))]}])
    assert made["content"][0]["text"].endswith("</system-reminder>" + reminder("- spy: mentioned"))
    shown = made["content"][0]["text"]
    assert not [gone for gone in ("wipe", "Never tell", "Second line", "lines of them") if gone in shown]


def test_listings_behind_each_other_are_each_their_own() -> None:
    whole = "\n\n".join(text for text, _ in (WANTED[0], WANTED[1], WANTED[2], WANTED[3]))
    (made,) = sent([{"role": "system", "content": whole}])
    assert made["content"].count("The following skills are available") == 1
    for gone in ("WebFetch", "wipe", "mcp__beta", "spy", "worker", "Never tell", "secret"):
        assert gone not in made["content"], gone
    for kept in ("CronCreate", "mcp__alpha__read", "helper", "When you launch", "Use read first", "fine", "plug:tidy"):
        assert kept in made["content"], kept


def test_a_listing_of_which_nothing_is_left_goes_with_its_heading() -> None:
    (made,) = sent([{"role": "user", "content": "a\n\n" + SERVERS}], "mcp: {disabled: ['*']}")
    assert made["content"] == "a\n\n"


@pytest.mark.parametrize("is_ascii", [True, False])
def test_all_else_in_such_a_text_keeps_its_spelling(is_ascii: bool) -> None:
    text = f'é "\\ \u2028 \U0001f600 \x7f\n{SKILLS}\u00e9/'
    data = json.dumps({"messages": [{"role": "user", "content": text}]}, ensure_ascii=is_ascii).encode()
    gone = json.dumps("- secret: Does secret things. Two\nlines of them.\n").encode()[1:-1]
    assert MESSAGES.request(data, turn(RULES), Options()) == data.replace(gone, b"")


def test_announced_tools_may_be_called_and_the_hidden_among_them_may_not() -> None:
    asked = turn(RULES)
    MESSAGES.request(body(messages=[{"role": "system", "content": TOOLS}]), asked, Options())
    assert asked.begin("mcp__alpha__read") == asked.begin("CronCreate") == ""
    assert "disabled for this agent" in str(asked.begin("mcp__alpha__wipe"))
    assert "disabled for this agent" in str(asked.begin("WebFetch"))
    assert asked.begin("Our") == "'Our' was not offered to this agent."


def test_an_allow_list_of_skills_holds_for_listings() -> None:
    (made,) = sent([{"role": "user", "content": SKILLS}], "skills: {allowed: [fine]}")
    assert "fine" in made["content"]
    assert "secret" not in made["content"]
    assert "tidy" not in made["content"]


def test_a_servers_instructions_stay_when_something_of_it_may_be_seen() -> None:
    stock = inventory(servers=[Server(name="al pha")])
    text = "# MCP Server Instructions\n\n## al_pha\nHello.\n"
    (made,) = sent([{"role": "user", "content": text}], "mcp: {disabled: ['al pha']}", stock=stock)
    assert made["content"] == ""
    (made,) = sent([{"role": "user", "content": text}], "mcp: {disabled: ['al pha/x']}", stock=stock)
    assert made["content"] == text


DESCRIPTION = """Starts an agent.

Available agents:
- helper: Helps.
- **spy**: Spies, and
  more of it.
- worker: Works.

Arguments:
- agent_type: which one."""
TAGGED = """Loads one.
<available_skills>
  <skill>
    <name>secret</name>
  </skill>
  <skill><name>fine</name></skill>
</available_skills>"""


def test_a_tool_that_starts_agents_or_skills_does_not_list_the_hidden_ones() -> None:
    schema = {"type": "object", "properties": {"agent_type": {}}}
    tools = [tool("task", description=DESCRIPTION, input_schema=schema), tool("skill", description=TAGGED)]
    made = json.loads(MESSAGES.request(body(tools=tools), turn(RULES), Options()))["tools"]
    assert made[0]["description"] == without(DESCRIPTION, "- **spy**: Spies, and\n  more of it.\n- worker: Works.\n")
    assert "secret" not in made[1]["description"]
    assert "<skill><name>fine</name></skill>\n</available_skills>" in made[1]["description"]
    assert json.loads(MESSAGES.request(body(tools=tools), turn(""), Options()))["tools"] == tools


N = 20_000


@pytest.mark.parametrize(
    "text",
    [
        "<available_skills>" + "<skill><name>a</name>" * N, "<available_skills>" + "<skill>" * N,
        "<available_agents>" + "<agent><name>a" * N, "<mcp_instructions>" + '<server name="a">' * N,
        "<available_skills>" + " " * N * 10, "<mcp_instructions>" + " " * N * 10,
        "<available_skills>\n    - " + "a: " * N, "<available_skills>\n  " + "a:" * N + "\n    x",
        "The following are instructions provided by the tool server 'x':\n---[start of server instructions]---\n" * N,
    ],
)  # fmt: skip
def test_a_text_of_half_listings_costs_no_more_than_its_length(text: str) -> None:
    """In squares or cubes of the length this would not come back."""
    (made,) = sent([{"role": "user", "content": text}], RULES)
    assert made["content"] == text


@pytest.mark.parametrize("text", ["<skill><name>a</name>" * N, " " * N * 10 + "<skill>", "(Available: 'a'" * N])
def test_a_description_of_half_listings_costs_no_more_than_its_length(text: str) -> None:
    (made,) = json.loads(MESSAGES.request(body(tools=[tool("skill", description=text)]), turn(RULES), Options()))[
        "tools"
    ]
    assert made["description"] == text


def test_what_stands_inside_another_piece_is_that_pieces() -> None:
    text = "<available_skills><skill><skill><name>secret</name></skill></skill><skill><name>a</name></skill>"
    (made,) = sent([{"role": "user", "content": text}], RULES)
    assert made["content"] == "<available_skills></skill><skill><name>a</name></skill>"


def test_a_request_that_lists_more_than_anybody_has_is_refused() -> None:
    heading = "The following deferred tools are now available via ToolSearch. Load them first:\n"
    known = [{"role": "user", "content": heading + "WebFetch\n" * 100_001}]
    strangers = [{"role": "user", "content": heading + "".join(f"t_{n}\n" for n in range(5_001))}]
    for messages in (known, strangers, strangers):
        with pytest.raises(UnclearError, match="more than"):
            sent(messages, RULES)
