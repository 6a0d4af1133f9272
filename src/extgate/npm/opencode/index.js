// Asks `extgate hook opencode` before each tool call. Anything but an answer that says `pass` is a refusal, which the
// model reads as the tool's result. Options: { command: [program, ...arguments], timeout_ms }.
// Seen with opencode 1.18.33: `tool.execute.before` runs for built-in, custom and MCP tools, and in sub-agents.

import { spawn } from "node:child_process"

const MAX_ANSWER = 65536
const TIMEOUT_MS = 60000

const refused = (why) => new Error(`extgate refuses this call: ${why}`)

function ask(command, question, timeout_ms) {
  return new Promise((resolve, reject) => {
    let child
    try {
      child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
    } catch (error) {
      reject(refused(`its gate does not start (${error.code ?? error.name})`))
      return
    }
    let answer = ""
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      reject(refused("its gate did not answer in time"))
    }, timeout_ms)
    child.on("error", (error) => {
      clearTimeout(timer)
      reject(refused(`its gate does not start (${error.code ?? error.name})`))
    })
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (part) => {
      answer += part
      if (answer.length <= MAX_ANSWER) return
      reject(refused("its gate said too much")) // it may have ended already, so that killing it tells nothing
      child.kill("SIGKILL")
    })
    child.on("close", (code) => {
      clearTimeout(timer)
      if (code !== 0) reject(refused("its gate failed"))
      else resolve(answer)
    })
    child.stdin.on("error", () => {}) // it ended before it had read all, and `close` says how
    child.stdin.end(question)
  })
}

async function judge(command, call, timeout_ms) {
  const answer = await ask(command, JSON.stringify(call), timeout_ms)
  let said
  try {
    said = JSON.parse(answer)
  } catch {
    throw refused("its gate gave no answer")
  }
  if (said?.decision !== "pass") throw new Error(typeof said?.reason === "string" ? said.reason : "extgate refuses this call")
}

export const Extgate = async ({ directory }, options) => {
  const command = options?.command
  const isUsable = Array.isArray(command) && command.length > 0 && command.every((word) => typeof word === "string")
  const timeout_ms = Number.isFinite(options?.timeout_ms) ? options.timeout_ms : TIMEOUT_MS
  const agents = new Map() // by session, the agent of its last message
  const children = new Set() // sessions that another started
  return {
    event: async ({ event }) => {
      const info = event?.type === "session.created" ? event.properties?.info : undefined
      if (info?.parentID) children.add(info.id)
      if (info?.parentID && info.agent) agents.set(info.id, info.agent)
    },
    "chat.message": async (input, output) => {
      const agent = output?.message?.agent ?? input.agent
      if (agent) agents.set(input.sessionID, agent)
    },
    "tool.execute.before": async (input, output) => {
      if (!isUsable) throw refused("its plugin was given no command; run `extgate apply opencode` again")
      const agent = agents.get(input.sessionID)
      if (!agent) throw refused("it cannot be told which agent makes it")
      const call = {
        tool: input.tool,
        args: output.args ?? {},
        agent,
        is_child: children.has(input.sessionID),
        session: input.sessionID,
        cwd: directory,
      }
      await judge(command, call, timeout_ms)
    },
  }
}

export default Extgate
