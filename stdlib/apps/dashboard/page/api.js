// stdlib/apps/dashboard/page/api.js: requests to the server, and what it reports by itself.
import { byId } from "./dom.js";
import { parse } from "./numbers.js";

export function notice(text) {
  const element = byId("notice");
  element.textContent = text || "";
  element.hidden = !text;
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Error("the dashboard does not answer");
  }
  const body = await response.text();
  if (response.status === 401) {
    const said = "This session has ended: open the address that ltrain dashboard printed last.";
    notice(said);
    throw new Error(said);
  }
  let value;
  try {
    value = parse(body);
  } catch {
    throw new Error(`${response.status}: ${body.slice(0, 200)}`);
  }
  if (!response.ok) throw new Error(value.error || String(response.status));
  return value;
}

export const get = (path, signal) => ask(path, { signal });
export const post = (path) => ask(path, { method: "POST" });

// "?a=1&b=2&b=3" of {a: 1, b: [2, 3]}; what has no value is left out.
export function query(values) {
  const list = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") list.append(name, one);
    }
  }
  const text = list.toString();
  return text ? "?" + text : "";
}

// Events: names -> functions; each event goes to all that listen.

const listeners = new Map();
let source = null;
let watched = null; // the runs of the stream, as one text
let wanted = [];

// Returns what ends it.
export function listen(name, fn) {
  if (!listeners.has(name)) listeners.set(name, new Set());
  listeners.get(name).add(fn);
  return () => listeners.get(name).delete(fn);
}

function show(text, kind) {
  const element = byId("live");
  element.textContent = text;
  element.className = "live " + kind;
}

// The runs whose rows are to be reported.
export function watch(ids) {
  wanted = [...new Set(ids)].slice(0, 32);
  if (!document.hidden) connect();
}

function disconnect() {
  source?.close();
  source = watched = null;
}

function connect() {
  const key = wanted.slice().sort().join(" ");
  if (key === watched && source.readyState !== EventSource.CLOSED) return;
  disconnect();
  watched = key;
  source = new EventSource("/api/events" + query({ run: wanted }));
  source.onerror = (event) => {
    if (event.target !== source) return;
    const gone = source.readyState === EventSource.CLOSED;
    show(gone ? "not connected" : "connecting …", "off");
    if (!gone) return;
    get("/api/about").catch(() => {}); // says so where the session has ended
    setTimeout(() => { if (event.target === source && !document.hidden) connect(); }, 3000);
  };
  for (const name of ["hello", "rows", "reset", "changed", "runs"]) {
    source.addEventListener(name, (event) => {
      show("live", "on");
      const data = parse(event.data);
      for (const fn of listeners.get(name) || []) fn(data);
    });
  }
}

// A page that nobody sees keeps no connection: browsers have six for all pages of a server.
addEventListener("visibilitychange", () => {
  if (document.hidden) disconnect();
  else connect();
});
addEventListener("pagehide", disconnect);
addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
