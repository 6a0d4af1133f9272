"""deepagents' file tools: what a denied skill or a policy file holds is neither opened, found nor changed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend

from extgate.core.extension import Inventory
from extgate.enforce.guarded_paths import Closed, GuardedPaths, skill_folders
from extgate.enforce.inproc.factory import AgentFactory
from extgate.enforce.inproc.langchain import GateMiddleware
from extgate.enforce.inproc.langchain_files import gated_backend
from extgate.enforce.inproc.langchain_mcp import McpAnswer
from extgate.enforce.sinks import Memory
from tests.unit.enforce.inproc.hosts import Scripted, call, gate, results, run, skill, stock

POLICY = "skills: {disabled: [deploy]}"
SECRET = "the body of the denied skill"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a denied and an allowed skill, a profile, and something to work on."""
    for name, text in (("deploy", SECRET), ("notes", "take notes")):
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n---\n{text}\n")
        (folder / "helper.sh").write_text(f"echo {text}\n")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "main.yaml").write_text(POLICY)
    (tmp_path / "work.txt").write_text("work\n")
    (tmp_path / "link").symlink_to(tmp_path / "skills" / "deploy")
    (tmp_path / "alias.md").symlink_to(tmp_path / "skills" / "deploy" / "SKILL.md")
    return tmp_path


def installed(root: Path) -> Inventory:
    return stock(*(skill(name, file=str(root / "skills" / name / "SKILL.md")) for name in ("deploy", "notes")))


def closed(root: Path) -> Closed:
    files = ("agents/*.yaml", "extgate.yaml", ".mcp.json", "extgate.lock")
    return Closed(root=root, files=files, skills=(root / "skills",))


async def no_call(ext: Any, arguments: Any) -> McpAnswer:
    raise AssertionError


def turn(root: Path, *calls: Any, how: str = "ainvoke", backend: Any = None, sink: Any = None) -> list[tuple[str, str]]:
    """The answers to these calls, of an agent as the factory makes it."""
    model = Scripted(turns=[[part for one in calls for part in one]])
    factory = AgentFactory(call=no_call, read_skill=lambda ext: "", closed=closed(root))
    mine = gate(POLICY, installed(root), **({"sink": sink} if sink else {}))
    agent = factory.create_behind(mine, model=model, root=root, backend=backend)
    return results(run(agent.graph, how=how))


FORMS = [
    "/skills/deploy/SKILL.md",
    "skills/deploy/SKILL.md",
    "/skills/deploy/helper.sh",
    "/skills/notes/../deploy/SKILL.md",
    "/./skills//deploy/./SKILL.md",
    "/link/SKILL.md",
    "/alias.md",
    "/Skills/Deploy/skill.md",
    "~/skills/deploy/SKILL.md",
]


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
@pytest.mark.parametrize("path", FORMS)
def test_a_denied_skill_is_not_read_by_any_spelling_of_its_path(root: Path, path: str, how: str) -> None:
    ((status, text),) = turn(root, call("read_file", file_path=path), how=how)
    assert SECRET not in text
    assert status == "error" or "not found" in text.lower() or "traversal" in text.lower(), text


def test_an_absolute_path_is_closed_in_a_backend_that_takes_them(root: Path) -> None:
    backend = FilesystemBackend(root_dir=root, virtual_mode=False)
    answers = turn(root, call("read_file", file_path=str(root / "skills/deploy/SKILL.md")), backend=backend)
    assert answers[0][0] == "error"
    assert SECRET not in answers[0][1]


def test_a_visible_skill_and_other_files_are_read(root: Path) -> None:
    answers = turn(
        root, call("read_file", file_path="/skills/notes/SKILL.md"), call("read_file", file_path="/work.txt")
    )
    assert [status for status, _ in answers] == ["success", "success"]
    assert "take notes" in answers[0][1]


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
@pytest.mark.parametrize(
    "search",
    [
        call("ls", path="/skills"),
        call("ls", path="/"),
        call("glob", pattern="**/*.md", path="/"),
        call("glob", pattern="/skills/deploy/*", path="/"),
        call("grep", pattern="body of the denied", path="/", output_mode="content"),
        call("grep", pattern="denied", path="/skills", output_mode="files_with_matches"),
    ],
    ids=lambda calls: f"{calls[0]['name']} {calls[0]['args'].get('pattern', calls[0]['args'].get('path'))}",
)
def test_a_search_finds_nothing_of_a_denied_skill(root: Path, search: Any, how: str) -> None:
    ((_, text),) = turn(root, search, how=how)
    assert "deploy" not in text or "'/skills/deploy/*'" in text, text
    assert SECRET not in text
    assert "alias" not in text


def test_a_search_still_finds_the_rest(root: Path) -> None:
    answers = turn(root, call("glob", pattern="**/*.md", path="/"), call("ls", path="/skills"), call("ls", path="/"))
    assert "/skills/notes/SKILL.md" in answers[0][1]
    assert "notes" in answers[1][1]
    assert "work.txt" in answers[2][1]


CHANGES = [
    call("write_file", file_path="/agents/main.yaml", content="{}"),
    call("write_file", file_path="/agents/new.yaml", content="{}"),
    call("write_file", file_path="/extgate.yaml", content="{}"),
    call("write_file", file_path="/.mcp.json", content="{}"),
    call("write_file", file_path="/extgate.lock", content="{}"),
    call("write_file", file_path="/skills/more/SKILL.md", content="x"),
    call("write_file", file_path="/AGENTS/Other.YAML", content="{}"),
    call("edit_file", file_path="/agents/main.yaml", old_string="deploy", new_string="x"),
    call("edit_file", file_path="/skills/deploy/SKILL.md", old_string="denied", new_string="x"),
    call("edit_file", file_path="/skills/notes/SKILL.md", old_string="take", new_string="x"),
]


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda c: f"{c[0]['name']} {c[0]['args']['file_path']}")
def test_what_decides_is_closed_to_writing(root: Path, change: Any, how: str) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    ((status, text),) = turn(root, change, how=how)
    assert status == "error"
    assert "closed to this agent's file tools" in text
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def has_delete() -> bool:
    return hasattr(FilesystemBackend, "delete")


