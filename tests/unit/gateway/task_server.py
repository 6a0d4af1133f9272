"""An MCP server of 2026-07-28 alone, whose calls become tasks: `python task_server.py` over stdio, or with a port over
Streamable HTTP (0: any; it prints which). `failing_job` needs a client that knows tasks; nobody may reach `secret`.
"""

import itertools
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSION, META, TASKS = "2026-07-28", "io.modelcontextprotocol/", "io.modelcontextprotocol/tasks"
TOOLS = (
    "greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input",
    "test_tool_with_task", "secret",
)  # fmt: skip
NAMED = {"tools/call": "name"} | dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId")
NUMBERS = itertools.count(1)
CHANGED = threading.Condition()
tasks, changes = {}, {}


class Refused(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({"data": data} if data else {})


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


def question(*names):
    wanted = {"type": "object", "properties": {"confirm": {"type": "boolean"}, "name": {"type": "string"}}}
    params = {"mode": "form", "message": "Really?", "requestedSchema": wanted}
    return {name: {"method": "elicitation/create", "params": params} for name in names}


def begun(end, seconds=0.0, asks=()):
    """A task. end: what it has in the end, from the answers to what it asks; seconds: until then."""
    id = f"t{next(NUMBERS)}"
    tasks[id] = {"asks": question(*asks), "said": {}, "end": end, "at": time.monotonic() + seconds, "over": None}
    return {"resultType": "task", **state(id, is_detailed=False)}


def state(id, *, is_detailed=True):
    if id not in tasks:
        raise Refused(-32602, "Task not found")
    task = tasks[id]
    if task["over"] is None and not task["asks"] and time.monotonic() >= task["at"] and is_detailed:
        task["over"] = task["end"](task["said"])
    status = "input_required" if task["asks"] else "working"
    more = {"inputRequests": task["asks"]} if task["asks"] and is_detailed else {}
    if task["over"] is not None:
        status = "failed" if "error" in task["over"] else "completed" if "result" in task["over"] else "cancelled"
        more = task["over"]
    when = {"createdAt": "2026-11-30T00:00:00Z", "lastUpdatedAt": "2026-11-30T00:00:00Z"}
    return {"taskId": id, "status": status, **when, "ttlMs": 600000, "pollIntervalMs": 50, **more}


def called(params, declared):
    name, args, said = params["name"], params.get("arguments") or {}, params.get("inputResponses") or {}
    is_known = TASKS in declared.get("extensions", {})
    if name == "greet":
        return text(f"Hello, {args.get('name')}!")
    if name == "test_tool_with_task" and "user_name" not in said:
        return {"resultType": "input_required", "inputRequests": question("user_name")}
    if not is_known and name in ("failing_job", "test_tool_with_task"):
        raise Refused(
            -32021, "Missing required client capability", {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        )
    if name == "test_tool_with_task":
        return begun(lambda _: {"result": text(json.dumps(said["user_name"]))})
    if not is_known:
        return text("done")
    if name == "slow_compute":
        return begun(lambda _: {"result": text("computed")}, float(args.get("seconds") or 0))
    if name == "failing_job":
        return begun(lambda _: {"result": text("it failed", isError=True)}, 1.0)
    if name == "protocol_error_job":
        return begun(lambda _: {"error": {"code": -32603, "message": "panic"}}, 0.2)
    if name in ("confirm_delete", "multi_input"):
        asks = [f"{name}-{number}" for number in range(1 + (name == "multi_input"))]
        return begun(lambda said: {"result": text(json.dumps(said))}, asks=asks)
    raise Refused(-32602, f"no tool `{name}`")


def about_tasks(method, params):
    id = params.get("taskId")
    found = state(id)
    with CHANGED:
        task = tasks[id]
        if method == "tasks/get":
            return found
        if method == "tasks/cancel" and task["over"] is None:
            task["over"], task["asks"] = {}, {}
        for name, answer in (params.get("inputResponses") or {}).items():
            if task["asks"].pop(name, None):
                task["said"][name] = answer
        changes[id] = changes.get(id, 0) + 1
        CHANGED.notify_all()
    return {}


def result_of(message):
    method, params = message["method"], message.get("params") or {}
    meta = params.get("_meta") or {}
    declared = meta.get(META + "clientCapabilities")
    if meta.get(META + "protocolVersion") != VERSION or declared is None:
        raise Refused(-32601, f"no `{method}` without {VERSION}")
    if method == "server/discover":
        offered = {"tools": {}, "extensions": {TASKS: {}}}
        about = {"serverInfo": {"name": "tasks", "version": "1"}, "ttlMs": 0, "cacheScope": "private"}
        return {"supportedVersions": [VERSION], "capabilities": offered, **about}
    if method == "tools/list":
        rows = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
        return {"tools": rows, "ttlMs": 0, "cacheScope": "private"}
    if method == "tools/call":
        return called(params, declared)
    if method in ("tasks/get", "tasks/update", "tasks/cancel"):
        if TASKS not in declared.get("extensions", {}):
            data = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
            raise Refused(-32021, "Missing required client capability", data)
        return about_tasks(method, params)
    raise Refused(-32601, f"no `{method}`")


def answer(message):
    try:
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete", **result_of(message)}}
    except Refused as refused:
        return {"jsonrpc": "2.0", "id": message["id"], "error": refused.error}


def note(method, of, params):
    return {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": {META + "subscriptionId": of}}}


def listened(message, known):
    """The acknowledgement at first, then news of the tasks that changed since `known`, which is brought up to now."""
    wanted = (message["params"].get("notifications") or {}).get("taskIds") or []
    ids = [id for id in wanted if id in tasks]
    if not known:
        known[""] = 0
        known.update((id, changes.get(id, 0)) for id in ids)
        yield note("notifications/subscriptions/acknowledged", message["id"], {"notifications": {"taskIds": ids}})
    for id in ids:
        if changes.get(id, 0) != known[id]:
            known[id] = changes[id]
            yield note("notifications/tasks", message["id"], state(id))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message:
            self.reply(202, b"")
            return
        params = message.get("params") or {}
        named = params.get(NAMED.get(message["method"], ""))
        if self.headers["mcp-method"] != message["method"] or (named and self.headers["mcp-name"] != named):
            error = {"code": -32020, "message": "headers and body differ"}
            self.reply(400, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())
        elif message["method"] == "subscriptions/listen":
            self.listen(message)
        else:
            found = answer(message)
            code = found.get("error", {}).get("code")
            status = 404 if code == -32601 else 400 if code in (-32602, -32021) else 200
            self.reply(status, json.dumps(found).encode())

    def do_GET(self):
        self.reply(405, b"")

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def listen(self, message):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        known = {}
        with CHANGED:
            while True:
                for told in listened(message, known):
                    self.wfile.write(b"event: message\ndata: " + json.dumps(told).encode() + b"\n\n")
                self.wfile.flush()
                CHANGED.wait(60)

    def log_message(self, *args):
        pass


def serve_stdio():
    listening = []
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "subscriptions/listen":
            listening.append((message, {}))
        elif "id" in message and "method" in message:
            print(json.dumps(answer(message)), flush=True)
        for asked, known in listening:
            for told in listened(asked, known):
                print(json.dumps(told), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        serve_stdio()
    else:
        server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
        server.daemon_threads = True
        print(server.server_port, flush=True)
        server.serve_forever()
