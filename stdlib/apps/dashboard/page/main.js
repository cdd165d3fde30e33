// stdlib/apps/dashboard/page/main.js: starts the page: the list of runs, and the view that is chosen.
import { listen, notice, watch } from "./api.js";
import * as console_ from "./console.js";
import * as curves from "./curves.js";
import * as diff from "./diff.js";
import { byId, fill, h, later } from "./dom.js";
import * as layers from "./layers.js";
import * as media from "./media.js";
import * as run_list from "./run_list.js";
import * as run_view from "./run_view.js";
import { about, drawn, forget, nameOf, onRuns, run, start as startRuns } from "./runs.js";
import { onChange, set, state } from "./state.js";
import * as system from "./system.js";
import * as values from "./values.js";

const VIEWS = { curves: ["Curves", curves], values: ["Values", values], diff: ["Diff", diff] };
const OF_RUN = { run: ["Run", run_view], system: ["System", system], layers: ["Layers", layers],
  media: ["Media", media], console: ["Console", console_] };

let current = null; // the name of the view that is shown
let view = null;

function drawTabs() {
  const tab = (name, text) => h("button", { type: "button", "data-view": name,
    "aria-current": state.view === name ? "page" : null, onclick: () => set({ view: name }) }, text);
  const tabs = byId("tabs"), focus = document.activeElement?.dataset?.view;
  fill(tabs, Object.entries(VIEWS).map(([name, [text]]) => tab(name, text)), state.run && [
    h("span", { class: "of-run", title: nameOf(state.run) }, nameOf(state.run)),
    Object.entries(OF_RUN).map(([name, [text]]) => tab(name, text))]);
  if (focus) tabs.querySelector(`[data-view="${focus}"]`)?.focus();
  const chosen = tabs.querySelector("[aria-current]");
  if (!chosen) return;
  const left = chosen.offsetLeft - tabs.offsetLeft, right = left + chosen.offsetWidth;
  if (left < tabs.scrollLeft) tabs.scrollLeft = left - 16;
  else if (right > tabs.scrollLeft + tabs.clientWidth) tabs.scrollLeft = right - tabs.clientWidth + 16;
}

function show(changed) {
  const views = { ...VIEWS, ...(state.run ? OF_RUN : {}) };
  const name = views[state.view] ? state.view : "curves";
  drawTabs();
  watch([...drawn(), state.run].filter(Boolean));
  if (name === current) {
    view.update?.(changed);
    return;
  }
  view?.stop?.();
  current = name;
  const element = h("section", { id: "view", class: name });
  byId("view").replaceWith(element);
  view = views[name][1].start(element);
  byId("main").scrollTop = 0;
  const layout = byId("main").parentElement; // what scrolls on a phone
  layout.scrollTop += Math.min(0, byId("main").getBoundingClientRect().top
    - layout.getBoundingClientRect().top);
  if (window.Dygraph) notice("");
  document.title = `${state.run && OF_RUN[name] ? nameOf(state.run) + " · " : ""}ltrain dashboard`;
}

// What is shown of a run has changed there: each kind at most once a second.
const pending = new Set();
const refresh = later(1000, () => {
  const what = new Set(pending);
  pending.clear();
  view?.refresh?.(what);
});

listen("changed", (event) => {
  forget(event.id);
  if (event.id !== state.run && !drawn().includes(event.id)) return;
  for (const what of event.what) pending.add(what);
  refresh();
});

listen("rows", (event) => {
  const one = run(event.id);
  if (one) one.rows = event.rows;
  if (current === "values" || current === "run" && event.id === state.run) {
    forget(event.id);
    pending.add("rows");
    refresh();
  }
});

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});

byId("dialog").addEventListener("click", (event) => {
  if (event.target === byId("dialog")) byId("dialog").close();
});

async function start() {
  onChange(show);
  let newest = "";
  onRuns(() => {
    const key = drawn().join(" ");
    drawTabs();
    if (key === newest) return;
    newest = key;
    show(new Set(["drawn"]));
  });
  run_list.start();
  try {
    await startRuns();
  } catch (error) {
    notice(error.message);
    return;
  }
  byId("root").textContent = about.root;
  if (!window.Dygraph) notice("This build of ltrain has no charts: it found no dygraphs.");
  if (current === null) show();
}

start();
