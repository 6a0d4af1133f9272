"""Values that a file names instead of holding: `${env:NAME}`, `${file:PATH}`, `${keyring:SERVICE/NAME}`."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from extgate.discover.reading import UnreadableError, one_line, read_bytes

MAX_SECRET = 64 * 1024
VARIABLE = re.compile(r"\$\{([^{}]*)\}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class NoValueError(Exception):
    """Why there is no value, and the way out."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


def is_secret(name: str) -> bool:
    """Whether what stands in `${…}` names a file or a keyring."""
    return name.startswith(("file:", "keyring:"))


def secret(name: str, directory: Path) -> str:
    """The text of a file, without the line's end at its end, or of a keyring. directory: where relative paths begin.

    Raises NoValueError; no message holds anything of the value.
    """
    kind, _, where = name.partition(":")
    text = _of_file(where, directory) if kind == "file" else _of_keyring(where)
    if not text or any(char in text for char in "\0\r\n"):
        raise NoValueError(f"`${{{name}}}` holds no single line of text")
    return text


def fill(text: str, environ: Mapping[str, str], directory: Path) -> str:
    """A text of the operator's with its variables and secrets filled in. Raises NoValueError."""

    def value(match: re.Match[str]) -> str:
        name = match[1].removeprefix("env:")
        if is_secret(match[1]):
            return secret(match[1], directory)
        if not NAME.fullmatch(name) or not environ.get(name):
            raise NoValueError(f"the variable `{name[:60]}` is not set")
        return environ[name]

    return VARIABLE.sub(value, text)


def _of_file(where: str, directory: Path) -> str:
    path = directory / os.path.expanduser(where)
    if not where or "\0" in where:
        raise NoValueError("`${file:}` names no file", "write `${file:PATH}`")
    try:
        data = read_bytes(path, MAX_SECRET)
        return data.decode().removesuffix("\n").removesuffix("\r")
    except UnreadableError as error:
        raise NoValueError(f"the file `{one_line(where)}` {error}") from None
    except UnicodeDecodeError:
        raise NoValueError(f"the file `{one_line(where)}` is not UTF-8") from None


def _of_keyring(where: str) -> str:
    service, _, name = where.rpartition("/")
    if not service or not name:
        raise NoValueError(f"`{one_line(where)}` names no entry of a keyring", "write `${keyring:SERVICE/NAME}`")
    try:
        keyring = importlib.import_module("keyring")
        errors = importlib.import_module("keyring.errors").KeyringError
    except ImportError:
        raise NoValueError("the package `keyring` is not installed", "install extgate[keyring]") from None
    try:
        found = keyring.get_password(service, name)
    except (errors, OSError, RuntimeError) as error:
        raise NoValueError(f"the keyring cannot be asked ({type(error).__name__})") from None
    if not isinstance(found, str):
        raise NoValueError(f"the keyring has no `{one_line(where)}`")
    return found
