"""Bounds on what one server may do while it is asked, and what is remembered to explain a failure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from extgate.discover.reading import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of everything a server may send in one probe; more is a failure, never a shorter list."""

    message_bytes: int = 4 * 1024 * 1024
    total_bytes: int = 32 * 1024 * 1024
    messages: int = 10_000
    items: int = 10_000
    pages: int = 1_000
    noise_lines: int = 200
    concurrent: int = 8
    grace_s: float = 2.0
    """How long a server may take to end, before SIGTERM and again before SIGKILL."""
    cache_age_s: float = 24 * 3600.0


class ServerError(Exception):
    """Why a server failed, in one line."""


class _Scope(Protocol):
    deadline: float

    def cancel(self) -> object: ...


@dataclass(kw_only=True)
class Watch:
    """One probe of one server. `fail` ends it at once, from wherever the bound was broken.

    phase: the request that waits for its answer. is_lost: the server hung up by itself. ended: how its process ended.
    """

    limits: Limits
    secrets: tuple[str, ...] = ()
    scope: _Scope | None = None
    reason: str | None = None
    phase: str = "initialize"
    is_lost: bool = False
    noise: int = 0
    first_noise: str = ""
    ended: str = ""
    _bytes: int = 0
    _messages: int = 0
    _stderr: bytes = field(default=b"", repr=False)

    def fail(self, reason: str) -> None:
        """Ends the probe; the first reason is the one that is told."""
        self.reason = self.reason or reason
        if self.scope is not None:
            self.scope.cancel()

    def count(self, size: int) -> bool:
        """Counts received bytes; False, and the end of the probe, when they are too many."""
        self._bytes += size
        if self._bytes > self.limits.total_bytes:
            self.fail(f"sent more than {self.limits.total_bytes:,} bytes")
        return self.reason is None

    def count_message(self) -> None:
        """Counts a message, so that a flood of small ones is bounded as well."""
        self._messages += 1
        if self._messages > self.limits.messages:
            self.fail(f"sent more than {self.limits.messages:,} messages")

    def hear_noise(self, line: bytes) -> None:
        """A line on stdout that is no message: some servers print a banner, none may go on and on."""
        self.noise += 1
        self.first_noise = self.first_noise or line[:400].decode("utf-8", "replace")
        if self.noise > self.limits.noise_lines:
            self.fail(f"prints text that is no message, such as `{self.show(self.first_noise, 60)}`")

    def hear_stderr(self, data: bytes) -> None:
        """Keeps the last 8 KiB of what a server logs."""
        self._stderr = (self._stderr + data)[-8192:]

    def explain(self, reason: str) -> str:
        """The reason on one line, with how the process ended and the last lines that it logged."""
        lines = [line for line in self._stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        logged = self.show(" / ".join(lines[-3:])[-600:], 240)
        parts = [self.show(reason), self.ended, f"it logged: {logged}" if logged else ""]
        return "; ".join(filter(None, parts))

    def show(self, text: str, limit: int = 300) -> str:
        """The text on one line without its secrets."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            if len(secret) >= 8:
                text = text.replace(secret, "***")
        return one_line(text, limit)


_INHERITED = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TMP", "TEMP", "TZ", "LANG", "LANGUAGE"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "XDG_RUNTIME_DIR"}
    | {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"}
)
"""What a server gets of the user's environment, besides `LC_*`: where things are, and no secret."""


def server_environment(environ: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """A stdio server's environment: the few inherited names, then its own.

    Folders of `PATH` that are not absolute are left out, so that a project cannot put a program before the real one.
    Shell functions (values that start with `()`) are not passed on, as in the SDK.
    """
    inherited = {
        name: value
        for name, value in environ.items()
        if (name in _INHERITED or name.startswith("LC_")) and not value.startswith("()")
    }
    if "PATH" in inherited:
        folders = inherited["PATH"].split(os.pathsep)
        inherited["PATH"] = os.pathsep.join(folder for folder in folders if os.path.isabs(folder))
    return inherited | dict(own)
