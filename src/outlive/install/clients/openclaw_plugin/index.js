// Outlive in OpenClaw: every event goes to `outlive hook openclaw EVENT`, which decides; here is only what OpenClaw
// does not let another program see or do. The line above must not change, because uninstalling recognises this file by
// it. A failure here never stops OpenClaw.

import { AsyncLocalStorage } from "node:async_hooks";
import { spawn } from "node:child_process";

// The hook's own deadline is shorter. OpenClaw blocks a tool after 15 s without an answer.
const PATIENCE_MS = 10000;
const LONGEST_ANSWER = 1 << 20;
const WAKE_CODE = 2;
// How many turns in a row are requested for a session that gets no notices in them. Every turn costs tokens.
const MOST_NUDGES = 3;
// Tools that run a command, change files or read them.
const TOUCHING = ["exec", "write", "edit", "apply_patch", "read", "ls"];
// The triggers of turns that no person started and that the history does not keep. Notices are presented in such a turn
// only if this plugin requested the turn.
const UNSEEN = ["heartbeat", "memory"];
// The keys of sessions that give only one answer. Such a session ends when it has no task left to wait for.
const ONE_ANSWER = /:(cron|hook):/;
const NUDGE = "A background task of this session has ended: see [outlive]. Continue the work that waited for it.";

// OpenClaw loads this plugin several times in one process and calls any of the copies, so the state is global. Sessions
// are stored by their key, because a session keeps its key when its id changes.
const MEMORY = Symbol.for("outlive");
globalThis[MEMORY] ??= { sessions: new Map(), parents: new Map(), advice: new Map() };
const { sessions, parents, advice } = globalThis[MEMORY];

export default {
  id: "outlive",
  name: "Outlive",
  description: "Background tasks that outlive the session that started them",
  register,
};

