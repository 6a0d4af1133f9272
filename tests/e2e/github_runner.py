"""As much of a GitHub runner as a composite action needs: contexts, steps, outputs, and the API of comments.

`${{ }}` holds what action.yml uses: names of contexts, `||`, `&&`, `==` and texts in quotes. `gh` is a stand-in that
talks HTTP to a server on loopback and filters with `jq`, as the real one does with its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

GH = f"""#!{sys.executable}
import json, os, subprocess, sys, urllib.request
words, where, method, jq, body, silent = sys.argv[2:], None, None, None, None, False
while words:
    word = words.pop(0)
    if word == "--method": method = words.pop(0)
    elif word == "--jq": jq = words.pop(0)
    elif word == "-F":
        key, _, value = words.pop(0).partition("=")
        body = {{key: open(value[1:], encoding="utf-8").read() if value.startswith("@") else value}}
    elif word == "--silent": silent = True
    elif word != "--paginate": where = word
assert sys.argv[1] == "api" and os.environ["GH_TOKEN"] == "the-token"
data = json.dumps(body).encode() if body else None
url = os.environ["FAKE_API"] + "/" + where
request = urllib.request.Request(url, data=data, method=method or ("POST" if data else "GET"))
try:
    found = urllib.request.urlopen(request).read()
except urllib.error.HTTPError as error:
    print(error, file=sys.stderr)
    sys.exit(1)
if jq:
    found = subprocess.run(["jq", "-r", jq], input=found, capture_output=True, check=True).stdout
if not silent:
    sys.stdout.buffer.write(found)
"""


class Comments:
    """The comments of one pull request, over HTTP on loopback. is_closed: writing is refused, as to a fork's token."""

    def __init__(self) -> None:
        self.bodies: dict[int, str] = {}
        self.is_closed = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer([{"id": key, "body": text} for key, text in outer.bodies.items()])

            def do_POST(self) -> None:
                self.put(100 + len(outer.bodies))

            def do_PATCH(self) -> None:
                self.put(int(self.path.rpartition("/")[2]))

            def put(self, key: int) -> None:
                text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
                if outer.is_closed:
                    self.send_error(403)
                    return
                outer.bodies[key] = text
                self.answer({"id": key})

            def answer(self, value: object) -> None:
                body = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass
class Job:
    """What became of one run. failed: the step that ended it."""

    failed: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    log: str = ""


def run_action(action: Path, checkout: Path, temp: Path, event: Mapping[str, Any], given: Mapping[str, str],
               environment: Mapping[str, str]) -> Job:  # fmt: skip
    """Runs every step of a composite action over a checkout, as a runner does."""
    recipe = yaml.safe_load((action / "action.yml").read_text())
    github = {"event": event, "event_name": "pull_request", "token": "the-token"}
    contexts: dict[str, Any] = {"github": github, "inputs": {}, "steps": {}}
    for name, row in recipe["inputs"].items():
        contexts["inputs"][name] = given.get(name, str(_filled(str(row["default"]), contexts)))
    job = Job()
    temp.mkdir(parents=True, exist_ok=True)
    for number, row in enumerate(recipe["runs"]["steps"]):
        if "if" in row and not _value(row["if"], contexts):
            continue
        output, summary = temp / f"output-{number}", temp / f"summary-{number}"
        output.touch()
        summary.touch()
        own = {key: str(_filled(text, contexts)) for key, text in row.get("env", {}).items()}
        runner = {"RUNNER_TEMP": str(temp), "GITHUB_ACTION_PATH": str(action), "GITHUB_OUTPUT": str(output),
                  "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_REPOSITORY": "o/r", "CI": "true"}  # fmt: skip
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", row["run"]]
        done = subprocess.run(words, cwd=checkout, env={**os.environ, **environment, **runner, **own},
                              capture_output=True, text=True)  # fmt: skip
        job.log += f"== {row['name']}\n{done.stdout}{done.stderr}"
        job.summary += summary.read_text()
        found = dict(line.split("=", 1) for line in output.read_text().splitlines())
        contexts["steps"][row.get("id", str(number))] = {"outputs": found}
        if done.returncode:
            job.failed = row["name"]
            break
    job.outputs = {key: str(_filled(row["value"], contexts)) for key, row in recipe["outputs"].items()}
    return job


def _filled(text: str, contexts: Mapping[str, Any]) -> Any:
    """The text with its expressions filled in."""
    return re.sub(r"\$\{\{(.*?)\}\}", lambda found: str(_value(found[1], contexts)), text)


def _value(expression: str, contexts: Mapping[str, Any]) -> Any:
    for sign in ("||", "&&"):
        if sign in expression:
            one, other = expression.split(sign, 1)
            first = _value(one, contexts)
            return (first or _value(other, contexts)) if sign == "||" else (first and _value(other, contexts))
    if "==" in expression:
        one, other = expression.split("==")
        return _value(one, contexts) == _value(other, contexts)
    text = expression.strip()
    if text.startswith("'"):
        return text.strip("'")
    value: Any = contexts
    for part in text.split("."):
        value = value.get(part, "") if isinstance(value, Mapping) else ""
    return value
