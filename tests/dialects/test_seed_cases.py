"""The handed corpora, row by row: what both reference systems were asked, and what extgate must answer.

Every applying row runs. A row that does not apply says why in the data (`"applies": false`, `reason`); a row where the
law overrides what was observed or proposed says so (`why_differs`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from extgate import check_required, gate, match_any
from tests.dialects.adapter import Answer, decide_case, decide_text, run
from tests.dialects.layers import visible_under_all

DATA = Path(__file__).parent.parent / "data"
Case = dict[str, Any]


def rows(file: str) -> list[dict[str, Any]]:
    """The rows of one corpus."""
    return [json.loads(line) for line in (DATA / file).read_text(encoding="utf-8").splitlines()]


def cases(file: str) -> list[Any]:
    """Every case of every applying row, under the row's id."""
    return [
        pytest.param(case, id=f"{row['id']}-{number}" if number else row["id"])
        for row in rows(file)
        if row.get("applies", True) and row.get("reader") != "native"  # those are in test_runtime_cases.py
        for number, case in enumerate(row.get("cases", [row]))
    ]


def ask_match_any(given: Case, expected: Any, _: Path) -> None:
    if isinstance(expected, dict):
        with pytest.raises(ValueError):
            match_any(given["name"], given["patterns"])
        return
    assert match_any(given["name"], given["patterns"]) is expected


def ask_gate(given: Case, expected: Case, _: Path) -> None:
    if "raises" in expected:
        with pytest.raises(ValueError):
            gate(**given)
        return
    reason = gate(**given)
    assert (reason is None) is expected["allowed"]
    if "reason" in expected:
        assert reason == expected["reason"]


def ask_check_required(given: Case, expected: list[str], _: Path) -> None:
    assert check_required(given["installed"], given["required"]) == expected


def ask_decide(given: Case, expected: Case, _: Path) -> None:
    answer = (
        decide_text(given["text"], given["inventory"])
        if "text" in given
        else decide_case(given["profile"], given["inventory"])
    )
    if "unreadable" in expected:
        assert not answer.readable
        assert answer.error
        return
    assert answer.readable, answer.error
    for key in ("available", "visible"):
        if key in expected:
            assert getattr(answer, key) == expected[key]
    assert list(answer.missing) == expected.get("missing", [])
    check_said(answer, expected)


def check_said(answer: Answer, expected: Case) -> None:
    """Findings, rules and answers that a case asks for by word."""
    said = [json.dumps(f, ensure_ascii=False) for f in answer.findings]
    for entry in expected.get("warned", []):
        assert any(json.dumps(entry, ensure_ascii=False)[1:-1] in line for line in said), entry
    if "finding_about" in expected:
        assert any(all(word in line for word in expected["finding_about"]) for line in said)
    if "rule" in expected:
        rule = answer.decision(expected["rule"]["id"])["rule"]
        assert rule["pattern"] == expected["rule"]["pattern"]
        assert rule["file"]
        assert rule["line"]
    if expected.get("three_answers"):
        assert all({"visible", "callable", "approval"} <= set(d) for d in answer.decisions)


def ask_layers(given: Case, expected: Case, _: Path) -> None:
    assert visible_under_all(given["profiles"], given["inventory"]) == expected["visible"]


def ask_shuffle(given: Case, expected: Case, _: Path) -> None:
    forth, back = given["inventory"], {key: turned(rows_) for key, rows_ in given["inventory"].items()}
    assert (
        decide_case(given["profile"], forth).decisions == decide_case(given["profile"], back).decisions
    ) is expected["same"]


def turned(rows_: list[Case]) -> list[Case]:
    """The rows in reverse, and whatever they list in reverse too."""
    return [{k: v[::-1] if isinstance(v, list) else v for k, v in row.items()} for row in reversed(rows_)]


def listing(folder: Path) -> tuple[list[Case], str]:
    """The skills that `extgate list --json` finds in a workspace, and everything it said besides."""
    code, out, err = run("list", "--json", "-w", str(folder))
    assert code == 0, err
    return json.loads(out)["skills"], out + err + "".join(run("check", "-w", str(folder))[1:])


def ask_skill_file(given: Case, expected: Case, folder: Path) -> None:
    home = folder / "skills" / given["folder"]
    home.mkdir(parents=True)
    (home / "SKILL.md").write_bytes(bytes.fromhex(given["bytes_hex"]))
    skills, said = listing(folder)
    names = [s["name"] for s in skills if s.get("source") == "project"]
    if "listed" in expected:
        assert names == expected["listed"]
    if "category" in expected:
        assert [s["category"] for s in skills if s["name"] in names] == [expected["category"]]
    if "listed_or_reported" in expected:
        assert expected["listed_or_reported"] in names or f"{given['folder']}/SKILL.md" in said


def ask_skill_tree(given: Case, expected: Case, folder: Path) -> None:
    root = folder / "work" / "skills"
    for path, text in given["files"].items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    if "outside_link" in given:
        (folder / "outside").mkdir()
        (folder / "outside" / "SKILL.md").write_text("---\nname: out\ndescription: d\n---\n")
        (root / given["outside_link"]).symlink_to(folder / "outside")
    skills, said = listing(folder / "work")
    assert sorted(s["name"] for s in skills if s.get("source") == "project") == expected["listed"]
    for name in expected.get("reported", []):
        assert f"skills/{name}" in said


ASK = {
    "match_any": ask_match_any,
    "gate": ask_gate,
    "check_required": ask_check_required,
    "decide": ask_decide,
    "layers": ask_layers,
    "shuffle": ask_shuffle,
    "skill_file": ask_skill_file,
    "skill_tree": ask_skill_tree,
}


@pytest.mark.parametrize("case", cases("seed-systems.jsonl"))
def test_the_seed_systems_case_holds(case: Case, tmp_path: Path) -> None:
    ASK[case["call"]](case["input"], case["expected"], tmp_path)


@pytest.mark.parametrize("case", cases("faults.jsonl"))
def test_the_reported_fault_cannot_happen(case: Case, tmp_path: Path) -> None:
    ASK[case["call"]](case["input"], case["expected"], tmp_path)


@pytest.mark.parametrize("case", cases("dialects.jsonl"))
def test_the_observed_runtime_case_is_decided_as_the_law_says(case: Case, tmp_path: Path) -> None:
    ASK[case["call"]](case["input"], case["expected"], tmp_path)


@pytest.mark.parametrize(
    ("file", "count", "applying"),
    [("seed-systems.jsonl", 378, 350), ("faults.jsonl", 103, 58), ("dialects.jsonl", 249, 24)],
)
def test_no_row_of_a_corpus_is_lost_or_left_out_without_a_reason(file: str, count: int, applying: int) -> None:
    found = rows(file)
    assert len({row["id"] for row in found}) == len(found) == count
    left_out = [row for row in found if not row.get("applies", True)]
    assert all(row["reason"] for row in left_out)
    assert len(found) - len(left_out) >= applying
