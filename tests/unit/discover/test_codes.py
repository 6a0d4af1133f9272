"""The table of discovery's findings is whole: each row is used, and each use has a row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from extgate.discover import codes
from extgate.discover.codes import BY_CODE, CODES, finding

SOURCES = [path for path in Path(codes.__file__).parent.glob("*.py") if path.name != "codes.py"]


def test_codes_are_unique_and_in_order() -> None:
    listed = [row.code for row in CODES]
    assert listed == sorted(set(listed))
    assert len(BY_CODE) == len(CODES)


@pytest.mark.parametrize("row", CODES, ids=lambda row: row.code)
def test_every_row_says_what_it_means_and_the_way_out(row: codes.Code) -> None:
    assert re.fullmatch(r"EG[234]\d\d", row.code)
    assert row.meaning
    assert row.fix
    assert not row.meaning.endswith(".")


def test_every_code_of_the_table_is_used_and_every_used_code_has_a_row() -> None:
    used = {code for path in SOURCES for code in re.findall(r'"(EG[234]\d\d)"', path.read_text())}
    assert used == set(BY_CODE)


def test_a_finding_takes_severity_and_fix_from_its_row() -> None:
    found = finding("EG201", "cannot be read", file="a/SKILL.md", line=3)
    assert (found.severity, found.fix) == ("error", BY_CODE["EG201"].fix)
    assert (found.file, found.line) == ("a/SKILL.md", 3)


def test_a_finding_shows_no_control_characters() -> None:
    found = finding("EG201", "a\x1b[31mb\nc", file="x\ny")
    assert found.message.isprintable()
    assert str(found.file).isprintable()
