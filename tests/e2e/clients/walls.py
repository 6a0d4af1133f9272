"""Cells that no wall of extgate closes: what would, and why the host makes it impossible.

A cell that holds all the same fails the test, so that nothing stands here longer than it is true.
"""

from __future__ import annotations

IMPOSSIBLE: dict[tuple[str, str], str] = {
    ("codex", "skill-read"): (
        "its only reader of files is the shell, which opens whatever its user may; needed is a wall of the operating "
        "system (a user who cannot read the folder), or the deny of `exec_command`"
    ),
}
"""By runtime and intent."""
