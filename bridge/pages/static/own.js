// What the page asks its own server for, beside MCP; and what the server wrote into the page.
import { byId } from "./dom.js";

export const facts = JSON.parse(byId("facts").textContent);
const revisions = new Map(facts.revisions.map((revision) => [revision.name, revision]));
export const newest = facts.revisions[0];
export const revisionOf = (name) => revisions.get(name) ?? newest;
export const isModern = (name) => revisionOf(name).era === "modern";

/** Asks the page's server; `headers` are those that the client's own requests have, such as Authorization. */
async function ask(what, body, headers = {}) {
  const reply = await fetch(`playground/${what}`, {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json", "Playground-Token": facts.token },
    body: JSON.stringify(body),
  });
  const answer = await reply.json();
  if (!reply.ok) throw new Error(answer.error);
  return answer;
}

/** Opens a sealed requestState: `{claims, state}`, or `{closed: why}`. */
export const openState = (requestState, headers) => ask("open", { requestState }, headers);

/** How a client would be asked, and why: `{revision, era, form: {route, reason}, url: {route, reason}}`. */
export const routeOf = ({ revision, capabilities, name }, headers) =>
  ask("route", { revision, capabilities, info: { name } }, headers);

/** Puts what is served back to how it was. */
export const restart = () => ask("restart", {});
