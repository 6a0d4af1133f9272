"""A scripted model behind the Anthropic messages API on loopback, which keeps every request it gets.

    with FakeAnthropic([call("Bash", command="ls"), "done"]) as model:
        run(env={"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none"})

Turns and scripts are those of `tests.fake_model`. A request without tools (a client asking for a title) is answered
`ok` and takes no turn.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fake_model import Json, Script, Turn


@dataclass(frozen=True)
class Request:
    """One request as it came over the wire."""

    body: Json

    @property
    def tools(self) -> list[str]:
        return [tool["name"] for tool in self.body.get("tools", [])]

    @property
    def text(self) -> str:
        """Everything in it that a model would read."""
        return json.dumps([self.body.get("system"), self.body["messages"]], ensure_ascii=False)

    @property
    def user(self) -> str:
        first = next((m["content"] for m in self.body["messages"] if m["role"] == "user"), "")
        return first if isinstance(first, str) else json.dumps(first, ensure_ascii=False)

    @property
    def turn(self) -> int:
        return sum(message["role"] == "assistant" for message in self.body["messages"])

    @property
    def results(self) -> dict[str, str]:
        """What the calls were answered so far, by the call's id."""
        blocks = [b for m in self.body["messages"] if isinstance(m["content"], list) for b in m["content"]]
        return {b["tool_use_id"]: json.dumps(b.get("content")) for b in blocks if b.get("type") == "tool_result"}


@dataclass
class FakeAnthropic:
    """The server; `requests` grows while it runs."""

    script: Script = ()
    requests: list[Request] = field(default_factory=list)

    def __enter__(self) -> FakeAnthropic:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, request: Request) -> Turn:
        if not request.tools:
            return "ok"
        turns = self.script
        if isinstance(turns, dict):
            turns = next((found for word, found in turns.items() if word in request.user), ())
        return turns[request.turn] if request.turn < len(turns) else "done"  # type: ignore[index]


def _handler(model: FakeAnthropic) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            path = self.path.partition("?")[0]
            if path.endswith("/count_tokens"):
                self._send(200, "application/json", [b'{"input_tokens": 1}'])
            elif not path.endswith("/v1/messages"):
                self._send(404, "application/json", [b'{"type": "error", "error": {"type": "not_found_error"}}'])
            else:
                request = Request(body)
                model.requests.append(request)
                message = _message(model.answer(request), request.turn)
                if body.get("stream"):
                    self._send(200, "text/event-stream", _events(message))
                else:
                    self._send(200, "application/json", [json.dumps(message).encode()])

        def do_HEAD(self) -> None:
            self._send(200, "text/plain", [])

        def _send(self, status: int, kind: str, parts: Iterator[bytes] | list[bytes]) -> None:
            data = b"".join(parts)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    return Handler


def _message(turn: Turn, number: int) -> Json:
    content: list[Json] = [{"type": "text", "text": turn}] if isinstance(turn, str) else [
        {"type": "tool_use", "id": f"toolu_{number}_{at}", "name": c["name"], "input": c["arguments"]}
        for at, c in enumerate(turn)
    ]  # fmt: skip
    return {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "fake", "content": content,
        "stop_reason": "end_turn" if isinstance(turn, str) else "tool_use", "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip


def _events(message: Json) -> Iterator[bytes]:
    def event(kind: str, **fields: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()

    yield event("message_start", message=message | {"content": [], "stop_reason": None})
    for index, block in enumerate(message["content"]):
        is_text = block["type"] == "text"
        empty = block | ({"text": ""} if is_text else {"input": {}})
        delta = {"type": "text_delta", "text": block["text"]} if is_text else {
            "type": "input_json_delta", "partial_json": json.dumps(block["input"])
        }  # fmt: skip
        yield event("content_block_start", index=index, content_block=empty)
        yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    yield event("message_delta", delta={"stop_reason": message["stop_reason"], "stop_sequence": None},
                usage={"output_tokens": 1})  # fmt: skip
    yield event("message_stop")
