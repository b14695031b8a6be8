// The wire, as a list: each message in one line, opened to its headers and its JSON.
import { calm, copy, h } from "./dom.js";
import { jsonTree } from "./json.js";
import { openState } from "./own.js";
import { shapedIn } from "./shaped.js";
import { curl, describe } from "./wire.js";

const ARROWS = { out: ["→", "client to server"], in: ["←", "server to client"] };

/** Shows one wire at a time in `list`. */
export class WireView {
  #list;
  #empty;
  #wire = null;
  #context = null;
  #onEntry = ({ detail }) => this.#append(detail);
  #onCleared = () => this.#list.replaceChildren();

  constructor(list, empty) {
    this.#list = list;
    this.#empty = empty;
  }

  /** Shows a wire. `context` gives the `revision` and the `headers` of its client at that time. */
  show(wire, context) {
    this.#wire?.removeEventListener("entry", this.#onEntry);
    this.#wire?.removeEventListener("cleared", this.#onCleared);
    this.#wire = wire;
    this.#context = context;
    this.#list.replaceChildren();
    this.#empty.hidden = wire.entries.length > 0;
    wire.entries.forEach((entry) => this.#append(entry));
    wire.addEventListener("entry", this.#onEntry);
    wire.addEventListener("cleared", this.#onCleared);
  }

  clear() {
    this.#wire?.clear();
    this.#empty.hidden = false;
  }

  #append(entry) {
    this.#empty.hidden = true;
    this.#list.append(line(entry, this.#context));
    const scroller = this.#list.closest(".scroll") ?? this.#list;
    scroller.scrollTo({ top: scroller.scrollHeight, behavior: calm() ? "auto" : "smooth" });
  }
}

function line(entry, context) {
  const { kind, title, preview } = describe(entry);
  const marks = shapedIn(entry, context().revision);
  const [arrow, spoken] = ARROWS[entry.direction];
  const body = h("div", { class: "entry-body" });
  const fill = () => body.childElementCount || body.append(...opened(entry, marks, context, isOpen));
  const isOpen = kind === "question";
  if (isOpen) fill();
  const chips = [
    h("span", { class: "chip" }, entry.channel),
    entry.http.status !== undefined && h("span", { class: `chip status ${entry.http.status < 400 ? "" : "bad"}` }, `${entry.http.status}`),
    marks.size > 0 && h("span", { class: "chip shaped" }, `shaped · ${marks.size}`),
  ];
  const summary = h(
    "summary",
    {},
    h("span", { class: "arrow" }, h("span", { "aria-hidden": "true" }, arrow), h("span", { class: "unseen" }, spoken)),
    h("span", { class: "what" }, h("b", {}, title), preview && h("span", { class: "preview" }, preview)),
    h("span", { class: "chips" }, chips),
  );
  return h("li", { class: `entry ${entry.direction} ${kind}`, dataset: { kind } }, h("details", { open: isOpen, ontoggle: fill }, summary, body));
}

function opened(entry, marks, context, isBrief) {
  const parts = [];
  if (entry.http.method) {
    const button = h("button", { type: "button", class: "small", onclick: () => copy(curl(entry), button) }, "Copy as curl");
    parts.push(h("p", { class: "request-line" }, h("code", {}, `${entry.http.method} ${new URL(entry.http.url).pathname}`), button));
  }
  parts.push(headersOf(entry.http.headers, !isBrief));
  if (marks.size) parts.push(h("p", { class: "shaped-note" }, `Shaped for ${context().revision}: what is marked differs from what the newest revision is sent.`));
  if (entry.message) parts.push(jsonTree(entry.message, { marks, actions: seals(entry.message, context), depth: isBrief ? 5 : 3 }));
  return parts;
}

function headersOf(headers, isOpen) {
  const rows = headers.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value)));
  return h("details", { class: "headers", open: isOpen }, h("summary", {}, `${headers.length} headers`), h("table", {}, rows));
}

/** A button at each sealed state, which opens it. */
function seals(message, context) {
  const actions = new Map();
  for (const where of ["result", "params"]) {
    const state = message[where]?.requestState;
    if (typeof state === "string") actions.set(`/${where}/requestState`, sealButton(state, context));
  }
  return actions;
}

function sealButton(state, context) {
  const shown = h("div", { class: "opened", hidden: true });
  const button = h("button", { type: "button", class: "small seal", "aria-expanded": "false" }, "Open the seal");
  button.onclick = async () => {
    if (!shown.hidden) {
      shown.hidden = true;
      button.textContent = "Open the seal";
      return button.setAttribute("aria-expanded", "false");
    }
    const found = await openState(state, context().headers).catch((error) => ({ closed: error.message }));
    const about = found.closed
      ? h("p", {}, `It stays closed: ${found.closed}.`)
      : h("p", {}, "Encrypted and authenticated: only the server can read it. What it is bound to, and what the next round needs:");
    shown.replaceChildren(about, found.closed ? "" : jsonTree(found, { depth: 3 }));
    shown.hidden = false;
    button.textContent = "Close it again";
    button.setAttribute("aria-expanded", "true");
  };
  return [h("br"), button, shown];
}
