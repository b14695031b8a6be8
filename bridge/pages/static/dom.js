// Making elements, and telling a screen reader what has happened.

/** Makes an element: `h("a", {class: "x", href: "#", onclick: f, dataset: {y: 1}}, "text", node, null)`. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "value" || name === "checked" || name === "open") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

let ids = 0;
/** An id that nothing else on the page has. */
export const newId = (prefix) => `${prefix}-${++ids}`;

/** Says something through the page's live region. */
export function announce(text) {
  const region = byId("status");
  region.textContent = "";
  requestAnimationFrame(() => (region.textContent = text));
}

/** Moves the focus to what has just come, so that the keyboard and a screen reader go on there. */
export function focusOn(element) {
  if (!element.hasAttribute("tabindex")) element.tabIndex = -1;
  element.focus({ preventScroll: true });
  element.scrollIntoView({ block: "nearest", behavior: calm() ? "auto" : "smooth" });
}

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Copies a text, and says so on the button. Without a secure context the text is shown to be copied by hand. */
export async function copy(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    announce("Copied");
    setTimeout(() => (button.textContent = label), 1500);
  } catch {
    const area = h("textarea", { class: "by-hand", readonly: true, "aria-label": "To copy by hand", rows: 6, value: text });
    button.after(area);
    area.select();
  }
}

export const pretty = (value) => JSON.stringify(value, null, 2);

/** A value in one line, at most so long. */
export function brief(value, length = 90) {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
