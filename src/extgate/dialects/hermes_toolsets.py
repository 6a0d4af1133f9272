"""Hermes' toolsets, the units of its configuration. Source: hermes-agent 0.19.0, its own registry; seen 2026-11-30."""

from __future__ import annotations

TOOLSETS: dict[str, tuple[str, ...]] = {
    "web": ("web_search", "web_extract"),
    "search": ("web_search",),
    "x_search": ("x_search",),
    "vision": ("vision_analyze",),
    "video": ("video_analyze",),
    "image_gen": ("image_generate",),
    "video_gen": ("video_generate", "xai_video_edit", "xai_video_extend"),
    "computer_use": ("computer_use",),
    "terminal": ("terminal", "process", "read_terminal", "close_terminal"),
    "skills": ("skills_list", "skill_view", "skill_manage"),
    "browser": (
        *("browser_navigate", "browser_snapshot", "browser_click", "browser_type", "browser_scroll"),
        *("browser_back", "browser_press", "browser_get_images", "browser_vision", "browser_console"),
        *("browser_cdp", "browser_dialog", "web_search"),
    ),
    "cronjob": ("cronjob",),
    "file": ("read_file", "write_file", "patch", "search_files"),
    "tts": ("text_to_speech",),
    "todo": ("todo",),
    "memory": ("memory",),
    "context_engine": (),
    "session_search": ("session_search",),
    "project": ("project_list", "project_create", "project_switch"),
    "clarify": ("clarify",),
    "code_execution": ("execute_code",),
    "delegation": ("delegate_task",),
    "homeassistant": ("ha_list_entities", "ha_get_state", "ha_list_services", "ha_call_service"),
    "kanban": (
        *("kanban_show", "kanban_list", "kanban_complete", "kanban_block", "kanban_heartbeat", "kanban_comment"),
        *("kanban_create", "kanban_link", "kanban_unblock", "kanban_attach", "kanban_attach_url"),
        "kanban_attachments",
    ),
    "discord": ("discord",),
    "discord_admin": ("discord_admin",),
    "yuanbao": (
        *("yb_query_group_info", "yb_query_group_members", "yb_send_dm", "yb_search_sticker", "yb_send_sticker"),
    ),
    "feishu_doc": ("feishu_doc_read",),
    "feishu_drive": (
        *("feishu_drive_list_comments", "feishu_drive_list_comment_replies", "feishu_drive_reply_comment"),
        "feishu_drive_add_comment",
    ),
    "spotify": (
        *("spotify_playback", "spotify_devices", "spotify_queue", "spotify_search", "spotify_playlists"),
        *("spotify_albums", "spotify_library"),
    ),
}
"""Tool names by toolset. `terminal` with what the registry adds to it."""

INCLUDES: dict[str, tuple[str, ...]] = {
    "debugging": ("terminal", "web", "file"),
    "safe": ("web", "vision", "image_gen"),
}
"""Toolsets that stand for others."""

OFF_BY_DEFAULT = ("homeassistant", "spotify", "discord", "discord_admin", "video", "video_gen", "x_search")
ONLY_ON: dict[str, tuple[str, ...]] = {
    "yuanbao": ("yuanbao",),
    "feishu_doc": ("feishu",),
    "feishu_drive": ("feishu",),
    "discord": ("discord",),
}
"""Toolsets that only these platforms have without asking for them."""

RE_ADDED = ("kanban",)
"""Toolsets that come back after an explicit list."""

BUNDLES = ("hermes-cli", "coding")
"""Names of what a platform or a posture has: as a disabled toolset they take only what no other part needs."""

WEBHOOK = ("web_search", "web_extract", "vision_analyze", "clarify")
