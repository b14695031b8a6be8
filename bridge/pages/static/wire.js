// What went over the wire, in order, and what each message is in a few words.
import { brief } from "./dom.js";
import { facts } from "./own.js";

const MOST = 400;

/** The messages of one client. Tells of each with an `entry` event. */
export class Wire extends EventTarget {
  entries = [];
  #requests = new Map();
  #next = 0;

  /** Adds a message: `direction` (out, in), `channel`, `http` (method, url, headers, body, status), `message`, `note`. */
  add(entry) {
    const { direction, message } = entry;
    entry.number = ++this.#next;
    entry.at = performance.now();
    if (message?.method !== undefined && message.id !== undefined) this.#requests.set(`${direction}${message.id}`, entry);
    else if (message && message.method === undefined)
      entry.request = this.#requests.get(`${direction === "out" ? "in" : "out"}${message.id}`)?.message;
    this.entries.push(entry);
    if (this.entries.length > MOST) this.entries.shift();
    this.dispatchEvent(new CustomEvent("entry", { detail: entry }));
    return entry;
  }

  clear() {
    this.entries = [];
    this.dispatchEvent(new Event("cleared"));
  }
}

/** What an entry is: `{kind, title, preview}`. The kind gives it its colour. */
export function describe(entry) {
  const { message, direction } = entry;
  if (!message) return { kind: "plain", title: entry.note ?? "nothing", preview: "" };
  if (Array.isArray(message)) return { kind: "plain", title: "batch", preview: `${message.length} messages` };
  if (message.method !== undefined) return described(message, direction);
  if (message.error) return { kind: "error", title: `error ${message.error.code}`, preview: brief(message.error.message) };
  return direction === "out" ? answered(message.result) : resulted(message.result, entry.request);
}

function described({ method, params = {} }, direction) {
  if (method === "elicitation/create") return { kind: "question", title: method, preview: brief(params.message ?? "") };
  if (method === "tools/call") {
    const kind = params.name === facts.fallbackTool || params.inputResponses ? "answer" : "call";
    const title = `${method} ${params.name}${params.inputResponses ? " + answer" : ""}`;
    return { kind, title, preview: brief(params.inputResponses ?? params.arguments ?? {}) };
  }
  if (method === "notifications/message") return { kind: "plain", title: method, preview: brief(params.data ?? "") };
  const shown = { ...params };
  delete shown._meta;
  return { kind: "plain", title: method, preview: Object.keys(shown).length && direction === "out" ? brief(shown) : "" };
}

function answered(result = {}) {
  const preview = result.content ? brief(result.content) : "";
  return { kind: "answer", title: result.action ? `answer: ${result.action}` : "answer", preview };
}

function resulted(result = {}, request = {}) {
  const { method } = request;
  if (result.resultType === "input_required") {
    const asked = Object.values(result.inputRequests ?? {}).map((question) => question.params?.message ?? question.method);
    return { kind: "question", title: "result: input_required", preview: brief(asked.join(" · ")) };
  }
  const pending = result._meta?.[facts.pending];
  if (pending) return { kind: "question", title: "result: a text for the model", preview: brief(pending.message) };
  if (method === "initialize") return { kind: "plain", title: "result of initialize", preview: result.protocolVersion };
  if (Array.isArray(result.tools)) return { kind: "plain", title: "result: tools", preview: `${result.tools.length} tools` };
  if (method !== "tools/call") return { kind: "plain", title: `result of ${method ?? "a request"}`, preview: brief(result) };
  const title = result.isError ? "result: the tool failed" : "result";
  return { kind: result.isError ? "error" : "result", title, preview: brief(valueOf(result)) };
}

/** What a tool returned, for people: its structured content, or its texts. */
export function valueOf(result) {
  if (result.structuredContent !== undefined) return result.structuredContent;
  const text = (result.content ?? []).map((block) => block.text ?? `[${block.type}]`).join("\n");
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The command that sends the same again. */
export function curl({ http }) {
  const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;
  const lines = [`curl -sN${http.method === "POST" ? "" : ` -X ${http.method}`} ${quoted(http.url)}`];
  for (const [name, value] of http.headers) lines.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (http.body !== undefined) lines.push(`-d ${quoted(http.body)}`);
  return lines.join(" \\\n  ");
}
