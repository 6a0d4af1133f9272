"""Who may call over HTTP: tokens of a file, of a real issuer, certificates told by proxies, operators; and who tries to
get around them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from extgate.errors import DialectError, ExtgateError
from extgate.gateway.address import Address, open_front
from extgate.gateway.running import Gateway
from extgate.gateway.settings import read_gateway
from extgate.homes import find_homes
from tests.unit.discover.http_servers import sdk_app, served
from tests.unit.gateway.test_address import HEADERS, HELLO, META, Web
from tests.unit.gateway.world import World, run

ISSUER = str(Path(__file__).parents[2] / "oidc_server.py")
TOKEN, OTHER, OPERATOR = "t" * 32, "u" * 32, "o" * 32
HERE = "https://gate.example"


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """The address of an issuer's process."""
    with subprocess.Popen([sys.executable, ISSUER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def post(url: str, body: Any = None) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def signed(issuer: str, agent: str = "a", head: Any = None, **claims: Any) -> str:
    said = {"aud": f"{HERE}/agents/{agent}/mcp", "exp": 4e9, "sub": "ann", "scope": "mcp"} | claims
    return str(post(f"{issuer}/sign", {"claims": said, "head": head or {}})["access_token"])


@asynccontextmanager
async def opened(world: World) -> AsyncIterator[tuple[Web, Address, Gateway]]:
    """A gateway as its files say, with a client."""
    settings = read_gateway(find_homes(world.root))
    async with open_front(settings, "127.0.0.1", 0) as front, world.open() as gateway:
        front.serve(gateway)
        web = Web(front.port)
        yield web, front, gateway
        web.origin.close()


def with_files(root: Path, more: str = "", **agents: str) -> World:
    """A workspace whose callers have tokens of a file."""
    keep(root / "tokens.json", {"a": [TOKEN], "b": [OTHER]})
    keep(root / "operators.json", [OPERATOR])
    config = f"gateway: {{tokens: tokens.json, operators: operators.json{more}}}\n"
    return World(root, config, **(agents or {"a": "", "b": ""}))


def keep(file: Path, data: Any) -> None:
    """Writes a file whole."""
    made = file.with_suffix(".new")
    made.write_text(json.dumps(data))
    made.chmod(0o600)
    made.replace(file)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def oauth(root: Path, issuer: str, **agents: str) -> World:
    grants = "agents: [{agents: [a], scopes: [mcp]}, {agents: ['team/*'], claims: {groups: ml}}]"
    config = f"gateway: {{url: '{HERE}', oauth: {{issuer: '{issuer}', {grants}, revoked: [{{sub: eve}}]}}}}\n"
    return World(root, config, **(agents or {"a": "", "b": ""}))


def test_tokens_of_an_issuer_open_the_agents_that_its_rules_say(tmp_path: Path, issuer: str) -> None:
    async def work() -> None:
        async with opened(oauth(tmp_path, issuer)) as (web, _, _gateway):
            mine = bearer(signed(issuer))
            session = await web.rpc("initialize", HELLO, **mine)
            assert session.status == 200
            headers = {"mcp_session_id": session.headers["mcp-session-id"]}
            assert (await web.rpc("tools/list", **headers, **mine)).status == 200
            assert (await web.rpc("tools/list", **headers)).status == 401
            again = bearer(signed(issuer, jti="another"))
            assert (await web.rpc("tools/list", **headers, **again)).status == 200
            somebody = bearer(signed(issuer, sub="bob"))
            assert (await web.rpc("tools/list", **headers, **somebody)).status == 404
            assert (await web.rpc("tools/list", agent="b", **mine)).status == 401
            assert (await web.rpc("tools/list", agent="b", **bearer(signed(issuer, "b")))).status == 403
            assert (await web.rpc("initialize", HELLO, **bearer(signed(issuer, sub="eve")))).status == 401

    run(work())


def test_a_client_without_a_token_is_told_where_to_get_one(tmp_path: Path, issuer: str) -> None:
    async def work() -> None:
        async with opened(oauth(tmp_path, issuer)) as (web, _, _gateway):
            refused = await web.rpc("initialize", HELLO)
            place = f"{HERE}/.well-known/oauth-protected-resource/agents/a/mcp"
            assert refused.headers["www-authenticate"] == f'Bearer resource_metadata="{place}", scope="mcp"'
            path = place.removeprefix(HERE)
            assert (await web.send("GET", path)).json == {
                "resource": f"{HERE}/agents/a/mcp",
                "authorization_servers": [issuer],
                "bearer_methods_supported": ["header"],
                "scopes_supported": ["mcp"],
            }
            nobody = (await web.send("GET", path.replace("/a/", "/no%20such%22agent/"))).json
            assert nobody["resource"] == f"{HERE}/agents/no%20such%22agent/mcp"
            poor = await web.rpc("initialize", HELLO, **bearer(signed(issuer, scope="openid")))
            assert poor.status == 403
            assert 'error="insufficient_scope"' in poor.headers["www-authenticate"]
            assert 'scope="mcp"' in poor.headers["www-authenticate"]

    run(work())


def test_an_issuer_s_new_key_is_taken_and_its_old_one_no_longer(tmp_path: Path, issuer: str) -> None:
    async def work() -> None:
        async with opened(oauth(tmp_path, issuer)) as (web, front, _):
            old = bearer(signed(issuer))
            assert (await web.rpc("initialize", HELLO, **old)).status == 200
            await asyncio.to_thread(post, f"{issuer}/rotate")
            new = bearer(signed(issuer))
            assert (await web.rpc("initialize", HELLO, **new)).status == 401
            front.callers.issuers[issuer].keys._asked_at = None  # as if the least time between two fetches had passed
            assert (await web.rpc("initialize", HELLO, **new)).status == 200
            assert (await web.rpc("initialize", HELLO, **old)).status == 401

    run(work())


def test_an_issuer_that_cannot_be_asked_lets_nobody_in_and_others_are_served(tmp_path: Path) -> None:
    async def work() -> None:
        world = with_files(tmp_path, ", oauth: {issuer: 'http://127.0.0.1:9', agents: [{agents: ['*']}]}")
        async with opened(world) as (web, _, _gateway):
            head = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwOi8vMTI3LjAuMC4xOjkifQ.x"
            refused = await web.rpc("initialize", HELLO, **bearer(head))
            assert refused.status == 503
            assert "cannot be asked" in refused.json["error"]["message"]
            assert (await web.rpc("initialize", HELLO, **bearer(TOKEN))).status == 200

    run(work())


def test_what_a_caller_shows_never_reaches_a_server(tmp_path: Path) -> None:

    seen: list[Mapping[str, str]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append({name.decode(): value.decode() for name, value in scope.get("headers", ())})
        await sdk(scope, receive, send)

    sdk = sdk_app("http")

    async def work(url: str) -> None:
        world = with_files(tmp_path)
        world.servers("habits", web={"url": f"{url}/mcp", "headers": {"x-own": "own"}})
        async with opened(world) as (web, _, _gateway):
            secret = bearer(TOKEN) | {"cookie": f"a={TOKEN}", "x_extgate_authorization": TOKEN}
            session = await web.rpc("initialize", HELLO, **secret)
            headers = {"mcp_session_id": session.headers["mcp-session-id"]}
            params = {"name": "web__add", "arguments": {"a": 1, "b": 2}}
            assert (await web.rpc("tools/call", params, **headers, **secret)).status == 200
            modern = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "web__add"}
            await web.rpc("tools/call", {**params, "_meta": META}, **modern, **secret)

    with served(app) as url:
        run(work(url))
    assert any(headers.get("x-own") == "own" for headers in seen)
    assert TOKEN not in str(seen)


# ---------------------------------------------------------------------------------------------- tricks


async def raw(port: int, data: bytes) -> list[int]:
    """The statuses of all answers to these bytes; the last request asks to close."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    found = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    return [int(part[:3]) for part in found.split(b"HTTP/1.1 ")[1:]]


def request(path: str = "/agents/a/mcp", *lines: str, body: bytes | None = None, last: bool = True) -> bytes:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    body = json.dumps(hello).encode() if body is None else body
    head = [f"POST {path} HTTP/1.1", "host: localhost", "content-type: application/json",
            "accept: application/json, text/event-stream", f"content-length: {len(body)}", *lines]  # fmt: skip
    head += ["connection: close"] if last else []
    return ("\r\n".join(head) + "\r\n\r\n").encode("latin-1") + body


MINE, THEIRS = f"authorization: Bearer {TOKEN}", f"authorization: Bearer {OTHER}"
TRICKS: dict[str, tuple[bytes, list[int]]] = {
    "as it should be": (request("/agents/a/mcp", MINE), [200]),
    "another agent's": (request("/agents/a/mcp", THEIRS), [401]),
    "first mine then theirs": (request("/agents/b/mcp", MINE, THEIRS), [400]),
    "first theirs then mine": (request("/agents/b/mcp", THEIRS, MINE), [400]),
    "folded": (request("/agents/b/mcp", f"authorization: Bearer\r\n {OTHER}"), [400]),
    "folded behind mine": (request("/agents/a/mcp", f"authorization: Bearer {OTHER}\r\n {TOKEN}"), [400]),
    "blank before the colon": (request("/agents/a/mcp", f"authorization : Bearer {TOKEN}"), [400]),
    "NUL in the name": (request("/agents/a/mcp", f"authorization\0: Bearer {TOKEN}"), [400]),
    "two tokens": (request("/agents/b/mcp", f"authorization: Bearer {TOKEN} {OTHER}"), [401]),
    "two schemes": (request("/agents/b/mcp", f"authorization: Bearer {TOKEN}, Bearer {OTHER}"), [401]),
    "another scheme": (request("/agents/a/mcp", f"authorization: Basic {TOKEN}"), [401]),
    "longest that there is": (request("/agents/a/mcp", f"authorization: Bearer {'x.' * 8000}y"), [401]),
    "longer than a head": (request("/agents/a/mcp", f"authorization: Bearer {'x' * 70_000}"), [431]),
    "dots that are escaped": (request("/agents/a%2f..%2fb/mcp", MINE), [401]),
    "dots": (request("/agents/a/../b/mcp", MINE), [401]),
    "dots to mine": (request("/agents/b/../a/mcp", MINE), [401]),
    "escaped twice": (request("/agents/%2561/mcp", MINE), [401]),
    "escaped once is the same agent": (request("/agents/%61/mcp", MINE), [200]),
    "NUL behind": (request("/agents/a%00/mcp", MINE), [401]),
    "upper case": (request("/agents/A/mcp", MINE), [401]),
    "upper path": (request("/AGENTS/a/mcp", MINE), [404]),
    "slash behind": (request("/agents/a/mcp/", MINE), [404]),
    "parameters": (request("/agents/a;x/mcp", MINE), [401]),
    "host in the path": (request("//agents/a/mcp", MINE), [404]),
    "absolute": (request("http://localhost/agents/a/mcp", MINE), [404]),
    "query": (request(f"/agents/a/mcp?access_token={TOKEN}"), [401]),
    "mixed one after the other": (
        request("/agents/a/mcp", MINE, last=False)
        + request("/agents/b/mcp", MINE, last=False)
        + request("/agents/b/mcp", last=False)
        + request("/agents/b/mcp", THEIRS, last=False)
        + request("/agents/a/mcp", THEIRS),
        [200, 401, 401, 200, 401],
    ),
    "hidden in a body": (request("/agents/b/mcp", MINE, body=request("/agents/b/mcp", THEIRS)), [401]),
    "two lengths": (request("/agents/a/mcp", MINE, "content-length: 0"), [400]),
    "length and pieces": (request("/agents/a/mcp", MINE, "transfer-encoding: chunked"), [400]),
}  # fmt: skip


@pytest.fixture(scope="module")
def tricked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[int], int]]:
    """The statuses that each trick got, and how many calls of servers there were."""
    found: dict[str, tuple[list[int], int]] = {}
    world = with_files(tmp_path_factory.mktemp("tricks"))

    async def work() -> None:
        async with opened(world) as (_, front, _gateway):
            for name, (data, _) in TRICKS.items():
                found[name] = (await raw(front.port, data), len(world.calls))

    run(work())
    return found


@pytest.mark.parametrize("name", TRICKS)
def test_no_trick_with_bytes_lets_a_caller_be_somebody_else(
    tricked: dict[str, tuple[list[int], int]], name: str
) -> None:
    assert tricked[name] == (TRICKS[name][1], 0)


def test_an_upgrade_is_no_way_around_the_token(tmp_path: Path) -> None:
    async def work() -> None:
        world = with_files(tmp_path)
        async with opened(world) as (_, front, _gateway):
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "habits__echo"}}
            for kind in ("websocket", "h2c"):
                lines = ("connection: upgrade", f"upgrade: {kind}", "sec-websocket-key: x", "sec-websocket-version: 13")
                data = request("/agents/a/mcp", *lines, body=json.dumps(call).encode(), last=False)
                assert set(await raw(front.port, data)) <= {400, 401}
            assert world.calls == []

    run(work())


# ---------------------------------------------------------------------------------------------- proxies


PROXY = "proxy: {peers: [PEERS], header: X-Client-Subject, proof: {x-client-verify: SUCCESS}, agents: {'CN=ann': [a]}}"
SEEN = {"x_client_subject": "CN=ann", "x_client_verify": "SUCCESS"}


@pytest.mark.parametrize(
    ("peers", "said", "agent", "status"),
    [
        ("127.0.0.0/8", SEEN, "a", 200),
        ("127.0.0.0/8", SEEN, "b", 403),
        ("127.0.0.0/8", SEEN | {"x_client_subject": "cn=ann"}, "a", 403),
        ("127.0.0.0/8", SEEN | {"x_client_subject": "CN=ann,CN=bob"}, "a", 403),
        ("127.0.0.0/8", SEEN | {"x_client_verify": "NONE"}, "a", 403),
        ("127.0.0.0/8", {"x_client_subject": "CN=ann"}, "a", 403),
        ("127.0.0.0/8", {}, "a", 401),
        ("10.0.0.0/8", SEEN, "a", 403),
        ("10.0.0.0/8", SEEN | bearer(TOKEN), "a", 403),
        ("10.0.0.0/8", bearer(TOKEN), "a", 200),
        ("127.0.0.0/8", SEEN | bearer(TOKEN), "a", 200),
        ("127.0.0.0/8", SEEN | bearer(OTHER), "a", 401),
    ],
)
def test_a_certificate_is_believed_of_the_proxies_alone(
    tmp_path: Path, peers: str, said: dict[str, str], agent: str, status: int
) -> None:
    async def work() -> None:
        async with opened(with_files(tmp_path, f", {PROXY.replace('PEERS', peers)}")) as (web, _, _gateway):
            assert (await web.rpc("initialize", HELLO, agent=agent, **said)).status == status

    run(work())


def test_a_certificate_that_is_named_twice_is_nobody_s(tmp_path: Path) -> None:
    async def work() -> None:
        world = with_files(tmp_path, f", {PROXY.replace('PEERS', '127.0.0.1')}")
        async with opened(world) as (_, front, _gateway):
            lines = ("x-client-subject: CN=eve", "x-client-subject: CN=ann", "x-client-verify: SUCCESS")
            assert await raw(front.port, request("/agents/a/mcp", *lines)) == [400]

    run(work())


# ---------------------------------------------------------------------------------------------- change


def test_a_token_that_is_taken_out_of_the_file_ends_what_it_opened(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(with_files(tmp_path)) as (web, front, gateway):
            mine = bearer(TOKEN)
            session = await web.rpc("initialize", HELLO, **mine)
            headers = {"mcp-session-id": session.headers["mcp-session-id"]} | mine
            own, _ = web.begin("GET", "/agents/a/mcp", HEADERS | headers)
            while not own.status:
                await asyncio.sleep(0)
            keep(tmp_path / "tokens.json", {"a": ["n" * 32], "b": [OTHER]})
            front.configure(gateway.settings)
            await asyncio.wait_for(own.done, 30)
            assert (await web.rpc("initialize", HELLO, **mine)).status == 401
            assert (await web.rpc("initialize", HELLO, **bearer("n" * 32))).status == 200
            (tmp_path / "tokens.json").write_text("{")
            front.configure(gateway.settings)
            assert (await web.rpc("initialize", HELLO, **bearer("n" * 32))).status == 200
            assert (await web.rpc("initialize", HELLO, **mine)).status == 401

    run(work())


def test_a_stream_ends_with_the_token_that_opened_it(tmp_path: Path, issuer: str) -> None:
    async def work() -> None:
        async with opened(oauth(tmp_path, issuer)) as (web, front, gateway):
            mine = bearer(signed(issuer))
            session = await web.rpc("initialize", HELLO, **mine)
            headers = {"mcp-session-id": session.headers["mcp-session-id"]} | mine
            own, _ = web.begin("GET", "/agents/a/mcp", HEADERS | headers)
            params = {"_meta": META, "notifications": {"toolsListChanged": True}}
            said = {"mcp_protocol_version": "2026-07-28", "mcp_method": "subscriptions/listen"}
            body = {"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params}
            lines = HEADERS | {name.replace("_", "-"): value for name, value in said.items()} | mine
            modern, _ = web.begin("POST", "/agents/a/mcp", lines, json.dumps(body).encode())
            await modern.event()
            while not own.status:
                await asyncio.sleep(0)
            assert front.front is not None
            front.front.tick()
            assert not own.done.done()
            front.front.now = lambda: 4e9 + 31
            front.front.tick()
            await asyncio.wait_for(asyncio.gather(own.done, modern.done), 30)
            assert (await web.rpc("ping", mcp_session_id=headers["mcp-session-id"], **mine)).status == 200
            assert len(gateway.hub.clients) == 1

    run(work())


def test_an_edit_that_would_let_everybody_in_is_not_followed_where_others_can_reach_it(tmp_path: Path) -> None:
    async def work() -> None:
        told: list[str] = []
        world = with_files(tmp_path)
        async with opened(world) as (web, front, gateway):
            front.host, front.say = "0.0.0.0", told.append
            (tmp_path / "extgate.yaml").write_text("audit: audit.jsonl\n")
            await asyncio.to_thread(gateway.host.reload)
            gateway.refresh()
            assert (await web.rpc("initialize", HELLO)).status == 401
            assert "can be reached by others" in told[0]

    run(work())


# ---------------------------------------------------------------------------------------------- operators


def test_metrics_and_state_are_the_operators_alone_once_callers_have_to_prove_something(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(with_files(tmp_path)) as (web, front, _):
            for path in ("/metrics", "/api/state"):
                for said, status in ({}, 401), (bearer(TOKEN), 401), (bearer(OPERATOR), 200):
                    assert (await web.send("GET", path, said)).status == status, path
                assert (await web.send("POST", path, bearer(OPERATOR))).status == 405
                foreign = f"GET {path} HTTP/1.1\r\nhost: 10.1.2.3:8470\r\nconnection: close\r\n"
                proof = f"authorization: Bearer {OPERATOR}\r\n"
                assert await raw(front.port, f"{foreign}{proof}\r\n".encode()) == [200]
                assert await raw(front.port, f"{foreign}{proof}{proof}\r\n".encode()) == [401]
            assert (await web.rpc("initialize", HELLO, **bearer(OPERATOR))).status == 401

    run(work())


def test_without_a_file_of_operators_there_are_none(tmp_path: Path) -> None:
    async def work() -> None:
        keep(tmp_path / "tokens.json", {"a": [TOKEN]})
        async with opened(World(tmp_path, "gateway: {tokens: tokens.json}\n")) as (web, _, _gateway):
            assert (await web.send("GET", "/metrics", bearer(TOKEN))).status == 401

    run(work())


# ---------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("url: 'http://gate.example'", "gateway.url"),
        ("url: 'https://gate.example/path'", "gateway.url"),
        ("oauth: {issuer: 'http://id.example', agents: []}", "gateway.oauth.issuer"),
        ("oauth: {issuer: 'https://id.example', jwks: 'file:///x'}", "gateway.oauth.jwks"),
        ("oauth: {issuer: 'https://id.example', algorithms: [HS256]}", "gateway.oauth.algorithms"),
        ("oauth: {issuer: 'https://id.example', algorithms: [none]}", "gateway.oauth.algorithms"),
        ("oauth: {issuer: 'https://id.example', agents: [{scopes: [x]}]}", "gateway.oauth.agents"),
        ("oauth: {issuer: 'https://id.example', agents: [{agents: ['a['], scopes: [x]}]}", "gateway.oauth.agents"),
        ("oauth: {issuer: 'https://id.example', revoked: [{}]}", "gateway.oauth.revoked"),
        ("oauth: {issuer: 'https://id.example', leeway_s: 9000}", "gateway.oauth.leeway_s"),
        ("oauth: [{issuer: 'https://id.example'}, {issuer: 'https://id.example'}]", "gateway.oauth"),
        ("oauth: []", "gateway.oauth"),
        ("proxy: {header: x-who, agents: {x: [a]}}", "gateway.proxy.peers"),
        ("proxy: {peers: [everywhere], header: x-who, agents: {x: [a]}}", "gateway.proxy.peers"),
        ("proxy: {peers: [10.0.0.1], header: authorization, agents: {x: [a]}}", "gateway.proxy.header"),
        ("proxy: {peers: [10.0.0.1], header: x-who, agents: {x: ['a[']}}", "gateway.proxy.agents"),
    ],
)
def test_settings_of_callers_that_have_no_meaning_are_errors_at_their_line(
    tmp_path: Path, text: str, word: str
) -> None:
    (tmp_path / "extgate.yaml").write_text(f"\ngateway: {{{text}}}\n")
    with pytest.raises(DialectError) as error:
        read_gateway(find_homes(tmp_path))
    assert error.value.line == 2
    assert word in str(error.value)


def test_nobody_listens_for_others_without_a_way_to_know_them(tmp_path: Path) -> None:
    from extgate.cli.serve import _serve

    World(tmp_path)
    with pytest.raises(ExtgateError, match="can be reached by others"):
        asyncio.run(_serve(tmp_path, "0.0.0.0", 0, False))
