"""Real servers over stdio, well-behaved and not: states, whole lists, bounds, and nobody left behind."""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from extgate.discover import mcp_servers
from extgate.discover.mcp_servers import Limits, Progress, ServerSpec
from extgate.discover.mcp_watch import server_environment
from tests.unit.discover.servers import FIXTURE, LIMITS, fixture, run, run_one


def test_all_pages_of_every_list_are_read() -> None:
    server, extensions, findings = run_one(tools=7, resources=5, templates=4, prompts=3, page=2)
    assert (server.state, server.error, server.instructions) == ("connected", None, "Use with care.")
    counts = [sum(e.kind == kind for e in extensions) for kind in ("mcp_tool", "mcp_resource", "mcp_prompt")]
    assert counts == [7, 9, 3]
    assert findings == []


def test_a_server_tells_its_version_and_protocol() -> None:
    server = run_one(tools=1, spec={"file": "x/.mcp.json", "line": 4})[0]
    facts = dict(server.facts)
    assert isinstance(facts.pop("seconds"), float)
    assert facts == {
        "transport": "stdio",
        "file": "x/.mcp.json",
        "line": 4,
        "version": "1.2.3",
        "protocol": "2025-06-18",
    }


def test_a_tool_carries_schema_hints_and_a_digest_of_its_definition() -> None:
    _, (tool,), _ = run_one(tools=1, spec={"source": "plugin:x"})
    assert (tool.id, tool.server, tool.source) == ("mcp_tool:demo/tool_0", "demo", "plugin:x")
    assert tool.description == "Does tool_0."
    assert tool.facts["schema"] == {"type": "object", "properties": {"x": {"default": None}}}
    assert tool.facts["annotations"] == {"readOnlyHint": True}
    definition = {
        "name": "tool_0",
        "description": "Does tool_0.",
        "inputSchema": tool.facts["schema"],
        "annotations": {"readOnlyHint": True},
    }
    text = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    assert tool.digest == hashlib.sha256(text.encode()).hexdigest()


def test_resources_are_named_by_uri_and_templates_are_marked() -> None:
    _, (plain, template), _ = run_one(resources=1, templates=1)
    assert (plain.name, plain.facts) == ("file:///r0", {"title": "r0"})
    assert (template.name, template.facts) == ("file:///{id}/0", {"title": "T0", "template": True})


def test_a_prompt_carries_its_arguments() -> None:
    _, (prompt,), _ = run_one(prompts=1)
    assert prompt.facts == {"arguments": [{"name": "topic", "required": True}]}


def test_a_list_that_is_not_announced_is_not_asked_for() -> None:
    server, extensions, findings = run_one(bare=True, tools=3)
    assert (server.state, extensions, findings) == ("connected", [], [])


def test_an_item_listed_twice_is_kept_once_and_reported() -> None:
    _, extensions, findings = run_one(tools=2, twice=True)
    assert [e.name for e in extensions] == ["tool_0", "tool_1"]
    assert [f.code for f in findings] == ["EG312"]


def test_malformed_items_are_left_out_and_told_and_the_rest_is_kept() -> None:
    server, extensions, findings = run_one(tools=2, malformed=True)
    assert server.state == "connected"
    assert [e.name for e in extensions] == ["tool_0", "tool_1"]
    assert [f.code for f in findings] == ["EG317"] * 5
    assert "`bad`, whose `inputSchema` is no object" in findings[0].message


FAILURES: list[tuple[str, dict[str, Any], str]] = [
    ("a looping cursor", {"tools": 4, "page": 2, "loop": True}, "lists its tools in a circle"),
    ("pages without end", {"tools": 1, "circle": True}, "lists its tools on more than 20 pages"),
    ("fifty thousand tools", {"tools": 50_000, "page": 5_000}, "lists more than 10,000 tools"),
    ("fifty thousand tools on one page", {"tools": 50_000}, "sent a line of more than 4,194,304 bytes"),
    ("resources without end", {"resources": 4, "page": 2, "loop": True}, "lists its resources in a circle"),
    ("one endless line", {"endless": True}, "sent a line of more than 4,194,304 bytes"),
    ("garbage", {"noise": 5_000}, "prints text that is no message, such as `noise 0`"),
    ("a flood of messages", {"flood": 20_000}, "sent more than 10,000 messages"),
    (
        "an error for its tools",
        {"fail": {"tools/list": -32603}},
        "refused with `no tools/list` (-32603) on `tools/list`",
    ),
    ("an error for initialize", {"fail": {"initialize": -32000}}, "on `initialize`"),
    ("an end before initialize", {"die": "initialize"}, "exit code 3; it logged: fatal: no database"),
    (
        "an end before its tools",
        {"die": "tools/list"},
        "closed the connection on `tools/list`; it ended with exit code 3",
    ),
    ("an end before its prompts", {"tools": 1, "die": "prompts/list"}, "closed the connection on `prompts/list`"),
]


