"""The provider's answer on its way to the client, and the headers of both directions.

Answers that hold calls go through the dialect: streamed ones piece by piece, others whole. An error of the provider's
goes on as it is. What cannot be judged (a redirect, an unknown type or encoding) does not go on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from extgate.enforce.mcp import http_client
from extgate.enforce.mcp.http_server import Request
from extgate.enforce.wire.packed import ENCODINGS, Unpacking
from extgate.enforce.wire.provider import Api, Provider, Stream
from extgate.enforce.wire.spans import UnclearError
from extgate.enforce.wire.turn import Turn

MAX_ANSWER = 64 * 1024 * 1024
"""Longest answer that is held to be judged or passed on whole, in bytes."""
_HOPS = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"}
    | {"transfer-encoding", "upgrade", "content-length", "expect"}
)
_NOT_ON = _HOPS | {"host", "accept-encoding", "content-encoding", "forwarded", "origin", "referer"}
_NOT_BACK = _HOPS | {"content-type", "content-encoding", "alt-svc", "strict-transport-security", "set-cookie"}
OWN = "x-extgate-"
"""Headers of this name are for the relay, and go no further."""


def forwarded(headers: Mapping[str, str], without: Collection[str] = ()) -> dict[str, str]:
    """The client's headers as they go to the provider. without: those of its own key, where another takes its place."""
    kept = {k: v for k, v in headers.items() if k not in _NOT_ON and k not in without and not k.startswith(OWN)}
    return {**kept, "accept-encoding": "identity"}


class Relay:
    """What becomes of one answer. api: None for a path that is passed on as it is. refused: is told why an answer was
    not let through."""

    def __init__(
        self, request: Request, provider: Provider, api: Api | None, turn: Turn, refused: Callable[[str], None]
    ) -> None:
        self._request, self._provider, self._api, self._turn = request, provider, api, turn
        self._refused = refused
        self.sent: http_client.Request | None = None
        self._status, self._kind, self._back = 0, "", dict[str, str]()
        self._stream: Stream | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._unpack: Unpacking | None = None
        request.on_gone = self._gone

    def _gone(self) -> None:
        if self.sent is not None:
            self.sent.abort()

    # ------------------------------------------------------------------------------------------ the provider's news

    def on_head(self, status: int, headers: Mapping[str, str]) -> None:
        if status < 200:
            return
        self._status, self._kind = status, headers.get("content-type", "")
        self._back = {name: value for name, value in headers.items() if name not in _NOT_BACK}
        encoding = headers.get("content-encoding", "").strip().lower()
        if 300 <= status < 400:
            self._fail(f"the provider answered with a redirect ({status})")
        elif self._api is None or status >= 400:
            self._back |= {"content-encoding": encoding} if encoding else {}
        elif encoding not in ENCODINGS and encoding not in ("", "identity"):
            self._fail(f"the provider's answer is encoded as `{encoding[:40]}`, which was not asked for")
        else:
            self._open(encoding if encoding in ENCODINGS else "")

    def _open(self, encoding: str) -> None:
        self._unpack = Unpacking(encoding, MAX_ANSWER) if encoding else None
        kind = self._kind.partition(";")[0].strip().lower()
        if kind == "text/event-stream" and self._api is not None:
            self._stream = self._api.stream(self._turn)
            self._request.stream(self._back)
        elif kind != "application/json":
            self._fail(f"the provider's answer is of the type `{kind[:60]}`, which cannot be judged")

    def on_body(self, data: bytes) -> None:
        if self._request.is_over:
            return
        try:
            for piece in self._unpack.feed(data) if self._unpack else (data,):
                self._take(piece)
        except UnclearError as error:
            self._fail(str(error))
        except Exception as error:  # a door's outermost function: nothing more goes on
            self._fail(f"the answer could not be judged ({type(error).__name__})")

    def _take(self, data: bytes) -> None:
        if self._stream is not None:
            self._push(self._stream.feed(data))
            return
        self._size += len(data)
        if self._size > MAX_ANSWER:
            raise UnclearError(f"the provider's answer is longer than {MAX_ANSWER} bytes")
        self._parts.append(data)

    def _push(self, data: bytes) -> None:
        if data:
            self._request.push(data)

    def on_end(self) -> None:
        if self._request.is_over:
            return
        try:
            self._finish()
        except UnclearError as error:
            self._fail(str(error))
        except Exception as error:  # a door's outermost function: nothing more goes on
            self._fail(f"the answer could not be judged ({type(error).__name__})")

    def _finish(self) -> None:
        if self._unpack is not None and not self._unpack.is_whole:
            raise UnclearError("the provider's answer breaks off inside its compression")
        if self._stream is not None:
            self._push(self._stream.close())
            self._request.end()
            return
        body = b"".join(self._parts)
        if self._api is not None and self._status < 400:
            body = self._api.answer(body, self._turn)
        self._request.answer(self._status, body, self._kind, self._back)

    def on_lost(self, reason: str) -> None:
        self._fail(f"the provider: {reason}", is_judged=False)

    def _fail(self, why: str, *, is_judged: bool = True) -> None:
        """Ends the answer with an error in the client's own form."""
        if self._request.is_over:
            return
        if is_judged:
            self._refused(why)
        if self._request.is_stream and self._api is not None:
            self._request.push(self._api.failure(f"extgate: {why}"))
            self._request.end()
        else:
            self._request.answer(502, self._provider.error(502, f"extgate: {why}"), "application/json")
        self._gone()
