"""An MCP server of the standard library alone that keeps each message it gets: the proof that a call really ran.

    python probe_server.py NAME LOG [tool,tool,...] [--grow] [--http PORTFILE]

Each message is a line of LOG: `{"server", "method", "params"}`. It offers the tools, one resource, one prompt and
instructions that name a secret. With --grow, a call of its first tool adds `late_danger` and says so (stdio only).
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOLS = ["read_thing", "write_thing", "delete_thing", "danger_zone"]


class Probe:
    """The server without its transport. said: notifications that are due."""

    def __init__(self, name, log, tools, grows):
        self.name, self.log, self.tools, self.grows, self.said = name, log, tools, grows, []

    def keep(self, message):
        line = {"server": self.name, "method": message.get("method"), "params": message.get("params")}
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def answer(self, message):
        """The response, or None for a notification."""
        self.keep(message)
        if "id" not in message or "method" not in message:
            return None
        result = self.result(message["method"], message.get("params") or {})
        body = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
        return {"jsonrpc": "2.0", "id": message["id"], **body}

    def result(self, method, params):
        if method == "initialize":
            return self.hello(params.get("protocolVersion", "2025-06-18"))
        if method == "tools/call":
            return self.call(params.get("name"))
        uri = f"probe://{self.name}/secret"
        return {
            "ping": {},
            "tools/list": {"tools": [self.tool(name) for name in self.tools]},
            "prompts/list": {"prompts": [{"name": "hello_prompt", "description": f"A prompt of {self.name}."}]},
            "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}]},
            "resources/list": {"resources": [{"uri": uri, "name": f"{self.name}-secret", "mimeType": "text/plain"}]},
            "resources/templates/list": {"resourceTemplates": []},
            "resources/read": {"contents": [{"uri": uri, "mimeType": "text/plain", "text": f"SECRET-OF-{self.name}"}]},
        }.get(method)

    def hello(self, version):
        changes = {"listChanged": True}
        return {
            "protocolVersion": min(version, "2025-11-25"),
            "capabilities": {"tools": changes, "prompts": {}, "resources": {}},
            "serverInfo": {"name": self.name, "version": "1"},
            "instructions": f"INSTRUCTIONS-OF-{self.name}: use {self.tools[0]} first.",
        }

    def tool(self, name):
        schema = {"type": "object", "properties": {"q": {"type": "string"}}}
        return {"name": name, "description": f"Does {name} of {self.name}.", "inputSchema": schema}

    def call(self, name):
        if self.grows and name == self.tools[0] and "late_danger" not in self.tools:
            self.tools.append("late_danger")
            self.said.append({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return {"content": [{"type": "text", "text": f"{name} of {self.name} ran"}]}


def serve_stdio(probe):
    for line in sys.stdin:
        if not line.strip():
            continue
        response = probe.answer(json.loads(line))
        for message in [*probe.said, *([response] if response else [])]:
            sys.stdout.write(json.dumps(message) + "\n")
        probe.said.clear()
        sys.stdout.flush()


def serve_http(probe, port_file):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            response = probe.answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send(200 if response else 202, json.dumps(response).encode() if response else b"")

        def do_GET(self):
            self.send(405, b"")

        do_DELETE = do_GET

        def send(self, status, data):
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with open(port_file + ".part", "w") as file:
        file.write(str(server.server_address[1]))
    os.replace(port_file + ".part", port_file)
    server.serve_forever()


def main():
    name, log, *rest = sys.argv[1:]
    named = rest[0].split(",") if rest and not rest[0].startswith("--") else list(TOOLS)
    probe = Probe(name, log, named, "--grow" in rest)
    if "--http" in rest:
        serve_http(probe, rest[rest.index("--http") + 1])
    else:
        serve_stdio(probe)


main()
