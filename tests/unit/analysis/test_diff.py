"""What a diff says of agents, in facts and in words."""

from __future__ import annotations

import json
import re
from typing import Any

from extgate.analysis.diff import AgentDiff, Side, diff
from extgate.analysis.diff_report import diff_dict, verdict
from extgate.analysis.diff_words import MARK, MOST_ROWS, markdown, plain_lines
from extgate.core.extension import Extension, Inventory, Server
from extgate.core.policy import Profile
from tests.unit.analysis.items import profile

INSTALLED = Inventory(
    extensions=(
        *(Extension(kind="tool", name=name, source="builtin") for name in ("bash", "edit", "read", "write")),
        Extension(kind="skill", name="devops/prod-deploy", category="devops", source="project"),
        Extension(kind="mcp_tool", server="github", name="get_issue"),
    ),
    servers=(Server(name="github"),),
)


def side(document: dict[str, Any], error: str = "") -> Side:
    return Side(profile=profile(document), file="agents/a.json", error=error)


def one(old: dict[str, Any] | None, new: dict[str, Any] | None, inventory: Inventory = INSTALLED) -> AgentDiff:
    before, after = ({"a": side(document)} if document is not None else {} for document in (old, new))
    (found,) = diff(before, after, inventory)
    return found


def test_what_is_installed_is_told_before_what_could_be() -> None:
    found = one({"tools": {"disabled": ["edit*"]}}, {})
    tools = next(kind for kind in found.kinds if kind.kind == "tool")
    assert [(row.after.extension.name, row.is_wider) for row in tools.installed] == [("edit", True)]
    assert tools.names.wider.witness
    assert found.verdict == "wider"


def test_profiles_written_differently_are_equal_in_every_kind() -> None:
    found = one({"tools": {"disabled": ["edit", "write"]}}, {"tools": {"disabled": ["write", "edit", "write"]}})
    assert (found.status, {kind.verdict for kind in found.kinds}) == ("equal", {"equal"})


def test_a_new_requirement_is_a_change_though_every_decision_is_the_same() -> None:
    found = one({}, {"mcp": {"required": ["k8s*"]}})
    assert (found.status, found.verdict) == ("changed", "equal")
    assert found.has_new_requirements
    assert found.has_new_availability
    assert "needs `k8s*` now" in " ".join(plain_lines(found))


def test_a_requirement_that_is_met_changes_no_availability() -> None:
    found = one({}, {"mcp": {"required": ["git*"]}})
    assert (found.has_new_requirements, found.has_new_availability) == (True, False)


def test_an_agent_on_one_side_only_is_new_or_gone() -> None:
    assert [one(None, {}).status, one({}, None).status] == ["added", "removed"]
    assert "it may use 4 tools, 1 skill and 1 MCP tool" in markdown([one(None, {})])
    assert "it could use 4 tools" in markdown([one({}, None)])


def test_a_profile_that_no_longer_reads_is_a_change_that_says_why() -> None:
    (found,) = diff({"a": side({})}, {"a": Side(profile=Profile(id="a"), error="tool: looks like tools")}, INSTALLED)
    assert found.status == "changed"
    assert "cannot be read after, so everything is hidden: `tool: looks like tools`" in markdown([found])


def test_the_report_is_plain_json_with_both_answers_and_their_rules() -> None:
    report = json.loads(json.dumps(diff_dict([one({"tools": {"disabled": ["edit"]}}, {})])))
    assert report["verdict"] == "differs"
    tools = next(kind for kind in report["agents"][0]["kinds"] if kind["kind"] == "tool")
    (row,) = tools["installed"]
    assert (row["id"], row["before"]["effect"], row["after"]["effect"]) == ("tool:edit", "deny", "allow")
    assert row["before"]["rule"] == {"text": "tools.disabled", "pattern": "edit", "file": "agents/a.json", "line": 1}
    assert tools["wider"]["witness"]["name"] == "edit"
    assert tools["narrower"] == {"witness": None, "undecided": None}


def test_the_whole_is_undecided_only_when_nothing_differs() -> None:
    old, new = {"tools": {"disabled": ["[Bb]ash"]}}, {"tools": {"disabled": ["bash", "Bash"]}}
    found = diff({"a": side(old)}, {"a": side(new)}, INSTALLED, budget=1)
    assert verdict(found) == "undecided"
    assert verdict([*found, one({}, {"tools": {"disabled": ["x"]}})]) == "differs"
    assert verdict([]) == "equal"


# ---------------------------------------------------------------------------------------------- words


def test_a_comment_begins_with_its_mark_and_the_sum() -> None:
    text = markdown([one({"tools": {"disabled": ["edit"]}}, {})])
    assert text.startswith(MARK)
    assert "**1 of 1 agent changes**; `a` may use **more** than before." in text
    assert "| tool `edit` | hidden | **allowed** | no longer hidden by `tools.disabled` `edit` in" in text


def test_a_comment_on_no_change_is_one_line() -> None:
    assert markdown([one({}, {})]).splitlines()[-1] == "Nothing changes for 1 agent."


def test_kinds_that_share_an_example_share_a_line() -> None:
    text = markdown([one({}, {"mcp": {"disabled": ["slack*"]}})])
    assert "- MCP tools, MCP resources and MCP prompts such as `x` of a server `slack` would be hidden" in text


def test_a_witness_that_the_table_shows_is_not_told_again() -> None:
    assert "such as `edit`" not in markdown([one({"tools": {"disabled": ["edit"]}}, {})])


def test_no_name_breaks_out_of_its_code_span_or_its_cell() -> None:
    hostile = "x`| <img src=x> @all\n# y"
    inventory = Inventory(extensions=(Extension(kind="tool", name=hostile.replace("\n", " "), source="builtin"),))
    text = markdown([one({"tools": {"disabled": ["x*"]}}, {}, inventory)])
    (row,) = [line for line in text.splitlines() if "img" in line]
    assert row.startswith("| tool ``x`\\| <img src=x> @all # y`` |")
    assert len(re.split(r"(?<!\\)\|", row)) == 6


def test_a_long_table_is_cut_and_the_rest_counted() -> None:
    tools = tuple(Extension(kind="tool", name=f"tool{at}", source="builtin") for at in range(MOST_ROWS + 7))
    text = markdown([one({"tools": {"disabled": ["tool*"]}}, {}, Inventory(extensions=tools))])
    assert "| … and 7 more | | | |" in text
    assert text.count("| tool `tool") == MOST_ROWS


def test_every_rule_that_changes_has_its_own_example() -> None:
    old = {"tools": {"disabled": ["bash", "delete_*", "send_*"]}}
    text = markdown([one(old, {"tools": {"disabled": ["delete_[a-m]*"]}})])
    assert "tools such as `delete_` would be allowed" in text
    assert "tools such as `send_` would be allowed" in text
