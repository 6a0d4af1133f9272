"""The catalog's answers, as msAgent gives them; each judged by its target, from one agent's own set."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from extgate.core.extension import Extension, Inventory
from extgate.core.policy import Profile
from extgate.dialects.document import Document
from extgate.dialects.registry import read_agent
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.catalog import Catalog, CatalogError, Offered
from extgate.enforce.inproc.skill_cache import SkillCache
from extgate.enforce.sinks import Memory
from extgate.errors import DiscoveryError
from tests.doors.policies import layer, profile, rule
from tests.unit.enforce.inproc.hosts import skill, tool

SKILLS = (
    skill("pdf", description="Reads PDF files", facts={"folder": "default"}),
    skill("ops/deploy", description="Ships it", declared_name="deploy", facts={"folder": "ops"}),
    skill("lab/deploy", description="Ships an experiment", declared_name="deploy", facts={"folder": "lab"}),
    skill("ops/rollback", description="Takes it back", facts={"folder": "ops"}),
)
TOOLS = (tool("read_csv"), tool("write_csv"), tool("plot"))
STOCK = Inventory(extensions=(*TOOLS, *SKILLS))


def patterns(text: str) -> Profile:
    policy = read_agent(Document(path=".msagent/agents/a.yml", text=text))
    return Profile(id="a", layers=(policy,), dialect="patterns")


def offered(*tools: Extension) -> dict[str, Offered]:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    return {t.name: Offered(name=t.name, description=f"Does {t.name}", parameters=schema, owners=(t,)) for t in tools}


def text_of(ext: Extension) -> str:
    return f"---\nname: {ext.leaf}\n---\nBody of {ext.name}."


def catalog(under: str | Profile, read: Any = text_of, **more: Any) -> Catalog:
    mine = Gate(profile(under) if isinstance(under, str) else under, STOCK, door="catalog", **more)
    return Catalog(mine, lambda: offered(*TOOLS), SkillCache(mine, read))


# ---------------------------------------------------------------------------------------------------- tools


def test_tools_are_listed_one_a_line_by_name_or_description() -> None:
    mine = catalog("tools: {disabled: [write_csv]}")
    assert mine.fetch_tools() == "plot\nread_csv"
    assert mine.fetch_tools("csv") == "read_csv"
    assert mine.fetch_tools("^Does p") == ""
    assert mine.fetch_tools("Does p") == "plot"


def test_a_bad_pattern_is_said_to_be_one() -> None:
    with pytest.raises(CatalogError, match=r"^Invalid regex pattern: "):
        catalog("{}").fetch_tools("(")
    with pytest.raises(CatalogError, match=r"^Invalid regex pattern: "):
        catalog("{}").fetch_skills("[")


def test_a_tools_definition_is_shown_as_json() -> None:
    shown = json.loads(catalog("{}").get_tool("plot"))
    assert shown == {"name": "plot", "description": "Does plot", "parameters": offered(tool("plot"))["plot"].parameters}


@pytest.mark.parametrize("name", ["write_csv", "nothing"])
def test_a_hidden_tool_is_answered_like_one_that_is_not_there(name: str) -> None:
    answer = json.loads(catalog("tools: {disabled: [write_csv]}").get_tool(name))
    assert answer == {"error": f"Tool '{name}' not found", "available_tools": ["plot", "read_csv"]}


def test_showing_a_hidden_tool_is_recorded() -> None:
    memory = Memory()
    catalog("tools: {disabled: [write_csv]}", sink=memory).get_tool("write_csv")
    assert [(e.extension, e.action, e.outcome) for e in memory.events] == [("tool:write_csv", "show", "refused")]


def test_an_empty_catalog_is_empty() -> None:
    mine = catalog(patterns("tools: {patterns: ['!impl:*:*']}"))
    assert mine.fetch_tools() == ""
    assert mine.fetch_skills() == "[]"
    assert json.loads(mine.get_tool("plot"))["available_tools"] == []
    with pytest.raises(CatalogError):
        mine.get_skill("pdf")


# ---------------------------------------------------------------------------------------------------- skills


def test_skills_are_listed_as_json() -> None:
    assert json.loads(catalog("skills: {disabled: ['ops/*']}").fetch_skills()) == [
        {
            "display_name": "lab/deploy",
            "category": "lab",
            "name": "deploy",
            "description": "Ships an experiment",
        },
        {"display_name": "pdf", "category": "default", "name": "pdf", "description": "Reads PDF files"},
    ]
    assert [row["name"] for row in json.loads(catalog("{}").fetch_skills("back$"))] == ["rollback"]


@pytest.mark.parametrize(
    ("name", "category"), [("pdf", None), ("pdf", "default"), ("ops/rollback", None), ("rollback", "ops")]
)
def test_a_skills_whole_file_is_read(name: str, category: str | None) -> None:
    mine = catalog("{}")
    assert mine.get_skill(name, category).endswith("Body of pdf." if name == "pdf" else "Body of ops/rollback.")
    assert asyncio.run(mine.aget_skill(name, category)) == mine.get_skill(name, category)


@pytest.mark.parametrize(
    ("name", "category", "error"),
    [
        ("nothing", None, "Skill 'nothing' not found"),
        ("pdf", "ops", "Skill 'pdf' not found in category 'ops'"),
        ("deploy", None, "Multiple skills named 'deploy'. Specify category: lab, ops"),
    ],
)
def test_a_skill_that_is_not_there_is_said_not_to_be(name: str, category: str | None, error: str) -> None:
    with pytest.raises(CatalogError) as raised:
        catalog("{}").get_skill(name, category)
    assert str(raised.value) == error


def test_of_two_skills_of_one_name_the_visible_one_is_meant() -> None:
    assert catalog("skills: {disabled: ['ops/*']}").get_skill("deploy").endswith("Body of lab/deploy.")


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_denied_skill_is_refused_with_the_reason_and_recorded(how: str) -> None:
    memory = Memory()
    mine = catalog("skills: {disabled: [pdf]}", sink=memory)
    with pytest.raises(CatalogError, match="'pdf' is disabled for this agent"):
        mine.get_skill("pdf") if how == "sync" else asyncio.run(mine.aget_skill("pdf"))
    assert [(e.extension, e.action, e.outcome) for e in memory.events] == [("skill:pdf", "expand", "refused")]


def test_a_skill_that_must_be_approved_is_asked_for() -> None:
    class Says:
        name = "ann"

        def __init__(self, said: bool) -> None:
            self.said = said

        def __call__(self, decision: object, args: Mapping[str, Any]) -> bool:
            return self.said

    ask = profile("{}", layer(rule("ask", "pdf", kind="skill")))
    assert catalog(ask, approver=Says(True)).get_skill("pdf").endswith("Body of pdf.")
    with pytest.raises(CatalogError, match="not approved"):
        catalog(ask, approver=Says(False)).get_skill("pdf")
    with pytest.raises(CatalogError, match="Nobody is here"):
        catalog(ask).get_skill("pdf")


def test_skills_come_from_the_cache_that_was_made_at_the_start() -> None:
    read: list[str] = []

    def once(ext: Extension) -> str:
        read.append(ext.name)
        return text_of(ext)

    mine = catalog("skills: {disabled: ['ops/*']}", once)
    assert read == ["lab/deploy", "pdf"], "a denied skill is not even read"
    mine.get_skill("pdf")
    mine.get_skill("pdf")
    mine.fetch_skills()
    assert read == ["lab/deploy", "pdf"]


def test_a_new_policy_makes_the_cache_anew_and_a_deny_binds_at_once() -> None:
    mine = Gate(profile("skills: {disabled: [pdf]}"), STOCK, door="catalog")
    found = Catalog(mine, dict, SkillCache(mine, text_of))
    mine.swap(profile=profile("skills: {disabled: ['*/*']}"))
    assert found.get_skill("pdf")
    with pytest.raises(CatalogError):
        found.get_skill("rollback")


def test_a_skill_that_changed_since_it_was_judged_is_not_read() -> None:
    def fails(ext: Extension) -> str:
        raise DiscoveryError("has changed since it was judged", file="SKILL.md")

    with pytest.raises(CatalogError, match=r"cannot be read: .* has changed since it was judged"):
        catalog("{}", fails).get_skill("pdf")
