"""Every page's links lead somewhere, and every command that a page shows exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from extgate.cli.main import VERBS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("README.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files_that_exist(page: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", prose)
    assert not [link for link in links if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_that_are_shown_exist(page: Path) -> None:
    shown = re.findall(r"^\$ (?:\.venv/bin/)?extgate (?:-w \S+ )?([a-z]+)", page.read_text(), re.MULTILINE)
    assert set(shown) <= set(VERBS)


def test_the_readmes_python_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
