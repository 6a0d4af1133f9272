"""One account of `extgate apply`, looked at again: its files as they are now, and what would be written today."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from extgate.applied.account import Account, Entry, text_of
from extgate.applied.jsonc_text import MISSING
from extgate.applied.plan import GATEWAY, Ground, Plan
from extgate.applied.runtimes import PLANS, SCOPES
from extgate.applied.trees import Editor, edit
from extgate.applied.work import Wish, known_ground
from extgate.core.extension import Finding
from extgate.dialects.document import Document
from extgate.dialects.node import Node
from extgate.errors import DocumentError, WorkspaceError

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, kw_only=True)
class Look:
    """An open account, and the workspace that it is of."""

    account: Account
    root: Path
    _read: dict[Path, Editor | WorkspaceError | None] = field(default_factory=dict)

    @property
    def runtime(self) -> str:
        return str(self.account.facts["runtime"])

    @property
    def agent(self) -> str:
        return str(self.account.facts["agent"])

    @cached_property
    def project(self) -> Path:
        return Path(self.account.facts["project"])

    @cached_property
    def ground(self) -> Ground:
        """What `apply` would go by now; no server is started. Raises WorkspaceError."""
        wish = Wish(
            runtime=self.runtime, agent=self.agent, root=self.root, project=self.project,
            scope=self.account.facts["scope"], gateway=self._relays,
        )  # fmt: skip
        return known_ground(wish, self.account)

    @cached_property
    def plan(self) -> Plan:
        """What it would write. Raises WorkspaceError."""
        return PLANS[self.runtime](self.ground)

    @property
    def _relays(self) -> bool:
        keys = (key for entry in self.account.entries for done in entry.done for key in done.keys[-1:])
        return bool(self.account.facts.get("relays", GATEWAY in keys))

    # ------------------------------------------------------------------------------------------ files

    def editor(self, entry: Entry) -> Editor | None:
        """The file as it is; None when it is not there, or was written whole. Raises WorkspaceError for one that cannot
        be read."""
        if entry.is_whole:
            return None
        if entry.path not in self._read:
            try:
                text = text_of(entry.path)
                self._read[entry.path] = None if text is None else edit(text, entry.form, str(entry.path))
            except WorkspaceError as error:
                self._read[entry.path] = error
        found = self._read[entry.path]
        if isinstance(found, WorkspaceError):
            raise found
        return found

    def value(self, entry: Entry, keys: Sequence[str]) -> Any:
        """What stands at the keys; MISSING for nothing, also where the file cannot be read."""
        try:
            found = self.editor(entry)
        except WorkspaceError:
            return MISSING
        return MISSING if found is None else found.get(keys)

    def finding(self, code: str, message: str, path: Path, keys: Sequence[str] = (), **more: Any) -> Finding:
        """A finding at the innermost of the keys that stands in the file; what puts it right is another `apply`."""
        inside = path.is_relative_to(os.path.realpath(self.root))
        shown = path.relative_to(os.path.realpath(self.root)) if inside else path
        return Finding(
            code=code, message=message, file=str(shown), line=_line(path, keys), fix=f"run `{self.command}` again",
            severity=more.get("severity", "error"),
        )  # fmt: skip

    @property
    def command(self) -> str:
        """What was typed, as far as it matters."""
        words = ["extgate", "apply", self.runtime, self.agent]
        if os.path.realpath(self.project) != os.path.realpath(self.root):
            words += ["--project", str(self.project)]
        scope = self.account.facts["scope"]
        return shlex.join([*words, *(["--scope", scope] if scope != SCOPES[self.runtime][0] else [])])


def _line(path: Path, keys: Sequence[str]) -> int | None:
    try:
        node: Node | None = Document.of_bytes(str(path), path.read_bytes()).parse()
    except (OSError, DocumentError):
        return None
    line = None
    for key in keys:
        if node is None or key not in node.items:
            break
        line, node = node.key_line(key), node.items[key]
    return line
