"""Tasks of 2025-11-25: each belongs to the session that began it, and is judged again each time it is asked about."""

from __future__ import annotations

import json
from typing import Any

import pytest

from extgate.enforce.mcp.envelope import Fields
from extgate.enforce.mcp.listing import capabilities
from extgate.enforce.mcp.tasks import MAX_ARGUMENTS, MAX_TASKS
from tests.doors.policies import profile
from tests.unit.enforce.mcp.cores import Client, World, offer, refused

TASK = {"taskId": "t1", "status": "working", "ttl": None, "createdAt": "2026-11-30T00:00:00Z", "x-vendor": [1]}


def answered(client: Client, server: str, result: Any) -> dict[str, Any]:
    """What the client gets once the server has answered the newest call."""
    id = client.asked[-1][1]["id"]
    event: Any = client.links[server].receive(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode())
    client.run(client.session.finish(event.call, event.data))
    return client.got[-1]


def begun(client: Client, name: str = "slack__send", task: dict[str, Any] = TASK) -> dict[str, Any]:
    assert client.ask("tools/call", {"name": name, "arguments": {"a": 1}, "task": {"ttl": 60000}}) == {}
    return answered(client, name.partition("__")[0], {"task": task})


def about(client: Client, method: str = "tasks/get", id: str = "t1") -> dict[str, Any]:
    return client.ask(method, {"taskId": id})


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
def test_a_task_is_asked_about_at_the_server_that_began_it(method: str) -> None:
    client = World(offers=(offer("slack"), offer("other"))).client()
    assert begun(client)["result"]["task"] == TASK
    assert client.asked[-1][1]["params"]["task"] == {"ttl": 60000}
    assert about(client, method) == {}
    assert client.asked[-1] == ("slack", {"jsonrpc": "2.0", "id": 2, "method": method, "params": {"taskId": "t1"}})
    assert answered(client, "slack", {**TASK, "status": "completed"})["result"]["status"] == "completed"


def test_no_session_has_another_s_task() -> None:
    world = World()
    mine, theirs = world.client(), world.client()
    begun(mine)
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        assert "no such task" in refused(about(theirs, method))
    assert theirs.ask("tasks/list")["result"]["tasks"] == []
    assert theirs.asked == []
    assert [(event.outcome, event.action) for event in world.memory.events if "t1" in event.extension] == [
        ("refused", "task get"), ("refused", "task result"), ("refused", "task cancel"),
    ]  # fmt: skip


def test_the_result_of_a_task_whose_tool_was_denied_meanwhile_is_not_had_and_it_can_still_be_ended() -> None:
    world = World()
    client = world.client()
    begun(client)
    world.gate.swap(profile=profile("mcp: {disabled: ['slack/send']}"))
    before = len(client.asked)
    assert "send" in refused(about(client, "tasks/result"))
    assert "send" in refused(about(client, "tasks/get"))
    assert len(client.asked) == before
    assert about(client, "tasks/cancel") == {}
    assert client.asked[-1][1]["method"] == "tasks/cancel"


def test_a_task_that_begins_is_gated_like_any_call() -> None:
    world = World("mcp: {disabled: ['slack/send']}")
    client = world.client()
    assert refused(client.ask("tools/call", {"name": "slack__send", "arguments": {}, "task": {}}))
    assert client.asked == []


def test_the_arguments_that_began_a_task_are_judged_again() -> None:
    client = World().client()
    begun(client)
    kept = client.session.tasks._known["t1"].arguments
    assert kept is not None
    assert json.loads(bytes(kept)) == {"a": 1}
    too_long = {"name": "slack__send", "arguments": {"a": "x" * MAX_ARGUMENTS}, "task": {}}
    assert "may have" in refused(client.ask("tools/call", too_long))


def test_a_server_cannot_take_the_task_of_another() -> None:
    client = World(offers=(offer("slack"), offer("evil"))).client()
    begun(client)
    assert "id that another task has" in refused(begun(client, "evil__send"))
    assert about(client, "tasks/result") == {}
    assert client.asked[-1][0] == "slack"


def test_news_of_a_task_reach_its_client_while_that_may_use_the_tool() -> None:
    world = World(offers=(offer("slack"), offer("evil")))
    client, other = world.client(), world.client()
    begun(client)

    def told(client: Client, server: str, id: str = "t1") -> int:
        from extgate.enforce.mcp import envelope

        news = {"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": {**TASK, "taskId": id}}
        return len(client.session.noted(server, envelope.read(json.dumps(news).encode()), None))

    assert [told(client, "slack"), told(client, "evil"), told(client, "slack", "t2"), told(other, "slack")] == [
        1,
        0,
        0,
        0,
    ]
    world.gate.swap(profile=profile("mcp: {disabled: ['slack/send']}"))
    assert told(client, "slack") == 0


def test_the_list_of_tasks_is_the_session_s_own_as_last_told() -> None:
    client = World().client()
    begun(client)
    about(client)
    answered(client, "slack", {**TASK, "status": "completed", "_meta": {"k": 1}})
    assert client.ask("tasks/list")["result"] == {"tasks": [{**TASK, "status": "completed"}]}


def test_tasks_are_bounded_and_those_that_ended_make_room() -> None:
    client = World().client()
    for number in range(MAX_TASKS):
        begun(client, task={**TASK, "taskId": f"t{number}", "status": "working"})
    assert "under way" in refused(client.ask("tools/call", {"name": "slack__send", "task": {}}))
    about(client, "tasks/get", "t7")
    answered(client, "slack", {**TASK, "taskId": "t7", "status": "failed"})
    begun(client, task={**TASK, "taskId": "new"})
    assert "no such task" in refused(about(client, "tasks/get", "t7"))


def test_only_clients_of_its_protocol_version_are_offered_tasks() -> None:
    with_tasks = offer("slack")
    offered: Fields = {**with_tasks.capabilities, "tasks": b'{"requests":{"tools":{"call":{}}}}'}
    from dataclasses import replace

    world = World(offers=(replace(with_tasks, capabilities=offered),))
    assert "tasks" in capabilities(world.door.view, "2025-11-25")
    assert "tasks" not in capabilities(world.door.view, "2025-06-18")
    assert "tasks" not in capabilities(world.door.view, "2026-07-28")
    assert "tasks" not in capabilities(World().door.view, "2025-11-25")
    client = Client(world)
    client.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t"}})
    assert refused(client.ask("tasks/list"))
    assert refused(about(client))
