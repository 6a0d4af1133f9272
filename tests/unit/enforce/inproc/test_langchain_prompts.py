"""Listings in prompts lose what is hidden, exactly, and nothing else."""

from __future__ import annotations

import re
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from deepagents.middleware.skills import SkillsMiddleware
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.messages import SystemMessage

from extgate.core.extension import Extension, Inventory
from extgate.enforce.inproc.langchain import GateMiddleware
from extgate.enforce.inproc.langchain_children import gated_subagents
from extgate.enforce.inproc.langchain_prompts import reduced
from tests.doors.policies import profile
from tests.unit.enforce.inproc.hosts import Scripted, gate, run, skill, stock

FILES = """## Conventions

- Read files before editing

## Filesystem Tools `ls`, `read_file`, `write_file`

You have access to a filesystem.

- ls: list files in a directory
- write_file: write to a file,
  in one go
- `read_file`: read a file
* **grep**: search

## Execute Tool `execute`

You can run commands.

### In detail

- execute: run a command

## The end"""


def test_a_hidden_tool_loses_its_entry_and_its_place_in_a_heading() -> None:
    text = reduced(FILES, frozenset({"write_file"}))
    assert "write" not in text
    assert "in one go" not in text
    assert "## Filesystem Tools `ls`, `read_file`\n" in text
    assert "- ls: list files in a directory\n- `read_file`: read a file\n* **grep**: search" in text


def test_a_section_about_hidden_tools_alone_goes_with_all_below_it() -> None:
    text = reduced(FILES, frozenset({"execute"}))
    assert "execute" not in text.lower()
    assert "In detail" not in text
    assert text.endswith("## The end")


def test_a_block_that_begins_with_a_hidden_tools_heading_goes_as_a_whole() -> None:
    text = "\n\n## `write_todos`\n\nUse it.\n\n## Important Notes to Remember\n- never in parallel"
    assert reduced(text, frozenset({"write_todos"})) == ""
    assert reduced(text, frozenset({"ls"})) == text


def test_a_name_in_free_text_stays() -> None:
    text = "Ask before you run `execute` or read_file: it matters."
    assert reduced(text, frozenset({"execute", "read_file"})) == text


def test_a_name_that_only_begins_like_a_hidden_one_stays() -> None:
    text = "- read_file_slowly: slow\n- read: fast"
    assert reduced(text, frozenset({"read_file"})) == text


names = st.sampled_from(["ls", "read_file", "execute", "task", "deploy", "a b", "工具"])


@given(st.lists(st.tuples(names, st.text("abc -`", max_size=9)), max_size=8), st.frozensets(names))
def test_exactly_the_hidden_entries_go(entries: list[tuple[str, str]], hidden: frozenset[str]) -> None:
    lines = {name: f"- **{name}**: {text}" for name, text in entries}
    text = "\n".join(["Available:", "", *lines.values(), "", "The end"])
    kept = [line for name, line in lines.items() if name not in hidden]
    assert reduced(text, hidden) == "\n".join(["Available:", "", *kept, "", "The end"])


@given(st.text(max_size=200))
def test_nothing_hidden_changes_nothing(text: str) -> None:
    assert reduced(text, frozenset()) == text
    assert reduced(text, frozenset({"no such name, ever"})) == text


# ---------------------------------------------------------------------------------------------------- the frameworks'


def listed(text: str) -> set[str]:
    """Names in entries, and in the backticks of headings."""
    entries = re.findall(r"^\s*[-*] (?:\*\*|`)?([\w-]+)(?:\*\*|`)?:", text, re.MULTILINE)
    headings = [name for line in re.findall(r"^#+ .*$", text, re.MULTILINE) for name in re.findall(r"`([^`]+)`", line)]
    return {*entries, *headings}


@pytest.mark.parametrize(
    "denied",
    ["[execute]", "[write_todos, 'write_*']", "['*']", "[task, grep]", "[ls, read_file, glob, grep, edit_file]"],
)
def test_what_deepagents_itself_says_lists_no_hidden_tool(denied: str) -> None:
    mine, model = gate(f"tools: {{disabled: {denied}}}"), Scripted()
    specs, spawns = gated_subagents(mine)
    run(create_deep_agent(model, middleware=[GateMiddleware(mine, spawns=spawns)], subagents=specs))
    hidden = {d.extension.name for d in mine.decisions if not d.visible}
    said = model.offers[0].system + "".join(tool["function"]["description"] for tool in model.offers[0].definitions)
    assert hidden
    assert not listed(said) & hidden


