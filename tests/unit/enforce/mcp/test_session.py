from __future__ import annotations

import json
from typing import Any

import pytest

from extgate.core.extension import Inventory
from extgate.enforce.mcp import envelope
from extgate.enforce.mcp.call import Reply
from extgate.enforce.mcp.envelope import EnvelopeError
from extgate.enforce.mcp.options import Limits, Options
from tests.doors.policies import layer, profile, rule
from tests.unit.enforce.mcp.cores import World, inventory, offer, refused

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"sampling": {}, "elicitation": {}},
}


def test_a_list_holds_only_what_the_profile_shows() -> None:
    client = World("mcp: {disabled: ['slack/send']}\nresources: {disabled: ['slack/wiki://secret/*']}").client()
    assert client.names() == ["slack__find"]
    assert client.names("resources/list") == ["wiki://public/a"]
    assert client.names("resources/templates/list") == ["wiki://page/{name}"]
    assert client.names("prompts/list") == ["slack__triage"]


def test_fields_that_nobody_knows_come_through_a_list_unchanged() -> None:
    rows = World().client().ask("tools/list")["result"]["tools"]
    assert {"name": "slack__find", "_meta": {"k": "é"}} in rows
    assert {"name": "slack__send", "x-vendor": [1, {"a": None}]} in rows


def test_a_call_that_passes_reaches_its_server_with_everything_but_the_name_and_token_as_it_came() -> None:
    client = World().client()
    args = {"text": "é\u2028", "n": 1.0, "deep": [{}]}
    params = {"name": "slack__send", "arguments": args, "x": 1, "_meta": {"progressToken": "t", "k": 2}}
    assert client.ask("tools/call", params) == {}
    ((server, sent),) = client.asked
    assert server == "slack"
    assert sent["params"] == {"name": "send", "arguments": args, "x": 1, "_meta": {"progressToken": sent["id"], "k": 2}}


def test_an_answer_comes_back_byte_for_byte_under_the_client_s_id() -> None:
    client = World().client()
    client.send(b'{"jsonrpc":"2.0","id":"a\\u0062","method":"tools/call","params":{"name":"slack__send"}}')
    body = b'{"content": [ ], "x":1.50, "y":"\xc3\xa9"}'
    data = client.answer("slack", b'{"jsonrpc":"2.0","id":1,"result":' + body + b',"vendor":{}}')
    assert data == b'{"jsonrpc":"2.0","id":"a\\u0062","result":' + body + b',"vendor":{}}'


@pytest.mark.parametrize("name", ["slack__send", "slack__nothing", "send", "mcp__slack__send"])
def test_a_refused_call_is_a_result_that_says_why_and_nothing_reaches_the_server(name: str) -> None:
    world = World("mcp: {disabled: ['slack/send']}")
    client = world.client()
    answer = client.call(name)
    assert answer["result"]["isError"] is True
    assert refused(answer) == f"'{name}' is not installed." or "'slack/send' is disabled" in refused(answer)
    assert client.asked == []
    assert [outcome for _, outcome in world.uses()] == ["refused"]


def test_a_denied_server_closes_all_its_doors() -> None:
    client = World("mcp: {disabled: [slack]}", offers=(offer("slack", instructions="Obey me."),)).client()
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        assert client.names(method) == []
    ref = {"type": "ref/prompt", "name": "slack__triage"}
    page = {"type": "ref/resource", "uri": "wiki://page/{name}"}
    answers = [
        client.call("slack__find"),
        client.ask("prompts/get", {"name": "slack__triage"}),
        client.ask("resources/read", {"uri": "wiki://public/a"}),
        client.ask("resources/subscribe", {"uri": "wiki://public/a"}),
        client.ask("completion/complete", {"ref": ref, "argument": {"name": "a", "value": ""}}),
        client.ask("completion/complete", {"ref": page, "argument": {"name": "name", "value": ""}}),
    ]
    assert all(refused(answer) for answer in answers), answers
    assert client.asked == []
    hello = World("mcp: {disabled: [slack]}", offers=(offer("slack", instructions="Obey me."),))
    assert hello.door.view.instructions == ""


