// JSON as a tree that folds, with what was left out, added or changed marked in it.
import { h } from "./dom.js";

const INLINE = 64;
const LONG = 240;

/**
 * `marks` maps a path (`/tools/0/title`) to `{what: "gone" | "new" | "changed", note}`. What is gone is shown all the same.
 * `actions` maps a path to a node that stands behind the value there.
 */
export function jsonTree(value, { marks = new Map(), actions = new Map(), depth = 2 } = {}) {
  return h("div", { class: "json" }, branch("", null, value, { marks, actions, depth }, ""));
}

function branch(path, key, value, view, end) {
  const mark = view.marks.get(path);
  const label = key === null ? null : [h("span", { class: "key" }, JSON.stringify(key)), ": "];
  if (value === null || typeof value !== "object") return leaf(path, label, scalar(value), mark, view, end);
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  const gone = missing(path, value, view.marks);
  const text = JSON.stringify(value);
  const isMarked = [...view.marks.keys(), ...view.actions.keys()].some((other) => other.startsWith(`${path}/`));
  if (!entries.length && !gone.length) return leaf(path, label, Array.isArray(value) ? "[]" : "{}", mark, view, end);
  if (text.length <= INLINE && !isMarked) return leaf(path, label, inline(value), mark, view, end);
  return folded({ path, label, value, entries, gone, mark, isMarked }, view, end);
}

function folded({ path, label, value, entries, gone, mark, isMarked }, view, end) {
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  const count = `${hint(value)}${entries.length} ${Array.isArray(value) ? "item" : "field"}${entries.length === 1 ? "" : "s"}`;
  const children = h("div", { class: "children" });
  const inner = { ...view, depth: view.depth - 1 };
  const fill = () => {
    if (children.childElementCount) return;
    entries.forEach(([name, item], at) =>
      children.append(branch(`${path}/${name}`, Array.isArray(value) ? null : name, item, inner, at < entries.length - 1 ? "," : "")),
    );
    gone.forEach((name) => children.append(ghost(name, view.marks.get(`${path}/${name}`))));
  };
  const isOpen = view.depth > 0 || (isMarked && view.depth > -2 && entries.length < 12);
  if (isOpen) fill();
  const summary = h("summary", {}, label, open, h("span", { class: "count" }, ` ${count} `), h("span", { class: "shut" }, close + end), note(mark));
  return h("details", { class: `node ${mark?.what ?? ""}`, open: isOpen, ontoggle: fill }, summary, children, h("span", { class: "close" }, close + end));
}

/** What tells one folded object from the next: its name. */
const hint = ({ name, method }) => (typeof (name ?? method) === "string" ? `${name ?? method} … ` : "");

function leaf(path, label, shown, mark, view, end) {
  return h("div", { class: `leaf ${mark?.what ?? ""}` }, label, shown, end, note(mark), view.actions.get(path));
}

const note = (mark) => mark?.note && h("span", { class: "mark" }, mark.note);

const ghost = (name, mark) =>
  h("div", { class: "leaf gone" }, h("del", {}, h("span", { class: "key" }, JSON.stringify(name)), ": …"), note(mark));

/** The names that are marked as gone from just here. */
function missing(path, value, marks) {
  const found = [];
  for (const [other, { what }] of marks) {
    const name = other.slice(path.length + 1);
    if (what === "gone" && other.startsWith(`${path}/`) && !name.includes("/") && !(name in value)) found.push(name);
  }
  return found;
}

function scalar(value) {
  if (typeof value !== "string") return h("span", { class: value === null ? "null" : typeof value }, String(value));
  const text = JSON.stringify(value);
  if (text.length <= LONG) return h("span", { class: "string" }, text);
  const more = h("button", { type: "button", class: "more", onclick: () => shown.replaceChildren(text) }, `… ${text.length} characters`);
  const shown = h("span", { class: "string" }, text.slice(0, LONG / 2), more);
  return shown;
}

/** A small value in one line. */
function inline(value) {
  if (value === null || typeof value !== "object") return scalar(value);
  const isList = Array.isArray(value);
  const parts = Object.entries(value).map(([key, item], at) => [
    at ? ", " : "",
    isList ? null : [h("span", { class: "key" }, JSON.stringify(key)), ": "],
    inline(item),
  ]);
  return [isList ? "[" : "{", ...parts, isList ? "]" : "}"];
}