def test_the_todo_tools_whole_block_goes_with_it() -> None:
    for denied, is_said in (("[write_todos]", False), ("[ls]", True)):
        model = Scripted()
        wall = GateMiddleware(gate(f"tools: {{disabled: {denied}}}"))
        run(create_agent(model, middleware=[TodoListMiddleware(), wall], system_prompt="You are kind."))
        assert ("To-Do" in model.offers[0].system) == is_said
        assert model.offers[0].system.startswith("You are kind.")


def test_a_system_prompt_of_one_text_is_reduced_too() -> None:
    model, wall = Scripted(), GateMiddleware(gate("tools: {disabled: [execute]}"))
    prompt = SystemMessage(content="You may:\n- execute: commands\n- ls: look")
    run(create_agent(model, middleware=[wall], system_prompt=prompt))
    assert model.offers[0].system == "You may:\n- ls: look"


def test_the_users_own_words_stay_as_they_are() -> None:
    model, wall = Scripted(), GateMiddleware(gate("tools: {disabled: [execute]}"))
    run(create_agent(model, middleware=[wall]), "- execute: what does it mean?")
    assert model.offers[0].messages[-1].text == "- execute: what does it mean?"


def test_the_task_tool_lists_the_visible_sub_agents_alone() -> None:
    mine, model = gate("subagents: {disabled: [auditor]}"), Scripted()
    specs, spawns = gated_subagents(
        mine,
        [
            {"name": "auditor", "description": "Audits.\nTwice.", "system_prompt": "x", "tools": []},
            {"name": "helper", "description": "Helps.", "system_prompt": "x", "tools": []},
        ],
    )
    run(create_deep_agent(model, middleware=[GateMiddleware(mine, spawns=spawns)], subagents=specs))
    said = model.offers[0].description("task") + model.offers[0].system
    assert "auditor" not in said
    assert "Twice." not in said
    assert "- helper: Helps." in said
    assert "- general-purpose: " in said


# ---------------------------------------------------------------------------------------------------- skills middleware


@pytest.fixture
def skills(tmp_path: Any) -> Any:
    """Three skills on disk, one of them denied below."""
    for name in ("deploy", "notes", "stranger"):
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: How to {name}.\n---\nDo {name}.\n")
    return tmp_path


def installed(root: Any, *names: str) -> Inventory:
    made: list[Extension] = [skill(n, declared_name=n, file=str(root / "skills" / n / "SKILL.md")) for n in names]
    return stock(*made)


@pytest.mark.parametrize("is_behind", [False, True], ids=["before the gate", "behind the gate"])
def test_the_skills_middleware_lists_visible_skills_alone(skills: Any, is_behind: bool) -> None:
    mine = gate("skills: {disabled: [deploy]}", installed(skills, "deploy", "notes"))
    lists = SkillsMiddleware(backend=FilesystemBackend(root_dir=skills, virtual_mode=True), sources=["/skills"])
    model, wall = Scripted(), GateMiddleware(mine)
    run(create_agent(model, middleware=[wall, lists] if is_behind else [lists, wall]))
    assert "**notes**: How to notes." in model.offers[0].system
    assert "deploy" not in model.offers[0].system


@pytest.mark.parametrize(
    ("policy", "is_listed"),
    [("skills: {allowed: [notes]}", False), ("skills: {disabled: ['str*']}", False), ("{}", True)],
)
def test_a_skill_that_nobody_installed_is_judged_like_any_other(skills: Any, policy: str, is_listed: bool) -> None:
    mine = gate(policy, installed(skills, "notes"))
    lists = SkillsMiddleware(backend=FilesystemBackend(root_dir=skills, virtual_mode=True), sources=["/skills"])
    model = Scripted()
    run(create_agent(model, middleware=[lists, GateMiddleware(mine)]))
    assert ("stranger" in model.offers[0].system) == is_listed
    assert "**notes**" in model.offers[0].system


def test_a_new_deny_takes_a_skill_out_of_the_next_prompt(skills: Any) -> None:
    mine = gate("{}", installed(skills, "deploy", "notes"))
    lists = SkillsMiddleware(backend=FilesystemBackend(root_dir=skills, virtual_mode=True), sources=["/skills"])
    denied = profile("skills: {disabled: [deploy]}")
    model = Scripted(turns=["once"], before=lambda offer: mine.swap(profile=denied))
    agent = create_agent(model, middleware=[lists, GateMiddleware(mine)])
    run(agent)
    run(agent)
    assert ["**deploy**" in offer.system for offer in model.offers] == [True, False]
