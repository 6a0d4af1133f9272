"""What a name of the wire could be, and that it passes only when all of that does."""

from __future__ import annotations

import pytest

from extgate.core.extension import Extension, Inventory, Server
from extgate.enforce.wire.clients import CLIENTS, Client, client_of
from extgate.enforce.wire.judge import Entry, Judge
from tests.unit.enforce.wire.world import CLAUDE, GENERIC, gate, inventory

GITHUB = Server(name="github")


def mcp(server: str, name: str) -> Extension:
    return Extension(kind="mcp_tool", server=server, name=name)


STOCK = inventory(
    mcp("github", "get"), mcp("github", "wipe"), mcp("git", "hub_get"), Extension(kind="tool", name="own", source="x"),
    Extension(kind="skill", name="ops/rollback", source="project"), servers=[GITHUB, Server(name="git")],
)  # fmt: skip


def sees(rules: str, name: str, client: Client = GENERIC, stock: Inventory = STOCK, **more: object) -> bool:
    entry = Entry(name, **more)  # type: ignore[arg-type]
    judge = Judge(gate(rules, stock), client)
    (shown,) = judge.see([entry])
    assert (judge.use(entry, {}) == "") == shown
    assert judge.sees(entry) == shown
    return shown


@pytest.mark.parametrize("name", ["mcp__github__get", "github_get", "github__get", "mcp_github_get"])
def test_an_installed_item_is_known_by_every_runtimes_name(name: str) -> None:
    assert sees("mcp: {allowed: [github, git]}", name)
    assert not sees("mcp: {disabled: ['github/get']}", name)


def test_a_name_that_two_items_have_passes_only_if_both_do() -> None:
    assert not sees(
        "mcp: {disabled: ['git/hub_get']}", "git_hub_get", stock=inventory(mcp("git", "hub_get"), mcp("git_hub", "get"))
    )
    assert not sees(
        "mcp: {disabled: ['git_hub/get']}", "git_hub_get", stock=inventory(mcp("git", "hub_get"), mcp("git_hub", "get"))
    )


def test_a_tool_of_unknown_origin_must_pass_every_block_it_could_belong_to() -> None:
    assert sees("", "mystery")
    assert not sees("tools: {allowed: [own]}", "mystery")
    assert not sees("mcp: {allowed: [github]}", "mystery")
    assert not sees("mcp: {disabled: ['slack/*']}", "slack_send")
    assert not sees("mcp: {disabled: ['slack']}", "mcp__slack__send")
    assert not sees("mcp: {disabled: ['github/*']}", "github_of_the_client")


def test_where_a_program_marks_the_tools_of_servers_others_are_none() -> None:
    assert sees("mcp: {allowed: [github]}", "Bash", CLAUDE)
    assert sees("mcp: {allowed: [github]}", "BrandNew", CLAUDE)
    assert not sees("mcp: {allowed: [github]}", "mcp__slack__send", CLAUDE)
    assert sees("mcp: {allowed: [github]}", "mcp__github__brand_new", CLAUDE)
    assert not sees("mcp: {disabled: ['github/brand*']}", "mcp__github__brand_new", CLAUDE)
    assert sees("tools: {allowed: [Read]}\nmcp: {allowed: [github]}", "mcp__github__brand_new", CLAUDE)
    assert not sees("tools: {disabled: ['mcp__github__*']}", "mcp__github__brand_new", CLAUDE)


def test_a_native_tool_named_like_a_servers_is_denied_by_either_rule() -> None:
    assert not sees("tools: {disabled: ['mcp__x__y']}", "mcp__x__y", CLAUDE)
    assert not sees("mcp: {disabled: ['x/y']}", "mcp__x__y", CLAUDE)


@pytest.mark.parametrize("name", ["", " ", "Ba\u200bsh", "Bash\n", "\u202eBash"])
def test_a_name_that_nothing_may_have_passes_nothing(name: str) -> None:
    assert not sees("", name)


