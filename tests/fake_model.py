"""A scripted model behind the OpenAI chat-completions API on loopback, which keeps every request it gets.

    with FakeModel(["hello"]) as model:
        ChatOpenAI(base_url=model.url, api_key="none", model="fake")

A script is a list of turns, or lists of turns by a word that the first user message holds. A turn is a text, or
`call(...)` of one or more tools. Which turn is played follows from the request alone (how many answers of the model it
already holds), so retries and conversations side by side do not take each other's turns. Past the end it says `done`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Turn = str | list[Json]
Script = Sequence[Turn] | Mapping[str, Sequence[Turn]]


def call(name: str, /, **arguments: Any) -> list[Json]:
    """A turn that calls one tool; add two of them for parallel calls."""
    return [{"name": name, "arguments": arguments}]


@dataclass(frozen=True)
class Request:
    """One request as it came over the wire."""

    body: Json

    @property
    def tools(self) -> list[str]:
        """Names of the offered tools, in order; of one without a name, its type."""
        return [(tool.get("function") or tool).get("name") or tool["type"] for tool in self.body.get("tools", [])]

    @property
    def system(self) -> str:
        return "\n".join(_text(m["content"]) for m in self.body["messages"] if m["role"] in ("system", "developer"))

    @property
    def user(self) -> str:
        """The first user message."""
        return next((_text(m["content"]) for m in self.body["messages"] if m["role"] == "user"), "")

    @property
    def results(self) -> list[str]:
        """What the tools answered so far, in order."""
        return [_text(m["content"]) for m in self.body["messages"] if m["role"] == "tool"]

    @property
    def turn(self) -> int:
        return sum(m["role"] == "assistant" for m in self.body["messages"])

    def tool(self, name: str) -> Json:
        """The definition of one offered tool."""
        return next(tool["function"] for tool in self.body["tools"] if tool["function"]["name"] == name)


class _Server(ThreadingHTTPServer):
    """Takes many connections at a time."""

    daemon_threads = True
    request_queue_size = 256


@dataclass
class FakeModel:
    """The server; `requests` grows while it runs. Safe for threads and for many conversations at a time."""

    script: Script = ()
    requests: list[Request] = field(default_factory=list)

    def __enter__(self) -> FakeModel:
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def about(self, word: str) -> list[Request]:
        """The requests of the conversations whose first user message holds the word."""
        return [request for request in self.requests if word in request.user]

    def answer(self, request: Request) -> Turn:
        turns = self._turns(request)
        return turns[request.turn] if request.turn < len(turns) else "done"

    def _turns(self, request: Request) -> Sequence[Turn]:
        if not isinstance(self.script, Mapping):
            return self.script
        return next((turns for word, turns in self.script.items() if word in request.user), ())


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))
    return str(content or "")


def _handler(model: FakeModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if not self.path.endswith("/chat/completions"):
                self._send(404, "application/json", [b'{"error": {"message": "no such path"}}'])
                return
            request = Request(body)
            model.requests.append(request)
            turn = model.answer(request)
            if body.get("stream"):
                self._send(200, "text/event-stream", _events(turn, request.turn))
            else:
                self._send(200, "application/json", [json.dumps(_completion(turn, request.turn)).encode()])

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


_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _base(kind: str) -> Json:
    return {"id": "chatcmpl-fake", "object": kind, "created": 0, "model": "fake"}


def _calls(turn: Turn, number: int) -> list[Json]:
    calls = [] if isinstance(turn, str) else turn
    return [
        {
            "index": at,
            "id": f"call_{number}_{at}",
            "type": "function",
            "function": {"name": c["name"], "arguments": json.dumps(c["arguments"])},
        }
        for at, c in enumerate(calls)
    ]


def _completion(turn: Turn, number: int) -> Json:
    message: Json = {"role": "assistant", "content": turn if isinstance(turn, str) else None}
    if calls := _calls(turn, number):
        message["tool_calls"] = [{k: v for k, v in c.items() if k != "index"} for c in calls]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return _base("chat.completion") | {"choices": [choice], "usage": _USAGE}


def _events(turn: Turn, number: int) -> Iterator[bytes]:
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    if isinstance(turn, str):
        deltas += [{"content": part} for part in (turn[: len(turn) // 2], turn[len(turn) // 2 :]) if part]
    for one in _calls(turn, number):
        whole = one["function"]["arguments"]
        deltas.append({"tool_calls": [one | {"function": one["function"] | {"arguments": ""}}]})
        deltas.append({"tool_calls": [{"index": one["index"], "function": {"arguments": whole}}]})
    finish = "stop" if isinstance(turn, str) else "tool_calls"
    choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    choices.append([{"index": 0, "delta": {}, "finish_reason": finish}])
    for choice in choices:
        yield b"data: " + json.dumps(_base("chat.completion.chunk") | {"choices": choice}).encode() + b"\n\n"
    tail = _base("chat.completion.chunk") | {"choices": [], "usage": _USAGE}
    yield b"data: " + json.dumps(tail).encode() + b"\n\ndata: [DONE]\n\n"
