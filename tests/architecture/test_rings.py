"""Imports point inward only, siblings do not meet, and nothing runs in circles."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "extgate"
MODULES = {
    ".".join(("extgate", *path.relative_to(SRC).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(SRC.rglob("*.py"))
}
RING = {"core": 0, "errors": 0, "dialects": 1, "analysis": 1, "audit": 1, "discover": 2, "enforce": 2, "homes": 3}
RING |= {
    "workspace": 3,
    "native_homes": 3,
    "as_it_runs": 3,
    "shapes": 3,
    "shared_tests": 3,
    "policy_places": 3,
    "settings": 3,
    "watch": 3,
    "control": 3,
    "reload": 3,
    "host": 3,
    "client_config": 3,
    "conversion": 3,
    "conversion_calls": 3,
    "gateway": 3,
    "agents": 3,
    "applied": 3,
    "hook_client": 3,
    "npm": 3,
    "hook_resident": 3,
    "hook_session": 3,
    "runtime_places": 3,
    "runtime_view": 3,
    "stamps": 3,
    "launch": 3,
    "launch_run": 3,
}
RING |= {"cli": 4, "web": 4, "start": 4}
SIBLINGS = [{"dialects", "analysis", "audit"}, {"discover", "enforce"}, {"cli", "web"}]
STDLIB_ONLY = ("core", "errors")


def top(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports(path: Path) -> set[str]:
    """Every extgate module that a file imports, inside functions too; type-checking blocks left out."""
    tree = ast.parse(path.read_text())
    hidden = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


EDGES = {
    module: {name for name in imports(path) if name in MODULES and name != module} for module, path in MODULES.items()
}


@pytest.mark.parametrize("module", [m for m in MODULES if top(m)])
def test_a_module_imports_only_from_its_own_ring_or_further_in(module: str) -> None:
    mine = RING[top(module)]
    outward = {name for name in EDGES[module] if top(name) and RING[top(name)] > mine}
    assert not outward


@pytest.mark.parametrize("module", [m for m in MODULES if top(m)])
def test_siblings_of_one_ring_do_not_import_each_other(module: str) -> None:
    for family in SIBLINGS:
        if top(module) in family:
            met = {name for name in EDGES[module] if top(name) in family - {top(module)}}
            assert not met


def test_no_modules_import_each_other_in_a_circle() -> None:
    done: set[str] = set()
    for start in EDGES:
        stack = [(start, (start,))]
        while stack:
            module, path = stack.pop()
            for name in EDGES[module] - {"extgate"}:
                assert name not in path, " -> ".join((*path, name))
                if name not in done:
                    stack.append((name, (*path, name)))
            done.add(module) if module == start else None


@pytest.mark.parametrize("module", [m for m in MODULES if top(m) in STDLIB_ONLY])
def test_the_core_needs_nothing_but_the_standard_library(module: str) -> None:
    import sys

    allowed = {"extgate", "__future__", "ahocorasick_rs", *sys.stdlib_module_names}
    assert {name.split(".")[0] for name in imports(MODULES[module])} <= allowed


def test_only_patterns_matches_globs() -> None:
    for module, path in MODULES.items():
        if module.startswith("extgate.core.patterns") or module == "extgate.core.name_index":
            continue
        assert not any(name.split(".")[0] == "fnmatch" for name in imports(path)), module


def test_only_names_joins_wire_names() -> None:
    for module, path in MODULES.items():
        if module in ("extgate.core.names", "extgate.dialects.profile"):
            continue
        strings = [n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant)]
        docs = {ast.get_docstring(n, clean=False) for n in ast.walk(ast.parse(path.read_text()))
                if isinstance(n, ast.Module | ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)}  # fmt: skip
        joined = [
            s for s in strings if isinstance(s, str) and s not in docs and s.startswith(("__", "mcp__")) and "_" in s
        ]
        allowed = {"__", "mcp__"} if module == "extgate.core.require" else set()
        assert {s for s in joined if not (s.endswith("__") and len(s) > 5)} <= allowed, module


def test_removing_a_lint_rule_takes_its_file_and_one_row() -> None:
    lint = SRC / "analysis" / "lint"
    rows = (lint / "table.py").read_text()
    files = {path.stem for path in lint.glob("*.py")} - {"__init__", "context", "table"}
    for name in files:
        assert rows.count(f"{name}.check") == 1, name
