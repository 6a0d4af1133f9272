"""Ways around a deny that were tried once: each kind, so that none comes back."""

from __future__ import annotations

import json

import pytest

from extgate import (
    DialectError,
    Document,
    DocumentError,
    Extension,
    Inventory,
    PatternError,
    Profile,
    Server,
    gate,
    inherit,
    match_any,
    read_agent,
)
from extgate.core.explain import Decider
from extgate.discover.inventory_file import load_inventory
from extgate.enforce.gate import Gate
from extgate.errors import DiscoveryError

BASH = Extension(kind="tool", name="bash", source="builtin")


def profile(text: str, path: str = "a.yaml", id_: str = "a") -> Profile:
    return Profile(id=id_, layers=(read_agent(Document(path=path, text=text)),))


@pytest.mark.parametrize(
    "text",
    [
        'tools:\n  patterns:\n  - "impl:*:nothing"\n  - ! impl:*:bash\n',
        "tools:\n  allowed: [read, ! bash]\n",
        "tools: ! {disabled: [bash]}\n",
        'x: !!int ""\n', 'x: !!int "-"\n', 'x: !!float ""\n', "x: !!float _\n", 'x: !!bool ""\n', "x: !!null z\n",
    ],
)  # fmt: skip
def test_a_tag_is_an_error_and_never_loses_a_mark(text: str) -> None:
    if "!!null" in text:
        assert read_agent(Document(path="a.yaml", text=text)).facts == {"x": None}
        return
    with pytest.raises(DocumentError):
        read_agent(Document(path="a.yaml", text=text))


@pytest.mark.parametrize("mode", ["ceiling", "own", "union"])
def test_a_child_whose_profile_cannot_be_read_has_nothing(mode: str) -> None:
    parent = profile("tools: {}")
    child = inherit(parent, Profile(id="kid"), mode=mode)  # type: ignore[arg-type]
    assert Decider(child, Inventory(extensions=(BASH,))).decisions[0].effect == "deny"
    below = inherit(child, profile("tools: {}", id_="grandchild"), mode="own")
    assert below.layers


@pytest.mark.parametrize(
    "extra",
    [
        'resources: {disabled: ["*"]}', 'prompts: {disabled: ["*"]}', "disabled: [bash]", 'patterns: ["!impl:*:bash"]',
        'mcp: ["!gh"]', 'mcp: {disabled: ["*"]}', "subagents: {disabled: [x]}", "mpc: {disabled: [x]}",
    ],
)  # fmt: skip
def test_the_patterns_dialect_takes_no_block_of_the_other(extra: str) -> None:
    with pytest.raises(DialectError):
        profile(f'tools: {{patterns: ["*:*:*"]}}\n{extra}\n', ".msagent/agents/a.yml")


@pytest.mark.parametrize("key", ["tооls", "mср", "ѕkіlls", "ｔｏｏｌｓ", "TOOLS", "tools.disabled", "t00ls"])
def test_a_block_that_only_looks_right_is_an_error(key: str) -> None:
    with pytest.raises(DialectError, match="misspelt"):
        profile(json.dumps({key: {"disabled": ["*"]}}), "a.json")


def test_a_string_of_a_list_outside_its_block_is_an_error() -> None:
    with pytest.raises(DialectError):
        profile("disabled: bash\n")


def test_items_that_share_a_name_keep_their_own_spellings() -> None:
    okay = Extension(kind="skill", name="x", source="p", declared_name="okay")
    secret = Extension(kind="skill", name="x", source="p", declared_name="secret")
    decider = Decider(profile("skills: {disabled: [secret]}"), Inventory(extensions=(okay, secret)))
    assert [decider.decide(e).effect for e in (okay, secret)] == ["allow", "deny"]


DENIED = ["w/https://h/secret*", "w/file:///etc/*"]


@pytest.mark.parametrize(
    "uri",
    [
        "HTTPS://h/secret", "https://H/secret", "https:h/secret", "https:/h/secret", "https://h\\secret",
        "https://h:443/secret", "https://u@h/secret", "https://h/a/../secret", "https:////h/secret", "FILE:///etc/x",
        "file:/etc/x", "file://localhost/etc/x", " file:///etc/x", "file:///a/..\\etc/x", "file:///etc\\passwd", "file:////etc/passwd",
        "fi\tle:///etc/x", "file:///%2565tc/x",
    ],
)  # fmt: skip
def test_a_uri_that_a_server_reads_as_a_denied_one_is_denied(uri: str) -> None:
    template = Extension(kind="mcp_resource", server="w", name="{+u}", facts={"template": True})
    stock = Inventory(extensions=(template,), servers=(Server(name="w"),))
    decider = Decider(profile(json.dumps({"resources": {"disabled": DENIED}}), "a.json"), stock)
    assert decider.decide_uri("w", uri).effect == "deny"
    assert decider.decide_uri("w", "https://h/open").effect == "allow"


def test_decoding_goes_to_the_fixed_point_however_far_that_is() -> None:
    uri = "file:///%65tc/passwd"
    for _ in range(200):
        uri = uri.replace("%", "%25")
    template = Extension(kind="mcp_resource", server="d", name="{+u}", facts={"template": True})
    stock = Inventory(extensions=(template,), servers=(Server(name="d"),))
    decider = Decider(profile('resources: {disabled: ["d/file:///etc/*"]}'), stock)
    assert decider.decide_uri("d", uri).effect == "deny"


def test_a_declared_name_with_invisible_characters_is_refused() -> None:
    skill = Extension(kind="skill", name="ok", declared_name="devops\u200b")
    assert Decider(profile("skills: {}"), Inventory(extensions=(skill,))).decisions[0].effect == "deny"


@pytest.mark.parametrize("kind", ["Tool", "plugin", ""])
def test_a_kind_that_no_row_knows_is_refused(kind: str) -> None:
    assert not Gate(profile("tools: {}"), Inventory(), door="t").use(Extension(kind=kind, name="bash"))


def test_numbers_without_end_and_names_that_are_no_text_are_errors_of_their_own() -> None:
    with pytest.raises(DiscoveryError):
        load_inventory('{"x": ' + "9" * 120_000 + "}", "i.json")
    for name in (b"bash", 5):
        with pytest.raises(PatternError):
            gate(name=name, disabled=["x"])  # type: ignore[arg-type]
        with pytest.raises(PatternError):
            match_any(name, ["x"])  # type: ignore[arg-type]
