"""Comparing profiles over all things, held against asking `decide` about many of them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from extgate.analysis.policies import compare
from extgate.core.policy import ALLOW_ALL, Policy, Profile, inherit
from tests.unit.analysis import items
from tests.unit.analysis.items import differences, profile

KINDS = ("tool", "skill", "mcp_tool", "mcp_resource", "subagent")


def verdicts(old: Profile, new: Profile) -> dict[str, str]:
    return {found.kind: found.verdict for found in compare(old, new)}


def witness(old: dict[str, Any], new: dict[str, Any], kind: str, direction: str) -> str:
    (found,) = compare(profile(old), profile(new), kinds=[kind])
    outcome = found.wider if direction == "wider" else found.narrower
    return outcome.witness.extension.id if outcome.witness else "none"


def test_random_profiles_are_equal_only_where_no_thing_tried_differs() -> None:
    rng = random.Random(41)
    tried = items.things()[::5]
    counts = {"equal": 0, "undecided": 0, "differs": 0}
    for _ in range(120):
        first = items.document(rng)
        second = items.rewritten(rng, first) if rng.random() < 0.7 else items.document(rng)
        old, new = profile(first), profile(second)
        seen = differences(old, new, tried)
        for found in compare(old, new, kinds=KINDS):
            counts[found.verdict if found.verdict in counts else "differs"] += 1
            for direction, outcome in (("wider", found.wider), ("narrower", found.narrower)):
                if not outcome.witness and not outcome.undecided:
                    assert (found.kind, direction) not in seen, (first, second)
    assert counts["equal"] > 200
    assert counts["differs"] > 100
    assert counts["undecided"] < 10


def test_random_layers_are_equal_only_where_no_call_tried_differs() -> None:
    rng = random.Random(42)
    tried = [thing for thing in items.things() if thing[0].kind in ("tool", "mcp_tool")][::11]
    equal = 0
    for _ in range(100):
        old = items.layered(rng)
        new = items.relayered(rng, old) if rng.random() < 0.6 else items.layered(rng)
        seen = differences(old, new, tried, calls=True)
        for found in compare(old, new, kinds=("tool", "mcp_tool")):
            equal += found.verdict == "equal"
            for direction, outcome in (("wider", found.wider), ("narrower", found.narrower)):
                if not outcome.witness and not outcome.undecided:
                    assert (found.kind, direction) not in seen
    assert equal > 60


def test_every_witness_is_answered_by_decide_as_it_is_told() -> None:
    rng = random.Random(43)
    found = 0
    for _ in range(100):
        old, new = profile(items.document(rng)), profile(items.document(rng))
        for row in compare(old, new, kinds=KINDS):
            for outcome in (row.wider, row.narrower):
                if outcome.witness:
                    found += 1
                    seen = differences(old, new, [(outcome.witness.extension, _naming(outcome.witness))])
                    assert list(seen) == [(row.kind, "wider" if outcome is row.wider else "narrower")]
    assert found > 100


def _naming(found: Any) -> Any:
    from extgate.core.names import Naming

    return Naming((found.extension, *found.beside))


SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"tools": {"disabled": ["write", "edit"]}}, {"tools": {"disabled": ["edit", "write", "edit"]}}),
    ({"tools": {"disabled": ["[Bb]ash"]}}, {"tools": {"disabled": ["bash", "Bash"]}}),
    ({"mcp": {"disabled": ["slack*"]}}, {"mcp": {"disabled": ["slack*", "slack/*", "slack_*"]}}),
    ({"mcp": {"allowed": ["github/get_*"]}}, {"mcp": {"allowed": ["github/get_*", "github/get_issue"]}}),
    ({"skills": {"disabled": ["devops/*"]}}, {"skills": {"disabled": ["devops/*", "devops/prod-deploy"]}}),
    ({"mcp": {"disabled": ["*"]}}, {"mcp": {"disabled": ["*", "github*"]}}),
    ({"tools": {"allowed": ["read"], "disabled": ["write"]}}, {"tools": {"allowed": ["read"]}}),
    ({"skills": ["pdf"]}, {"skills": {"disabled": ["pdf"]}}),
]


@pytest.mark.parametrize(("old", "new"), SAME[:-2])
def test_profiles_written_differently_are_equal(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert set(verdicts(profile(old), profile(new)).values()) == {"equal"}


def test_an_old_form_is_equal_to_what_it_means() -> None:
    assert set(verdicts(profile(SAME[-1][0]), profile(SAME[-1][1])).values()) == {"equal"}


def test_a_deny_outside_an_allow_list_tells_itself_only_by_another_source() -> None:
    old, new = SAME[-2]
    assert verdicts(profile(old), profile(new))["tool"] == "equal"


@pytest.mark.parametrize(
    ("old", "new", "kind", "direction", "expected"),
    [
        ({"tools": {"disabled": ["write", "edit"]}}, {"tools": {"disabled": ["write"]}}, "tool", "wider", "tool:edit"),
        ({}, {"skills": {"disabled": ["prod*"]}}, "skill", "narrower", "skill:prod"),
        (
            {"mcp": {"allowed": ["github/get_*"]}},
            {"mcp": {"allowed": ["github/*"]}},
            "mcp_tool",
            "wider",
            "mcp_tool:github/x",
        ),
        ({}, {"mcp": {"disabled": ["slack*"]}}, "mcp_prompt", "narrower", "mcp_prompt:slack/x"),
        ({}, {"subagents": {"allowed": ["explorer"]}}, "subagent", "narrower", "subagent:x"),
        ({}, {}, "tool", "wider", "none"),
    ],
)
def test_one_change_has_a_readable_witness(
    old: dict[str, Any], new: dict[str, Any], kind: str, direction: str, expected: str
) -> None:
    assert witness(old, new, kind, direction) == expected


def test_a_server_denied_by_name_is_not_the_same_as_its_items_denied() -> None:
    found = verdicts(profile({"mcp": {"disabled": ["slack"]}}), profile({"mcp": {"disabled": ["slack/*"]}}))
    assert found["mcp_tool"] != "undecided"


def test_categories_count_as_a_skill_is_made() -> None:
    old, new = {"skills": {"categories": ["research"]}}, {"skills": {"categories": ["research", "devops"]}}
    (found,) = compare(profile(old), profile(new), kinds=["skill"])
    assert found.verdict == "wider"
    assert found.wider.witness
    assert found.wider.witness.extension.category == "devops"


def test_the_dialects_meet_in_the_model() -> None:
    a = {"tools": {"allowed": ["read", "grep"]}}
    b = {"dialect": "patterns", "tools": {"patterns": ["impl:deepagents:read", "impl:deepagents:grep"]}}
    assert verdicts(profile(a), profile(b))["tool"] in ("narrower", "both")


def test_a_ceiling_never_widens() -> None:
    rng = random.Random(44)
    for _ in range(40):
        parent, child = profile(items.document(rng)), profile(items.document(rng))
        for found in compare(parent, inherit(parent, child), kinds=KINDS):
            assert found.wider.witness is None


def test_a_layer_without_an_opinion_changes_nothing() -> None:
    base = profile({"tools": {"disabled": ["bash"]}})
    more = Profile(id="a", layers=(*base.layers, Policy(dialect="x", default=None)))
    assert set(verdicts(base, more).values()) == {"equal"}


def test_everything_against_nothing_is_wider_in_every_kind() -> None:
    found = verdicts(Profile(id="none"), Profile(id="all", layers=(ALLOW_ALL,)))
    assert set(found.values()) == {"wider"}


def test_without_budget_the_answer_is_undecided_and_never_equal() -> None:
    old, new = profile({"tools": {"disabled": ["[Bb]ash"]}}), profile({"tools": {"disabled": ["bash", "Bash"]}})
    (found,) = compare(old, new, kinds=["tool"], budget=1)
    assert found.verdict == "undecided"
    assert "1 units" in found.wider.undecided or "1 units" in found.narrower.undecided


def test_a_name_that_runtimes_cut_is_never_taken_for_equal() -> None:
    long = "a" * 70
    old, new = {"mcp": {"disabled": ["*aaa"]}}, {"mcp": {"disabled": ["*aaa", f"*{long[:30]}b"]}}
    found = verdicts(profile(old), profile(new))
    assert found["mcp_tool"] in ("narrower", "undecided")