@pytest.mark.parametrize(("flags", "error"), [f[1:] for f in FAILURES], ids=[f[0] for f in FAILURES])
def test_a_server_that_misbehaves_fails_with_its_reason_and_offers_nothing(flags: dict[str, Any], error: str) -> None:
    server, extensions, findings = run_one(options={"limits": replace(LIMITS, pages=20)}, **flags)
    assert server.state == "failed"
    assert error in str(server.error)
    assert extensions == []
    assert [f.code for f in findings] == ["EG310"]


@pytest.mark.parametrize("method", ["initialize", "tools/list", "prompts/list"])
def test_a_server_that_does_not_answer_fails_in_time(method: str) -> None:
    server, extensions, _ = run_one(hang=method, tools=1, stubborn=True, options={"timeout_s": 2.0})
    assert (server.state, extensions) == ("failed", [])
    assert "no answer to `" in str(server.error)
    assert "` within 2 s" in str(server.error)


def test_total_bytes_are_bounded() -> None:
    limits = replace(LIMITS, total_bytes=20_000)
    server = run_one(tools=500, page=50, options={"limits": limits})[0]
    assert server.error == "sent more than 20,000 bytes"


@pytest.mark.parametrize(
    ("method", "lost"),
    [("resources/list", "resources"), ("prompts/list", "prompts"), ("resources/templates/list", "resourceTemplates")],
)
def test_a_list_that_fails_beside_working_tools_is_a_finding(method: str, lost: str) -> None:
    server, extensions, (found,) = run_one(tools=2, fail={method: -32603})
    assert server.state == "connected"
    assert [e.name for e in extensions] == ["tool_0", "tool_1"]
    assert (found.code, found.severity) == ("EG311", "warning")
    assert f"connected without its {lost}" in found.message


def test_a_server_without_templates_is_no_finding() -> None:
    server, _, findings = run_one(tools=1, fail={"resources/templates/list": -32601})
    assert (server.state, findings) == ("connected", [])


def test_a_failed_page_leaves_no_part_of_its_list() -> None:
    flags = {"tools": 1, "resources": 4, "page": 2, "fail_after": 1}
    _, extensions, findings = run_one(**flags)
    assert [e.kind for e in extensions] == ["mcp_tool"]
    assert [f.code for f in findings] == ["EG311"]


def test_a_banner_on_stdout_is_a_finding() -> None:
    server, extensions, (found,) = run_one(print="Welcome to the server!", tools=1)
    assert (server.state, len(extensions)) == ("connected", 1)
    assert (found.code, "Welcome" in found.message) == ("EG313", True)


def test_a_log_is_shown_on_one_line_without_control_characters_or_secrets() -> None:
    log = "first\nfatal: \x1b[31mtoken\x1b[0m s3cret-token-99 refused\x07\n\n"
    server = run_one(log=log, die="initialize", spec={"secrets": ("s3cret-token-99", "ok")})[0]
    assert str(server.error).endswith("it logged: first / fatal: token *** refused\\u{7} / fatal: no database")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"command": "no-such-command-here"}, "the command `no-such-command-here` is not installed"),
        ({"command": "/no/such/file"}, "the command `/no/such/file` does not start (no such file or directory)"),
        ({"command": FIXTURE}, "does not start (permission denied)"),
        ({"cwd": "/no/such/folder"}, "its folder `/no/such/folder` is not there"),
    ],
)
def test_a_command_that_cannot_start_says_why(fields: dict[str, str], error: str) -> None:
    (server,), _, _ = run(replace(fixture(), **fields))
    assert server.state == "failed"
    assert error in str(server.error)


def test_an_untrusted_server_is_not_started(tmp_path: Path) -> None:
    witness = tmp_path / "started"
    spec = replace(fixture(child=str(witness)), shown="python server.py")
    (server,), extensions, (found,) = run(spec, trusted=lambda spec: False)
    assert (server.state, extensions, witness.exists()) == ("untrusted", [], False)
    assert (found.code, "`python server.py`" in found.message) == ("EG316", True)


