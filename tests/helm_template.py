"""As much of Helm's template language as the chart of this project uses: actions, pipelines, and a few functions.

What it does not know is an error, so a chart that goes further is noticed. It is no `helm lint`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

_ACTION = re.compile(r"(\{\{-?)\s*(.*?)\s*(-?\}\})", re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+|\$[\w]*(?:\.\w+)*|\.[\w.]*|\w+|[()|]|:=|,')


def merge(target: dict[str, Any], *others: Mapping[str, Any]) -> dict[str, Any]:
    """sprig's: what the first has stays."""
    for other in others:
        for key, value in other.items():
            if key not in target:
                target[key] = value
            elif isinstance(target[key], dict) and isinstance(value, Mapping):
                merge(target[key], value)
    return target


def _set(target: dict[str, Any], key: str, value: object) -> dict[str, Any]:
    target[key] = value
    return target


def _fail(text: str) -> None:
    raise ValueError(text)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "dict": lambda *parts: dict(zip(parts[::2], parts[1::2], strict=True)),
    "set": _set,
    "merge": merge,
    "printf": lambda form, *args: form % args,
    "default": lambda fallback, value: value or fallback,
    "quote": lambda value: json.dumps(value if isinstance(value, str) else json.dumps(value)),
    "print": lambda *parts: "".join(map(str, parts)),
    "int": int,
    "gt": lambda a, b: a > b,
    "not": lambda value: not value,
    "and": lambda *values: next((v for v in values if not v), values[-1]),
    "toYaml": lambda value: yaml.safe_dump(value, sort_keys=True).rstrip("\n"),
    "toJson": lambda value: json.dumps(value, sort_keys=True, separators=(",", ":")),
    "indent": lambda by, text: "\n".join(" " * by + line for line in text.split("\n")),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "fail": _fail,
}


class Chart:
    """A chart of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about = yaml.safe_load((folder / "Chart.yaml").read_text())
        self.values = yaml.safe_load((folder / "values.yaml").read_text())

    def objects(self, values: Mapping[str, Any], *, name: str = "gate", revision: int = 3) -> list[dict[str, Any]]:
        """What it stands for with these values, by file and place."""
        merged = merge(json.loads(json.dumps(values)), json.loads(json.dumps(self.values)))
        root = {
            "Values": merged,
            "Release": {"Name": name, "Revision": revision},
            "Chart": {"AppVersion": self.about["appVersion"]},
            "Template": {"BasePath": "templates"},
        }
        files = sorted((self.folder / "templates").glob("*.yaml"))
        texts = [Template(self, path.read_text(), root).text() for path in files]
        return [found for text in texts for found in yaml.safe_load_all(text) if found]


class Template:
    def __init__(self, chart: Chart, source: str, root: Mapping[str, Any]) -> None:
        self.chart, self.root = chart, root
        self.parts: list[str] = []
        rest = 0
        for match in _ACTION.finditer(source):
            before = source[rest : match.start()]
            self.parts += [before.rstrip() if match[1] == "{{-" else before, match[2]]
            rest = match.end()
            if match[3] == "-}}":
                rest += len(source[rest:]) - len(source[rest:].lstrip())
        self.parts.append(source[rest:])
        self.variables: dict[str, Any] = {"$": root}

    def text(self) -> str:
        out: list[str] = []
        end = self._block(0, self.root, out)
        assert end == len(self.parts), self.parts[end]
        return "".join(out)

    def _block(self, at: int, dot: Any, out: list[str] | None) -> int:
        """Writes from a text on, up to an action that ends the block; None writes nothing."""
        while True:
            if out is not None:
                out.append(self.parts[at])
            if at + 1 >= len(self.parts):
                return len(self.parts)
            action = self.parts[at + 1]
            word = action.split()[0]
            if word in ("end", "else"):
                return at + 1
            if word in ("if", "with", "range"):
                at = self._branch(word, action[len(word) :], at + 2, dot, out)
            else:
                if out is not None:
                    out.append(self._said(action, dot))
                at += 2

    def _branch(self, word: str, condition: str, at: int, dot: Any, out: list[str] | None) -> int:
        names, _, expression = condition.rpartition(":=")
        value = self._value(expression, dot) if out is not None else None
        if word == "range":
            names = [name.strip() for name in names.split(",")]  # type: ignore[assignment]
            end = self._block(at, dot, None)
            for pair in sorted((value or {}).items()):
                self.variables |= dict(zip(names, pair, strict=True))
                self._block(at, dot, out)
        else:
            inner = value if word == "with" else dot
            end = self._block(at, inner, out if value else None)
            if self.parts[end] == "else":
                end = self._block(end + 1, dot, out if not value else None)
        assert self.parts[end] == "end"
        return end + 1

    def _said(self, action: str, dot: Any) -> str:
        name, is_set, expression = action.partition(":=")
        if is_set:
            self.variables[name.strip()] = self._value(expression, dot)
            return ""
        value = self._value(action, dot)
        return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)

    def _value(self, expression: str, dot: Any) -> Any:
        assert _TOKEN.sub("", expression).strip() == "", expression
        value, rest = self._pipeline(_TOKEN.findall(expression), dot)
        assert not rest, expression
        return value

    def _pipeline(self, tokens: list[str], dot: Any) -> tuple[Any, list[str]]:
        value, tokens = self._command(tokens, dot, ())
        while tokens and tokens[0] == "|":
            value, tokens = self._command(tokens[1:], dot, (value,))
        return value, tokens

    def _command(self, tokens: list[str], dot: Any, last: tuple[Any, ...]) -> tuple[Any, list[str]]:
        terms: list[Any] = []
        name = tokens[0] if tokens and re.fullmatch(r"[a-zA-Z]\w*", tokens[0]) else ""
        tokens = tokens[1:] if name else tokens
        while tokens and tokens[0] not in ("|", ")"):
            if tokens[0] == "(":
                value, tokens = self._pipeline(tokens[1:], dot)
                assert tokens[0] == ")"
                tokens = tokens[1:]
            else:
                value, tokens = self._term(tokens[0], dot), tokens[1:]
            terms.append(value)
        if name == "include":
            path = self.chart.folder / terms[0]
            return Template(self.chart, path.read_text(), terms[1]).text(), tokens
        if name:
            return FUNCTIONS[name](*terms, *last), tokens
        assert len(terms) == 1
        assert not last
        return terms[0], tokens

    def _term(self, token: str, dot: Any) -> Any:
        if token[0] == '"':
            return json.loads(token)
        if token[0].isdigit():
            return int(token)
        start, *keys = token.split(".")
        value = self.variables[start] if start else dot
        for key in filter(None, keys):
            value = value[key]  # a value that the chart does not have is an error
        return value
