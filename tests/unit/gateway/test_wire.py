"""The wire as it is served: paths, headers, credentials, encodings, and clients and providers that hang up."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from extgate.enforce.mcp.http_client import Origin
from extgate.enforce.mcp.http_server import Request
from extgate.enforce.mcp.listening import listen
from extgate.enforce.mcp.options import Limits
from extgate.enforce.wire.road import Road
from extgate.errors import DialectError
from extgate.gateway.address import Address, open_front
from extgate.gateway.settings import read_gateway
from extgate.gateway.wire import read_wire
from extgate.homes import find_homes
from tests.unit.enforce.wire.world import Json, body, call, event, message, streamed, tool
from tests.unit.gateway.test_address import Answer
from tests.unit.gateway.world import World, run

DENIED = "tools: {disabled: [Bash]}"
TOOLS = [tool("Read"), tool("Bash")]


class Model:
    """A provider on loopback. `answer` is called with each request; `requests` keeps them; `gone` counts hang-ups."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.gone = asyncio.Event()
        self.answer: Callable[[Request], None] = self.say(message(call("Read", file_path="/x")))

    def say(self, content: Json, headers: Mapping[str, str] | None = None) -> Callable[[Request], None]:
        """Answers with a message, streamed where that is asked for."""

        def answer(request: Request) -> None:
            if request.body and json.loads(bytes(request.body)).get("stream"):
                request.stream({"request-id": "req_1"})
                request.push(streamed(content))
                request.end()
            else:
                request.answer(200, json.dumps(content).encode(), "application/json", headers)

        return answer

    def handle(self, request: Request) -> None:
        self.requests.append(request)
        request.on_gone = self.gone.set
        self.answer(request)

    @property
    def sent(self) -> Json:
        made: Json = json.loads(bytes(self.requests[-1].body))
        return made


