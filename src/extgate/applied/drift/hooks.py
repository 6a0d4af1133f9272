"""EG091: the hook stands in the file, and the runtime leaves it out: moved in its list, or switched off somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from extgate.applied.account import Entry
from extgate.applied.drift.look import Look
from extgate.core.extension import Finding
from extgate.dialects.document import Document
from extgate.errors import DocumentError
from extgate.runtime_places import own_files

CODES = ("EG091",)
STATE = ("hooks", "state")
OFF: dict[str, tuple[tuple[tuple[str, ...], object], ...]] = {
    "claude-code": ((("disableAllHooks",), True), (("allowManagedHooksOnly",), True)),
    "codex": ((("features", "hooks"), False), (("features", "codex_hooks"), False)),
    "gemini": ((("hooksConfig", "enabled"), False), (("hooksConfig", "disabled"), "extgate")),
}
"""Keys, in any of the runtime's files, by which all hooks are off, or the one of that name."""


def check(look: Look) -> Iterator[Finding]:
    """Codex trusts a hook at its place in the file; the other runtimes can be told to leave hooks out."""
    for entry in look.account.entries:
        yield from _moved(look, entry)
    for path in sorted({path for glob in _files(look) for path in Path("/").glob(glob.lstrip("/"))}):
        for keys, off in OFF.get(look.runtime, ()):
            found = _at(path, keys)
            if found is off or (isinstance(off, str) and isinstance(found, list) and off in found):
                yield look.finding("EG091", f"`{'.'.join(keys)}` switches extgate's hook off", path, keys)


def _files(look: Look) -> tuple[str, ...]:
    return tuple(glob for glob in own_files(look.runtime, look.project) if glob.endswith((".json", ".toml")))


def _moved(look: Look, entry: Entry) -> Iterator[Finding]:
    """Codex keeps the place of each hook that is trusted: file, event, and which group of it that is."""
    places = [done.keys for done in entry.done if done.keys[:2] == STATE]
    ours = [done.value for done in entry.done if done.keys == ("hooks", "PreToolUse")]
    groups = look.value(entry, ("hooks", "PreToolUse"))
    for keys in places:
        at = groups.index(ours[0][0]) if ours and isinstance(groups, list) and ours[0][0] in groups else None
        if at is not None and not keys[2].endswith(f":{at}:0"):
            message = "extgate's hook has another place in the list than the one that Codex trusts, and Codex skips it"
            yield look.finding("EG091", message, entry.path, ("hooks", "PreToolUse"))
        if look.value(entry, (*keys[:3], "enabled")) is False:
            yield look.finding("EG091", "extgate's hook is switched off", entry.path, keys[:3])


def _at(path: Path, keys: tuple[str, ...]) -> Any:
    try:
        node = Document.of_bytes(str(path), path.read_bytes()).parse()
    except (OSError, DocumentError):
        return None
    for key in keys:
        if key not in node.items:
            return None
        node = node.items[key]
    return node.value
