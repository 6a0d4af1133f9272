"""The manifests are proven: every requirement has a test, every test names requirements that exist.

Those of runtimes name rows of the conformance corpus, which test_runtime_cases.py runs; every row is named.
"""

from __future__ import annotations

import importlib
import inspect
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

from extgate.dialects.registry import AGENT_FILES, NATIVE
from tests.dialects.runtime_rows import BUILD
from tests.dialects.test_runtime_cases import ALL

HERE = Path(__file__).parent
TESTS = HERE.parent
MANIFESTS = {"profile": HERE / "profile" / "requirements.toml", "patterns": HERE / "patterns" / "requirements.toml"}


def manifest(dialect: str) -> dict[str, dict[str, str]]:
    """The requirements of one dialect, by id."""
    return {
        f"{dialect}:{key}": row for key, row in tomllib.loads(MANIFESTS[dialect].read_text(encoding="utf-8")).items()
    }


def proofs() -> dict[str, list[str]]:
    """Names of the tests that claim each requirement, over the law tests and the dialects' own."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in sorted([*(TESTS / "laws").rglob("test_*.py"), *HERE.rglob("test_*.py")]):
        if file == Path(__file__):
            continue
        module = importlib.import_module(".".join(("tests", *file.relative_to(TESTS).with_suffix("").parts)))
        for name, test in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("test_") and test.__module__ == module.__name__:
                for id_ in getattr(test, "requirements", ()):
                    found[id_].append(f"{file.name}::{name}")
    return found


KNOWN = manifest("profile") | manifest("patterns")


@pytest.mark.parametrize("id_", sorted(KNOWN))
def test_a_requirement_has_a_sentence_a_source_and_a_test(id_: str) -> None:
    assert KNOWN[id_]["behaviour"].endswith(".")
    assert KNOWN[id_]["source"]
    assert proofs()[id_], "no test carries this requirement"


def test_no_test_names_a_requirement_that_is_not_in_a_manifest() -> None:
    assert sorted(set(proofs()) - set(KNOWN)) == []


def test_every_law_test_says_what_it_proves() -> None:
    silent: list[str] = []
    for file in sorted((TESTS / "laws").glob("test_law_*.py")):
        module = importlib.import_module(f"tests.laws.{file.stem}")
        for name, test in inspect.getmembers(module, inspect.isfunction):
            if (
                name.startswith("test_")
                and test.__module__ == module.__name__
                and not getattr(test, "requirements", ())
            ):
                silent.append(f"{file.name}::{name}")
    assert silent == []


# ---------------------------------------------------------------------------------------------- runtimes

ROWS = {row["id"]: row["runtime"] for row in ALL if row.get("reader") == "native"}
NATIVE_MANIFESTS = {
    f"{dialect}:{key}": row
    for dialect in BUILD
    for key, row in tomllib.loads((HERE / dialect / "requirements.toml").read_text(encoding="utf-8")).items()
}


@pytest.mark.parametrize("id_", sorted(NATIVE_MANIFESTS))
def test_a_runtimes_requirement_has_a_sentence_a_source_and_rows(id_: str) -> None:
    needed = NATIVE_MANIFESTS[id_]
    assert needed["behaviour"].endswith(".")
    assert needed["source"]
    assert needed["rows"]
    assert {ROWS.get(row) for row in needed["rows"]} == {id_.partition(":")[0]}


def test_every_row_of_a_runtime_proves_a_requirement() -> None:
    named = {row for needed in NATIVE_MANIFESTS.values() for row in needed["rows"]}
    assert sorted(set(ROWS) - named) == []


def test_every_dialect_has_its_manifest_and_its_page() -> None:
    pages = HERE.parents[1] / "docs" / "dialects"
    for dialect in (*AGENT_FILES, *NATIVE):
        assert (HERE / dialect / "requirements.toml").is_file()
        assert (pages / f"{dialect}.md").is_file()
