"""Law 2: what loads but misleads is said, with the nearest name or the current spelling."""

from __future__ import annotations

import json

import pytest

from tests.build import Inventory, inventory, server, skill, tools
from tests.dialects.adapter import Answer, decide_case
from tests.dialects.requirement import requirement

STOCK = inventory(
    tools("Bash", "read", "write", "paypal"),
    [skill("devops/deploy"), skill("devops/restart"), skill("notes")],
    [server("slack", "send")],
)


def said(profile: object, stock: Inventory = STOCK) -> Answer:
    answer = decide_case(profile, stock)
    assert answer.readable, answer.error
    return answer


def about(answer: Answer, *words: str) -> list[dict[str, object]]:
    """Findings that hold all of these words somewhere."""
    return [f for f in answer.findings if all(word in json.dumps(f, ensure_ascii=False) for word in words)]


@requirement("profile:finding-misleads")
@pytest.mark.parametrize(
    ("why", "profile", "words"),
    [
        ("matches nothing, the nearest name is given", {"tools": {"disabled": ["wriet"]}}, ("wriet", "write")),
        ("matches only when case is folded", {"tools": {"disabled": ["bash"]}}, ("bash", "Bash")),
        ("looks like another name", {"tools": {"disabled": ["p\u0430ypal"]}}, ("p\u0430ypal", "paypal")),
        ("a caret is no negation", {"tools": {"disabled": ["[^a]*"]}}, ("[^a]*",)),
        ("braces are text", {"tools": {"disabled": ["{read,write}"]}}, ("{read,write}",)),
        ("a backslash is text", {"tools": {"disabled": ["a\\*b"]}}, ("\\\\*b",)),
        ("there is no negation in dialect A", {"tools": {"disabled": ["!read"]}}, ("!read",)),
        ("a group's name is not its members", {"skills": {"disabled": ["devops"]}}, ("devops", "devops/*")),
        ("an allow-list leaves a shell in", {"tools": {"allowed": ["read", "Bash"]}}, ("Bash",)),
        ("a string stands where a list belongs", {"tools": {"disabled": "write"}}, ("write",)),
        ("an old form of skills", {"skills": ["notes"]}, ("skills",)),
        ("an old form of tools", {"tools": ["read"]}, ("tools",)),
        ("a bridge that stays in its kind", {"tools": {"disabled": ["*"]}}, ("*",)),
    ],
)
def test_what_loads_but_misleads_is_a_finding_with_its_place_and_code(
    why: str, profile: object, words: tuple[str, ...]
) -> None:
    found = about(said(profile), *words)
    assert found, why
    assert all(f["code"] and f["severity"] in ("error", "warning", "info") for f in found)
    assert any(f["file"] and f["line"] for f in found)


@requirement("profile:finding-silent")
@pytest.mark.parametrize(
    "profile",
    [
        {"tools": {"disabled": ["Bash"]}},
        {"tools": {"disabled": ["write", "Bash"]}},
        {"skills": {"disabled": ["devops/*"]}},
        {"mcp": {"allowed": ["slack"]}},
        {"tools": {"allowed": ["read"]}},
    ],
)
def test_a_plain_profile_that_does_what_it_says_has_no_warning(profile: object) -> None:
    assert [f for f in said(profile).findings if f["severity"] != "info"] == []


@requirement("profile:finding-open-list")
def test_a_deny_list_that_will_admit_the_next_new_tool_is_said() -> None:
    profile = {"dialect": "patterns", "tools": {"patterns": ["*:*:*", "!impl:deepagents:Bash"]}}
    assert about(said(profile), "next new tool")