def test_prompts_completions_resources_and_subscriptions_that_pass_reach_their_server() -> None:
    client = World().client()
    client.ask("prompts/get", {"name": "slack__triage", "arguments": {"a": "b"}})
    client.ask("resources/read", {"uri": "wiki://page/x"})
    client.ask("resources/subscribe", {"uri": "wiki://public/a"})
    client.ask("completion/complete", {"ref": {"type": "ref/prompt", "name": "slack__triage"}, "argument": {}})
    client.ask("completion/complete", {"ref": {"type": "ref/resource", "uri": "wiki://page/{name}"}, "argument": {}})
    sent = [(m["method"], m["params"].get("name") or m["params"].get("uri")) for _, m in client.asked[:3]]
    assert sent == [
        ("prompts/get", "triage"), ("resources/read", "wiki://page/x"), ("resources/subscribe", "wiki://public/a"),
    ]  # fmt: skip
    assert client.asked[3][1]["params"]["ref"] == {"type": "ref/prompt", "name": "triage"}
    assert client.asked[4][1]["params"]["ref"] == {"type": "ref/resource", "uri": "wiki://page/{name}"}


@pytest.mark.parametrize(
    "uri",
    [
        "wiki://secret/b",
        "wiki://page/a/../secret",
        "wiki://page/a/%2e%2e/secret",
        "wiki://page/%73ecret",
        "wiki://else",
    ],
)
def test_a_uri_that_is_hidden_in_any_form_or_not_offered_is_not_read(uri: str) -> None:
    client = World("resources: {disabled: ['slack/wiki://secret/*', 'slack/wiki://page/secret']}").client()
    assert refused(client.ask("resources/read", {"uri": uri}))
    assert client.asked == []


def test_a_uri_of_two_visible_servers_is_neither_listed_nor_read_until_one_is_denied() -> None:
    offers = (offer("slack"), offer("wiki"))
    client = World(offers=offers).client()
    assert client.names("resources/list") == []
    assert "slack and wiki both have it" in refused(client.ask("resources/read", {"uri": "wiki://public/a"}))
    client = World("mcp: {disabled: [wiki]}", offers=offers).client()
    assert client.names("resources/list") == ["wiki://public/a", "wiki://secret/b"]
    client.ask("resources/read", {"uri": "wiki://public/a"})
    assert [server for server, _ in client.asked] == ["slack"]


def test_the_next_call_obeys_a_policy_that_changed_after_the_list() -> None:
    world = World()
    client = world.client()
    assert "slack__send" in client.names()
    world.gate.swap(profile=profile("mcp: {disabled: ['slack/send']}"))
    assert "disabled" in refused(client.call("slack__send"))
    world.gate.swap(profile=profile("{}"), inventory=Inventory())
    assert "not installed" in refused(client.call("slack__find"))
    assert client.asked == []


def test_a_change_is_told_once_and_only_for_the_lists_that_became_others() -> None:
    world = World()
    client, quiet = world.client(), world.client()
    client.names()
    assert client.session.changed() == []
    world.gate.swap(profile=profile("mcp: {disabled: ['slack/send']}"))
    client.run(client.session.changed())
    assert client.got[-1]["method"] == "notifications/tools/list_changed"
    assert client.session.changed() == []
    assert quiet.session.changed() == [], "who never listed has nothing to forget"
    world.gate.swap(profile=profile("tools: {disabled: [bash]}\nmcp: {disabled: ['slack/send']}"))
    assert client.session.changed() == [], "nothing that this client sees became another"


def test_a_server_that_changes_a_description_is_told_of() -> None:
    world = World()
    client = world.client()
    client.names()
    rows: Any = {"tools": ({"name": "send", "description": "now"}, {"name": "find"})}
    world.offers = (offer("slack", rows),)
    world.gate.swap(inventory=inventory(*world.offers))
    client.run(client.session.changed())
    told = {m["method"] for m in client.got if "method" in m}
    assert told == {f"notifications/{word}/list_changed" for word in ("tools", "prompts", "resources")}


def test_pages_cover_the_list_and_a_cursor_of_another_list_is_refused() -> None:
    world = World()
    client = world.client(limits=Limits(page=1))
    first = client.ask("tools/list")["result"]
    second = client.ask("tools/list", {"cursor": first["nextCursor"]})["result"]
    assert [row["name"] for row in (*first["tools"], *second["tools"])] == ["slack__find", "slack__send"]
    assert "nextCursor" not in second
    world.gate.swap(profile=profile("mcp: {disabled: ['slack/find']}"))
    assert "start" in refused(client.ask("tools/list", {"cursor": first["nextCursor"]}))
    assert refused(client.ask("tools/list", {"cursor": "x"}))
    assert refused(client.ask("tools/list", {"cursor": 3}))


