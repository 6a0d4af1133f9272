"""The gate itself: what it answers, whom it asks, what it writes down, and that whatever goes wrong is a deny."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Mapping
from typing import Any

import pytest

from extgate.core.decide import Decision
from extgate.core.extension import Extension, Inventory, Server
from extgate.core.policy import Profile
from extgate.enforce.answer import MAX_MESSAGE
from extgate.enforce.gate import Approver, Gate
from extgate.enforce.question import MAX_ID, MAX_TOLD
from extgate.enforce.sinks import Memory
from tests.doors.policies import layer, profile, rule

READ = Extension(kind="tool", name="read", source="builtin")
BASH = Extension(kind="tool", name="bash", source="builtin")
DEPLOY = Extension(kind="tool", name="deploy", source="builtin")
SEND = Extension(kind="mcp_tool", server="slack", name="send")
NOTE = Extension(kind="mcp_resource", server="wiki", name="wiki://note")
STOCK = Inventory(extensions=(READ, BASH, DEPLOY, SEND, NOTE), servers=(Server(name="slack"), Server(name="wiki")))

OPEN = profile("{}")
NO_BASH = profile("tools: {disabled: [bash]}")
ASK = profile("{}", layer(rule("ask", "deploy"), rule("ask", "wiki/*", kind="mcp_resource")))


class Says:
    """An approver that says one thing, and keeps what it was asked."""

    def __init__(self, said: object, name: str = "ann") -> None:
        self.said, self.name = said, name
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def __call__(self, decision: Decision, args: Mapping[str, Any]) -> Any:
        self.asked.append((decision.extension.name, args))
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


def gate(policy: Profile = OPEN, *, stock: Inventory = STOCK, **more: Any) -> Gate:
    return Gate(policy, stock, door="test", **more)


def used(gate: Gate, ext: Extension, args: Mapping[str, Any] | None = None) -> bool:
    """The answer of both roads, which must be one."""
    sync = gate.use(ext, args)
    waited = asyncio.run(gate.ause(ext, args))
    assert (sync.is_allowed, sync.message) == (waited.is_allowed, waited.message)
    return sync.is_allowed


# ---------------------------------------------------------------------------------------------------- seeing and using


def test_what_is_denied_is_neither_listed_nor_run_and_the_refusal_says_why() -> None:
    door = gate(NO_BASH)
    assert door.see([READ, BASH]) == (READ,)
    assert used(door, READ)
    assert not used(door, BASH)
    assert door.use(BASH).message == "'bash' is disabled for this agent."


def test_an_item_that_was_never_installed_is_judged_like_any_other() -> None:
    late = Extension(kind="mcp_tool", server="slack", name="late")
    door = gate(profile("mcp: {disabled: ['slack/*']}"))
    assert door.see([late]) == ()
    assert not used(door, late)
    assert used(gate(OPEN), late)


@pytest.mark.parametrize("name", ["", "ba\u200bsh", "a\nb", "\x1b[31mred", "\u202eevil"])
def test_a_name_that_cannot_be_read_is_refused_by_the_most_open_policy(name: str) -> None:
    hostile = Extension(kind="tool", name=name, source="builtin")
    door = gate(OPEN, stock=Inventory(extensions=(hostile,)))
    assert door.see([hostile]) == ()
    assert not used(door, hostile)
    assert not door.use_named(name)
    assert door.use(hostile).message.isprintable()


def test_an_agent_without_any_layer_has_nothing() -> None:
    door = gate(Profile(id="nobody"))
    assert door.see(STOCK.extensions) == ()
    assert not any(used(door, ext) for ext in STOCK.extensions)


def test_an_unavailable_agent_is_shown_nothing_and_every_use_says_what_is_missing() -> None:
    door = gate(profile("mcp: {required: [k8s]}"))
    assert not door.availability.is_available
    assert door.see(STOCK.extensions) == ()
    for ext in STOCK.extensions:
        assert not used(door, ext)
        assert "k8s" in door.use(ext).message
    assert not door.read_uri("wiki", "wiki://note")


def test_an_agent_is_back_when_its_server_is() -> None:
    door = gate(profile("mcp: {required: [k8s]}"))
    door.swap(inventory=Inventory(extensions=STOCK.extensions, servers=(*STOCK.servers, Server(name="k8s"))))
    assert used(door, READ)


# ---------------------------------------------------------------------------------------------------------------- names


def test_a_name_that_nothing_has_is_refused_and_recorded() -> None:
    memory = Memory()
    answer = gate(sink=memory).use_named("rm", {"path": "/"})
    assert not answer
    assert answer.message == "'rm' is not installed."
    assert [(e.extension, e.outcome, e.arguments) for e in memory.events] == [("tool:rm", "refused", ("path",))]
    assert not gate().refuse_unknown("read")


@pytest.mark.parametrize("name", ["mcp__slack__send", "slack_send", "slack__send", "slack/send", "send"])
def test_every_wire_name_of_an_item_finds_it(name: str) -> None:
    assert gate(OPEN).use_named(name)
    assert not gate(profile("mcp: {disabled: [slack]}")).use_named(name)
    assert gate(OPEN).see_named([name, "nope"]) == (name,)


@pytest.mark.parametrize("denied", ["a/b_c", "a_b/c"])
def test_of_several_owners_one_denied_denies_the_name(denied: str) -> None:
    one = Extension(kind="mcp_tool", server="a", name="b_c")
    two = Extension(kind="mcp_tool", server="a_b", name="c")
    stock = Inventory(extensions=(one, two), servers=(Server(name="a"), Server(name="a_b")))
    assert gate(OPEN, stock=stock).use_named("a_b_c")
    memory = Memory()
    door = gate(profile(f"mcp: {{disabled: ['{denied}']}}"), stock=stock, sink=memory)
    assert not door.use_named("a_b_c")
    assert door.see_named(["a_b_c"]) == ()
    assert [(e.extension, e.outcome) for e in memory.events if e.question == "use"] == [
        (f"mcp_tool:{denied}", "refused")
    ], "a call that was refused leaves no event that it was allowed"


def test_kinds_limit_whom_a_name_can_mean() -> None:
    skill = Extension(kind="skill", name="read", source="project")
    door = gate(profile("skills: {disabled: [read]}"), stock=Inventory(extensions=(READ, skill)))
    assert door.use_named("read", kinds=("tool", "mcp_tool"))
    assert not door.use_named("read", kinds=("skill",))
    assert not door.use_named("read")


def test_an_alias_finds_its_tool() -> None:
    agent = Extension(kind="tool", name="Agent", source="claude-code", facts={"aliases": ["Task"]})
    door = gate(profile("tools: {disabled: [Agent]}"), stock=Inventory(extensions=(agent,)))
    assert door.owners("Task") == (agent,)
    assert not door.use_named("Task")


@pytest.mark.parametrize("name", [None, 7, ["read"], {"name": "read"}])
def test_a_name_that_is_no_text_is_a_refusal_and_not_a_crash(name: Any) -> None:
    assert not gate(OPEN).use_named(name)


# ------------------------------------------------------------------------------------------------------------------ ask


def test_without_an_approver_what_must_be_asked_for_is_hidden_and_refused() -> None:
    door = gate(ASK)
    assert DEPLOY not in door.see(STOCK.extensions)
    assert not used(door, DEPLOY)
    assert "Nobody is here to approve it." in door.use(DEPLOY).message


def test_with_an_approver_it_is_shown_and_runs_on_a_yes_which_the_event_names() -> None:
    memory, approver = Memory(), Says(True)
    door = gate(ASK, approver=approver, sink=memory)
    assert DEPLOY in door.see(STOCK.extensions)
    assert used(door, DEPLOY, {"to": "prod"})
    assert approver.asked == [("deploy", {"to": "prod"})] * 2
    assert [(e.outcome, e.effect, e.approver) for e in memory.events] == [("allowed", "ask", "ann")] * 2


@pytest.mark.parametrize("said", [False, None, 1, "yes", RuntimeError("away"), TimeoutError()])
def test_anything_but_true_is_a_no(said: object) -> None:
    door = gate(ASK, approver=Says(said))
    assert not used(door, DEPLOY)
    assert "It was not approved." in door.use(DEPLOY).message


def test_an_approver_is_asked_about_nothing_but_what_must_be_asked_for() -> None:
    approver = Says(True)
    door = gate(profile("tools: {disabled: [bash]}", layer(rule("ask", "bash"))), approver=approver)
    assert used(door, READ)
    assert not used(door, BASH)
    assert approver.asked == []


def test_an_approver_that_must_be_awaited_refuses_where_nobody_can_wait() -> None:
    async def later() -> bool:
        return True

    door = gate(ASK, approver=Says(later()))
    assert not door.use(DEPLOY)


def test_an_approver_that_is_awaited_decides() -> None:
    async def ask(said: object) -> bool:
        async def later() -> object:
            if isinstance(said, Exception):
                raise said
            return said

        return bool(await gate(ASK, approver=Says(later())).ause(DEPLOY))

    assert asyncio.run(ask(True))
    assert not asyncio.run(ask(False))
    assert not asyncio.run(ask(RuntimeError("away")))


def test_an_approver_that_never_answers_is_a_no() -> None:
    async def ask() -> bool:
        never: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        return bool(await gate(ASK, approver=Says(never), approval_timeout_s=0).ause(DEPLOY))

    assert not asyncio.run(ask())


def test_a_deny_that_came_while_somebody_was_thinking_binds() -> None:
    async def ask(change: dict[str, Any]) -> bool:
        async def later() -> bool:
            door.swap(**change)
            return True

        door = gate(ASK, approver=Says(later()))
        return bool(await door.ause(DEPLOY))

    assert asyncio.run(ask({"profile": ASK}))
    assert not asyncio.run(ask({"profile": profile("tools: {disabled: [deploy]}")}))
    assert not asyncio.run(ask({"profile": profile("mcp: {required: [gone]}")}))


def test_a_deny_binds_when_the_approver_itself_changes_the_rules_at_once() -> None:
    class Changes(Says):
        def __call__(self, decision: Decision, args: Mapping[str, Any]) -> bool:
            door.swap(profile=profile("tools: {disabled: [deploy]}"))
            return True

    door = gate(ASK, approver=Changes(True))
    assert not door.use(DEPLOY)


def test_an_approver_cannot_change_the_call_that_it_approves() -> None:
    class Edits(Says):
        def __call__(self, decision: Decision, args: Mapping[str, Any]) -> bool:
            args["to"]["place"] = "prod"  # type: ignore[index]
            return True

    args = {"to": {"place": "stage"}}
    assert gate(ASK, approver=Edits(True)).use(DEPLOY, args)
    assert args == {"to": {"place": "stage"}}


def test_reading_a_resource_asks_as_well() -> None:
    assert gate(OPEN).read_uri("wiki", "wiki://note")
    assert not gate(ASK).read_uri("wiki", "wiki://note")
    assert not gate(ASK, approver=Says(False)).read_uri("wiki", "wiki://note")
    assert gate(ASK, approver=Says(True)).read_uri("wiki", "wiki://note")
    assert asyncio.run(gate(ASK, approver=Says(True)).aread_uri("wiki", "wiki://note"))
    assert not asyncio.run(gate(ASK).aread_uri("wiki", "wiki://note"))


def test_the_approver_cannot_be_taken_away_later() -> None:
    door = gate(ASK, approver=Says(True))
    with pytest.raises(AttributeError):
        door.approver = None  # type: ignore[misc]


def test_an_approver_without_a_name_is_recorded_by_its_type() -> None:
    memory = Memory()

    def approve(decision: Decision, args: Mapping[str, Any]) -> bool:
        return True

    nameless: Approver = approve  # type: ignore[assignment]
    assert gate(ASK, approver=nameless, sink=memory).use(DEPLOY)
    assert [e.approver for e in memory.events] == ["function"]


def test_an_argument_rule_denies_one_call_and_shows_the_item() -> None:
    door = gate(profile("{}", layer(rule("deny", "bash", when=(("command", "rm *"),)))))
    assert BASH in door.see([BASH])
    assert used(door, BASH, {"command": "ls"})
    assert not used(door, BASH, {"command": "rm -rf /"})


# ---------------------------------------------------------------------------------------------------------- the record


def test_each_use_leaves_one_event_with_names_of_arguments_and_no_value() -> None:
    memory = Memory()
    door = gate(NO_BASH, sink=memory)
    secret = "hunter2-hunter2"
    door.use(READ, {"path": secret, "deep": {"er": [secret]}}, session="s1")
    door.use(BASH, {"command": secret})
    rows = [event.as_dict() for event in memory.events]
    assert [(r["question"], r["action"], r["extension"], r["outcome"]) for r in rows] == [
        ("use", "call", "tool:read", "allowed"),
        ("use", "call", "tool:bash", "refused"),
    ]
    assert rows[0]["arguments"] == ["path", "deep"]
    assert rows[0]["session"] == "s1"
    assert rows[1]["rule"] == {
        "text": "tools.disabled", "pattern": "bash", "file": "agents/agent.yaml", "line": 1
    }  # fmt: skip
    assert rows[1]["policy_version"] == NO_BASH.version
    assert secret not in repr(rows)


def test_a_hidden_item_is_recorded_once_for_each_policy_session_and_action() -> None:
    memory = Memory()
    door = gate(NO_BASH, sink=memory)
    for _ in range(3):
        door.see(STOCK.extensions, session="a")
        door.see([BASH, READ], session="a")
    assert [(e.question, e.extension, e.outcome) for e in memory.events] == [("see", "tool:bash", "refused")]
    door.see([BASH], session="b")
    door.swap(profile=profile("tools: {disabled: [bash, read]}"))
    door.see([BASH, READ], session="a")
    hidden = [e.extension for e in memory.events if e.question == "see"]
    assert hidden == ["tool:bash", "tool:bash", "tool:bash", "tool:read"]


def test_what_is_remembered_of_the_record_stays_bounded() -> None:
    memory = Memory()
    door = gate(profile("tools: {disabled: ['*']}"), sink=memory)
    door.see(Extension(kind="tool", name=f"t{i}", source="builtin") for i in range(MAX_TOLD + 5))
    assert len(memory.events) == MAX_TOLD + 5
    assert len(door._state.told_of("", "list").ids) <= MAX_TOLD


def broken(event: object) -> None:
    raise OSError("disk full")


def test_while_the_record_cannot_be_written_nothing_is_shown_and_nothing_runs() -> None:
    door = gate(NO_BASH, sink=broken)
    assert door.see(STOCK.extensions) == ()
    assert door.see_named(["read", "bash"]) == ()
    assert not used(door, READ)
    assert door.use(READ).message == "the record cannot be written (OSError)."
    assert not door.read_uri("wiki", "wiki://note")


def test_a_swap_is_in_force_although_its_record_fails() -> None:
    door = gate(OPEN, sink=broken)
    assert [d.extension.id for d in door.swap(profile=NO_BASH)] == ["tool:bash"]
    assert not door.is_visible(BASH)


def test_a_clock_that_fails_is_a_deny() -> None:
    def clock() -> Any:
        raise RuntimeError("no time")

    assert not gate(OPEN, clock=clock).use(READ)


def test_a_name_of_any_length_leaves_a_short_event_and_a_short_message() -> None:
    memory = Memory()
    door = gate(NO_BASH, sink=memory)
    for answer in (door.use_named("x" * 1_000_000), door.use(Extension(kind="tool", name="bash\u200b" * 100_000))):
        assert not answer
        assert len(answer.message) <= MAX_MESSAGE
    door.use(READ, {"k" * 1_000_000: 1} | {f"k{i}": 1 for i in range(1000)})
    assert all(len(repr(event.as_dict())) < 20_000 for event in memory.events)
    assert all(len(event.extension) <= MAX_ID + 5 for event in memory.events)


def test_arguments_that_cannot_be_judged_are_a_deny() -> None:
    deep: dict[str, Any] = {}
    here = deep
    for _ in range(100_000):
        here["a"] = {}
        here = here["a"]
    door = gate(profile("{}", layer(rule("deny", "bash", when=(("", "*rm*"),)))))
    answer = door.use(BASH, deep)
    assert not answer
    assert "could not be judged (RecursionError)" in answer.message
    assert used(door, READ, deep), "no rule looks at these"


# ---------------------------------------------------------------------------------------------------------------- swap


def test_a_swap_binds_the_next_call_and_says_what_changed() -> None:
    memory = Memory()
    door = gate(OPEN, sink=memory)
    assert used(door, BASH)
    changed = door.swap(profile=NO_BASH)
    assert not used(door, BASH)
    assert [(d.extension.id, d.visible) for d in changed] == [("tool:bash", False)]
    assert [(e.question, e.extension, e.outcome) for e in memory.events if e.question == "reload"] == [
        ("reload", "tool:bash", "changed")
    ]
    assert door.swap(profile=NO_BASH) == ()
    assert [d.extension.id for d in door.swap(profile=OPEN)] == ["tool:bash"]
    assert used(door, BASH)


def test_a_swapped_inventory_brings_new_names_and_takes_old_ones() -> None:
    door = gate(OPEN)
    new = Extension(kind="tool", name="new", source="builtin")
    assert not door.use_named("new")
    door.swap(inventory=Inventory(extensions=(new,)))
    assert door.use_named("new")
    assert not door.use_named("read")


# ------------------------------------------------------------------------------------------------------------- children


def test_a_child_has_nothing_that_its_parent_is_denied_and_a_later_deny_reaches_it() -> None:
    parent = gate(NO_BASH)
    child = parent.child(profile("tools: {disabled: [read]}", id_="kid"))
    grandchild = child.child(agent="grandkid")
    assert child.agent == "kid"
    assert grandchild.agent == "grandkid"
    for door in (child, grandchild):
        assert not used(door, BASH)
        assert not used(door, READ)
        assert used(door, DEPLOY)
    parent.swap(profile=profile("tools: {disabled: [deploy]}"))
    for door in (child, grandchild):
        assert not used(door, DEPLOY)
        assert used(door, BASH)


def test_a_child_of_mode_own_is_under_its_own_profile_and_under_a_ceiling_above() -> None:
    top = gate(NO_BASH)
    middle = top.child(agent="middle")
    own = middle.child(profile("tools: {disabled: [read]}", id_="own"), mode="own")
    assert not used(own, BASH), "the ceiling above holds to any depth"
    assert used(gate(NO_BASH).child(profile("{}", id_="own"), mode="own"), BASH)


def test_a_swapped_child_stays_under_its_parent() -> None:
    child = gate(NO_BASH).child(profile("{}", id_="kid"))
    child.swap(profile=OPEN)
    assert not used(child, BASH)


def test_a_child_shares_the_record_the_approver_and_the_inventory() -> None:
    memory = Memory()
    parent = gate(ASK, sink=memory, approver=Says(True))
    child = parent.child(agent="kid")
    assert child.use(DEPLOY)
    assert [(e.agent, e.approver) for e in memory.events] == [("kid", "ann")]
    parent.swap(inventory=Inventory())
    assert child.inventory == Inventory()


def test_an_unavailable_parent_has_unavailable_children() -> None:
    child = gate(profile("mcp: {required: [k8s]}")).child(profile("{}", id_="kid"))
    assert not child.availability.is_available
    assert not used(child, READ)


def test_a_child_that_is_gone_is_forgotten() -> None:
    parent = gate(OPEN)
    gone = weakref.ref(parent.child(agent="kid"))
    gc.collect()
    assert gone() is None
    assert not parent._children
