"""Skills in folders: all that is found is loaded, in error, or reported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extgate.core.extension import Extension, Finding
from extgate.discover import skills as module
from extgate.discover.skills import SkillSource, find_skills, read_skill, skill_body
from extgate.errors import DiscoveryError

PLAIN = "---\nname: {name}\ndescription: Does {name}.\n---\nBody of {name}.\n"


def put(root: Path, name: str, text: str | bytes | None = None) -> Path:
    """Writes `root/name/SKILL.md` and returns it."""
    file = root / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    text = PLAIN.format(name=Path(name).name) if text is None else text
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def found(*roots: Path, names: tuple[str, ...] = ("project", "user")) -> tuple[dict[str, Extension], list[Finding]]:
    sources = [SkillSource(root=root, name=name) for root, name in zip(roots, names, strict=False)]
    skills, problems = find_skills(sources)
    return {skill.name: skill for skill in skills}, list(problems)


def one(root: Path, text: str | bytes) -> tuple[Extension | None, list[str]]:
    """The skill `pdf` of that text, and the codes of what was found."""
    put(root, "pdf", text)
    skills, problems = found(root)
    return skills.get("pdf"), [p.code for p in problems]


def test_a_skill_carries_name_source_category_digest_and_limits(tmp_path: Path) -> None:
    header = "name: review\ndescription: Reads code.\ncategory: ops\nallowed-tools: Read, Bash(git push:*)"
    file = put(tmp_path, "devops/review", f"---\n{header}\ndisable-model-invocation: true\n---\nBody\n")
    (skill,) = found(tmp_path)[0].values()
    assert (skill.id, skill.source, skill.category) == ("skill:devops/review", "project", "ops")
    assert (skill.declared_name, skill.description, skill.file) == ("review", "Reads code.", str(file))
    assert skill.facts == {
        "allowed_tools": ("Read", "Bash(git push:*)"),
        "disable_model_invocation": True,
        "folder": "devops",
    }
    assert skill.digest is not None
    assert len(skill.digest) == 64


def test_a_plain_skill_has_no_category_and_no_limits(tmp_path: Path) -> None:
    put(tmp_path, "pdf")
    skills, problems = found(tmp_path)
    assert problems == []
    assert skills["pdf"].category is None
    assert skills["pdf"].facts == {"allowed_tools": None, "disable_model_invocation": False, "folder": "default"}


@pytest.mark.parametrize(
    ("name", "folder"), [("two", "default"), ("b/two", "b"), ("a/b/two", "b")], ids=["below root", "one", "nested"]
)
def test_the_folder_above_a_skill_is_dialect_b_s_category(tmp_path: Path, name: str, folder: str) -> None:
    put(tmp_path, name)
    assert found(tmp_path)[0][name].facts["folder"] == folder


def test_a_skill_in_the_root_takes_the_root_s_name_and_is_reported(tmp_path: Path) -> None:
    root = tmp_path / "home" / "skills"
    put(root, ".", PLAIN.format(name="skills"))
    put(root, "pdf")
    skills, problems = found(root)
    assert sorted(skills) == ["pdf", "skills"]
    assert skills["skills"].facts["folder"] == "home"
    assert [p.code for p in problems] == ["EG221"]


def test_the_first_source_wins_and_the_hidden_skill_is_reported(tmp_path: Path) -> None:
    mine, theirs = put(tmp_path / "p", "pdf"), put(tmp_path / "u", "pdf", PLAIN.format(name="pdf") + "other")
    skills, problems = found(tmp_path / "p", tmp_path / "u")
    assert (skills["pdf"].source, skills["pdf"].file) == ("project", str(mine))
    assert [(p.code, p.file) for p in problems] == [("EG220", str(theirs))]


def test_a_broken_skill_still_hides_the_one_behind_it(tmp_path: Path) -> None:
    put(tmp_path / "p", "pdf", "---\nname: pdf\nallowed-tools: [Read\n---\n")
    put(tmp_path / "u", "pdf")
    skills, problems = found(tmp_path / "p", tmp_path / "u")
    assert skills == {}
    assert [p.code for p in problems] == ["EG204", "EG220"]


def test_names_equal_in_nfc_are_one_name(tmp_path: Path) -> None:
    put(tmp_path / "p", "caf\u00e9")
    put(tmp_path / "u", "cafe\u0301")
    skills, problems = found(tmp_path / "p", tmp_path / "u")
    assert len(skills) == 1
    assert [p.code for p in problems if p.code == "EG220"] == ["EG220"]


def test_the_same_root_twice_is_read_once(tmp_path: Path) -> None:
    put(tmp_path, "pdf")
    skills, problems = found(tmp_path, tmp_path)
    assert (list(skills), problems) == (["pdf"], [])


def test_a_root_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert found(tmp_path / "absent") == ({}, [])


def test_a_skill_folder_is_a_leaf_and_what_lies_inside_is_reported(tmp_path: Path) -> None:
    put(tmp_path, "a")
    inner = put(tmp_path, "a/b/c")
    skills, problems = found(tmp_path)
    assert list(skills) == ["a"]
    assert [(p.code, p.file) for p in problems] == [("EG223", str(inner))]


@pytest.mark.parametrize("vendor", ["node_modules", ".git", ".venv", "__pycache__", "site-packages", ".hidden"])
def test_vendor_and_hidden_folders_are_passed_over_aloud(tmp_path: Path, vendor: str) -> None:
    put(tmp_path, "a")
    first, second = put(tmp_path, f"{vendor}/pkg/x"), put(tmp_path, f"a/{vendor}/y")
    (tmp_path / "b" / vendor).mkdir(parents=True)
    skills, problems = found(tmp_path)
    assert list(skills) == ["a"]
    assert sorted((p.code, str(p.file)) for p in problems) == sorted([("EG222", str(first)), ("EG222", str(second))])


def test_skills_too_deep_are_reported(tmp_path: Path) -> None:
    at, below = "/".join("abcdefgh"), "/".join("abcdefghi")
    put(tmp_path / "one", at)
    deep = put(tmp_path / "two", below)
    assert list(found(tmp_path / "one")[0]) == [at]
    skills, problems = found(tmp_path / "two")
    assert skills == {}
    assert [(p.code, p.file) for p in problems] == [("EG224", str(deep))]


def test_a_source_of_too_many_folders_is_cut_aloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FOLDERS", 3)
    for name in "abcdef":
        put(tmp_path, name)
    walk = module._Walk(source=SkillSource(root=tmp_path, name="project"), budget=3)
    walk.run()
    assert len(walk.sightings) == 2
    assert [p.code for p in walk.problems] == ["EG229"]


def test_a_link_out_of_the_root_is_reported_and_not_followed(tmp_path: Path) -> None:
    put(tmp_path / "outside", "x")
    root = tmp_path / "skills"
    put(root, "a")
    (root / "s").symlink_to(tmp_path / "outside")
    skills, problems = found(root)
    assert list(skills) == ["a"]
    assert [(p.code, p.file) for p in problems] == [("EG225", str(root / "s"))]


def test_a_skill_file_that_links_out_of_the_root_is_in_error(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside", "x")
    (tmp_path / "skills" / "s").mkdir(parents=True)
    (tmp_path / "skills" / "s" / "SKILL.md").symlink_to(outside)
    skills, problems = found(tmp_path / "skills")
    assert skills == {}
    assert [p.code for p in problems] == ["EG201"]


def test_a_link_inside_the_root_is_an_alias_of_what_it_names(tmp_path: Path) -> None:
    put(tmp_path, "real/pdf")
    (tmp_path / "group").symlink_to(tmp_path / "real")
    skills, problems = found(tmp_path)
    assert list(skills) == ["real/pdf"]
    assert skills["real/pdf"].facts["aliases"] == ("group/pdf",)
    assert [p.code for p in problems] == ["EG226"]


def test_link_loops_end(tmp_path: Path) -> None:
    put(tmp_path, "a/b")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    skills, _ = found(tmp_path)
    assert list(skills) == ["a/b"]
    assert skills["a/b"].facts["aliases"] == ("a/up/a/b",)


def test_a_file_named_almost_like_a_skill_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "skill.md").write_text(PLAIN.format(name="a"))
    skills, problems = found(tmp_path)
    assert skills == {}
    assert [p.code for p in problems] == ["EG227"]


def test_a_folder_name_with_a_line_break_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "a\nb")
    skills, (only,) = found(tmp_path)
    assert (skills, only.code) == ({}, "EG207")
    assert "\n" not in only.message + str(only.file)


def test_a_folder_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    folder = os.path.join(os.fsencode(tmp_path), b"\xff\xfe")
    os.mkdir(folder)
    Path(os.fsdecode(folder), "SKILL.md").write_text("---\nname: x\ndescription: y\n---\n")
    skills, (only,) = found(tmp_path)
    assert (skills, only.code) == ({}, "EG207")
    str(only.file).encode("utf-8")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte-order mark"])
def test_encoding_mark_and_line_ends_change_nothing(tmp_path: Path, mark: bytes, end: str) -> None:
    text = "---\nname: pdf\ndescription: Reads\ncategory: docs\nallowed-tools:\n  - Read\n---\nBody\n"
    skill, codes = one(tmp_path, mark + text.replace("\n", end).encode())
    assert codes == []
    assert skill is not None
    assert (skill.declared_name, skill.category, skill.facts["allowed_tools"]) == ("pdf", "docs", ("Read",))
    assert skill_body(skill) == "Body\n"


def test_a_colon_in_the_description_is_mended_with_a_report(tmp_path: Path) -> None:
    skill, codes = one(tmp_path, "---\nname: pdf\ndescription: work: writing\nallowed-tools: Read\n---\nbody")
    assert codes == ["EG210"]
    assert skill is not None
    assert (skill.description, skill.facts["allowed_tools"]) == ("work: writing", ("Read",))


@pytest.mark.parametrize(
    "header",
    [
        "name: pdf\nallowed-tools: Bash: git",
        "name: pdf\ndescription: a: b\nallowed-tools: [Read",
        "name: pdf\ndescription: a: b\n  and: more\nallowed-tools: Read",
        "name: pdf\n\tdescription: x",
        "name: pdf\nname: pdf\nallowed-tools: Read",
        "name: pdf\ndescription: *x\nother: *y",
        "- name: pdf\n- allowed-tools: Read",
        "just text",
        "name: pdf\n...\nallowed-tools: Read",
    ],
)
def test_a_header_that_cannot_be_read_keeps_the_skill_out(tmp_path: Path, header: str) -> None:
    skill, codes = one(tmp_path, f"---\n{header}\n---\nbody")
    assert (skill, codes) == (None, ["EG204"])


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: pdf\nallowed-tools: Read\n",
        "\n---\nname: pdf\nallowed-tools: Read\n---\n",
        "  ---\nname: pdf\n---\n",
        "\u200b---\nname: pdf\n---\n",
        "----\nname: pdf\n----\n",
    ],
    ids=["never closed", "blank line first", "indented", "zero-width first", "four dashes"],
)
def test_a_header_out_of_place_keeps_the_skill_out(tmp_path: Path, text: str) -> None:
    skill, codes = one(tmp_path, text)
    assert (skill, codes) == (None, ["EG204"])


@pytest.mark.parametrize(
    "text",
    [
        '---\nname: pdf\ndescription: "a\nallowed-tools: Read"\n---\n',
        "---\nname: pdf\ndescription: 'a\ndisable-model-invocation: true\nx'\n---\n",
        "name: pdf\nallowedTools: Read\n\nBody",
        "# Title\n\ndisable-model-invocation: true\n",
    ],
    ids=["in double quotes", "in single quotes", "no fences", "below a title"],
)
def test_a_limit_that_the_header_would_lose_keeps_the_skill_out(tmp_path: Path, text: str) -> None:
    skill, codes = one(tmp_path, text)
    assert (skill, codes) == (None, ["EG206"])


@pytest.mark.parametrize(
    "line",
    [
        "category: [a, b]",
        "category: 3",
        "category: yes",
        "category:",
        "category: {a: b}",
        "allowed-tools: 7",
        "allowed-tools: {Read: true}",
        "allowed-tools: [Read, 1]",
        "allowed-tools: Bash(git",
        "allowed-tools: Bash)git(",
        "disable-model-invocation: maybe",
        "disable-model-invocation:",
        "disable-model-invocation: [true]",
        "name: [pdf]",
        "description: {a: b}",
        "allowed_tools: Read\nallowed-tools: Write",
    ],
)
def test_a_value_of_the_wrong_type_keeps_the_skill_out(tmp_path: Path, line: str) -> None:
    skill, codes = one(tmp_path, f"---\n{line}\nlicense: MIT\n---\n")
    assert skill is None
    assert codes == ["EG205"]


def test_the_error_names_the_line(tmp_path: Path) -> None:
    put(tmp_path, "pdf", "---\nname: pdf\ndescription: x\ncategory: 3\n---\n")
    (only,) = found(tmp_path)[1]
    assert (only.line, only.severity) == (4, "error")
    assert only.message == "`category`: expected one text, got `3`"


@pytest.mark.parametrize(
    ("line", "tools"),
    [
        ("allowed-tools:", ()),
        ("allowed-tools: []", ()),
        ("allowed-tools: ''", ()),
        ("allowed-tools: Read Write", ("Read", "Write")),
        ("allowed-tools: Read,  Bash(npm run *, x)", ("Read", "Bash(npm run *, x)")),
        ("allowed-tools: [ Read , 'Bash(a, b)']", ("Read", "Bash(a, b)")),
        ("allowed-tools: |\n  Read\n  Write", ("Read", "Write")),
        ("allowedTools: Read", ("Read",)),
        ("ALLOWED_TOOLS: Read", ("Read",)),
        ("allowed\u2011tools: Read", ("Read",)),
    ],
)
def test_allowed_tools_in_every_way_of_writing_it(tmp_path: Path, line: str, tools: tuple[str, ...]) -> None:
    skill, codes = one(tmp_path, f"---\nname: pdf\ndescription: x\n{line}\n---\n")
    assert skill is not None
    assert skill.facts["allowed_tools"] == tools
    assert codes == ([] if line.startswith("allowed-tools") else ["EG215"])


@pytest.mark.parametrize(("word", "value"), [("true", True), ("'yes'", True), ("'false'", False), ("off", False)])
def test_disable_model_invocation_reads_plain_words(tmp_path: Path, word: str, value: bool) -> None:
    skill, _ = one(tmp_path, f"---\nname: pdf\ndescription: x\ndisable-model-invocation: {word}\n---\n")
    assert skill is not None
    assert skill.facts["disable_model_invocation"] is value


def test_a_file_without_header_takes_its_folder_s_name(tmp_path: Path) -> None:
    skill, codes = one(tmp_path, "# PDF\n\nHow to read them.\n")
    assert codes == ["EG211"]
    assert skill is not None
    assert (skill.name, skill.declared_name, skill.category) == ("pdf", None, None)
    assert skill_body(skill) == "# PDF\n\nHow to read them.\n"


@pytest.mark.parametrize("header", ["", "# only a comment\n", "license: MIT\n"])
def test_missing_name_and_description_are_reported(tmp_path: Path, header: str) -> None:
    skill, codes = one(tmp_path, f"---\n{header}---\nbody")
    assert skill is not None
    assert codes == ["EG212", "EG214"]


def test_a_declared_name_that_differs_is_reported_and_kept(tmp_path: Path) -> None:
    skill, codes = one(tmp_path, "---\nname: k-eng\ndescription: x\n---\n")
    assert skill is not None
    assert (skill.name, skill.declared_name, codes) == ("pdf", "k-eng", ["EG213"])


@pytest.mark.parametrize("written", ["007", "yes", "1.50", "2026-11-30", "0x10"])
def test_a_name_is_taken_as_it_is_written(tmp_path: Path, written: str) -> None:
    skill, _ = one(tmp_path, f"---\nname: {written}\ndescription: x\n---\n")
    assert skill is not None
    assert skill.declared_name == written


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)), "EG203"),
        (b"---\nname: pdf\n---\nbody \xff\xfe", "EG203"),
        (b"---\nname: pdf\n---\n\0", "EG203"),
        (b"\xff\xfe-\0-\0-\0", "EG203"),
        (b"---\nname: a\x07b\n---\n", "EG204"),
        (b"---\nname: pdf\ndescription: x\n---\n" + b"x" * (1024 * 1024), "EG202"),
    ],
    ids=["binary", "bad utf-8 in the body", "NUL", "utf-16", "control character", "too large"],
)
def test_bytes_that_are_no_skill_are_in_error(tmp_path: Path, data: bytes, code: str) -> None:
    skill, codes = one(tmp_path, data)
    assert (skill, codes) == (None, [code])


def test_an_alias_bomb_in_a_header_is_an_error(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    skill, codes = one(tmp_path, "---\n" + "\n".join(lines) + "\n---\n")
    assert (skill, codes) == (None, ["EG204"])


def test_a_pipe_in_a_skill_file_s_place_hangs_nothing(tmp_path: Path) -> None:
    (tmp_path / "pdf").mkdir()
    os.mkfifo(tmp_path / "pdf" / "SKILL.md")
    skills, problems = found(tmp_path)
    assert (skills, [p.code for p in problems]) == ({}, ["EG201"])


def test_a_folder_or_dead_link_in_a_skill_file_s_place_is_in_error(tmp_path: Path) -> None:
    (tmp_path / "a" / "SKILL.md").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "SKILL.md").symlink_to(tmp_path / "nowhere")
    skills, problems = found(tmp_path)
    assert (skills, [p.code for p in problems]) == ({}, ["EG201", "EG201"])


def test_files_and_folders_without_permission_are_in_error(tmp_path: Path) -> None:
    file = put(tmp_path, "a")
    put(tmp_path, "b/c")
    put(tmp_path, "d")
    file.chmod(0)
    (tmp_path / "b").chmod(0)
    with _as_ordinary_user(tmp_path):
        skills, problems = found(tmp_path)
    (tmp_path / "b").chmod(0o755)
    assert list(skills) == ["d"]
    assert sorted(p.code for p in problems) == ["EG201", "EG228"]


class _as_ordinary_user:
    """Reads without root's powers where the tests run as root."""

    def __init__(self, path: Path) -> None:
        self.is_root = os.geteuid() == 0
        for folder in (path, *path.parents)[:-2] if self.is_root else ():
            folder.chmod(folder.stat().st_mode | 0o055)

    def __enter__(self) -> None:
        if self.is_root:
            os.seteuid(65534)

    def __exit__(self, *_: object) -> None:
        if self.is_root:
            os.seteuid(0)


