// stdlib/dashboard/page/curves.js: a chart for each metric, with a line for each run that is drawn.
import { listen } from "./api.js";
import { Chart } from "./chart.js";
import { color, onTheme } from "./colors.js";
import { fill, h, later } from "./dom.js";
import { exact, number, seconds, short } from "./numbers.js";
import { detail, drawn, forget, isPointed, nameOf, onPoint, onRuns, run, runs } from "./runs.js";
import { samplesOf, showSample } from "./samples.js";
import { onSeries, points, series } from "./series.js";
import { set, state } from "./state.js";
import { toolbar } from "./toolbar.js";

const BEHIND = 8; // runs up to which what was smoothed stays visible behind
const LEGEND = 6; // runs up to which a chart has a legend
const MOST_CARDS = 500; // metrics that have a chart at once

// Where a step is on the axis, also one that was not logged or was thinned out.
function placeOf({ xs, steps }, step) {
  const after = steps.findIndex((one) => one >= step);
  if (after < 0) return xs[xs.length - 1];
  if (after === 0 || steps[after] === step) return xs[after];
  const share = (step - steps[after - 1]) / (steps[after] - steps[after - 1]);
  return xs[after - 1] + share * (xs[after] - xs[after - 1]);
}

class Card {
  constructor(name) {
    this.name = name;
    this.chart = new Chart({ label: name, group: "curves", time: state.x === "time",
      onZoom: (range) => set({ range }) });
    this.note = h("p", { class: "dim note" });
    this.legend = h("ul", { class: "legend" });
    this.element = h("article", { class: "card", "data-metric": name }, h("header", {},
      h("h3", {}, name), this.note,
      h("button", { type: "button", class: "small wide", "aria-pressed": "false", onclick: (e) => {
        const on = this.element.classList.toggle("large");
        e.currentTarget.setAttribute("aria-pressed", String(on));
        this.chart.plot.style.height = on ? "440px" : "220px";
        this.chart.resize();
      } }, "Large")), this.chart.element, this.legend);
    this.near = false; // whether it is where it can be seen
    this.dirty = true;
  }

  line(id) {
    const one = series(id, this.name);
    if (!one || one.xs.length === 0) return null;
    const { smooth, logx, logy } = state;
    const { line, lost } = points(one, { smooth, logx, logy });
    const first = logx ? one.xs.length - line.length : 0; // x of 0 are left out at the start
    const raw = smooth > 0 && drawn().length <= BEHIND
      && points({ ...one, drawing: null }, { smooth: 0, logx, logy }).line;
    return { id, one, label: nameOf(id), color: color(id), points: line, faint: raw || null, pointed: isPointed(id),
      lost: lost.map((i) => [one.xs[i], one.ys[i]]), read: (i) => ({
        value: exact(one.values[i + first]), smooth: smooth > 0 && line[i][1] !== null ? short(line[i][1], 5) : null,
        at: state.x === "time" ? seconds(one.xs[i + first]) : state.x === "epoch"
          ? `epoch ${one.xs[i + first]}, step ${one.steps[i + first]}`
          : `step ${one.steps[i + first]}` }) };
  }

  draw() {
    if (!this.near) return;
    this.dirty = false;
    const ids = drawn(), lines = ids.map((id) => this.line(id)).filter(Boolean);
    this.chart.o.time = state.x === "time";
    this.chart.set(lines, { logx: state.logx, logy: state.logy, range: state.range,
      clip: state.clip });
    this.say(lines, ids);
    this.showLegend(ids, lines);
    samplesOf(ids, this.name).then((found) => this.mark(found, lines));
  }

  say(lines, ids) {
    let lost = 0, low = 0;
    const lacking = ids.map((id) => ({ id, problem: series(id, this.name)?.problem }))
      .filter((one) => one.problem);
    for (const { one, lost: gone } of lines) {
      lost += gone.length;
      if (state.logy) low += one.ys.filter((y) => y <= 0).length;
    }
    const hidden = state.logx && lines.length > 0 && lines.every((line) => line.points.length === 0);
    this.note.textContent = [hidden && `all at ${state.x} 0, which a logarithmic axis has not`,
      lost > 0 && `${lost} not finite`, low > 0 && `${low} not above 0`,
      lacking.length > 0 && `${nameOf(lacking[0].id)}${lacking.length > 1
        ? ` and ${lacking.length - 1} more` : ""}: ${lacking[0].problem}`]
      .filter(Boolean).join(", ");
  }

  showLegend(ids, lines) {
    fill(this.legend, ids.length > LEGEND ? null : lines.map(({ label, color: of, one, id }) =>
      h("li", { "data-id": id }, h("span", { class: "swatch", style: { background: of } }),
        h("span", { class: "text" }, label),
        h("span", { class: "number value" }, exact(one.whole
          ? one.values[one.values.length - 1] : run(id)?.last?.[this.name])))));
  }

  mark(found, lines) {
    const marks = [];
    for (const { id, sample } of found) {
      const one = lines.find((line) => line.id === id)?.one;
      if (!one) continue;
      marks.push({ x: placeOf(one, sample.step), y: number(sample.value), onclick: () => showSample(id, sample),
        label: `${nameOf(id)}: samples of step ${sample.step}, ${this.name} ${exact(sample.value)}` });
    }
    this.chart.setMarks(marks);
  }
}

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
      if (name === undefined || card.name === name) card.dirty = true;
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
    const list = all.slice(0, MOST_CARDS), wanted = new Set(list);
    for (const [name, card] of cards) {
      if (wanted.has(name)) continue;
      seen.unobserve(card.element);
      card.chart.destroy();
      cards.delete(name);
    }
    arrange(list, all.length - list.length);
    spoil();
  }

  let arranged = null;
  function arrange(list, more) {
    const key = JSON.stringify([list, more]);
    if (list.length === 0) {
      fill(grid, nothing());
      arranged = null;
      return;
    }
    if (key === arranged) return;
    arranged = key;
    const groups = new Map();
    for (const name of list) {
      if (!cards.has(name)) cards.set(name, new Card(name));
      const group = name.includes("/") ? name.slice(0, name.indexOf("/")) : "";
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(cards.get(name).element);
    }
    fill(grid, [...groups].map(([group, elements]) => group === ""
      ? h("div", { class: "cards" }, elements)
      : h("details", { open: true }, h("summary", {}, `${group} (${elements.length})`),
        h("div", { class: "cards" }, elements))), more > 0
      && h("p", { class: "dim more" }, `${more} more metrics: find them by their names.`));
    for (const name of list) seen.observe(cards.get(name).element);
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
      if (!changed || changed.has("drawn") || changed.has("metrics")) layout();
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
