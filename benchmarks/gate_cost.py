"""What the gate adds to a turn of a deepagents agent with 40 tools, and how long it filters 10,000 tools.

    python benchmarks/gate_cost.py [--turns N]

A turn is two model calls and one tool call. The model is ChatOpenAI against a scripted server in another process, whose
time is not counted. Three agents take turns in one run: without middleware, with one that does nothing, and with the
gate. Times are CPU time of this process, medians over the turns. The gate's own time is what passes inside its code,
LangChain's `request.override` left out; the rest of the difference is what LangChain asks for hosting any middleware,
less what hidden tools save. Claims: own time under 1 % of the framework's, and a later request with 10,000 tools
filtered in under 10 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from deepagents import create_deep_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from tests.fake_model import FakeModel, call

from extgate.core.extension import Extension, Inventory, Server
from extgate.core.policy import Profile
from extgate.dialects.document import Document
from extgate.dialects.registry import read_agent
from extgate.discover.builtins import builtin_tools
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.langchain import GateMiddleware
from extgate.enforce.inproc.langchain_ask import Ask
from extgate.enforce.inproc.langchain_identity import Identities, Registry
from extgate.enforce.inproc.langchain_last_step import LastStep
from extgate.enforce.inproc.langchain_view import View
from extgate.enforce.sinks import Memory

TOOLS = 40
MANY = 10_000
POLICY = "tools: {disabled: ['execute', 'write_*', 'app_1?']}\nmcp: {allowed: ['server_1/*', 'server_2/get_*']}\n"


class Nothing(AgentMiddleware[Any, Any, Any]):
    """Has the same hooks as the gate, and does nothing in them."""

    def before_agent(self, state: Any, runtime: Any) -> None:
        return None

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


def serve(address: Any) -> None:
    with FakeModel([call("app_2", text="x"), "done"]) as model:
        address.send(model.url)
        address.recv()


@contextmanager
def model_server() -> Iterator[str]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    yield ours.recv()
    ours.send("stop")
    process.join()


def tool(name: str) -> StructuredTool:
    schema = {"type": "object", "properties": {"text": {"type": "string"}, "count": {"type": "integer"}}}
    description = f"Does {name}. Takes a text and a count, and says what came of it."
    return StructuredTool(name=name, description=description, args_schema=schema, func=lambda **given: "ok")


class Meter:
    """Time that passes inside the gate's own code, without what the measuring itself takes."""

    def __init__(self) -> None:
        self.seconds, self._overhead, self.is_counting = 0.0, 0.0, False
        self._overhead = self._calibrated()

    def _calibrated(self) -> float:
        """Seconds that are counted for a call of a function that does nothing."""
        empty: Any = type("Empty", (), {"call": lambda self: None})
        self.wrap(empty, "call")
        samples = []
        for _ in range(2000):
            self.seconds = 0.0
            empty().call()
            samples.append(self.seconds)
        return statistics.median(samples)

    def leave_out(self, owner: type, name: str) -> None:
        """Takes the time of the framework's own function out of what is being counted when it is called from there."""
        inner: Callable[..., Any] = getattr(owner, name)
        meter = self

        def timed(*args: Any, **options: Any) -> Any:
            began = perf_counter()
            try:
                return inner(*args, **options)
            finally:
                meter.seconds -= (perf_counter() - began) * meter.is_counting

        setattr(owner, name, timed)

    def wrap(self, owner: type, name: str) -> None:
        inner: Callable[..., Any] = getattr(owner, name)
        meter = self

        def timed(*args: Any, **options: Any) -> Any:
            began, meter.is_counting = perf_counter(), True
            try:
                return inner(*args, **options)
            finally:
                meter.is_counting = False
                meter.seconds += perf_counter() - began - meter._overhead

        async def awaited(*args: Any, **options: Any) -> Any:
            began = perf_counter()
            try:
                return await inner(*args, **options)
            finally:
                meter.seconds += perf_counter() - began - meter._overhead

        setattr(owner, name, awaited if asyncio.iscoroutinefunction(inner) else timed)


def gate_of(inventory: Inventory) -> Gate:
    policy = read_agent(Document(path="agents/bench.yaml", text=POLICY))
    return Gate(Profile(id="bench", layers=(policy,)), inventory, door="langchain", sink=Memory())


