// The TypeScript SDK's client that listens; what `listening_client.py` is in Python.
//
//     node listening_client.mjs stdio COMMAND ... | http URL

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [transport, ...where] = process.argv.slice(2);
const require = createRequire(`${process.cwd()}/x.cjs`);
const load = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)));
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { ToolListChangedNotificationSchema } = await load("types.js");

const client = new Client({ name: "extgate-e2e", version: "1" }, { capabilities: {} });
client.setNotificationHandler(ToolListChangedNotificationSchema, (said) => console.log(`changed ${said.method}`));
const stdio = { command: where[0], args: where.slice(1), stderr: "ignore" };
await client.connect(transport === "stdio" ? new StdioClientTransport(stdio) : new StreamableHTTPClientTransport(new URL(where[0])));
for await (const _ of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify((await client.listTools()).tools.map((tool) => tool.name).sort()));
}
await client.close();
