"""What OpenAI's own tools are called, and by which names they are called in an answer.

Source: the types of the official SDK, openai 3.57.0, and Codex 0.171.0's requests (2026-11-30).
"""

from __future__ import annotations

import re

from extgate.core.names import show
from extgate.enforce.wire.judge import Entry
from extgate.enforce.wire.provider import Options
from extgate.enforce.wire.spans import UnclearError

HOSTED = frozenset(
    {"type", "filters", "search_context_size", "user_location", "external_web_access", "vector_store_ids"}
    | {"max_num_results", "ranking_options", "container", "display_height", "display_width", "environment", "action"}
    | {"background", "complexity", "frame_count", "frame_duration_ms", "input_fidelity", "input_image_mask", "model"}
    | {"moderation", "output_compression", "output_format", "partial_images", "quality", "size", "svg", "execution"}
    | {"description", "parameters", "allowed_callers", "cache_control", "search_content_types", "image_settings"}
)
"""Keys of the provider's own tools that hold no further tool, or are read where the tool is."""
_FAMILIES = {
    "web_search": ("web_search", "web_search_call"),
    "file_search": ("file_search", "file_search_call"),
    "code_interpreter": ("code_interpreter", "code_interpreter_call"),
    "image_generation": ("image_generation", "image_generation_call"),
    "computer": ("computer_use", "computer_call"),
    "computer_use": ("computer_use", "computer_call"),
    "local_shell": ("local_shell", "local_shell_call"),
    "shell": ("shell", "shell_call"),
    "apply_patch": ("apply_patch", "apply_patch_call"),
    "tool_search": ("tool_search", "tool_search_call"),
    "programmatic_tool_calling": ("programmatic_tool_calling", "program"),
}
"""By the type of a provider's own tool, without a version: how rules name it, and the type of its calls."""
CALLS = {call: name for name, call in _FAMILIES.values()}
"""By the type of a call, the tool's name."""
_VERSION = re.compile(r"(_preview)?(_\d{4}_\d{2}_\d{2})?")


def hosted_entry(kind: str, options: Options, where: str) -> Entry:
    """The provider's own tool of a type. Raises UnclearError for a type that is not known."""
    family = next((name for name in _FAMILIES if kind.startswith(name) and _VERSION.fullmatch(kind[len(name) :])), "")
    if not family and (options.unknown == "refuse" or not kind):
        raise UnclearError(f"{where} is of the type `{show(kind)[:60]}`, which is not known and could hold tools")
    name = _FAMILIES[family][0] if family else kind
    return Entry(name, alias="" if kind == name else kind)
