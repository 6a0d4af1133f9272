"""Bounded reading and writing of files, and text of others on one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extgate.discover.reading import UnreadableError, is_inside, one_line, read_bytes, write_private


def test_a_file_up_to_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 10)
    assert read_bytes(tmp_path / "f", 10) == b"x" * 10
    with pytest.raises(UnreadableError, match="more than 9 bytes") as caught:
        read_bytes(tmp_path / "f", 9)
    assert caught.value.cause == "too_large"


def test_absent_and_unreadable_are_told_apart(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dead").symlink_to(tmp_path / "nowhere")
    for path, cause in [("absent", "missing"), ("pipe", "unreadable"), ("dead", "unreadable"), (".", "unreadable")]:
        with pytest.raises(UnreadableError) as caught:
            read_bytes(tmp_path / path, 10)
        assert caught.value.cause == cause


def test_no_file_handle_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(UnreadableError):
            read_bytes(path, 10)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_write_replaces_the_file_at_once_and_privately(tmp_path: Path) -> None:
    file = tmp_path / "new" / "f"
    write_private(file, b"one")
    write_private(file, b"two")
    assert file.read_bytes() == b"two"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert os.listdir(file.parent) == ["f"]


def test_a_failed_write_leaves_the_old_file_and_nothing_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f"
    write_private(file, b"old")
    monkeypatch.setattr(os, "replace", _fail)
    with pytest.raises(OSError, match="full"):
        write_private(file, b"new")
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def _fail(*_: object) -> None:
    raise OSError(28, "disk is full")


def test_inside_follows_links(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "out").symlink_to(tmp_path)
    assert is_inside(tmp_path / "in" / "x", tmp_path / "in")
    assert not is_inside(tmp_path / "in" / "out", tmp_path / "in")
    assert not is_inside(tmp_path / "in" / ".." / "inside", tmp_path / "in")


def test_terminal_sequences_and_line_ends_are_gone() -> None:
    assert one_line("a\x1b[1;31mred\x1b[0m\r\n  b\tc") == "ared b c"
    assert one_line("x" * 400) == "x" * 299 + "…"


@given(st.text(max_size=400))
def test_any_text_is_one_printable_bounded_line(text: str) -> None:
    line = one_line(text, 50)
    assert len(line) <= 50
    assert not any(char in line for char in "\n\r\x1b\x07\u200b\u2028")