def agent(url: str, middleware: list[Any], tools: list[Any]) -> Any:
    model = ChatOpenAI(base_url=url, api_key="none", model="fake", max_retries=0)
    return create_deep_agent(model, tools, middleware=middleware)


async def measure(agents: dict[str, Any], meter: Meter, turns: int) -> dict[str, list[float]]:
    cpu: dict[str, list[float]] = {name: [] for name in (*agents, "own")}
    names = list(agents)
    gc.disable()
    for turn in range(-5, turns):
        for name in names[turn % 3 :] + names[: turn % 3]:
            gc.collect(1)  # as `timeit` does: whose allocation sets a collection off says nothing
            meter.seconds, began = 0.0, process_time()
            await agents[name].ainvoke({"messages": [("user", "go")]})
            if turn >= 0:
                cpu[name].append(process_time() - began)
                if name == "gate":
                    cpu["own"].append(meter.seconds)
    gc.enable()
    return cpu


def turn_cost(turns: int) -> float:
    native = builtin_tools("deepagents")
    shown = [ext.name for ext in native if ext.facts["default"]]
    apps = [tool(f"app_{at}") for at in range(TOOLS - len(shown))]
    registry, meter = Registry(), Meter()
    items = tuple(Extension(kind="tool", name=t.name, source="app") for t in apps)
    for made, ext in zip(apps, items, strict=True):
        registry.add(made, ext)
    for owner, name in (
        (GateMiddleware, "_ready"), (GateMiddleware, "_planned"), (Ask, "aput"),
        (LastStep, "tools"), (LastStep, "bound"), (LastStep, "messages"), (LastStep, "settings"),
    ):  # fmt: skip
        meter.wrap(owner, name)
    meter.leave_out(ModelRequest, "override")
    with model_server() as url:
        wall = GateMiddleware(gate_of(Inventory(extensions=(*native, *items))), registry=registry)
        agents = {
            "none": agent(url, [], apps),
            "nothing": agent(url, [Nothing()], apps),
            "gate": agent(url, [wall], apps),
        }
        cpu = asyncio.run(measure(agents, meter, turns))
    middle = {name: statistics.median(values) * 1000 for name, values in cpu.items()}
    print(f"a turn with {TOOLS} tools, CPU ms, median of {turns}")
    print(f"  without middleware           {middle['none']:8.2f}")
    print(f"  with one that does nothing   {middle['nothing']:8.2f}")
    print(f"  with the gate                {middle['gate']:8.2f}")
    share = statistics.median(own / whole for own, whole in zip(cpu["own"], cpu["none"], strict=True))
    print(f"  inside the gate's own code   {middle['own']:8.2f}   {share:.2%} of the framework's time")
    return share


def many_tools() -> float:
    servers = [f"server_{at}" for at in range(100)]
    items = [
        Extension(kind="mcp_tool", server=server, name=f"{verb}_{at}")
        for server in servers
        for at in range(MANY // len(servers) // 2)
        for verb in ("get", "set")
    ]
    inventory = Inventory(extensions=tuple(items), servers=tuple(Server(name=name) for name in servers))
    registry, gate = Registry(), gate_of(inventory)
    tools = [registry.add(tool(f"t{at}"), ext) for at, ext in enumerate(items)]
    view = View(gate, Identities(gate, registry))

    def once(offered: list[Any]) -> float:
        began = perf_counter()
        kept, _ = view.offer(offered)
        view.keep(kept, is_added=True)
        return (perf_counter() - began) * 1000

    first = once(tools)
    again = statistics.median(once(list(tools)) for _ in range(50))
    changed = statistics.median(once([*tools[:-1], tools[-1].model_copy()]) for _ in range(50))
    print(f"\na model call with {MANY:,} tools of {len(servers)} servers filtered, ms")
    print(f"  the first                    {first:8.2f}")
    print(f"  later                        {again:8.2f}")
    print(f"  later, one tool is a copy    {changed:8.2f}")
    return max(again, changed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=150)
    share = turn_cost(parser.parse_args().turns)
    ms = many_tools()
    holds = share < 0.01 and ms < 10
    print(f"\n{'both claims hold' if holds else 'A CLAIM DOES NOT HOLD'}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
