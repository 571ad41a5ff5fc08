// Outlive in OpenClaw: every event goes to `outlive hook openclaw EVENT`, which decides; here is only what OpenClaw
// tells nobody else. Whatever goes wrong, OpenClaw goes on as if we were not there.

import { AsyncLocalStorage } from "node:async_hooks";
import { spawn } from "node:child_process";

// The hook has a deadline of its own, which is shorter; OpenClaw blocks a tool after 15 s without an answer.
const PATIENCE_MS = 10000;
const LONGEST_ANSWER = 1 << 20;
const WAKE_CODE = 2;
// So often a session is asked to take a turn without being told anything in it: every turn costs its owner something.
const MOST_NUDGES = 3;
// Tools that run a command, change files or look at them.
const TOUCHING = ["exec", "write", "edit", "apply_patch", "read", "ls"];
// Turns that nobody asked for, whose words are not kept: nothing is told there, unless we asked for the turn.
const UNSEEN = ["heartbeat", "memory"];
// Sessions that were begun for one answer: with nothing left to wait for, they are over.
const ONE_ANSWER = /:(cron|hook):/;
const NUDGE = "A background task of this session has ended: [outlive] says how. Go on with what waited for it.";

// OpenClaw loads us several times in one process, and calls now one of us and now another. Sessions are known by their
// key, which stays while their id changes.
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
  // Work that goes on after a hook must not go on with the hook's rights, which end with it.
  const outside = AsyncLocalStorage.snapshot();
  const on = (name, act, options) => api.on(name, (event, ctx) => calmly(api, () => act(event, ctx ?? {})), options);
  const ask = (event, one, fields) => call(command, event, one, fields);

  on("before_prompt_build", async (event, ctx) => {
    const one = known(ctx);
    if (!one || isChild(one) || (UNSEEN.includes(ctx.trigger) && !one.isNudged)) return;
    const turn = `${ctx.runId} ${event.prompt}`;
    // A prompt that is built again for the same request says the same again: nothing of the first may have been sent.
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
    // OpenClaw tells our server neither the session nor where it works.
    if (isOurServer && event.toolName.startsWith("outlive__")) {
      return { params: { ...event.params, outlive_session: root(one).id, outlive_directory: one.cwd } };
    }
    if (guard === "off" || !TOUCHING.includes(event.toolName)) return;
    const fields = { tool_name: event.toolName, tool_input: event.params, paths: event.derivedPaths };
    const said = await ask("before_tool_call", one, { ...fields, guard });
    if (said?.context && event.toolCallId) advice.set(event.toolCallId, said.context);
  });

  // Not for Codex's own tools: what is added to their results never reaches the model.
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
    // After tools that may have changed something OpenClaw lets no turn go on, and does not say so: nothing may be told
    // then. What the turn was told before has been read all the same.
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
    // OpenClaw does not ask before the end of every turn. What was told in one that failed may have been read by nobody:
    // it is told again at the next, which begins anew.
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
    // It may go on under the very same id; ended, it would be over.
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

// Sub-agents work for the session that a person talks to.
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

// What the session was told until now has been read.
async function confirm(ask, one) {
  if (one.isUnconfirmed && (await ask("agent_end", one))) one.isUnconfirmed = false;
}

// --- waking ------------------------------------------------------------------------------------------

function canBeWoken() {
  return process.argv.includes("gateway");
}

// Asleep beside an idle session until there is something to tell it; then OpenClaw is asked for a turn, as its own
// webhook for wakes does, and that turn asks what there is. Whatever OpenClaw makes of it, nothing is lost by it.
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
    ...(one.agent ? { agentId: one.agent } : {}),
  });
}

// --- calling -----------------------------------------------------------------------------------------

// What the hook answers; undefined if it did not.
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
