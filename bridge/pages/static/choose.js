// The left of the page: which client is played, and what it declares.
import { byId, pretty } from "./dom.js";
import { facts, isModern } from "./own.js";

/** Calls `chosen(profile)` whenever another client is to be played. */
export class Chooser {
  #chosen;

  constructor(chosen) {
    this.#chosen = chosen;
    for (const radio of this.#radios()) radio.addEventListener("change", () => this.#pick(radio.value));
    byId("client-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#apply();
    });
    byId("client-revision").addEventListener("change", () => this.#transports());
    byId("capabilities").addEventListener("input", () => this.#ticks());
    for (const mode of ["form", "url"]) byId(`declares-${mode}`).addEventListener("change", () => this.#declare());
  }

  /** Plays the kind that is chosen on the page. */
  begin(id) {
    const radio = this.#radios().find(({ value }) => value === id) ?? this.#radios().find(({ checked }) => checked);
    radio.checked = true;
    this.#pick(radio.value);
  }

  #radios = () => [...document.querySelectorAll("input[name=kind]")];

  #pick(id) {
    const kind = facts.kinds.find((one) => one.id === id);
    byId("client-name").value = facts.clientName;
    byId("client-revision").value = kind.revision;
    byId("transport").value = kind.transport;
    byId("capabilities").value = pretty(kind.capabilities);
    this.#ticks();
    this.#transports();
    this.#apply();
  }

  /** The capabilities as JSON follow the two ticks. */
  #declare() {
    const declared = this.#declared() ?? {};
    const modes = Object.fromEntries(["form", "url"].filter((mode) => byId(`declares-${mode}`).checked).map((mode) => [mode, {}]));
    const { elicitation, ...others } = declared;
    byId("capabilities").value = pretty(Object.keys(modes).length ? { ...others, elicitation: modes } : others);
  }

  /** The two ticks follow the capabilities as JSON. */
  #ticks() {
    const { elicitation } = this.#declared() ?? {};
    byId("declares-url").checked = Boolean(elicitation?.url);
    byId("declares-form").checked = Boolean(elicitation && (elicitation.form || !elicitation.url));
  }

  #transports() {
    const modern = isModern(byId("client-revision").value);
    byId("transport").disabled = modern;
    if (modern) byId("transport").value = "http";
  }

  #declared() {
    try {
      const declared = JSON.parse(byId("capabilities").value);
      byId("client-problem").textContent = "";
      return declared;
    } catch (error) {
      byId("client-problem").textContent = `The capabilities are no JSON: ${error.message}`;
      return null;
    }
  }

  #apply() {
    const capabilities = this.#declared();
    if (capabilities === null) return;
    const kind = facts.kinds.find(({ id }) => id === this.#radios().find(({ checked }) => checked)?.value);
    const authorization = byId("authorization").value.trim();
    this.#chosen({
      title: kind.title,
      name: byId("client-name").value.trim() || facts.clientName,
      revision: byId("client-revision").value,
      transport: byId("transport").value,
      capabilities,
      headers: authorization ? { Authorization: authorization } : {},
    });
  }
}
