"""A small MCP server over stdio, of the standard library alone, that misbehaves as its JSON argument says.

tools, resources, templates, prompts: how many of each. page: items a page. loop: the last page's cursor leads back.
circle: every page has a new cursor. fail: methods answered with an error, as `{method: code}`. fail_after: every page
but the first is an error. hang: a method never answered. die: a method on which it ends with code 3. print: text before
anything. noise: lines of no message. endless: one line that never ends. flood: notifications before the first answer.
stubborn: ignores the end of its input and SIGTERM. child: starts a sleeper that stays behind, and writes both process
ids to this file. log: text on stderr. meet: a pipe that it opens, as `[path, mode]`, which holds it up until somebody
opens the other end. env, cwd: lists the names of its environment and its folder as tools. twice: the first tool comes
twice. bare: announces nothing.
"""

import json
import os
import signal
import subprocess
import sys
import time

flags = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def items(what):
    count = flags.get(what, 0)
    if what == "tools":
        names = [f"tool_{n}" for n in range(count)]
        names += [f"env:{name}" for name in sorted(os.environ)] if flags.get("env") else []
        names += [f"cwd:{os.getcwd()}"] if flags.get("cwd") else []
        names += names[:1] if flags.get("twice") else []
        schema = {"type": "object", "properties": {"x": {"default": None}}}
        hints = {"readOnlyHint": True}
        bad = [{"name": "bad", "inputSchema": "x"}, {"inputSchema": schema}, "no object", {"name": "worse", "title": 3}]
        bad += [{"name": "worst", "inputSchema": schema, "annotations": []}]
        good = [{"name": n, "description": f"Does {n}.", "inputSchema": schema, "annotations": hints} for n in names]
        return [*(bad if flags.get("malformed") else []), *good]
    if what == "resources":
        return [{"uri": f"file:///r{n}", "name": f"r{n}"} for n in range(count)]
    if what == "templates":
        return [{"uriTemplate": f"file:///{{id}}/{n}", "name": f"t{n}", "title": f"T{n}"} for n in range(count)]
    return [{"name": f"prompt_{n}", "arguments": [{"name": "topic", "required": True}]} for n in range(count)]


def page(key, what, params):
    every = items(what)
    size = flags.get("page") or max(len(every), 1)
    start = int(str(params.get("cursor", "0")).rpartition(":")[2])
    result = {key: every[start : start + size]}
    if flags.get("circle"):
        result["nextCursor"] = f"{time.monotonic_ns()}:0"
    elif start + size < len(every) or (flags.get("loop") and every):
        result["nextCursor"] = str((start + size) % max(len(every), 1))
    return result


LISTS = {
    "tools/list": ("tools", "tools"),
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("resourceTemplates", "templates"),
    "prompts/list": ("prompts", "prompts"),
}


def answer(method, params):
    if method == "initialize":
        offered = {} if flags.get("bare") else {"tools": {}, "resources": {}, "prompts": {}}
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": offered,
            "serverInfo": {"name": "fixture", "version": "1.2.3"},
            "instructions": "Use with care.",
        }
    return page(*LISTS[method], params)


def misbehave():
    if flags.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if flags.get("child"):
        sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open(flags["child"], "w") as file:
            file.write(f"{os.getpid()} {sleeper.pid}")
    if flags.get("meet"):
        open(*flags["meet"]).close()
    if flags.get("log"):
        print(flags["log"], file=sys.stderr, flush=True)
    if flags.get("print"):
        print(flags["print"], flush=True)
    for n in range(flags.get("noise", 0)):
        print(f"noise {n}", flush=True)
    while flags.get("endless"):
        sys.stdout.write("x" * 65536)
    for _ in range(flags.get("flood", 0)):
        say({"method": "notifications/message", "params": {"level": "info", "data": "x"}})


def main():
    misbehave()
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if method == flags.get("hang"):
            continue
        if method == flags.get("die"):
            print("fatal: no database", file=sys.stderr, flush=True)
            sys.exit(3)
        if "id" not in message:
            continue
        is_late = flags.get("fail_after") and "cursor" in (message.get("params") or {})
        if is_late:
            say({"id": message["id"], "error": {"code": -32603, "message": "no more pages"}})
        elif method in flags.get("fail", {}):
            say({"id": message["id"], "error": {"code": flags["fail"][method], "message": f"no {method}"}})
        elif method == "initialize" or method in LISTS:
            say({"id": message["id"], "result": answer(method, message.get("params") or {})})
        else:
            say({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
    while flags.get("stubborn"):
        time.sleep(60)


main()
