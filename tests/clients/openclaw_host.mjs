// Stands for OpenClaw's gateway: loads the plugin, calls what it has registered, one line of JSON each.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [plugin, command] = process.argv.slice(2);
const registered = {};
let nudges = 0;
const api = {
  pluginConfig: { command: JSON.parse(command), guard: "advise" },
  on: (name, act) => (registered[name] = act),
  registerAgentToolResultMiddleware: (act) => (registered.result = act),
  runtime: { system: { enqueueSystemEvent: () => true, requestHeartbeat: () => (nudges += 1) } },
};
(await import(pathToFileURL(plugin).href)).default.register(api);
for await (const line of createInterface({ input: process.stdin })) {
  const [name, event, ctx] = JSON.parse(line);
  const said = name === "nudges" ? nudges : await registered[name](event, ctx);
  process.stdout.write(`${JSON.stringify(said ?? null)}\n`);
}
