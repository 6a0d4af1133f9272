"""A stdio MCP server of one protocol version and no other: `python version_server.py VERSION`. Its tool `who` answers
with the parameters that it got; `secret` must never be reached. A message that its version does not know is an error.
"""

import json
import sys

version = sys.argv[1]
is_modern = version >= "2026"
META = "io.modelcontextprotocol/"
TOOLS = [{"name": n, "inputSchema": {"type": "object"}, "x-vendor": version} for n in ("who", "secret")]
is_open = False


def answer(message):
    global is_open
    method, params = message["method"], message.get("params") or {}
    meta = params.get("_meta") or {}
    about = {"name": "versions", "version": "1"}
    if is_modern:
        if meta.get(META + "protocolVersion") != version or META + "clientCapabilities" not in meta:
            return {"error": {"code": -32601, "message": f"no `{method}` without {version}"}}
        end = {"resultType": "complete"}
        if method == "server/discover":
            return {
                "result": {"supportedVersions": [version], "capabilities": {"tools": {}}, "serverInfo": about, **end}
            }
    else:
        end = {}
        if any(key.startswith(META) for key in meta):
            return {"error": {"code": -32602, "message": "what is this?"}}
        if method == "initialize":
            is_open = True
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}}
        if not is_open:
            return {"error": {"code": -32600, "message": "not open"}}
    if method == "tools/list":
        return {"result": {"tools": TOOLS, **({"ttlMs": 0, "cacheScope": "private"} if is_modern else {}), **end}}
    if method == "tools/call" and params["name"] == "who":
        return {"result": {"content": [{"type": "text", "text": json.dumps(params)}], "x-vendor": [1], **end}}
    return {"error": {"code": -32601, "message": f"no `{method}`"}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}), flush=True)