def test_while_a_required_server_is_missing_everything_says_so_and_then_comes_back() -> None:
    world = World("mcp: {required: [slack]}")
    gone = inventory(*world.offers, state="failed")
    world.gate.swap(inventory=gone)
    late = World("mcp: {required: [k8s]}")
    with pytest.raises(AssertionError):
        late.client()
    world.gate.swap(inventory=inventory(*world.offers))
    client = world.client()
    world.gate.swap(inventory=gone)
    assert "unavailable" in refused(client.ask("tools/list"))
    assert "unavailable" in refused(client.call("slack__send"))
    world.gate.swap(inventory=inventory(*world.offers))
    assert client.names() == ["slack__find", "slack__send"]


def test_an_unavailable_agent_can_have_empty_explained_lists() -> None:
    world = World("mcp: {required: [k8s]}", options=Options(unavailable="empty"))
    client = world.client()
    assert client.names() == []
    assert "`k8s` is not met" in client.got[0]["result"]["instructions"]
    assert "unavailable" in refused(client.call("slack__send"))


def test_an_argument_that_is_denied_is_read_and_one_that_reads_in_two_ways_is_refused() -> None:
    world = World("{}", layer(rule("deny", "slack/send", kind="mcp_tool", when=(("command", "rm *"),))))
    client = world.client()
    assert refused(client.call("slack__send", {"command": "rm -rf /"}))
    assert client.call("slack__send", {"command": "ls"}) == {}
    twice = b'{"name":"slack__send","arguments":{"command":"rm -rf /","command":"ls"}}'
    (answer,) = client.send(b'{"jsonrpc":"2.0","id":90,"method":"tools/call","params":' + twice + b"}")
    assert "two ways" in refused(answer)
    assert len(client.asked) == 1


def test_a_name_that_stands_twice_is_sent_on_as_it_was_judged() -> None:
    world = World("mcp: {disabled: ['slack/send']}")
    client = world.client()
    params = b'{"name":"slack__send","name":"slack__find","n\\u0061me":"slack__find"}'
    client.send(b'{"jsonrpc":"2.0","id":90,"method":"tools/call","params":' + params + b"}")
    assert json.loads(json.dumps(client.asked[0][1]["params"])) == {"name": "find"}


@pytest.mark.parametrize(
    "key", ["Name", "NAME", "Arguments", "argument\u017f", "TaSk", "URI", "Ref", "task_id", "_Meta", "LeveL"]
)  # fmt: skip
def test_a_key_that_go_and_c_sharp_take_for_a_judged_one_reaches_no_server(key: str) -> None:
    client = World("mcp: {disabled: ['slack/send']}").client()
    params = {"name": "slack__find", "arguments": {}, key: "send"}
    data = json.dumps({"jsonrpc": "2.0", "id": 90, "method": "tools/call", "params": params}).encode()
    with pytest.raises(EnvelopeError, match="known one in other letters"):
        client.send(data)
    assert client.asked == []


@pytest.mark.parametrize("key", ["Method", "METHOD", "ID", "Params", "param\u017f", "JSONRPC", "Result"])
def test_a_message_has_no_key_that_go_and_c_sharp_take_for_another(key: str) -> None:
    data = json.dumps({"jsonrpc": "2.0", "id": 90, "method": "ping", key: "tools/call"}).encode()
    with pytest.raises(EnvelopeError, match="known one in other letters"):
        envelope.read(data)


def test_keys_that_nobody_takes_for_judged_ones_go_on() -> None:
    client = World().client()
    params = {"name": "slack__send", "names": 1, "meta": 2, "x-uri": 3, "Title": 4, "_meta": {"ID": 5, "task_id": 6}}
    assert client.ask("tools/call", params) == {}
    assert client.asked[0][1]["params"] == params | {"name": "send"}


