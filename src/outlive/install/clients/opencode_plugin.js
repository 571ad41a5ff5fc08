// Outlive in OpenCode: this plugin passes every event to `outlive hook opencode EVENT`, and gives the answer of this
// command to the model. `outlive install` writes this file, and `outlive uninstall` removes it. The text up to the
// first colon must not change, because uninstalling recognises this file by it.
//
// A failure here never stops OpenCode: no hook in this file throws, and no hook waits longer than PATIENCE_MS. The only
// exception is the hook at the end of `opencode run`. Without its wait, OpenCode would exit before its tasks end.

import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { watch } from "node:fs"

const COMMAND = []
const GUARD = "advise"

const PATIENCE_MS = 6000
const FAREWELL_MS = 1500
const MOST_FAREWELLS = 8
const WAKE_CODE = 2
const SERVER = "-I -m outlive mcp"
const LAST_MESSAGES = 50
const LOOK_MS = 2000
// The guard is called before the GUARDED tools. It needs only the TELLING fields of their arguments.
const CHANGING = ["bash", "edit", "write", "apply_patch", "patch"]
const GUARDED = [...CHANGING, "read", "grep", "glob", "list"]
const TELLING = ["command", "description", "filePath", "path", "patchText"]
// The agents of requests that are not part of the conversation.
const ASIDE = ["title", "summary"]
// The options of OpenCode whose value is the next word (as of 1.18.33). These options may stand before the command.
const WITH_VALUE = ["--log-level", "--port", "--hostname", "-m", "--model", "-s", "--session", "--prompt", "--agent"]

// `opencode run` exits at the end of its turn, so it can be kept running only before that. All other commands keep
// running after a turn, so they can be woken.
const words = process.argv.slice(2)
const command = words.find((word, at) => !word.startsWith("-") && !WITH_VALUE.includes(words[at - 1]))
const isOneTurn = command === "run" && !words.some((word) => ["-i", "--interactive"].includes(word))

/**
 * Call a hook. Return its output and its exit code, which is not 0 if the hook failed or took too long.
 *
 * With `isPatient`, the hook has no time limit. With `isAside`, the hook does not keep OpenCode running.
 */
function call(event, payload, { more = [], isPatient = false, isAside = false, started = () => {} } = {}) {
  return new Promise((resolve) => {
    try {
      const [program, ...rest] = COMMAND
      // The hook gets its own session, so that a signal from the terminal, such as Ctrl-C, does not reach it.
      const child = spawn(program, [...rest, event, ...more], { stdio: ["pipe", "pipe", "pipe"], detached: true })
      const said = { out: "", err: "" }
      const timer = isPatient ? undefined : setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS)
      const end = (code) => {
        clearTimeout(timer)
        resolve({ code, ...said })
      }
      child.on("error", () => end(-1))
      child.on("close", end)
      child.stdin.on("error", () => {})
      for (const [name, stream] of [["out", child.stdout], ["err", child.stderr]]) {
        stream.setEncoding("utf8")
        stream.on("data", (text) => (said[name] += text))
      }
      child.stdin.end(JSON.stringify(payload))
      if (isAside) child.unref()
      started(child)
    } catch {
      resolve({ code: -1, out: "", err: "" })
    }
  })
}

/** Call a hook. Return its text for the model, the new input of a tool, and the reason not to stop. */
async function ask(event, payload, options) {
  const { code, out } = await call(event, payload, options)
  try {
    const answer = code === 0 && out.trim() ? JSON.parse(out) : {}
    const specific = answer.hookSpecificOutput ?? {}
    const { reason = "", look_file: lookFile, given_up: givenUp } = answer
    return { context: specific.additionalContext ?? "", input: specific.updatedInput, reason, lookFile, givenUp }
  } catch {
    return { context: "", reason: "" }
  }
}

