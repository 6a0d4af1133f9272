"""The recipes of docs/how-to for frameworks, each taken out of its page and run with a scripted model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.doors.drivers import chosen
from tests.fake_anthropic import FakeAnthropic
from tests.fake_model import FakeModel, call

PAGES = Path(__file__).parents[2] / "docs" / "how-to"
SCRIPT = [call("run", command="touch marker"), call("read", path="notes"), "done"]
Recipe = Callable[[dict[str, Any]], dict[str, Any]]


def needs(door: str) -> pytest.MarkDecorator:
    """Runs where that door's framework is: with the others in `.venv`, or by `tests/e2e` in one of its own."""
    return pytest.mark.skipif(door not in chosen(), reason=f"{door} has another environment")


@pytest.fixture
def recipe(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """Runs the page's Python in a workspace that holds the page's profile, with these names given."""
    monkeypatch.chdir(tmp_path)
    text = (PAGES / f"{request.param}.md").read_text()
    blocks = dict(re.findall(r"```(yaml|python)\n(.*?)```", text, re.DOTALL))
    assert set(blocks) == {"yaml", "python"}
    path = tmp_path / blocks["yaml"].partition("\n")[0].removeprefix("# ")
    path.parent.mkdir(parents=True)
    path.write_text(blocks["yaml"])

    def run(given: dict[str, Any]) -> dict[str, Any]:
        exec(compile(blocks["python"], f"{request.param}.md", "exec"), given)
        return given

    return run


def of(page: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("recipe", [page], indirect=True)


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def functions(ran: list[str]) -> dict[str, Callable[..., str]]:
    def read(path: str) -> str:
        """Reads a file."""
        ran.append("read")
        return "text"

    def run(command: str) -> str:
        """Runs a command."""
        ran.append("run")
        return "ok"

    return {"read": read, "run": run}


@needs("openai-agents")
@of("openai-agents")
def test_the_openai_agents_recipe_hides_and_refuses_what_is_disabled(
    recipe: Recipe, functions: dict[str, Any], ran: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    from agents import OpenAIChatCompletionsModel, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    with FakeModel(SCRIPT) as fake:
        model = OpenAIChatCompletionsModel("fake", AsyncOpenAI(base_url=fake.url, api_key="none", max_retries=0))
        recipe({"model": model, "tools": [function_tool(f) for f in functions.values()]})
    assert ran == ["read"]
    assert fake.requests[0].tools == ["read"]
    assert fake.requests[1].results == ["'run' is disabled for this agent."]
    assert capsys.readouterr().out == "done\n"


@needs("pydantic-ai")
@of("pydantic-ai")
def test_the_pydantic_ai_recipe_hides_and_refuses_what_is_disabled(
    recipe: Recipe, functions: dict[str, Any], ran: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    offered, told = [], []
    turns = [ToolCallPart("run", {"command": "x"}), ToolCallPart("read", {"path": "x"}), TextPart("done")]

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        offered.append([tool.name for tool in info.function_tools])
        told.append(str(messages[-1].parts[0].content))  # type: ignore[union-attr]
        return ModelResponse(parts=[turns[len(offered) - 1]])

    recipe({"model": FunctionModel(model), "tools": list(functions.values())})
    assert ran == ["read"]
    assert offered[0] == ["read"]
    assert "'run' is disabled for this agent." in told[1]
    assert capsys.readouterr().out == "done\n"


@needs("langchain")
@of("langchain")
def test_the_langchain_recipe_hides_and_refuses_what_is_disabled(
    recipe: Recipe, functions: dict[str, Any], ran: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    from langchain_openai import ChatOpenAI

    with FakeModel(SCRIPT) as fake:
        model = ChatOpenAI(model="fake", base_url=fake.url, api_key="none", max_retries=0)
        recipe({"model": model, "tools": list(functions.values())})
    assert ran == ["read"]
    assert fake.requests[0].tools == ["read"]
    assert fake.requests[1].results == ["'run' is disabled for this agent."]
    assert capsys.readouterr().out == "done\n"


@needs("fastmcp")
@of("fastmcp")
def test_the_fastmcp_recipe_hides_and_refuses_what_is_disabled(
    recipe: Recipe, functions: dict[str, Any], ran: list[str]
) -> None:
    from fastmcp import Client, FastMCP
    from fastmcp.exceptions import ToolError

    server: FastMCP[Any] = FastMCP("files")
    for function in functions.values():
        server.tool(function)
    guarded = recipe({})["guarded"]

    async def ask() -> list[str]:
        async with Client(await guarded(server)) as client:
            with pytest.raises(ToolError, match="'files/run' is disabled for this agent"):
                await client.call_tool("run", {"command": "x"})
            await client.call_tool("read", {"path": "x"})
            return [tool.name for tool in await client.list_tools()]

    assert asyncio.run(ask()) == ["read"]
    assert ran == ["read"]


@needs("openai-chat")
@of("openai-loop")
def test_the_openai_loop_recipe_hides_and_refuses_what_is_disabled(
    recipe: Recipe, functions: dict[str, Any], ran: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    from openai import OpenAI

    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in functions]
    with FakeModel(SCRIPT) as fake:
        client = OpenAI(base_url=fake.url, api_key="none", max_retries=0)
        recipe({"client": client, "model": "fake", "tools": tools, "functions": functions})
    assert ran == ["read"]
    assert fake.requests[0].tools == ["read"]
    assert fake.requests[1].results == ["'run' is disabled for this agent."]
    assert capsys.readouterr().out == "done\n"


@needs("anthropic-messages")
@of("anthropic-loop")
def test_the_anthropic_loop_recipe_hides_and_refuses_what_is_disabled(
    recipe: Recipe, functions: dict[str, Any], ran: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    from anthropic import Anthropic

    tools = [{"name": name, "input_schema": {"type": "object"}} for name in functions]
    with FakeAnthropic(SCRIPT) as fake:
        client = Anthropic(base_url=fake.url, api_key="none", max_retries=0)
        recipe({"client": client, "model": "fake", "tools": tools, "functions": functions})
    assert ran == ["read"]
    assert fake.requests[0].tools == ["read"]
    assert "'run' is disabled for this agent." in fake.requests[1].results["toolu_0_0"]
    assert capsys.readouterr().out == "done\n"


@needs("claude-agent-sdk")
@of("claude-agent-sdk")
def test_the_claude_agent_sdk_recipe_hides_and_refuses_what_is_disabled(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").write_text("a note")
    script = [call("Bash", command="touch marker"), call("Read", file_path=str(tmp_path / "notes")), "done"]
    for name in ("DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "IS_SANDBOX"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    with FakeAnthropic(script) as fake:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
        recipe({"__name__": "recipe"})
    first, *_, last = [request for request in fake.requests if request.tools]
    assert not (tmp_path / "marker").exists()
    assert "Bash" not in first.tools
    assert "Read" in first.tools
    assert "disabled for this agent" in last.results["toolu_0_0"] or "No such tool" in last.results["toolu_0_0"]
    assert "a note" in last.results["toolu_1_0"]
    assert capsys.readouterr().out == "done\n"
