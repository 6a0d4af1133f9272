"""What binds at once and what waits, in both modes of reloading."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from extgate.core.extension import Extension, Inventory, Server
from extgate.core.policy import Profile
from extgate.dialects.document import Document
from extgate.dialects.registry import read_agent
from extgate.enforce.gate import Gate
from extgate.enforce.in_force import InForce, Mode
from extgate.enforce.sinks import Memory

TOOLS = ("bash", "edit", "grep", "read", "write")


def profile(text: str) -> Profile:
    return Profile(id="a", layers=(read_agent(Document(path="agents/a.yaml", text=text)),))


def tools(*names: str) -> Inventory:
    return Inventory(extensions=tuple(Extension(kind="tool", name=name, source="builtin") for name in names))


def serving(state: str, *items: str, also: Inventory | None = None) -> Inventory:
    extensions = tuple(Extension(kind="mcp_tool", server="github", name=item) for item in items)
    server = Server(name="github", state="connected" if state == "connected" else "failed")
    return Inventory(extensions=(*extensions, *(also or tools()).extensions), servers=(server,))


def in_force(text: str, inventory: Inventory | None = None, mode: Mode = "auto") -> InForce:
    return InForce(Gate(profile(text), inventory or tools(*TOOLS), door="test"), mode=mode)


def seen(held: InForce) -> set[str]:
    return {d.extension.name for d in held.gate.decisions if d.visible}


def test_a_new_deny_binds_the_next_question_in_both_modes() -> None:
    for mode in ("auto", "narrow"):
        held = in_force("tools: {}", mode="narrow" if mode == "narrow" else "auto")
        bash = held.gate.inventory.extensions[0]
        assert held.gate.use(bash)
        change = held.offer(profile=profile("tools: {disabled: [bash]}"))
        assert not held.gate.use(bash)
        assert [d.extension.name for d in change.lost] == ["bash"]
        assert change.policy_version == held.gate.profile.version
        assert not change.gained
        assert change


def test_a_new_allow_binds_at_once_in_auto_and_waits_in_narrow() -> None:
    held = in_force("tools: {disabled: [bash]}")
    assert [d.extension.name for d in held.offer(profile=profile("tools: {}")).gained] == ["bash"]
    held = in_force("tools: {disabled: [bash]}", mode="narrow")
    change = held.offer(profile=profile("tools: {}"))
    assert not change.gained
    assert [d.extension.name for d in change.waiting] == ["bash"]
    assert seen(held) == set(TOOLS) - {"bash"}
    accepted = held.accept()
    assert [d.extension.name for d in accepted.gained] == ["bash"]
    assert not accepted.is_waiting


def test_an_edit_that_does_both_narrows_at_once_and_waits_with_the_rest() -> None:
    held = in_force("tools: {disabled: [bash]}", mode="narrow")
    change = held.offer(profile=profile("tools: {disabled: [read]}"))
    assert seen(held) == {"edit", "grep", "write"}
    assert [d.extension.name for d in change.waiting] == ["bash"]
    held.accept()
    assert seen(held) == {"bash", "edit", "grep", "write"}


def test_a_widening_that_no_installed_name_shows_waits_too() -> None:
    held = in_force("tools: {disabled: ['deploy_*']}", mode="narrow")
    change = held.offer(profile=profile("tools: {}"))
    assert not change
    assert change.is_waiting
    assert not held.gate.is_visible(Extension(kind="tool", name="deploy_all", source="builtin"))
    held.accept()
    assert held.gate.is_visible(Extension(kind="tool", name="deploy_all", source="builtin"))


def test_taking_back_a_deny_waits_even_if_the_deny_never_was_accepted() -> None:
    held = in_force("tools: {}", mode="narrow")
    held.offer(profile=profile("tools: {disabled: [bash]}"))
    change = held.offer(profile=profile("tools: {}"))
    assert "bash" not in seen(held)
    assert [d.extension.name for d in change.waiting] == ["bash"]


def test_a_requirement_taken_away_waits() -> None:
    held = in_force("mcp: {required: ['github*']}", mode="narrow")
    change = held.offer(profile=profile("mcp: {}"))
    assert not change.is_available
    assert change.is_waiting
    assert held.accept().is_available


def test_a_new_item_waits_in_narrow_and_says_so() -> None:
    held = in_force("tools: {}", tools("read"), mode="narrow")
    change = held.offer(inventory=tools("read", "bash"))
    assert seen(held) == {"read"}
    assert [d.extension.name for d in change.waiting] == ["bash"]
    answer = held.gate.use(held.gate.inventory.extensions[0])
    assert answer.message == "'bash' is new and waits for `extgate reload`."
    assert [d.extension.name for d in held.accept().gained] == ["bash"]


def test_a_new_item_is_seen_at_once_in_auto() -> None:
    held = in_force("tools: {}", tools("read"))
    assert [d.extension.name for d in held.offer(inventory=tools("read", "bash")).gained] == ["bash"]


def test_a_server_that_comes_back_brings_what_it_had_in_both_modes() -> None:
    held = in_force("{}", serving("connected", "get_issue"), mode="narrow")
    assert [e.name for e in held.offer(inventory=serving("failed")).gone] == ["get_issue"]
    assert [d.extension.name for d in held.offer(inventory=serving("connected", "get_issue")).gained] == ["get_issue"]


def test_a_configured_server_that_comes_up_late_brings_its_first_listing_and_no_later_growth() -> None:
    held = in_force("mcp: {required: [github]}", serving("failed"), mode="narrow")
    change = held.offer(inventory=serving("connected", "get_issue", "list_issues"))
    assert change.is_available
    assert not change.was_available
    assert seen(held) == {"get_issue", "list_issues"}
    held.offer(inventory=serving("connected", "get_issue", "list_issues", "delete_repo"))
    assert seen(held) == {"get_issue", "list_issues"}


def test_a_server_that_nobody_configured_at_the_start_waits() -> None:
    held = in_force("{}", tools("read"), mode="narrow")
    held.offer(inventory=serving("connected", "get_issue", also=tools("read")))
    assert seen(held) == {"read"}


def test_a_withdrawn_agent_denies_everything_with_the_reason_and_comes_back() -> None:
    for mode in ("auto", "narrow"):
        held = in_force("tools: {disabled: [bash]}", mode="narrow" if mode == "narrow" else "auto")
        change = held.withdraw("its profile {gone} is not there")
        assert not seen(held)
        assert not change.is_available
        answer = held.gate.use(held.gate.inventory.extensions[3])
        assert answer.message == "this agent is unavailable: its profile (gone) is not there"
        back = held.offer(profile=profile("tools: {disabled: [bash]}"))
        assert seen(held) == set(TOOLS) - {"bash"}
        assert back.is_available


def test_an_agent_that_never_had_a_policy_waits_for_its_first_in_narrow() -> None:
    gate = Gate(Profile(id="a"), tools(*TOOLS), door="test")
    held = InForce(gate, mode="narrow")
    held.offer(profile=profile("tools: {}"))
    assert not seen(held)
    held.accept()
    assert seen(held) == set(TOOLS)


def test_every_answer_that_changed_is_recorded_once() -> None:
    sink = Memory()
    held = InForce(Gate(profile("tools: {}"), tools(*TOOLS), door="test", sink=sink))
    held.offer(profile=profile("tools: {disabled: [bash, edit]}"))
    held.offer(profile=profile("tools: {disabled: [edit, bash]}"))
    assert [e.extension for e in sink.events if e.question == "reload"] == ["tool:bash", "tool:edit"]


_LISTS = st.lists(st.sampled_from([*TOOLS, "*", "b*", "*e*", "[gr]*"]), max_size=3)
_EDITS = st.lists(st.tuples(_LISTS, _LISTS), min_size=1, max_size=5)


_STEPS = st.lists(st.one_of(st.tuples(_LISTS, _LISTS), st.sets(st.sampled_from(TOOLS))), min_size=1, max_size=6)


@given(steps=_STEPS)
def test_no_answer_from_before_a_change_survives_it(steps: list[tuple[list[str], list[str]] | set[str]]) -> None:
    held, text, names = in_force("{}"), "{}", set(TOOLS)
    for step in steps:
        if isinstance(step, set):
            names = step
            held.offer(inventory=tools(*sorted(names)))
        else:
            text = f"tools: {{disabled: {step[0]!r}, allowed: {step[1]!r}}}"
            held.offer(profile=profile(text))
        fresh = Gate(profile(text), tools(*sorted(names)), door="test")
        for ext in fresh.inventory.extensions:
            assert bool(held.gate.use(ext)) == bool(fresh.use(ext))
        assert [d.visible for d in held.gate.decisions] == [d.visible for d in fresh.decisions]
        assert held.gate.profile.version == fresh.profile.version


@given(first=st.tuples(_LISTS, _LISTS), edits=_EDITS, names=st.lists(st.sampled_from([*TOOLS, "zip", "b"])))
def test_in_narrow_no_edit_ever_widens(
    first: tuple[list[str], list[str]], edits: list[tuple[list[str], list[str]]], names: list[str]
) -> None:
    def text(lists: tuple[list[str], list[str]]) -> str:
        return f"tools: {{disabled: {lists[0]!r}, allowed: {lists[1]!r}}}"

    held = in_force(text(first), mode="narrow")
    asked = [Extension(kind="tool", name=name, source="builtin") for name in {*TOOLS, *names}]
    before = {ext.name for ext in asked if held.gate.is_visible(ext)}
    for edit in edits:
        held.offer(profile=profile(text(edit)))
        fresh = Gate(profile(text(edit)), tools(*TOOLS), door="test")
        after = {ext.name for ext in asked if held.gate.is_visible(ext)}
        assert after == before & {ext.name for ext in asked if fresh.is_visible(ext)}
        before = after
    held.accept()
    assert {ext.name for ext in asked if held.gate.is_visible(ext)} == {
        ext.name for ext in asked if fresh.is_visible(ext)
    }