def test_a_reference_under_another_spelling_of_its_keys_completes_nothing() -> None:
    client = World("mcp: {disabled: ['slack/triage']}").client()
    ref = {"type": "ref/resource", "uri": "wiki://page/{name}", "Type": "ref/prompt", "Name": "triage"}
    answer = client.ask("completion/complete", {"ref": ref, "argument": {"name": "a", "value": ""}})
    assert "other letters" in refused(answer)
    assert client.asked == []


def test_only_the_gateway_s_own_progress_token_reaches_a_server() -> None:
    client = World().client()
    meta = {"progressToken": "t", "ProgressToken": 1, "progre\u017f\u017ftoken": 2, "k": 3}
    client.ask("tools/call", {"name": "slack__send", "_meta": meta})
    sent = client.asked[0][1]
    assert sent["params"]["_meta"] == {"progressToken": sent["id"], "k": 3}


@pytest.mark.parametrize("arguments", [{"Command": "rm -rf /"}, {"command": "ls", "COMMAND": "rm -rf /"}])
def test_an_argument_under_another_spelling_of_its_name_does_not_pass_a_rule_on_it(arguments: dict[str, str]) -> None:
    world = World("{}", layer(rule("deny", "slack/send", kind="mcp_tool", when=(("command", "rm *"),))))
    client = world.client()
    assert refused(client.call("slack__send", arguments))
    assert client.asked == []


def test_a_uri_that_is_too_long_is_held_against_nothing() -> None:
    client = World().client()
    assert "not installed" in refused(client.ask("resources/read", {"uri": "wiki://page/" + "\u00e9" * 5_000_000}))
    assert client.asked == []


@pytest.mark.parametrize("arguments", ['"rm -rf /"', '["rm -rf /"]', "7"])
def test_arguments_that_are_no_object_pass_no_rule_on_them(arguments: str) -> None:
    world = World("{}", layer(rule("deny", "slack/send", kind="mcp_tool", when=(("command", "rm *"),))))
    client = world.client()
    answer = client.ask("tools/call", {"name": "slack__send", "arguments": json.loads(arguments)})
    assert "two ways" in refused(answer)
    assert client.asked == []


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', b"nul", b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":{},"method":"ping"}', b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":true,"method":"ping"}', b'{"jsonrpc":"2.0","id":1,"method":7}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', b'{"jsonrpc":"2.0"}', b"[" * 100_000, b'{"a":"\n"}',
    ],
)  # fmt: skip
def test_what_is_no_message_is_an_error_and_batches_are_refused(data: bytes) -> None:
    with pytest.raises(EnvelopeError):
        envelope.read(data)


def test_line_ends_inside_a_message_cannot_make_two_of_it() -> None:
    client = World().client()
    client.send(
        b'{"jsonrpc":"2.0",\r\n"id":5,"method":"tools/call","params":{"name":"slack__send",\n"arguments":{"a":\n1}}}'
    )
    call = client.session.in_flight[5]
    assert b"\n" not in client.links["slack"].ask(call)[1]


def test_nothing_goes_before_initialize_and_nothing_unknown_goes_at_all() -> None:
    client = World().client()
    assert refused(client.ask("tasks/update"))
    assert refused(client.ask("server/discover"))
    assert refused(client.ask("initialize", {"protocolVersion": "2025-11-25"}))
    from tests.unit.enforce.mcp.cores import Client

    fresh = Client(World())
    assert "initialize" in refused(fresh.ask("tools/list"))
    assert "result" in fresh.ask("ping")
    assert client.asked == fresh.asked == []


@pytest.mark.parametrize(
    ("asked", "given"),
    [("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"),
     ("2025-11-25", "2025-11-25"), ("2099-01-01", "2025-11-25"), ("2026-07-28", "2025-11-25")],
)  # fmt: skip
def test_each_version_is_negotiated(asked: str, given: str) -> None:
    from tests.unit.enforce.mcp.cores import Client

    answer = Client(World()).ask("initialize", {"protocolVersion": asked, "capabilities": {}})
    assert answer["result"]["protocolVersion"] == given


def test_a_request_with_an_id_in_flight_is_refused_and_the_first_is_still_answered() -> None:
    client = World().client()
    client.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "slack__send"}})
    (answer,) = client.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "slack__find"}})
    assert "in flight" in refused(answer)
    assert len(client.asked) == 1


