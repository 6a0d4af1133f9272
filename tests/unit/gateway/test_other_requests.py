"""What could be taken for another request than the one that was judged, or for none, leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from extgate.enforce.mcp.http_client import Origin
from tests.unit.enforce.wire.world import body
from tests.unit.gateway.test_address import Answer
from tests.unit.gateway.test_wire import TOOLS, served
from tests.unit.gateway.world import run


@pytest.mark.parametrize(
    "headers",
    [
        {"content_type": "application/json; charset=utf-7"}, {"content_type": "application/json;Charset=\"UTF-16\""},
        {"content_type": "application/x-www-form-urlencoded"}, {"content_type": "text/plain"},
        {"x_http_method_override": "PUT"}, {"x_original_url": "/v1/files"}, {"x_rewrite_url": "/"},
    ],
)  # fmt: skip
def test_a_header_by_which_a_provider_could_read_another_request_is_refused(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    async def work() -> None:
        async with served(tmp_path) as wire:
            answer = await wire.ask(data=body(tools=TOOLS), **headers)
            assert answer.status == 400
            assert wire.model.requests == []

    run(work())


@pytest.mark.parametrize("query", ["$httpMethod=GET", "a=1&%24req=x", "$HTTPHEADERS=a", "$ct=x"])
def test_a_parameter_that_brings_a_request_of_its_own_is_refused(tmp_path: Path, query: str) -> None:
    async def work() -> None:
        async with served(tmp_path) as wire:
            answer = await wire.ask(f"/v1/messages?{query}", body(tools=TOOLS))
            assert answer.status == 400
            assert wire.model.requests == []

    run(work())


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=UTF-8", "application/vnd.x+json"])
def test_usual_types_and_parameters_go_on(tmp_path: Path, kind: str) -> None:
    async def work() -> None:
        async with served(tmp_path) as wire:
            answer = await wire.ask("/v1/messages?beta=true&$alt=json", body(tools=TOOLS), content_type=kind)
            assert answer.status == 200
            assert [row["name"] for row in wire.model.sent["tools"]] == ["Read"]

    run(work())


def test_a_hello_that_asks_for_no_answer_opens_no_session(tmp_path: Path) -> None:
    async def work() -> None:
        async with served(tmp_path) as wire:
            front = wire.front.front
            assert front is not None
            hello = {"jsonrpc": "2.0", "method": "initialize", "params": {"capabilities": {}}}
            answer, origin = Answer(), Origin(f"http://127.0.0.1:{wire.front.port}")
            said = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
            origin.send("POST", said, json.dumps(hello).encode(), answer, "/agents/a/mcp")
            await asyncio.wait_for(answer.done, 30)
            origin.close()
            assert answer.status == 400
            assert not front.hub.clients

    run(work())