def test_a_disabled_server_and_one_in_error_are_not_started() -> None:
    servers, extensions, _ = run(
        fixture("off", {"is_disabled": True}, tools=1), fixture("bad", {"error": "the variable `X` is not set"})
    )
    assert [(s.name, s.state, s.error) for s in servers] == [
        ("off", "disabled", None),
        ("bad", "failed", "the variable `X` is not set"),
    ]
    assert extensions == []


def test_a_failing_trust_check_ends_the_probe_and_starts_nothing(tmp_path: Path) -> None:
    def broken(spec: ServerSpec) -> bool:
        raise RuntimeError("no store")

    witness = tmp_path / "started"
    with pytest.raises(ExceptionGroup):
        run(fixture(child=str(witness)), trusted=broken)
    assert not witness.exists()


def test_without_the_sdk_a_server_fails_with_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert run_one(tools=1)[0].error == "the package `mcp` is not installed; install extgate[mcp]"


def test_only_a_minimal_environment_and_its_own_reach_a_server() -> None:
    environ = {
        "PATH": f"relative{os.pathsep}{os.environ['PATH']}{os.pathsep}.",
        "HOME": "/home/x",
        "LC_ALL": "C.UTF-8",
        "AWS_SECRET_ACCESS_KEY": "s",
        "OPENAI_API_KEY": "s",
        "SHELL": "() { :; }",
        "PYTHONPATH": "/evil",
    }
    spec = {"env": {"TOKEN": "t"}}
    _, extensions, _ = run_one(env=True, spec=spec, options={"environ": environ})
    names = {e.name.removeprefix("env:") for e in extensions} - {"LC_CTYPE", "PWD", "SHLVL", "_"}
    assert names == {"PATH", "HOME", "LC_ALL", "TOKEN"}


def test_relative_folders_leave_the_path() -> None:
    environ = {"PATH": os.pathsep.join(["", ".", "bin", "/usr/bin", "./x", "/bin"])}
    assert server_environment(environ, {}) == {"PATH": os.pathsep.join(["/usr/bin", "/bin"])}


def test_a_server_starts_in_its_folder(tmp_path: Path) -> None:
    _, (cwd,), _ = run_one(cwd=True, spec={"cwd": str(tmp_path)})
    assert cwd.name == f"cwd:{tmp_path}"


def test_servers_start_at_the_same_time(tmp_path: Path) -> None:
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    servers, _, _ = run(fixture("a", meet=[pipe, "w"]), fixture("b", meet=[pipe, "r"]))
    assert [s.state for s in servers] == ["connected", "connected"]


def test_no_more_than_the_bound_start_at_the_same_time() -> None:
    steps: list[Progress] = []
    specs = [fixture(name) for name in "abc"]
    run(*specs, limits=Limits(concurrent=1), on_progress=steps.append)
    assert [(p.server, p.state) for p in steps] == [(n, s) for n in "abc" for s in ("starting", "connected")]
    assert [p.done for p in steps] == [0, 1, 1, 2, 2, 3]


def test_one_failing_server_leaves_the_others_alone() -> None:
    servers, extensions, _ = run(fixture("a", tools=1), fixture("b", endless=True), fixture("c", tools=1))
    assert [s.state for s in servers] == ["connected", "failed", "connected"]
    assert [e.server for e in extensions] == ["a", "c"]


def test_of_two_servers_with_one_name_the_second_is_an_error() -> None:
    servers, extensions, (found,) = run(fixture("a", tools=1), fixture("a", tools=2))
    assert (len(servers), len(extensions), found.code) == (1, 1, "EG305")


@pytest.mark.parametrize(
    ("fields", "left", "codes"),
    [
        ({"include": ("tool_1",)}, ["tool_1"], ["EG314"]),
        ({"include": ()}, [], ["EG314"]),
        ({"exclude": ("tool_0", "demo_tool_2")}, ["tool_1"], ["EG314"]),
        ({"exclude": ("demo__tool_0",)}, ["tool_1", "tool_2"], ["EG314"]),
        ({"include": ("tool_0", "tool_1"), "exclude": ("tool_0",)}, ["tool_1"], ["EG314"]),
        ({"exclude": ("toolx",)}, ["tool_0", "tool_1", "tool_2"], ["EG315"]),
    ],
)
def test_include_and_exclude_leave_tools_out(fields: dict[str, Any], left: list[str], codes: list[str]) -> None:
    _, extensions, findings = run_one(tools=3, prompts=1, spec=fields)
    assert [e.name for e in extensions if e.kind == "mcp_tool"] == left
    assert [e.name for e in extensions if e.kind == "mcp_prompt"] == ["prompt_0"]
    assert [f.code for f in findings] == codes


