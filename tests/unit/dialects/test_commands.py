"""Shell lines, paths and hosts as rules on arguments read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extgate.dialects.arguments import Host, Paths
from extgate.dialects.commands import MAX_LINE, Commands, literal

DENYING, ALLOWING = Commands(), Commands(is_strict=True)


@pytest.mark.parametrize(
    "line",
    [
        "rm x",
        "  rm x",
        "ls; rm x",
        "ls && rm x",
        "ls || rm x",
        "ls | rm x",
        "ls & rm x",
        "ls\nrm x",
        "FOO=1 rm x",
        "A=1 B=2 rm x",
        "timeout 5 rm x",
        "sudo -u root rm x",
        "env A=1 rm x",
        "nohup nice rm x",
        "/bin/rm x",
        "r''m x",
        '"rm" x',
        r"\rm x",
        "(rm x)",
        "{ rm x; }",
        "$(rm x)",
        "echo $(rm x)",
        'echo "$(rm x)"',
        "echo `rm x`",
        "cat <(rm x)",
        "if true; then rm x; fi",
        "for f in a; do rm x; done",
        "bash -c 'rm x'",
        'bash -lc "ls; rm x"',
        "sh -c \"bash -c 'rm x'\"",
        "eval rm x",
        "xargs rm x",
        "find . -exec rm x \\;",
        "! rm x",
    ],
)
def test_a_denied_command_is_found_however_it_is_wrapped(line: str) -> None:
    found = DENYING(line)
    assert found is None or "rm x" in [" ".join(text.split()[:2]) for text in found]


@pytest.mark.parametrize(
    "line", ["$CMD x", "a 'b", 'a "b', "r?m x", "/bin/r[m] x", "x" * (MAX_LINE + 1), "a\0b", 7, []]
)
def test_what_cannot_be_told_is_nothing_to_either_side(line: object) -> None:
    assert DENYING(line) is None
    assert ALLOWING(line) is None or line in ("r?m x", "/bin/r[m] x")


@pytest.mark.parametrize(
    "line",
    [
        "git log > x",
        "git log >> x",
        "git $(rm x)",
        "git `rm x`",
        "(git log)",
        "git log <<E\nx\nE",
        "X=1 git log",
        "$G log",
    ],
)
def test_a_line_that_does_more_than_its_commands_say_is_allowed_by_no_prefix(line: str) -> None:
    found = ALLOWING(line)
    assert found is None or not all(text.startswith("git ") for text in found)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("git log", ("git log",)),
        ("git log 2>&1 | head", ("git log", "head")),
        ("git log > /dev/null", ("git log",)),
        ("timeout 5 git log", ("git log",)),
        ("NO_COLOR=1 git log", ("git log",)),
        ("git commit -m 'a; b'", ("git commit -m a; b",)),
        ("ls # rm x", ("ls",)),
        (["git", "log"], ("git log",)),
    ],
)
def test_plain_commands_are_told_one_by_one(line: object, expected: tuple[str, ...]) -> None:
    assert ALLOWING(line) == expected


@given(st.text(st.sampled_from("rm x;&|'\"`$()\\\n>A="), max_size=30))
def test_a_line_is_read_or_not_and_never_breaks(line: str) -> None:
    for reading in (DENYING, ALLOWING):
        found = reading(line)
        assert found is None or all(isinstance(text, str) for text in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("src/a", "/w/src/a"),
        ("./src/../b", "/w/b"),
        ("/x//y/.", "/x/y"),
        ("../etc", "/etc"),
        ("~/k", "/h/k"),
        (r"src\a", "/w/src/a"),
        (r"C:\x\..\y", "C:/y"),
    ],
)
def test_a_path_is_absolute_and_without_dots(text: str, expected: str) -> None:
    assert Paths("/w", "/h")(text) == (expected,)


@pytest.mark.parametrize(
    ("url", "expected"),
    [("https://A.b.C./x", "a.b.c"), ("x.y/z", "x.y"), ("http://u:p@h:1/", "h"), ("http://[::1", None), (7, None)],
)
def test_a_host_is_lower_case_and_alone(url: object, expected: str | None) -> None:
    assert Host()(url) == ((expected,) if expected else None)


@given(st.text("a*?[]", max_size=6), st.text("a*?[]", max_size=6))
def test_a_literal_matches_itself_alone(text: str, other: str) -> None:
    from extgate.core.patterns import matches

    assert matches(text, literal(text)) or text != text.strip()
    assert matches(other, literal(text)) == (other == text)
