"""A server behind a URL: the SDK's HTTP transports with bounds, and headers that reach their own origin only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from extgate.discover.mcp_sdk import Sdk, Streams
from extgate.discover.mcp_watch import ServerError, Watch
from extgate.discover.server_config import ServerSpec

CONNECT_S = 10.0


def http_streams(sdk: Sdk, spec: ServerSpec, watch: Watch) -> AbstractAsyncContextManager[Streams]:
    """Connects to the server by Streamable HTTP or by SSE, as its spec says."""
    connect = sdk.sse_streams if spec.transport == "sse" else sdk.http_streams
    return connect(spec.url, spec.headers, _client_factory(sdk.http, spec, watch))


def _client_factory(http: Any, spec: ServerSpec, watch: Watch) -> Callable[..., Any]:
    home = _origin(http.URL(spec.url))

    async def check_request(request: Any) -> None:
        request.headers["accept-encoding"] = "identity"
        if _origin(request.url) != home:
            watch.fail(f"sends its callers on to `{request.url.scheme}://{request.url.host}`")
            raise ServerError("redirected to another origin")

    async def check_response(response: Any) -> None:
        if response.status_code >= 400 and (response.request.method == "POST" or spec.transport == "sse"):
            watch.ended = f"it answered HTTP {response.status_code} {response.reason_phrase}".rstrip()
        if response.headers.get("content-encoding", "identity") != "identity":
            watch.fail("compresses its answers without being asked, which hides their size")
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        most = watch.limits.total_bytes if is_stream else watch.limits.message_bytes
        response.stream = _bounded(http, response.stream, watch, most)

    def client(headers: Any = None, timeout: Any = None, auth: Any = None) -> Any:
        return http.AsyncClient(
            headers=headers,
            timeout=timeout or http.Timeout(CONNECT_S, read=None),
            auth=auth,
            follow_redirects=True,
            event_hooks={"request": [check_request], "response": [check_response]},
        )

    return client


def _origin(url: Any) -> tuple[str, str, int | None]:
    return (url.scheme, url.host, url.port)


def _bounded(http: Any, stream: Any, watch: Watch, most: int) -> Any:
    """The stream of an answer, which ends the probe when it grows too long."""

    class Bounded(http.AsyncByteStream):  # type: ignore[misc]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in stream:
                size += len(chunk)
                if size > most:
                    watch.fail(f"sent an answer of more than {most:,} bytes")
                if not watch.count(len(chunk)):
                    return
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()
