"""A deepagents agent with a shell, with the framework's own deny or as extgate runs a workspace's agent."""

from __future__ import annotations

from typing import Any

from deepagents import create_deep_agent
from deepagents.backends.local_shell import LocalShellBackend
from deepagents.profiles import HarnessProfile, register_harness_profile
from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.messages import ToolMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI

from extgate import Workspace
from extgate.agents import open_agent
from tests.e2e.clients.programs.jobs import Job, serve

BEGIN = {"messages": [("user", "Begin.")]}


class Filter(AgentMiddleware[Any, Any, Any]):
    """Leaves tools out of each request to the model, as LangChain's guide on choosing tools does."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        kept = [tool for tool in request.tools if getattr(tool, "name", None) not in self.names]
        return await handler(request.override(tools=kept))


class Block(AgentMiddleware[Any, Any, Any]):
    """Refuses calls of tools."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        call = request.tool_call
        if call["name"] in self.names:
            return ToolMessage(content="denied", tool_call_id=call["id"], status="error")
        return await handler(request)


async def play(job: Job) -> None:
    """pieces: `filter`, `block` (middleware), `excluded` (a profile), `tools` (of servers)."""
    pieces, name = job["pieces"], f"fake-model-{job['number']}"
    model = ChatOpenAI(base_url=f"{job['url']}/v1", api_key="none", model=name, max_retries=0)
    if job["is_gated"]:
        backend = LocalShellBackend(job["workspace"], virtual_mode=False, inherit_env=True)
        workspace = Workspace.open(job["workspace"])
        async with await open_agent(workspace, "probe", model, trust=True, backend=backend) as agent:
            await agent.graph.ainvoke(BEGIN)
        return
    if excluded := pieces.get("excluded"):
        register_harness_profile(f"openai:{name}", HarnessProfile(excluded_tools=frozenset(excluded)))
    connections = {n: {"transport": "stdio", **entry} for n, entry in job["servers"].items()}
    tools = await MultiServerMCPClient(connections).get_tools()
    if "tools" in pieces:
        tools = [tool for tool in tools if tool.name in pieces["tools"]]
    graph = create_deep_agent(
        model=model,
        tools=tools,
        middleware=[kind(pieces[key]) for key, kind in (("filter", Filter), ("block", Block)) if key in pieces],
        skills=[f"{job['project']}/skills"],
        backend=LocalShellBackend(job["project"], virtual_mode=False, inherit_env=True),
    )
    await graph.ainvoke(BEGIN)


if __name__ == "__main__":
    serve(play)
