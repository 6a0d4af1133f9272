"""The inventory file: what is written is read back equal, and what is ill-shaped is an error with a place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extgate.core.extension import KINDS, Extension, Finding, Inventory, Kind, Server
from extgate.discover.builtins import builtin_tools, runtimes
from extgate.discover.inventory_file import dump_inventory, load_inventory
from extgate.errors import DiscoveryError


def load(value: Any) -> Inventory:
    return load_inventory(json.dumps(value, indent=1), "inventory.json")


def again(inventory: Inventory) -> Inventory:
    return load(dump_inventory(inventory))


CONTRACT = {
    "tools": [{"name": "bash", "source": "builtin"}],
    "skills": [
        {"name": "devops/prod-deploy", "category": "devops", "declared_name": "prod-deploy", "source": "project"}
    ],
    "mcp": [
        {
            "server": "slack",
            "state": "connected",
            "tools": [{"name": "send_message"}],
            "resources": [{"uri": "slack://c"}],
            "prompts": [{"name": "sum"}],
        }
    ],
    "subagents": [{"name": "explorer"}],
}


def test_the_contract_s_example_is_read() -> None:
    inventory = load(CONTRACT)
    assert [e.id for e in inventory.extensions] == [
        "tool:bash",
        "skill:devops/prod-deploy",
        "mcp_tool:slack/send_message",
        "mcp_resource:slack/slack://c",
        "mcp_prompt:slack/sum",
        "subagent:explorer",
    ]
    skill = inventory.extensions[1]
    assert (skill.category, skill.declared_name, skill.source) == ("devops", "prod-deploy", "project")
    assert [(s.name, s.state) for s in inventory.servers] == [("slack", "connected")]


def test_a_server_without_state_is_connected() -> None:
    assert load({"mcp": [{"server": "s"}]}).servers == (Server(name="s"),)


@pytest.mark.parametrize("state", ["connected", "configured", "untrusted", "failed", "disabled"])
def test_every_state_is_kept_with_its_error(state: str) -> None:
    (server,) = load({"mcp": [{"server": "s", "state": state, "error": "why"}]}).servers
    assert (server.state, server.error) == (state, "why")


def test_an_empty_object_is_an_empty_inventory() -> None:
    assert load({}) == Inventory()


def test_keys_that_are_not_known_are_tolerated_and_kept() -> None:
    inventory = load({"made_by": "x", "tools": [{"name": "a", "cost": 3}], "mcp": [{"server": "s", "vendor": "v"}]})
    assert inventory.extensions[0].facts == {"cost": 3}
    assert inventory.servers[0].facts == {"vendor": "v"}


@pytest.mark.parametrize("item", [{}, {"name": ""}])
def test_an_item_without_a_name_is_kept_nameless(item: dict[str, str]) -> None:
    inventory = load({"tools": [item], "mcp": [{"server": "s", "tools": [item], "resources": [item]}]})
    assert [(e.kind, e.name) for e in inventory.extensions] == [("tool", ""), ("mcp_tool", ""), ("mcp_resource", "")]


@pytest.mark.parametrize("row", [{}, {"server": ""}])
def test_a_server_without_a_name_is_kept_nameless_with_its_items(row: dict[str, str]) -> None:
    inventory = load({"mcp": [{**row, "tools": [{"name": "t"}]}]})
    assert ([s.name for s in inventory.servers], [e.id for e in inventory.extensions]) == ([""], ["mcp_tool:/t"])
    assert again(inventory) == inventory


def test_a_template_is_named_by_its_template() -> None:
    rows = [{"uriTemplate": "memo://{k}", "name": "memo"}, {"uri": "memo://a", "name": "a", "title": "A"}]
    plain, template = load({"mcp": [{"server": "s", "resources": rows}]}).extensions
    assert (template.name, template.facts) == ("memo://{k}", {"title": "memo", "template": True})
    assert (plain.name, plain.facts) == ("memo://a", {"title": "A"})


def test_a_server_s_own_answer_can_be_pasted_in() -> None:
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {}, "annotations": {"readOnlyHint": True}}
    (found,) = load({"mcp": [{"server": "s", "source": "plugin:p", "tools": [tool]}]}).extensions
    assert found.facts == {"schema": {"type": "object"}, "output_schema": {}, "annotations": {"readOnlyHint": True}}
    assert found.source == "plugin:p"


WRONG: list[tuple[Any, str]] = [
    ([], "the file"),
    ("x", "the file"),
    ({"tools": {}}, "`tools`"),
    ({"tools": None}, "`tools`"),
    ({"tools": ["bash"]}, "`tools`"),
    ({"tools": [{"name": 1}]}, "`name`"),
    ({"tools": [{"name": None}]}, "`name`"),
    ({"tools": [{"name": ["a"]}]}, "`name`"),
    ({"tools": [{"name": "a", "source": []}]}, "`source`"),
    ({"tools": [{"name": "a", "schema": []}]}, "`schema`"),
    ({"tools": [{"name": "a", "read_only": "yes"}]}, "`read_only`"),
    ({"tools": [{"name": "a", "facts": 1}]}, "`facts`"),
    ({"skills": [{"name": "a", "category": 3}]}, "`category`"),
    ({"skills": [{"name": "a", "allowed_tools": "Read"}]}, "`allowed_tools`"),
    ({"skills": [{"name": "a", "allowed_tools": [1]}]}, "`allowed_tools`"),
    ({"skills": [{"name": "a", "folder": 1}]}, "`folder`"),
    ({"mcp": {}}, "`mcp`"),
    ({"mcp": ["slack"]}, "`mcp`"),
    ({"mcp": [{"server": 3}]}, "`server`"),
    ({"mcp": [{"server": "s"}, {"server": "s"}]}, "stands twice"),
    ({"mcp": [{"server": "s", "state": "up"}]}, "`state`"),
    ({"mcp": [{"server": "s", "state": None}]}, "`state`"),
    ({"mcp": [{"server": "s", "state": True}]}, "`state`"),
    ({"mcp": [{"server": "s", "tools": "x"}]}, "`tools`"),
    ({"mcp": [{"server": "s", "resources": [{"uri": 1}]}]}, "`uri`"),
    ({"mcp": [{"server": "s", "resources": [{"uriTemplate": None}]}]}, "`uriTemplate`"),
    ({"subagents": [3]}, "`subagents`"),
    ({"problems": [{"code": "EG1"}]}, "`problems`"),
    ({"problems": [{"code": "EG1", "message": "m", "line": "3"}]}, "`problems`"),
]


@pytest.mark.parametrize(("value", "what"), WRONG)
def test_a_wrong_type_is_an_error_with_a_place(value: Any, what: str) -> None:
    with pytest.raises(DiscoveryError) as caught:
        load(value)
    assert what in caught.value.message
    assert caught.value.file == "inventory.json"
    assert caught.value.line


def test_the_error_names_the_line() -> None:
    with pytest.raises(DiscoveryError) as caught:
        load_inventory('{"tools": [\n {"name": "a"},\n {"name": 7}]}', "i.json")
    assert str(caught.value) == "i.json:3: `tools`: `name`: expected a text, got `7`"


@pytest.mark.parametrize("text", ["", "{", '{"tools": [}', '{"tools": [], "tools": []}', "[" * 5000])
def test_text_that_is_no_json_is_an_error(text: str) -> None:
    with pytest.raises(DiscoveryError):
        load_inventory(text, "inventory.json")


def test_every_builtin_tool_comes_back() -> None:
    for runtime in runtimes():
        inventory = Inventory(extensions=builtin_tools(runtime))
        assert again(inventory) == inventory


def test_items_of_a_server_that_is_not_listed_do_not_make_it_connected() -> None:
    tool = Extension(kind="mcp_tool", name="t", server="ghost", source="project")
    found = again(Inventory(extensions=(tool,)))
    assert found.extensions == (tool,)
    assert found.servers == (Server(name="ghost", state="configured"),)


@pytest.mark.parametrize(
    "ext",
    [
        Extension(kind="mcp_tool", name="t"),
        Extension(kind="tool", name="t", server="s"),
        Extension(kind="spell", name="t"),
    ],
)
def test_an_item_of_no_fitting_kind_is_not_written(ext: Extension) -> None:
    with pytest.raises(DiscoveryError, match="of no kind"):
        dump_inventory(Inventory(extensions=(ext,), servers=(Server(name="s"),)))


def test_a_new_kind_needs_one_row_and_nothing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "command", Kind(name="command", block="commands", key="commands"))
    monkeypatch.setitem(KINDS, "mcp_hook", Kind(name="mcp_hook", block="hooks", key="hooks", is_mcp=True))
    value = {"commands": [{"name": "deploy"}], "mcp": [{"server": "s", "hooks": [{"name": "h"}]}]}
    inventory = load(value)
    assert [e.id for e in inventory.extensions] == ["command:deploy", "mcp_hook:s/h"]
    assert again(inventory) == inventory
    assert dump_inventory(inventory)["commands"] == [{"name": "deploy", "source": ""}]


TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=8)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
FREE = st.dictionaries(
    st.sampled_from(["cost", "name", "uri", "uriTemplate", "source", "facts", "inputSchema", "server", "tools"]),
    JSON_VALUES,
    max_size=3,
)
KNOWN = st.fixed_dictionaries(
    {},
    optional={
        "schema": st.dictionaries(TEXT, JSON_VALUES, max_size=2),
        "annotations": st.dictionaries(TEXT, JSON_VALUES, max_size=2),
        "allowed_tools": st.none() | st.lists(TEXT, max_size=2).map(tuple),
        "aliases": st.lists(TEXT, max_size=2).map(tuple),
        "folder": TEXT,
        "title": TEXT,
        "disable_model_invocation": st.booleans(),
    },
)
FACTS = st.builds(lambda free, known: {**free, **known}, FREE, KNOWN)
MAYBE = st.none() | TEXT


@st.composite
def extensions(draw: st.DrawFn) -> Extension:
    kind = draw(st.sampled_from([*KINDS.values()]))
    facts = draw(FACTS)
    if kind.name == "mcp_resource" and draw(st.booleans()):
        facts["template"] = True
    return Extension(
        kind=kind.name,
        name=draw(TEXT),
        server=draw(st.sampled_from(["a", "b"])) if kind.is_mcp else None,
        source=draw(TEXT),
        category=draw(MAYBE),
        declared_name=draw(MAYBE),
        description=draw(TEXT),
        file=draw(MAYBE),
        digest=draw(MAYBE),
        facts=facts,
    )


SERVERS = st.tuples(
    *(
        st.builds(
            Server,
            name=st.just(name),
            state=st.sampled_from(["connected", "configured", "untrusted", "failed", "disabled"]),
            error=MAYBE,
            instructions=TEXT,
            source=TEXT,
            facts=FREE,
        )
        for name in "ab"
    )
)
FINDINGS = st.builds(
    Finding,
    code=st.just("EG201"),
    message=TEXT,
    file=MAYBE,
    line=st.none() | st.integers(1, 99),
    fix=TEXT,
    severity=st.sampled_from(["error", "warning", "info"]),
)
INVENTORIES = st.builds(
    Inventory,
    extensions=st.lists(extensions(), max_size=5).map(tuple),
    servers=SERVERS,
    problems=st.lists(FINDINGS, max_size=2).map(tuple),
)


@given(INVENTORIES)
def test_what_is_written_is_read_back_equal(inventory: Inventory) -> None:
    found = again(inventory)
    assert found == inventory
    assert found.version == inventory.version
    assert json.dumps(dump_inventory(found)) == json.dumps(dump_inventory(inventory))


@given(st.dictionaries(st.sampled_from(["tools", "skills", "mcp", "subagents", "problems"]), JSON_VALUES))
def test_any_json_is_an_inventory_or_an_error(value: dict[str, Any]) -> None:
    try:
        inventory = load(value)
    except DiscoveryError:
        return
    assert again(inventory) == inventory
