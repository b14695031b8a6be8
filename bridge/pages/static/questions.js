// A question as a client shows it: a form, a link, or, for what is no question to a person, the JSON that answers it.
import { h, newId, pretty } from "./dom.js";
import { formOf } from "./forms.js";

/** Shows a question in `place`; returns its answer, `{result}` or `{error}`, once there is one. */
export function showQuestion(place, clientName, { method, params }) {
  return new Promise((resolve) => {
    const answered = (answer, said) => {
      card.classList.add("is-answered");
      card.querySelector(".buttons").replaceChildren(h("p", { class: "said" }, said));
      card.querySelectorAll("input, select, textarea, button").forEach((control) => (control.disabled = true));
      resolve(answer);
    };
    const make = method !== "elicitation/create" ? raw : params.mode === "url" || params.url ? link : form;
    const card = make(clientName, method, params, answered);
    place.append(card);
  });
}

/** A window of the client's. */
function frame(clientName, kind, title, children) {
  const id = newId("question");
  return h(
    "section",
    { class: "asking", "aria-labelledby": id, dataset: { question: kind } },
    h("p", { class: "frame-title" }, h("span", { "aria-hidden": "true" }), `${clientName} asks its user`),
    h("h3", { id, tabindex: "-1" }, title),
    children,
  );
}

function form(clientName, _, { message, requestedSchema }, answered) {
  const fields = formOf(requestedSchema);
  const other = h("textarea", { rows: 3, class: "code", spellcheck: "false", "aria-label": "The answer's content, as JSON" });
  const byHand = h("details", { class: "by-json", ontoggle: () => byHand.open && !other.value && (other.value = pretty(fields.read())) });
  byHand.append(h("summary", {}, "Answer with other JSON, also with what does not fit"), other);
  const problem = h("p", { class: "problem", role: "alert" });
  const accept = () => {
    let content = fields.read();
    if (byHand.open) {
      try {
        content = JSON.parse(other.value);
      } catch (error) {
        return (problem.textContent = `This is no JSON: ${error.message}`);
      }
    }
    answered({ result: { action: "accept", content } }, `Accepted with ${JSON.stringify(content)}`);
  };
  return frame(clientName, "form", message, h("form", { novalidate: true, onsubmit: submitted(accept) }, fields.node, byHand, problem, buttons(answered)));
}

function link(clientName, _, { message, url }, answered) {
  const accept = () => answered({ result: { action: "accept" } }, "Accepted: the page may be opened");
  const open = h("a", { class: "page-link", href: /^https?:/.test(url) ? url : null, target: "_blank", rel: "noopener noreferrer" }, url);
  const about = h("p", { class: "hint" }, "Open the page, press its button, then accept here.");
  return frame(clientName, "url", message, h("form", { onsubmit: submitted(accept) }, h("p", {}, open), about, buttons(answered)));
}

function raw(clientName, method, params, answered) {
  const area = h("textarea", { rows: 6, class: "code", spellcheck: "false", "aria-label": "The result, as JSON", value: pretty(EXAMPLES[method] ?? {}) });
  const problem = h("p", { class: "problem", role: "alert" });
  const accept = () => {
    try {
      answered({ result: JSON.parse(area.value) }, "Answered");
    } catch (error) {
      problem.textContent = `This is no JSON: ${error.message}`;
    }
  };
  const refuse = () => answered({ error: { code: -1, message: "The user refused" } }, "Refused");
  const row = h("div", { class: "buttons" }, h("button", { class: "primary" }, "Answer"), h("button", { type: "button", onclick: refuse }, "Refuse"));
  return frame(clientName, "raw", method, h("form", { onsubmit: submitted(accept) }, h("pre", { class: "code" }, pretty(params)), area, problem, row));
}

const EXAMPLES = {
  "sampling/createMessage": { role: "assistant", model: "an-example", content: { type: "text", text: "An example" } },
  "roots/list": { roots: [{ uri: "file:///home/example", name: "An example" }] },
};

const submitted = (act) => (event) => {
  event.preventDefault();
  act();
};

function buttons(answered) {
  const end = (action, said) => h("button", { type: "button", onclick: () => answered({ result: { action } }, said) }, action === "decline" ? "Decline" : "Cancel");
  return h("div", { class: "buttons" }, h("button", { class: "primary" }, "Accept"), end("decline", "Declined"), end("cancel", "Cancelled: closed without an answer"));
}
