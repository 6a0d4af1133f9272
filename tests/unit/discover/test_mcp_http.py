"""Real servers behind URLs, by Streamable HTTP and SSE, and answers that are none."""

from __future__ import annotations

from typing import Any

import pytest

from extgate.discover.mcp_servers import ServerSpec
from tests.unit.discover.http_servers import plain_app, sdk_app, served
from tests.unit.discover.servers import run

KEY = "sesame-open-1234"


def remote(url: str, transport: str = "http") -> ServerSpec:
    return ServerSpec(name="far", transport=transport, url=url, headers={"x-key": KEY}, secrets=(KEY,))  # type: ignore[arg-type]


@pytest.mark.parametrize(("transport", "path"), [("http", "/mcp"), ("sse", "/sse")])
def test_the_sdk_s_own_servers_are_read_whole(transport: str, path: str) -> None:
    with served(sdk_app(transport)) as address:
        (server,), extensions, findings = run(remote(address + path, transport))
    assert (server.state, server.instructions, server.facts["transport"]) == ("connected", "Be kind.", transport)
    assert [e.id for e in extensions] == [
        "mcp_tool:far/add",
        "mcp_tool:far/echo",
        "mcp_resource:far/memo://one",
        "mcp_resource:far/memo://{key}",
        "mcp_prompt:far/echo",
    ]
    assert findings == []


def test_a_redirect_within_the_origin_is_followed() -> None:
    with served(sdk_app("http")) as address:
        (server,), extensions, _ = run(remote(address + "/mcp/"))
    assert (server.state, len(extensions)) == ("connected", 5)


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_headers_never_follow_a_redirect_to_another_origin(transport: str) -> None:
    elsewhere = plain_app(200, {"content-type": "application/json"}, b"{}")
    with served(elsewhere) as other, served(plain_app(307, {"location": other + "/mcp"})) as address:
        (server,), _, _ = run(remote(address, transport))
    assert server.state == "failed"
    assert elsewhere.seen == []


@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_an_error_status_is_named(transport: str, status: int) -> None:
    with served(plain_app(status, {"content-type": "text/plain"}, b"no")) as address:
        (server,), _, findings = run(remote(address, transport))
    assert server.state == "failed"
    assert f"it answered HTTP {status}" in str(server.error)
    assert [f.code for f in findings] == ["EG310"]


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_an_address_where_nobody_listens_fails(transport: str) -> None:
    with served(plain_app()) as address:
        pass
    (server,), _, _ = run(remote(address, transport))
    assert (server.state, "on `initialize`" in str(server.error)) == ("failed", True)


JSON, EVENTS = {"content-type": "application/json"}, {"content-type": "text/event-stream"}
BAD: list[tuple[str, str, dict[str, Any]]] = [
    ("html", "http", {"headers": {"content-type": "text/html"}, "body": b"<html>"}),
    ("html for events", "sse", {"headers": {"content-type": "text/html"}, "body": b"<html>"}),
    ("garbage", "http", {"headers": JSON, "body": b"garbage"}),
    ("endless json", "http", {"headers": JSON, "body": b"x" * 65536, "endless": True}),
    ("endless event", "http", {"headers": EVENTS, "body": b"x" * 65536, "endless": True}),
    ("endless event", "sse", {"headers": EVENTS, "body": b"x" * 65536, "endless": True}),
    ("compressed", "http", {"headers": {**JSON, "content-encoding": "gzip"}, "body": b"x"}),
    ("pings alone", "http", {"headers": EVENTS, "body": b":ping\n\n", "endless": True}),
    ("silence", "sse", {"headers": EVENTS, "body": b"", "endless": True}),
]


@pytest.mark.parametrize(("transport", "answer"), [b[1:] for b in BAD], ids=[f"{b[0]} over {b[1]}" for b in BAD])
def test_answers_that_are_none_fail_within_bounds(transport: str, answer: dict[str, Any]) -> None:
    with served(plain_app(200, **answer)) as address:
        (server,), extensions, _ = run(remote(address, transport), timeout_s=2.0)
    assert (server.state, extensions) == ("failed", [])
    assert server.error


def test_an_untrusted_address_is_not_called_and_gets_no_header() -> None:
    app = plain_app()
    with served(app) as address:
        (server,), _, _ = run(remote(address), trusted=lambda spec: False)
    assert (server.state, app.seen) == ("untrusted", [])


def test_a_secret_in_an_address_is_not_shown() -> None:
    with served(plain_app(401)) as address:
        (server,), _, _ = run(remote(f"{address}/mcp?key={KEY}", "sse"))
    assert KEY not in str(server.error)
    assert "***" in str(server.error)
