"""Secrets that a server's entry names: where they may stand, what is shown of them, and what is not read."""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from extgate.discover.references import MAX_SECRET, NoValueError, fill
from extgate.discover.server_config import ServerSpec, read_servers


def spec(tmp_path: Path, **entry: Any) -> ServerSpec:
    text = json.dumps({"mcpServers": {"web": entry}})
    (found,), _ = read_servers(
        text, str(tmp_path / ".mcp.json"), directory=tmp_path, environ={"HOME": "/root", "TOKEN": "env-token"}
    )
    return found


@pytest.fixture
def ring() -> Iterator[dict[tuple[str, str], str]]:
    """A keyring in memory, behind the library's own interface."""
    kept: dict[tuple[str, str], str] = {}

    class Ring(KeyringBackend):
        priority = 1  # type: ignore[assignment]

        def get_password(self, service: str, username: str) -> str | None:
            return kept.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            kept[(service, username)] = password

    before = keyring.get_keyring()
    keyring.set_keyring(Ring())
    yield kept
    keyring.set_keyring(before)


def test_a_header_is_filled_from_environment_file_and_keyring(tmp_path: Path, ring: dict[tuple[str, str], str]) -> None:
    (tmp_path / "token").write_text("file-token\n")
    ring[("mcp/servers", "web")] = "ring-token"
    text = "Bearer ${env:TOKEN} ${file:token} ${keyring:mcp/servers/web}"
    found = spec(tmp_path, url="https://x.example/mcp", headers={"Authorization": text})
    assert found.headers == {"Authorization": "Bearer env-token file-token ring-token"}
    assert {"file-token", "ring-token", "env-token"} <= set(found.secrets)
    assert "token" not in repr(found).replace("file:token", "").replace("keyring", "")
    assert found.shown == "https://x.example/mcp (is given file:token, keyring:mcp/servers/web)"


def test_a_new_secret_is_no_new_server_and_another_file_is(tmp_path: Path) -> None:
    def digest(name: str, value: str) -> str:
        (tmp_path / name).write_text(value)
        return spec(tmp_path, command="x", env={"KEY": f"${{file:{name}}}"}).digest

    assert digest("one", "first") == digest("one", "second")
    assert digest("one", "first") != digest("two", "first")


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "${file:token}"},
        {"command": "x", "args": ["--token", "${file:token}"]},
        {"command": "x", "cwd": "${file:token}"},
        {"url": "https://x.example/?t=${file:token}"},
        {"url": "https://x.example/?t=${keyring:a/b}"},
    ],
)
def test_a_secret_stands_nowhere_that_others_can_see(tmp_path: Path, entry: dict[str, Any]) -> None:
    (tmp_path / "token").write_text("file-token")
    found = spec(tmp_path, **entry)
    assert found.error is not None
    assert "cannot stand here" in found.error
    assert "file-token" not in str(found)


def test_what_is_no_single_line_of_text_in_a_small_file_fails_its_server_alone(tmp_path: Path) -> None:
    files: dict[str, bytes] = {
        "empty": b"",
        "two": b"a\nb: c",
        "return": b"a\r\nx: y",
        "nul": b"a\0b",
        "latin": b"\xff",
    }
    files |= {"big": b"x" * (MAX_SECRET + 1)}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    os.mkfifo(tmp_path / "pipe")
    for name in (*files, "pipe", "missing", ".", ""):
        found = spec(tmp_path, url="https://x.example/mcp", headers={"X": f"${{file:{name}}}"})
        assert found.error, name
        assert not found.headers


@pytest.mark.parametrize("where", ["nothing", "a/", "/b", "a/unknown"])
def test_an_entry_that_the_keyring_has_not_is_an_error(
    tmp_path: Path, ring: dict[tuple[str, str], str], where: str
) -> None:
    found = spec(tmp_path, command="x", env={"KEY": f"${{keyring:{where}}}"})
    assert found.error


def test_a_keyring_that_is_not_installed_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)  # type: ignore[arg-type]
    with pytest.raises(NoValueError) as error:
        fill("${keyring:a/b}", {}, tmp_path)
    assert error.value.fix == "install extgate[keyring]"


def test_a_keyring_that_cannot_be_asked_fails_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(service: str, name: str) -> str:
        raise KeyringLocked("with details")

    monkeypatch.setitem(sys.modules, "keyring", types.SimpleNamespace(get_password=locked))
    with pytest.raises(NoValueError, match="cannot be asked") as error:
        fill("${keyring:a/b}", {}, tmp_path)
    assert "details" not in str(error.value)


def test_a_secret_of_the_environment_that_would_split_a_header_is_refused(tmp_path: Path) -> None:
    text = json.dumps({"mcpServers": {"web": {"url": "https://x.example", "headers": {"X": "${T}"}}}})
    (found,), _ = read_servers(text, ".mcp.json", directory=tmp_path, environ={"T": "a\r\nhost: evil"})
    assert found.error
    assert not found.headers