function register(api) {
  const command = api.pluginConfig?.command;
  if (!Array.isArray(command) || command.length === 0) return;
  const guard = api.pluginConfig.guard ?? "advise";
  const isOurServer = api.config?.mcp?.servers?.outlive?.args?.join(" ") === "-I -m outlive mcp";
  // Work that continues after a hook must run outside the hook's async context, because the hook's rights end with the
  // hook.
  const outside = AsyncLocalStorage.snapshot();
  const on = (name, act, options) => api.on(name, (event, ctx) => calmly(api, () => act(event, ctx ?? {})), options);
  const ask = (event, one, fields) => call(command, event, one, fields);

  on("before_prompt_build", async (event, ctx) => {
    const one = known(ctx);
    if (!one || isChild(one) || (UNSEEN.includes(ctx.trigger) && !one.isNudged)) return;
    const turn = `${ctx.runId} ${event.prompt}`;
    // If a prompt is built again for the same request, give the same answer, because the first prompt may not have been
    // sent.
    if (one.turn !== turn) {
      one.told = await (one.isBegun ? ask("before_prompt_build", one) : begin(ask, one, event));
      one.turn = turn;
      one.run = ctx.runId;
      one.isNudged = false;
      if (one.told?.context) one.isUnconfirmed = true;
      if (one.told?.context || !UNSEEN.includes(ctx.trigger)) one.nudges = 0;
    }
    return one.told?.context ? { prependContext: one.told.context } : undefined;
  });

  on("resolve_exec_env", (event, ctx) => {
    const one = known(ctx);
    return one && event.host === "gateway" ? { OUTLIVE_SESSION: root(one).id } : undefined;
  });

  on("before_tool_call", async (event, ctx) => {
    const one = known(ctx);
    if (!one?.cwd) return;
    one.usedTools = ctx.runId;
    // OpenClaw does not pass the session or its directory to our server.
    if (isOurServer && event.toolName.startsWith("outlive__")) {
      return { params: { ...event.params, outlive_session: root(one).id, outlive_directory: one.cwd } };
    }
    if (guard === "off" || !TOUCHING.includes(event.toolName)) return;
    const fields = { tool_name: event.toolName, tool_input: event.params, paths: event.derivedPaths };
    const said = await ask("before_tool_call", one, { ...fields, guard });
    if (said?.context && event.toolCallId) advice.set(event.toolCallId, said.context);
  });

  // This leaves out Codex's own tools, because a text that is added to their results never reaches the model.
  api.registerAgentToolResultMiddleware(
    (event, ctx) =>
      calmly(api, async () => {
        const one = known(ctx);
        const words = [advice.get(event.toolCallId)];
        advice.delete(event.toolCallId);
        if (one?.cwd && one.isBegun) {
          const fields = { tool_name: event.toolName, tool_input: event.args };
          const told = (await ask("after_tool_call", one, fields))?.context;
          if (told) one.isUnconfirmed = true;
          words.push(told);
        }
        const text = words.filter(Boolean).join("\n");
        if (!text) return;
        return { result: { ...event.result, content: [...(event.result.content ?? []), { type: "text", text }] } };
      }),
    { runtimes: ["openclaw"] },
  );

  on("before_agent_finalize", async (event, ctx) => {
    const one = known({ ...event, ...ctx });
    if (!one?.isBegun || isChild(one) || one.run !== ctx.runId) return;
    watch(command, api, outside, ask, one);
    // After tools that may have changed something, OpenClaw does not continue a turn, and does not report this. So no
    // notice may be presented here. The model has read the earlier notices of the turn nevertheless.
    if (one.usedTools === ctx.runId) {
      await confirm(ask, one);
      return;
    }
    const said = await ask("before_agent_finalize", one, { is_again: one.revisions > 0, can_be_woken: canBeWoken() });
    const reason = said?.block || said?.context;
    one.isUnconfirmed = Boolean(said?.context) || (one.isUnconfirmed && !said);
    if (!reason) return;
    one.revisions += 1;
    const idempotencyKey = `outlive ${ctx.runId} ${one.revisions}`;
    return { action: "revise", reason, retry: { instruction: "Act on it before you answer.", idempotencyKey } };
  });

  on("agent_end", async (event, ctx) => {
    const one = known(ctx);
    if (!one?.isBegun || isChild(one)) return;
    // OpenClaw does not call before_agent_finalize for every turn. If a turn failed, the model may not have read its
    // notices. They are presented again in the next turn, with a new hand-off.
    if (event.success) await confirm(ask, one);
    one.revisions = 0;
    watch(command, api, outside, ask, one);
    if (one.isUnconfirmed && !event.success) Object.assign(one, { isBegun: false, isUnconfirmed: false, turn: undefined });
  });

  on("before_compaction", async (_, ctx) => {
    const one = known(ctx);
    if (one?.isBegun && !isChild(one)) await ask("before_compaction", one);
  });

  on("after_compaction", (_, ctx) => {
    const one = known(ctx);
    if (one) Object.assign(one, { isBegun: false, source: "compact" });
  });

  on("session_end", async (event, ctx) => {
    const one = known({ ...event, ...ctx });
    if (!one?.isBegun || isChild(one)) return;
    const isCompacted = event.reason === "compaction";
    // Do not end a session that continues under the same id.
    if (event.nextSessionId !== one.id && !isCompacted) await end(ask, one, event.reason ?? "unknown");
    if (event.nextSessionId) Object.assign(one, { isBegun: false, source: isCompacted ? "compact" : "clear" });
  });

  on("subagent_spawned", async (event, ctx) => {
    const parent = sessions.get(ctx.requesterSessionKey);
    if (!parent?.cwd) return;
    parents.set(event.childSessionKey, parent.key);
    const first = root(parent);
    first.children.set(event.childSessionKey, event.label || `sub-agent of ${event.agentId}`);
    await ask("subagent_spawned", first, { children: [...first.children] });
  });

  on("subagent_ended", async (event) => {
    const parent = sessions.get(parents.get(event.targetSessionKey));
    if (!parent) return;
    parents.delete(event.targetSessionKey);
    sessions.delete(event.targetSessionKey);
    const first = root(parent);
    if (first.children.delete(event.targetSessionKey)) await ask("subagent_ended", first, { children: [...first.children] });
  });
}

async function calmly(api, act) {
  try {
    return await act();
  } catch (error) {
    api.logger?.warn?.(`outlive: ${error}`);
    return undefined;
  }
}

// --- sessions ----------------------------------------------------------------------------------------

