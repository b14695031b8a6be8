// MCP clients: one that has a session, and one whose requests stand alone. And the loop that answers what a call asks.
import { facts, isModern, newest, revisionOf } from "./own.js";
import { HttpLink, SseLink } from "./links.js";

const MAX_QUESTIONS = 32;
const MAX_PAGES = 50;
const META = "io.modelcontextprotocol/";

/** A client of a profile: `{name, revision, capabilities, transport, headers}`. `onNotice` hears its notifications. */
export function makeClient(profile, wire, onNotice = () => {}) {
  return isModern(profile.revision) ? new ModernClient(profile, wire, onNotice) : new SessionClient(profile, wire, onNotice);
}

class Client {
  tools = [];
  info = {};
  onQuestion = null;
  nextId = 0;

  constructor(profile, wire, onNotice) {
    this.profile = profile;
    this.wire = wire;
    this.onNotice = onNotice;
  }

  get clientInfo() {
    return { name: this.profile.name, version: facts.version };
  }

  async listTools() {
    const tools = [];
    let cursor;
    for (let page = 0; page < MAX_PAGES; page++) {
      const { result, error } = await this.request("tools/list", cursor === undefined ? {} : { cursor });
      if (error) throw new Error(error.message);
      tools.push(...result.tools);
      cursor = result.nextCursor;
      if (cursor === undefined) break;
    }
    return (this.tools = tools);
  }
}

/** A client that opens a session and can be asked in the middle of a call. */
class SessionClient extends Client {
  #waiting = new Map();

  constructor(profile, wire, onNotice) {
    super(profile, wire, onNotice);
    const make = profile.transport === "sse" ? [SseLink, "sse"] : [HttpLink, "mcp"];
    this.link = new make[0](make[1], wire, (message) => this.#headers(message));
  }

  async open({ listens = true } = {}) {
    await this.link.open();
    const { revision, capabilities } = this.profile;
    const params = { protocolVersion: revision, capabilities, clientInfo: this.clientInfo };
    const { result, error, headers } = await this.request("initialize", params);
    if (error) throw new Error(error.message);
    this.session = headers?.get("mcp-session-id") ?? null;
    this.agreed = result.protocolVersion;
    this.info = result.serverInfo;
    await this.#post({ jsonrpc: "2.0", method: "notifications/initialized" });
    if (listens) this.link.listen((message) => this.#receive(message)).catch(() => {});
  }

  #headers() {
    const headers = { ...this.profile.headers };
    if (this.session) headers["Mcp-Session-Id"] = this.session;
    if (this.agreed && revisionOf(this.agreed).namesItself) headers["MCP-Protocol-Version"] = this.agreed;
    return headers;
  }

  #post(message, signal) {
    return this.link.post(message, (received) => this.#receive(received), signal);
  }

  request(method, params, signal) {
    const id = ++this.nextId;
    return new Promise((resolve, reject) => {
      let answer, headers;
      const isDone = () => answer && headers !== undefined && resolve({ ...answer, headers });
      this.#waiting.set(id, (message) => {
        answer = message;
        isDone();
      });
      signal?.addEventListener("abort", () => {
        if (!this.#waiting.delete(id)) return;
        this.#post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } }).catch(() => {});
        reject(new DOMException("Stopped", "AbortError"));
      });
      this.#post({ jsonrpc: "2.0", id, method, params }, signal).then((got) => {
        headers = got;
        if (got !== null && !answer) reject(new Error(`No reply to ${method}: is the session gone?`));
        isDone();
      }, reject);
    });
  }

  #receive(message) {
    if (message.method === undefined) {
      const answer = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (answer) answer(message);
      else if (message.error) this.onNotice({ method: "error", params: message.error });
    } else if (message.id === undefined) this.onNotice(message);
    else this.#serve(message);
  }

  /** Answers a request of the server's. */
  async #serve({ id, method, params }) {
    let answer = { error: { code: -32601, message: `Method not found: ${method}` } };
    if (method === "ping") answer = { result: {} };
    else if (this.onQuestion) answer = await this.onQuestion(method, params ?? {});
    if (answer) await this.#post({ jsonrpc: "2.0", id, ...answer }).catch(() => {});
  }

  close() {
    this.link.close(this.session ? this.#headers() : undefined);
  }
}

