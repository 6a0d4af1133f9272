"""Listings lose what is hidden however they are written, and wherever they are shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool

from extgate.core.extension import Extension, Inventory
from extgate.core.policy import Profile
from extgate.dialects.document import Document
from extgate.dialects.registry import read_agent
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.factory import AgentFactory, Child
from extgate.enforce.inproc.langchain_identity import Identities, Registry
from extgate.enforce.inproc.langchain_listings import Listings
from extgate.enforce.inproc.langchain_prompts import reduced
from extgate.enforce.inproc.langchain_subagents import Spawns
from extgate.enforce.inproc.langchain_view import View
from tests.unit.enforce.inproc.hosts import Marks, Scripted, call, gate, results, run, skill, stock, tool


def listings(policy: str, *items: Extension) -> Listings:
    mine = gate(policy, Inventory(extensions=items))
    return Listings(View(mine, Identities(mine, Registry())), Spawns(mine))


@pytest.mark.parametrize(
    "entry",
    ["-  **x**: y", "+ **x**: y", "+ x: y", "1. **x**: y", "12) `x`: y", "- **x** : y", "- **x:** y", "- *x*: y",
     "- x - y", "- **`x`**: y", "- x", '- "x": y', "\u2022 x: y", "- **x** (a/b): y", "  * __x__: y", "-\tx: y"],
)  # fmt: skip
def test_an_entry_is_known_however_it_is_written(entry: str) -> None:
    assert reduced(f"{entry}\n- other: z", frozenset({"x"})) == "- other: z"
    assert reduced(entry, frozenset({"y", "z", "other"})) == entry


@pytest.mark.parametrize("entry", ["- **ops:deploy**: y", "- ops:deploy: y", "- `ops:deploy` - y", "1. ops:deploy"])
def test_a_name_with_a_colon_is_known(entry: str) -> None:
    assert reduced(entry, frozenset({"ops:deploy"})) == ""
    assert reduced(entry, frozenset({"deploy"})) == entry


def test_what_is_no_entry_stays_even_where_the_empty_name_is_hidden() -> None:
    assert reduced("Free text: x\n\nx", frozenset({"x", ""})) == "Free text: x\n\nx"


def test_all_that_is_indented_below_a_hidden_entry_goes_with_it() -> None:
    text = "- x: a\n\n  secret\n\n  - more: secret\n- y: b\n\n  kept\n\nThe end"
    assert reduced(text, frozenset({"x"})) == "- y: b\n\n  kept\n\nThe end"


def test_a_hidden_description_goes_whole_whatever_lines_it_has() -> None:
    long = skill("x", description="First.\n\nsecret one\n- secret: two\n## secret three\nfour")
    text = listings("skills: {disabled: [x]}", long).reduce(
        f"Skills:\n\n- **x**: {long.description}\n- **y**: b\n\nEnd"
    )
    assert text == "Skills:\n\n- **y**: b\n\nEnd"


def test_a_hidden_skill_is_not_kept_by_a_visible_tool_of_its_name() -> None:
    mine = listings("skills: {disabled: ['devops/*']}", tool("search"), skill("devops/search", description="Ops"))
    assert mine.reduce("- **search**: Ops\n  -> Read `/skills/devops/search/SKILL.md`\n- b: c") == "- b: c"


def test_of_two_skills_of_one_name_the_hidden_one_goes() -> None:
    mine = listings(
        "skills: {disabled: ['b/*']}", skill("a/pdf", description="Of a"), skill("b/pdf", description="Of b")
    )
    assert mine.reduce("- **pdf**: Of a\n- **pdf**: Of b") == "- **pdf**: Of a"
    same = listings("skills: {disabled: ['b/*']}", skill("a/pdf", description="S"), skill("b/pdf", description="S"))
    rows = [f"- **pdf**: S\n  -> Read `/skills/{at}/pdf/SKILL.md`" for at in "ab"]
    assert same.reduce("\n".join(rows)) == rows[0]
    assert same.reduce("- **pdf**: S") == ""


async def no_call(ext: Any, arguments: Any) -> Any:
    raise AssertionError


def catalog_of(tmp_path: Path, *turns: Any) -> list[str]:
    """Answers of the catalog of an agent that may spawn one of two sub-agents."""
    text = "tools: {patterns: ['impl:deepagents:*'], use_catalog: true}\nskills: {patterns: []}\nsubagents: [kid]"
    layer = read_agent(Document(path=".msagent/agents/b.yml", text=text))
    under = Profile(id="b", layers=(layer,), dialect="patterns")
    items = [Extension(kind="subagent", name=name) for name in ("spy", "kid")]
    mine = Gate(under, stock(*items), door="langchain")
    factory = AgentFactory(call=no_call, read_skill=lambda ext: "")
    kids = {"spy": Child(description="Spies on you."), "kid": Child(description="Helps you.")}
    made = factory.create_behind(mine, model=Scripted(turns=list(turns)), root=tmp_path, subagents=kids)
    return [text for _, text in results(run(made.graph))]


def test_the_catalog_describes_no_hidden_sub_agent_and_finds_nothing_by_one(tmp_path: Path) -> None:
    turns = [call("get_tool", tool_name="task")]
    turns += [call("fetch_tools", pattern=text) for text in ("Spies on you", "Helps you", "spy")]
    shown, *found = catalog_of(tmp_path, *turns)
    assert "kid: Helps you." in json.loads(shown)["description"]
    assert "spy" not in shown
    assert "Spies" not in shown
    assert found == ["", "task", ""]


def test_a_tool_that_spawns_nobody_is_described_as_it_is() -> None:
    plain: BaseTool = Marks().tool("read")
    assert listings("{}").describe(plain) is plain
