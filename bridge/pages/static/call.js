// The middle of the page: the tools as a client sees them, a call, and what its user then sees.
import { announce, brief, byId, focusOn, h } from "./dom.js";
import { Chat } from "./chat.js";
import { runCall } from "./clients.js";
import { formOf } from "./forms.js";
import { jsonTree } from "./json.js";
import { facts } from "./own.js";
import { showQuestion } from "./questions.js";
import { valueOf } from "./wire.js";

const FIRST = "close_ticket";

export class CallPanel {
  #client = null;
  #tool = null;
  #fields = null;
  #stopping = null;
  #names = null;

  constructor() {
    byId("call-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#call();
    });
    byId("stop").addEventListener("click", () => this.#stopping?.abort());
  }

  /** Shows the tools of a client that is connected. */
  use(client) {
    this.#stopping?.abort();
    this.#client = client;
    byId("screen").replaceChildren();
    byId("tool-list").open = true;
    this.showTools();
  }

  /** Shows the tools once more: their list has changed. */
  showTools() {
    const { tools } = this.#client;
    const names = new Set(tools.map(({ name }) => name));
    const before = this.#names;
    this.#names = names;
    byId("tools").replaceChildren(...tools.map((tool) => this.#toolRow(tool, before && !before.has(tool.name))));
    const fallback = names.has(facts.fallbackTool);
    byId("tools-count").textContent = `${tools.length} tools${fallback ? `, ${facts.fallbackTool} among them` : ""}`;
    if (before && before.has(facts.fallbackTool) !== fallback)
      announce(fallback ? `${facts.fallbackTool} has appeared in the list of tools` : `${facts.fallbackTool} has left the list of tools`);
    const kept = tools.find(({ name }) => name === this.#tool?.name) ?? tools.find(({ name }) => name === FIRST) ?? tools[0];
    if (kept) this.#choose(kept);
    const list = byId("tools");
    const shown = list.querySelector(".fallback") ?? list.querySelector(":has(:checked)");
    if (shown) list.scrollTop = shown.offsetTop + shown.offsetHeight - list.offsetTop - list.clientHeight + 8;
  }

  #toolRow(tool, isNew) {
    const isFallback = tool.name === facts.fallbackTool;
    const radio = h("input", { type: "radio", name: "tool", value: tool.name, onchange: () => this.#choose(tool) });
    const badge = isFallback && h("span", { class: "badge chat" }, "only for chat clients");
    const about = h("span", { class: "tool-about" }, brief((tool.description ?? "").split("\n")[0], 120));
    return h("label", { class: `tool${isFallback ? " fallback" : ""}${isNew ? " is-new" : ""}`, dataset: { tool: tool.name } }, radio, h("code", {}, tool.name), badge, about);
  }

  #choose(tool) {
    const isOther = tool.name !== this.#tool?.name || !this.#fields;
    this.#tool = tool;
    const radio = document.querySelector(`#tools input[value="${CSS.escape(tool.name)}"]`);
    if (radio) radio.checked = true;
    byId("tool-picked").textContent = tool.name;
    byId("call-button").textContent = `Call ${tool.name}`;
    byId("tool-about").textContent = tool.description ?? "";
    if (!isOther) return;
    this.#fields = formOf(tool.inputSchema);
    byId("arguments").replaceChildren(this.#fields.isEmpty ? h("p", { class: "hint" }, "It takes no arguments.") : this.#fields.node);
  }

  async #call() {
    this.#stopping?.abort();
    const stopping = (this.#stopping = new AbortController());
    const screen = byId("screen");
    screen.replaceChildren();
    byId("tool-list").open = false;
    this.#busy(true);
    const args = this.#fields.read();
    const chat = this.#client.isChat ? new Chat(screen) : null;
    chat?.say("person", `Please use ${this.#tool.name}${Object.keys(args).length ? ` with ${brief(args, 120)}` : ""}.`);
    chat?.called(this.#tool.name, args);
    try {
      const reply = await runCall(this.#client, this.#tool.name, args, (asked) => this.#ask(asked, screen, chat), stopping.signal);
      if (!stopping.signal.aborted) this.#show(reply, screen, chat);
    } catch (error) {
      if (this.#stopping === stopping) this.#failed(error, screen);
    } finally {
      if (this.#stopping === stopping) this.#busy(false);
    }
  }

  #busy(isBusy) {
    byId("stop").hidden = !isBusy;
    byId("call").dataset.busy = isBusy;
  }

  async #ask({ way, questions, pending, result, isRefused }, screen, chat) {
    byId("call").dataset.asked = way;
    if (way === "chat") {
      chat ??= new Chat(screen);
      chat.returned(result);
      announce(`The model asks: ${pending.message}`);
      return chat.ask(pending, isRefused);
    }
    const asked = Object.entries(questions);
    const answers = asked.map(async ([key, question]) => [key, await showQuestion(screen, this.#client.profile.title, question)]);
    announce(`The user is asked: ${asked.map(([, question]) => question.params?.message ?? question.method).join("; ")}`);
    focusOn(screen.querySelector(".asking:not(.is-answered) h3"));
    return Object.fromEntries(await Promise.all(answers));
  }

  #show(reply, screen, chat) {
    byId("call").dataset.asked = "";
    const { result, error } = reply;
    if (chat && result) chat.returned(result);
    const isOpen = result?._meta?.[facts.pending];
    const [kind, title] = error ? ["error", `Refused with error ${error.code}`] : result.isError ? ["error", "The tool failed"] : isOpen ? ["open", "The question stays open"] : ["result", "Result"];
    const heading = h("h3", { tabindex: "-1" }, title);
    const shown = error ? errorShown(error) : jsonTree(valueOf(result), { depth: 4 });
    screen.append(h("section", { class: `outcome ${kind}`, dataset: { outcome: kind } }, heading, shown));
    announce(`${title}. ${error ? error.message : brief(valueOf(result), 200)}`);
    focusOn(heading);
  }

  #failed(error, screen) {
    const isStopped = error.name === "AbortError";
    const heading = h("h3", { tabindex: "-1" }, isStopped ? "Stopped" : "This did not work");
    screen.replaceChildren(h("section", { class: "outcome error", dataset: { outcome: isStopped ? "stopped" : "failed" } }, heading, h("p", {}, isStopped ? "The client has cancelled the call." : error.message)));
    focusOn(heading);
  }
}

function errorShown(error) {
  const needed = error.data?.requiredCapabilities;
  const why = needed && h("p", {}, "This client did not declare that it can ask its user so: ", h("code", {}, JSON.stringify(needed)), ". Nothing was done.");
  return [h("p", {}, error.message), why];
}