def test_a_cancelled_call_is_cancelled_at_its_server_and_its_late_answer_is_dropped() -> None:
    client = World().client()
    client.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "slack__send"}})
    call = client.session.in_flight[7]
    actions = client.session.receive(
        envelope.read(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}')
    )
    assert [type(action).__name__ for action in actions] == ["Cancel"]
    told = client.links["slack"].cancel(call)
    assert told is not None
    assert json.loads(told) == {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert client.session.finish(call, b"{}") == []


def test_progress_comes_back_under_the_client_s_token_and_only_while_it_waits() -> None:
    client = World().client()
    meta = {"progressToken": "mine"}
    client.send({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "slack__send", "_meta": meta}})
    note = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.50}}'
    assert b'"progressToken":"mine"' in client.answer("slack", note)
    client.links["slack"].receive(b'{"jsonrpc":"2.0","id":1,"result":{}}')
    assert not hasattr(client.links["slack"].receive(note), "data")


def test_a_server_answers_only_what_it_was_asked() -> None:
    client = World().client()
    client.call("slack__send")
    link = client.links["slack"]
    for data in (b'{"jsonrpc":"2.0","id":2,"result":{}}', b'{"jsonrpc":"2.0","id":"1","result":{}}', b"garbage"):
        assert type(link.receive(data)).__name__ == "Noise"
    assert type(link.receive(b'{"jsonrpc":"2.0","id":1,"result":{}}')).__name__ == "Answered"
    assert type(link.receive(b'{"jsonrpc":"2.0","id":1,"result":{}}')).__name__ == "Noise"


ELICIT = b'{"jsonrpc":"2.0","id":"srv","method":"elicitation/create","params":{"message":"?"}}'


@pytest.mark.parametrize(
    ("declared", "options", "reaches"),
    [
        ({"elicitation": {}}, Options(), True),
        ({}, Options(), False),
        ({"elicitation": {}}, Options(no_asks=("elicitation",)), False),
        ({"elicitation": {}}, Options(no_asks=("slack/*",)), False),
        ({"elicitation": {}}, Options(asks=("sampling",)), False),
        ({"elicitation": {}}, Options(asks=("slack/elicitation",)), True),
    ],
)
def test_what_a_server_asks_reaches_a_client_that_declared_it_and_whose_profile_lets_it(
    declared: dict[str, Any], options: Options, reaches: bool
) -> None:
    world = World(options=options)
    client = world.client(declared)
    client.call("slack__send")
    actions = client.session.asked("slack", envelope.read(ELICIT), "there")
    client.run(actions)
    (event,) = [event for event in world.memory.events if event.action == "ask"]
    assert (event.extension, event.outcome) == ("mcp_ask:slack/elicitation", "allowed" if reaches else "refused")
    assert any(isinstance(action, Reply) for action in actions) is reaches
    assert ("elicitation" in client.session.allowed_capabilities("slack")) is (reaches and bool(declared))
    if not reaches:
        assert client.returned[0]["id"] == "srv"
        assert refused(client.returned[0])
        return
    asked = client.got[-1]
    assert asked["params"] == {"message": "?"}
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}})
    assert client.returned == [{"jsonrpc": "2.0", "id": "srv", "result": {"action": "accept"}}]
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}})
    assert len(client.returned) == 1, "an answer counts once"


def test_what_a_server_asks_reaches_nobody_while_it_cannot_be_recorded() -> None:
    world = World()
    client = world.client({"elicitation": {}})
    client.call("slack__send")

    def full(event: object) -> None:
        raise OSError

    world.gate.sink = full
    client.run(client.session.asked("slack", envelope.read(ELICIT), "there"))
    assert "record" in refused(client.returned[0])


def test_aliases_and_descriptions_are_the_profile_s_and_the_server_never_sees_them() -> None:
    options = Options(aliases={"slack/send": "post"}, descriptions={"slack/send": "Posts."}, prefix="never")
    client = World(options=options).client()
    rows = {row["name"]: row for row in client.ask("tools/list")["result"]["tools"]}
    assert set(rows) == {"post", "find"}
    assert rows["post"]["description"] == "Posts."
    client.call("post")
    assert client.asked[0][1]["params"]["name"] == "send"
    assert refused(client.call("send"))