class Served:
    """A gateway over a workspace, with the wire to a model."""

    def __init__(self, world: World, model: Model, front: Address) -> None:
        self.world, self.model, self.front = world, model, front
        self._origin = Origin(f"http://127.0.0.1:{front.port}")

    async def ask(
        self, path: str = "/v1/messages", data: bytes = b"", method: str = "POST", agent: str = "a", **headers: str
    ) -> Answer:
        answer = self.begin(path, data, method, agent, **headers)
        await asyncio.wait_for(answer.done, 30)
        return answer

    def begin(
        self, path: str = "/v1/messages", data: bytes = b"", method: str = "POST", agent: str = "a", **headers: str
    ) -> Answer:
        answer = Answer()
        said = {"content-type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
        where = f"/agents/{agent}/wire/anthropic{path}"
        answer.request = self._origin.send(method, said, data, answer, where)  # type: ignore[attr-defined]
        return answer

    def close(self) -> None:
        self._origin.close()


@asynccontextmanager
async def served(
    root: Path, config: str = "", upstream: str = "", servers: tuple[str, ...] = (), **agents: str
) -> AsyncIterator[Served]:
    model = Model()
    listening = await listen("127.0.0.1", 0, model.handle, Limits())
    url = f"http://127.0.0.1:{listening.port}{upstream}"
    wire = f"wire: {{anthropic: {{url: '{url}'}}}}\n" if "wire:" not in config else config.replace("URL", url)
    world = World(root, wire + ("" if "wire:" in config else config), **(agents or {"a": DENIED}))
    world.servers(*servers)
    async with open_front(read_gateway(find_homes(root)), "127.0.0.1", 0) as front, world.open() as gateway:
        front.serve(gateway)
        made = Served(world, model, front)
        try:
            yield made
        finally:
            made.close()
            listening.close()


def test_a_request_goes_out_without_the_denied_tool_and_its_answer_comes_back(tmp_path: Path) -> None:
    async def go() -> None:
        async with served(tmp_path) as here:
            answer = await here.ask(data=body(tools=TOOLS), x_api_key="k", anthropic_beta="b1,b2")
            assert [row["name"] for row in here.model.sent["tools"]] == ["Read"]
            assert answer.json == message(call("Read", file_path="/x"))
            headers = here.model.requests[0].headers
            assert (headers["x-api-key"], headers["anthropic-beta"]) == ("k", "b1,b2")
            assert headers["accept-encoding"] == "identity"
            assert headers["host"].startswith("127.0.0.1:")
            here.model.answer = here.model.say(message(call("Bash")))
            assert (await here.ask(data=body(tools=TOOLS))).json["content"][0][
                "text"
            ] == "'Bash' is disabled for this agent."
            events = [e for e in here.world.events if e["door"] == "wire"]
            assert [(e["question"], e["extension"], e["outcome"]) for e in events] == [
                ("see", "tool:Bash", "refused"), ("use", "tool:Read", "allowed"), ("use", "tool:Bash", "refused"),
            ]  # fmt: skip

    run(go())


def test_a_streamed_answer_is_judged_as_it_comes(tmp_path: Path) -> None:
    async def go() -> None:
        async with served(tmp_path) as here:
            here.model.answer = here.model.say(message(call("Bash", command="ls"), call("Read", file_path="/x")))
            answer = await here.ask(data=body(tools=TOOLS, stream=True))
            assert answer.headers["content-type"] == "text/event-stream"
            assert answer.headers["request-id"] == "req_1"
            assert b"'Bash' is disabled for this agent." in answer.body
            assert b'"name": "Bash"' not in answer.body
            assert b'"name": "Read"' in answer.body

    run(go())


def test_each_piece_of_a_stream_goes_on_at_once(tmp_path: Path) -> None:
    async def go() -> None:
        async with served(tmp_path) as here:
            open_one: list[Request] = []

            def begin(request: Request) -> None:
                request.stream({})
                request.push(event("ping"))
                open_one.append(request)

            here.model.answer = begin
            answer = here.begin(data=body(stream=True))
            assert (await answer.event())["type"] == "ping"
            open_one[0].push(event("ping", n=2))
            assert (await answer.event())["n"] == 2
            open_one[0].end()
            await asyncio.wait_for(answer.done, 30)

    run(go())


def test_a_client_that_hangs_up_ends_the_providers_answer(tmp_path: Path) -> None:
    async def go() -> None:
        async with served(tmp_path) as here:

            def begin(request: Request) -> None:
                request.stream({})
                request.push(event("ping"))

            here.model.answer = begin
            answer = here.begin(data=body(stream=True))
            await answer.event()
            answer.request.abort()  # type: ignore[attr-defined]
            await asyncio.wait_for(here.model.gone.wait(), 30)

    run(go())


def test_a_provider_that_breaks_off_is_an_error_in_the_clients_form(tmp_path: Path) -> None:
    async def go() -> None:
        async with served(tmp_path) as here:

            def begin(request: Request) -> None:
                request.stream({})
                request.push(event("ping"))
                request.connection.transport.close()

            here.model.answer = begin
            answer = await here.ask(data=body(stream=True))
            assert b"event: error" in answer.body
            here.model.answer = lambda request: request.connection.transport.close()
            answer = await here.ask(data=body())
            assert (answer.status, answer.json["type"], answer.json["error"]["type"]) == (502, "error", "api_error")

    run(go())


def test_a_providers_error_comes_back_as_it_is(tmp_path: Path) -> None:
    async def go() -> None:
        async with served(tmp_path) as here:
            said = b'{"type": "error",  "error": {"type": "x", "message": "Bash"}}'
            for status in (400, 401, 429, 500, 529):
                here.model.answer = lambda r, s=status: r.answer(  # type: ignore[misc]
                    s, said, "application/json", {"retry-after": "7"}
                )
                answer = await here.ask(data=body(tools=TOOLS))
                assert (answer.status, answer.body, answer.headers["retry-after"]) == (status, said, "7")

    run(go())


def test_a_request_that_cannot_be_understood_is_refused_in_the_clients_form_and_recorded(tmp_path: Path) -> None:
    async def go() -> None:
        async with served(tmp_path) as here:
            answer = await here.ask(data=body(toolsets=[1]))
            assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")
            assert "`toolsets`" in answer.json["error"]["message"]
            assert not here.model.requests
            assert "toolsets" in here.world.events[-1]["reason"]

    run(go())


PATHS = [
    ("POST", "/v1/messages/batches", 403), ("GET", "/v1/messages/batches/x/results", 403),
    ("POST", "/v1/complete", 404), ("POST", "/v1//messages", 404), ("POST", "/v1/messages/", 404),
    ("POST", "/v1/%6dessages", 404), ("POST", "/v1/files", 404), ("POST", "/v1/skills", 404),
    ("GET", "/v1/models/../messages", 404), ("PUT", "/v1/messages", 404), ("POST", "/V1/messages", 404),
    ("POST", "/v1/models", 404), ("GET", "/api/anything", 404),
]  # fmt: skip


def test_a_path_that_is_not_in_the_table_is_refused(tmp_path: Path) -> None:
    async def go() -> None:
        async with served(tmp_path) as here:
            for method, path, status in PATHS:
                answer = await here.ask(path, body() if method != "GET" else b"", method)
                assert (answer.status, answer.json["type"]) == (status, "error"), path
            assert not here.model.requests

    run(go())


def test_paths_of_the_table_go_on_with_their_query_and_below_the_providers_own_path(tmp_path: Path) -> None:
    async def go() -> None:
        async with served(tmp_path, upstream="/base") as here:
            here.model.answer = lambda r: r.answer(200, b'{"data": []}', "application/json")
            answer = await here.ask("/v1/models?limit=3", method="GET")
            assert (answer.status, answer.body) == (200, b'{"data": []}')
            assert here.model.requests[-1].path == "/base/v1/models?limit=3"
            here.model.answer = here.model.say({"input_tokens": 3})
            answer = await here.ask("/v1/messages/count_tokens?beta=true", body(tools=TOOLS))
            assert answer.json == {"input_tokens": 3}
            assert here.model.requests[-1].path == "/base/v1/messages/count_tokens?beta=true"
            assert [row["name"] for row in here.model.sent["tools"]] == ["Read"]
            before = len(here.model.requests)
            assert (await here.ask("/", method="GET")).status == 200
            assert len(here.model.requests) == before + 1

    run(go())


def test_an_unavailable_agent_is_told_why_and_comes_back_by_itself(tmp_path: Path) -> None:
    async def go() -> None:
        async with served(tmp_path, a="mcp: {required: [nowhere]}") as here:
            answer = await here.ask(data=body())
            assert (answer.status, answer.json["error"]["type"]) == (403, "permission_error")
            assert "`nowhere` is not met" in answer.json["error"]["message"]
            here.world.profile("a", DENIED)
            while (answer := await here.ask(data=body(tools=TOOLS))).status != 200:
                await asyncio.sleep(0.02)
            assert [row["name"] for row in here.model.sent["tools"]] == ["Read"]
            assert (await here.ask(data=body(), agent="nobody")).status == 404

    run(go())


def test_an_edit_of_the_profile_holds_for_the_next_request(tmp_path: Path) -> None:
    async def go() -> None:
        async with served(tmp_path) as here:
            await here.ask(data=body(tools=TOOLS))
            here.world.profile("a", "tools: {disabled: [Read]}")
            while [row["name"] for row in here.model.sent["tools"]] != ["Bash"]:
                await here.ask(data=body(tools=TOOLS))
            assert (await here.ask(data=body(tools=TOOLS))).json["content"][0]["type"] == "text"

    run(go())


def test_compression_is_undone_within_bounds(tmp_path: Path) -> None:
    async def go() -> None:
        async with served(tmp_path) as here:
            await here.ask(data=gzip.compress(body(tools=TOOLS)), content_encoding="gzip")
            assert [row["name"] for row in here.model.sent["tools"]] == ["Read"]
            assert "content-encoding" not in here.model.requests[-1].headers
            packed = gzip.compress(json.dumps(message(call("Bash"))).encode())
            here.model.answer = lambda r: r.answer(200, packed, "application/json", {"content-encoding": "gzip"})
            answer = await here.ask(data=body(tools=TOOLS))
            assert answer.json["content"][0]["type"] == "text"
            assert "content-encoding" not in answer.headers
            for data, encoding in (
                (gzip.compress(b"x" * 2**26), "gzip"),
                (b"x", "zstd"),
                (b"x", "br"),
                (b"x", "gzip, br"),
            ):
                assert (await here.ask(data=data, content_encoding=encoding)).status == 400
            for data, encoding in (
                (b"x", "br"),
                (zlib.compress(b"{}"), "gzip"),
                (packed[:-9], "gzip"),
                (packed + b"x", "gzip"),
            ):
                here.model.answer = lambda r, d=data, e=encoding: r.answer(  # type: ignore[misc]
                    200, d, "application/json", {"content-encoding": e}
                )
                assert (await here.ask(data=body())).status == 502

    run(go())


def test_an_answer_that_cannot_be_judged_does_not_go_on(tmp_path: Path) -> None:
    answers = [
        (302, "", b""),
        (200, "text/html", b"x"),
        (200, "", b"{}"),
        (200, "application/json", b"["),
        (204, "", b""),
    ]

    async def go() -> None:
        async with served(tmp_path) as here:
            for status, kind, content in answers:
                where = {"location": "https://elsewhere.example"} if status == 302 else {}
                here.model.answer = lambda r, a=(status, content, kind, where): r.answer(*a)  # type: ignore[misc]
                answer = await here.ask(data=body())
                assert (answer.status, answer.json["error"]["type"]) == (502, "api_error"), status
                assert "location" not in answer.headers

    run(go())


def test_what_the_client_must_not_send_or_see_stays_behind(tmp_path: Path) -> None:
    async def go() -> None:
        async with served(tmp_path) as here:
            hidden = {"set-cookie": "a=b", "alt-svc": "h3", "strict-transport-security": "max-age=9", "x-kept": "1"}
            here.model.answer = here.model.say(message(), hidden)
            answer = await here.ask(data=body(), x_extgate_client="codex", te="trailers", forwarded="for=x", x_kept="2")
            assert not {"set-cookie", "alt-svc", "strict-transport-security"} & answer.headers.keys()
            assert answer.headers["x-kept"] == "1"
            got = here.model.requests[-1].headers
            assert not {"x-extgate-client", "te", "forwarded"} & got.keys()
            assert got["x-kept"] == "2"

    run(go())


def test_the_key_can_be_extgates_own_and_is_in_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "sk-held")
    config = "wire: {anthropic: {url: 'URL', key_env: THE_KEY}}\n"

    async def go() -> None:
        async with served(tmp_path, config) as here:
            path = "/v1/messages?key=dummy&beta=true&%6Bey=dummy"
            await here.ask(path, body(tools=TOOLS), x_api_key="dummy", authorization="Bearer dummy")
            assert here.model.requests[-1].path == "/v1/messages?beta=true"
            headers = here.model.requests[-1].headers
            assert headers["x-api-key"] == "sk-held"
            assert "authorization" not in headers
            monkeypatch.setenv("THE_KEY", "")
            answer = await here.ask(data=body())
            assert answer.status == 400
            assert "cannot be had" in answer.json["error"]["message"]
            assert "sk-held" not in (tmp_path / "audit.jsonl").read_text()

    run(go())


