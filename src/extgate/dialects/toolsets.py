"""OpenProgram's named tool presets, which a profile may use as an allow-list.

Source: OpenProgram at f27be0ee2 (2026-08-23), its registry as run; seen 2026-11-30.
"""

from __future__ import annotations

TOOLSETS: dict[str, tuple[str, ...]] = {
    "none": (),
    "browser": ("agent_browser", "playwright_browser", "web_search"),
    "coding": ("execute_code", "process"),
    "memory": tuple(f"memory_{part}" for part in ("browse", "get", "grep", "promote", "search", "status", "update")),
    "research": ("image_analyze", "pdf", "web_fetch", "web_search"),
    "safe": ("glob", "grep", "image_analyze", "list", "pdf", "read", "web_fetch", "web_search"),
    "vision": ("image_analyze", "image_generate", "pdf"),
}
"""Tool names by preset. `default`, `full` and saved profiles change with the host and are not known here."""
