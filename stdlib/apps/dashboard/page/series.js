// stdlib/apps/dashboard/page/series.js: the values of metrics: fetched when they are wanted, continued by
// what the server reports.
import { get, listen, query } from "./api.js";
import { number } from "./numbers.js";
import { onChange, state } from "./state.js";

const POINTS = 2000;
const GROWN = 2 * POINTS; // points from which on a series is fetched again, decimated
const NAMES = 64; // names in one request

const cache = new Map(); // "id name" -> series
const wanted = new Map(); // id -> names to be asked for
const asked = new Set(); // keys that are asked for
const listeners = [];

// fn(id, name) after a series has changed.
export function onSeries(fn) {
  listeners.push(fn);
  return () => listeners.splice(listeners.indexOf(fn), 1);
}

const announce = (id, name) => { for (const fn of listeners) fn(id, name); };

const keyOf = (id, name) => `${id} ${name}`;
const frame = () => state.range ? `${state.x} ${state.range.join(" ")}` : state.x;

// A series is right for a range of which it has all values.
const suits = (one) => one.x === state.x && !one.stale
  && (one.frame === frame() || one.whole && !one.decimated);

// {xs, steps, ys, values}: of a run; null before it has come. It is asked for where it is lacking.
export function series(id, name) {
  const one = cache.get(keyOf(id, name));
  if (!one || !suits(one)) want(id, name);
  return one && one.x === state.x ? one : null;
}

function want(id, name) {
  const key = keyOf(id, name);
  if (asked.has(key)) return;
  if (wanted.size === 0) setTimeout(ask, 0);
  if (!wanted.has(id)) wanted.set(id, new Set());
  wanted.get(id).add(name);
}

function ask() {
  for (const [id, names] of wanted) {
    const list = [...names];
    for (let at = 0; at < list.length; at += NAMES) request(id, list.slice(at, at + NAMES));
  }
  wanted.clear();
}

async function request(id, names) {
  const [from, to] = state.range || [];
  const now = { x: state.x, frame: frame(), whole: !state.range };
  for (const name of names) asked.add(keyOf(id, name));
  try {
    const answer = await get(`/api/run/${id}/metrics` + query({ name: names, x: state.x,
      points: POINTS, from, to }));
    const got = new Map(answer.series.map((one) => [one.name, one]));
    for (const name of names) {
      const one = got.get(name) || { x: [], step: [], y: [], count: 0 };
      cache.set(keyOf(id, name), { ...now, xs: one.x, steps: one.step, values: one.y,
        ys: one.y.map(number), count: one.count, decimated: Boolean(one.decimated),
        generation: answer.generation, rows: answer.rows, problem: answer.problem });
    }
  } catch (error) {
    // What cannot be read now is not asked for again before something changes.
    for (const name of names) {
      cache.set(keyOf(id, name), { ...now, xs: [], steps: [], values: [], ys: [], count: 0, rows: -1,
        problem: error.message });
    }
  }
  for (const name of names) {
    asked.delete(keyOf(id, name));
    announce(id, name);
  }
}

function eachOf(id, fn) {
  for (const [key, one] of cache) {
    if (key.startsWith(id + " ")) fn(one, key.slice(id.length + 1));
  }
}

function voidRun(id) {
  eachOf(id, (one, name) => { one.stale = true; announce(id, name); });
}

function append(event) {
  const more = new Map(event.series.map((one) => [one.name, one]));
  eachOf(event.id, (one, name) => {
    if (one.stale || one.generation === event.generation && one.rows >= event.rows) return;
    if (one.generation !== event.generation || one.rows !== event.from) {
      one.stale = true;
    } else {
      one.rows = event.rows;
      const part = more.get(name);
      if (!part) return;
      one.xs.push(...part[state.x]);
      one.steps.push(...part.step);
      one.values.push(...part.y);
      one.ys.push(...part.y.map(number));
      one.count += part.y.length;
      one.drawing = null;
      if (one.xs.length > GROWN) one.stale = true;
    }
    announce(event.id, name);
  });
}

listen("rows", append);
listen("reset", (event) => voidRun(event.id));
listen("hello", (event) => {
  for (const held of event.runs) {
    eachOf(held.id, (one, name) => {
      if (one.generation === held.generation && one.rows === held.rows) return;
      one.stale = true;
      announce(held.id, name);
    });
  }
});

onChange((changed) => {
  if (!changed.has("drawn")) return;
  const kept = new Set(state.drawn || []);
  if (state.drawn) {
    for (const key of cache.keys()) {
      if (!kept.has(key.slice(0, key.indexOf(" ")))) cache.delete(key);
    }
  }
});

// As points of a line, kept until something changes: gaps where a value is not finite or, with a
// logarithmic axis, not above 0; smoothed by an exponential moving average corrected for its start.
export function points(one, { smooth, logx, logy }) {
  const key = `${smooth} ${logx} ${logy}`;
  if (one.drawing?.key === key) return one.drawing;
  const line = [], lost = [];
  let last = 0, weight = 0;
  for (let i = 0; i < one.xs.length; i++) {
    const x = one.xs[i];
    let y = one.ys[i];
    if (logx && !(x > 0)) continue;
    if (!Number.isFinite(y)) {
      lost.push(i);
      line.push([x, null]);
      continue;
    }
    if (smooth > 0) {
      last = last * smooth + (1 - smooth) * y;
      weight = weight * smooth + (1 - smooth);
      y = last / weight;
    }
    line.push([x, logy && y <= 0 ? null : y]);
  }
  one.drawing = { key, line, lost };
  return one.drawing;
}
