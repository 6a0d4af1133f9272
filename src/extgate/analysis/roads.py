"""What tools that come with runtimes can reach besides what they are for: roads around a gate that judges by name.

A small table of facts. Sources: the groups of `discover/builtins/*.toml`, each with its runtime's version, and the
experiments behind docs/walls.md (nine clients, 2026-11-30): a shell or a file tool read a denied skill's file wherever
that was tried, and `execute_code` ran commands where the terminal was denied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from extgate.analysis.lint.context import SHELLS
from extgate.core.extension import KINDS, Extension
from extgate.core.names import is_runtime_source

State = Literal["open", "residual", "closed"]
"""open: the gate itself lets it through. residual: the gate cannot see it. closed: the gate judges the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """One row: tools of these groups or names, in lower case, reach things of these kinds.

    does: what goes through them. only_files: they reach what lies in a file. by_host: closed only where the host's own
    gate looks at what the tool opens; else residual. words: what the names of tools that came later have in them.
    """

    groups: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset(KINDS)
    state: State
    does: str
    only_files: bool = False
    by_host: bool = False
    words: frozenset[str] = frozenset()

    def fits(self, ext: Extension) -> bool:
        """Whether a tool is one of these; of a runtime's own a group that is known counts before the name."""
        group = str(ext.facts.get("group") or "")
        if ext.kind == "tool" and is_runtime_source(ext) and group in _GROUPS:
            return group in self.groups
        if ext.kind not in ("tool", "mcp_tool"):
            return False
        is_foreign = ext.kind == "mcp_tool" or not is_runtime_source(ext)
        return ext.name.lower() in self.names or (is_foreign and not self.words.isdisjoint(_words(ext.name)))


def _words(name: str) -> set[str]:
    """The words of a name, in lower case; and each with the next."""
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    words = re.split(r"[^a-z0-9]+", split.lower())
    return {*words, *map("_".join, pairwise(words))}


_SKILL = frozenset({"skill"})
_RUNS = (
    frozenset(["shell", "bash", "powershell", "terminal", "exec", "subprocess", "repl", "python", "eval", "ssh"])
    | {f"{verb}_{noun}" for verb in ("run", "execute", "start") for noun in ("command", "code", "script", "process")}
    | {"browser_evaluate", "run_javascript", "execute_javascript"}
)

TABLE: tuple[Reach, ...] = (
    Reach(
        groups=frozenset({"shell", "code-mode"}),
        names=SHELLS | {"execute_command", "shell_exec", "run_code", "code_interpreter", "start_process"},
        words=_RUNS,
        state="residual",
        does="commands or code, which the gate cannot look into",
    ),
    Reach(
        names=frozenset({"gui_agent", "computer", "computer_use", "computer_20251124"}),
        state="residual",
        does="the whole desktop, a terminal too",
    ),
    Reach(
        names=frozenset({"cron", "cronjob", "scheduler", "remotetrigger"}),
        state="residual",
        does="work that starts later, under whatever it is started with",
    ),
    Reach(
        groups=frozenset({"file", "search", "code-intel"}),
        kinds=_SKILL,
        state="closed",
        does="files, which the gate keeps out of the folders of denied skills",
        only_files=True,
        by_host=True,
    ),
    Reach(
        names=frozenset(
            {"read_file", "read_text_file", "read_multiple_files", "read_media_file", "get_file_contents", "cat"}
            | {"read_many_files", "open_file", "view_file", "git_show", "git_diff", "move_file", "copy_file"}
            | {"browser_navigate", "puppeteer_navigate", "playwright_browser", "agent_browser", "browser_cdp"}
        ),
        words=frozenset({"read_file", "read_files", "file_read", "get_file", "open_file", "cat_file", "view_file"}),
        kinds=_SKILL,
        state="residual",
        does="files of this machine, outside of the gate's view",
        only_files=True,
    ),
    Reach(
        groups=frozenset({"catalog", "meta"}),
        kinds=frozenset({"tool", "skill", "mcp_tool"}),
        state="closed",
        does="other tools or skills, each judged as itself",
    ),
    Reach(
        groups=frozenset({"skill"}),
        kinds=_SKILL,
        state="closed",
        does="skills, each judged as itself",
    ),
    Reach(
        groups=frozenset({"mcp"}),
        kinds=frozenset({"mcp_tool", "mcp_resource", "mcp_prompt"}),
        state="closed",
        does="what servers offer, each item judged as itself",
    ),
)
"""In the order in which a tool is looked up: its first row counts."""

_GROUPS = frozenset(group for row in TABLE for group in row.groups)


def reach_of(ext: Extension) -> Reach | None:
    """What a tool reaches besides; None when no row knows it."""
    return next((row for row in TABLE if row.fits(ext)), None)
