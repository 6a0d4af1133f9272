"""Answers longer than what is held in memory: passed on whole from a file, or refused, and never half of one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from extgate.enforce.mcp import envelope, long
from extgate.enforce.mcp.call import Call, Reply
from extgate.enforce.mcp.http_client import Events
from extgate.enforce.mcp.link import Answered, Link, Noise
from extgate.enforce.mcp.long import Long, Pieces, TooLongError
from extgate.enforce.mcp.options import Limits
from extgate.gateway.address import open_front
from extgate.gateway.settings import GatewaySettings
from tests.unit.enforce.mcp.cores import World as Core
from tests.unit.enforce.mcp.cores import offer
from tests.unit.gateway.test_address import HEADERS, Web, served
from tests.unit.gateway.world import Client, World, run, text_of

LIMITS = "gateway: {limits: {message_bytes: 100000, answer_bytes: 50000000}}\n"
SIZE = 3_000_000


def kept(data: bytes) -> memoryview:
    """The bytes as they lie in a file."""
    pieces = Pieces(0, len(data))
    pieces.add(data)
    found = pieces.take()
    assert isinstance(found, memoryview)
    return found


def whole(data: Any) -> bytes:
    return b"".join(data.pieces()) if isinstance(data, Long) else bytes(data)


def test_a_long_answer_reaches_its_client_whole_as_json_and_as_events(tmp_path: Path) -> None:
    async def work() -> None:
        async with served(World(tmp_path, LIMITS)) as web:
            session = await web.hello()
            call = {"name": "habits__big", "arguments": {"size": SIZE}}
            plain = await web.rpc("tools/call", call, **session)
            assert text_of(plain.json) == "x" * SIZE
            assert plain.headers["content-length"] == str(len(plain.body))
            streamed = await web.rpc("tools/call", call, **session, accept="text/event-stream")
            (data,) = [line for line in streamed.body.splitlines() if line.startswith(b"data: {")]
            assert text_of(json.loads(data[6:])) == "x" * SIZE
            assert (await web.rpc("ping", **session)).json["result"] == {}

    run(work())


def test_a_long_answer_that_is_on_its_way_comes_whole_when_the_gateway_ends(tmp_path: Path) -> None:
    async def work() -> None:
        async with open_front(GatewaySettings(limits=Limits(drain_s=100.0)), "127.0.0.1", 0) as front:
            async with World(tmp_path, LIMITS).open() as gateway:
                front.serve(gateway)
                web = Web(front.port)
                session = await web.hello()
                call = {"name": "habits__big", "arguments": {"size": 30_000_000}}
                body = json.dumps({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call}).encode()
                headers = HEADERS | {"mcp-session-id": session["mcp_session_id"]}
                answer, request = web.begin("POST", "/agents/a/mcp", headers, body)
                while not answer.status:
                    await asyncio.sleep(0)
                request.connection.transport.pause_reading()
            assert not answer.done.done()
            request.connection.transport.resume_reading()
        await asyncio.wait_for(answer.done, 30)
        assert len(text_of(answer.json)) == 30_000_000

    run(work())


def test_nothing_is_left_on_the_disk_once_a_long_answer_was_sent_or_given_up(tmp_path: Path) -> None:
    before = long._DISK.used
    data = b'{"jsonrpc":"2.0","id":1,"result":{"a":"' + b"x" * SIZE + b'"}}'
    view = kept(data)
    assert long._DISK.used == before + len(data)
    del view
    pieces = Pieces(10, len(data) - 1)
    pieces.add(data[:-1])
    with pytest.raises(TooLongError, match=r"is longer than \d+ bytes"):
        pieces.add(data[-1:])
    pieces.drop()
    assert long._DISK.used == before


def test_long_answers_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long, "MAX_STORED", 1000)
    first = kept(b"x" * 800)
    with pytest.raises(TooLongError, match="beside the other long ones"):
        kept(b"x" * 300)
    del first
    assert kept(b"x" * 300)[:2] == b"xx"


def test_a_disk_that_is_full_fails_the_call_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(long.tempfile, "TemporaryFile", full)

    async def work() -> None:
        async with World(tmp_path, LIMITS).open() as gateway:
            client = await Client(gateway).hello()
            assert "cannot be kept (OSError)" in text_of(await client.call("big", size=SIZE))
            assert text_of(await client.call("echo", still="here")) == '{"still": "here"}'

    run(work())


@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}',
        b'{"result":{"a":1},"jsonrpc":"2.0","x-vendor":[1, 2],"id":1}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"no"}}',
        b'{"jsonrpc":"2.0","result":{"a":1},"result":{"b":2},"id":99,"id":1}',
        b'{"jsonrpc": "2.0",\r "id": 1, "result": {"a":1 }}',
    ],
)
@pytest.mark.parametrize("is_modern", [False, True])
def test_an_answer_from_a_file_is_the_one_that_memory_gives(answer: bytes, is_modern: bool) -> None:
    session = Core().client().session
    found = []
    for data in (answer, kept(answer)):
        link = Link("slack")
        link.ask(Call(session=session, server="slack", method="tools/call", params={}, id=b'"c"', is_modern=is_modern))
        event = link.receive(data)
        assert isinstance(event, Answered)
        found.append(whole(event.data))
    assert found[0] == found[1]
    assert json.loads(found[0])["id"] == "c"


@pytest.mark.parametrize(
    "data",
    [b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}', b'{"id":1', b"[1]", b'{"jsonrpc":"2.0","id":7}'],
)
def test_a_long_message_that_answers_nothing_goes_nowhere(data: bytes) -> None:
    link = Link("slack")
    link.ask(Call(session=Core().client().session, server="slack", method="tools/call", params={}))
    assert isinstance(link.receive(kept(data)), Noise)


def test_a_long_answer_that_asks_the_client_is_judged_as_any_other() -> None:
    session = Core().client().session
    link = Link("slack")
    link.is_modern = True
    link.ask(Call(session=session, server="slack", method="tools/call", params={}, id=b"5", is_modern=True))
    asks = {"x": {"method": "tools/call"}}
    answer = {"jsonrpc": "2.0", "result": {"inputRequests": asks, "resultType": "input_required"}, "id": 1}
    event = link.receive(kept(json.dumps(answer).encode()))
    assert isinstance(event, Answered)
    assert "not permitted" in json.loads(whole(event.data))["error"]["message"]


def test_an_event_longer_than_memory_reads_the_same_however_it_is_cut() -> None:
    body = b'{"a":"' + b"x" * 5000 + b'"}'
    stream = b": hi\r\n\r\nevent: message\r\nid: 7\r\ndata: " + body + b"\r\n\r\ndata: {}\n\n"
    for size in (1, 7, 100, 4096, 10_000):
        events = Events(200, 10_000)
        found = [row for at in range(0, len(stream), size) for row in events.feed(stream[at : at + size])]
        assert [(kind, bytes(data)) for kind, data in found] == [("message", body), ("message", b"{}")]
    with pytest.raises(ValueError, match="longer than 1000 bytes"):
        Events(200, 1000).feed(stream)


def test_other_messages_wait_behind_a_long_one_and_come_whole(tmp_path: Path) -> None:
    from extgate.enforce.mcp.pump import Pump

    class Reader(asyncio.Transport):
        """Takes what is written; `is_slow` until somebody reads."""

        def __init__(self) -> None:
            super().__init__()
            self.got = b""

        def write(self, data: Any) -> None:
            self.got += data

        def get_write_buffer_size(self) -> int:
            return 0

        def is_closing(self) -> bool:
            return False

    async def work() -> None:
        reader = Reader()
        pump = Pump(reader, 10_000)
        data = b'{"a":"' + b"x" * SIZE + b'"}'
        pump.pause()
        pump.write(Long([data[:9], kept(data)[9:]], kept(data), b""), b"\n")
        pump.write(b'{"b":1}', b"\n")
        assert reader.got == b""
        pump.resume()
        while pump.is_busy:
            await asyncio.sleep(0)
        assert reader.got == data + b'\n{"b":1}\n'

    run(work())


def test_a_long_page_of_a_list_is_what_a_short_one_would_be_and_kept_once_for_all() -> None:
    rows = {"tools": tuple({"name": f"tool_{n}", "description": "does\nmuch " * 9} for n in range(1500))}
    core = Core("mcp: {disabled: ['slack/*7']}", offers=(offer("slack", rows),))
    clients = [core.client(limits=Limits(page=1000)) for _ in range(2)]

    def listed(client: Any, **params: Any) -> Reply:
        message = {"jsonrpc": "2.0", "id": "é\n", "method": "tools/list", "params": params}
        (reply,) = client.session.receive(envelope.read(json.dumps(message).encode()))
        assert isinstance(reply, Reply)
        return reply

    replies = [listed(client) for client in clients]
    assert all(isinstance(reply.data, Long) and reply.is_last for reply in replies)
    data = whole(replies[0].data)
    assert b"\n" not in data
    assert len(data) == len(replies[0].data)
    assert data == whole(replies[1].data)
    first = json.loads(data)
    assert first["id"] == "é\n"
    rest = json.loads(whole(listed(clients[0], cursor=first["result"]["nextCursor"]).data))
    names = [row["name"] for page in (first, rest) for row in page["result"]["tools"]]
    assert names == sorted(f"slack__tool_{n}" for n in range(1500) if n % 10 != 7)
    assert len(core.door.view.pages) == 2
