"""The Python SDK's client that listens: prints `changed METHOD` for each notice of a list, and the tools when asked.

python listening_client.py stdio COMMAND ... | http URL        each line on stdin: lists the tools; its end: ends
"""

import asyncio
import importlib
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def open_streams():
    if sys.argv[1] == "stdio":
        return stdio_client(StdioServerParameters(command=sys.argv[2], args=sys.argv[3:]))
    module = importlib.import_module("mcp.client.streamable_http")
    connect = getattr(module, "streamable_http_client", None) or module.streamablehttp_client
    return connect(sys.argv[2])


async def heard(message):
    said = message.model_dump() if hasattr(message, "model_dump") else {}
    if str(said.get("method", "")).endswith("list_changed"):
        print("changed", said["method"], flush=True)


async def main():
    async with open_streams() as streams, ClientSession(streams[0], streams[1], message_handler=heard) as session:
        await session.initialize()
        while await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(sorted(tool.name for tool in (await session.list_tools()).tools)), flush=True)


asyncio.run(main())
