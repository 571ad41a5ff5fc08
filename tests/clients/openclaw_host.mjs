// A stand-in for OpenClaw's gateway. It loads the plugin and, for each line of JSON, calls a function that the plugin
// has registered.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [plugin, command] = process.argv.slice(2);
const registered = {};
const nudges = [];
const api = {
  pluginConfig: { command: JSON.parse(command), guard: "advise" },
  on: (name, act) => (registered[name] = act),
  registerAgentToolResultMiddleware: (act) => (registered.result = act),
  runtime: { system: { enqueueSystemEvent: () => true, requestHeartbeat: (request) => nudges.push(request) } },
};
(await import(pathToFileURL(plugin).href)).default.register(api);
for await (const line of createInterface({ input: process.stdin })) {
  const [name, event, ctx] = JSON.parse(line);
  const said = name === "nudges" ? nudges : await registered[name](event, ctx);
  process.stdout.write(`${JSON.stringify(said ?? null)}\n`);
}
