// A chat client's window, in which a visitor plays both the person and the model.
import { brief, focusOn, h, pretty } from "./dom.js";
import { facts } from "./own.js";
import { formOf } from "./forms.js";

const YES = /^\s*(y|yes|yep|ok|okay|sure|please|do it|go ahead|true|done)\b/i;
const NO = /^\s*(n|no|nope|don't|do not|false)\b/i;
const STOP = /^\s*(stop|cancel|never ?mind|forget it|later)\b/i;

export class Chat {
  constructor(place) {
    this.log = h("ol", { class: "chat", "aria-label": "Chat" });
    place.append(this.log);
  }

  /** Adds a bubble: who is `person`, `model` or `tool`. */
  say(who, ...content) {
    const bubble = h("li", { class: `bubble by-${who}` }, h("span", { class: "who" }, WHO[who]), h("div", { class: "words" }, content));
    this.log.append(bubble);
    return bubble;
  }

  called(name, args) {
    this.say("model", "I call ", h("code", {}, `${name}(${brief(args, 160)})`));
  }

  /** What a tool returned to the model. */
  returned(result) {
    const text = (result.content ?? []).map((block) => block.text ?? `[${block.type}]`).join("\n");
    const long = text.length > 160;
    const shown = long ? h("details", {}, h("summary", {}, brief(text.split("\n")[0], 110)), h("pre", {}, text)) : h("pre", {}, text);
    this.say(result.isError ? "tool bad" : "tool", shown);
  }

  /** Asks the person; returns the arguments that the model then passes on, or null where the question is left open. */
  ask(pending, isRefused) {
    const words = isRefused ? "That does not fit. Once more: " : "";
    const bubble = this.say("model", words, h("strong", {}, pending.message), pending.url && h("p", {}, pageLink(pending.url)), asked(pending.schema));
    focusOn(bubble);
    return new Promise((resolve) => this.log.after(this.#composer(pending, resolve)));
  }

  #composer(pending, resolve) {
    const done = (given) => {
      node.remove();
      resolve(given);
    };
    const place = h("div", {});
    const node = h("div", { class: "composer" }, this.#reply(pending, place, done), place);
    return node;
  }

  /** The person's part. */
  #reply(pending, place, done) {
    const field = h("input", { type: "text", "aria-label": "The person's reply", placeholder: "Type a reply…", autocomplete: "off" });
    const send = (text) => {
      if (!text.trim()) return;
      this.say("person", text);
      field.value = "";
      place.replaceChildren(this.#model(pending, understood(text, pending.schema), done));
      focusOn(place.querySelector("h3"));
    };
    const submit = (event) => {
      event.preventDefault();
      send(field.value);
    };
    const quick = ["Yes", "No", "Never mind"].map((text) => h("button", { type: "button", class: "small", onclick: () => send(text) }, text));
    const leave = h("button", { type: "button", class: "small quiet", onclick: () => done(null) }, "Leave it open");
    return h("form", { class: "reply", onsubmit: submit }, h("h3", {}, "You are the person"), h("div", { class: "row" }, field, h("button", { class: "primary" }, "Reply")), h("div", { class: "row" }, quick, leave));
  }

  /** The model's part: the call of the fallback tool, composed from what was understood. */
  #model(pending, { action, content }, done) {
    const fields = formOf(pending.schema, content);
    const preview = h("textarea", { class: "code", rows: 7, spellcheck: "false", "aria-label": `Arguments of ${facts.fallbackTool}` });
    const problem = h("p", { class: "problem", role: "alert" });
    const chosen = () => node.querySelector("input[type=radio][data-action]:checked").dataset.action;
    const compose = () => {
      const given = { elicitId: pending.elicitId, action: chosen() };
      if (given.action === "accept" && !fields.isEmpty) given.content = fields.read();
      fields.node.hidden = given.action !== "accept";
      preview.value = pretty(given);
    };
    const pick = (name) => h("label", { class: "pick" }, h("input", { type: "radio", name: "action", checked: name === action, dataset: { action: name }, onchange: compose }), name);
    const submit = (event) => {
      event.preventDefault();
      let given;
      try {
        given = JSON.parse(preview.value);
      } catch (error) {
        return (problem.textContent = `This is no JSON: ${error.message}`);
      }
      this.called(facts.fallbackTool, given);
      done(given);
    };
    const node = h(
      "form",
      { class: "model-part", novalidate: true, onsubmit: submit },
      h("h3", { tabindex: "-1" }, "You are the model"),
      h("p", { class: "hint" }, "Pass on what the person said, with the tool that only chat clients see."),
      h("fieldset", { class: "field inline" }, h("legend", {}, "action"), ["accept", "decline", "cancel"].map(pick)),
      h("div", { oninput: compose, onchange: compose }, fields.node),
      preview,
      problem,
      h("button", { class: "primary" }, `Call ${facts.fallbackTool}`),
    );
    compose();
    return node;
  }
}

const WHO = { person: "Person", model: "Model", tool: "Tool result", "tool bad": "Tool result: an error" };

const pageLink = (url) => h("a", { class: "page-link", href: /^https?:/.test(url) ? url : null, target: "_blank", rel: "noopener noreferrer" }, url);

function asked(schema) {
  const names = Object.entries(schema?.properties ?? {}).map(([name, field]) => field.title ?? name);
  return names.length ? h("p", { class: "hint" }, `I need: ${names.join(", ")}`) : null;
}

/** What a person meant, as simple as it gets: a yes, a no, one of the choices, or the text itself. */
function understood(text, schema) {
  if (STOP.test(text)) return { action: "cancel", content: {} };
  const content = {};
  const fields = Object.entries(schema?.properties ?? {});
  for (const [name, field] of fields) {
    const choices = field.enum ?? field.oneOf?.map((option) => option.const);
    const found = choices?.find((value) => text.toLowerCase().includes(String(value).toLowerCase()));
    if (found !== undefined) content[name] = found;
    else if (field.type === "boolean" && YES.test(text)) content[name] = true;
    else if (field.type === "string" && !choices && fields.length === 1) content[name] = text;
  }
  const isNo = NO.test(text) && !Object.keys(content).some((name) => schema.properties[name].enum);
  return { action: isNo ? "decline" : "accept", content: isNo ? {} : content };
}