def test_with_tokens_a_client_proves_itself_beside_its_key(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"a": ["t" * 24]}))
    tokens.chmod(0o600)

    async def go() -> None:
        async with served(tmp_path, f"gateway: {{tokens: '{tokens}'}}\n") as here:
            proof = "Bearer " + "t" * 24
            assert (await here.ask(data=body(), authorization=proof)).status == 401
            assert (await here.ask(data=body(), x_api_key="t" * 24)).status == 401
            assert (await here.ask(data=body(), x_extgate_authorization="Bearer " + "u" * 24)).status == 401
            assert not here.model.requests
            answer = await here.ask(data=body(), x_extgate_authorization=proof, authorization="Bearer own")
            assert answer.status == 200
            headers = here.model.requests[-1].headers
            assert headers["authorization"] == "Bearer own"
            assert "x-extgate-authorization" not in headers

    run(go())


def test_with_tokens_and_a_key_of_extgates_the_token_goes_where_the_key_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"a": ["t" * 24]}))
    tokens.chmod(0o600)
    monkeypatch.setenv("THE_KEY", "sk-held")
    config = f"gateway: {{tokens: '{tokens}'}}\nwire: {{anthropic: {{url: 'URL', key_env: THE_KEY}}}}\n"

    async def go() -> None:
        async with served(tmp_path, config) as here:
            assert (await here.ask(data=body(), x_api_key="wrong")).status == 401
            for header in ("x_api_key", "authorization"):
                said = "t" * 24 if header == "x_api_key" else "Bearer " + "t" * 24
                assert (await here.ask(data=body(), **{header: said})).status == 200
                headers = here.model.requests[-1].headers
                assert headers["x-api-key"] == "sk-held"
                assert "t" * 24 not in str(headers)

    run(go())


