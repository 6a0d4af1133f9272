"""Tasks of the stateless era: each is of the caller that began it, and judged again each time it is asked about."""

from __future__ import annotations

import json
from typing import Any

import pytest

from extgate.enforce.mcp import envelope
from extgate.enforce.mcp.call import META_CAPABILITIES, META_SUBSCRIPTION, META_VERSION, Ask, Cancel, Reply
from extgate.enforce.mcp.link import Link
from extgate.enforce.mcp.options import Options
from extgate.enforce.mcp.session import Session
from extgate.enforce.mcp.started import MAX_AGE_S, MAX_STARTED, Book
from extgate.enforce.mcp.tasks import EXTENSION, MAX_ARGUMENTS
from tests.doors.policies import profile
from tests.unit.enforce.mcp.cores import World, offer, refused

TASK = {"taskId": "t1", "status": "working", "ttlMs": None, "createdAt": "2026-11-30T00:00:00Z", "x-vendor": [1]}
DECLARED = {"extensions": {EXTENSION: {}, "x/y": {}}, "elicitation": {}}


class Caller:
    """A client of the stateless era, each of whose requests is a session of its own, over modern servers."""

    def __init__(self, world: World, book: Book, name: str = "", declared: Any = DECLARED) -> None:
        self.world, self.book, self.name, self.declared = world, book, name, declared
        self.links: dict[str, Link] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.session = self.new()

    def new(self) -> Session:
        return Session(self.world.door, id="s", caller=self.name, book=self.book)

    def send(self, method: str, params: dict[str, Any], session: Session | None = None) -> dict[str, Any]:
        """The answer, or nothing yet when a server has to give it."""
        self.session = session or self.new()
        meta = {META_VERSION: "2026-07-28", META_CAPABILITIES: self.declared}
        message = {"jsonrpc": "2.0", "id": "q", "method": method, "params": {**params, "_meta": meta}}
        return self.run(self.session.receive(envelope.read(json.dumps(message).encode())))

    def run(self, actions: Any) -> dict[str, Any]:
        got: dict[str, Any] = {}
        for action in actions:
            if isinstance(action, Reply):
                got = json.loads(bytes(action.data))  # type: ignore[arg-type]
            elif isinstance(action, Ask):
                link = self.links.setdefault(action.call.server, Link(action.call.server))
                link.is_modern = True
                self.asked.append((action.call.server, json.loads(link.ask(action.call)[1])))
        return got

    def answered(self, result: Any, server: str = "slack") -> dict[str, Any]:
        """What the client gets once the server has answered the newest request."""
        data = json.dumps({"jsonrpc": "2.0", "id": self.asked[-1][1]["id"], "result": result}).encode()
        event: Any = self.links[server].receive(data)
        return self.run(self.session.finish(event.call, event.data))

    def begin(self, name: str = "slack__send", task: dict[str, Any] = TASK, arguments: Any = None) -> str:
        """The id of a task that a call became."""
        assert self.send("tools/call", {"name": name, "arguments": arguments or {"a": 1}}) == {}
        answer = self.answered({"resultType": "task", **task}, name.partition("__")[0])
        return str(answer["result"]["taskId"])

    def about(self, id: str, method: str = "tasks/get", **more: Any) -> dict[str, Any]:
        return self.send(method, {"taskId": id, **more})


@pytest.fixture
def world() -> World:
    return World(offers=(offer("slack"), offer("other")))


@pytest.fixture
def caller(world: World) -> Caller:
    return Caller(world, Book())


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_task_is_asked_about_at_its_server_under_the_server_s_own_id(caller: Caller, method: str) -> None:
    id = caller.begin()
    assert id != "t1"
    assert caller.about(id, method, inputResponses={"k": {"action": "accept"}}) == {}
    server, sent = caller.asked[-1]
    assert (server, sent["method"], sent["params"]["taskId"]) == ("slack", method, "t1")
    assert sent["params"]["inputResponses"] == {"k": {"action": "accept"}}
    assert sent["params"]["_meta"][META_CAPABILITIES] == DECLARED


def test_the_result_of_a_task_is_had_under_the_client_s_id_with_all_else_as_it_came(caller: Caller) -> None:
    id = caller.begin()
    caller.about(id)
    done = {**TASK, "status": "completed", "resultType": "complete", "result": {"content": [], "x": {"y": [1]}}}
    assert caller.answered(done)["result"] == {**done, "taskId": id}


def test_an_acknowledgement_names_no_task(caller: Caller) -> None:
    id = caller.begin()
    caller.about(id, "tasks/cancel")
    assert caller.answered({"resultType": "complete", "taskId": "t1"})["result"] == {"resultType": "complete"}


