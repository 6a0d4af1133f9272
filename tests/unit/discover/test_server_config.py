"""`.mcp.json` read into specs: forms, variables, and errors that stay with their server."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extgate.core.extension import Finding
from extgate.discover.mcp_servers import ServerSpec, load_servers, merge_servers, read_servers

HERE = Path("/project")


def read(servers: Any, **environ: str) -> tuple[list[ServerSpec], list[Finding]]:
    text = json.dumps({"mcpServers": servers}, indent=1)
    specs, findings = read_servers(text, ".mcp.json", directory=HERE, environ=environ)
    return list(specs), list(findings)


def one(entry: Any, **environ: str) -> tuple[ServerSpec, list[str]]:
    (spec,), findings = read({"s": entry}, **environ)
    return spec, [f.code for f in findings]


def test_a_command_with_all_its_keys() -> None:
    entry = {"command": "npx", "args": ["-y", "x"], "env": {"A": "1", "N": 7, "B": True}, "cwd": "sub"}
    spec, codes = one({**entry, "type": "stdio"})
    assert codes == []
    assert (spec.transport, spec.command, spec.args) == ("stdio", "npx", ("-y", "x"))
    assert (spec.env, spec.cwd) == ({"A": "1", "N": "7", "B": "true"}, "/project/sub")
    assert (spec.file, spec.line, spec.source, spec.shown) == (".mcp.json", 3, "project", "npx -y x")


def test_openprogram_s_form_is_read() -> None:
    entry = {"type": "local", "command": ["npx", "-y", "${P:-x}"], "enabled": True, "timeout_seconds": 30}
    text = json.dumps({"servers": {"s": entry}})
    (spec,), findings = read_servers(text, "mcp_servers.json", directory=HERE, environ={})
    assert (spec.command, spec.args, spec.shown, findings) == ("npx", ("-y", "x"), "npx -y '${P:-x}'", ())


def test_a_command_starts_in_the_project_by_default() -> None:
    assert one({"command": "x"})[0].cwd == "/project"
    assert one({"command": "x", "cwd": "/elsewhere"})[0].cwd == "/elsewhere"


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"url": "http://h/mcp"}, "http"),
        ({"url": "https://h/sse"}, "sse"),
        ({"url": "https://h/sse?x=1"}, "sse"),
        ({"url": "https://h/sse", "type": "http"}, "http"),
        ({"url": "https://h/x", "type": "sse"}, "sse"),
        ({"url": "https://h/x", "transport": "streamable_http"}, "http"),
        ({"url": "https://h/x", "type": "streamableHttp"}, "http"),
        ({"command": "x", "transport": "stdio"}, "stdio"),
    ],
)
def test_the_transport_is_what_is_said_or_seen(entry: dict[str, str], transport: str) -> None:
    spec, codes = one(entry)
    assert (spec.transport, codes, spec.error) == (transport, [], None)


def test_headers_are_kept_for_an_address() -> None:
    spec, _ = one({"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${T}"}}, T="tok")
    assert (spec.headers, spec.shown) == ({"Authorization": "Bearer tok"}, "https://h/mcp")
    assert "tok" in spec.secrets
    assert "tok" not in repr(spec)


def test_variables_are_filled_in_everywhere() -> None:
    entry = {"command": "${C}", "args": ["--k=${K:-none}", "${env:K}", "$K"], "env": {"E": "${K}${E:-}"}, "cwd": "${D}"}
    spec, codes = one(entry, C="run", K="v", D="/d")
    assert codes == []
    assert (spec.command, spec.args, spec.env, spec.cwd) == ("run", ("--k=v", "v", "$K"), {"E": "v"}, "/d")
    assert spec.shown == "'${C}' '--k=${K:-none}' '${env:K}' '$K'"


def test_a_default_stands_for_an_unset_and_for_an_empty_variable() -> None:
    assert one({"command": "x", "args": ["${K:-d}"]})[0].args == ("d",)
    assert one({"command": "x", "args": ["${K:-d}"]}, K="")[0].args == ("d",)
    assert one({"command": "x", "args": ["${K}"]}, K="")[0].args == ("",)


@pytest.mark.parametrize("text", ["${K}", "a${K}b", "${input:key}", "${workspaceFolder:x}", "${}", "${K-d}"])
@pytest.mark.parametrize("key", ["args", "env", "cwd", "command", "url", "headers"])
def test_a_variable_that_is_not_set_fails_its_server_alone(text: str, key: str) -> None:
    base: dict[str, Any] = {"url": "https://h"} if key in ("url", "headers") else {"command": "x"}
    value: Any = [text] if key == "args" else {"A": text} if key in ("env", "headers") else text
    specs, (found,) = read({"bad": {**base, key: value}, "good": {"command": "y"}})
    assert [spec.error is None for spec in specs] == [False, True]
    assert (found.code, found.severity, found.line) == ("EG303", "error", 3)


@pytest.mark.parametrize(
    "entry",
    [
        {},
        [],
        None,
        "npx x",
        {"command": "x", "url": "https://h"},
        {"command": ""},
        {"command": None},
        {"command": []},
        {"command": [""]},
        {"command": ["x", 1]},
        {"command": "x", "args": "y"},
        {"command": "x", "args": [1]},
        {"command": "x", "args": None},
        {"command": "x", "env": ["A=1"]},
        {"command": "x", "env": {"A": None}},
        {"command": "x", "env": {"A": []}},
        {"command": "x", "env": {"A=B": "1"}},
        {"command": "x", "env": {"": "1"}},
        {"command": "x\0y"},
        {"command": "x", "args": ["a\0b"]},
        {"command": "x", "cwd": 3},
        {"command": "x", "type": "http"},
        {"command": "x", "type": "carrier-pigeon"},
        {"url": "https://h", "type": "stdio"},
        {"url": "ftp://h"},
        {"url": "h/mcp"},
        {"url": "https://"},
        {"url": "https://h:99999/"},
        {"url": "https://h/a b"},
        {"url": 5},
        {"url": "https://h", "headers": {"A": "x\r\nB: y"}},
        {"url": "https://h", "headers": {"A b": "x"}},
        {"command": "x", "include": "a"},
        {"command": "x", "exclude": ["a"], "excludeTools": ["b"]},
    ],
)
def test_an_entry_of_the_wrong_shape_fails_its_server_alone(entry: Any) -> None:
    specs, findings = read({"bad": entry, "good": {"command": "y"}})
    assert [spec.name for spec in specs] == ["bad", "good"]
    assert specs[0].error
    assert specs[1].error is None
    assert [f.code for f in findings] == ["EG302"]


@pytest.mark.parametrize(
    ("entry", "is_off"),
    [
        ({"disabled": True}, True),
        ({"disabled": False}, False),
        ({"enabled": False}, True),
        ({"enabled": True}, False),
        ({"enabled": True, "disabled": True}, True),
        ({"enabled": "no"}, True),
        ({"disabled": "false"}, True),
        ({"disabled": None}, True),
    ],
)
def test_what_does_not_clearly_stay_on_is_off(entry: dict[str, Any], is_off: bool) -> None:
    assert one({"command": "x", **entry})[0].is_disabled is is_off


def test_a_key_without_effect_is_a_finding() -> None:
    specs, findings = read({"s": {"command": "x", "timout": 5, "headers": {}, "description": "d"}})
    assert specs[0].error is None
    assert [(f.code, f.line) for f in findings] == [("EG304", 5), ("EG304", 6)]


def test_include_and_exclude_by_any_client_s_word() -> None:
    spec, codes = one({"command": "x", "includeTools": ["a"], "disabledTools": ["b"]})
    assert (spec.include, spec.exclude, codes) == (("a",), ("b",), [])
    assert one({"command": "x"})[0].include is None
    assert one({"command": "x", "include": []})[0].include == ()


@pytest.mark.parametrize("name", ["", "a\u200bb", "a\nb", "a\x1b[1m"])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    specs, findings = read({name: {"command": "x"}, "good": {"command": "y"}})
    assert [spec.name for spec in specs] == ["good"]
    assert [f.code for f in findings] == ["EG306"]
    assert findings[0].message.isprintable()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", 1),
        ("", 1),
        ("[]", 1),
        ('{"mcpservers": {}}', 1),
        ('{"mcpServers": []}', 1),
        ('{"mcpServers": null}', 1),
        ('{"mcpServers": {"a": {},\n "a": {}}}', 2),
    ],
)
def test_a_file_that_cannot_be_read_is_one_error_and_no_server(text: str, line: int) -> None:
    specs, (found,) = read_servers(text, ".mcp.json", directory=HERE, environ={})
    assert specs == ()
    assert (found.code, found.severity, found.line) == ("EG301", "error", line)


def test_an_empty_object_holds_no_server() -> None:
    assert read_servers("{}", ".mcp.json", directory=HERE, environ={}) == ((), ())


def test_of_one_name_in_two_files_the_first_stays(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "one"}}}')
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"a": {"command": "two"}, "b": {"command": "three"}}}')
    read_files = [load_servers(tmp_path / name, tmp_path, environ={}) for name in (".mcp.json", "mcp.json")]
    specs, (found,) = merge_servers(*(specs for specs, _ in read_files))
    assert [(s.name, s.command, s.cwd) for s in specs] == [("a", "one", str(tmp_path)), ("b", "three", str(tmp_path))]
    assert (found.code, found.file) == ("EG305", str(tmp_path / "mcp.json"))


def test_a_file_that_is_not_there_has_no_servers(tmp_path: Path) -> None:
    assert load_servers(tmp_path / ".mcp.json", tmp_path, environ={}) == ((), ())


def test_a_bare_mapping_of_servers_is_read(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"a": {"command": "x"}, "b": {"url": "https://h"}}')
    specs, findings = load_servers(tmp_path / ".mcp.json", tmp_path, environ={})
    assert ([s.name for s in specs], findings) == (["a", "b"], ())


@pytest.mark.parametrize("data", [b"\xff\xfe{\0}\0", b"x" * (1024 * 1024 + 1)], ids=["not UTF-8", "too large"])
def test_a_file_of_the_wrong_kind_is_an_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / ".mcp.json").write_bytes(data)
    specs, (found,) = load_servers(tmp_path / ".mcp.json", tmp_path, environ={})
    assert (specs, found.code) == ((), "EG301")


def test_names_equal_in_nfc_clash() -> None:
    spec = one({"command": "x"})[0]
    kept, findings = merge_servers([replace(spec, name="caf\u00e9")], [replace(spec, name="cafe\u0301")])
    assert (len(kept), [f.code for f in findings]) == (1, ["EG305"])


BASE = {"command": "x", "args": ["a"], "env": {"K": "${T}"}, "cwd": "d"}


@pytest.mark.parametrize(
    "change",
    [
        {"command": "y"},
        {"args": ["b"]},
        {"args": []},
        {"env": {"K": "v"}},
        {"env": {"L": "${T}"}},
        {"env": {}},
        {"cwd": "e"},
    ],
)
def test_whatever_decides_what_runs_changes_the_digest(change: dict[str, Any]) -> None:
    assert one({**BASE, **change}, T="1")[0].digest != one(BASE, T="1")[0].digest


def test_name_plugin_and_folder_change_the_digest() -> None:
    spec = one(BASE, T="1")[0]
    changed = [replace(spec, name="t"), replace(spec, source="plugin:p"), replace(spec, cwd="/else")]
    assert len({spec.digest, *(other.digest for other in changed)}) == 4


def test_a_url_and_its_headers_change_the_digest() -> None:
    entries: list[dict[str, Any]] = [
        {"url": "https://h/mcp"},
        {"url": "https://i/mcp"},
        {"url": "https://h/mcp", "type": "sse"},
        {"url": "https://h/mcp", "headers": {"A": "b"}},
        {"url": "https://h/mcp", "headers": {"A": "${T}"}},
    ]
    assert len({one(entry, T="b")[0].digest for entry in entries}) == 5


def test_a_new_token_is_no_new_server_but_a_new_command_is() -> None:
    assert one(BASE, T="1")[0].digest == one(BASE, T="2")[0].digest
    by_variable = {"command": "${C}"}
    assert one(by_variable, C="safe")[0].digest != one(by_variable, C="evil")[0].digest


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ENTRIES = st.dictionaries(
    st.sampled_from(["command", "args", "env", "cwd", "url", "headers", "type", "disabled", "include", "zzz"]),
    JSON_VALUES | st.sampled_from(["x", "https://h", "${A}", ["a"], {"k": "v"}]),
)


@given(st.dictionaries(st.text(max_size=4), ENTRIES | JSON_VALUES, max_size=4))
def test_every_server_of_any_file_is_a_spec_or_an_error(servers: dict[str, Any]) -> None:
    specs, findings = read(servers)
    refused = [f for f in findings if f.code == "EG306"]
    assert len(specs) + len(refused) == len(servers)
    in_error = [f for f in findings if f.code in ("EG302", "EG303")]
    assert len(in_error) == sum(spec.error is not None for spec in specs)
    assert all(spec.command or spec.url for spec in specs if spec.error is None)