def test_a_notice_of_a_resource_reaches_who_subscribed_and_may_still_read_it() -> None:
    world = World()
    client = world.client()
    note = b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"wiki://public/a"}}'
    assert client.session.noted("slack", envelope.read(note), "there") == []
    client.ask("resources/subscribe", {"uri": "wiki://public/a"})
    assert len(client.session.noted("slack", envelope.read(note), "there")) == 1
    assert client.session.noted("wiki", envelope.read(note), "there") == [], "another server's news"
    world.gate.swap(profile=profile("resources: {disabled: ['*']}"))
    assert client.session.noted("slack", envelope.read(note), "there") == []


def test_a_stateless_request_is_gated_and_answered_in_its_own_era() -> None:
    from tests.unit.enforce.mcp.cores import Client

    client = Client(World("mcp: {disabled: ['slack/send']}"))
    found = client.ask("server/discover", {"_meta": MODERN})["result"]
    assert "2026-07-28" in found["supportedVersions"]
    listed = client.ask("tools/list", {"_meta": MODERN})["result"]
    assert [row["name"] for row in listed["tools"]] == ["slack__find"]
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
    answer = client.ask("tools/call", {"name": "slack__send", "_meta": MODERN})
    assert answer["result"]["isError"] is True
    old = {**MODERN, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}
    assert client.ask("tools/list", {"_meta": old})["error"]["data"]["requested"] == "2027-01-01"
    assert refused(client.ask("logging/setLevel", {"level": "info", "_meta": MODERN}))
    assert client.asked == []


def test_a_stateless_client_before_an_old_server_gets_results_of_its_era() -> None:
    from tests.unit.enforce.mcp.cores import Client

    client = Client(World())
    client.ask("tools/call", {"name": "slack__find", "_meta": {**MODERN, "mine": 1}})
    assert client.asked[0][1]["params"] == {"name": "find", "_meta": {"mine": 1}}
    data = json.loads(client.answer("slack", b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
    assert data["result"] == {"content": [], "resultType": "complete"}


def test_a_stateless_server_learns_of_the_client_only_what_the_profile_lets_and_may_ask_no_more() -> None:
    from extgate.enforce.mcp.link import Link
    from tests.unit.enforce.mcp.cores import Client

    client = Client(World(options=Options(no_asks=("sampling",))))
    link = client.links["slack"] = Link("slack")
    link.is_modern = True
    client.ask("tools/call", {"name": "slack__find", "_meta": MODERN})
    meta = client.asked[0][1]["params"]["_meta"]
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {"elicitation": {}}
    wants = b'{"resultType":"input_required","inputRequests":{"a":{"method":"%s","params":{}}}}'
    denied = json.loads(
        client.answer("slack", b'{"jsonrpc":"2.0","id":1,"result":' + wants % b"sampling/createMessage" + b"}")
    )
    assert "not permitted" in refused(denied)
    client.session.in_flight.clear()
    client.ask("tools/call", {"name": "slack__find", "_meta": MODERN})
    passed = json.loads(
        client.answer("slack", b'{"jsonrpc":"2.0","id":2,"result":' + wants % b"elicitation/create" + b"}")
    )
    assert passed["result"]["resultType"] == "input_required"


def test_a_listening_stream_gets_what_it_asked_for_under_its_own_id() -> None:
    from tests.unit.enforce.mcp.cores import Client

    world = World()
    client = Client(world)
    params = {"_meta": MODERN, "notifications": {"toolsListChanged": True, "resourceSubscriptions": ["x"]}}
    (told,) = client.send({"jsonrpc": "2.0", "id": "L", "method": "subscriptions/listen", "params": params})
    assert told["method"] == "notifications/subscriptions/acknowledged"
    assert told["params"]["notifications"] == {"toolsListChanged": True}
    world.gate.swap(profile=profile("mcp: {disabled: [slack]}"))
    client.run(client.session.changed())
    assert [m["method"] for m in client.got[1:]] == ["notifications/tools/list_changed"]
    assert client.got[1]["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "L"}


def test_nothing_is_listed_or_run_while_the_record_cannot_be_written() -> None:
    world = World("mcp: {disabled: ['slack/send']}")

    def full(event: object) -> None:
        raise OSError("disk full")

    world.gate.sink = full
    client = world.client()
    assert client.names() == []
    assert "record" in refused(client.call("slack__find"))
    assert client.asked == []
    world.gate.sink = world.memory
    assert client.names() == ["slack__find"], "and it comes back when the disk does"
