"""Plugins: every manifest form, contributions that carry their plugin, and nothing from outside its folder."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extgate.core.extension import Finding
from extgate.discover.plugins import Plugin, find_plugins
from extgate.discover.skills import find_skills

SKILL = "---\nname: {0}\ndescription: Does {0}.\n---\nBody\n"
SERVERS = {"mcpServers": {"db": {"command": "${CLAUDE_PLUGIN_ROOT}/run", "args": ["--x"]}}}


def write(root: Path, files: dict[str, Any]) -> Path:
    """Writes the files below `root/demo`: text as it is, anything else as JSON."""
    for name, content in files.items():
        file = root / "demo" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
    (root / "demo").mkdir(parents=True, exist_ok=True)
    return root


def read(root: Path) -> tuple[list[Plugin], list[Finding]]:
    plugins, findings = find_plugins([root], environ={}, installed=())
    return list(plugins), list(findings)


def one(root: Path, files: dict[str, Any]) -> tuple[Plugin, list[str]]:
    (plugin,), findings = read(write(root, files))
    return plugin, [f.code for f in findings]


CONTRIBUTIONS = {"skills": "kit", "tools": ["lint", "fmt"], "mcpServers": SERVERS["mcpServers"]}
TOML = """
[project]
name = "fallback"
version = "0.3"
[tool.openprogram.plugin]
skills = "kit"
tools = ["lint", "fmt"]
[tool.openprogram.plugin.mcpServers.db]
command = "${CLAUDE_PLUGIN_ROOT}/run"
args = ["--x"]
"""
FORMS: list[tuple[str, dict[str, Any], str]] = [
    ("plugin.json", {"plugin.json": {"name": "p", "version": "0.3", **CONTRIBUTIONS}}, "p"),
    ("claude", {".claude-plugin/plugin.json": {"name": "p", "version": "0.3", **CONTRIBUTIONS}}, "p"),
    ("pyproject", {"pyproject.toml": TOML}, "fallback"),
    ("package.json", {"package.json": {"name": "n", "version": "0.3", "openprogram": CONTRIBUTIONS}}, "n"),
    ("entrypoints", {"plugin.json": {"name": "p", "version": "0.3", "entrypoints": CONTRIBUTIONS}}, "p"),
]


@pytest.mark.parametrize(("files", "name"), [f[1:] for f in FORMS], ids=[f[0] for f in FORMS])
def test_every_manifest_form_gives_the_same_plugin(tmp_path: Path, files: dict[str, Any], name: str) -> None:
    plugin, codes = one(tmp_path, {**files, "kit/pdf/SKILL.md": SKILL.format("pdf")})
    assert codes == []
    assert (plugin.name, plugin.version, plugin.source) == (name, "0.3", f"plugin:{name}")
    assert [(e.id, e.source, e.facts["plugin"]) for e in plugin.extensions] == [
        ("tool:lint", f"plugin:{name}", name),
        ("tool:fmt", f"plugin:{name}", name),
    ]
    (server,) = plugin.servers
    folder = str(tmp_path / "demo")
    assert (server.name, server.command, server.cwd) == ("db", f"{folder}/run", folder)
    assert server.source == f"plugin:{name}"
    (skill,) = find_skills(plugin.skills)[0]
    assert (skill.name, skill.source) == ("pdf", f"plugin:{name}")


def test_a_claude_code_folder_needs_no_manifest(tmp_path: Path) -> None:
    agent = "---\nname: reviewer\ndescription: Reads code.\ntools: Read\n---\nYou review.\n"
    files = {
        "skills/pdf/SKILL.md": SKILL.format("pdf"),
        "agents/rev.md": agent,
        "agents/plain.md": "Just text.\n",
        "commands/go.md": "Go.\n",
        "hooks/hooks.json": {},
        ".mcp.json": SERVERS,
    }
    plugin, codes = one(tmp_path, files)
    assert plugin.name == "demo"
    assert [(e.id, e.description) for e in plugin.extensions] == [
        ("subagent:plain", ""),
        ("subagent:reviewer", "Reads code."),
    ]
    assert [s.name for s in plugin.servers] == ["db"]
    assert [str(s.root) for s in plugin.skills] == [str(tmp_path / "demo" / "skills")]
    assert codes == ["EG408"]


def test_named_folders_come_besides_the_usual_ones(tmp_path: Path) -> None:
    manifest = {"name": "p", "skills": ["./more", "skills"], "agents": "./bots/a.md", "mcpServers": "./extra.json"}
    files = {
        ".claude-plugin/plugin.json": manifest,
        "skills/a/SKILL.md": SKILL.format("a"),
        "more/b/SKILL.md": SKILL.format("b"),
        "bots/a.md": "---\nname: bot\n---\n",
        "agents/c.md": "x",
        "extra.json": {"mcpServers": {"two": {"url": "https://h/mcp"}}},
        ".mcp.json": {"one": {"command": "x"}},
    }
    plugin, codes = one(tmp_path, files)
    assert codes == []
    assert sorted(skill.name for skill in find_skills(plugin.skills)[0]) == ["a", "b"]
    assert sorted(e.name for e in plugin.extensions) == ["bot", "c"]
    assert sorted(s.name for s in plugin.servers) == ["one", "two"]


def test_an_openprogram_manifest_contributes_only_what_it_names(tmp_path: Path) -> None:
    files = {"package.json": {"name": "n", "openprogram": {"tools": ["t"]}}, "skills/a/SKILL.md": SKILL.format("a")}
    plugin, _ = one(tmp_path, files)
    assert (plugin.skills, [e.name for e in plugin.extensions]) == ((), ["t"])


@pytest.mark.parametrize(
    "tools", [["a", "b"], [{"name": "a", "description": "A"}, {"name": "b"}], {"a": {"description": "A"}, "b": {}}]
)
def test_tools_are_named_in_three_ways(tmp_path: Path, tools: Any) -> None:
    plugin, codes = one(tmp_path, {"plugin.json": {"name": "p", "tools": tools}})
    assert ([e.name for e in plugin.extensions], codes) == (["a", "b"], [])


def test_agents_may_stand_in_the_manifest(tmp_path: Path) -> None:
    plugin, _ = one(tmp_path, {"plugin.json": {"name": "p", "agents": {"bot": {"description": "Helps."}}}})
    assert [(e.id, e.description) for e in plugin.extensions] == [("subagent:bot", "Helps.")]


def test_one_thing_contributed_twice_is_kept_once_and_reported(tmp_path: Path) -> None:
    plugin, codes = one(tmp_path, {"plugin.json": {"name": "p", "tools": ["a", "a"]}})
    assert ([e.name for e in plugin.extensions], codes) == (["a"], ["EG402"])


@pytest.mark.parametrize("place", ["top", "entrypoints"])
@pytest.mark.parametrize("level", ["verified", True, None])
def test_a_manifest_s_own_trust_is_a_finding_and_nothing_else(tmp_path: Path, place: str, level: Any) -> None:
    manifest: dict[str, Any] = {"name": "p", "tools": ["a"], **({"trust": level} if place == "top" else {})}
    manifest["entrypoints"] = {"trust": level} if place == "entrypoints" else {}
    plugin, codes = one(tmp_path, {"plugin.json": manifest})
    without, _ = one(tmp_path, {"plugin.json": {"name": "p", "tools": ["a"]}})
    assert codes == ["EG404"]
    assert plugin == without


@pytest.mark.parametrize("key", ["skills", "agents", "mcpServers"])
@pytest.mark.parametrize("path", ["../other", "/etc", "a/../../other", "link", "${CLAUDE_PLUGIN_ROOT}/../other"])
def test_a_path_outside_the_plugin_is_refused(tmp_path: Path, key: str, path: str) -> None:
    (tmp_path / "other" / "x").mkdir(parents=True)
    (tmp_path / "other" / "x" / "SKILL.md").write_text(SKILL.format("x"))
    root = write(tmp_path / "plugins", {"plugin.json": {"name": "p", "tools": ["t"], key: path}, "a/x": ""})
    (root / "demo" / "link").symlink_to(tmp_path / "other")
    (plugin,), findings = read(root)
    assert [f.code for f in findings] == ["EG403"]
    assert (plugin.skills, plugin.servers, [e.name for e in plugin.extensions]) == ((), (), ["t"])


@pytest.mark.parametrize("usual", ["skills", "agents", ".mcp.json"])
def test_a_usual_place_that_links_outside_is_refused(tmp_path: Path, usual: str) -> None:
    (tmp_path / "other").mkdir()
    root = write(tmp_path / "plugins", {"plugin.json": {"name": "p", "tools": ["t"]}})
    (root / "demo" / usual).symlink_to(tmp_path / "other")
    (plugin,), findings = read(root)
    assert [f.code for f in findings] == ["EG403"]
    assert (plugin.skills, plugin.servers) == ((), ())


def test_a_plugin_or_manifest_that_links_outside_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "outside", {"plugin.json": {"name": "p", "tools": ["t"]}})
    root = tmp_path / "plugins"
    (root / "b").mkdir(parents=True)
    (root / "a").symlink_to(tmp_path / "outside" / "demo")
    (root / "b" / "plugin.json").symlink_to(tmp_path / "outside" / "demo" / "plugin.json")
    plugins, findings = read(root)
    assert (plugins, [f.code for f in findings]) == ([], ["EG403", "EG403"])


def test_an_agent_file_that_links_outside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("---\nname: x\n---\n")
    root = write(tmp_path / "plugins", {"agents/a.md": "x"})
    (root / "demo" / "agents" / "b.md").symlink_to(tmp_path / "secret.md")
    (plugin,), findings = read(root)
    assert ([e.name for e in plugin.extensions], [f.code for f in findings]) == (["a"], ["EG410"])


def test_a_path_that_is_not_there_is_reported(tmp_path: Path) -> None:
    plugin, codes = one(tmp_path, {"plugin.json": {"name": "p", "skills": "absent", "tools": ["t"]}})
    assert (plugin.skills, codes) == ((), ["EG409"])


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("plugin.json", "{"),
        ("plugin.json", "[]"),
        ("plugin.json", '{"name": 3}'),
        ("plugin.json", '{"name": "a", "name": "b"}'),
        ("plugin.json", '{"name": "a", "entrypoints": []}'),
        (".claude-plugin/plugin.json", "\x00"),
        ("pyproject.toml", "[tool.openprogram.plugin"),
        ("pyproject.toml", "[tool.openprogram]\nplugin = 3"),
        ("package.json", '{"openprogram": true}'),
    ],
)
def test_a_manifest_that_cannot_be_read_keeps_the_whole_plugin_out(tmp_path: Path, file: str, text: str) -> None:
    plugins, findings = read(write(tmp_path, {file: text, "skills/a/SKILL.md": SKILL.format("a")}))
    assert (plugins, [f.code for f in findings]) == ([], ["EG401"])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("skills", 3),
        ("skills", ["a", 3]),
        ("agents", [None]),
        ("tools", "bash"),
        ("tools", [3.5, {}]),
        ("tools", [None]),
    ],
)
def test_a_contribution_of_the_wrong_type_is_an_error_and_left_out(tmp_path: Path, key: str, value: Any) -> None:
    plugin, codes = one(tmp_path, {"plugin.json": {"name": "p", key: value}, "a/x": ""})
    assert "EG402" in codes
    assert not any(e.name in ("bash", "", "None") for e in plugin.extensions)


@pytest.mark.parametrize("name", ["a\u200bb", "@scope/x", "a\nb"])
def test_a_name_that_cannot_be_used_keeps_the_plugin_out(tmp_path: Path, name: str) -> None:
    plugins, findings = read(write(tmp_path, {"plugin.json": {"name": name, "tools": ["t"]}}))
    assert (plugins, [f.code for f in findings]) == ([], ["EG406"])
    assert findings[0].message.isprintable()


def test_of_two_plugins_with_one_name_the_first_stays(tmp_path: Path) -> None:
    for folder in "ab":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "plugin.json").write_text(json.dumps({"name": "p", "tools": [folder]}))
    (plugin,), findings = read(tmp_path)
    assert ([e.name for e in plugin.extensions], [f.code for f in findings]) == (["a"], ["EG405"])


def test_of_two_manifests_the_first_form_counts(tmp_path: Path) -> None:
    files = {
        "plugin.json": {"name": "p", "tools": ["t"]},
        "package.json": {"name": "n", "openprogram": {"tools": ["u"]}},
    }
    plugin, codes = one(tmp_path, files)
    assert (plugin.name, [e.name for e in plugin.extensions], codes) == ("p", ["t"], ["EG412"])


def test_a_folder_that_contributes_nothing_is_reported(tmp_path: Path) -> None:
    assert one(tmp_path, {"package.json": {"name": "n"}})[1] == ["EG407"]


def test_hidden_and_vendor_folders_are_no_plugins(tmp_path: Path) -> None:
    for folder in (".git", "node_modules"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "plugin.json").write_text('{"name": "p", "tools": ["t"]}')
    assert read(tmp_path) == ([], [])


def test_a_root_that_is_not_there_holds_no_plugins(tmp_path: Path) -> None:
    assert read(tmp_path / "absent") == ([], [])


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An importable package with a plugin inside, which must never be imported."""
    folder = tmp_path / "site" / "extgate_fake_plugin"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "plugin.json").write_text('{"name": "wheel", "tools": ["t"]}')
    (folder / "inner" / "plugin.json").write_text('{"tools": ["u"]}')
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return "extgate_fake_plugin"