def test_a_profile_has_a_wire_of_its_own(tmp_path: Path) -> None:
    async def go() -> None:
        own = "mcp: {allowed: [github]}\nwire: {client: claude-code, tools: [mine]}"
        async with served(tmp_path, a=own, b="mcp: {allowed: [github]}", c="wire: {client: nobody}") as here:
            rows = [tool("Bash"), tool("mine"), tool("mcp__x__y")]
            await here.ask(data=body(tools=rows))
            assert [row["name"] for row in here.model.sent["tools"]] == ["Bash", "mine"]
            await here.ask(data=body(tools=rows), agent="b")
            assert "tools" not in here.model.sent
            await here.ask(data=body(tools=rows), agent="b", user_agent="claude-cli/2.1.332 (external, cli)")
            assert [row["name"] for row in here.model.sent["tools"]] == ["Bash", "mine"]
            assert (await here.ask(data=body(tools=rows), agent="c")).status == 500

    run(go())


def test_a_workspace_of_hermes_knows_it_by_the_library_that_it_uses(tmp_path: Path) -> None:
    sent = {"user_agent": "OpenAI/Python 3.57.0"}
    rows = [tool("terminal"), tool("mcp__x__y")]

    async def offered(root: Path, config: str, profile: str = "tools: {disabled: [read_file]}") -> list[str]:
        async with served(root, config, a=f"mcp: {{allowed: [github]}}\n{profile}") as here:
            await here.ask(data=body(tools=rows), **sent)
            return [row["name"] for row in here.model.sent.get("tools", ())]

    for name in ("hermes", "codex", "other"):
        (tmp_path / name).mkdir()
    assert asyncio.run(offered(tmp_path / "hermes", "runtime: hermes\n")) == ["terminal"]
    assert asyncio.run(offered(tmp_path / "codex", "runtime: codex\n")) == []
    assert asyncio.run(offered(tmp_path / "other", "runtime: hermes\n", "wire: {client: generic}")) == []