def test_no_caller_and_no_agent_has_another_s_task(world: World) -> None:
    book = Book()
    mine, theirs, elsewhere = Caller(world, book, "me"), Caller(world, book, "you"), Caller(World(), book, "me")
    elsewhere.world.gate.agent = "another"
    id = mine.begin()
    for other in (theirs, elsewhere):
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            assert refused(other.about(id, method)) == "no such task"
            assert refused(other.about("t1", method)) == "no such task"
        assert other.asked == []
    events = [event for event in world.memory.events if event.action.startswith("task ")]
    assert {event.outcome for event in events} == {"refused"}
    assert mine.about(id) == {}


def test_a_client_that_does_not_declare_tasks_is_told_what_to_declare(caller: Caller) -> None:
    id = caller.begin()
    caller.declared = {}
    answer = caller.about(id)
    assert answer["error"]["code"] == -32021
    assert answer["error"]["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    listening = caller.send("subscriptions/listen", {"notifications": {"taskIds": [id]}})
    assert listening["error"]["code"] == -32021


def test_a_server_is_told_of_tasks_with_the_calls_alone_that_may_become_one(caller: Caller) -> None:
    def declared() -> Any:
        return caller.asked[-1][1]["params"]["_meta"][META_CAPABILITIES]["extensions"]

    caller.send("tools/call", {"name": "slack__send"})
    assert declared() == DECLARED["extensions"]
    caller.send("prompts/get", {"name": "slack__triage"})
    assert declared() == {"x/y": {}}
    caller.send("tools/call", {"name": "slack__send", "arguments": {"a": "x" * MAX_ARGUMENTS}})
    assert declared() == {"x/y": {}}


def test_what_was_denied_meanwhile_gives_no_result_and_takes_no_answers_and_can_still_be_ended(caller: Caller) -> None:
    id = caller.begin()
    caller.world.gate.swap(profile=profile("mcp: {disabled: ['slack/send']}"))
    before = len(caller.asked)
    assert "send" in refused(caller.about(id))
    assert "send" in refused(caller.about(id, "tasks/update", inputResponses={}))
    assert len(caller.asked) == before
    assert caller.about(id, "tasks/cancel") == {}
    assert caller.asked[-1][1]["method"] == "tasks/cancel"


def test_the_arguments_that_began_a_task_are_judged_again(caller: Caller) -> None:
    task = caller.book.find(caller.begin(arguments={"a": 2}), caller.world.gate.agent, "")
    assert task is not None
    assert json.loads(task.arguments or b"") == {"a": 2}


def test_a_task_that_nobody_declared_does_not_reach_the_client(caller: Caller) -> None:
    caller.declared = {}
    caller.send("tools/call", {"name": "slack__send"})
    answer = caller.answered({"resultType": "task", **TASK})
    assert "none was asked for" in refused(answer)
    caller.declared = DECLARED
    caller.send("prompts/get", {"name": "slack__triage"})
    assert "none was asked for" in refused(caller.answered({"resultType": "task", **TASK}))


def test_a_result_that_is_of_another_task_does_not_reach_the_client(caller: Caller) -> None:
    id = caller.begin()
    caller.begin(task={**TASK, "taskId": "t2"})
    caller.about(id)
    assert "another task" in refused(caller.answered({**TASK, "taskId": "t2", "resultType": "complete"}))


def test_an_id_that_a_server_gives_again_is_the_newer_task_s(world: World) -> None:
    book = Book()
    first, second = Caller(world, book, "a"), Caller(world, book, "b")
    old, new = first.begin(), second.begin()
    assert refused(first.about(old)) == "no such task"
    assert second.about(new) == {}


def test_two_servers_may_give_the_same_id(caller: Caller) -> None:
    ids = [caller.begin(), caller.begin("other__send")]
    for id, server in zip(ids, ("slack", "other"), strict=True):
        caller.about(id)
        assert caller.asked[-1][0] == server


def test_what_a_task_asks_of_the_client_is_judged(world: World) -> None:
    asking = {
        **TASK,
        "resultType": "complete",
        "status": "input_required",
        "inputRequests": {"k": {"method": "elicitation/create", "params": {}}},
    }
    caller = Caller(world, Book())
    id = caller.begin()
    caller.about(id)
    assert caller.answered(asking)["result"]["inputRequests"] == asking["inputRequests"]
    world.door.configure(Options(no_asks=("elicitation",)))
    caller.about(id)
    assert "not permitted" in refused(caller.answered(asking))


# ---------------------------------------------------------------------------------------------- news


def listening(caller: Caller, ids: list[str]) -> tuple[Session, list[Any]]:
    meta = {META_VERSION: "2026-07-28", META_CAPABILITIES: DECLARED}
    params = {"notifications": {"taskIds": ids}, "_meta": meta}
    message = {"jsonrpc": "2.0", "id": "listen", "method": "subscriptions/listen", "params": params}
    session = caller.new()
    actions = session.receive(envelope.read(json.dumps(message).encode()))
    caller.run(actions)
    return session, actions


def news(
    session: Session, server: str, id: str, method: str = "notifications/tasks", **more: Any
) -> list[dict[str, Any]]:
    params = {**TASK, "taskId": id, **more, "_meta": {META_SUBSCRIPTION: 7}}
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    actions = session.noted(server, envelope.read(json.dumps(message).encode()), None)
    return [json.loads(bytes(action.data)) for action in actions]  # type: ignore[union-attr, arg-type]


def test_news_of_a_task_come_on_the_stream_that_asked_for_them(caller: Caller) -> None:
    id, other = caller.begin(), caller.begin(task={**TASK, "taskId": "t2"})
    session, actions = listening(caller, [id, "unknown"])
    assert [type(action) for action in actions] == [Ask]  # its server has not yet said that it will tell
    (acknowledged,) = news(session, "slack", "", method="notifications/subscriptions/acknowledged")
    assert acknowledged["params"]["notifications"] == {"taskIds": [id]}
    server, sent = caller.asked[-1]
    assert (server, sent["method"], sent["params"]["notifications"]) == (
        "slack",
        "subscriptions/listen",
        {"taskIds": ["t1"]},
    )
    (told,) = news(session, "slack", "t1", status="completed", result={"content": []})
    assert told["params"] == {
        **TASK, "taskId": id, "status": "completed", "result": {"content": []}, "_meta": {META_SUBSCRIPTION: "listen"},
    }  # fmt: skip
    assert [news(session, "other", "t1"), news(session, "slack", "t2"), news(session, "slack", "t3")] == [[], [], []]
    assert other


def test_a_stream_begins_also_when_the_server_will_not_tell(caller: Caller) -> None:
    id = caller.begin()
    session, actions = listening(caller, [id])
    answered = session.finish(actions[0].call, b"{}")
    assert [json.loads(bytes(action.data))["method"] for action in answered] == [  # type: ignore[union-attr, arg-type]
        "notifications/subscriptions/acknowledged"
    ]
    assert session.in_flight == {}


def test_a_stream_says_which_of_the_server_s_it_is(caller: Caller) -> None:
    id = caller.begin()
    listening(caller, [id])
    number = caller.asked[-1][1]["id"]
    params = {**TASK, "_meta": {META_SUBSCRIPTION: number}}
    data = json.dumps({"jsonrpc": "2.0", "method": "notifications/tasks", "params": params}).encode()
    event: Any = caller.links["slack"].receive(data)
    assert event.about.session is not None
    assert event.about.method == "subscriptions/listen"


def test_news_end_with_the_permission_and_with_the_stream(caller: Caller) -> None:
    id = caller.begin()
    session, _ = listening(caller, [id])
    caller.world.gate.swap(profile=profile("mcp: {disabled: ['slack/send']}"))
    assert news(session, "slack", "t1") == []
    caller.world.gate.swap(profile=profile("{}"))
    assert len(news(session, "slack", "t1")) == 1
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "listen"}}
    ended = session.receive(envelope.read(json.dumps(note).encode()))
    assert [type(action) for action in ended] == [Cancel]
    assert session.in_flight == {}
    assert news(session, "slack", "t1") == []


