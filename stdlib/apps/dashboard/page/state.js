// stdlib/apps/dashboard/page/state.js: what the page shows. It is the address of the page (after #), so that
// a reload, Back and a link show the same.

const DEFAULTS = {
  view: "curves", // curves, values, diff; of one run: run, system, layers, media, console
  run: "", // the id of the run that is shown
  drawn: null, // ids of runs whose curves are drawn; null: the newest, as they come
  smooth: 0, x: "step", logx: false, logy: false,
  clip: false, // whether the few highest and lowest values may leave the chart
  range: null, // [from, to] of x
  join: false, // whether train/loss and val/loss are one chart
  pins: null, // titles of the charts that stand first, in their order
  metrics: "", // only charts with this in their name
  filter: "", sort: "started", order: "desc", // of the list of runs
  a: "", b: "", // the runs that are compared
  media: "", layer: "",
};

export const state = { ...DEFAULTS };
export const MOST = 20; // runs drawn

const listeners = [];
export const onChange = (fn) => listeners.push(fn);

const LISTS = new Set(["drawn", "range"]);
const PAGES = new Set(["view", "run"]); // a change of these is a step that Back undoes

function encode() {
  const list = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value === null || value === DEFAULTS[name]) continue;
    list.set(name, LISTS.has(name) ? value.join("..") : name === "pins" ? JSON.stringify(value)
      : value === true ? "1" : value);
  }
  return list.toString().replaceAll("%2F", "/");
}

const hex = (id) => /^[0-9a-f]+$/.test(id);

const READ = {
  drawn: (text) => text.split("..").filter(hex).slice(0, MOST),
  range: (text) => {
    const pair = text.split("..").map(Number);
    return pair.length === 2 && pair.every(Number.isFinite) && pair[0] < pair[1] ? pair : null;
  },
  smooth: (text) => Math.min(Math.max(Number(text) || 0, 0), 0.99),
  x: (text) => ["step", "epoch", "time"].includes(text) ? text : "step",
  logx: (text) => text === "1",
  logy: (text) => text === "1",
  clip: (text) => text === "1",
  join: (text) => text === "1",
  pins: (text) => {
    try {
      const list = JSON.parse(text);
      return Array.isArray(list) ? list.filter((one) => typeof one === "string") : null;
    } catch {
      return null;
    }
  },
};

function decode() {
  const list = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(DEFAULTS)) {
    const text = list.get(name);
    state[name] = text === null ? DEFAULTS[name] : READ[name] ? READ[name](text) : text;
  }
}

function announce(changed) {
  for (const fn of listeners) fn(changed);
}

// set({view: "run", run: id})
export function set(change) {
  const changed = new Set();
  for (const [name, value] of Object.entries(change)) {
    if (JSON.stringify(state[name]) !== JSON.stringify(value)) {
      state[name] = value;
      changed.add(name);
    }
  }
  if (changed.size === 0) return;
  const address = "#" + encode();
  if ([...changed].some((name) => PAGES.has(name))) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  announce(changed);
}

addEventListener("popstate", () => {
  decode();
  announce(new Set(Object.keys(DEFAULTS)));
});

decode();
