// The TypeScript SDK's client, that prints what it saw as JSON; what `mcp_client.py` is in Python.
//
//     node mcp_client.mjs PACKAGE stdio COMMAND ... | http URL
//
// PACKAGE: @modelcontextprotocol/sdk (1.x) or @modelcontextprotocol/client (2.x), found from the working directory. It
// lists everything, calls every name in ASK_FOR (JSON in the environment), and reads every URI there.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [kind, transport, ...where] = process.argv.slice(2);
const require = createRequire(`${process.cwd()}/x.cjs`);
const load = async (name) => {
  const module = await import(pathToFileURL(require.resolve(name)));
  return module.default && !module.Client ? { ...module.default, ...module } : module;
};

async function connected() {
  const isOld = kind === "@modelcontextprotocol/sdk";
  const { Client } = await load(isOld ? `${kind}/client/index.js` : kind);
  const { StdioClientTransport } = await load(`${kind}${isOld ? "/client/stdio.js" : "/stdio"}`);
  const { StreamableHTTPClientTransport } = await load(isOld ? `${kind}/client/streamableHttp.js` : kind);
  const client = new Client({ name: "extgate-e2e", version: "1" }, { capabilities: {} });
  const stdio = { command: where[0], args: where.slice(1), stderr: "ignore" };
  await client.connect(transport === "stdio" ? new StdioClientTransport(stdio) : new StreamableHTTPClientTransport(new URL(where[0])));
  return client;
}

async function attempt(work) {
  try {
    const said = await work;
    const rows = said.content ?? said.contents ?? said.messages ?? [{}];
    const text = String(rows[0]?.text ?? rows[0]?.content?.text);
    return said.isError ? `refused: ${text}` : text;
  } catch (error) {
    return `refused: ${error.message}`;
  }
}

async function all(client, method, key) {
  const rows = [];
  let cursor;
  do {
    const page = await client[method](cursor ? { cursor } : {});
    rows.push(...page[key]);
    cursor = page.nextCursor;
  } while (cursor);
  return rows.map((row) => row.uri ?? row.uriTemplate ?? row.name);
}

const wanted = JSON.parse(process.env.ASK_FOR);
const client = await connected();
const found = {
  tools: await all(client, "listTools", "tools"),
  resources: await all(client, "listResources", "resources"),
  prompts: await all(client, "listPrompts", "prompts"),
  resource_templates: await all(client, "listResourceTemplates", "resourceTemplates"),
  calls: {}, reads: {}, gets: {},
};
for (const name of wanted.tools) found.calls[name] = await attempt(client.callTool({ name, arguments: wanted.arguments ?? {} }));
for (const uri of wanted.resources) found.reads[uri] = await attempt(client.readResource({ uri }));
for (const name of wanted.prompts) found.gets[name] = await attempt(client.getPrompt({ name, arguments: {} }));
await client.close();
process.stdout.write(`${JSON.stringify(found)}\n`, () => process.exit(0));