/** Wrap a hook so that it cannot fail. */
function quietly(hook) {
  return async (...given) => {
    try {
      return await hook(...given)
    } catch {
      return undefined
    }
  }
}

/** Return an id that sorts after another id. An id of OpenCode is the time in hexadecimal, then random text. */
function idAfter(id) {
  const time = BigInt(`0x${id.slice(4, 16)}`) + 1n
  return `prt_${time.toString(16).padStart(12, "0")}${randomBytes(7).toString("hex")}`
}

/** Return whether rules allow every command without asking. All patterns that may match a command must allow it. */
function areOpen(rules) {
  if (rules === undefined || rules === "allow") return true
  if (typeof rules !== "object" || rules === null) return false
  const listed = Array.isArray(rules) ? rules.map((each) => [each.permission, each.action]) : Object.entries(rules)
  return listed.every(([name, rule]) => (name !== "bash" && !/[*?]/.test(name)) || rule === "allow")
}

function brief(args) {
  return Object.fromEntries(Object.entries(args ?? {}).filter(([name]) => TELLING.includes(name)))
}

export const Outlive = async ({ client, directory }) => {
  const known = new Map()
  const advice = new Map()
  let asksNobody = false
  let hasServer = false

  /** Store a new record of a session. If the plugin did not see its creation, the session was resumed. */
  function remember(id, info, source) {
    const fresh = {
      id,
      title: info?.title,
      parent: info?.parentID,
      isOpen: areOpen(info?.permission),
      source,
      requests: 0,
      told: -1,
      owed: [],
      children: new Map(),
      isAgain: false,
      isBusy: false,
      hasFailed: false,
    }
    known.set(id, fresh)
    return fresh
  }

  async function session(id) {
    const found = known.get(id)
    if (found) return found
    const info = await client.session.get({ path: { id } }).then(
      (answer) => answer.data,
      () => undefined,
    )
    return known.get(id) ?? remember(id, info, "resume")
  }

  /** Return the session that a person talks to. The sub-agents of this session have their own sessions. */
  async function root(it) {
    let top = it
    for (let depth = 0; top.parent && depth < 16; depth++) top = await session(top.parent)
    return top
  }

  function about(it, more) {
    // The model has read its notices if another request was sent after the notices were added.
    const hasRead = it.requests > it.told && it.owed.length === 0
    return { session_id: it.id, cwd: directory, has_read: hasRead, is_one_turn: isOneTurn, ...more }
  }

  /** Return the notices in the history of a resumed session. The session has received them, even if it was killed. */
  async function keptBy(it) {
    const options = { path: { id: it.id }, query: { limit: LAST_MESSAGES } }
    const { data } = await client.session.messages(options)
    return [...new Set(JSON.stringify(data ?? []).match(/\bnotice n\w+/g))].join(" ")
  }

  /** Call a hook for a session, and return the text that the caller must give to the model. */
  async function news(it, event, more) {
    const source = it.source
    it.source = undefined
    const kept = source === "resume" ? await keptBy(it).catch(() => "") : undefined
    const answer = await ask(event, about(it, { source, kept, ...more }))
    return taken(it, answer.context)
  }

  function taken(it, ...texts) {
    const said = [...it.owed.splice(0), ...texts].filter(Boolean).join("\n\n")
    if (said) it.told = it.requests
    return said
  }

  /** Return a session's child sessions, or undefined if the last check did not find all of them in OpenCode. */
  function childrenOf(it) {
    const children = [...it.children.values()]
    return children.every(({ sight }) => sight === "present") ? children : undefined
  }

  function addChild(top, { id, title = "", agent, parentID }) {
    top.children.set(id, { id, title, agent, parent: parentID, sight: "present" })
  }

  /**
   * Check the child sessions of a session. Report them if OpenCode does not find one of them, or if `hasChanged` is
   * set.
   *
   * All processes of OpenCode share one store. If another process deletes a session, this process gets no event.
   */
  function look(top, hasChanged = false) {
    top.looking = (top.looking ?? Promise.resolve()).then(() => lookOnce(top, hasChanged)).catch(() => {})
    return top.looking
  }

  async function lookOnce(top, hasChanged) {
    // A child session may begin another turn while OpenCode answers. Then a new object stands for the child session.
    const busy = [...top.children.values()].filter(({ id }) => known.get(id)?.isBusy)
    const late = new Promise((resolve) => setTimeout(resolve, LOOK_MS).unref())
    const asked = async () => Promise.all([client.session.children({ path: { id: top.id } }), client.session.status()])
    const answers = await Promise.race([asked().catch(() => undefined), late])
    const [listed, statuses] = answers?.map(({ data }) => data) ?? []
    const isIdle = (id) => statuses !== undefined && (statuses[id]?.type ?? "idle") === "idle"
    for (const child of [...top.children.values()]) {
      const isListed = listed?.some(({ id }) => id === child.id)
      const sight = isListed && statuses ? "present" : await Promise.race([sightOf(child.id), late.then(() => "unknown")])
      // A child session that is not found is always reported. A second such report may mean that it is lost.
      hasChanged ||= sight !== "present" || child.sight !== "present"
      child.sight = sight
      // The turn of the child session is over, even if no event reported this.
      if (sight !== "present" || !isIdle(child.id) || !busy.includes(child) || top.children.get(child.id) !== child) continue
      top.children.delete(child.id)
      hasChanged = true
    }
    if (hasChanged) await report(top)
  }

  /** Return whether OpenCode has a session. This is necessary because the list of children lacks grandchildren. */
  async function sightOf(id) {
    try {
      const { data, response } = await client.session.get({ path: { id } })
      if (data) return "present"
      return response?.status === 404 ? "absent" : "unknown"
    } catch {
      return "unknown"
    }
  }

  async function report(top) {
    const children = [...top.children.values()]
    const { lookFile, givenUp } = await ask("session.created", about(top, { agent_id: top.id, children }))
    for (const id of givenUp ?? []) top.children.delete(id)
    heedRequests(top, lookFile)
  }

  /** Check the child sessions whenever another process asks for this by writing to `file`, as long as there are any. */
  function heedRequests(top, file) {
    const { asked } = top
    if (asked && (top.children.size === 0 || (file && file !== asked.file))) {
      asked.watcher.close()
      top.asked = undefined
    }
    if (top.asked || top.children.size === 0 || !file) return
    try {
      const watcher = watch(file, { persistent: false }, () => {
        top.answering ??= look(top).finally(() => (top.answering = undefined))
      })
      watcher.on("error", () => {})
      top.asked = { file, watcher }
    } catch {
      // The file was deleted. The hook creates the file again at the next report.
    }
  }

  /** Call the hook at the end of a turn, and return its answer. */
  function stop(it, options) {
    return ask("session.idle", about(it, { stop_hook_active: it.isAgain, children: childrenOf(it) }), options)
  }

  /** Send a message to a session. The message starts a turn, unless `noReply` is set. */
  async function speak(it, why, text, noReply) {
    const body = { ...it.how, parts: [{ type: "text", text, metadata: { outlive: why } }] }
    const options = { path: { id: it.id }, body: noReply ? { ...body, noReply } : body }
    const answer = await (noReply ? client.session.prompt(options) : client.session.promptAsync(options))
    if (answer.error) throw answer.error
    return answer.data
  }

  /** Start a turn of an idle session. If the session has become busy, its next hook delivers the news. */
  async function wake(it, why, news, reason) {
    const text = [news, reason].filter(Boolean).join("\n\n")
    if (!text) return
    try {
      if (it.isBusy) throw new Error("the session is busy")
      await speak(it, why, text)
    } catch {
      if (news) it.owed.push(news)
    }
  }

  /** Return whether the turn ended normally. After an interruption, the error event may follow the idle event. */
  async function hasFinished(it) {
    const { data } = await client.session.messages({ path: { id: it.id }, query: { limit: 1 } })
    const last = data?.at(-1)?.info
    return last?.role === "assistant" && ["stop", "length"].includes(last.finish) && !last.error
  }

  /** Handle the end of a turn in a client that keeps running: start a watcher, and continue if the hook says so. */
  async function rest(it) {
    it.watch ??= call("Wake", about(it), { isPatient: true, isAside: true, started: (child) => (it.watcher = child) }).then(
      async ({ code, err }) => {
        it.watch = it.watcher = undefined
        if (code === WAKE_CODE) await wake(it, "wake", err.trim())
      },
    )
    await look(it)
    const { context, reason } = await stop(it)
    await wake(it, "gate", taken(it, context), reason)
  }

  /**
   * Keep `opencode run` from exiting while tasks run. After the current text, the turn may end and OpenCode may exit.
   * If a message is sent before that, the turn continues. The hook sleeps until no task of the session runs.
   */
  async function hold(it) {
    const request = it.requests
    const { context, reason } = await stop(it, { isPatient: true, started: (child) => (it.sleeper = child) })
    it.sleeper = undefined
    const said = taken(it, context)
    const text = [said, reason].filter(Boolean).join("\n\n")
    if (!text) return
    try {
      if (it.usedTools === request) throw new Error("the turn was not over")
      const message = await speak(it, "gate", text, true)
      it.held = { part: message.parts[0], said, request }
    } catch {
      if (said) it.owed.push(said)
    }
  }

  /** Undo `hold` if a tool is used after the text, because the turn was not over. A tool result then gets the news. */
  async function letGo(it) {
    it.sleeper?.kill()
    await it.holding
    const held = it.held
    it.held = undefined
    if (!held || held.request !== it.requests) return
    // OpenCode does not delete a message during a turn, but it deletes the message's part, and sends no empty message.
    const path = { id: it.id, messageID: held.part.messageID, partID: held.part.id }
    const { error } = await client._client.delete({ url: "/session/{id}/message/{messageID}/part/{partID}", path })
    if (error) return
    it.isAgain = false
    if (held.said) it.owed.push(held.said)
  }

  async function hear(type, properties) {
    const id = properties.sessionID ?? properties.info?.id ?? properties.part?.sessionID
    if (type === "session.created") {
      remember(id, properties.info, "startup")
      return
    }
    const it = known.get(id)
    if (!it) return
    if (type === "message.part.updated") {
      if (properties.part.type === "tool") it.usedTools = it.requests
    } else if (type === "session.status") {
      it.isBusy = properties.status?.type !== "idle"
    } else if (type === "session.error") {
      it.hasFailed = true
    } else if (type === "session.compacted") {
      it.source ??= "compact"
    } else if (type === "session.idle" || type === "session.deleted") {
      it.isBusy = false
      if (it.parent) {
        const top = await root(it)
        // If a child session is deleted before its turn ended, keep it in `children`, so that `look` reports it as
        // absent.
        const isOver = type === "session.idle" ? top.children.delete(id) : top.children.has(id)
        if (isOver) void look(top, true)
      } else if (type === "session.deleted") {
        known.delete(id)
        it.watcher?.kill()
        await call("session.deleted", about(it, { reason: "deleted" }))
      } else if (!isOneTurn && !it.hasFailed && (await hasFinished(it))) {
        await rest(it)
      }
    }
  }

  return {
    config: quietly(async (config) => {
      const agents = Object.values({ ...config.mode, ...config.agent })
      asksNobody = areOpen(config.permission) && agents.every((agent) => areOpen(agent?.permission))
      hasServer = config.mcp?.outlive?.command?.slice(1).join(" ") === SERVER
    }),

    event: quietly(async ({ event }) => hear(event.type, event.properties ?? {})),

    "chat.message": quietly(async (input, output) => {
      const it = await session(input.sessionID)
      const { agent, model } = output.message
      it.how = { agent, model: { providerID: model.providerID, modelID: model.modelID }, variant: model.variant }
      it.hasFailed = false
      const top = await root(it)
      if (top !== it) {
        addChild(top, { id: it.id, title: it.title, agent, parentID: it.parent })
        void look(top, true)
        return
      }
      const own = output.parts.find((part) => part.metadata?.outlive)
      if (own) {
        it.told = it.requests
        it.isAgain = own.metadata.outlive === "gate"
        return
      }
      it.isAgain = false
      await look(it)
      const text = await news(it, "chat.message")
      const last = output.parts.at(-1)
      if (!text) return
      const place = { id: idAfter(last.id), sessionID: last.sessionID, messageID: last.messageID }
      output.parts.push({ ...place, type: "text", text, synthetic: true })
    }),

    "chat.params": quietly(async (input) => {
      const it = known.get(input.sessionID)
      const agent = typeof input.agent === "string" ? input.agent : input.agent?.name
      if (!it || ASIDE.includes(agent)) return
      it.isSummary = agent === "compaction"
      it.hasFailed = false
      if (!it.isSummary) it.requests++
    }),

    "shell.env": quietly(async (input, output) => {
      if (input.sessionID) output.env.OUTLIVE_SESSION = (await root(await session(input.sessionID))).id
    }),

    "tool.execute.before": quietly(async (input, output) => {
      const it = await session(input.sessionID)
      const top = await root(it)
      // OpenCode does not pass the id of the calling session to an MCP server.
      if (hasServer && input.tool.startsWith("outlive_") && output.args) output.args.outlive_session = top.id
      it.usedTools = it.requests
      await letGo(it)
      if (GUARD === "off" || !GUARDED.includes(input.tool)) return
      const payload = about(top, {
        agent_id: top === it ? undefined : it.id,
        tool_name: input.tool,
        tool_input: brief(output.args),
        asks_nobody: asksNobody && it.isOpen,
      })
      const { context, input: better } = await ask("tool.execute.before", payload, { more: ["--guard", GUARD] })
      if (context) advice.set(input.callID, context)
      if (better) Object.assign(output.args, better)
    }),

    "tool.execute.after": quietly(async (input, output) => {
      const it = await session(input.sessionID)
      const top = await root(it)
      const used = { tool_name: input.tool, tool_input: brief(input.args) }
      const advised = advice.get(input.callID)
      advice.delete(input.callID)
      let said = advised
      if (top === it) said = [advised, await news(it, "tool.execute.after", used)].filter(Boolean).join("\n\n")
      else if (CHANGING.includes(input.tool)) await ask("tool.execute.after", about(top, { agent_id: it.id, ...used }))
      if (!said) return
      if (typeof output.output === "string") output.output += `\n\n${said}`
      else output.content.unshift({ type: "text", text: said })
    }),

    "experimental.text.complete": quietly(async (input) => {
      const it = known.get(input.sessionID)
      if (!isOneTurn || !it || it.parent || it.isSummary || it.hasFailed || it.usedTools === it.requests) return
      // The stream continues meanwhile, and a tool may be used before `hold` has sent its message.
      it.holding = hold(it)
      await it.holding
    }),

    "experimental.session.compacting": quietly(async (input) => {
      const it = await session(input.sessionID)
      if (!it.parent) void call("experimental.session.compacting", about(it))
    }),

    dispose: quietly(async () => {
      const begun = [...known.values()].filter((it) => !it.parent && it.requests > 0)
      for (const it of begun) it.watcher?.kill()
      const farewells = begun.slice(-MOST_FAREWELLS).map((it) => call("dispose", about(it, { reason: "dispose" })))
      await Promise.race([Promise.all(farewells), new Promise((resolve) => setTimeout(resolve, FAREWELL_MS))])
    }),
  }
}
