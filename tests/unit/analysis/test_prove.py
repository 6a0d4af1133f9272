"""Statements of every form, and every road to a thing that must never be reached."""

from __future__ import annotations

from typing import Any

import pytest

from extgate.analysis.prove import Proof, Prover, Subject
from extgate.analysis.roads import TABLE, reach_of
from extgate.analysis.statements import read_statements, read_thing
from extgate.core.extension import Extension, Inventory, Server
from extgate.core.policy import Inherit, Profile
from extgate.discover.builtins import builtin_tools, runtimes
from extgate.errors import DialectError
from tests.unit.analysis.items import profile

SKILL = Extension(
    kind="skill", name="devops/prod-deploy", category="devops", source="project", file="skills/prod-deploy/SKILL.md"
)


def tool(name: str, group: str = "other") -> Extension:
    return Extension(kind="tool", name=name, source="builtin", facts={"group": group})


INSTALLED = Inventory(
    extensions=(
        *(tool("bash", "shell"), tool("read", "file"), tool("note"), SKILL),
        *(Extension(kind="mcp_tool", server="files", name=name) for name in ("read_file", "list_things")),
    )
)
SAFE = {"skills": {"categories": ["writing"]}, "tools": {"disabled": ["bash"]}, "mcp": {"disabled": ["*"]}}


def subject(document: dict[str, Any], *children: str, mode: Inherit = "ceiling") -> Subject:
    return Subject(profile=profile(document), children=children, mode=mode)


def prove(row: dict[str, Any], **subjects: Subject) -> list[Proof]:
    (statement,) = read_statements([row])
    return list(Prover(subjects, INSTALLED).prove(statement))


def verdict(row: dict[str, Any], **subjects: Subject) -> str:
    (proof,) = prove(row, **subjects)
    return proof.verdict


NOTHING = {"skills": {"disabled": ["*"]}, "tools": {"disabled": ["*"]}, "mcp": {"disabled": ["*"]}}
NEVER = {"never": "skill:prod-deploy"}


def test_a_skill_out_of_reach_over_every_road_is_proved() -> None:
    (proof,) = prove(NEVER, a=subject(SAFE))
    assert proof.verdict == "proved"
    assert [road.via for road in proof.roads] == [("tool read",)]
    assert {road.state for road in proof.roads} == {"closed"}


def test_a_shell_is_a_residual_road_that_is_named_with_the_file() -> None:
    (proof,) = prove(NEVER, a=subject(SAFE | {"tools": {}}))
    (road,) = [road for road in proof.roads if road.state == "residual"]
    assert (proof.verdict, road.via) == ("refuted", ("tool bash",))
    assert "skills/prod-deploy/SKILL.md" in road.detail


def test_through_the_gate_alone_a_shell_does_not_count() -> None:
    assert verdict(NEVER | {"roads": "gate"}, a=subject(SAFE | {"tools": {}})) == "proved"


def test_a_server_that_reads_files_is_a_residual_road_to_a_skill() -> None:
    (proof,) = prove(NEVER, a=subject(SAFE | {"mcp": {}}))
    assert [road.via for road in proof.roads if road.state == "residual"] == [("mcp_tool files/read_file",)]


def test_a_thing_that_is_let_through_refutes_by_itself() -> None:
    (proof,) = prove(NEVER, a=subject({}))
    assert [d.extension for d in proof.installed] == [SKILL]


def test_a_plain_name_that_is_installed_means_that_thing_and_the_other_is_noted() -> None:
    (proof,) = prove(NEVER, a=subject(SAFE))
    assert proof.notes == ("another skill prod-deploy of category writing would be let through",)
    assert verdict(NEVER | {"over": "names"}, a=subject(SAFE)) == "refuted"