def test_news_that_ask_what_the_profile_keeps_from_servers_stay_out(caller: Caller) -> None:
    id = caller.begin()
    session, _ = listening(caller, [id])
    caller.world.door.configure(Options(no_asks=("sampling",)))
    asks = {"k": {"method": "sampling/createMessage", "params": {}}}
    assert news(session, "slack", "t1", status="input_required", inputRequests=asks) == []
    assert news(session, "slack", "t1")


# ---------------------------------------------------------------------------------------------- bounds


def test_tasks_are_bounded_for_each_caller_and_those_that_ended_or_were_left_make_room(world: World) -> None:
    clock = [0.0]
    book = Book(now=lambda: clock[0])
    caller, other = Caller(world, book, "a"), Caller(world, book, "b")
    agent = world.gate.agent
    ids = [caller.begin(task={**TASK, "taskId": f"t{number}"}) for number in range(MAX_STARTED)]
    assert not book.has_room(agent, "a", None)
    assert book.has_room(agent, "b", None)
    caller.about(ids[7])
    caller.answered({**TASK, "taskId": "t7", "status": "failed", "resultType": "complete"})
    assert book.has_room(agent, "a", None)
    assert book.find(ids[7], agent, "a") is None
    assert book.find(ids[8], agent, "a") is not None
    caller.begin(task={**TASK, "taskId": "more"})
    assert not book.has_room(agent, "a", None)
    clock[0] = MAX_AGE_S + 1
    assert book.has_room(agent, "a", None)
    assert other.begin(task={**TASK, "taskId": "theirs"})


def test_the_tasks_of_a_server_that_is_another_by_now_are_forgotten(caller: Caller) -> None:
    ids = [caller.begin(), caller.begin("other__send")]
    caller.book.forget("slack")
    assert refused(caller.about(ids[0])) == "no such task"
    assert caller.about(ids[1]) == {}
