// stdlib/apps/dashboard/page/values.js: the runs that are drawn as a table: hyper-parameters, last and best
// values.
import { color } from "./colors.js";
import { fill, h } from "./dom.js";
import { exact, seconds } from "./numbers.js";
import { detail, drawn } from "./runs.js";
import { badge, open } from "./run_list.js";

// Of some runs what is not the same in all.
function differing(list) {
  const names = new Set(list.flatMap((one) => Object.keys(one.hparams || {})));
  return [...names].sort().filter((name) => list.some((one) =>
    exact(one.hparams?.[name]) !== exact(list[0].hparams?.[name])));
}

const isText = (value) => typeof value === "string" && !["nan", "inf", "-inf"].includes(value);

function describe(list) {
  const hparams = differing(list), best = new Map();
  const metrics = [...new Set(list.flatMap((one) => (one.metrics || []).map((m) => m.name)))].sort();
  for (const one of list) {
    for (const m of one.metrics || []) {
      const before = best.get(m.name);
      if (m.best === undefined) continue;
      const better = before === undefined || (m.mode === "max" ? +m.best > +before : +m.best < +before);
      if (better) best.set(m.name, m.best);
    }
  }
  const heads = ["run", "status", "time", ...hparams, ...metrics];
  return h("div", { class: "scroll" }, h("table", { class: "values sticky" },
    h("thead", {}, hparams.length > 0 && h("tr", {}, h("td", { colSpan: 3 }),
      h("th", { colSpan: hparams.length, scope: "colgroup" }, "hyper-parameters that differ"),
      h("th", { colSpan: Math.max(metrics.length, 1), scope: "colgroup" }, "metrics")),
    h("tr", {}, heads.map((text, i) => h("th", { scope: "col",
      class: i > 2 ? "number" : null }, text)))),
    h("tbody", {}, list.map((one) => h("tr", { "data-id": one.id },
      h("th", { scope: "row" }, h("span", { class: "swatch", style: { background: color(one.id) } }),
        h("button", { type: "button", class: "link", onclick: () => open(one.id) }, one.name)),
      h("td", {}, badge(one.status)), h("td", {}, seconds(one.seconds)),
      hparams.map((name) => h("td", { class: isText(one.hparams?.[name]) ? null : "number" },
        exact(one.hparams?.[name]))),
      metrics.map((name) => {
        const m = (one.metrics || []).find((metric) => metric.name === name);
        if (!m) return h("td", {});
        const first = m.best !== undefined && list.length > 1 && +m.best === +best.get(name);
        return h("td", { class: "number", "data-metric": name }, exact(m.last), h("span", {
          class: first ? "best first" : "best", title: `best, at step ${m.best_step}` },
        m.best !== undefined ? exact(m.best) : ""));
      }))))));
}

export function start(element) {
  async function draw() {
    const list = (await Promise.all(drawn().map((id) => detail(id).catch(() => null))))
      .filter(Boolean);
    if (list.length === 0) {
      fill(element, h("p", { class: "empty" }, "No run is drawn: choose some in the list of runs."));
      return;
    }
    fill(element, h("p", { class: "dim" }, "The last value of each metric, and below it the best; ",
      "bold: the best of these runs."), describe(list));
  }
  draw();
  return { update: (changed) => { if (!changed || changed.has("drawn")) draw(); }, refresh: draw };
}