function known({ sessionKey: key, sessionId: id, workspaceDir: cwd, agentId }) {
  if (!key || !id) return undefined;
  const one = sessions.get(key) ?? { key, revisions: 0, children: new Map(), isBegun: false };
  if (one.id && one.id !== id) {
    Object.assign(one, { isBegun: false, continues: one.id, source: one.source ?? "clear" });
  }
  one.id = id;
  one.cwd = cwd ?? one.cwd;
  one.agent = agentId ?? one.agent;
  sessions.set(key, one);
  return one;
}

function isChild(one) {
  return parents.has(one.key) || one.key.includes(":subagent:");
}

// Return the session that a person talks to, for which sub-agents work.
function root(one) {
  const above = sessions.get(parents.get(one.key));
  return above && above !== one ? root(above) : one;
}

async function begin(ask, one, event) {
  const source = one.source ?? (event.messages?.length ? "resume" : "startup");
  const said = await ask("session_start", one, { source, continues: one.continues });
  if (said) Object.assign(one, { isBegun: true, source: undefined, continues: undefined });
  return said;
}

async function end(ask, one, reason) {
  one.isBegun = false;
  await ask("session_end", one, { reason });
  if (reason === "answered" && !one.isBegun) sessions.delete(one.key);
}

// Confirm the notices that the session has read until now.
async function confirm(ask, one) {
  if (one.isUnconfirmed && (await ask("agent_end", one))) one.isUnconfirmed = false;
}

// --- waking ------------------------------------------------------------------------------------------

function canBeWoken() {
  return process.argv.includes("gateway");
}

// Start a watcher, which exits when notices are pending for an idle session. Then request a turn from OpenClaw, as its
// own webhook for wakes does. That turn gets the notices. If OpenClaw takes no turn, no notice is lost.
function watch(command, api, outside, ask, one) {
  if (one.watcher || !one.isBegun || !canBeWoken()) return;
  outside(() => {
    one.watcher = start(command, "wake", one, { can_be_woken: true }, ({ code }) => {
      one.watcher = undefined;
      if (code === WAKE_CODE) calmly(api, () => nudge(api, one));
      else if (ONE_ANSWER.test(one.key)) calmly(api, () => end(ask, one, "answered"));
    });
  });
}

function nudge(api, one) {
  one.nudges = (one.nudges ?? 0) + 1;
  if (one.nudges > MOST_NUDGES) return;
  one.isNudged = true;
  api.runtime.system.enqueueSystemEvent(NUDGE, { sessionKey: one.key, contextKey: "outlive" });
  api.runtime.system.requestHeartbeat({
    source: "hook",
    intent: "immediate",
    reason: "hook:outlive",
    sessionKey: one.key,
    // Send the answer to the chat that the session was last used from. By default, OpenClaw sends the answer of a
    // heartbeat to the owner or to nobody.
    heartbeat: { target: "last" },
    ...(one.agent ? { agentId: one.agent } : {}),
  });
}

// --- calling -----------------------------------------------------------------------------------------

// Call a hook and return its answer, or undefined if the hook gave no answer.
function call(command, event, one, fields = {}) {
  return new Promise((resolve) => {
    const child = start(command, event, one, fields, ({ code, out }) => {
      clearTimeout(timer);
      resolve(code === 0 ? parsed(out) : undefined);
    });
    const timer = setTimeout(() => child?.kill("SIGKILL"), PATIENCE_MS);
  });
}

function parsed(text) {
  try {
    return text.trim() ? JSON.parse(text) : {};
  } catch {
    return undefined;
  }
}

function start(command, event, one, { guard, ...fields }, done) {
  const [program, ...args] = [...command, "hook", "openclaw", event, ...(guard ? ["--guard", guard] : [])];
  const payload = { session_id: root(one).id, cwd: one.cwd, pid: process.pid, is_sub_agent: isChild(one), ...fields };
  let out = "";
  const once = (code) => {
    const finish = done;
    done = () => {};
    finish({ code, out });
  };
  const child = spawn(program, args, { cwd: "/", stdio: ["pipe", "pipe", "ignore"] });
  child.on("error", () => once(-1));
  child.on("close", (code) => once(code));
  child.stdin.on("error", () => {});
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (text) => {
    if (out.length < LONGEST_ANSWER) out += text;
  });
  child.stdin.end(JSON.stringify(payload));
  return child;
}
