"""The gateway's address: who may call, what headers must say, and the way back to each client."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from extgate.enforce.mcp.http_client import Events, Origin
from extgate.enforce.mcp.options import Limits
from extgate.errors import WorkspaceError
from extgate.gateway.address import Address, open_front
from extgate.gateway.callers import CallerSettings, read_tokens
from extgate.gateway.settings import GatewaySettings
from tests.unit.gateway.world import World, run

HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}}


class Answer:
    """One response; `events` of a stream as they come."""

    def __init__(self) -> None:
        self.status, self.headers, self.body = 0, dict[str, str](), b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.events: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self.stream = Events(2**23)

    def on_head(self, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.headers = status, dict(headers)

    def on_body(self, data: bytes) -> None:
        self.body += data
        if "event-stream" in self.headers.get("content-type", ""):
            for _, message in self.stream.feed(data):
                self.events.put_nowait((self.stream.last_id, json.loads(message)))

    def on_end(self) -> None:
        self.done.set_result(None)

    def on_lost(self, reason: str) -> None:
        if not self.done.done():
            self.done.set_result(None)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    async def event(self) -> Any:
        """The next event's message."""
        return (await asyncio.wait_for(self.events.get(), 30))[1]


class Web:
    """A client of one address."""

    address: Address

    def __init__(self, port: int) -> None:
        self.port = port
        self.origin = Origin(f"http://127.0.0.1:{port}/")
        self._last = 0

    def begin(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> tuple[Answer, Any]:
        answer = Answer()
        return answer, self.origin.send(method, HEADERS if headers is None else headers, body, answer, path)

    async def send(self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Answer:
        answer, _ = self.begin(method, path, headers, body)
        await asyncio.wait_for(answer.done, 30)
        return answer

    async def rpc(self, method: str, params: Any = None, *, agent: str = "a", **headers: str) -> Answer:
        self._last += 1
        body = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params or {}}
        said = HEADERS | {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.send("POST", f"/agents/{agent}/mcp", said, json.dumps(body).encode())

    async def hello(self, agent: str = "a") -> dict[str, str]:
        """The header that names the new session."""
        answer = await self.rpc("initialize", HELLO, agent=agent)
        return {"mcp_session_id": answer.headers["mcp-session-id"]}


@asynccontextmanager
async def served(world: World, settings: GatewaySettings | None = None) -> AsyncIterator[Web]:
    async with open_front(settings or GatewaySettings(), "127.0.0.1", 0) as front, world.open() as gateway:
        front.serve(gateway)
        web = Web(front.port)
        web.address = front
        yield web
        web.origin.close()


def test_a_session_lists_and_calls_and_is_gone_once_it_was_deleted(tmp_path: Path) -> None:
    async def work() -> None:
        async with served(World(tmp_path, a="mcp: {disabled: ['habits/die']}")) as web:
            session = await web.hello()
            listed = await web.rpc("tools/list", **session)
            assert "habits__die" not in listed.body.decode()
            answer = await web.rpc("tools/call", {"name": "habits__echo", "arguments": {"é": 1}}, **session)
            assert answer.headers["content-type"] == "application/json"
            assert answer.json["result"]["content"][0]["text"] == '{"\\u00e9": 1}'
            refused = await web.rpc("tools/call", {"name": "habits__die"}, **session)
            assert refused.json["result"]["isError"] is True
            headers = {"mcp-session-id": session["mcp_session_id"]}
            assert (await web.send("DELETE", "/agents/a/mcp", headers)).status == 200
            assert (await web.rpc("tools/list", **session)).status == 404

    run(work())


def test_a_session_is_its_agent_s_alone(tmp_path: Path) -> None:
    async def work() -> None:
        async with served(World(tmp_path, a="", b="mcp: {disabled: ['*']}")) as web:
            session = await web.hello("a")
            assert (await web.rpc("tools/list", agent="b", **session)).status == 404
            assert (await web.rpc("tools/list", agent="b")).status == 400
            assert (await web.rpc("tools/list", agent="nobody", **session)).status == 404
            assert (await web.rpc("tools/list", agent="a", **session)).status == 200

    run(work())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "evil.example:8470"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost.evil.example"}, 403),
        ({"origin": "http://localhost:3000"}, 200),
        ({"host": "localhost"}, 200),
        ({"host": "[::1]:8470"}, 200),
        ({"content-type": "text/plain"}, 415),
        ({"accept": "text/html"}, 406),
        ({"mcp-protocol-version": "1999-01-01"}, 400),
        ({"mcp-method": "tools/list"}, 400),
    ],
)
def test_foreign_hosts_and_pages_and_headers_that_lie_are_refused(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    async def work() -> None:
        async with served(World(tmp_path)) as web:
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode()
            lines = HEADERS | {"host": f"127.0.0.1:{web.port}", "content-length": str(len(body))} | headers
            head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
            found = await raw(web.port, f"POST /agents/a/mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
            assert found.startswith(b"HTTP/1.1 %d " % status), found

    run(work())


async def raw(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    found = await asyncio.wait_for(reader.read(4096), 30)
    writer.close()
    return found


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /agents/a/mcp HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n", 413),
        (
            b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 70_000 + b"\r\n\r\n", 431),
        (b"nonsense\r\n\r\n", 400),
        (b"GET /else HTTP/1.1\r\nhost: localhost\r\n\r\n", 404),
        (b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n", 200),
        (b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n", 200),
        (b"PUT /agents/a/mcp HTTP/1.1\r\nhost: localhost\r\n\r\n", 405),
    ],
)
def test_what_is_no_sound_request_is_answered_with_why(tmp_path: Path, data: bytes, status: int) -> None:
    async def work() -> None:
        async with served(World(tmp_path)) as web:
            assert (await raw(web.port, data)).startswith(b"HTTP/1.1 %d " % status)

    run(work())


def test_a_batch_is_refused_whole(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with served(world) as web:
            session = await web.hello()
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "habits__echo"}}
            headers = HEADERS | {"mcp-session-id": session["mcp_session_id"]}
            answer = await web.send("POST", "/agents/a/mcp", headers, json.dumps([call]).encode())
            assert answer.status == 400
            assert "batches are refused" in answer.json["error"]["message"]
            assert world.calls == []

    run(work())


def test_what_comes_before_an_answer_comes_on_its_stream_and_news_on_the_client_s_own(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with served(world) as web:
            session = await web.hello()
            await web.rpc("tools/list", **session)
            own, _ = web.begin("GET", "/agents/a/mcp", HEADERS | {"mcp-session-id": session["mcp_session_id"]})
            params = {"name": "habits__progress", "_meta": {"progressToken": 7}}
            answer = await web.rpc("tools/call", params, **session)
            assert answer.headers["content-type"] == "text/event-stream"
            first, last = [await answer.event() for _ in range(2)]
            assert (first["method"], first["params"]["progressToken"]) == ("notifications/progress", 7)
            assert "result" in last
            world.profile("a", "mcp: {disabled: ['habits/die']}")
            assert (await own.event())["method"] == "notifications/tools/list_changed"

    run(work())


def test_a_stream_that_broke_is_taken_up_where_it_broke(tmp_path: Path) -> None:
    async def work() -> None:
        until = tmp_path / "now"
        async with served(World(tmp_path, a="")) as web:
            hello = {**HELLO, "capabilities": {"elicitation": {}}}
            opened = await web.rpc("initialize", hello)
            session = {"mcp-session-id": opened.headers["mcp-session-id"]}
            path, headers = "/agents/a/mcp", HEADERS | session
            call = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "habits__elicit"}}
            answer, request = web.begin("POST", path, headers, json.dumps(call).encode())
            asked = await answer.event()
            request.abort()
            said = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}}
            assert (await web.send("POST", path, headers, json.dumps(said).encode())).status == 202
            again, _ = web.begin("GET", path, headers | {"last-event-id": answer.stream.last_id})
            result = await again.event()
            assert result["id"] == 9
            assert result["result"]["content"][0]["text"] == '{"action": "accept"}'
            assert not until.exists()
            wrong = await web.send("GET", path, headers | {"last-event-id": "77-1"})
            assert wrong.status == 400

    run(work())


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
SAID = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "habits__echo"}


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({}, 200),
        ({"mcp_name": "=?base64?aGFiaXRzX19lY2hv?="}, 200),
        ({"mcp_name": "habits__die"}, 400),
        ({"mcp_method": "tools/list"}, 400),
        ({"mcp_protocol_version": "2025-11-25"}, 400),
        ({"mcp_name": "=?base64?aGFiaXRzX19lY2hv"}, 400),
    ],
)
def test_headers_that_repeat_a_stateless_request_must_agree_with_it(
    tmp_path: Path, wrong: dict[str, str], status: int
) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with served(world) as web:
            params = {"name": "habits__echo", "arguments": {}, "_meta": META}
            answer = await web.rpc("tools/call", params, **(SAID | wrong))
            assert answer.status == status, answer.body
            assert len(world.calls) == (status == 200)
            missing = {key: value for key, value in SAID.items() if key != "mcp_name"}
            assert (await web.rpc("tools/call", params, **missing)).status == 400

    run(work())