def test_the_body_is_read_again_and_a_changed_file_is_refused(tmp_path: Path) -> None:
    file = put(tmp_path, "pdf")
    skill = found(tmp_path)[0]["pdf"]
    assert skill_body(skill) == "Body of pdf.\n"
    assert read_skill(skill) == PLAIN.format(name="pdf")
    file.write_text(PLAIN.format(name="pdf") + "more")
    with pytest.raises(DiscoveryError, match="has changed since it was judged"):
        skill_body(skill)
    file.unlink()
    with pytest.raises(DiscoveryError, match="is not there"):
        skill_body(skill)


def test_what_is_no_skill_has_no_body() -> None:
    with pytest.raises(DiscoveryError, match="has no file"):
        skill_body(Extension(kind="tool", name="bash"))


LINES = st.one_of(
    st.sampled_from(
        [
            b"---",
            b"name: pdf",
            b"description: a: b",
            b'description: "x',
            b"allowed-tools: Read",
            b"allowed-tools: [Read",
            b"  - Read",
            b"disable-model-invocation: true",
            b"category: ops",
            b"category: [a]",
            b"\xef\xbb\xbf---",
            b"\t",
            b"",
            b"? x",
            b"*a: &a b",
            b"...",
            b"name: |",
            b"x'",
        ]
    ),
    st.binary(max_size=12),
)
FILES = st.one_of(
    st.binary(max_size=200),
    st.tuples(st.lists(LINES, max_size=10), st.sampled_from([b"\n", b"\r\n", b"\r"])).map(lambda p: p[1].join(p[0])),
)


