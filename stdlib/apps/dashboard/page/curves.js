// stdlib/apps/dashboard/page/curves.js: a chart for each metric, or for the splits of one, in groups.
import { listen } from "./api.js";
import { Card } from "./card.js";
import { onTheme } from "./colors.js";
import { fill, h, later } from "./dom.js";
import { detail, drawn, forget, onPoint, onRuns, runs } from "./runs.js";
import { onSeries } from "./series.js";
import { chartsOf } from "./splits.js";
import { state } from "./state.js";
import { toolbar } from "./toolbar.js";

const MOST_CARDS = 500; // metrics that have a chart at once

function nothing() {
  if (!runs.loaded) return runs.problem ? null : h("p", { class: "empty" }, "Loading …");
  if (runs.total === 0) {
    return h("div", { class: "empty" }, h("h2", {}, "No runs yet"),
      h("p", {}, "Train something in this folder, and its curves are here as it goes:"),
      h("pre", {}, "ltrain run model.lua"));
  }
  if (drawn().length === 0) {
    return h("p", { class: "empty" }, "No run is drawn: choose some in the list of runs.");
  }
  return h("p", { class: "empty" }, state.metrics ? "No metric has these letters in its name."
    : "These runs have logged no metrics yet.");
}

export function start(element) {
  const cards = new Map(), bar = toolbar(), grid = h("div", { class: "groups" });
  fill(element, bar.element, grid);
  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const card = cards.get(target.dataset.metric);
      if (!card) continue;
      card.near = isIntersecting;
      if (isIntersecting && card.dirty) card.draw();
    }
  }, { rootMargin: "300px" });
  const resized = new ResizeObserver(later(100, () => {
    for (const card of cards.values()) {
      if (card.near) card.chart.resize();
    }
  }));
  resized.observe(grid);

  let waiting = false;
  const repaint = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      for (const card of cards.values()) {
        if (card.near && card.dirty) card.draw();
      }
    });
  };
  const spoil = (name) => {
    for (const card of cards.values()) {
      if (name === undefined || card.names.includes(name)) card.dirty = true;
    }
    repaint();
  };

  let turn = 0, known = new Set(); // names of the metrics that the drawn runs have
  async function layout() {
    const mine = ++turn, names = new Set(), ids = drawn();
    const found = await Promise.all(ids.map((id) => detail(id).catch(() => null)));
    if (mine !== turn) return;
    for (const one of found) {
      for (const metric of one?.metrics || []) {
        if (metric.count > 0) names.add(metric.name);
      }
    }
    known = names;
    const words = state.metrics.toLowerCase();
    const all = [...names].sort().filter((name) => name.toLowerCase().includes(words));
    const charts = chartsOf(all, state.join), list = charts.slice(0, MOST_CARDS);
    const wanted = new Map(list.map((one) => [one.title, one.names.join("\n")]));
    for (const [title, card] of cards) {
      if (wanted.get(title) === card.names.join("\n")) continue;
      seen.unobserve(card.element);
      card.chart.destroy();
      cards.delete(title);
      arranged = null;
    }
    arrange(list, charts.length - list.length);
    spoil();
  }

  let arranged = null;
  function arrange(list, more) {
    const pins = (state.pins || []).filter((title) => list.some((one) => one.title === title));
    const key = JSON.stringify([list, more, pins]);
    if (list.length === 0) {
      fill(grid, nothing());
      arranged = null;
      return;
    }
    if (key === arranged) return;
    arranged = key;
    const groups = new Map();
    for (const one of list) {
      if (!cards.has(one.title)) cards.set(one.title, new Card(one));
      if (pins.includes(one.title)) continue;
      const { title } = one, group = title.includes("/") ? title.slice(0, title.indexOf("/")) : "";
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(cards.get(title).element);
    }
    const focus = document.activeElement;
    fill(grid, pins.length > 0 && h("div", { class: "cards pinned" },
      pins.map((title) => cards.get(title).element)),
    [...groups].map(([group, elements]) => group === ""
      ? h("div", { class: "cards" }, elements)
      : h("details", { open: true }, h("summary", {}, `${group} (${elements.length})`),
        h("div", { class: "cards" }, elements))), more > 0
      && h("p", { class: "dim more" }, `${more} more metrics: find them by their names.`));
    for (const { title } of list) {
      cards.get(title).size(list.length);
      seen.observe(cards.get(title).element);
    }
    if (grid.contains(focus) && focus !== document.activeElement) {
      focus.focus();
      focus.scrollIntoView({ block: "nearest" });
    }
  }

  // A metric that a run has logged for the first time.
  const grown = listen("rows", (event) => {
    if (!drawn().includes(event.id) || event.series.every((one) => known.has(one.name))) return;
    forget(event.id);
    layout();
  });
  const stops = [grown, onSeries((_, name) => spoil(name)), onTheme(() => spoil()), onPoint(() => spoil()),
    onRuns(() => { if (arranged === null) layout(); })];
  layout();
  return {
    update(changed) {
      bar.show();
      if (!changed
        || ["drawn", "metrics", "join", "pins"].some((one) => changed.has(one))) {
        layout();
      }
      else spoil();
    },
    stop() {
      for (const stop of stops) stop();
      seen.disconnect();
      resized.disconnect();
      for (const card of cards.values()) card.chart.destroy();
      cards.clear();
    },
  };
}
