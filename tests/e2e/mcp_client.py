"""One official SDK client, of whichever version is installed here, that prints what it saw as JSON.

    python mcp_client.py stdio COMMAND ... | http URL
    ERA=auto python mcp_client.py ...                   the newest protocol that both sides know (SDK 2)

It lists everything, calls every name in `ASK_FOR` (JSON in the environment), and reads every URI there.
"""

import asyncio
import contextlib
import importlib
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def open_streams():
    if sys.argv[1] == "stdio":
        return stdio_client(StdioServerParameters(command=sys.argv[2], args=sys.argv[3:]))
    module = importlib.import_module("mcp.client.streamable_http")
    connect = getattr(module, "streamable_http_client", None) or module.streamablehttp_client
    return connect(sys.argv[2])


async def attempt(work):
    """The text of an answer, or `refused: …`."""
    try:
        result = await work
    except Exception as error:  # noqa: BLE001 - the SDKs name their errors differently
        return f"refused: {error}"
    said = result.model_dump(by_alias=True, mode="json")
    rows = said.get("content") or said.get("contents") or said.get("messages") or [{}]
    text = str(rows[0].get("text") or rows[0].get("content", {}).get("text"))
    return f"refused: {text}" if said.get("isError") else text


@contextlib.asynccontextmanager
async def opened():
    """A session and its protocol version."""
    if os.environ.get("ERA") == "auto":
        connect = importlib.import_module("mcp.client.client").Client
        async with connect(sys.argv[2] if sys.argv[1] == "http" else open_streams()) as client:
            yield client, client.protocol_version
        return
    async with open_streams() as streams, ClientSession(streams[0], streams[1]) as session:
        hello = await session.initialize()
        yield session, hello.model_dump(by_alias=True)["protocolVersion"]


async def main():
    wanted = json.loads(os.environ["ASK_FOR"])
    async with opened() as (session, version):
        found = {"version": version}
        for kind in ("tools", "resources", "prompts", "resource_templates"):
            rows = (await getattr(session, f"list_{kind}")()).model_dump(by_alias=True, mode="json")
            (rows,) = [value for key, value in rows.items() if isinstance(value, list)]
            found[kind] = [row.get("uri") or row.get("uriTemplate") or row["name"] for row in rows]
        given = wanted.get("arguments", {"a": 1, "b": 2})
        found["calls"] = {name: await attempt(session.call_tool(name, given)) for name in wanted["tools"]}
        found["reads"] = {uri: await attempt(session.read_resource(uri)) for uri in wanted["resources"]}
        found["gets"] = {name: await attempt(session.get_prompt(name, {})) for name in wanted["prompts"]}
    print(json.dumps(found))


asyncio.run(main())
