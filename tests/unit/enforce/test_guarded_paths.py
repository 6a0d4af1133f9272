"""Policy files and denied skills are closed to the agent's own file tools, however a path is spelled."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extgate.core import policy as policies
from extgate.core.extension import Extension, Inventory
from extgate.core.policy import Entry, Policy, Profile, Rule
from extgate.enforce.gate import Gate
from extgate.enforce.guarded_paths import Closed, GuardedPaths, SkillFolders, skill_folders

POLICY = "part of the policy"
SKILL = "skill that this agent may not use"
PEOPLE = "changed by people"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a profile, two skills and a note, reached through no link."""
    root = Path(os.path.realpath(tmp_path)) / "office"
    for file in (
        "agents/a.yaml",
        "extgate.yaml",
        ".mcp.json",
        "notes.txt",
        "skills/devops/prod-deploy/SKILL.md",
        "skills/devops/prod-deploy/scripts/run.sh",
        "skills/writing/SKILL.md",
        "skills/README.md",
        "plugins/p/plugin.json",
    ):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(file)
    return root


def closed(root: Path) -> Closed:
    return Closed(
        root=root,
        files=("agents/*.yaml", "agents/*/agent.json", "deep/**/x.yaml", "extgate.yaml", ".mcp.json", "extgate.lock"),
        folders=(root.parent / "state",),
        skills=(root / "skills",),
        kept=(root / "plugins",),
    )


def guard(root: Path) -> GuardedPaths:
    skills = SkillFolders(visible=(root / "skills/writing",), hidden=(root / "skills/devops/prod-deploy",))
    return GuardedPaths(closed(root), base=root, skills=lambda: skills)


def why(root: Path, path: object, action: str = "read") -> str:
    return guard(root).refusal(path, "write" if action == "write" else "read") or "open"


SPELLINGS = (
    "agents/a.yaml",
    "./agents/a.yaml",
    "agents//a.yaml",
    "agents/../agents/./a.yaml",
    "nowhere/../agents/a.yaml",
    "notes.txt/../agents/a.yaml",
    "/agents/a.yaml",
    "///agents/a.yaml",
    "agents\\a.yaml",
    "AGENTS/A.YAML",
    "agents/a.yaml/",
    "agents/a.yaml.",
    "agents /a.yaml ",
    " agents/a.yaml",
    "agents/a.\u200byaml",
    "agents/\uff41.yaml",
    "{root}/agents/a.yaml",
    "file://{root}/agents/a.yaml",
    "../office/agents/a.yaml",
    "skills/writing/../../agents/a.yaml",
)