@pytest.mark.parametrize(
    ("value", "name", "tool"), [("{}", "wheel", "t"), ("{}:attr", "wheel", "t"), ("{}.inner", "point", "u")]
)
def test_an_installed_package_names_its_plugin_without_being_imported(
    package: str, value: str, name: str, tool: str
) -> None:
    point = EntryPoint(name="point", value=value.format(package), group="extgate.plugins")
    (plugin,), findings = find_plugins([], environ={}, installed=[point])
    assert (plugin.name, [e.name for e in plugin.extensions], findings) == (name, [tool], ())
    assert package not in sys.modules


@pytest.mark.parametrize("value", ["no_such_package_here", "os", "a b", "..", "extgate_fake_plugin.absent"])
def test_an_entry_point_without_a_folder_is_an_error(package: str, value: str) -> None:
    point = EntryPoint(name="point", value=value, group="extgate.plugins")
    plugins, findings = find_plugins([], environ={}, installed=[point])
    assert (plugins, [f.code for f in findings]) == ((), ["EG411"])


def test_a_package_that_holds_no_plugin_contributes_nothing_aloud() -> None:
    point = EntryPoint(name="point", value="json", group="extgate.plugins")
    (plugin,), findings = find_plugins([], environ={}, installed=[point])
    assert (plugin.extensions, [f.code for f in findings]) == ((), ["EG407"])


def test_the_plugins_of_this_python_are_read_by_default() -> None:
    assert find_plugins([], environ=os.environ) == ((), ())


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.sampled_from(["kit", "..", "/", "."]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["name", "skills", "tools", "agents", "mcpServers", "entrypoints", "trust", "hooks"])


@given(st.dictionaries(KEYS, JSON_VALUES))
def test_any_manifest_is_a_plugin_or_an_error_and_stays_inside(
    tmp_path_factory: pytest.TempPathFactory, manifest: dict[str, Any]
) -> None:
    root = write(tmp_path_factory.getbasetemp() / "any", {"plugin.json": manifest, "kit/a/SKILL.md": SKILL.format("a")})
    plugins, findings = read(root)
    assert len(plugins) == 1 or [f.severity for f in findings][-1] == "error"
    for plugin in plugins:
        assert all(source.root.resolve().is_relative_to(root / "demo") for source in plugin.skills)
        assert all(ext.source == plugin.source for ext in plugin.extensions)
        assert all(spec.source == plugin.source for spec in plugin.servers)
