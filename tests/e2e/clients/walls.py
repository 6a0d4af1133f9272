"""Cells that no wall of extgate closes: what would, and why the host makes it impossible.

A cell that holds all the same fails the test, so that nothing stands here longer than it is true.
"""

from __future__ import annotations

IMPOSSIBLE: dict[tuple[str, str], str] = {}
"""By runtime and intent."""
