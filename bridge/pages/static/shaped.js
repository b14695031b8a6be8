// What was shaped for a client's revision: a message beside what the newest revision is sent in its place.
import { facts, isModern, newest, revisionOf } from "./own.js";
import { Wire } from "./wire.js";
import { makeClient } from "./clients.js";

let full = null;

/** The lists and the description of the server as the newest revision has them, asked for by the page itself, unrecorded. */
export async function learnNewest(headers) {
  const profile = { name: facts.clientName, revision: newest.name, capabilities: { elicitation: { form: {}, url: {} } }, headers };
  const client = makeClient(profile, new Wire());
  try {
    const { result } = await client.request("server/discover", {});
    await client.listTools();
    full = { discover: result, tools: new Map(client.tools.map((tool) => [tool.name, tool])) };
  } catch {
    full = null;
  } finally {
    client.close();
  }
}

/** What was shaped in a message to a client of `revision`: a map from paths to marks; empty where nothing was. */
export function shapedIn(entry, revision) {
  const marks = new Map();
  const { message, request, direction } = entry;
  if (!full || direction !== "in" || !message || isModern(revision)) return marks;
  if (message.method === "elicitation/create") questionMarks(message.params ?? {}, revision, marks);
  else if (request?.method === "tools/list") listMarks(message.result?.tools ?? [], marks);
  else if (request?.method === "initialize") greetingMarks(message.result ?? {}, marks);
  else if (request?.method === "tools/call") resultMarks(message.result ?? {}, request.params ?? {}, revision, marks);
  return marks;
}

function listMarks(tools, marks) {
  tools.forEach((tool, at) => {
    const path = `/result/tools/${at}`;
    const whole = full.tools.get(tool.name);
    if (!whole) return marks.set(path, { what: "new", note: "only clients see it that are asked through the chat" });
    goneFrom(whole, tool, path, marks, "this revision has no such field");
    const [before, after] = [whole.outputSchema, tool.outputSchema];
    if (!after || JSON.stringify(before) === JSON.stringify(after)) return;
    const wrapped = before.type !== "object" ? "wrapped: here it must be an object" : "";
    const widened = JSON.stringify(after).includes(facts.pending) ? "widened: a question may stand in its place" : "";
    marks.set(`${path}/outputSchema`, { what: "changed", note: [wrapped, widened].filter(Boolean).join("; ") || "shaped" });
  });
}

function greetingMarks(result, marks) {
  const info = Object.values(full.discover._meta ?? {}).find((value) => value?.version) ?? {};
  goneFrom(info, result.serverInfo ?? {}, "/result/serverInfo", marks, "this revision has no such field");
  goneFrom(full.discover.capabilities ?? {}, result.capabilities ?? {}, "/result/capabilities", marks, "this revision has no such capability");
}

function questionMarks(params, revision, marks) {
  if (revisionOf(revision).richForms) return;
  marks.set("/params/mode", { what: "gone", note: "this revision has forms only, and no word for it" });
}

function resultMarks(result, params, revision, marks) {
  const { structured, scalars } = revisionOf(revision);
  if (result._meta?.[facts.pending]) {
    if (result.structuredContent) marks.set("/result/structuredContent", { what: "new", note: "the question, in place of the tool's own" });
    return;
  }
  const schema = full.tools.get(params.name)?.outputSchema;
  if (result.isError || !schema) return;
  if (!structured) marks.set("/result/structuredContent", { what: "gone", note: "this revision has only content: the text says the same" });
  else if (!scalars && schema.type !== "object")
    marks.set("/result/structuredContent", { what: "changed", note: "wrapped: here it must be an object" });
}

function goneFrom(whole, part, path, marks, note) {
  for (const name of Object.keys(whole)) if (!(name in part)) marks.set(`${path}/${name}`, { what: "gone", note });
}
