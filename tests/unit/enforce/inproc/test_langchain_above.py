"""An agent that was compiled elsewhere reads no skill that somebody above it is denied."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent

from extgate.core.decide import Decision
from extgate.core.extension import Extension, Inventory
from extgate.core.policy import Profile
from extgate.enforce.gate import Gate
from extgate.enforce.guarded_paths import Closed
from extgate.enforce.inproc.factory import AgentFactory
from extgate.enforce.inproc.langchain import GateMiddleware
from extgate.enforce.inproc.langchain_children import gated_subagents
from tests.doors.policies import layer, rule
from tests.unit.enforce.inproc.hosts import Calls, Offer, Scripted, call, gate, run, skill, stock
from tests.unit.enforce.inproc.test_langchain_catalog import patterns

BOTH_WAYS = pytest.mark.parametrize("how", ["invoke", "ainvoke"])
BODY = "the body of the denied skill"
DENIED = "skills: {disabled: [secret]}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A skill that parents below are denied, and one that they have."""
    for name, text in (("secret", BODY), ("notes", "take notes")):
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: About {name}.\n---\n{text}\n"
        )
    return tmp_path


def installed(root: Path, *names: str, at: str = "skills") -> Inventory:
    rows = [skill(n, description=f"About {n}.", file=str(root / at / n / "SKILL.md")) for n in names]
    return stock(*rows, Extension(kind="subagent", name="kid"))


async def no_call(ext: Any, arguments: Any) -> Any:
    raise AssertionError


def read_file_of(ext: Extension) -> str:
    return Path(ext.file or "").read_text()


def asked(parent: Gate, kid: Gate, root: Path, turns: Sequence[Calls], how: str = "ainvoke") -> list[Offer]:
    """The kid's requests, spawned below the parent with these calls to make."""
    task = call("task", subagent_type="kid", description="work")
    model = Scripted(by_word={"main": [task], "work": list(turns)})
    factory = AgentFactory(call=no_call, read_skill=read_file_of, closed=Closed(root=root, skills=(root / "skills",)))
    made = factory.create_behind(kid, model=model, root=root)
    specs: Any
    specs, spawns = gated_subagents(parent, [{"name": "kid", "description": "k", "runnable": made.graph}])
    walls = [GateMiddleware(parent, spawns=spawns)]
    run(create_deep_agent(model=model, subagents=specs, middleware=walls), "main", how=how)
    return [offer for offer in model.offers if any("work" in m.text for m in offer.messages if m.type == "human")]


def reading(name: str) -> list[Calls]:
    return [
        call("get_skill", name=name),
        call("read_file", file_path=f"/skills/{name}/SKILL.md"),
        call("grep", pattern="body", path="/"),
        call("ls", path="/skills"),
        call("fetch_skills"),
    ]


@BOTH_WAYS
def test_a_sub_agent_compiled_elsewhere_reads_no_skill_that_its_parent_is_denied(root: Path, how: str) -> None:
    stocked = installed(root, "secret", "notes")
    offers = asked(gate(DENIED, stocked), gate("{}", stocked, agent="kid"), root, reading("secret"), how)
    answers = offers[-1].results
    assert "disabled for this agent" in answers[0]
    assert "closed to this agent's file tools" in answers[1]
    assert len(answers) == 5
    assert not any(BODY in text or "About secret" in text or "skills/secret/S" in text for text in answers[2:])
    assert all("secret" not in offer.system for offer in offers)
    assert "**notes**" in offers[0].system


def test_a_skill_that_nobody_above_is_denied_is_read_below(root: Path) -> None:
    stocked = installed(root, "secret", "notes")
    offers = asked(gate(DENIED, stocked), gate("{}", stocked, agent="kid"), root, reading("notes"))
    assert "take notes" in offers[-1].results[0]
    assert "take notes" in offers[-1].results[1]


def test_a_denied_skills_file_is_not_read_under_another_name_that_the_sub_agent_has_for_it(root: Path) -> None:
    (root / "else").mkdir()
    (root / "else" / "other").symlink_to(root / "skills" / "secret")
    parent = gate(DENIED, installed(root, "secret"))
    kid = gate("{}", installed(root, "other", at="else"), agent="kid")
    answers = asked(parent, kid, root, [*reading("other"), call("read_file", file_path="/skills/secret/SKILL.md")])[-1]
    assert not any(BODY in text for text in answers.results)


def test_a_skill_that_only_the_sub_agent_has_installed_is_judged_by_its_parent(root: Path) -> None:
    kid = gate("{}", installed(root, "secret"), agent="kid")
    offers = asked(gate(DENIED, installed(root, "notes")), kid, root, reading("secret"))
    assert not any(BODY in text for text in offers[-1].results)


def test_a_skill_that_the_parent_must_ask_for_is_not_expanded_without_asking(root: Path) -> None:
    stocked = installed(root, "secret")
    asks = Profile(id="a", layers=(layer(rule("ask", "secret", kind="skill")),))
    said: list[str] = []

    def refuse(decision: Decision, args: object) -> bool:
        said.append(decision.extension.name)
        return False

    parent = gate(asks, stocked, approver=refuse)
    offers = asked(parent, gate("{}", stocked, agent="kid"), root, [call("get_skill", name="secret")])
    assert said == ["secret"]
    assert BODY not in offers[-1].results[0]


def test_the_catalog_of_a_sub_agent_finds_and_shows_no_tool_that_its_parent_is_denied(root: Path) -> None:
    stocked = installed(root)
    parent = gate("tools: {disabled: [grep]}", stocked)
    kid = Gate(patterns("['*:*:*']"), stocked, door="langchain", agent="kid")
    turns = [call("fetch_tools"), call("get_tool", tool_name="grep"), call("get_tool", tool_name="glob")]
    found, shown, other = asked(parent, kid, root, turns)[-1].results
    assert "glob" in found.split()
    assert "grep" not in found.split()
    assert "error" in json.loads(shown)
    assert "grep" not in json.loads(shown)["available_tools"]
    assert json.loads(other)["name"] == "glob"