def test_a_pattern_means_everything_that_could_bear_such_a_name() -> None:
    (proof,) = prove({"never": "tool:delete_*"}, a=subject({"tools": {"disabled": ["delete_[a-m]*", "bash"]}}))
    assert proof.verdict == "refuted"
    assert proof.witness
    assert proof.witness.extension.name == "delete_"
    safe = {"tools": {"disabled": ["delete_*", "bash"]}}
    assert verdict({"never": "tool:delete_*"}, a=subject(safe)) == "proved"
    assert (
        verdict({"never": "tool:delete_*", "over": "installed"}, a=subject({"tools": {"disabled": ["bash"]}}))
        == "proved"
    )


def test_a_server_is_never_reached_when_its_name_is_denied() -> None:
    safe = {"mcp": {"disabled": ["slack*"]}, "tools": {"disabled": ["bash"]}}
    assert verdict({"never": "mcp:slack*"}, a=subject(safe)) == "proved"
    assert verdict({"never": "mcp:slack*"}, a=subject({"tools": {"disabled": ["bash"]}})) == "refuted"


def test_a_child_under_a_ceiling_is_no_road() -> None:
    (proof,) = prove(NEVER | {"for": ["a"]}, a=subject(SAFE, "b"), b=subject({}))
    assert proof.verdict == "proved"
    assert ("closed", ("sub-agent b",)) in [(road.state, road.via) for road in proof.roads]


@pytest.mark.parametrize("mode", ["own", "union"])
def test_a_child_with_rights_of_its_own_is_an_open_road(mode: Inherit) -> None:
    (proof,) = prove(NEVER | {"for": ["a"]}, a=subject(SAFE, "b", mode=mode), b=subject({}))
    (road,) = [road for road in proof.roads if road.state == "open"]
    assert (proof.verdict, road.via) == ("refuted", ("sub-agent b",))


def test_a_road_through_two_children_names_both() -> None:
    middle, last = subject(SAFE, "c", mode="own"), subject({})
    (proof,) = prove(NEVER | {"for": ["a"]}, a=subject(SAFE, "b", mode="own"), b=middle, c=last)
    assert ("sub-agent b", "sub-agent c") in [road.via for road in proof.roads if road.state == "open"]


def test_children_of_children_stay_under_the_first_ceiling() -> None:
    middle, last = subject({}, "c", mode="own"), subject({})
    (proof,) = prove(NEVER | {"for": ["a"]}, a=subject(SAFE, "b"), b=middle, c=last)
    assert proof.verdict == "proved"


def test_a_child_that_may_not_be_asked_for_is_no_road() -> None:
    document = SAFE | {"subagents": {"disabled": ["b"]}}
    assert verdict(NEVER | {"for": ["a"]}, a=subject(document, "b", mode="own"), b=subject({})) == "proved"


def test_a_shell_of_a_child_is_a_road() -> None:
    child = subject({"skills": {"disabled": ["*"]}, "mcp": {"disabled": ["*"]}})
    (proof,) = prove(NEVER | {"for": ["a"]}, a=subject(SAFE, "b", mode="own"), b=child)
    assert ("sub-agent b", "tool bash") in [road.via for road in proof.roads if road.state == "residual"]


def test_a_child_that_one_road_limits_is_still_open_over_another() -> None:
    limited, free = subject(SAFE, "c"), subject(SAFE, "c", mode="own")
    for order in (("b", "d"), ("d", "b")):
        (proof,) = prove(NEVER | {"for": ["a"]}, a=subject(SAFE, *order, mode="own"), b=limited, c=subject({}), d=free)
        assert ("sub-agent d", "sub-agent c") in [road.via for road in proof.roads if road.state == "open"], order


def test_a_union_far_down_brings_along_what_those_above_may_do() -> None:
    top = subject(NOTHING, "b", mode="own")
    middle = subject({"tools": {"disabled": ["bash"]}, "skills": {"disabled": ["*"]}}, "c", mode="union")
    statement = {"never": "mcp:files/list_things", "for": ["a"]}
    (proof,) = prove(statement, a=top, b=middle, c=subject(NOTHING))
    assert [road.via for road in proof.roads if road.state == "open"][-1] == ("sub-agent b", "sub-agent c")


