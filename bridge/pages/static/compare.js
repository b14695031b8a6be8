// One call, made by every kind of client, side by side.
import { announce, brief, byId, focusOn, h } from "./dom.js";
import { makeClient, runCall } from "./clients.js";
import { formOf, madeUp } from "./forms.js";
import { facts, restart } from "./own.js";
import { showQuestion } from "./questions.js";
import { Wire, describe, valueOf } from "./wire.js";

export class Compare {
  #tools = [];
  #fields = null;
  #showWire;
  #headers = {};
  #isRunning = false;

  /** `showWire(wire, profile)` shows one client's messages. */
  constructor(showWire) {
    this.#showWire = showWire;
    byId("compare-tool").addEventListener("change", () => this.#pick());
    byId("compare-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.run();
    });
    byId("lanes").replaceChildren(...facts.kinds.map((kind) => lane(kind)));
  }

  /** What can be called, and with which headers. */
  use(tools, headers) {
    this.#headers = headers;
    const listed = tools.filter(({ name }) => name !== facts.fallbackTool);
    const same = JSON.stringify(listed.map(({ name }) => name)) === JSON.stringify(this.#tools.map(({ name }) => name));
    this.#tools = listed;
    if (same) return;
    const select = byId("compare-tool");
    select.replaceChildren(...listed.map(({ name }) => h("option", { value: name }, name)));
    if (listed.some(({ name }) => name === "close_ticket")) select.value = "close_ticket";
    this.#pick();
  }

  #pick() {
    const tool = this.#tools.find(({ name }) => name === byId("compare-tool").value);
    this.#fields = formOf(tool?.inputSchema);
    byId("compare-arguments").replaceChildren(this.#fields.node);
  }

  /** Runs the call as each kind, one after the other. */
  async run() {
    if (this.#isRunning || !this.#fields) return;
    this.#isRunning = true;
    byId("lanes").dataset.state = "running";
    const name = byId("compare-tool").value;
    const args = this.#fields.read();
    const answers = new Answers(document.querySelector("input[name=answer]:checked").value, args);
    const outcomes = [];
    try {
      for (const kind of facts.kinds) {
        if (facts.canRestart) await restart();
        outcomes.push(await this.#one(kind, name, args, answers));
      }
    } finally {
      this.#isRunning = false;
      byId("lanes").dataset.state = "done";
    }
    announce(`${name} was run by ${outcomes.length} kinds of client. ${outcomes.join(". ")}`);
  }

  async #one(kind, name, args, answers) {
    const place = document.querySelector(`[data-lane="${kind.id}"]`);
    const steps = place.querySelector(".steps");
    const end = place.querySelector(".end");
    steps.replaceChildren();
    end.replaceChildren();
    place.dataset.state = "running";
    const wire = new Wire();
    const profile = { ...kind, name: facts.clientName, headers: this.#headers };
    const client = makeClient(profile, wire);
    let asked = 0, ways = new Set(), rounds = 0, outcome;
    try {
      await client.open({ listens: false });
      await client.listTools();
      const seesFallback = client.tools.some((tool) => tool.name === facts.fallbackTool);
      wire.addEventListener("entry", ({ detail }) => {
        rounds += detail.message?.method === "tools/call" ? 1 : 0;
        const step = stepOf(detail);
        if (step) steps.append(step);
      });
      const reply = await runCall(client, name, args, async (question) => {
        asked += question.way === "chat" ? 1 : Object.keys(question.questions).length;
        ways.add(question.way);
        return answers.to(question, steps, kind);
      });
      outcome = ending(reply);
      const way = [...ways][0] ?? (reply.error ? "refuse" : null);
      end.append(...verdict({ outcome, way, asked, rounds, seesFallback }), this.#wireButton(kind, wire, profile));
    } catch (error) {
      outcome = { kind: "error", title: "did not work", text: error.message };
      end.append(...verdict({ outcome, way: null, asked, rounds, seesFallback: false }), this.#wireButton(kind, wire, profile));
    } finally {
      client.close();
    }
    place.dataset.state = outcome.kind;
    return `${kind.title}, ${kind.revision}: ${outcome.title}`;
  }

  #wireButton(kind, wire, profile) {
    return h("button", { type: "button", class: "small", onclick: () => this.#showWire(wire, profile) }, `See its ${wire.entries.length} messages`, h("span", { class: "unseen" }, ` (${kind.title}, ${kind.revision})`));
  }
}

/** The user of all clients: answers by rule, or is asked once and says the same to each. */
class Answers {
  #known = new Map();

  constructor(rule, args) {
    this.rule = rule;
    this.args = args;
  }

  async to({ way, questions, pending, isRefused }, steps, kind) {
    if (way !== "chat") {
      const found = [];
      for (const [key, question] of Object.entries(questions)) found.push([key, await this.#one(question, steps, kind)]);
      return Object.fromEntries(found);
    }
    if (isRefused) return null;
    const { result } = await this.#one({ method: "elicitation/create", params: { ...pending, requestedSchema: pending.schema } }, steps, kind);
    const words = { accept: `“${brief(Object.values(result.content ?? { done: "Done" }).map(spoken).join(", "), 40)}”`, decline: "“No”", cancel: "“Never mind”" };
    steps.append(h("li", { class: "step aside" }, "The model asks in the chat. The person says ", words[result.action]));
    return { elicitId: pending.elicitId, ...result };
  }

  async #one(question, steps, kind) {
    const { params } = question;
    if (this.rule === "decline" || this.rule === "cancel") return { result: { action: this.rule } };
    if (this.rule === "unfit") return { result: { action: "accept", content: { nonsense: 1 } } };
    if (this.rule === "accept") return { result: { action: "accept", ...(params.url ? {} : { content: madeUp(params.requestedSchema, this.args) }) } };
    const asked = params.message ?? question.method;
    if (!this.#known.has(asked)) {
      const place = byId("compare-question");
      place.replaceChildren();
      const answer = showQuestion(place, kind.title, question);
      focusOn(place.querySelector("h3"));
      this.#known.set(asked, await answer);
      place.replaceChildren();
    }
    return this.#known.get(asked);
  }
}

const spoken = (value) => (value === true ? "Yes" : value === false ? "No" : typeof value === "object" ? Object.values(value).map(spoken).join(", ") : String(value));

function lane(kind) {
  const id = `lane-${kind.id}`;
  return h(
    "li",
    { class: `lane ${kind.route}`, "aria-labelledby": id, dataset: { lane: kind.id, state: "idle" } },
    h("header", {}, h("h3", { id }, kind.title), h("code", {}, kind.revision), h("span", { class: "badge" }, facts.ways[kind.route].short)),
    h("p", { class: "ends", "aria-hidden": "true" }, h("span", {}, "client"), h("span", {}, "server")),
    h("ol", { class: "steps" }),
    h("div", { class: "end" }),
  );
}

/** One message as an arrow between client and server; null for what says nothing new. */
function stepOf(entry) {
  if (!entry.message) return null;
  const { kind, title, preview } = describe(entry);
  if (kind === "plain") return null;
  const text = title.replace("result: ", "").replace("tools/call ", "");
  const spoken = entry.direction === "out" ? "Client: " : "Server: ";
  return h("li", { class: `step ${entry.direction} ${kind}`, title: preview }, h("span", { class: "unseen" }, spoken), h("span", { class: "label" }, text));
}

function ending({ result, error }) {
  if (error) return { kind: "refused", title: `error ${error.code}`, text: error.message };
  const value = valueOf(result);
  if (result._meta?.[facts.pending]) return { kind: "open", title: "left open", text: "The question waits for an answer" };
  if (result.isError) return { kind: "failed", title: "the tool failed", text: brief(value, 160) };
  const inner = value && typeof value === "object" && Object.keys(value).join() === "result" ? value.result : value;
  return { kind: "done", title: brief(inner, 110), text: "", value: inner };
}

const isFlat = (value) => value && typeof value === "object" && !Array.isArray(value) && Object.values(value).every((item) => typeof item !== "object" || item === null);

const facets = (value) => h("dl", {}, Object.entries(value).map(([key, item]) => h("div", {}, h("dt", {}, key), h("dd", {}, brief(item, 80)))));

function verdict({ outcome, way, asked, rounds, seesFallback }) {
  const how = asked ? `asked ${asked === 1 ? "once" : `${asked} times`} ${facts.ways[way].short}` : way === "refuse" ? "nobody was asked, nothing was done" : "nobody was asked";
  return [
    h("div", { class: `verdict ${outcome.kind}` }, isFlat(outcome.value) ? facets(outcome.value) : h("b", {}, outcome.title), outcome.text && h("span", {}, outcome.text)),
    h("p", { class: "how" }, `${how} · ${rounds} ${rounds === 1 ? "call" : "calls"}${seesFallback ? " · sees the fallback tool" : ""}`),
  ];
}
