"""Files under edit: what is put is there, and taking it back leaves every byte as it was."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from extgate.applied.jsonc_text import MISSING, JsoncText
from extgate.applied.puts import Put, put_all, take_back
from extgate.applied.trees import Form, edit
from extgate.errors import WorkspaceError

COMMENTED = """// top
{
  // of permissions
  "permissions": { "allow": ["Read", /* x */ "Bash(ls:*)",], "deny": [] },
  "env": {"A": "1"}, // c
}
"""
TEXTS: list[tuple[Form, str]] = [
    ("json", COMMENTED),
    ("json", "{}\n"),
    ("json", '{"permissions":{"deny":["X"]}}'),
    ("json", '\ufeff{\r\n\t"a": 1\r\n}\r\n'),
    ("json", '{"permissions": {},}\n'),
    ("toml", '# c\nmodel = "x" # m\n\n[mcp_servers.a]\ncommand = "y"\n'),
    ("toml", ""),
    ("yaml", "# c\nmodel:\n  default: x  # m\nmcp_servers:\n  a: {command: y}\n"),
]
PUTS = (
    Put(keys=("permissions", "deny"), value=["Bash", "X"], how="union"),
    Put(keys=("permissions", "ask"), value=["W"], how="union"),
    Put(keys=("hooks", "Pre"), value=[{"matcher": "*", "hooks": [{"command": "c", "timeout": 60}]}], how="union"),
    Put(keys=("env", "A"), value="2"),
    Put(keys=("features", "shell"), value=False),
)


def parsed(text: str, form: Form) -> Any:
    if form == "toml":
        return tomllib.loads(text)
    return yaml.safe_load(text) if form == "yaml" else JsoncText(text, "f").get(())


@pytest.mark.parametrize(("form", "text"), TEXTS, ids=lambda value: repr(value)[:20])
def test_what_is_put_is_there_and_goes_without_a_trace(form: Form, text: str) -> None:
    editor = edit(text, form, "f")
    done = put_all(editor, PUTS)
    found = parsed(editor.text, form)
    assert {"Bash", "X"} <= set(found["permissions"]["deny"])
    assert (found["env"]["A"], found["features"]["shell"]) == ("2", False)
    assert found["hooks"]["Pre"][-1]["hooks"][0]["timeout"] == 60
    for line in text.splitlines():
        if line.startswith(("//", "#")):
            assert line in editor.text
    assert put_all(edit(editor.text, form, "f"), PUTS) == [], "a second time there is nothing to do"
    assert take_back(editor, done) == []
    assert editor.text == text


@pytest.mark.parametrize(("form", "text"), TEXTS[:1] + TEXTS[5:6] + TEXTS[7:], ids=lambda value: repr(value)[:20])
def test_what_others_put_meanwhile_stays(form: Form, text: str) -> None:
    editor = edit(text, form, "f")
    done = put_all(editor, PUTS)
    editor.append(("permissions", "deny"), ["Theirs"])
    editor.put(("env", "A"), "theirs")
    editor.put(("mine",), 1)
    again = edit(editor.text, form, "f")
    assert take_back(again, done) == ["env.A"]
    found = parsed(again.text, form)
    assert (found["permissions"]["deny"], found["env"]["A"], found["mine"]) == (["Theirs"], "theirs", 1)
    assert "hooks" not in found
    assert "features" not in found


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)
documents = st.dictionaries(st.text(max_size=6), values, max_size=4)


@given(documents, st.lists(st.text(max_size=6), min_size=1, max_size=3), values, st.sampled_from([None, 1, "\t"]))
def test_any_value_is_set_in_any_document_and_taken_out_again(
    document: dict[str, Any], keys: list[str], value: Any, indent: Any
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    editor = JsoncText(text, "f")
    try:
        done = put_all(editor, [Put(keys=tuple(keys), value=value)])
    except WorkspaceError:
        return  # something that is no mapping stands on the way
    assert editor.get(keys) == value
    assert json.loads(editor.text) == JsoncText(editor.text, "f").get(())
    assert take_back(editor, done) == []
    assert json.loads(editor.text) == document


@given(st.text(max_size=40))
def test_a_text_that_is_no_json_is_refused_or_read(text: str) -> None:
    try:
        found = JsoncText("{" + text + "}", "f").get(())
    except WorkspaceError:
        return
    assert isinstance(found, dict)


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', "[]", "{'a': 1}", "{a: 1}", '{"a": }', '{"a" 1}', "{} x", '{"a": tru}', "[" * 200]
)
def test_what_could_be_read_in_two_ways_is_not_edited(text: str) -> None:
    with pytest.raises(WorkspaceError):
        JsoncText(text, "f")


def test_a_value_in_the_way_is_told_and_left() -> None:
    with pytest.raises(WorkspaceError, match="no mapping"):
        put_all(edit('{"permissions": "x"}', "json", "f"), [Put(keys=("permissions", "deny"), value="y")])
    with pytest.raises(WorkspaceError, match="no list"):
        put_all(edit('{"deny": "Bash"}', "json", "f"), [Put(keys=("deny",), value=["Bash"], how="union")])
    assert JsoncText("{}", "f").get(("a", "b")) is MISSING
