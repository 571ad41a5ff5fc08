// Outlive in OpenCode: every event is told to `outlive hook opencode EVENT`, which decides; what it says is put before
// the model here. `outlive install` writes this file, and `outlive uninstall` removes it.
//
// Whatever goes wrong, OpenCode goes on as if this were not here: nothing in this file throws, and nobody is waited for
// longer than PATIENCE_MS.

import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"

const COMMAND = []
const GUARD = "advise"

const PATIENCE_MS = 6000
const FAREWELL_MS = 1500
const MOST_FAREWELLS = 8
const WAKE_CODE = 2
const SERVER = "-I -m outlive mcp"
const LAST_MESSAGES = 50
// Before these the guard is asked; of what they are given, it needs these.
const CHANGING = ["bash", "edit", "write", "apply_patch", "patch"]
const GUARDED = [...CHANGING, "read", "grep", "glob", "list"]
const TELLING = ["command", "description", "filePath", "path", "patchText"]
// Requests that are not part of the conversation.
const ASIDE = ["title", "summary"]

// `opencode run` ends when its turn does, so it can only be held before that; everything else stays, and is woken.
const words = process.argv.slice(2)
const isOneTurn = words.find((word) => !word.startsWith("-")) === "run" && !words.some((word) => ["-i", "--interactive"].includes(word))

/** What a hook answers, and its exit code; nothing if it failed or took too long. */
function call(event, payload, { more = [], isPatient = false, started = () => {} } = {}) {
  return new Promise((resolve) => {
    try {
      const [program, ...rest] = COMMAND
      // A session of its own: what a person types into the terminal is not meant for it.
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
      if (isPatient) child.unref()
      started(child)
    } catch {
      resolve({ code: -1, out: "", err: "" })
    }
  })
}

/** What is for the model in an answer: beside what it reads next, and why it must not stop. */
async function ask(event, payload, more) {
  const { code, out } = await call(event, payload, { more })
  try {
    const answer = code === 0 && out.trim() ? JSON.parse(out) : {}
    const specific = answer.hookSpecificOutput ?? {}
    return { context: specific.additionalContext ?? "", input: specific.updatedInput, reason: answer.reason ?? "" }
  } catch {
    return { context: "", reason: "" }
  }
}

/** The same hook, which cannot fail. */
function quietly(hook) {
  return async (...given) => {
    try {
      return await hook(...given)
    } catch {
      return undefined
    }
  }
}

/** A name for a part that sorts after another, as OpenCode makes them: the time in hexadecimal, then anything. */
function idAfter(id) {
  const time = BigInt(`0x${id.slice(4, 16)}`) + 1n
  return `prt_${time.toString(16).padStart(12, "0")}${randomBytes(7).toString("hex")}`
}

/** Whether rules let every command pass unasked; any pattern that might be about a command must say so. */
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

  /** What is remembered of a session; one that was not seen to be created has been resumed. */
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

  /** The session that a person talks to: sub-agents work in sessions of their own, for it. */
  async function root(it) {
    let top = it
    for (let depth = 0; top.parent && depth < 16; depth++) top = await session(top.parent)
    return top
  }

  function about(it, more) {
    // What was told has been read once the model has been asked again since.
    const hasRead = it.requests > it.told && it.owed.length === 0
    return { session_id: it.id, cwd: directory, has_read: hasRead, is_one_turn: isOneTurn, ...more }
  }

  /** The notices that stand in the history of a session that is resumed: killed or not, it has got them. */
  async function keptBy(it) {
    const options = { path: { id: it.id }, query: { limit: LAST_MESSAGES } }
    const { data } = await client.session.messages(options)
    return [...new Set(JSON.stringify(data ?? []).match(/\bnotice n\w+/g))].join(" ")
  }

  /** What there is to say to a session here; told by whoever calls. */
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

  function childrenOf(it) {
    return [...it.children].map(([id, title]) => ({ id, title }))
  }

  function noteChildren(top, child) {
    const note = () => call("session.created", about(top, { agent_id: child, children: childrenOf(top) }))
    top.noting = (top.noting ?? Promise.resolve()).then(note)
  }

  /** What is said at the end of a turn. */
  function stop(it) {
    return ask("session.idle", about(it, { stop_hook_active: it.isAgain, children: childrenOf(it) }))
  }

  /** A message to a session; it takes a turn for it, unless one is about to be taken anyway. */
  async function speak(it, why, text, noReply) {
    const body = { ...it.how, parts: [{ type: "text", text, metadata: { outlive: why } }] }
    const options = { path: { id: it.id }, body: noReply ? { ...body, noReply } : body }
    const answer = await (noReply ? client.session.prompt(options) : client.session.promptAsync(options))
    if (answer.error) throw answer.error
    return answer.data
  }

  /** A turn for a session that is idle; what must not be lost, should it be idle no more, is told where it is next. */
  async function wake(it, why, news, reason) {
    const text = [news, reason].filter(Boolean).join("\n\n")
    if (!text) return
    try {
      if (it.isBusy) throw new Error("it takes a turn already")
      await speak(it, why, text)
    } catch {
      if (news) it.owed.push(news)
    }
  }

  /** Whether its turn came to its end; of one that was interrupted, the error may be told after that it is idle. */
  async function hasFinished(it) {
    const { data } = await client.session.messages({ path: { id: it.id }, query: { limit: 1 } })
    const last = data?.at(-1)?.info
    return last?.role === "assistant" && ["stop", "length"].includes(last.finish) && !last.error
  }

  /** The turn is over, and the session stays: it may have to go on, or is watched over from now on. */
  async function rest(it) {
    it.watch ??= call("Wake", about(it), { isPatient: true, started: (child) => (it.watcher = child) }).then(
      async ({ code, err }) => {
        it.watch = it.watcher = undefined
        if (code === WAKE_CODE) await wake(it, "wake", err.trim())
      },
    )
    const { context, reason } = await stop(it)
    await wake(it, "gate", taken(it, context), reason)
  }

  /** The turn may be over after this text, and everything with it: a message that is there by then makes it go on. */
  async function hold(it) {
    const request = it.requests
    const { context, reason } = await stop(it)
    const said = taken(it, context)
    const text = [said, reason].filter(Boolean).join("\n\n")
    if (!text) return
    try {
      if (it.usedTools === request) throw new Error("it was not over")
      const message = await speak(it, "gate", text, true)
      it.held = { part: message.parts[0], said, request }
    } catch {
      if (said) it.owed.push(said)
    }
  }

  /** It was not over: a tool is used after that text. What was to be told is told beside its result. */
  async function letGo(it) {
    await it.holding
    const held = it.held
    it.held = undefined
    if (!held || held.request !== it.requests) return
    // A message cannot be deleted while a turn is taken, but what it says can, and one that says nothing is not sent.
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
        if (top.children.delete(id)) noteChildren(top, id)
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
        top.children.set(it.id, it.title ?? "")
        noteChildren(top, it.id)
        return
      }
      const own = output.parts.find((part) => part.metadata?.outlive)
      if (own) {
        it.told = it.requests
        it.isAgain = own.metadata.outlive === "gate"
        return
      }
      it.isAgain = false
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
      // OpenCode does not tell the servers of its tools which session calls.
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
      const { context, input: better } = await ask("tool.execute.before", payload, ["--guard", GUARD])
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
      // The stream goes on meanwhile, and a tool may be used before we have said a word.
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
