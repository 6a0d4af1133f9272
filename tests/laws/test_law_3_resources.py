"""Law 3: what reading a resource asks of the gate, whatever is listed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from extgate import Decider, Document, Profile, read_agent
from extgate.discover.inventory_file import load_inventory
from tests.build import inventory, server
from tests.dialects.requirement import requirement


def decider(profile: Any, *uris: str, templates: tuple[str, ...] = ()) -> Decider:
    """One agent over a server `fs` that lists these resources and templates."""
    fs = server("fs", resources=uris)
    fs["resources"] += [{"uriTemplate": template} for template in templates]
    policy = read_agent(Document(path="agents/a.json", text=json.dumps(profile)))
    return Decider(Profile(id="a", layers=(policy,)), load_inventory(json.dumps(inventory(mcp=[fs])), "inventory.json"))


@requirement("profile:uri-read-known")
@pytest.mark.parametrize("uri", ["file:///b", "file:///a/b", "file:///A", "", "file:///a ", "file:///x/../../y"])
def test_a_uri_that_is_neither_listed_nor_covered_by_a_template_is_refused(uri: str) -> None:
    assert decider({}, "file:///a").decide_uri("fs", "file:///a").callable
    assert not decider({}, "file:///a").decide_uri("fs", uri).callable
    assert not decider({}, "file:///a").decide_uri("other", "file:///a").callable


@requirement("profile:uri-read-known")
def test_a_template_covers_what_it_describes() -> None:
    asked = decider({}, templates=("file:///docs/{name}",))
    assert asked.decide_uri("fs", "file:///docs/x").callable
    assert not asked.decide_uri("fs", "file:///etc/x").callable


@requirement("profile:uri-read-forms")
@pytest.mark.parametrize(
    "uri",
    [
        "file:///safe/../secret/k",
        "file:///safe/%2e%2e/secret/k",
        "file:///safe/%252e%252e/secret/k",
        "file:///safe/..%2fsecret/k",
        "file:///%73ecret/k",
    ],
)
@pytest.mark.parametrize("block", ["mcp", "resources"])
def test_a_read_is_judged_in_every_form_of_its_uri(uri: str, block: str) -> None:
    for rules in ({"disabled": ["fs/file:///secret/*"]}, {"allowed": ["fs/file:///safe/*"]}):
        asked = decider({block: rules}, "file:///safe/a", templates=("file:///{+path}",))
        assert asked.decide_uri("fs", "file:///safe/a").callable
        assert not asked.decide_uri("fs", uri).callable


@requirement("profile:uri-read-mcp")
def test_a_server_that_is_denied_reads_nothing() -> None:
    for mcp in ({"disabled": ["fs"]}, {"allowed": ["other"]}):
        assert not decider({"mcp": mcp}, "file:///a").decide_uri("fs", "file:///a").callable


@requirement("profile:uri-read-bad-name")
@pytest.mark.parametrize("uri", ["file:///a\x00", "file:///a\u200b", "file:///a%00", "file:///" + "a" * 100_000])
def test_a_uri_that_nobody_can_read_or_that_never_ends_is_refused(uri: str) -> None:
    assert not decider({}, "file:///a", templates=("file:///{+path}",)).decide_uri("fs", uri).callable


@requirement("profile:uri-read-forms")
@pytest.mark.parametrize(
    "uri",
    [
        "docs://u@secret/k",
        "docs://u:p@SECRET/k",
        "docs://secret:9/k",
        "docs://secret:/k",
        "https://u@\uff53ecret.example/k",
    ],
)
def test_a_host_is_denied_however_it_is_written_around(uri: str) -> None:
    rules = {"mcp": {"disabled": ["fs/docs://secret/*", "fs/https://secret.example/*"]}}
    asked = decider(rules, templates=("docs://{+path}", "https://{+path}"))
    assert asked.decide_uri("fs", "docs://safe/k").callable
    assert asked.decide_uri("fs", "docs://secrets/k").callable
    assert not asked.decide_uri("fs", uri).callable


@requirement("profile:uri-read-forms")
def test_another_port_of_a_web_server_is_another_one() -> None:
    rules = {"mcp": {"disabled": ["fs/http://h/*"]}}
    asked = decider(rules, templates=("http://{+path}",))
    assert asked.decide_uri("fs", "http://h:8080/k").callable
    assert not asked.decide_uri("fs", "http://u@h:80/k").callable