@given(FILES)
def test_found_is_loaded_plus_in_error_for_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    root = tmp_path_factory.getbasetemp() / "fuzz"
    put(root, "pdf", data)
    skills, problems = found(root)
    errors = [p for p in problems if p.severity == "error"]
    assert len(skills) + len(errors) == 1
    assert all(p.file == str(root / "pdf" / "SKILL.md") for p in problems)
    assert all("\n" not in p.message for p in problems)


@given(FILES)
def test_no_limit_at_the_start_of_a_line_is_ever_lost(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    root = tmp_path_factory.getbasetemp() / "fuzz"
    put(root, "pdf", data)
    skill = found(root)[0].get("pdf")
    if skill is None:
        return
    body = skill_body(skill)
    text = data.removeprefix(b"\xef\xbb\xbf").decode().replace("\r\n", "\n").replace("\r", "\n")
    header = text[: len(text) - len(body)]
    if any(line.startswith("allowed-tools:") for line in header.split("\n")):
        assert skill.facts["allowed_tools"] is not None
    if any(line.startswith("disable-model-invocation:") for line in header.split("\n")):
        assert skill.facts["disable_model_invocation"] is True


NAMES = st.sampled_from(["a", "b", "a/b", "a/b/c", ".git/x", "node_modules/y", "c/node_modules/z", "d/e/f", "."])


@given(st.lists(st.tuples(NAMES, FILES), max_size=6))
def test_every_skill_file_of_a_tree_has_exactly_one_fate(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[str, bytes]]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    paths = {str(put(root, name, data)) for name, data in files}
    skills, problems = found(root)
    passed_over = [p for p in problems if p.code in ("EG220", "EG222", "EG223", "EG224")]
    errors = [p for p in problems if p.severity == "error"]
    fates = [s.file for s in skills.values()] + [p.file for p in passed_over + errors]
    assert sorted(map(str, fates)) == sorted(paths)


def test_a_linked_header_is_another_name_and_no_way_around_a_deny(tmp_path: Path) -> None:
    real = tmp_path / "devops" / "a"
    real.mkdir(parents=True)
    (real / "SKILL.md").write_text("---\nname: a\ndescription: d\n---\nsecret\n")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "SKILL.md").symlink_to("../devops/a/SKILL.md")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "SKILL.md").symlink_to("/etc/hostname")
    skills, problems = find_skills([SkillSource(root=tmp_path, name="project")])
    assert [(s.name, s.facts["aliases"]) for s in skills] == [("devops/a", ("link",))]
    assert [p.code for p in problems if p.file and "out" in p.file] == ["EG201"]
