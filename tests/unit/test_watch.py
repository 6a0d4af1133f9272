"""Edits are seen whatever an editor does, once each, and nothing else is."""

from __future__ import annotations

import os
import queue
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from extgate.homes import find_homes
from extgate.watch import Watcher, _Feeds, folders_to_watch, snapshot

Seen = queue.Queue[tuple[str, ...]]
WAIT_S = 60


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    root = tmp_path / "office"
    (root / "agents").mkdir(parents=True)
    (root / "agents/a.yaml").write_text("id: a\n")
    (root / "skills/pdf").mkdir(parents=True)
    (root / "skills/pdf/SKILL.md").write_text("---\nname: pdf\n---\n")
    return root


@pytest.fixture(params=["watchfiles", "polling"])
def watch(request: pytest.FixtureRequest, root: Path) -> Iterator[Seen]:
    """What a watcher saw; it is stopped at the end."""
    seen: Seen = queue.Queue()
    polling = request.param == "polling"
    with Watcher(lambda: find_homes(root), seen.put, say=print, poll_s=0.05, is_polling=polling) as watcher:
        assert watcher.is_polling is polling
        yield seen


def names(seen: Seen, root: Path) -> list[str]:
    return [os.path.relpath(path, root) for path in seen.get(timeout=WAIT_S)]


def write_in_place(path: Path, text: str) -> None:
    path.write_text(text)


def replace_atomically(path: Path, text: str) -> None:
    other = path.with_name(f".{path.name}.new")
    other.write_text(text)
    os.replace(other, path)


def move_aside_as_vim_does(path: Path, text: str) -> None:
    (path.parent / "4913").touch()
    (path.parent / "4913").unlink()
    path.with_name(f".{path.name}.swp").write_text("swap")
    os.rename(path, path.with_name(f"{path.name}~"))
    path.write_text(text)
    path.with_name(f"{path.name}~").unlink()
    path.with_name(f".{path.name}.swp").unlink()


@pytest.mark.parametrize("save", [write_in_place, replace_atomically, move_aside_as_vim_does])
def test_a_saved_profile_is_seen_however_it_is_saved(
    watch: Seen, root: Path, save: Callable[[Path, str], None]
) -> None:
    save(root / "agents/a.yaml", "id: a\ntools: {disabled: [bash]}\n")
    assert names(watch, root) == ["agents/a.yaml"]


def test_a_file_that_is_touched_or_written_again_unchanged_is_no_change(watch: Seen, root: Path) -> None:
    (root / "agents/a.yaml").write_text("id: a\n")
    os.utime(root / "agents/a.yaml", (1, 1))
    (root / "agents/.a.yaml.swp").write_text("swap")
    (root / "notes.txt").write_text("not watched")
    (root / "extgate.yaml").write_text("reload: auto\n")
    assert names(watch, root) == ["extgate.yaml"]
    assert watch.empty()


def test_what_appears_and_what_goes_is_seen(watch: Seen, root: Path) -> None:
    (root / "agents/b.json").write_text("{}")
    assert names(watch, root) == ["agents/b.json"]
    (root / "agents/a.yaml").unlink()
    assert names(watch, root) == ["agents/a.yaml"]
    shutil.rmtree(root / "skills/pdf")
    assert names(watch, root) == ["skills/pdf/SKILL.md"]


def test_folders_made_later_are_watched_too(watch: Seen, root: Path) -> None:
    (root / "plugins/p/skills/x").mkdir(parents=True)
    (root / "plugins/p/plugin.json").write_text("{}")
    assert "plugins/p/plugin.json" in names(watch, root)
    (root / "plugins/p/skills/x/SKILL.md").write_text("x")
    assert names(watch, root) == ["plugins/p/skills/x/SKILL.md"]
    (root / ".mcp.json").write_text("{}")
    assert names(watch, root) == [".mcp.json"]


def test_a_profile_behind_a_link_is_seen_when_its_target_changes(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "b.yaml").write_text("id: b\n")
    (root / "agents/b.yaml").symlink_to(elsewhere / "b.yaml")
    seen: Seen = queue.Queue()
    with Watcher(lambda: find_homes(root), seen.put, say=print):
        (elsewhere / "b.yaml").write_text("id: b\ntools: {}\n")
        assert "agents/b.yaml" in names(seen, root)


