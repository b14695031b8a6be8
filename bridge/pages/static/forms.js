// A form made from a JSON Schema. It does not check: what does not fit is sent as it is, and the server says so.
import { h, newId, pretty } from "./dom.js";

const FEW = 4;
const TYPES = { email: "email", uri: "url", date: "date", "date-time": "text" };

/** Builds the fields of an object schema. Returns `{node, read}`; `read()` gives the object. */
export function formOf(schema, given = {}, root = schema) {
  const required = new Set(schema?.required ?? []);
  const fields = Object.entries(schema?.properties ?? {}).map(([name, raw]) => {
    const field = resolved(raw, root);
    return [name, input(name, field, required.has(name), given[name] ?? exampleOf(field), root)];
  });
  const read = () => {
    const values = {};
    for (const [name, field] of fields) {
      const value = field.read();
      if (value !== undefined) values[name] = value;
    }
    return values;
  };
  return { node: h("div", { class: "fields" }, fields.map(([, { node }]) => node)), read, isEmpty: fields.length === 0 };
}

/** What stands in a field before anybody has typed. */
const exampleOf = (field) => field.default ?? field.examples?.[0];

/** A schema without references and without the alternative of null. */
export function resolved(schema, root) {
  let found = schema ?? {};
  for (let hops = 0; hops < 8 && found.$ref?.startsWith("#/"); hops++) {
    const { $ref, ...beside } = found;
    found = { ...$ref.slice(2).split("/").reduce((at, key) => at?.[key], root), ...beside };
  }
  const others = found.anyOf?.filter((option) => option.type !== "null");
  if (others?.length === 1 && found.anyOf.length > 1) {
    const { anyOf, default: preset, ...beside } = found;
    return { ...resolved(others[0], root), ...beside, ...(preset == null ? {} : { default: preset }) };
  }
  return found;
}

/** The values to choose from, each with its title; null where there is no choice. */
function options(field) {
  const titled = field.oneOf ?? (field.anyOf?.every((option) => "const" in option) ? field.anyOf : null);
  if (titled) return titled.map((option) => [option.const, option.title ?? option.const]);
  if (field.const !== undefined) return [[field.const, field.const]];
  return field.enum ? field.enum.map((value, at) => [value, field.enumNames?.[at] ?? value]) : null;
}

function input(name, field, required, preset, root) {
  const about = { name, label: field.title ?? name, required, hint: hintOf(field) };
  const several = field.type === "array" ? options(resolved(field.items, root)) : null;
  if (several) return boxes(about, several, preset ?? []);
  const choices = options(field);
  if (choices) return choice(about, choices, preset);
  if (field.type === "boolean") return tick(about, preset === true);
  if (field.type === "object" && field.properties) return group(about, field, preset, root);
  if (["string", "number", "integer"].includes(field.type)) return line(about, field, preset);
  return anyJson(about, preset);
}

function hintOf(field) {
  const facts = [field.description];
  const [low, high] = [field.minimum ?? field.exclusiveMinimum, field.maximum ?? field.exclusiveMaximum];
  if (low !== undefined && high !== undefined) facts.push(`${low} to ${high}`);
  if (field.minLength > 1) facts.push(`at least ${field.minLength} characters`);
  if (field.maxLength) facts.push(`at most ${field.maxLength} characters`);
  return facts.filter(Boolean).join(" · ");
}

function labelled({ label, required, hint }, control, id) {
  const hintId = newId("hint");
  if (hint) control.setAttribute("aria-describedby", hintId);
  control.id = id;
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label, required ? null : h("span", { class: "optional" }, " optional")),
    control,
    hint && h("p", { class: "hint", id: hintId }, hint),
  );
}

function grouped({ label, required, hint }, controls) {
  const legend = h("legend", {}, label, required ? null : h("span", { class: "optional" }, " optional"));
  return h("fieldset", { class: "field" }, legend, hint && h("p", { class: "hint" }, hint), controls);
}

function line(about, field, preset) {
  const isText = field.type === "string";
  const type = isText ? TYPES[field.format] ?? "text" : "text";
  const control = h("input", { type, inputmode: isText ? null : "decimal", autocomplete: "off", value: preset ?? "", name: about.name });
  const read = () => {
    const text = control.value;
    if (text === "") return isText && about.required ? "" : undefined;
    return isText || Number.isNaN(Number(text)) ? text : Number(text);
  };
  return { node: labelled(about, control, newId("field")), read };
}

function tick({ name, label, hint }, preset) {
  const control = h("input", { type: "checkbox", checked: preset, name });
  const hintId = newId("hint");
  if (hint) control.setAttribute("aria-describedby", hintId);
  const node = h("div", { class: "field tick" }, h("label", {}, control, label), hint && h("p", { class: "hint", id: hintId }, hint));
  return { node, read: () => control.checked };
}

function choice(about, choices, preset) {
  if (choices.length > FEW) {
    const none = h("option", { value: "" }, "—");
    const control = h("select", { name: about.name }, none, choices.map(([value, title]) => h("option", { value: JSON.stringify(value) }, title)));
    control.value = preset === undefined ? "" : JSON.stringify(preset);
    return { node: labelled(about, control, newId("field")), read: () => (control.value ? JSON.parse(control.value) : undefined) };
  }
  const group = newId(about.name);
  const controls = choices.map(([value, title]) => [value, h("input", { type: "radio", name: group, checked: value === preset }), title]);
  const rows = controls.map(([, control, title]) => h("label", { class: "pick" }, control, title));
  const clear = about.required ? null : h("label", { class: "pick" }, h("input", { type: "radio", name: group, checked: preset === undefined }), "none");
  return { node: grouped(about, [clear, rows]), read: () => controls.find(([, control]) => control.checked)?.[0] };
}

function boxes(about, choices, preset) {
  const controls = choices.map(([value, title]) => [value, h("input", { type: "checkbox", checked: preset.includes(value) }), title]);
  const rows = controls.map(([, control, title]) => h("label", { class: "pick" }, control, title));
  return { node: grouped(about, rows), read: () => controls.filter(([, control]) => control.checked).map(([value]) => value) };
}

function group(about, field, preset, root) {
  const inner = formOf(field, preset ?? {}, root);
  return { node: grouped(about, inner.node), read: inner.read };
}

function anyJson(about, preset) {
  const control = h("textarea", { rows: 3, class: "code", name: about.name, value: preset === undefined ? "" : pretty(preset), spellcheck: "false" });
  const read = () => {
    if (control.value.trim() === "") return undefined;
    try {
      return JSON.parse(control.value);
    } catch {
      return control.value;
    }
  };
  return { node: labelled({ ...about, hint: about.hint || "JSON" }, control, newId("field")), read };
}

/** An answer that fits a form, made up: for when somebody wants to see a yes. `known` are values to prefer, by name. */
export function madeUp(schema, known = {}, root = schema) {
  const values = {};
  for (const [name, raw] of Object.entries(schema?.properties ?? {})) {
    const field = resolved(raw, root);
    const choices = options(field);
    if (choices) values[name] = exampleOf(field) ?? choices[0][0];
    else if (field.type === "object") values[name] = madeUp(field, known, root);
    else if (field.type === "boolean") values[name] = true;
    else if (field.type === "array") values[name] = (options(resolved(field.items, root)) ?? []).slice(0, 1).map(([value]) => value);
    else if (field.type === "string") values[name] = known[name] ?? exampleOf(field) ?? "An example";
    else values[name] = exampleOf(field) ?? field.minimum ?? 1;
  }
  return values;
}