def test_hanging_up_on_a_stateless_call_cancels_it(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with served(world) as web:
            call = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "habits__hang", "_meta": META},
            }
            said = {name.replace("_", "-"): value for name, value in SAID.items()} | {"mcp-name": "habits__hang"}
            _, request = web.begin("POST", "/agents/a/mcp", HEADERS | said, json.dumps(call).encode())
            while not world.calls:
                await asyncio.sleep(0)
            request.abort()
            while {"cancelled": True} not in world.calls:
                await asyncio.sleep(0)

    run(work())


TOKEN, OTHER = "t" * 32, "u" * 32


def test_a_token_opens_the_doors_of_its_own_agents_only(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, a="", b="")
        tokens = tmp_path / "tokens.json"
        tokens.write_text(json.dumps({"a": [TOKEN], "b": [OTHER]}))
        tokens.chmod(0o600)
        async with served(world, GatewaySettings(callers=CallerSettings(tokens=tokens))) as web:
            for said, status in ({}, 401), ({"authorization": f"Bearer {TOKEN}"}, 200), ({"authorization": TOKEN}, 401):
                assert (await web.rpc("initialize", HELLO, **said)).status == status
            answer = await web.rpc("initialize", HELLO, agent="b", authorization=f"Bearer {TOKEN}")
            assert answer.status == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert (await web.send("GET", "/healthz")).status == 200

    run(work())