def test_a_tool_in_a_namespace_is_the_servers_item_or_the_programs_own() -> None:
    codex = CLIENTS["codex"]
    assert sees("mcp: {allowed: [github]}", "get", codex, namespace="mcp__github")
    assert not sees("mcp: {disabled: ['github/get']}", "get", codex, namespace="mcp__github")
    assert not sees("tools: {disabled: ['agents::spawn']}", "spawn", codex, namespace="agents")


def test_an_item_of_a_hosted_server_is_the_configured_ones_at_its_own_address_only() -> None:
    there = inventory(mcp("github", "get"), servers=[Server(name="github", facts={"url": "https://a"})])
    assert sees("mcp: {allowed: [github]}", "get", stock=there, server="github", address="https://a")
    assert not sees("mcp: {allowed: [github]}", "get", stock=there, server="github", address="https://b")
    assert not sees("mcp: {allowed: [github]}", "get", stock=there, server="github")


def test_a_skill_of_a_plugin_goes_with_either_name() -> None:
    assert not sees("skills: {disabled: ['ops/*']}", "plug:rollback", kinds=("skill",))
    assert not sees("skills: {disabled: ['plug:*']}", "plug:rollback", kinds=("skill",))
    assert sees("skills: {disabled: ['other']}", "plug:rollback", kinds=("skill",))


def test_a_program_is_told_by_what_is_said_and_else_by_its_user_agent() -> None:
    assert client_of(CLIENTS, agent="claude-cli/2.1.332 (external, cli)").name == "claude-code"
    assert client_of(CLIENTS, said="codex", agent="claude-cli/2").name == "codex"
    assert client_of(CLIENTS, agent="Mozilla claude-cli/").name == "generic"
    assert client_of(CLIENTS, said="nobody").name == "generic"


def test_a_librarys_agent_is_the_program_that_is_usual_here_and_no_other() -> None:
    library = "OpenAI/Python 3.57.0"
    assert client_of(CLIENTS, agent=library).name == "generic"
    assert client_of(CLIENTS, agent=library, usual="hermes").name == "hermes"
    assert client_of(CLIENTS, agent=f"Async{library}", usual="hermes").name == "hermes"
    assert client_of(CLIENTS, agent="curl/8", usual="hermes").name == "generic"
    assert client_of(CLIENTS, usual="hermes").name == "generic"
    for other in ("claude-code", "codex", "openprogram", ""):
        assert client_of(CLIENTS, agent=library, usual=other).name == "generic"
    assert client_of(CLIENTS, agent="claude-cli/2", usual="hermes").name == "claude-code"
    assert client_of(CLIENTS, said="codex", agent=library, usual="hermes").name == "codex"


def test_resources_are_judged_by_server_and_uri() -> None:
    from extgate.enforce.wire.clients import Target

    def reads(rules: str, target: Target, stock: Inventory = STOCK) -> bool:
        return Judge(gate(rules, stock), CLAUDE).use_target(target) == ""

    listed = inventory(Extension(kind="mcp_resource", server="github", name="g://a"), servers=[GITHUB])
    one = Target("g://a", ("mcp_resource",), "github")
    assert reads("", one, listed)
    assert not reads("", Target("g://b", ("mcp_resource",), "github"), listed), "neither listed nor a template's"
    assert not reads("mcp: {disabled: [github]}", one, listed)
    assert not reads("resources: {disabled: ['github/*']}", one, listed)
    unknown = Target("s://%61", ("mcp_resource",), "slack")
    assert reads("", unknown)
    assert not reads("mcp: {disabled: ['slack/s://a']}", unknown), "as written and decoded"
    everything = Target("", ("mcp_resource",))
    assert reads("", everything, listed)
    assert not reads("mcp: {disabled: [github]}", everything, listed)
    assert not reads("resources: {disabled: ['github/g://a']}", Target("", ("mcp_resource",), "github"), listed)