@pytest.mark.parametrize("action", ["read", "write"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_profile_is_closed_in_every_spelling(root: Path, spelling: str, action: str) -> None:
    assert POLICY in why(root, spelling.format(root=root), action)


@pytest.mark.parametrize(
    "path",
    ["agents/new.yaml", "agents/sub/agent.json", "extgate.lock", "deep/x.yaml", "deep/a/b/x.yaml", "EXTGATE.YAML"],
)
def test_a_policy_file_that_is_not_there_yet_cannot_be_made(root: Path, path: str) -> None:
    assert POLICY in why(root, path, "write")


@pytest.mark.parametrize(
    "path", ["notes.txt", "agents/readme.txt", "new/file.py", "agents.yaml", "/notes.txt", "deep/y"]
)
@pytest.mark.parametrize("action", ["read", "write"])
def test_what_decides_nothing_is_open(root: Path, path: str, action: str) -> None:
    assert why(root, path, action) == "open"


@pytest.mark.parametrize("path", ["agents", ".", "", "/", "..", "../..", "skills", "deep"])
def test_a_folder_above_policy_may_be_listed_but_not_changed(root: Path, path: str) -> None:
    assert why(root, path) == "open"
    assert why(root, path, "write") != "open"


def test_a_link_to_a_profile_is_closed(root: Path) -> None:
    (root / "innocent").symlink_to("agents/a.yaml")
    (root / "way").symlink_to("agents")
    assert POLICY in why(root, "innocent")
    assert POLICY in why(root, "way/a.yaml")
    assert POLICY in why(root, "way/new.yaml", "write")


def test_a_hard_link_to_a_profile_is_closed(root: Path) -> None:
    os.link(root / "agents/a.yaml", root / "innocent")
    assert POLICY in why(root, "innocent", "write")


def test_what_a_linked_profile_points_at_is_closed(root: Path) -> None:
    (root / "elsewhere.txt").write_text("id: b")
    (root / "agents/b.yaml").symlink_to("../elsewhere.txt")
    (root / "agents/c.yaml").symlink_to("../not-yet.txt")
    assert POLICY in why(root, "elsewhere.txt", "write")
    assert POLICY in why(root, "not-yet.txt", "write")


def test_dots_after_a_link_are_read_both_ways(root: Path) -> None:
    (root / "down").symlink_to("skills/writing")
    assert POLICY in why(root, "down/../agents/a.yaml")
    assert POLICY in why(root, "down/../../agents/a.yaml")


def test_a_workspace_behind_a_link_is_the_same_workspace(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    behind = GuardedPaths(closed(link), base=link)
    assert POLICY in (behind.refusal("agents/a.yaml", "read") or "")
    assert POLICY in (behind.refusal(f"{root}/agents/a.yaml", "read") or "")
    assert POLICY in why(root, f"{link}/agents/a.yaml")


def test_a_name_in_another_unicode_form_is_the_same_name(root: Path) -> None:
    name = "agents/caf\u00e9.yaml"
    (root / name).write_text("id: c")
    assert POLICY in why(root, unicodedata.normalize("NFD", name))


def test_the_home_folder_is_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(root))
    assert POLICY in why(root, "~/agents/a.yaml")


@pytest.mark.parametrize("path", ["agents/a.yaml\0.txt", "notes.txt\0", "a" * 5000, None, 7, ["notes.txt"]])
def test_what_is_no_path_is_refused(root: Path, path: object) -> None:
    assert "refused" in why(root, path)


def test_a_closed_folder_is_closed_with_all_below(root: Path) -> None:
    assert POLICY in why(root, "../state/audit/x.jsonl")
    assert POLICY in why(root, str(root.parent / "state"), "write")


@pytest.mark.parametrize("path", ["SKILL.md", "scripts/run.sh", "", "scripts", "new.txt"])
def test_a_denied_skills_folder_is_closed(root: Path, path: str) -> None:
    assert SKILL in why(root, f"skills/devops/prod-deploy/{path}")
    assert SKILL in why(root, f"SKILLS/writing/../devops/Prod-Deploy/{path}")


def test_an_allowed_skill_is_read_and_not_written(root: Path) -> None:
    assert why(root, "skills/writing/SKILL.md") == "open"
    assert PEOPLE in why(root, "skills/writing/SKILL.md", "write")
    assert PEOPLE in why(root, "skills/brand-new/SKILL.md", "write")
    assert PEOPLE in why(root, "plugins/p/plugin.json", "write")
    assert why(root, "plugins/p/plugin.json") == "open"
    assert why(root, "skills/README.md") == "open"


def test_a_skill_that_was_never_loaded_is_closed(root: Path) -> None:
    (root / "skills/late").mkdir()
    assert why(root, "skills/late/SKILL.md") == "open"
    (root / "skills/late/SKILL.md").write_text("late")
    assert SKILL in why(root, "skills/late/SKILL.md")


def test_a_link_to_a_denied_skill_is_closed(root: Path) -> None:
    (root / "shortcut").symlink_to("skills/devops/prod-deploy")
    (root / "skills/writing/inner").symlink_to("../devops/prod-deploy")
    assert SKILL in why(root, "shortcut/SKILL.md")
    assert SKILL in why(root, "skills/writing/inner/SKILL.md")


def test_a_skill_outside_the_known_roots_is_judged_too(root: Path) -> None:
    skills = SkillFolders(visible=(root / "plugins/p/two/three",), hidden=(root / "plugins/p", root / "plugins/p/one"))
    guarded = GuardedPaths(closed(root), base=root, skills=lambda: skills)
    assert guarded.refusal("plugins/p/one/SKILL.md", "read")
    assert guarded.refusal("plugins/p/plugin.json", "read")
    assert guarded.refusal("plugins/p/two/three/SKILL.md", "read") is None


def test_a_skill_in_the_root_closes_nothing_of_those_below(root: Path) -> None:
    (root / "skills/SKILL.md").write_text("root")
    assert why(root, "skills/writing/SKILL.md") == "open"
    assert SKILL in why(root, "skills/SKILL.md")


def test_a_listing_loses_what_is_closed(root: Path) -> None:
    found = ["notes.txt", "agents/a.yaml", "skills/writing/SKILL.md", "skills/devops/prod-deploy/SKILL.md"]
    assert guard(root).open_ones(found) == ["notes.txt", "skills/writing/SKILL.md"]


def test_a_search_says_whether_it_could_reach_what_is_closed(root: Path) -> None:
    (root / "empty").mkdir()
    assert guard(root).reaches_closed(".")
    assert guard(root).reaches_closed("/")
    assert guard(root).reaches_closed("skills/devops")
    assert not guard(root).reaches_closed("empty")


def test_folders_of_skills_follow_the_gate(root: Path) -> None:
    skills = [
        Extension(kind="skill", name=name, file=str(root / "skills" / name / "SKILL.md"))
        for name in ("devops/prod-deploy", "writing")
    ]
    allow = Policy(dialect="profile", id="a")
    gate = Gate(Profile(id="a", layers=(allow,)), Inventory(extensions=tuple(skills)), door="test")
    guarded = GuardedPaths(closed(root), base=root, skills=lambda: skill_folders(gate))
    assert guarded.refusal("skills/devops/prod-deploy/SKILL.md", "read") is None
    entry = Entry(text="prod-deploy", tests=(policies.Test(facets=("any",), pattern="prod-deploy"),))
    deny = Rule(text="skills.disabled", effect="deny", kinds=frozenset({"skill"}), entries=(entry,))
    gate.swap(profile=Profile(id="a", layers=(Policy(dialect="profile", id="a", rules=(deny,)),)))
    assert SKILL in (guarded.refusal("skills/devops/prod-deploy/SKILL.md", "read") or "")
    assert guarded.refusal("skills/writing/SKILL.md", "read") is None


_PIECES = st.sampled_from(["agents", "a.yaml", "..", ".", "", "skills", "writing", "way", "notes.txt", "A.YAML", "/"])


@given(pieces=st.lists(_PIECES, max_size=8), action=st.sampled_from(["read", "write"]))
def test_no_path_that_opens_a_profile_is_open(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], action: str
) -> None:
    base = Path(os.path.realpath(tmp_path_factory.getbasetemp())) / "guarded"
    (base / "agents").mkdir(parents=True, exist_ok=True)
    (base / "skills/writing").mkdir(parents=True, exist_ok=True)
    (base / "agents/a.yaml").write_text("id: a")
    (base / "notes.txt").write_text("")
    if not (base / "way").is_symlink():
        (base / "way").symlink_to("agents")
    path = "/".join(pieces)
    try:
        is_profile = os.path.samefile(base / path.lstrip("/"), base / "agents/a.yaml")
    except OSError:
        is_profile = False
    found = GuardedPaths(closed(base), base=base).refusal(path, "write" if action == "write" else "read")
    assert found is not None or not is_profile
