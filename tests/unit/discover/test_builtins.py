"""Built-in tools as data: every row is whole, and the runtimes' own tools are there."""

from __future__ import annotations

from datetime import date

import pytest

from extgate.core.names import RUNTIMES, refusal
from extgate.discover.builtins import builtin_source, builtin_tools, runtimes
from extgate.errors import DiscoveryError


@pytest.mark.parametrize("runtime", runtimes())
def test_every_row_is_whole(runtime: str) -> None:
    tools = builtin_tools(runtime)
    assert tools
    assert len({tool.name for tool in tools}) == len(tools)
    for tool in tools:
        assert (tool.kind, tool.source, refusal(tool.name)) == ("tool", runtime, None)
        assert tool.facts["builtin"] is True
        assert isinstance(tool.facts["read_only"], bool)
        assert isinstance(tool.facts["default"], bool)
        assert set(tool.facts) <= {"builtin", "group", "read_only", "default", "note", "aliases", "toolsets"}
        assert str(tool.facts["group"]).islower()


@pytest.mark.parametrize("runtime", runtimes())
def test_every_file_names_its_source_version_and_date(runtime: str) -> None:
    source = builtin_source(runtime)
    assert source["source"]
    assert source["version"]
    assert date.fromisoformat(source["seen"]) == date(2026, 11, 30)


def test_every_runtime_is_known_to_the_core_as_a_runtime() -> None:
    assert set(runtimes()) <= RUNTIMES


@pytest.mark.parametrize(
    ("runtime", "name", "group", "read_only"),
    [
        ("claude-code", "Bash", "shell", False),
        ("opencode", "bash", "shell", False),
        ("hermes", "terminal", "shell", False),
        ("codex", "exec_command", "shell", False),
        ("gemini-cli", "run_shell_command", "shell", False),
        ("deepagents", "execute", "shell", False),
        ("openprogram", "bash", "shell", False),
        ("deepagents", "read_file", "file", True),
        ("msagent", "run_tool", "catalog", False),
    ],
)
def test_the_tools_that_matter_most_are_there(runtime: str, name: str, group: str, read_only: bool) -> None:
    (tool,) = [tool for tool in builtin_tools(runtime) if tool.name == name]
    assert (tool.facts["group"], tool.facts["read_only"]) == (group, read_only)


def test_another_name_of_a_tool_is_an_alias() -> None:
    assert [t.facts["aliases"] for t in builtin_tools("claude-code") if t.name == "Agent"] == [("Task",)]


@pytest.mark.parametrize("runtime", ["", "emacs", "../builtins/codex", "codex.toml"])
def test_an_unknown_runtime_is_an_error_that_names_the_known(runtime: str) -> None:
    with pytest.raises(DiscoveryError, match="known are claude-code, codex"):
        builtin_tools(runtime)
