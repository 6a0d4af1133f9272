"""What a hook's payload may be; anything that could be read in two ways is refused."""

from __future__ import annotations

import json

import pytest

from extgate.enforce.hooks.reading import MAX_PAYLOAD, PayloadError, mapping, parse, text
from extgate.enforce.hooks.registry import HOOKS


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"{",
        b'{"a": 1} {"b": 2}',
        b'{"tool_name": "Read", "tool_name": "Bash"}',
        b'{"tool_input": {"command": "ls", "command": "rm"}}',
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a": ' + b"9" * 5000 + b"}",
        '{"tool_name": "Read"}'.encode("utf-16"),
        b'{"a": "\xff"}',
        b'{"a": "\xed\xa0\x80"}',
        b'\xef\xbb\xbf{"a": 1}',
    ],
    ids=lambda data: repr(data[:24]),
)
def test_a_payload_that_is_not_one_mapping_of_plain_json_is_refused(data: bytes) -> None:
    with pytest.raises(PayloadError):
        parse(data)


def test_a_payload_past_the_bound_is_refused_before_it_is_read() -> None:
    with pytest.raises(PayloadError, match="longer"):
        parse(b"{" * (MAX_PAYLOAD + 1))


def test_a_payload_of_any_text_is_read_as_it_is() -> None:
    assert parse(json.dumps({"a": "\ud800 é"}).encode()) == {"a": "\ud800 é"}


@pytest.mark.parametrize("value", [1, ["Bash"], {"name": "Bash"}, True, 1.5])
def test_a_name_that_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(PayloadError):
        text({"tool_name": value}, "tool_name")
    with pytest.raises(PayloadError):
        mapping({"tool_input": "x"}, "tool_input")


@pytest.mark.parametrize("runtime", list(HOOKS))
@pytest.mark.parametrize("payload", [{}, {"tool_name": "", "tool": ""}, {"tool_name": "Bash", "tool": "bash"}])
def test_a_call_without_a_name_or_arguments_is_refused(runtime: str, payload: dict[str, object]) -> None:
    with pytest.raises(PayloadError):
        HOOKS[runtime].read(payload)