/** A client whose requests each say who it is and what it can show. */
class ModernClient extends Client {
  constructor(profile, wire, onNotice) {
    super(profile, wire, onNotice);
    this.link = new HttpLink("mcp", wire, (message) => this.#headers(message));
    this.agreed = profile.revision;
  }

  async open() {
    const { result, error } = await this.request("server/discover", {});
    if (error) throw new Error(error.message);
    this.info = result._meta?.[`${META}serverInfo`] ?? {};
  }

  async request(method, params, signal) {
    const _meta = {
      [`${META}protocolVersion`]: newest.name,
      [`${META}clientInfo`]: this.clientInfo,
      [`${META}clientCapabilities`]: this.profile.capabilities,
    };
    let answer;
    const message = { jsonrpc: "2.0", id: ++this.nextId, method, params: { ...params, _meta } };
    await this.link.post(message, (got) => {
      if (got.method === undefined) answer = got;
      else this.onNotice(got);
    }, signal);
    if (!answer) throw new Error(`No reply to ${method}`);
    return answer;
  }

  #headers({ method, params = {} }) {
    const headers = { ...this.profile.headers, "MCP-Protocol-Version": newest.name };
    if (method) headers["Mcp-Method"] = method;
    if (params.name !== undefined) headers["Mcp-Name"] = headerText(params.name);
    const tool = method === "tools/call" && this.tools.find(({ name }) => name === params.name);
    if (tool) Object.assign(headers, parameterHeaders(tool.inputSchema, params.arguments));
    return headers;
  }

  close() {
    this.link.close();
  }
}

/** A text as a header can hold it. */
function headerText(value) {
  const text = String(value);
  if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith("=?base64?")) return text;
  const bytes = new TextEncoder().encode(text);
  return `=?base64?${btoa(String.fromCharCode(...bytes))}?=`;
}

/** The arguments that travel in headers too, as the tool's schema says. */
function parameterHeaders(schema, values = {}) {
  const headers = {};
  for (const [name, field] of Object.entries(schema?.properties ?? {})) {
    const value = values?.[name];
    if (value === undefined || value === null) continue;
    if (field["x-mcp-header"]) headers[`Mcp-Param-${field["x-mcp-header"]}`] = headerText(value);
    if (field.properties) Object.assign(headers, parameterHeaders(field, value));
  }
  return headers;
}

/**
 * Calls a tool, and has answered what it asks, until it has ended. Returns the reply: `{result}` or `{error}`.
 *
 * `ask({way, questions})` gives an answer for each question, by its key; for a chat, `ask({way, pending, told})` gives the
 * arguments of the fallback tool, or null to leave the question open.
 */
export async function runCall(client, name, args, ask, signal) {
  client.onQuestion = async (method, params) => (await ask({ way: "push", questions: { question: { method, params } } })).question;
  const params = { name, arguments: args };
  let reply = await client.request("tools/call", params, signal);
  let pending = null;
  for (let count = 0; count < MAX_QUESTIONS && reply.result; count++) {
    const { result } = reply;
    const isRefused = pending && result._meta?.[facts.codeKey] === "INVALID_INPUT";
    pending = result._meta?.[facts.pending] ?? (isRefused ? pending : null);
    if (result.resultType === "input_required") {
      const answers = await ask({ way: "rounds", questions: result.inputRequests ?? {} });
      const inputResponses = Object.fromEntries(Object.entries(answers).map(([key, answer]) => [key, answer.result]));
      const state = result.requestState === undefined ? {} : { requestState: result.requestState };
      reply = await client.request("tools/call", { ...params, inputResponses, ...state }, signal);
    } else if (pending) {
      const given = await ask({ way: "chat", pending, result, isRefused });
      if (!given) return reply;
      reply = await client.request("tools/call", { name: facts.fallbackTool, arguments: given }, signal);
    } else return reply;
  }
  return reply;
}
