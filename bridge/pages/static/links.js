// The two ways of HTTP on which messages travel: Streamable HTTP, and HTTP+SSE of 2024-11-05. All of it is recorded.
import { events } from "./events.js";

const JSON_TYPE = { "Content-Type": "application/json" };
const PATIENCE_MS = 10000;

const seen = (response) => ({ status: response.status, headers: [...response.headers] });
const absolute = (path) => new URL(path, document.baseURI).href;

const NOTES = { GET: "opens a stream", DELETE: "ends the session" };

async function sent(wire, channel, url, method, headers, message, signal) {
  const body = message === undefined ? undefined : JSON.stringify(message);
  wire.add({ direction: "out", channel, http: { method, url, headers: Object.entries(headers), body }, message, note: NOTES[method] });
  return fetch(url, { method, headers, body, signal });
}

function readJson(wire, response, text) {
  const message = text ? JSON.parse(text) : undefined;
  const note = message === undefined ? `HTTP ${response.status}` : undefined;
  wire.add({ direction: "in", channel: "reply", http: seen(response), message, note });
  return message;
}

/** Streamable HTTP: each message a POST, whose reply is JSON or a stream of events. */
export class HttpLink {
  /** `headersFor(message)` gives the headers that the client's revision wants. */
  constructor(endpoint, wire, headersFor) {
    this.url = absolute(endpoint);
    this.wire = wire;
    this.headersFor = headersFor;
    this.aborting = new AbortController();
  }

  async open() {}

  /** Posts a message, and hands on what comes back. Returns the response's headers. */
  async post(message, receive, signal) {
    const signals = AbortSignal.any([this.aborting.signal, ...(signal ? [signal] : [])]);
    const headers = { ...JSON_TYPE, Accept: "application/json, text/event-stream", ...this.headersFor(message) };
    const response = await sent(this.wire, "POST", this.url, "POST", headers, message, signals);
    if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
      const answer = readJson(this.wire, response, await response.text());
      if (answer !== undefined) receive(answer);
      return response.headers;
    }
    const isOver = (got) => got.id === message.id && got.method === undefined;
    await this.#read(response, "event on this POST", receive, isOver, signals);
    return response.headers;
  }

  /** Listens to what the server says unasked, until the link is closed. */
  async listen(receive) {
    const response = await this.#get({});
    if (response.ok) await this.#read(response, "event on GET", receive, () => false, this.aborting.signal, false);
  }

  #get(extra) {
    const headers = { Accept: "text/event-stream", ...this.headersFor({}), ...extra };
    return sent(this.wire, "GET", this.url, "GET", headers, undefined, this.aborting.signal);
  }

  /** Reads a stream; where it ends before its reply, as servers may, comes back for the rest. */
  async #read(response, channel, receive, isOver, signal, resumes = true) {
    let last = null, wait = 1000, over = false;
    const http = seen(response);
    if (!resumes) this.wire.add({ direction: "in", channel: "stream", http, note: "a stream opens" });
    for await (const event of events(response.body)) {
      if (event.id) last = event.id;
      if (event.retry) wait = Math.min(Number(event.retry) || wait, PATIENCE_MS);
      if (!event.data) continue;
      const message = JSON.parse(event.data);
      this.wire.add({ direction: "in", channel, http, message, eventId: event.id });
      over ||= isOver(message);
      receive(message);
    }
    if (over || !resumes || last === null || signal.aborted) return;
    await new Promise((resolve) => setTimeout(resolve, wait));
    const again = await this.#get({ "Last-Event-ID": last });
    if (again.ok) await this.#read(again, "event on GET, resumed", receive, isOver, signal);
  }

  /** Ends everything that is open; `headers` of a session that has to be ended too. */
  close(headers) {
    this.aborting.abort();
    if (headers) sent(this.wire, "DELETE", this.url, "DELETE", headers).catch(() => {});
  }
}

/** HTTP+SSE: a stream to the client, and an endpoint that takes what it says. */
export class SseLink {
  constructor(endpoint, wire, headersFor) {
    this.url = absolute(endpoint);
    this.wire = wire;
    this.headersFor = headersFor;
    this.aborting = new AbortController();
    this.receive = () => {};
  }

  /** Opens the stream, and waits to be told where to post. */
  async open() {
    const headers = { Accept: "text/event-stream", ...this.headersFor({}) };
    const response = await sent(this.wire, "GET", this.url, "GET", headers, undefined, this.aborting.signal);
    if (!response.ok) throw new Error(`${this.url} answers ${response.status}: HTTP+SSE is not served here`);
    await new Promise((resolve, reject) => {
      this.#read(response, resolve).then(() => reject(new Error("the stream ended")), reject);
    });
  }

  async #read(response, ready) {
    for await (const event of events(response.body)) {
      const http = seen(response);
      if (event.event === "endpoint") {
        this.posts = absolute(event.data);
        this.wire.add({ direction: "in", channel: "event on GET", http, note: `endpoint: ${event.data}` });
        ready();
      } else if (event.data) {
        const message = JSON.parse(event.data);
        this.wire.add({ direction: "in", channel: "event on GET", http, message, eventId: event.id });
        this.receive(message);
      }
    }
  }

  async post(message, receive, signal) {
    this.receive = receive;
    const headers = { ...JSON_TYPE, ...this.headersFor(message) };
    const response = await sent(this.wire, "POST", this.posts, "POST", headers, message, signal ?? this.aborting.signal);
    const answer = readJson(this.wire, response, await response.text());
    if (answer !== undefined) receive(answer);
    return null;
  }

  async listen() {}

  close() {
    this.aborting.abort();
  }
}