@pytest.mark.skipif(not has_delete(), reason="this deepagents cannot delete")
@pytest.mark.parametrize("path", ["/agents/main.yaml", "/agents", "/skills/deploy", "/skills", "/"])
def test_what_decides_is_not_deleted_nor_a_folder_above_it(root: Path, path: str) -> None:
    ((status, _),) = turn(root, call("delete", file_path=path))
    assert status == "error"
    assert (root / "agents" / "main.yaml").exists()
    assert (root / "skills" / "deploy" / "SKILL.md").exists()


def test_a_refused_path_is_recorded_with_its_reason(root: Path) -> None:
    memory = Memory()
    turn(root, call("read_file", file_path="/skills/deploy/SKILL.md"), sink=memory)
    (refused,) = [e for e in memory.events if e.outcome == "refused" and e.question == "use"]
    assert (refused.extension, refused.action) == ("tool:read_file", "read")
    assert "a skill that this agent may not use" in refused.reason


def test_a_new_deny_closes_a_skills_folder_at_once(root: Path) -> None:
    from tests.doors.policies import profile

    mine = gate("{}", installed(root))
    read = call("read_file", file_path="/skills/notes/SKILL.md")
    model = Scripted(turns=[read, read])
    model.before = lambda offer: mine.swap(profile=profile("skills: {disabled: [notes]}")) if offer.results else None
    factory = AgentFactory(call=no_call, read_skill=lambda ext: "", closed=closed(root))
    answers = results(run(factory.create_behind(mine, model=model, root=root).graph))
    assert [status for status, _ in answers] == ["success", "error"]


# ---------------------------------------------------------------------------------------------------- the backend alone


def backend_of(root: Path, inner: Any) -> Any:
    mine = gate(POLICY, installed(root))

    def guard(base: Path) -> GuardedPaths:
        return GuardedPaths(closed(root), base=base, skills=lambda: skill_folders(mine))

    return gated_backend(inner, guard)


def test_a_gated_backend_is_still_an_instance_of_its_class_and_leaves_the_first_alone(root: Path) -> None:
    inner = FilesystemBackend(root_dir=root, virtual_mode=True)
    gated = backend_of(root, inner)
    assert isinstance(gated, FilesystemBackend)
    assert type(inner) is FilesystemBackend
    assert SECRET in str(inner.read("/skills/deploy/SKILL.md"))
    assert SECRET not in str(gated.read("/skills/deploy/SKILL.md"))
    assert SECRET not in str(asyncio.run(gated.aread("/skills/deploy/SKILL.md")))


def test_what_the_framework_downloads_is_judged_file_by_file(root: Path) -> None:
    gated = backend_of(root, FilesystemBackend(root_dir=root, virtual_mode=True))
    paths = ["/skills/deploy/SKILL.md", "/skills/notes/SKILL.md", "/link/SKILL.md"]
    for answers in (gated.download_files(paths), asyncio.run(gated.adownload_files(paths))):
        assert [(a.path, a.error) for a in answers] == [
            (paths[0], "permission_denied"), (paths[1], None), (paths[2], "permission_denied")
        ]  # fmt: skip
    for answers in (
        gated.upload_files([("/new.txt", b"x"), ("/extgate.yaml", b"{}")]),
        asyncio.run(gated.aupload_files([("/new.txt", b"x"), ("/extgate.yaml", b"{}")])),
    ):
        assert [a.error for a in answers] == [None, "permission_denied"]
    assert not (root / "extgate.yaml").exists()


def test_a_route_to_a_folder_is_closed_like_the_folder(root: Path) -> None:
    inner = CompositeBackend(default=StateBackend, routes={})  # type: ignore[arg-type]
    inner.default = FilesystemBackend(root_dir=root / "agents", virtual_mode=True)
    inner.routes = {"/tools/": FilesystemBackend(root_dir=root / "skills", virtual_mode=True)}
    inner.sorted_routes = list(inner.routes.items())
    gated = backend_of(root, inner)
    assert SECRET not in str(gated.read("/tools/deploy/SKILL.md"))
    assert "take notes" in str(gated.read("/tools/notes/SKILL.md"))
    assert gated.write("/main.yaml", "{}").error


def test_a_made_to_order_backend_is_gated_when_it_is_made(root: Path) -> None:
    made = backend_of(root, lambda runtime: FilesystemBackend(root_dir=root, virtual_mode=True))(None)
    assert SECRET not in str(made.read("/skills/deploy/SKILL.md"))


def test_a_plain_middleware_with_guarded_paths_closes_the_tools(root: Path) -> None:
    mine = gate(POLICY, installed(root))
    paths = GuardedPaths(closed(root), base=root, skills=lambda: skill_folders(mine))
    model = Scripted(turns=[call("read_file", file_path="/skills/deploy/SKILL.md")])
    agent = create_deep_agent(
        model, middleware=[GateMiddleware(mine, paths=paths)],
        backend=FilesystemBackend(root_dir=root, virtual_mode=True),
    )  # fmt: skip
    assert results(run(agent))[0][0] == "error"
