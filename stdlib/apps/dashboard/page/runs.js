// stdlib/apps/dashboard/page/runs.js: what is known of runs: the list, and of some of them the details.
import { get, listen, query } from "./api.js";
import { assign } from "./colors.js";
import { later } from "./dom.js";
import { MOST, onChange, set, state } from "./state.js";

const PAGE = 1000; // runs asked for at once
const NEWEST = 5; // runs drawn where none were chosen

export const runs = { list: [], total: 0, matched: 0, metrics: [], loaded: false, problem: null };
export const about = { root: "", control: false, version: "" };

const known = new Map(); // id -> what the list says of it
const details = new Map(); // id -> a promise of what /api/run/ID says
const listeners = [];
export function onRuns(fn) {
  listeners.push(fn);
  return () => listeners.splice(listeners.indexOf(fn), 1);
}
const announce = () => { for (const fn of listeners) fn(); };

export const run = (id) => known.get(id);
export const nameOf = (id) => known.get(id)?.name ?? id;

export const drawn = () => state.drawn ?? runs.newest ?? [];

let turn = 0; // an answer that another request has overtaken is dropped

async function load() {
  const mine = ++turn;
  try {
    const list = [];
    let answer;
    do {
      answer = await get("/api/runs" + query({ offset: list.length, limit: PAGE,
        filter: state.filter, sort: state.sort, order: state.order }));
      if (mine !== turn) return;
      list.push(...answer.runs);
    } while (list.length < answer.matched && answer.runs.length > 0);
    Object.assign(runs, answer, { list, loaded: true, problem: null });
    for (const one of list) known.set(one.id, one);
    if (!state.filter && state.sort === "started" && state.order === "desc" || !runs.newest) {
      runs.newest = list.filter((one) => !one.problem).slice(0, NEWEST).map((one) => one.id);
    }
    await loadMissing();
  } catch (error) {
    if (mine === turn) runs.problem = error.message;
  }
  if (mine !== turn) return;
  assign(drawn());
  announce();
}

// Runs of the page's address that the filter leaves out.
async function loadMissing() {
  const wanted = [...(state.drawn || []), state.run, state.a, state.b];
  await Promise.all(wanted.filter((id) => id && !known.has(id)).map(async (id) => {
    try {
      known.set(id, await get("/api/run/" + id));
    } catch {
      if (state.drawn?.includes(id)) set({ drawn: state.drawn.filter((one) => one !== id) });
      if (state.run === id) set({ run: "", view: "curves" });
    }
  }));
}

const reload = later(300, load);
export const refresh = () => reload();

export async function start() {
  Object.assign(about, await get("/api/about"));
  await load();
}

// What the server says of one run; asked once, and again after forget(id).
export function detail(id) {
  if (!details.has(id)) {
    const promise = get("/api/run/" + id);
    details.set(id, promise);
    promise.then((one) => known.set(id, { ...known.get(id), ...one }),
      () => details.delete(id));
  }
  return details.get(id);
}

export const forget = (id) => details.delete(id);

// The run that is pointed at in the list: its curves come to the front.
let pointed = null;
const pointing = [];
export const isPointed = (id) => pointed === null ? null : pointed === id;

export function onPoint(fn) {
  pointing.push(fn);
  return () => pointing.splice(pointing.indexOf(fn), 1);
}

export function point(id) {
  const one = id !== null && drawn().includes(id) ? id : null;
  if (one === pointed) return;
  pointed = one;
  for (const fn of pointing) fn();
}

export function toggle(id, on) {
  const list = drawn().filter((one) => one !== id);
  if (on && list.length >= MOST) return false;
  set({ drawn: on ? [...list, id] : list });
  return true;
}

listen("hello", () => { if (runs.loaded) reload(); });
listen("runs", (event) => {
  for (const one of event.runs) {
    known.set(one.id, one);
    forget(one.id);
  }
  for (const id of event.gone || []) {
    known.delete(id);
    forget(id);
  }
  const gone = new Set(event.gone);
  if (state.drawn?.some((id) => gone.has(id))) {
    set({ drawn: state.drawn.filter((id) => !gone.has(id)) });
  }
  reload();
});

onChange((changed) => {
  if (changed.has("drawn")) assign(drawn());
  if (["filter", "sort", "order"].some((name) => changed.has(name))) reload();
});

// Steps and last values of runs that go on.
setInterval(() => {
  if (!document.hidden && runs.list.some((one) => one.status === "running")) reload();
}, 10000);