def test_many_sub_agents_that_ask_for_each_other_are_told_in_the_end() -> None:
    names = [f"n{at}" for at in range(6)]
    subjects = {name: subject(SAFE, *names, mode="union") for name in names}
    assert verdict(NEVER | {"for": ["n0"]}, **subjects) == "proved"


def test_an_agent_whose_profile_cannot_be_read_is_undecided_because_an_earlier_one_may_be_in_force() -> None:
    broken = Subject(profile=Profile(id="a"), error="bad")
    (proof,) = prove(NEVER, a=broken)
    assert proof.verdict == "undecided"
    assert "earlier one" in proof.undecided[0]


def test_file_tools_that_no_gate_looks_at_are_a_residual_road_to_a_skill() -> None:
    loose = Subject(profile=profile(SAFE), is_guarded=False)
    (proof,) = prove(NEVER, a=loose)
    assert [road.via for road in proof.roads if road.state == "residual"] == [("tool read",)]


def test_a_child_is_asked_for_under_its_own_name_and_not_under_its_id() -> None:
    child = Subject(profile=profile({}), name="reviewer")
    asking = subject(SAFE | {"subagents": {"allowed": ["reviewer"]}}, "claude-code/reviewer", mode="own")
    (proof,) = prove(NEVER | {"for": ["a"]}, **{"a": asking, "claude-code/reviewer": child})
    assert proof.verdict == "refuted"


def test_a_template_that_can_give_such_a_uri_counts_as_installed() -> None:
    template = Extension(kind="mcp_resource", server="files", name="file:///{path}", facts={"template": True})
    (statement,) = read_statements([{"never": "resource:file:///etc/*", "over": "installed", "roads": "gate"}])
    inventory = Inventory(extensions=(template,))
    (proof,) = Prover({"a": subject({})}, inventory).prove(statement)
    assert [d.extension for d in proof.installed] == [template]
    (proof,) = Prover({"a": subject({"resources": {"disabled": ["*"]}})}, inventory).prove(statement)
    assert proof.verdict == "proved"


@pytest.mark.parametrize("name", ["ssh_exec", "runCommand", "execute_script", "python_repl", "desktop-start_process"])
def test_a_servers_tool_that_by_its_name_runs_things_is_a_residual_road(name: str) -> None:
    reach = reach_of(Extension(kind="mcp_tool", server="s", name=name))
    assert reach is not None
    assert reach.state == "residual"


@pytest.mark.parametrize("name", ["list_tables", "run_query", "create_issue", "executive_summary", "read_graph"])
def test_a_servers_tool_with_a_harmless_name_is_none(name: str) -> None:
    assert reach_of(Extension(kind="mcp_tool", server="s", name=name)) is None


def test_a_plugins_tool_is_not_believed_what_group_it_says_it_is_of() -> None:
    reach = reach_of(Extension(kind="tool", name="my_shell", source="plugin:p", facts={"group": "catalog"}))
    assert reach is not None
    assert reach.state == "residual"


def test_what_nobody_can_know_is_noted() -> None:
    items = (Extension(kind="mcp_tool", server="s", name="do_it"),)
    inventory = Inventory(extensions=items, servers=(Server(name="s"), Server(name="later", state="untrusted")))
    (statement,) = read_statements([{"never": "skill:x", "over": "installed"}])
    (proof,) = Prover({"a": subject({})}, inventory).prove(statement)
    assert proof.notes == (
        "what 1 tool of s can reach is not known to anybody but their servers",
        "what later offers is not known: it is untrusted",
    )


def test_always_holds_for_every_thing_of_that_name() -> None:
    assert verdict({"always": "tool:read"}, a=subject({"tools": {"allowed": ["read", "grep"]}})) == "proved"
    assert (
        verdict({"always": "tool:re*"}, a=subject({"tools": {"allowed": ["re*"], "disabled": ["reset"]}})) == "refuted"
    )
    (proof,) = prove({"always": "tool:read"}, a=subject({"tools": {"disabled": ["r*"]}}))
    assert [d.extension.name for d in proof.installed] == ["read"]


