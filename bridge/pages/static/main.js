// Puts the page together: a client is chosen, connected, and shown from three sides.
import { announce, byId, focusOn, h } from "./dom.js";
import { CallPanel } from "./call.js";
import { Chooser } from "./choose.js";
import { Compare } from "./compare.js";
import { makeClient } from "./clients.js";
import { facts, restart, routeOf } from "./own.js";
import { learnNewest } from "./shaped.js";
import { Wire } from "./wire.js";
import { WireView } from "./wireview.js";

const view = new WireView(byId("wire-list"), byId("wire-empty"));
const panel = new CallPanel();
const compare = new Compare(showWireOf);
let current = null;
let attempt = 0;

async function play(profile) {
  const mine = ++attempt;
  current?.client.close();
  const wire = new Wire();
  const client = makeClient(profile, wire, (message) => noticed(client, message));
  current = { client, wire };
  document.body.dataset.ready = false;
  byId("call-button").disabled = true;
  byId("connection").textContent = "Connecting…";
  byId("problem").hidden = true;
  try {
    const [route] = await Promise.all([routeOf(profile, profile.headers), learnNewest(profile.headers)]);
    if (mine !== attempt) return;
    explain(route);
    view.show(wire, () => ({ revision: route.revision, headers: profile.headers }));
    client.isChat = route.form.route === "chat";
    await client.open();
    await client.listTools();
    if (mine !== attempt) return;
    panel.use(client);
    byId("call-button").disabled = false;
    compare.use(client.tools, profile.headers);
    byId("connection").textContent = connected(client, route);
    announce(`Connected as ${profile.title}, ${route.revision}. ${facts.ways[route.form.route].title}.`);
  } catch (error) {
    if (mine !== attempt) return;
    byId("connection").textContent = "Not connected";
    byId("problem").hidden = false;
    byId("problem").textContent = `This client cannot connect: ${error.message}`;
  } finally {
    if (mine === attempt) document.body.dataset.ready = true;
  }
}

function connected(client, route) {
  const how = route.era === "modern" ? "no session: each request stands alone" : "in a session";
  return `${client.info.title ?? client.info.name ?? "Connected"} · ${route.revision} · ${how}`;
}

/** Says how this client is asked, and why. */
function explain({ form, url }) {
  const { title, text } = facts.ways[form.route];
  const place = byId("route");
  place.className = `route ${form.route}`;
  const other = url.route !== form.route && `Where a tool sends its user to a page: ${facts.ways[url.route].short}.`;
  place.replaceChildren(h("p", {}, h("b", {}, title), h("span", { class: "why" }, ` because ${facts.reasons[form.reason] ?? form.reason}`)), h("p", {}, text), other ? h("p", { class: "hint" }, other) : "");
}

async function noticed(client, { method }) {
  if (method !== "notifications/tools/list_changed" || client !== current?.client) return;
  client.isChat = (await client.listTools()).some(({ name }) => name === facts.fallbackTool);
  panel.showTools();
}

/** Shows the wire of a lane of the comparison, in a window of its own. */
function showWireOf(wire, profile) {
  byId("lane-wire-title").textContent = `${profile.title} · ${profile.revision}`;
  const list = byId("lane-wire-list");
  new WireView(list, h("p")).show(wire, () => ({ revision: profile.revision, headers: profile.headers }));
  byId("lane-wire").showModal();
  byId("lane-wire").scrollTop = 0;
}

function showView() {
  const name = location.hash === "#compare" ? "compare" : "try";
  for (const other of ["try", "compare"]) {
    byId(other).hidden = other !== name;
    const link = document.querySelector(`nav a[href="#${other}"]`);
    if (other === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.body.dataset.view = name;
}

function begin() {
  const chooser = new Chooser(play);
  addEventListener("hashchange", () => {
    showView();
    focusOn(document.querySelector("main > :not([hidden]) h2"));
  });
  addEventListener("pagehide", () => current?.client.close());
  byId("clear-wire").addEventListener("click", () => view.clear());
  byId("close-lane-wire").addEventListener("click", () => byId("lane-wire").close());
  byId("restart").addEventListener("click", async () => {
    await restart();
    announce("Everything is as it was at the start");
  });
  showView();
  chooser.begin(new URLSearchParams(location.search).get("client"));
}

begin();
