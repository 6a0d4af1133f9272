"""A scripted model on loopback behind all four wires, which keeps every request that it gets.

    with ScriptedModel({"": [[Call("Bash", {"command": "id"})], "done"]}) as model:
        run(client, base_url=model.url)

A script is turns by mark: a conversation plays the turns of the first mark that stands in what was said before the
model's first answer, the empty mark last. Which turn is played follows from the request alone, so retries, title calls
and sub-agents side by side do not take each other's. Past the end, and where no tools are offered, it says `done`.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.e2e.clients import wires
from tests.e2e.clients.wires import Call, Json, Step, Turn

WAITS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request for an answer, as it came."""

    wire: str
    path: str
    body: Json

    @property
    def offered(self) -> list[str]:
        return wires.offered(self.wire, self.body)

    @property
    def everything(self) -> str:
        """All that the model would have read."""
        return json.dumps(self.body, ensure_ascii=False)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


@dataclass
class ScriptedModel:
    """The server; `requests` grows while it runs.

    awaited: a part of a tool's name. Until such a tool is offered, the conversation of the empty mark first calls what
    there is not, once a second and at most 15 times: runtimes ask before their servers are up, and take what has come
    up since into the next request.
    """

    script: Mapping[str, Sequence[Step]] = field(default_factory=dict)
    awaited: str = ""
    requests: list[Request] = field(default_factory=list)

    def __enter__(self) -> ScriptedModel:
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def read(self) -> str:
        """All that the model would have read, in all requests."""
        return "\n".join(request.everything for request in list(self.requests))

    @property
    def offered(self) -> list[str]:
        """The tools of the first request that offers any."""
        return next((request.offered for request in list(self.requests) if request.offered), [])

    def turn(self, request: Request) -> Turn:
        said = wires.opening(request.wire, request.body)
        marks = sorted(self.script, key=len, reverse=True)
        mark = next((mark for mark in marks if mark in said), "")
        turns, waited = self.script.get(mark, ()), _waited(request)
        at = wires.turns_played(request.wire, request.body) - waited
        is_there = any(self.awaited in name for name in request.offered)
        if request.offered and not is_there and not mark and at == 0 and waited < WAITS:
            time.sleep(1.0)
            return [Call(f"nothing_{waited + 1}")]
        step = turns[at] if request.offered and at < len(turns) else "done"
        return step(request.body) if callable(step) else step


def _waited(request: Request) -> int:
    """How often the conversation has waited."""
    return max(map(int, re.findall(r"nothing_(\d+)", request.everything)), default=0)


def _handler(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("content-encoding") == "gzip":
                raw = gzip.decompress(raw)
            name = wires.wire(self.path)
            if not name:
                self._other(raw)
                return
            request = Request(wire=name, path=self.path, body=json.loads(raw))
            model.requests.append(request)
            whole, events = wires.ANSWERS[name](model.turn(request), str(request.body.get("model", "fake-model")))
            if wires.is_streamed(name, self.path, request.body):
                self._send(200, "text/event-stream", events)
            else:
                self._send(200, "application/json", [json.dumps(whole)])

        def _other(self, raw: bytes) -> None:
            size = max(1, len(raw) // 4)
            if self.path.partition("?")[0].endswith("count_tokens"):
                self._send(200, "application/json", [json.dumps({"input_tokens": size})])
            elif ":countTokens" in self.path:
                self._send(200, "application/json", [json.dumps({"totalTokens": size})])
            else:
                self._send(404, "application/json", ['{"error": {"message": "no such path"}}'])

        def do_GET(self) -> None:
            rows = [{"id": "fake-model", "object": "model", "created": 1, "owned_by": "nobody"}]
            said = json.dumps({"object": "list", "data": rows, "has_more": False, "models": []})
            known = self.path.partition("?")[0].endswith("/models")
            self._send(200 if known else 404, "application/json", [said])

        def do_HEAD(self) -> None:
            self._send(200, "application/json", [])

        def _send(self, status: int, kind: str, parts: Iterable[str]) -> None:
            data = "".join(parts).encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    return Handler
