"""Items of a Responses answer: which of them the client would run, and what stands in the place of a stopped one.

Source: the types of the official SDK, openai 3.57.0, and Codex 0.171.0 (2026-11-30).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from extgate.enforce.wire import parts, spans
from extgate.enforce.wire.openai_entries import CALLS, hosted_entry
from extgate.enforce.wire.provider import Options
from extgate.enforce.wire.responses_mcp import space
from extgate.enforce.wire.spans import Fields, Span, UnclearError
from extgate.enforce.wire.turn import Turn

_WANTED = frozenset(
    {"type", "name", "namespace", "arguments", "input", "call_id", "id", "server_label", "execution", "action"}
    | {"actions", "operation"}
)
_PROVIDERS = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "program"}
    | {"mcp_list_tools", "message", "reasoning", "compaction", "additional_tools", "mcp_approval_response"}
    | {"item_reference", "configuration_update", "compaction_summary"}
)
"""What the provider has run itself of what the request offered it, and what is no call."""
_GIVEN = {
    "function_call": ("arguments",), "custom_tool_call": ("input",), "mcp_approval_request": ("arguments",),
    "tool_search_call": ("arguments",), "local_shell_call": ("action",), "shell_call": ("action",),
    "apply_patch_call": ("operation",), "computer_call": ("action", "actions"),
}  # fmt: skip
"""By the type of a call, the keys that say what it is called with."""

_UNREAD = b"?"
"""Stands for what a call of an unknown type is called with, which no rule on arguments lets through."""


class Item(NamedTuple):
    """One call. mark: the item's id. given: what it is called with, as an object's bytes, empty for nothing yet."""

    kind: str
    name: str
    namespace: str
    call_id: str
    mark: str
    given: bytes

    def is_same(self, other: Item) -> bool:
        """Whether both are of one call, whatever they give."""
        return self[:4] == other[:4]


def item(data: bytes, span: Span) -> Item | None:
    """The call that the client would run for an item; None for everything else. Raises UnclearError."""
    found = parts.exact(data, span, _WANTED, "an item of the answer")
    kind = parts.word(data, found, "type")
    if kind in _PROVIDERS or kind.endswith(("_output", "_result")):
        return None
    if kind == "tool_search_call" and parts.word(data, found, "execution") == "server":
        return None
    is_known = kind in _GIVEN
    if not is_known and not (kind.endswith("_call") or {"name", "arguments"} <= found.keys() or not kind):
        return None
    name, namespace = _named(data, found, kind)
    keys = _GIVEN.get(kind, ("arguments", "input", "action"))
    given = next((parts.piece(data, found, key) for key in keys if parts.has(data, found, key)), b"")
    if not is_known and not given:
        given = _UNREAD
    if kind == "custom_tool_call":
        given = spans.encode({"input": given.decode()}) if given else b""
    marks = [parts.word(data, found, key) for key in ("call_id", "id")]
    return Item(kind, name, namespace, marks[0] or marks[1], marks[1] or marks[0], given)


def _named(data: bytes, found: Fields, kind: str) -> tuple[str, str]:
    """The name by which it was offered, with its namespace."""
    name = parts.word(data, found, "name")
    if kind == "mcp_approval_request":
        return name, space(parts.word(data, found, "server_label"))
    if kind in CALLS:
        if name:
            raise UnclearError(f"a `{kind}` of the answer has a name")
        return CALLS[kind], ""
    if not name:
        raise UnclearError(f"a call of the answer has no name (`{kind[:60]}`)")
    return name, parts.word(data, found, "namespace")


def hosted(kind: str) -> str:
    """The name of a provider's own tool by its type, without a version; empty for one that is not known."""
    try:
        return hosted_entry(kind, Options(), "a tool").name
    except UnclearError:
        return ""


def finished(turn: Turn, call: Item) -> str:
    """Why a whole call is stopped; empty when it may go on."""
    if call.kind == "mcp_approval_request" and turn.judge.allows_everything:
        return ""
    given = call.given if len(call.given) <= turn.max_arguments else None
    return turn.finish(call.name, given, call.namespace)


def begun(turn: Turn, call: Item) -> str | None:
    """The same as soon as its name is known; None while its arguments have to be seen."""
    if call.kind == "mcp_approval_request" and turn.judge.allows_everything:
        return ""
    return turn.begin(call.name, call.namespace)


# ---------------------------------------------------------------------------------------------- in their place


def message(call: Item, why: str) -> dict[str, Any]:
    """The message that stands in the place of a call."""
    part = {"type": "output_text", "text": why, "annotations": [], "logprobs": []}
    mark = "msg_" + (call.mark.partition("_")[2] or call.mark or "stopped")
    return {"id": mark, "type": "message", "status": "completed", "role": "assistant", "content": [part]}


def outcome(call: Item, why: str) -> bytes:
    """The item that tells the provider, where it has kept the answer, that the call came to nothing."""
    said: dict[str, Any] = {"call_id": call.call_id, "output": why}
    if call.kind == "mcp_approval_request":
        said = {"type": "mcp_approval_response", "approval_request_id": call.mark, "approve": False, "reason": why}
    elif call.kind == "shell_call":
        told = {"stdout": "", "stderr": why, "outcome": {"type": "exit", "exit_code": 1}}
        said = {"type": "shell_call_output", "call_id": call.call_id, "output": [told]}
    elif call.kind == "apply_patch_call":
        said |= {"type": "apply_patch_call_output", "status": "failed"}
    elif call.kind == "tool_search_call":
        said = {"type": "tool_search_output", "call_id": call.call_id, "execution": "client", "tools": []}
        said |= {"status": "completed"}
    elif call.kind == "local_shell_call":
        said = {"type": "local_shell_call_output", "id": call.call_id, "output": why}
    else:
        said |= {"type": f"{call.kind}_output"}
    return spans.encode(said)