def test_a_folder_that_is_a_link_is_seen_when_the_link_is_turned(root: Path, tmp_path: Path) -> None:
    for version in ("one", "two"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "a.yaml").write_text(f"id: a\ndescription: {version}\n")
    shutil.rmtree(root / "agents")
    (root / "agents").symlink_to(tmp_path / "one")
    seen: Seen = queue.Queue()
    with Watcher(lambda: find_homes(root), seen.put, say=print):
        (root / "new").symlink_to(tmp_path / "two")
        os.replace(root / "new", root / "agents")
        assert names(seen, root) == ["agents/a.yaml"]


def test_a_profile_given_by_its_path_is_watched_wherever_it_lies(root: Path, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    given = tmp_path / "far" / "guest.yaml"
    given.write_text("id: guest\n")
    seen: Seen = queue.Queue()
    with Watcher(lambda: find_homes(root), seen.put, say=print, also=(given,)):
        given.write_text("id: guest\ntools: {}\n")
        assert seen.get(timeout=WAIT_S) == (str(given),)


def test_an_edit_between_making_and_entering_is_seen(root: Path) -> None:
    seen: Seen = queue.Queue()
    watcher = Watcher(lambda: find_homes(root), seen.put, say=print)
    (root / "agents/a.yaml").write_text("id: a\ntools: {}\n")
    with watcher:
        assert names(seen, root) == ["agents/a.yaml"]


def test_without_watchfiles_it_polls_and_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    said: list[str] = []
    seen: Seen = queue.Queue()
    with Watcher(lambda: find_homes(root), seen.put, say=said.append, poll_s=0.05) as watcher:
        assert watcher.is_polling
        (root / "agents/a.yaml").write_text("id: a\ntools: {}\n")
        assert names(seen, root) == ["agents/a.yaml"]
    assert said == ["watchfiles is not installed: files are looked at every 1 s; install extgate[chat]"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_watcher_that_ends_by_an_error_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: queue.Queue[str] = queue.Queue()

    def fail(paths: tuple[str, ...]) -> None:
        raise SystemExit

    with Watcher(lambda: find_homes(root), fail, say=said.put, is_polling=True, poll_s=0.05):
        (root / "agents/a.yaml").write_text("id: a\ntools: {}\n")
        assert "edits no longer take effect" in said.get(timeout=WAIT_S)


def test_a_snapshot_takes_unreadable_and_dangling_files_as_they_are(root: Path) -> None:
    (root / "agents/c.yaml").symlink_to("nowhere.yaml")
    (root / "agents/d.yaml").mkdir()
    os.mkfifo(root / "agents/e.yaml")
    found = {os.path.relpath(path, root) for path in snapshot(find_homes(root))}
    assert found >= {"agents/a.yaml", "agents/c.yaml", "skills/pdf/SKILL.md"}


def test_the_workspace_itself_is_not_watched_with_all_below(root: Path) -> None:
    flat, deep = folders_to_watch(find_homes(root))
    assert os.path.realpath(root) in flat
    assert os.path.realpath(root) not in deep
    assert os.path.realpath(root / "skills") in deep


def test_only_what_the_process_writes_itself_wakes_nobody(tmp_path: Path) -> None:
    own, other = str(tmp_path / "audit.jsonl"), str(tmp_path / "agents")
    wake, woken = threading.Event(), list[bool]()

    class Told:
        """As `watchfiles` tells: first that watching has begun, then of changes."""

        @staticmethod
        def watch(*folders: str, **options: object) -> Iterator[set[tuple[int, str]]]:
            for changes in (set(), {(2, own)}, {(2, own), (2, other)}, {(2, own)}, set()):
                yield changes
                woken.append(wake.is_set())
                wake.clear()

    feeds = _Feeds(Told, wake, print, lambda path: path == own)
    feeds._feed([str(tmp_path)], False, threading.Event())
    assert woken == [True, False, True, False, False]
