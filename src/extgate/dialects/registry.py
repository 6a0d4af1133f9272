"""The dialects, one row each, and which of them a file is written in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Protocol

from extgate.core.policy import Policy
from extgate.dialects import claude_code, codex, gemini, hermes, opencode, patterns, profile
from extgate.dialects.as_run import known_version
from extgate.dialects.document import Document
from extgate.dialects.native import MAIN
from extgate.errors import DialectError, DocumentError

AGENT_FILES: dict[str, Callable[[Sequence[Document]], Policy]] = {
    profile.NAME: profile.read,
    patterns.NAME: patterns.read,
}
"""Readers of a single agent's file, by the dialect's name."""


class Native(Protocol):
    """A runtime's own files: what each of its reader modules offers."""

    NAME: str
    FILES: tuple[str, ...]
    USER_FILES: tuple[str, ...]
    MANAGED_FILES: tuple[str, ...]
    SERVER_FILES: tuple[str, ...]
    SKILLS: tuple[str, ...]
    MARKS: tuple[str, ...]
    SUBAGENTS: tuple[str, ...]

    def agents(self, documents: Sequence[Document]) -> tuple[str, ...]: ...
    def spawned(self, documents: Sequence[Document]) -> tuple[str, ...]: ...
    def read(self, documents: Sequence[Document], agent: str = "main", *, version: str = "") -> Policy: ...


NATIVE: dict[str, Native] = {module.NAME: module for module in (claude_code, opencode, hermes, codex, gemini)}
"""Runtimes whose own files are read, by name."""


def dialect_of(document: Document) -> str:
    """The dialect's name: by an explicit `dialect:` key, else by the file's home, else by its shape.

    Raises DialectError for a `dialect` that is none of them, DocumentError for text that does not parse.
    """
    root = document.parse()
    named = root.get("dialect")
    if named is not None:
        if named.scalar not in AGENT_FILES:
            message, line = f"dialect: no such dialect, {named.shown}", root.key_line("dialect")
            choices = " or ".join(f"`{name}`" for name in AGENT_FILES)
            raise DialectError(message, file=document.path, line=line, fix=f"write {choices}")
        return str(named.scalar)
    if ".msagent" in PurePath(document.path).parts:
        return patterns.NAME
    blocks = [root.get("tools"), root.get("skills")]
    has_patterns = any(block is not None and block.get("patterns") is not None for block in blocks)
    return patterns.NAME if has_patterns else profile.NAME


def read_agent(document: Document) -> Policy:
    """The policy of one agent's file, in whichever dialect it is written."""
    return AGENT_FILES[dialect_of(document)]([document])


def read_natives(runtime: str, documents: Sequence[Document]) -> dict[str, Policy | DocumentError]:
    """The policy of each agent of a runtime by name, as documented, or why there is none.

    facts: `version`, and the same `as_run` by it (or `as_run_error`, when that does not start); `below`: policies of
    the agents that could be started, by name.
    """
    found = {name: _read(runtime, documents, name) for name in NATIVE[runtime].agents(documents)}
    main = found[MAIN]
    spawned = NATIVE[runtime].spawned(documents)
    below = {name: policy for name, policy in found.items() if isinstance(policy, Policy) and name in spawned}
    if isinstance(main, Policy) and runtime == claude_code.NAME:
        below.setdefault("general-purpose", main)  # it has all that the session has
    for name, policy in found.items():
        if isinstance(policy, Policy):
            others = {other: bare for other, bare in below.items() if other != name}
            found[name] = replace(policy, facts={**policy.facts, "below": others})
    return found


def _read(runtime: str, documents: Sequence[Document], agent: str) -> Policy | DocumentError:
    native, version = NATIVE[runtime], known_version(runtime)
    try:
        found = native.read(documents, agent)
    except DocumentError as error:
        return error
    facts: dict[str, object] = {"version": version}
    try:
        facts["as_run"] = native.read(documents, agent, version=version)
    except DocumentError as error:
        facts["as_run_error"] = str(error)
    return replace(found, facts={**found.facts, **facts})
