"""A workspace and a home of each test's own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, so that the user's files decide nothing."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(folder / name))
    return folder


@pytest.fixture
def root(tmp_path: Path, home: Path) -> Path:
    """A workspace; the home is the test's own as well."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