@pytest.mark.parametrize(
    "text",
    [
        "wire: 5", "wire: {nope: 1}", "wire: {unknown: maybe}", "wire: {client: nobody}", "wire: {anthropic: {url: x}}",
        "wire: {anthropic: {url: 'ftp://x'}}", "wire: {anthropic: {key: x}}", "wire: {anthropic: {url: 'https://u:p@x'}}",
        "wire: {anthropic: {key_env: A, key_file: B}}", "wire: {tools: [1]}",
        "wire: {proxy: 'socks5://x'}", "wire: {proxy: 'http://u:p@x'}", "wire: {proxy: x}", "wire: {ca: 5}",
    ],
)  # fmt: skip
def test_a_setting_that_has_no_meaning_is_an_error_at_its_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "extgate.yaml").write_text(f"audit: a\n{text}\n")
    with pytest.raises(DialectError) as caught:
        read_wire(find_homes(tmp_path))
    assert caught.value.line == 2
    assert "u:p@" not in str(caught.value)


def test_the_way_to_providers_is_read_for_all_agents(tmp_path: Path) -> None:
    (tmp_path / "extgate.yaml").write_text("audit: a\nwire: {proxy: 'http://p:3128', ca: company.pem}\n")
    assert read_wire(find_homes(tmp_path)).road == Road(proxy="http://p:3128", ca=str(tmp_path / "company.pem"))


def test_headers_that_come_twice_are_refused(tmp_path: Path) -> None:
    async def go() -> None:
        async with served(tmp_path) as here:
            reader, writer = await asyncio.open_connection("127.0.0.1", here.front.port)
            data = body()
            writer.write(
                b"POST /agents/a/wire/anthropic/v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: 1\r\n"
                b"x-api-key: 2\r\ncontent-length: %d\r\n\r\n" % len(data) + data
            )
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
            assert b" 400 " in head
            assert not here.model.requests
            writer.close()

    run(go())


def test_other_pages_and_hosts_have_no_way_in(tmp_path: Path) -> None:
    async def go() -> None:
        async with served(tmp_path) as here:
            assert (await here.ask(data=body(), origin="https://evil.example")).status == 403
            assert (await here.ask(data=body(), host="evil.example")).status in (400, 403)
            assert not here.model.requests

    run(go())


def test_what_the_gateway_relays_is_known_by_the_name_that_it_has_in_the_client(tmp_path: Path) -> None:
    async def go() -> None:
        rules = (
            "tools: {allowed: [Read]}\nmcp: {allowed: ['habits/echo']}\nwire: {client: claude-code, gateway: extgate}"
        )
        async with served(tmp_path, servers=("habits",), a=rules) as here:
            names = ["Read", "mcp__extgate__habits__echo", "mcp__extgate__habits__die", "mcp__extgate__other"]
            data = body(tools=[tool(name) for name in names])
            await here.ask(data=data)
            assert [row["name"] for row in here.model.sent["tools"]] == names[:2]
            text = "# MCP Server Instructions\n\n## extgate\nUse it.\n"
            await here.ask(data=body(tools=[tool("Read")], messages=[{"role": "user", "content": text}]))
            assert here.model.sent["messages"][0]["content"] == text

    run(go())
