"""The way to a provider: by a proxy's tunnel where one is said, under TLS whose authorities a file may add."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme

from extgate.enforce.wire.road import Outward, Proxy, Road, proxy_for, read_proxy
from extgate.enforce.wire.spans import UnclearError

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
PROXY = Proxy(host="p", port=3128)


class Sink:
    """What came of a request."""

    def __init__(self) -> None:
        self.done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._body = b""

    def on_head(self, status: int, headers: Mapping[str, str]) -> None:
        self._body += str(status).encode() + b" "

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_end(self) -> None:
        self.done.set_result(self._body.decode())

    def on_lost(self, reason: str) -> None:
        self.done.set_result(f"lost: {reason}")


@asynccontextmanager
async def provider(context: ssl.SSLContext) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def proxy(behind: int, heads: list[bytes], status: bytes = b"200 OK") -> AsyncIterator[int]:
    """A proxy that leads to one port, whatever it is asked for."""
    pipes: set[asyncio.Task[None]] = set()

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 " + status + b"\r\nvia: a\r\n\r\n")
        there, to = await asyncio.open_connection("127.0.0.1", behind)
        pipes.update(asyncio.ensure_future(pipe(*ends)) for ends in ((reader, to), (there, writer)))

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
    for task in pipes:
        task.cancel()


def trusted(tmp_path: Path) -> tuple[ssl.SSLContext, str]:
    """A provider's side of TLS, and the file of the authority that it is under."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("provider.test").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return context, str(tmp_path / "ca.pem")


async def asked(road: Road, environ: Mapping[str, str], url: str = "https://provider.test") -> str:
    origin, sink = Outward(url, road, environ), Sink()
    origin.send("POST", {"x-api-key": "k"}, b"{}", sink, "/v1/messages")
    try:
        return await asyncio.wait_for(sink.done, 20)
    finally:
        origin.close()


def test_a_request_passes_the_proxy_of_the_environment_under_an_authority_of_ones_own(tmp_path: Path) -> None:
    async def run() -> None:
        context, ca = trusted(tmp_path)
        heads: list[bytes] = []
        async with provider(context) as behind, proxy(behind, heads) as port:
            environ = {"HTTPS_PROXY": f"http://me:s%40cret@127.0.0.1:{port}"}
            assert await asked(Road(ca=ca), environ) == "200 hi"
            assert "certificate" in (await asked(Road(), environ)).lower()
            assert await asked(Road(ca=ca, proxy=f"http://127.0.0.1:{port}"), {}) == "200 hi"
        proof = base64.b64encode(b"me:s@cret")
        assert heads[0].startswith(b"CONNECT provider.test:443 HTTP/1.1\r\n")
        assert proof in heads[0]
        assert b"authorization" not in heads[2]
        assert not any(b"x-api-key" in head for head in heads)

    asyncio.run(run())


@pytest.mark.parametrize("status", [b"407 Proxy Authentication Required", b"302 Found", b"nonsense"])
def test_a_proxy_that_refuses_is_named_without_its_credentials(status: bytes, tmp_path: Path) -> None:
    async def run() -> None:
        context, ca = trusted(tmp_path)
        async with provider(context) as behind, proxy(behind, [], status) as port:
            said = await asked(Road(ca=ca), {"https_proxy": f"http://me:secret@127.0.0.1:{port}"})
        assert said.startswith(f"lost: it cannot be reached (the proxy 127.0.0.1:{port} refuses")
        assert "secret" not in said

    asyncio.run(run())


def test_the_environment_is_read_as_other_programs_read_it() -> None:
    url = urlsplit("https://api.test/v1")
    environ = {"HTTPS_PROXY": "http://p:3128"}
    assert proxy_for(url, "", environ) == PROXY
    assert proxy_for(url, "", {"https_proxy": "p:3128"}) == PROXY
    assert proxy_for(url, "", {"ALL_PROXY": "http://p:3128"}) == PROXY
    assert proxy_for(url, "none", environ) is None
    assert proxy_for(url, "", {}) is None
    assert proxy_for(urlsplit("http://api.test"), "", {"HTTP_PROXY": "http://p:3128"}) is None  # a header may set it
    assert proxy_for(urlsplit("http://api.test"), "", {"http_proxy": "http://p:3128"}) == PROXY


@pytest.mark.parametrize("said", ["*", "api.test", ".test", "test", "*.test", "other, API.TEST", "api.test:8443"])
def test_what_no_proxy_names_is_reached_straight(said: str) -> None:
    environ = {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": said}
    assert proxy_for(urlsplit("https://api.test:8443"), "", environ) is None
    assert proxy_for(urlsplit("https://api.test:8443"), "http://p:3128", environ) is None


@pytest.mark.parametrize("said", ["", "pi.test", "api.test.org", "10.0.0.0/8", ",", "."])
def test_what_no_proxy_does_not_name_passes_the_proxy(said: str) -> None:
    assert proxy_for(urlsplit("https://api.test"), "", {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": said}) == PROXY


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]", "10.1.2.3"])
def test_this_machine_and_excepted_networks_are_reached_straight(host: str) -> None:
    environ = {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "10.0.0.0/8"}
    assert proxy_for(urlsplit(f"https://{host}:1"), "", environ) is None


@pytest.mark.parametrize("said", ["socks5://me:secret@p:1080", "http://", "http://me:secret@p:port", "ftp://p"])
def test_a_proxy_that_is_not_spoken_with_is_refused_without_its_credentials(said: str) -> None:
    with pytest.raises(UnclearError) as caught:
        read_proxy(said)
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(read_proxy("http://me:secret@p"))
