"""A small MCP server over stdio, of the standard library alone, that stays and does what its JSON argument says.

tools: names that it offers. calls: a file to which each call is appended as a JSON line. grow: a tool whose call
adds `grown` to its tools, which it says. die: a tool on which it ends. mute: a tool after which it never answers.
gate: a file that must be there when it starts, or it ends with code 3. silent: no call is ever answered.
"""

import json
import os
import sys

flags = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
tools = list(flags.get("tools", ["echo"]))


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(name, arguments):
    if flags.get("calls"):
        with open(flags["calls"], "a") as file:
            file.write(json.dumps({"tool": name, "arguments": arguments}) + "\n")
    if name == flags.get("die"):
        os._exit(3)
    if name == flags.get("grow"):
        tools.append("grown")
        say({"method": "notifications/tools/list_changed"})
    text = json.dumps({"tool": name, "arguments": arguments, "pid": os.getpid()}, sort_keys=True)
    return {"content": [{"type": "text", "text": text}], "isError": bool(arguments.get("fail"))}


def answer(method, params):
    if method == "initialize":
        about = {"name": "live", "version": "1"}
        offered = {"tools": {"listChanged": True}}
        return {"protocolVersion": "2025-06-18", "capabilities": offered, "serverInfo": about}
    if method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        return {"tools": [{"name": n, "description": f"Does {n}.", "inputSchema": schema} for n in tools]}
    if method == "tools/call":
        return call(params["name"], params.get("arguments") or {})
    return {} if method == "ping" else None


def main():
    if flags.get("gate") and not os.path.exists(flags["gate"]):
        sys.exit(3)
    is_mute = False
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or is_mute:
            continue
        result = answer(message["method"], message.get("params") or {})
        if flags.get("silent") and message["method"] == "tools/call":
            continue
        if result is None:
            say({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
        else:
            say({"id": message["id"], "result": result})
        is_mute = message["method"] == "tools/call" and message["params"]["name"] == flags.get("mute")


main()