@pytest.mark.parametrize("text", ["[]", "{", '{"a": "short"}', '{"a": ["short"]}', '{"a": [7]}'])
def test_a_file_of_tokens_that_makes_no_sense_or_is_open_to_others_is_refused(tmp_path: Path, text: str) -> None:
    tokens = tmp_path / "tokens.json"
    tokens.write_text(text)
    tokens.chmod(0o600)
    with pytest.raises(WorkspaceError):
        read_tokens(tokens)
    tokens.write_text(json.dumps({"a": [TOKEN]}))
    assert list(read_tokens(tokens).values()) == [frozenset({"a"})]
    tokens.chmod(0o640)
    with pytest.raises(WorkspaceError):
        read_tokens(tokens)


def test_an_address_that_is_taken_is_an_error_before_any_server_starts(tmp_path: Path) -> None:
    async def work() -> None:
        async with open_front(GatewaySettings(), "127.0.0.1", 0) as front:
            answer = await Web(front.port).send("GET", "/readyz")
            assert answer.status == 503
            with pytest.raises(OSError):
                async with open_front(GatewaySettings(), "127.0.0.1", front.port):
                    pass

    run(work())


def test_a_client_that_does_not_read_is_cut_off_and_the_others_are_served(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with served(world, GatewaySettings(limits=Limits(unsent=200_000))) as web:
            session = await web.hello()
            writer = (await asyncio.open_connection("127.0.0.1", web.port, limit=1))[1]
            for number in range(60):
                params = {"name": "habits__big", "arguments": {"size": 90_000}}
                call = {"jsonrpc": "2.0", "id": f"slow {number}", "method": "tools/call", "params": params}
                body = json.dumps(call).encode()
                said = HEADERS | {"host": "localhost", "content-length": str(len(body))}
                lines = "".join(
                    f"{n}: {v}\r\n" for n, v in (said | {"mcp-session-id": session["mcp_session_id"]}).items()
                )
                writer.write(f"POST /agents/a/mcp HTTP/1.1\r\n{lines}\r\n".encode() + body)

            async def use_it_meanwhile() -> None:
                while True:
                    await writer.drain()
                    writer.write(b" ")
                    assert (await web.rpc("tools/call", {"name": "habits__echo"}, **session)).status == 200

            with pytest.raises(ConnectionError):
                await asyncio.wait_for(use_it_meanwhile(), 30)

    run(work())


def test_connections_that_carry_nothing_are_closed_and_those_that_wait_for_an_answer_are_not(tmp_path: Path) -> None:
    async def work() -> None:
        async with open_front(GatewaySettings(), "127.0.0.1", 0) as front, World(tmp_path).open() as gateway:
            front.serve(gateway)
            web = Web(front.port)
            session = await web.hello()
            own, _ = web.begin("GET", "/agents/a/mcp", HEADERS | {"mcp-session-id": session["mcp_session_id"]})
            reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
            writer.write(b"POST /agents/a/mcp HTTP/1.1\r\nx: ")
            while not own.status:
                await asyncio.sleep(0)
            assert front.listening is not None
            front.listening.expire(float("inf"))
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 30) == b""
            assert not own.done.done()
            web.origin.close()

    run(work())
