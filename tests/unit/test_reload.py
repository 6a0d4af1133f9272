"""Edits take effect as decisions; what cannot be read leaves the last good policy in force, and says so."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from extgate.core.extension import Extension, Inventory
from extgate.core.policy import Profile
from extgate.discover.inventory_file import load_inventory
from extgate.enforce.dispatch import Dispatcher
from extgate.enforce.gate import Gate
from extgate.errors import DiscoveryError
from extgate.reload import Reloader, Report, report_dict, report_lines
from extgate.settings import read_settings
from extgate.watch import Watcher
from extgate.workspace import Workspace

INVENTORY = load_inventory('{"tools": [{"name": "bash"}, {"name": "read"}, {"name": "edit"}]}', "inventory.json")
WAIT_S = 60


@dataclass
class Office:
    """A workspace on disk with a dispatcher over it."""

    root: Path
    inventory: Inventory = INVENTORY
    error: Exception | None = None
    dispatcher: Dispatcher = field(init=False)
    reloader: Reloader = field(init=False)

    def open(self) -> Office:
        workspace = Workspace.open(self.root)
        self.dispatcher = Dispatcher(self.inventory, mode=read_settings(workspace.homes).reload)
        self.reloader = Reloader(
            workspace, self.dispatcher, make_gate=self.gate, inventory_of=lambda workspace: self.installed()
        )
        return self

    def gate(self, profile: Profile) -> Gate:
        return Gate(profile, self.inventory, door="test")

    def installed(self) -> Inventory:
        if self.error:
            raise self.error
        return self.inventory

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def edit(self, name: str, text: str) -> Report:
        self.write(name, text)
        return self.reloader.reload()

    def seen(self, agent: str) -> set[str]:
        return {d.extension.name for d in self.dispatcher.seated(agent).gate.decisions if d.visible}

    def is_available(self, agent: str) -> bool:
        return self.dispatcher.standing(agent).is_available


@pytest.fixture
def office(tmp_path: Path) -> Office:
    office = Office(tmp_path)
    office.write("agents/a.yaml", "id: a\ntools: {disabled: [edit]}\n")
    office.write("agents/b.yaml", "id: b\n")
    return office.open()


def test_a_new_deny_binds_the_next_call_and_is_told_as_a_decision_with_its_place(office: Office) -> None:
    gate = office.dispatcher.seated("a").gate
    bash = next(e for e in gate.inventory.extensions if e.name == "bash")
    assert gate.use(bash)
    report = office.edit("agents/a.yaml", "id: a\ntools:\n  disabled: [edit, bash]\n")
    assert not gate.use(bash)
    lines = report_lines(report)
    assert "a: - tool bash: 'bash' is disabled for this agent. (tools.disabled `bash` agents/a.yaml:3)" in lines
    assert f"a: policy {gate.profile.version}, inventory {gate.inventory.version} in force" in lines
    assert not [line for line in lines if line.startswith("b:")]


def test_an_edit_that_changes_no_decision_says_so(office: Office) -> None:
    lines = report_lines(office.edit("agents/a.yaml", "# the same\nid: a\ntools: {disabled: [edit]}\n"))
    assert lines == ["no decision changed"]


def test_a_broken_edit_keeps_the_last_good_policy_and_names_file_and_line(office: Office) -> None:
    report = office.edit("agents/a.yaml", "id: a\ntools:\n  disabled: [edit\n")
    assert office.seen("a") == {"bash", "read"}
    assert office.is_available("a")
    assert report.kept == ("a",)
    lines = report_lines(report)
    assert any(line.startswith("error EG001: agents/a.yaml:") for line in lines)
    assert "a: its last good policy stays in force" in lines
    assert office.edit("agents/a.yaml", "id: a\n").changes
    assert office.seen("a") == {"bash", "edit", "read"}


def test_a_broken_file_whose_id_is_not_its_name_keeps_its_agent(office: Office) -> None:
    office.edit("agents/c.yaml", "id: helper\ntools: {allowed: [read]}\n")
    report = office.edit("agents/c.yaml", "id: helper\ntools: {allowed: [read\n")
    assert report.kept == ("helper",)
    assert office.seen("helper") == {"read"}
    assert "c" not in office.dispatcher.seats


def test_a_profile_that_never_was_good_is_unavailable_and_others_go_on(office: Office) -> None:
    report = office.edit("agents/c.yaml", "id: c\ntools: [\n")
    assert [e.file for e in report.errors] == ["agents/c.yaml"]
    assert not office.is_available("c")
    assert "agents/c.yaml" in office.dispatcher.standing("c").reason
    assert office.is_available("b")
    assert not office.seen("c")
    office.edit("agents/c.yaml", "id: c\n")
    assert office.is_available("c")


def test_a_profile_that_is_gone_makes_its_agent_unavailable_until_it_is_back(office: Office) -> None:
    (office.root / "agents/a.yaml").unlink()
    report = office.reloader.reload()
    assert not office.is_available("a")
    assert "a: unavailable" in report_lines(report)
    assert office.dispatcher.standing("a").reason == "its profile agents/a.yaml is gone"
    office.edit("agents/a.yaml", "id: a\ntools: {disabled: [edit]}\n")
    assert office.is_available("a")
    assert office.seen("a") == {"bash", "read"}


def test_a_renamed_file_goes_on_as_the_same_agent(office: Office) -> None:
    (office.root / "agents/a.yaml").rename(office.root / "agents/z.yaml")
    assert not any(office.reloader.reload().changes)
    assert office.seen("a") == {"bash", "read"}


def test_two_profiles_with_one_id_make_it_unavailable(office: Office) -> None:
    report = office.edit("agents/c.yaml", "id: a\n")
    assert not office.is_available("a")
    assert [e.code for e in report.errors] == ["EG008"]
    (office.root / "agents/c.yaml").unlink()
    office.reloader.reload()
    assert office.is_available("a")


def test_a_broken_extgate_yaml_changes_nothing_and_is_told(office: Office) -> None:
    report = office.edit("extgate.yaml", "agents: [\n")
    assert report.errors
    assert not any(report.changes)
    assert office.is_available("a")
    report = office.edit("extgate.yaml", "reload: sideways\n")
    assert "reload: `sideways` is neither" in report_lines(report)[0]


def test_an_inventory_that_cannot_be_made_keeps_the_last_and_the_policy_still_changes(office: Office) -> None:
    office.error = DiscoveryError("no inventory", fix="wait")
    report = office.edit("agents/a.yaml", "id: a\ntools: {disabled: [edit, bash]}\n")
    assert "no inventory" in report_lines(report)[0]
    assert office.seen("a") == {"read"}


def test_an_item_that_comes_with_the_rule_that_denies_it_is_never_seen(office: Office) -> None:
    shown: list[set[str]] = []
    gate = office.dispatcher.seated("a").gate
    swap = gate.swap

    def swap_and_look(**news: object) -> object:
        result = swap(**news)  # type: ignore[arg-type]
        shown.append(office.seen("a"))
        return result

    gate.swap = swap_and_look  # type: ignore[assignment, method-assign]
    tools = (*INVENTORY.extensions, Extension(kind="tool", name="deploy", source="builtin"))
    office.inventory = Inventory(extensions=tools)
    office.edit("agents/a.yaml", "id: a\ntools: {disabled: [edit, deploy]}\n")
    assert shown
    assert all("deploy" not in names for names in shown)


def test_narrow_lets_a_deny_through_and_holds_what_widens_until_it_is_accepted(office: Office) -> None:
    office.edit("extgate.yaml", "reload: narrow\n")
    report = office.edit("agents/a.yaml", "id: a\ntools: {disabled: [read]}\n")
    assert office.seen("a") == {"bash"}
    assert report.is_waiting
    assert "a: waits for `extgate reload`: + tool edit" in report_lines(report)
    accepted = office.reloader.accept()
    assert office.seen("a") == {"bash", "edit"}
    assert "a: + tool edit" in report_lines(accepted)
    assert not accepted.is_waiting


def test_leaving_narrow_waits_as_well(office: Office) -> None:
    office.edit("extgate.yaml", "reload: narrow\n")
    office.edit("extgate.yaml", "reload: auto\n")
    office.edit("agents/a.yaml", "id: a\n")
    assert office.seen("a") == {"bash", "read"}
    office.reloader.accept()
    assert office.seen("a") == {"bash", "edit", "read"}
    office.edit("agents/a.yaml", "id: a\ntools: {disabled: [edit]}\n")
    office.edit("agents/a.yaml", "id: a\n")
    assert office.seen("a") == {"bash", "edit", "read"}


def test_a_new_agent_waits_in_narrow(office: Office) -> None:
    office.edit("extgate.yaml", "reload: narrow\n")
    office.edit("agents/c.yaml", "id: c\n")
    assert not office.seen("c")
    office.reloader.accept()
    assert office.seen("c") == {"bash", "edit", "read"}


def test_a_longer_bound_on_liveness_waits_in_narrow_and_a_shorter_one_binds(office: Office) -> None:
    office.edit("extgate.yaml", "reload: narrow\n")
    office.edit("extgate.yaml", "reload: narrow\ndispatch: {liveness_s: 60}\n")
    assert office.dispatcher.liveness.bound_s == 30
    office.edit("extgate.yaml", "reload: narrow\ndispatch: {liveness_s: 5}\n")
    assert office.dispatcher.liveness.bound_s == 5
    office.edit("extgate.yaml", "reload: narrow\ndispatch: {liveness_s: 60}\n")
    office.reloader.accept()
    assert office.dispatcher.liveness.bound_s == 60


def test_who_starts_without_profiles_has_the_default_agent_and_loses_it_with_the_first_profile(tmp_path: Path) -> None:
    office = Office(tmp_path).open()
    assert office.seen("default") == {"bash", "edit", "read"}
    assert office.reloader.reload().changes
    office.edit("agents/a.yaml", "id: a\n")
    assert not office.is_available("default")
    assert office.is_available("a")


def test_deleting_the_last_profile_makes_no_agent_that_may_do_everything(office: Office) -> None:
    for name in ("a", "b"):
        (office.root / f"agents/{name}.yaml").unlink()
    office.reloader.reload()
    assert set(office.dispatcher.seats) == {"a", "b"}


def test_a_report_is_json_with_decisions_and_no_text_of_files(office: Office) -> None:
    told = report_dict(office.edit("agents/a.yaml", "id: a\ntools: {disabled: [edit, bash]}\n"))
    assert [d["id"] for d in told["changes"][0]["lost"]] == ["tool:bash"]
    assert told["changes"][0]["policy_version"] == office.dispatcher.seated("a").gate.profile.version


def test_names_in_a_report_cannot_move_the_terminal(office: Office) -> None:
    office.inventory = Inventory(extensions=(Extension(kind="tool", name="a\x1b[2Jb", source="builtin"),))
    lines = report_lines(office.reloader.reload())
    assert lines
    assert not any("\x1b" in line for line in lines)


FULL = "id: a\ntools:\n  disabled: [bash, edit]\nmcp:\n  disabled: ['*']\n"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(cut=st.integers(0, len(FULL)), junk=st.sampled_from(["", "\t", "[", "!", "\x00", ": :", "tools: 1"]))
def test_no_corruption_of_a_profile_that_does_not_parse_lifts_a_deny(tmp_path: Path, cut: int, junk: str) -> None:
    office = Office(tmp_path)
    office.write("agents/a.yaml", FULL)
    office.open()
    report = office.edit("agents/a.yaml", FULL[:cut] + junk)
    if report.kept or not office.is_available("a"):
        assert office.seen("a") <= {"read"}
        assert report.errors or not office.is_available("a")


def test_an_edit_on_disk_reaches_a_running_gate_through_the_watcher(office: Office) -> None:
    reports: queue.Queue[Report] = queue.Queue()
    gate = office.dispatcher.seated("a").gate
    bash = next(e for e in gate.inventory.extensions if e.name == "bash")

    def changed(paths: tuple[str, ...]) -> None:
        reports.put(office.reloader.reload())

    with Watcher(lambda: office.reloader.homes, changed, say=print):
        assert gate.use(bash)
        office.write("agents/a.yaml", "id: a\ntools: {disabled: [edit, bash]}\n")
        report = reports.get(timeout=WAIT_S)
        # In force once its version is reported.
        assert report.changes[0].policy_version == gate.profile.version
        assert not gate.use(bash)


SETTINGS: dict[str, Callable[[Path], str]] = {
    "reload: maybe": lambda root: "reload: `maybe` is neither; write `auto` or `narrow`",
    "dispatch: 5": lambda root: "dispatch: expected a mapping",
    "dispatch: {liveness: 5}": lambda root: "dispatch: expected a mapping with `liveness_s` alone",
    "dispatch: {liveness_s: 0}": lambda root: "dispatch.liveness_s: expected seconds",
    "dispatch: {liveness_s: true}": lambda root: "dispatch.liveness_s: expected seconds",
    "audit: []": lambda root: "audit: expected the path of a file",
}


@pytest.mark.parametrize("text", SETTINGS)
def test_a_setting_without_meaning_is_an_error_with_its_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "extgate.yaml").write_text(f"# one\n{text}\n")
    with pytest.raises(Exception, match=r"extgate\.yaml:2: ") as error:
        read_settings(Workspace.open(tmp_path).homes)
    assert SETTINGS[text](tmp_path) in str(error.value)


def test_the_record_lies_outside_the_project_unless_it_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere/state")
    root = tmp_path / "my office"
    root.mkdir()
    place = read_settings(Workspace.open(root).homes).audit_file
    assert str(place).startswith("/somewhere/state/extgate/audit/my_office-")
    (root / "extgate.yaml").write_text("audit: record.jsonl\n")
    assert read_settings(Workspace.open(root).homes).audit_file == root / "record.jsonl"
