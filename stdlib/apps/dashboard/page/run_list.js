// stdlib/apps/dashboard/page/run_list.js: the list of runs: filtered, sorted, and which of them are drawn.
import { color, onTheme } from "./colors.js";
import { byId, fill, h, later } from "./dom.js";
import { chips } from "./labels.js";
import { ago, exact, moment, seconds } from "./numbers.js";
import { about, drawn, onRuns, point, run, runs, toggle } from "./runs.js";
import { MOST, onChange, set, state } from "./state.js";

const SORTS = [["started desc", "newest first"], ["started asc", "oldest first"], ["name asc", "name"],
  ["status asc", "status"], ["seconds desc", "longest first"], ["step desc", "most steps first"]];
const PER_RUN = new Set(["run", "system", "layers", "media", "console"]);

export const badge = (status) => h("span", { class: `badge ${status}` }, status);

const count = h("p", { class: "dim count", role: "status" });
const list = h("ul", { class: "runs" });
const filter = h("input", { type: "search", value: state.filter, "aria-label": "Filter of runs",
  placeholder: "filter: name, status, lr=0.1, tag=good", spellcheck: "false",
  oninput: later(200, () => set({ filter: filter.value.trim() })) });
const sort = h("select", { "aria-label": "Order of runs", onchange: () => {
  const at = sort.value.lastIndexOf(" ");
  set({ sort: sort.value.slice(0, at), order: sort.value.slice(at + 1) });
} });

const only = h("button", { type: "button", class: "small", "aria-pressed": "false",
  title: "List only the runs that are drawn", onclick: () => {
    only.setAttribute("aria-pressed", String(only.getAttribute("aria-pressed") !== "true"));
    draw();
  } }, "Only drawn");

function fillSort() {
  const chosen = `${state.sort} ${state.order}`;
  const options = SORTS.map(([value, text]) => [value, text]);
  for (const name of runs.metrics) {
    options.push([`metric:${name} asc`, `${name}, lowest first`]);
    options.push([`metric:${name} desc`, `${name}, highest first`]);
  }
  if (!options.some(([value]) => value === chosen)) options.push([chosen, chosen]);
  const key = JSON.stringify(options);
  if (sort.dataset.key !== key) {
    sort.dataset.key = key;
    fill(sort, options.map(([value, text]) => h("option", { value }, text)));
  }
  sort.value = chosen;
}

export function open(id) {
  set({ run: id, view: PER_RUN.has(state.view) ? state.view : "run" });
  document.body.classList.remove("show-runs");
  byId("runs-toggle").setAttribute("aria-expanded", "false");
}

// The metric that the list is sorted by, and as it is shown.
function value(one) {
  const name = state.sort.startsWith("metric:") ? state.sort.slice(7) : null;
  return name && one.last?.[name] !== undefined ? `${name} ${exact(one.last[name])}` : null;
}

function item(one, chosen) {
  const on = chosen.has(one.id);
  const box = h("input", { type: "checkbox", checked: on, disabled: Boolean(one.problem),
    "aria-label": `Draw ${one.name}`, onchange: () => {
      if (toggle(one.id, box.checked)) return;
      box.checked = false;
      count.textContent = `${MOST} runs are drawn: deselect one of them first`;
    } });
  if (on) box.style.accentColor = color(one.id);
  const progress = one.step !== undefined ? `step ${one.step}` : null;
  const facts = one.problem ? [one.problem] : [value(one), progress, seconds(one.seconds),
    ago(one.started)].filter(Boolean);
  return h("li", { class: one.id === state.run ? "current" : null, "data-id": one.id,
    onpointerenter: () => point(one.id), onpointerleave: () => point(null) },
    h("span", { class: "swatch", style: { background: on ? color(one.id) : "transparent" } }),
    box,
    h("button", { type: "button", class: "name", title: moment(one.started),
      "aria-current": one.id === state.run ? "true" : null, onclick: () => open(one.id) },
    h("span", { class: "text" }, one.name), badge(one.problem ? "unreadable" : one.status),
    h("span", { class: "dim" }, facts.join(" · ")),
    one.tags?.length > 0 && h("span", { class: "tags" }, chips(one.tags)),
    one.note && h("span", { class: "dim" }, one.note),
    one.error ? h("span", { class: `error-line ${one.status}` }, one.error) : null));
}

function empty() {
  if (runs.total > 0) return h("li", { class: "dim" }, "No run has these words.");
  return h("li", { class: "dim" }, "No runs yet.");
}

let at = ""; // the run that is current in the list
let shown = ""; // what the list was made of: it is left alone while nothing changes

function draw() {
  if (!runs.loaded) {
    count.textContent = runs.problem || "loading …";
    return;
  }
  fillSort();
  const chosen = new Set(drawn());
  const of = state.filter ? `${runs.matched} of ${runs.total}` : String(runs.total);
  count.textContent = runs.problem || `${of} run${runs.total === 1 ? "" : "s"}, ${chosen.size} drawn`;
  byId("runs-toggle").textContent = `Runs (${chosen.size} of ${runs.total})`;
  byId("root").textContent = about.root;
  const few = only.getAttribute("aria-pressed") === "true";
  const listed = few ? [...chosen].map(run).filter(Boolean) : runs.list;
  const key = JSON.stringify([listed, [...chosen], state.run, state.sort, chosen.size
    && [...chosen].map(color)]);
  if (key === shown) return;
  shown = key;
  const focus = list.contains(document.activeElement) && document.activeElement.closest("li");
  const kind = focus && document.activeElement.tagName, id = focus && focus.dataset.id;
  fill(list, listed.length > 0 ? listed.map((one) => item(one, chosen)) : empty());
  if (state.run !== at) list.querySelector(".current")?.scrollIntoView({ block: "nearest" });
  at = state.run;
  if (id) list.querySelector(`[data-id="${CSS.escape(id)}"] ${kind}`)?.focus();
}

export function start() {
  fill(byId("runs"), h("div", { class: "runs-head" }, filter, sort, h("div", { class: "row" }, count,
    only, h("button", { type: "button", class: "small", title: `Draw the first ${MOST} of the list`,
      onclick: () => set({ drawn: runs.list.filter((one) => !one.problem).slice(0, MOST)
        .map((one) => one.id) }) }, `Draw ${MOST}`),
    h("button", { type: "button", class: "small", onclick: () => set({ drawn: [] }) },
      "Draw none"))), list);
  byId("runs-toggle").addEventListener("click", () => {
    const on = document.body.classList.toggle("show-runs");
    byId("runs-toggle").setAttribute("aria-expanded", String(on));
  });
  onRuns(draw);
  onTheme(() => { shown = ""; draw(); });
  onChange((changed) => {
    if (changed.has("filter") && document.activeElement !== filter) filter.value = state.filter;
    draw();
  });
  draw();
}
