"""The way to a provider: straight, or through a proxy that is asked for a tunnel (CONNECT), and whose word TLS takes.

What a proxy is told of who asks appears in no message.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import SplitResult, unquote, urlsplit

from extgate.enforce.mcp.http_client import CONNECT_S, MAX_HEAD, Connection, Origin, Request
from extgate.enforce.wire.spans import UnclearError

NO_PROXY = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Road:
    """proxy: its address; empty: what the environment says; `none`: no proxy. ca: a file of authorities that are
    trusted besides the system's, or those that SSL_CERT_FILE names."""

    proxy: str = ""
    ca: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """proof: the value of `proxy-authorization`; empty without one."""

    host: str
    port: int
    is_tls: bool = False
    proof: str = field(default="", repr=False)


def proxy_for(url: SplitResult, said: str, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy on the way to an address; None for the straight way, which leads to this machine always.

    said: as `Road.proxy`. Raises UnclearError for an address of a proxy that has no meaning here.
    """
    host = (url.hostname or "").rstrip(".")
    if said == NO_PROXY or _is_near(host) or _is_excepted(host, url.port, _of(environ, "no_proxy")):
        return None
    names = ("https_proxy", "all_proxy") if url.scheme == "https" else ("http_proxy", "all_proxy")
    found = said or next((value for name in names if (value := _of(environ, name))), "")
    return read_proxy(found) if found else None


def read_proxy(text: str) -> Proxy:
    """The proxy at an address, http where it says no scheme. Raises UnclearError."""
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise UnclearError("the proxy to the provider is at no address that begins with http:// or https://")
    is_tls = parts.scheme == "https"
    name, word = unquote(parts.username or ""), unquote(parts.password or "")
    proof = f"Basic {base64.b64encode(f'{name}:{word}'.encode()).decode()}" if name or word else ""
    return Proxy(host=host, port=port or (443 if is_tls else 80), is_tls=is_tls, proof=proof)


def _of(environ: Mapping[str, str], name: str) -> str:
    """A variable in small letters, or else in large ones; HTTP_PROXY is not asked, which a request's header may set."""
    return environ.get(name) or ("" if name == "http_proxy" else environ.get(name.upper(), ""))


def _is_near(host: str) -> bool:
    try:
        return host == "localhost" or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_excepted(host: str, port: int | None, said: str) -> bool:
    """Whether NO_PROXY has the host: by name, by what its name ends with, by address or by network."""
    words = [word.strip().lower() for word in said.split(",") if word.strip()]
    for word in words:
        name = word.removeprefix("*").removeprefix(".")
        if word == "*" or (name and (host == name or host.endswith(f".{name}") or f"{host}:{port}" == name)):
            return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return any(address in net for word in words if (net := _network(word)) is not None)


def _network(word: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(word, strict=False)
    except ValueError:
        return None


class Outward(Origin):
    """A provider's origin and the connections to it."""

    def __init__(self, url: str, road: Road, environ: Mapping[str, str]) -> None:
        super().__init__(url)
        self._road, self._proxy = road, proxy_for(self.parts, road.proxy, environ)

    async def _connect(self, request: Request, data: bytes) -> None:
        try:
            async with asyncio.timeout(CONNECT_S):
                connection = await self._opened()
        except (OSError, TimeoutError) as error:
            why = (
                "no connection within 10 s"
                if isinstance(error, TimeoutError)
                else (error.strerror or str(error)).lower()
            )
            if not request.is_over:
                request.is_over = True
                request.sink.on_lost(f"it cannot be reached ({why})")
            return
        if request.is_over:
            connection.transport.abort()
        else:
            connection.begin(request, data)

    async def _opened(self) -> Connection:
        """A connection to the provider. Raises OSError."""
        loop, connection = asyncio.get_running_loop(), Connection(self)
        tls = self._context() if self.is_tls else None
        if self._proxy is None:
            await loop.create_connection(lambda: connection, self.host, self.port, ssl=tls)
            return connection
        transport = await self._tunnel(self._proxy)
        try:
            if tls is not None:
                found = await loop.start_tls(transport, connection, tls, server_hostname=self.host)
                transport = cast(asyncio.Transport, found)
            else:
                transport.set_protocol(connection)
        except BaseException:
            transport.abort()
            raise
        connection.connection_made(transport)
        return connection

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            made = ssl.create_default_context()
            if self._road.ca:
                made.load_verify_locations(self._road.ca)
            self._tls = made
        return self._tls

    async def _tunnel(self, proxy: Proxy) -> asyncio.Transport:
        """A connection of the proxy's to the provider. Raises OSError when it makes none."""
        tls = self._context() if proxy.is_tls else None
        place = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        lines = [f"CONNECT {place} HTTP/1.1", f"host: {place}"]
        lines += [f"proxy-authorization: {proxy.proof}"] if proxy.proof else []
        try:
            made = await asyncio.get_running_loop().create_connection(_Asking, proxy.host, proxy.port, ssl=tls)
        except OSError as error:
            raise OSError(f"the proxy {proxy.host}:{proxy.port}: {error.strerror or type(error).__name__}") from None
        transport, asking = made
        transport.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        try:
            status = await asking.status
            if not 200 <= status < 300:
                raise OSError(f"the proxy {proxy.host}:{proxy.port} refuses, with status {status}")
        except BaseException:
            transport.abort()
            raise
        return transport


class _Asking(asyncio.Protocol):
    """Waits for the head of a proxy's answer. status: 0 for one that makes no sense, or none."""

    def __init__(self) -> None:
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        self._head += data
        head, end, rest = self._head.partition(b"\r\n\r\n")
        if end or len(self._head) > MAX_HEAD:
            words = head.split(b"\r\n")[0].split(b" ")
            is_sound = bool(end) and not rest and head.startswith(b"HTTP/1.") and len(words) > 1 and words[1].isdigit()
            self._say(int(words[1]) if is_sound and len(words[1]) == 3 else 0)

    def connection_lost(self, exc: Exception | None) -> None:
        self._say(0)

    def _say(self, status: int) -> None:
        if not self.status.done():
            self.status.set_result(status)