def test_a_cached_server_is_configured_and_not_started(tmp_path: Path) -> None:
    spec = fixture(tools=2, prompts=1)
    _, live, _ = run(spec, cache=tmp_path / "cache")
    (server,), extensions, _ = run(replace(spec), cache=tmp_path / "cache", on_progress=_no_start)
    assert (server.state, server.instructions) == ("configured", "Use with care.")
    assert extensions == live


def test_a_server_that_something_depends_on_is_started_in_spite_of_the_cache(tmp_path: Path) -> None:
    specs = [fixture("a", tools=1), fixture("b", tools=1)]
    run(*specs, cache=tmp_path)
    servers, _, _ = run(*specs, cache=tmp_path, is_live=lambda spec: spec.name == "b")
    assert [s.state for s in servers] == ["configured", "connected"]


def _no_start(step: Progress) -> None:
    assert step.state != "starting"


@pytest.mark.parametrize("change", ["refresh", "arguments", "age", "corrupt", "shape"])
def test_a_cache_that_does_not_answer_means_a_live_start(tmp_path: Path, change: str) -> None:
    spec, options = fixture(tools=2), {"cache": tmp_path, "now": lambda: 1000.0}
    run(spec, **options)
    (entry,) = tmp_path.glob("*.json")
    if change == "refresh":
        options["refresh"] = True
    elif change == "arguments":
        spec = fixture(tools=3)
    elif change == "age":
        options["now"] = lambda: 1000.0 + LIMITS.cache_age_s + 1
    elif change == "corrupt":
        entry.write_bytes(entry.read_bytes()[:-9])
    else:
        entry.write_text('{"format": 1, "seen": 1000.0, "definitions": {"lists": {"tools": [{"name": 7}]}}}')
    (server,), extensions, _ = run(spec, **options)
    assert (server.state, len(extensions)) == ("connected", 3 if change == "arguments" else 2)


def test_a_cache_never_serves_an_untrusted_server_and_is_private(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    run(fixture(tools=2), cache=cache)
    assert cache.stat().st_mode & 0o777 == 0o700
    assert [file.stat().st_mode & 0o777 for file in cache.iterdir()] == [0o600]
    (server,), extensions, _ = run(fixture(tools=2), cache=cache, trusted=lambda spec: False)
    assert (server.state, extensions) == ("untrusted", [])


def test_what_failed_is_not_cached(tmp_path: Path) -> None:
    run_one(tools=1, die="tools/list", options={"cache": tmp_path})
    run_one(tools=1, fail={"resources/list": -32603}, options={"cache": tmp_path})
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert run_one(tools=1, options={"cache": tmp_path / "file" / "cache"})[0].state == "connected"


PROBE = """
import sys
from extgate.discover.mcp_servers import Limits, probe_servers
from tests.unit.discover.servers import fixture
spec = fixture(hang="initialize", stubborn=True, child=sys.argv[1])
probe_servers([spec], trusted=lambda spec: True, timeout_s=60, limits=Limits(grace_s=0.2))
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_servers_and_what_they_started(tmp_path: Path, number: signal.Signals, code: int) -> None:
    pipe = tmp_path / "pids"
    os.mkfifo(pipe)
    root = Path(__file__).parents[3]
    probing = subprocess.Popen([sys.executable, "-c", PROBE, str(pipe)], cwd=root, stderr=subprocess.DEVNULL)
    left = [os.pidfd_open(int(pid)) for pid in pipe.read_text().split()]
    probing.send_signal(number)
    assert probing.wait(60) == code
    assert [_has_ended(handle) for handle in left] == [True, True]


def test_a_probe_leaves_no_process_behind(tmp_path: Path) -> None:
    pipe = tmp_path / "pids"
    os.mkfifo(pipe)
    handles: list[int] = []
    reader = threading.Thread(target=lambda: handles.extend(os.pidfd_open(int(p)) for p in pipe.read_text().split()))
    reader.start()
    server = run_one(tools=1, child=str(pipe))[0]
    reader.join(30)
    assert server.state == "connected"
    assert [_has_ended(handle) for handle in handles] == [True, True]


def _has_ended(handle: int) -> bool:
    """Whether the process of a pidfd has ended, or does within half a minute."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(30_000))


def test_the_public_names_are_there() -> None:
    assert all(hasattr(mcp_servers, name) for name in mcp_servers.__all__)
