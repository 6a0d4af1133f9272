"""A stdio MCP server with bad habits, of the standard library alone. Tools: `echo`; `die`; `hang`; `big` (answers with
`size` bytes); `garbage` (prints lines that are no messages first); `elicit` and `progress` ask and tell before they
answer; `wait` answers when the file `until` is there; `grow` adds a tool. argv: a file to which each call is appended.
"""

import json
import os
import sys
import threading
import time

calls, tools = sys.argv[1], ["echo", "die", "hang", "big", "garbage", "elicit", "progress", "wait", "grow"]
lock = threading.Lock()


def say(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def wait(message, until):
    while not os.path.exists(until):
        time.sleep(0.01)
    say({"id": message["id"], "result": content("waited")})


def content(text):
    return {"content": [{"type": "text", "text": text}], "pid": os.getpid()}


def call(message):
    params = message["params"]
    name, args = params["name"], params.get("arguments") or {}
    with open(calls, "a") as file:
        file.write(json.dumps({"tool": name, "arguments": args}) + "\n")
    if name == "die":
        os._exit(3)
    if name == "hang":
        return
    if name == "garbage":
        sys.stdout.write('Hello!\n{"jsonrpc": "2.0"}\n[1]\n{"jsonrpc":"2.0","id":999,"result":{}}\n\xff\n')
    if name == "grow":
        tools.append("grown")
        say({"method": "notifications/tools/list_changed"})
    if name == "elicit":
        asked[1000] = message["id"]
        say({"id": 1000, "method": "elicitation/create", "params": {"message": "?"}})
        return
    if name == "progress":
        token = params["_meta"]["progressToken"]
        say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
    if name == "wait":
        threading.Thread(target=wait, args=(message, args["until"]), daemon=True).start()
        return
    say({"id": message["id"], "result": content("x" * args.get("size", 0) if name == "big" else json.dumps(args))})


asked = {}
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        about = {"name": "habits", "version": json.dumps(message["params"]["capabilities"])}
        offered = {"tools": {"listChanged": True}}
        result = {"protocolVersion": "2025-06-18", "capabilities": offered, "serverInfo": about}
        say({"id": message["id"], "result": result})
    elif method == "tools/list":
        say({"id": message["id"], "result": {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in tools]}})
    elif method == "tools/call":
        call(message)
    elif method == "notifications/cancelled":
        with open(calls, "a") as file:
            file.write(json.dumps({"cancelled": True}) + "\n")
    elif method is None:
        say(
            {"id": asked.pop(message["id"]), "result": content(json.dumps(message.get("result", message.get("error"))))}
        )
    elif "id" in message and method == "ping":
        say({"id": message["id"], "result": {}})
    elif "id" in message:
        say({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
