"""A server that answers as nobody should: over stdio, or Streamable HTTP with a port. Standard library alone.

    python fuzz_server.py stdio | http PORT

The tool `fuzz` takes `seed`, which says what goes wrong; `echo` answers as it should. What it sends is bounded, so that
whoever stands before it can be watched for leaks.
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

DEEP = b"[" * 3000 + b"]" * 3000
KINDS = ("right", "right", "right", "noise", "wrong id", "twice", "deep", "binary", "long", "asks", "progress", "none")
KINDS += ("error", "odd error", "odd result", "changed", "cancelled", "batch", "half", "cut", "dies")


def result(id: Any, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}}


def lines(message: dict[str, Any]) -> list[bytes]:
    """What comes back for one message, line by line; the last may lack its end."""
    method, id = message.get("method"), message.get("id")
    if method is None or id is None:
        return []
    if method == "initialize":
        about = {"name": "fuzz", "version": "1"}
        offered = {"tools": {"listChanged": True}, "logging": {}, "resources": {"subscribe": True}, "prompts": {}}
        offered["tasks"] = {"requests": {"tools": {"call": {}}}}
        body: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": offered, "serverInfo": about}
        return [dump({"jsonrpc": "2.0", "id": id, "result": body})]
    lists = {
        "tools/list": {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("echo", "fuzz")]},
        "prompts/list": {"prompts": [{"name": "p"}]},
        "resources/list": {"resources": [{"uri": "fuzz://a", "name": "a"}]},
        "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "fuzz://t/{x}", "name": "t"}]},
    }
    if method in lists:
        return [dump({"jsonrpc": "2.0", "id": id, "result": lists[method]})]
    if method != "tools/call":
        return [dump({"jsonrpc": "2.0", "id": id, "result": {}})]
    params = message.get("params")
    name, arguments, meta = (
        (params.get(k) for k in ("name", "arguments", "_meta")) if isinstance(params, dict) else "???"
    )
    if name != "fuzz":
        return [dump(result(id, json.dumps(arguments)[:2000]))]
    seed = arguments.get("seed") if isinstance(arguments, dict) else 0
    return strange(id, random.Random(str(seed)), meta.get("progressToken") if isinstance(meta, dict) else None)


def dump(message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


def strange(id: Any, dice: random.Random, token: Any) -> list[bytes]:
    kind, right = dice.choice(KINDS), dump(result(id, "ok"))
    note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}
    asks = ("sampling/createMessage", "elicitation/create", "roots/list", "ping", "x", "tools/call")
    ask = {"jsonrpc": "2.0", "id": dice.choice([1, "a", id, 2.5]), "method": dice.choice(asks), "params": {}}
    changed = {"jsonrpc": "2.0", "method": f"notifications/{dice.choice(['tools', 'prompts', 'x'])}/list_changed"}
    said: dict[str, Callable[[], list[bytes]]] = {
        "noise": lambda: [b"Hello!\n", b"{}\n", b"null\n", b"\n", b"\r\n", b'{"jsonrpc":"2.0"}\n', right],
        "wrong id": lambda: [dump(result(dice.choice([999999, "x", None, -1, 1e99, {}]), "?"))] * 3 + [right],
        "twice": lambda: [right, right, right],
        "deep": lambda: [b'{"jsonrpc":"2.0","method":"x","params":' + DEEP + b"}\n", right],
        "binary": lambda: [bytes(dice.randrange(256) for _ in range(300)) + b"\n", right],
        "long": lambda: [dump(result(id, "x" * dice.choice([70_000, 1_500_000, 3_000_000])))],
        "asks": lambda: [dump(ask), right],
        "progress": lambda: [dump(note)] * 20 + [right] + [dump(note)],
        "none": list,
        "error": lambda: [dump({"jsonrpc": "2.0", "id": id, "error": {"code": -32042, "message": "no", "data": [1]}})],
        "odd error": lambda: [dump({"jsonrpc": "2.0", "id": id, "error": dice.choice([None, "x", [], {"code": "x"}])})],
        "odd result": lambda: [dump({"jsonrpc": "2.0", "id": id, "result": dice.choice([None, "x", [], 7, {"a": 1}])})],
        "changed": lambda: [dump(changed)] * 5 + [right],
        "cancelled": lambda: [
            dump({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}), right
        ],
        "batch": lambda: [b"[" + right[:-1] + b"]\n", right],
        "half": lambda: [right[: len(right) // 2], right[len(right) // 2 :]],
        "cut": lambda: [right[: len(right) // 2] + b"\n"],
        "dies": lambda: [b"dies"] if dice.random() < 0.01 else [right],
    }  # fmt: skip
    return said.get(kind, lambda: [right])()


def over_stdio() -> None:
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        for piece in lines(message) if isinstance(message, dict) else []:
            if piece == b"dies":
                os._exit(7)
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


# ---------------------------------------------------------------------------------------------- HTTP


def over_http(port: int) -> None:
    with socket.create_server(("127.0.0.1", port), backlog=512) as listening:
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=serve, args=(connection,), daemon=True).start()


def serve(connection: socket.socket) -> None:
    dice = random.Random(time.monotonic_ns())
    try:
        with connection, connection.makefile("rb") as reader:
            while one_request(reader, connection, dice):
                pass
    except (OSError, ValueError):
        return


def one_request(reader: Any, connection: socket.socket, dice: random.Random) -> bool:
    """Answers a request; whether the connection is kept."""
    head = reader.readline()
    length = 0
    while (line := reader.readline()) not in (b"\r\n", b""):
        if line.lower().startswith(b"content-length:"):
            length = int(line[15:])
    if not head:
        return False
    message = json.loads(reader.read(length) or b"{}")
    if not head.startswith(b"POST"):
        connection.sendall(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n")
        return True
    said = lines(message)
    if not said:
        connection.sendall(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
        return True
    is_strange = message.get("method") == "tools/call" and b'"fuzz"' in json.dumps(message).encode()
    return respond(connection, said, dice if is_strange else random.Random("plain"), is_strange=is_strange)


def respond(connection: socket.socket, said: list[bytes], dice: random.Random, *, is_strange: bool) -> bool:
    body, kind = b"".join(said), b"application/json"
    way = dice.randrange(12) if is_strange else 0
    if len(said) > 1 or way == 1:
        kind, body = b"text/event-stream", b"".join(b"data: " + piece.rstrip(b"\n") + b"\n\n" for piece in said)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\n"
    whole = head + b"content-length: %d\r\n\r\n" % len(body) + body
    odd = {
        2: b"HTTP/1.1 500 No\r\ncontent-length: 3\r\n\r\nno!",
        3: whole[: len(whole) // 2],
        4: b"SSH-2.0-x\r\n\r\n",
        5: head + b"transfer-encoding: chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n",
        6: head + b"transfer-encoding: chunked\r\n\r\nzz\r\n" + body,
        7: head + b"x: " + b"y" * 80_000 + b"\r\n\r\n" + body,
        8: b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi",
        9: b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
        10: b"HTTP/1.1 100 Continue\r\n\r\n" + whole,
        11: whole + b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx",
    }
    connection.sendall(odd.get(way, whole))
    return way not in (3, 4, 6, 7)


if __name__ == "__main__":
    over_stdio() if sys.argv[1] == "stdio" else over_http(int(sys.argv[2]))
