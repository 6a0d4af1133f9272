"""The official MCP SDK, 1.20 to 2.x, behind one face; imported when the first server is started and not before.

What differs: names and shapes of the message type, paging requests, the HTTP library (httpx, then httpx2), and servers
of the 2026-07-28 protocol, which know no `initialize` and which only SDK 2 can ask.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

METHOD_NOT_FOUND = -32601
UNSUPPORTED_VERSION = -32022

Streams = tuple[Any, Any]
"""What a transport yields and a session takes: received messages, and messages to send."""


class RefusedError(Exception):
    """A server's own error answer. code: JSON-RPC's number."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a server says of itself when a session starts."""

    name: str
    version: str
    protocol: str
    instructions: str
    capabilities: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a list, as plain JSON. cursor: None on the last."""

    items: tuple[Mapping[str, Any], ...]
    cursor: str | None


class Sdk:
    """The installed SDK. Raises ImportError when there is none."""

    def __init__(self) -> None:
        # What the SDK logs of a failing server, tracebacks included, is told by the server's state instead.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        self.mcp: Any = importlib.import_module("mcp")
        self.types: Any = importlib.import_module("mcp.types")
        self.major = int(importlib.metadata.version("mcp").partition(".")[0])
        self.http: Any = importlib.import_module("httpx2" if self.major >= 2 else "httpx")
        self._message: Any = importlib.import_module("mcp.shared.message").SessionMessage
        errors: Any = importlib.import_module("mcp.shared.exceptions")
        self._error: type[Exception] = errors.MCPError if self.major >= 2 else errors.McpError

    def read_message(self, line: bytes) -> object:
        """A message from its JSON. Raises ValueError when it is none."""
        if self.major >= 2:
            return self._message(self.types.jsonrpc_message_adapter.validate_json(line, by_name=False))
        return self._message(self.types.JSONRPCMessage.model_validate_json(line))

    def write_message(self, message: Any) -> bytes:
        """The JSON of a message that a session sends."""
        text: str = message.message.model_dump_json(by_alias=True, exclude_none=True)
        return text.encode()

    @asynccontextmanager
    async def session(self, streams: Streams, version: str) -> AsyncIterator[Session]:
        """A session that has not said hello yet. version: extgate's own, for the server's log."""
        about = self.types.Implementation(name="extgate", version=version)
        answers = Answers(streams[0])
        async with self.mcp.ClientSession(answers, streams[1], client_info=about) as raw:
            yield Session(self, raw, answers)

    def http_streams(
        self, url: str, headers: Mapping[str, str], client: Callable[..., Any]
    ) -> AbstractAsyncContextManager[Streams]:
        """Streamable HTTP. client: makes an httpx client from `headers`, `timeout` and `auth`."""
        module: Any = importlib.import_module("mcp.client.streamable_http")
        if hasattr(module, "streamable_http_client"):
            return _with_client(module.streamable_http_client, url, client(headers=dict(headers)))
        return _first_two(module.streamablehttp_client(url, headers=dict(headers), httpx_client_factory=client))

    def sse_streams(
        self, url: str, headers: Mapping[str, str], client: Callable[..., Any]
    ) -> AbstractAsyncContextManager[Streams]:
        """The older HTTP transport with server-sent events."""
        module: Any = importlib.import_module("mcp.client.sse")
        return _first_two(module.sse_client(url, headers=dict(headers), httpx_client_factory=client))

    @property
    def error(self) -> type[Exception]:
        """The SDK's own error for an error answer."""
        return self._error


@asynccontextmanager
async def _with_client(connect: Callable[..., Any], url: str, client: Any) -> AsyncIterator[Streams]:
    async with client, connect(url, http_client=client) as streams:
        yield streams[0], streams[1]


@asynccontextmanager
async def _first_two(transport: AbstractAsyncContextManager[Any]) -> AsyncIterator[Streams]:
    async with transport as streams:
        yield streams[0], streams[1]


_LISTS = {
    "tools": ("list_tools", "ListTools"),
    "resources": ("list_resources", "ListResources"),
    "resourceTemplates": ("list_resource_templates", "ListResourceTemplates"),
    "prompts": ("list_prompts", "ListPrompts"),
}


class Session:
    """A conversation with one server."""

    def __init__(self, sdk: Sdk, raw: Any, answers: Answers) -> None:
        self._sdk, self._raw, self._answers = sdk, raw, answers

    async def hello(self) -> Hello:
        """Starts the session. Raises RefusedError when the server will not."""
        try:
            result = await self._raw.initialize()
        except self._sdk.error as error:
            result = await self._discover(error)
        about = result.server_info if self._sdk.major >= 2 else result.serverInfo
        offered = result.capabilities.model_dump(by_alias=True, exclude_none=True)
        return Hello(
            name=str(about.name) if about else "",
            version=str(about.version) if about else "",
            protocol=str(self._raw.protocol_version if self._sdk.major >= 2 else result.protocolVersion),
            instructions=result.instructions or "",
            capabilities=frozenset(offered),
        )

    async def _discover(self, error: Any) -> Any:
        """Asks a server that knows no `initialize` by the 2026-07-28 protocol, which SDK 1 has not."""
        refused = _refused(error)
        if self._sdk.major < 2 or refused.code not in (METHOD_NOT_FOUND, UNSUPPORTED_VERSION):
            raise refused from None
        try:
            return await self._raw.discover()
        except self._sdk.error:
            raise refused from None

    async def page(self, what: str, cursor: str | None) -> Page:
        """One page of `tools`, `resources`, `resourceTemplates` or `prompts`, each item as the server wrote it.

        Raises RefusedError for an error answer, ValueError for one that has no list.
        """
        method, request = _LISTS[what]
        self._answers.wanted, self._answers.items = what, ()
        params = self._sdk.types.PaginatedRequestParams(cursor=cursor) if cursor is not None else None
        try:
            if self._sdk.major >= 2:  # asked this way because `list_tools` drops tools without a word
                asked = getattr(self._sdk.types, f"{request}Request")(params=params)
                result = await self._raw.send_request(asked, getattr(self._sdk.types, f"{request}Result"))
            else:
                result = await getattr(self._raw, method)(params=params)
        except self._sdk.error as error:
            raise _refused(error) from None
        finally:
            self._answers.wanted = ""
        answer = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return Page(items=self._answers.items, cursor=answer.get("nextCursor") or None)


class Answers:
    """What comes from a server, less the items of a page that is asked for: the SDK would throw a whole page away for
    one of them, and fill others in. wanted: the list, empty while none is asked for; items: of it, as they came."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.wanted = ""
        self.items: tuple[Any, ...] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    async def __aenter__(self) -> Answers:
        await self._raw.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._raw.__aexit__(*error)

    def __aiter__(self) -> Answers:
        return self

    async def __anext__(self) -> Any:
        return self._less_items(await self._raw.__anext__())

    async def receive(self) -> Any:
        return self._less_items(await self._raw.receive())

    def _less_items(self, came: Any) -> Any:
        message = getattr(came, "message", None)
        result = getattr(getattr(message, "root", message), "result", None)
        if self.wanted and isinstance(result, dict) and isinstance(result.get(self.wanted), list):
            self.items, result[self.wanted] = tuple(result[self.wanted]), []
        return came


def _refused(error: Any) -> RefusedError:
    return RefusedError(int(error.error.code), str(error.error.message))
