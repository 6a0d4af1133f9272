"""The server that the MCP project's conformance suite talks to: every tool, resource and prompt that it asks for by
name. Streamable HTTP on loopback; `python conformance_server.py PORT`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import sys
import warnings
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import uvicorn
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ToolsListChanged
from starlette.applications import Starlette

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="
OBJECT: dict[str, Any] = {"type": "object"}
SECRET = b"of this fixture"


def schema(*required: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in required}, "required": list(required)}


SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}  # fmt: skip
DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}
_ONE, _MANY = ["option1", "option2", "option3"], [("value1", "First"), ("value2", "Second"), ("value3", "Third")]
_TITLED = [{"const": value, "title": title} for value, title in _MANY]
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": _ONE},
        "titledSingle": {"type": "string", "oneOf": _TITLED},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _ONE}},
        "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
    },
}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def embedded(uri: str, kind: str, value: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": value}}


IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
CONTENT = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [embedded("test://embedded-resource", "text/plain", "This is embedded.")],
    "test_multiple_content_types": [
        text("Multiple content types test:"), IMAGE,
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
    "json_schema_2020_12_tool": [text("taken")],
    "test_custom_headers": [text("taken")],
}  # fmt: skip

Context = Any
Args = Mapping[str, Any]
Tool = Callable[[Context, Args], Awaitable[list[dict[str, Any]]]]


async def with_logging(ctx: Context, args: Args) -> list[dict[str, Any]]:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", line, "conformance", related_request_id=ctx.request_id)
        await anyio.sleep(0.05)
    return [text("logged")]


async def with_progress(ctx: Context, args: Args) -> list[dict[str, Any]]:
    for step in (0, 50, 100):
        await ctx.session.report_progress(step, 100, f"Completed step {step} of 100")
        await anyio.sleep(0.05)
    return [text("done")]


async def failing(ctx: Context, args: Args) -> list[dict[str, Any]]:
    raise ValueError("This tool intentionally returns an error for testing")


async def sampling(ctx: Context, args: Args) -> list[dict[str, Any]]:
    said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=args["prompt"]))
    result = await ctx.session.create_message([said], max_tokens=100, related_request_id=ctx.request_id)
    return [text(f"LLM response: {result.content.text}")]


def asking(message: str, wanted: dict[str, Any]) -> Tool:
    async def elicit(ctx: Context, args: Args) -> list[dict[str, Any]]:
        asked = args.get("message", message)
        result = await ctx.session.elicit_form(asked, wanted, related_request_id=ctx.request_id)
        return [text(f"User response: action={result.action}, content={json.dumps(result.content)}")]

    return elicit


async def reconnecting(ctx: Context, args: Args) -> list[dict[str, Any]]:
    if ctx.close_sse_stream:
        await ctx.close_sse_stream()
    await anyio.sleep(0.3)
    return [text("Reconnection test completed")]


BUS = InMemorySubscriptionBus()
EXTRA: dict[str, set[str]] = {"tools": set(), "prompts": set()}


def changing(what: str) -> Tool:
    """A tool whose call changes a list, which is told on the streams that listen."""

    async def change(ctx: Context, args: Args) -> list[dict[str, Any]]:
        EXTRA[what] ^= {f"extra_{what}"}
        await BUS.publish(ToolsListChanged() if what == "tools" else PromptsListChanged())
        if ctx.protocol_version < "2026":
            session = ctx.session
            await (session.send_tool_list_changed() if what == "tools" else session.send_prompt_list_changed())
        return [text("changed")]

    return change


USER = {"type": "object", "properties": {"username": {"type": "string"}, "email": {"type": "string"}}}
TOOLS: dict[str, tuple[dict[str, Any], Tool]] = {
    "test_tool_with_logging": (OBJECT, with_logging),
    "test_tool_with_progress": (OBJECT, with_progress),
    "test_error_handling": (OBJECT, failing),
    "test_sampling": (schema("prompt"), sampling),
    "test_elicitation": (schema("message"), asking("", USER)),
    "test_elicitation_sep1034_defaults": (OBJECT, asking("Please review the values", DEFAULTS)),
    "test_elicitation_sep1330_enums": (OBJECT, asking("Please choose", ENUMS)),
    "test_reconnection": (OBJECT, reconnecting),
    "test_logging_tool": (OBJECT, with_logging),
    "test_trigger_tool_change": (OBJECT, changing("tools")),
    "test_trigger_prompt_change": (OBJECT, changing("prompts")),
}

# ---------------------------------------------------------------------------------------------- asking in the result

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def elicitation(message: str = "What is your name?", wanted: dict[str, Any] = NAME) -> dict[str, Any]:
    params = {"mode": "form", "message": message, "requestedSchema": wanted}
    return {"method": "elicitation/create", "params": params}


def sample(prompt: str = "What is the capital of France?") -> dict[str, Any]:
    messages = [{"role": "user", "content": {"type": "text", "text": prompt}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 100}}


ROOTS = {"method": "roots/list", "params": {}}
CONFIRM = {"type": "object", "properties": {"confirmed": {"type": "boolean"}}, "required": ["confirmed"]}
ASKS: dict[str, dict[str, dict[str, Any]]] = {
    "test_input_required_result_elicitation": {"user_name": elicitation()},
    "test_streaming_elicitation": {"user_name": elicitation()},
    "test_input_required_result_sampling": {"capital_question": sample()},
    "test_input_required_result_list_roots": {"client_roots": ROOTS},
    "test_input_required_result_request_state": {"confirm": elicitation("Go on?", CONFIRM)},
    "test_input_required_result_tampered_state": {"confirm": elicitation("Go on?", CONFIRM)},
    "test_input_required_result_multiple_inputs": {
        "user_name": elicitation(), "greeting": sample("Greet me"), "client_roots": ROOTS,
    },
    "test_input_required_result_capabilities": {"user_name": elicitation(), "question": sample()},
}  # fmt: skip
NEEDS = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
STATEFUL = ("request_state", "tampered_state", "multiple_inputs", "multi_round")


def seal(state: Mapping[str, Any]) -> str:
    body = json.dumps(state).encode()
    return base64.b64encode(hmac.digest(SECRET, body, "sha256") + body).decode()


def unseal(sealed: str) -> dict[str, Any]:
    try:
        data = base64.b64decode(sealed, validate=True)
    except ValueError:
        data = b""
    if not hmac.compare_digest(data[:32], hmac.digest(SECRET, data[32:], hashlib.sha256)):
        raise MCPError(code=types.INVALID_PARAMS, message="the request state was tampered with")
    found: dict[str, Any] = json.loads(data[32:])
    return found


def can(ctx: Context, what: str) -> bool:
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and getattr(capabilities, what) is not None


def required(requests: Mapping[str, Any], state: str | None = None) -> types.InputRequiredResult:
    body = {"inputRequests": requests, **({"requestState": state} if state else {})}
    return types.InputRequiredResult.model_validate({"resultType": "input_required", **body})


def ask(ctx: Context, params: Any) -> types.InputRequiredResult | dict[str, Any]:
    """What a tool that asks in its result gives: the questions, or with all answers its content."""
    name, said = params.name, dict(params.input_responses or {})
    state = unseal(params.request_state) if params.request_state else {}
    if name.endswith("multi_round"):
        return multi_round(said, state)
    asks = {key: request for key, request in ASKS[name].items() if can(ctx, NEEDS[request["method"]])}
    missing = {key: request for key, request in asks.items() if key not in said or is_bad(said[key])}
    if missing or not asks:
        is_stateful = name.endswith(STATEFUL)
        return required(missing, seal({"tool": name}) if is_stateful else None)
    return {"content": [text(f"state-ok {json.dumps({key: str(value) for key, value in said.items()})}")]}


def is_bad(response: Any) -> bool:
    """Whether an answer is not of the shape that was asked for."""
    data = response if isinstance(response, Mapping) else response.model_dump(by_alias=True)
    content = data.get("content")
    if data.get("action") == "accept":
        return not isinstance(content, Mapping) or not all(isinstance(v, str | bool) for v in content.values())
    return not ({"action", "content", "roots"} & set(data))


def multi_round(said: Mapping[str, Any], state: Mapping[str, Any]) -> types.InputRequiredResult | dict[str, Any]:
    rounds = int(state.get("round", 0))
    if rounds == 1 and "step1" not in said:
        rounds = 0
    if rounds == 0:
        return required({"step1": elicitation("Step 1: what is your name?")}, seal({"round": 1}))
    if rounds == 1:
        color = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
        return required({"step2": elicitation("Step 2: which color?", color)}, seal({"round": 2}))
    return {"content": [text("all rounds done")]}


# ---------------------------------------------------------------------------------------------- the server


async def list_tools(ctx: Context, params: Any) -> types.ListToolsResult:
    rows = dict.fromkeys((*CONTENT, *EXTRA["tools"]), OBJECT) | {name: wanted for name, (wanted, _) in TOOLS.items()}
    rows["json_schema_2020_12_tool"] = SCHEMA_2020
    rows |= dict.fromkeys((*ASKS, "test_input_required_result_multi_round", "test_missing_capability"), OBJECT)
    rows["test_custom_headers"] = {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "priority": {"type": "integer", "x-mcp-header": "Priority"},
            "verbose": {"type": "boolean", "x-mcp-header": "Verbose"},
        },
    }
    tools = [{"name": name, "description": f"Does {name}.", "inputSchema": rows[name]} for name in sorted(rows)]
    return types.ListToolsResult.model_validate({"tools": tools})


async def call_tool(ctx: Context, params: Any) -> types.CallToolResult | types.InputRequiredResult:
    name, args = params.name, params.arguments or {}
    if name in ASKS or name.endswith("multi_round"):
        if name == "test_streaming_elicitation":
            await ctx.session.report_progress(1, 2)
        found = ask(ctx, params)
        return found if isinstance(found, types.InputRequiredResult) else types.CallToolResult.model_validate(found)
    if name == "test_missing_capability":
        if not can(ctx, "sampling"):
            data = {"requiredCapabilities": {"sampling": {}}}
            raise MCPError(code=-32021, message="this tool needs sampling", data=data)
        return types.CallToolResult.model_validate({"content": [text("sampling is there")]})
    try:
        content = CONTENT[name] if name in CONTENT else await TOOLS[name][1](ctx, args)
    except KeyError:
        raise MCPError(code=types.INVALID_PARAMS, message=f"no tool `{name}`") from None
    except ValueError as error:
        return types.CallToolResult.model_validate({"content": [text(str(error))], "isError": True})
    return types.CallToolResult.model_validate({"content": content})


async def list_resources(ctx: Context, params: Any) -> types.ListResourcesResult:
    names = ("static-text", "static-binary", "watched-resource")
    rows = [{"uri": f"test://{name}", "name": name, "mimeType": "text/plain"} for name in names]
    return types.ListResourcesResult.model_validate({"resources": rows})


async def list_templates(ctx: Context, params: Any) -> types.ListResourceTemplatesResult:
    rows = [{"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}]
    return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": rows})


async def read_resource(ctx: Context, params: Any) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri == "test://static-binary":
        row = {"uri": uri, "mimeType": "image/png", "blob": PNG}
    elif uri in ("test://static-text", "test://watched-resource"):
        row = {"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."}
    elif uri.startswith("test://template/") and uri.endswith("/data"):
        id = uri.removeprefix("test://template/").removesuffix("/data")
        row = {"uri": uri, "mimeType": "application/json", "text": json.dumps({"id": id, "templateTest": True})}
    else:
        raise MCPError(code=types.INVALID_PARAMS, message="Resource not found", data={"uri": uri})
    return types.ReadResourceResult.model_validate({"contents": [row]})


async def list_prompts(ctx: Context, params: Any) -> types.ListPromptsResult:
    wanted = {
        "test_simple_prompt": (), "test_prompt_with_arguments": ("arg1", "arg2"), "test_prompt_with_image": (),
        "test_prompt_with_embedded_resource": ("resourceUri",), "test_input_required_result_prompt": (),
    }  # fmt: skip
    wanted |= dict.fromkeys(EXTRA["prompts"], ())
    rows = [
        {"name": name, "description": f"Gives {name}.", "arguments": [{"name": a, "required": True} for a in arguments]}
        for name, arguments in wanted.items()
    ]
    return types.ListPromptsResult.model_validate({"prompts": rows})


async def get_prompt(ctx: Context, params: Any) -> types.GetPromptResult | types.InputRequiredResult:
    args = params.arguments or {}
    if params.name == "test_input_required_result_prompt" and not params.input_responses:
        wanted = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
        return required({"user_context": elicitation("What context?", wanted)})
    content: dict[str, list[dict[str, Any]]] = {
        "test_simple_prompt": [text("This is a simple prompt for testing.")],
        "test_prompt_with_image": [IMAGE, text("Please analyze the image above.")],
        "test_input_required_result_prompt": [text("with context")],
    }
    if params.name == "test_prompt_with_arguments":
        content[params.name] = [text(f"Prompt with arguments: arg1='{args['arg1']}', arg2='{args['arg2']}'")]
    if params.name == "test_prompt_with_embedded_resource":
        content[params.name] = [embedded(args["resourceUri"], "text/plain", "Embedded content."), text("Process it.")]
    messages = [{"role": "user", "content": block} for block in content[params.name]]
    return types.GetPromptResult.model_validate({"messages": messages})


async def complete(ctx: Context, params: Any) -> types.CompleteResult:
    return types.CompleteResult.model_validate({"completion": {"values": [], "total": 0, "hasMore": False}})


async def nothing(ctx: Context, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


def app(event_store: Any) -> Starlette:
    server: Server[Any] = Server(
        "conformance", version="1", on_list_tools=list_tools, on_call_tool=call_tool, on_list_resources=list_resources,
        on_list_resource_templates=list_templates, on_read_resource=read_resource, on_subscribe_resource=nothing,
        on_unsubscribe_resource=nothing, on_list_prompts=list_prompts, on_get_prompt=get_prompt, on_completion=complete,
        on_set_logging_level=nothing, on_subscriptions_listen=ListenHandler(BUS),
    )  # fmt: skip
    return server.streamable_http_app(event_store=event_store, retry_interval=100)


class Events:
    """Keeps the events of streams, so that a client can take one up again."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self.rows.append((stream_id, message))
        return str(len(self.rows))

    async def replay_events_after(self, last_event_id: str, send: Any) -> str | None:
        from mcp.server.streamable_http import EventMessage

        stream = self.rows[int(last_event_id) - 1][0]
        for number, (of, message) in enumerate(self.rows, 1):
            if number > int(last_event_id) and of == stream and message is not None:
                await send(EventMessage(message, str(number)))
        return stream


if __name__ == "__main__":
    uvicorn.run(
        app(Events()), host="127.0.0.1", port=int(sys.argv[1]), log_level="critical", timeout_graceful_shutdown=1
    )
