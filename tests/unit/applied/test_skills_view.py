"""The folder of the skills that an agent may see: nothing else is ever in it, and what is denied goes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from extgate.applied import skills_view
from extgate.applied.skills_view import refresh, relink
from extgate.cli.apply import NAMES
from extgate.cli.serve import keep_views
from extgate.hook_session import Sessions
from extgate.workspace import Workspace
from tests.unit.applied.test_apply import PROFILE, apply, files, mine, place

__all__ = ["place"]


def skill(root: Path, name: str, text: str = "text") -> Path:
    folder = root / name
    (folder / "more").mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    (folder / "more" / "data.bin").write_bytes(b"\x00\xff")
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_view_holds_the_given_skills_and_nothing_else(tmp_path: Path) -> None:
    a, b = skill(tmp_path / "src", "a"), skill(tmp_path / "src", "b")
    view = tmp_path / "view"
    assert refresh(view, {"a": a, "b": b}) == ()
    assert content(view) == {f"{n}/{f}": d for n in "ab" for f, d in content(a).items()}
    (a / "SKILL.md").write_text("new")
    (view / "stray").write_text("x")
    refresh(view, {"a": a})
    assert content(view) == {f"a/{f}": d for f, d in content(a).items()}
    inode = (view / "a").stat().st_ino
    refresh(view, {"a": a})
    assert (view / "a").stat().st_ino == inode, "what is the same is left alone"
    refresh(view, {})
    assert list(view.iterdir()) == []


def test_a_link_out_of_a_skill_is_not_followed(tmp_path: Path) -> None:
    secret = skill(tmp_path / "src", "secret", "SECRET")
    (tmp_path / "key").write_text("SECRET")
    a = skill(tmp_path / "src", "a")
    (a / "key").symlink_to(tmp_path / "key")
    (a / "folder").symlink_to(secret)
    (a / "up").symlink_to(Path("..") / "secret" / "SKILL.md")
    (a / "dangling").symlink_to("nowhere")
    (a / "same").symlink_to("SKILL.md")
    view = tmp_path / "view"
    refresh(view, {"a": a})
    assert set(content(view)) == {"a/SKILL.md", "a/more/data.bin", "a/same"}
    assert not any(path.is_symlink() for path in view.rglob("*"))


def test_a_link_in_the_views_place_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    a, other = skill(tmp_path / "src", "a"), tmp_path / "other"
    other.mkdir()
    (other / "mine").write_text("x")
    view = tmp_path / "view"
    view.mkdir()
    (view / "a").symlink_to(other)
    (view / "b").symlink_to(other)
    refresh(view, {"a": a})
    assert content(other) == {"mine": b"x"}
    assert not (view / "a").is_symlink()
    assert not (view / "b").exists()


def test_a_skill_that_is_too_large_is_left_out_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = skill(tmp_path / "src", "a"), skill(tmp_path / "src", "b")
    monkeypatch.setattr(skills_view, "MAX_FILES", 2)
    (a / "third").write_text("x")
    assert refresh(tmp_path / "view", {"a": a, "b": b}) == ("a",)
    assert {path.name for path in (tmp_path / "view").iterdir()} == {"b"}


def test_entries_that_are_not_ours_stay(tmp_path: Path) -> None:
    target, home = tmp_path / "view" / "a", tmp_path / "home"
    skill(home, "b")
    relink({}, {home / "a": target, home / "b": target})
    assert (home / "a").is_symlink()
    assert not (home / "b").is_symlink()
    relink({str(home / "a"): str(target), str(home / "b"): str(target)}, {})
    assert [path.name for path in home.iterdir()] == ["b"]


@pytest.mark.parametrize("runtime", NAMES)
def test_each_runtime_gets_the_visible_skills_and_loses_them(place: Path, runtime: str) -> None:
    mine(place, runtime)
    before = files(place)
    told = json.loads(apply(place, runtime, "--json").stdout)["skills"]
    (entry,) = map(Path, told)
    assert (entry.name, (entry / "SKILL.md").read_text().splitlines()[-1]) == ("open", "text")
    assert "secret" not in json.dumps(sorted(str(path) for path in (place / "home").rglob("*")))
    (place / "ws/agents/a.yaml").write_text(PROFILE.replace("[secret]", "[secret, open]"))
    Sessions().answer([runtime, "a", str(place / "ws"), str(place / "project"), "extgate"], b"{}")
    assert not (entry / "SKILL.md").exists(), "gone at the next call, without another run"
    apply(place, runtime)
    assert not entry.is_symlink()
    apply(place, runtime, "--undo")
    (place / "ws/agents/a.yaml").write_text(PROFILE)
    assert files(place) == before
    assert not list((place / "home/.local/share/extgate/views").iterdir())


def test_a_gateway_that_runs_takes_away_what_is_denied_meanwhile(place: Path) -> None:
    told = json.loads(apply(place, "claude-code", "--json").stdout)["skills"]
    (entry,) = map(Path, told)
    before = (place / "ws/agents/a.yaml").read_text()
    workspace, said, over = place / "ws", [], []
    (place / "ws/agents/a.yaml").write_text(PROFILE.replace("[secret]", "[secret, open]"))

    async def refreshed() -> None:
        host = SimpleNamespace(workspace=Workspace.open(workspace))
        gateway: Any = SimpleNamespace(host=host, on_refreshed=lambda: over.append(1))
        keep_views(gateway, said.append)
        gateway.on_refreshed()
        await asyncio.get_running_loop().shutdown_default_executor()  # waits for what it does

    assert (entry / "SKILL.md").exists()
    asyncio.run(refreshed())
    assert not (entry / "SKILL.md").exists()
    (place / "ws/agents/a.yaml").write_text(before)
    asyncio.run(refreshed())
    assert (entry / "SKILL.md").exists()
    assert (said, over) == ([], [1, 1])