def test_always_of_what_is_not_there_says_so() -> None:
    (proof,) = prove({"always": "mcp:github/get_*"}, a=subject({"mcp": {"allowed": ["github/*"]}}))
    assert (proof.verdict, proof.notes) == ("proved", ("nothing that is installed is mcp:github/get_*",))


def test_equal_and_subset_compare_two_agents_over_all_names() -> None:
    less, more = subject({"tools": {"allowed": ["read"]}}), subject({})
    assert verdict({"subset": ["less", "more"]}, less=less, more=more) == "proved"
    assert verdict({"subset": ["more", "less"]}, less=less, more=more) == "refuted"
    assert verdict({"equal": ["less", "more"]}, less=less, more=more) == "refuted"
    same = subject({"tools": {"allowed": ["read", "read"]}})
    assert verdict({"equal": ["less", "same"]}, less=less, same=same) == "proved"


def test_a_statement_about_nobody_is_undecided() -> None:
    assert verdict(NEVER | {"for": ["nobody-*"]}, a=subject({})) == "undecided"
    assert verdict({"equal": ["a", "b"]}, a=subject({})) == "undecided"


def test_a_profile_that_cannot_be_read_reaches_nothing_and_proves_no_always() -> None:
    broken = Subject(profile=profile(SAFE | {"skills": {"disabled": ["*"]}}), error="bad")
    assert verdict({"always": "tool:read"}, a=broken) == "undecided"


def test_globs_choose_the_agents() -> None:
    row = NEVER | {"for": ["customer-*"]}
    subjects = {"customer-a": subject(SAFE), "customer-b": subject(SAFE), "other": subject({})}
    (statement,) = read_statements([row])
    assert [proof.agent for proof in Prover(subjects, INSTALLED).prove(statement)] == ["customer-a", "customer-b"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"never": "x"}, "expected a list"),
        (["never"], "expected a mapping"),
        ([{"for": ["a"]}], "exactly one of"),
        ([{"never": "tool:x", "always": "tool:y"}], "exactly one of"),
        ([{"never": "tool:x", "fro": ["a"]}], "`fro` has no meaning"),
        ([{"equal": ["a", "b"], "for": ["a"]}], "`for` has no meaning"),
        ([{"equal": ["a"]}], "expected two agents"),
        ([{"never": "bash"}], "is no thing"),
        ([{"never": "tols:bash"}], "is no thing"),
        ([{"never": "tool:"}], "is no thing"),
        ([{"never": 7}], "expected texts"),
        ([{"never": "tool:x", "roads": "all"}], "is neither"),
        ([{"never": "tool:x", "for": []}], "expected texts"),
    ],
)
def test_a_statement_without_meaning_is_an_error_with_its_line(value: Any, said: str) -> None:
    with pytest.raises(DialectError, match=said) as caught:
        read_statements(value, file="extgate.yaml", lines=[3])
    assert (caught.value.file, caught.value.line) == ("extgate.yaml", 3)
    assert caught.value.fix


def test_a_statement_in_a_profile_is_about_its_agent() -> None:
    (statement,) = read_statements([{"never": ["tool:a", "mcp:b"]}], agent="ops")
    assert statement.agents == ("ops",)
    assert [thing.kinds for thing in statement.things] == [("tool",), ("mcp_tool", "mcp_resource", "mcp_prompt")]


def test_a_things_pattern_may_hold_colons() -> None:
    assert read_thing("resource:file:///etc/*").pattern == "file:///etc/*"


def test_every_shell_of_every_runtime_is_a_residual_road() -> None:
    tools = [ext for runtime in runtimes() for ext in builtin_tools(runtime)]
    shells = [ext for ext in tools if ext.facts["group"] == "shell"]
    assert len(shells) >= 10
    assert {reach.state for ext in shells if (reach := reach_of(ext))} == {"residual"}
    assert all(reach_of(ext) for ext in shells)


def test_a_tool_that_no_row_knows_reaches_nothing_besides() -> None:
    assert reach_of(tool("note")) is None
    assert all(row.groups or row.names for row in TABLE)
