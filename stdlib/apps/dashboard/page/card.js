// stdlib/apps/dashboard/page/card.js: one chart of the curves, with a line for each run that is drawn, its
// legend, and what can be done with it.
import { Chart } from "./chart.js";
import { color } from "./colors.js";
import { fill, h } from "./dom.js";
import { asCsv, asPng } from "./download.js";
import { exact, number, seconds, short } from "./numbers.js";
import { drawn, isPointed, nameOf, run } from "./runs.js";
import { samplesOf, showSample } from "./samples.js";
import { points, series } from "./series.js";
import { dashOf, splitOf } from "./splits.js";
import { set, state } from "./state.js";

const BEHIND = 8; // runs up to which what was smoothed stays visible behind
const LEGEND = 6; // lines up to which a legend is open by itself

// Where a step is on the axis, also one that was not logged or was thinned out.
function placeOf({ xs, steps }, step) {
  const after = steps.findIndex((one) => one >= step);
  if (after < 0) return xs[xs.length - 1];
  if (after === 0 || steps[after] === step) return xs[after];
  const share = (step - steps[after - 1]) / (steps[after] - steps[after - 1]);
  return xs[after - 1] + share * (xs[after] - xs[after - 1]);
}

const LOW = 220, MIDDLE = 340, HIGH = 440; // pixels of a chart

// Few charts are as high as fit into the page.
const heightOf = (count) => count === 1 ? Math.max(MIDDLE, Math.min(640, window.innerHeight - 280))
  : count === 2 ? MIDDLE : LOW;

let legendsOpen = false; // the long ones

// The pinned charts in their order, with one moved there, or away.
function pin(title) {
  const list = state.pins || [];
  set({ pins: list.includes(title) ? list.filter((one) => one !== title) : [...list, title] });
}

function move(title, by) {
  const list = [...state.pins || []], at = list.indexOf(title), to = at + by;
  if (at < 0 || to < 0 || to >= list.length) return;
  [list[at], list[to]] = [list[to], list[at]];
  set({ pins: list });
}

export class Card {
  constructor({ title, names }) {
    this.title = title;
    this.names = names;
    this.chart = new Chart({ label: title, group: "curves", time: state.x === "time",
      onZoom: (range) => set({ range }) });
    this.note = h("p", { class: "dim note" });
    this.legend = h("div", { class: "legends" });
    this.large = false;
    this.element = h("article", { class: "card", "data-metric": title }, h("header", {},
      h("h3", {}, title), this.note, this.actions()), this.chart.element, this.legend);
    this.near = false; // whether it is where it can be seen
    this.dirty = true;
  }

  actions() {
    const button = (text, label, onclick) => h("button", { type: "button", class: "small",
      "aria-label": `${label}: ${this.title}`, title: label, onclick }, text);
    const report = (promise) => promise.catch((error) => { this.note.textContent = error.message; });
    this.pinned = button("Pin", "Pin to the top", () => pin(this.title));
    this.before = button("◀", "Move to the front", () => move(this.title, -1));
    this.after = button("▶", "Move to the back", () => move(this.title, 1));
    return h("div", { class: "actions" }, this.before, this.after, this.pinned,
      button("CSV", "Values as CSV", () => report(asCsv(this.title, this.names, drawn()))),
      button("PNG", "Picture as PNG", () => report(asPng(this.title, this.chart))),
      h("button", { type: "button", class: "small wide", "aria-pressed": "false", onclick: (e) => {
        this.large = this.element.classList.toggle("large");
        e.currentTarget.setAttribute("aria-pressed", String(this.large));
        this.size(this.count);
      } }, "Large"));
  }

  // As one of `count` charts, with or without a pin.
  size(count) {
    this.count = count;
    const list = state.pins || [], at = list.indexOf(this.title);
    this.pinned.setAttribute("aria-pressed", String(at >= 0));
    this.before.hidden = at <= 0;
    this.after.hidden = at < 0 || at === list.length - 1;
    const height = `${Math.max(this.large ? HIGH : 0, heightOf(count))}px`;
    if (this.chart.plot.style.height === height) return;
    this.chart.plot.style.height = height;
    this.chart.resize();
  }

  line(id, name) {
    const one = series(id, name);
    if (!one || one.xs.length === 0) return null;
    const { smooth, logx, logy } = state;
    const { line, lost } = points(one, { smooth, logx, logy });
    const first = logx ? one.xs.length - line.length : 0; // x of 0 are left out at the start
    const raw = smooth > 0 && drawn().length <= BEHIND
      && points({ ...one, drawing: null }, { smooth: 0, logx, logy }).line;
    const many = this.names.length > 1;
    return { id, one, name, label: many ? `${nameOf(id)} ${splitOf(name).split}` : nameOf(id),
      color: color(id), dash: many ? dashOf(name) : null, points: line, faint: raw || null,
      pointed: isPointed(id),
      lost: lost.map((i) => [one.xs[i], one.ys[i]]), read: (i) => ({
        value: exact(one.values[i + first]), smooth: smooth > 0 && line[i][1] !== null ? short(line[i][1]) : null,
        at: state.x === "time" ? seconds(one.xs[i + first]) : state.x === "epoch"
          ? `epoch ${one.xs[i + first]}, step ${one.steps[i + first]}`
          : `step ${one.steps[i + first]}` }) };
  }

  draw() {
    if (!this.near) return;
    this.dirty = false;
    const ids = drawn(), lines = ids.flatMap((id) => this.names.map((name) => this.line(id, name)))
      .filter(Boolean);
    this.chart.o.time = state.x === "time";
    this.chart.set(lines, { logx: state.logx, logy: state.logy, range: state.range,
      clip: state.clip });
    this.say(lines, ids);
    this.showLegend(lines);
    Promise.all(this.names.map((name) => samplesOf(ids, name))).then((found) =>
      this.mark(found.flat(), lines));
  }

  say(lines, ids) {
    let lost = 0, low = 0;
    const lacking = ids.map((id) => ({ id, problem: this.names.map((name) =>
      series(id, name)?.problem).find(Boolean) })).filter((one) => one.problem);
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

  showLegend(lines) {
    const list = h("ul", { class: "legend" }, lines.map(({ label, color: of, dash, one, id, name }) => {
      const last = one.whole ? one.values[one.values.length - 1] : run(id)?.last?.[name];
      return h("li", { "data-id": id }, h("span", { class: dash ? "swatch dashed" : "swatch",
        style: dash ? { borderColor: of } : { background: of } }), h("span", { class: "text" }, label),
      h("span", { class: "number value", title: exact(last) }, short(last ?? "")));
    }));
    if (lines.length <= LEGEND) {
      fill(this.legend, list);
      return;
    }
    const fold = h("details", { open: legendsOpen, ontoggle: () => { legendsOpen = fold.open; } },
      h("summary", {}, `${lines.length} lines`), list);
    fill(this.legend, fold);
  }

  mark(found, lines) {
    const marks = [];
    for (const { id, sample } of found) {
      const one = lines.find((line) => line.id === id && line.name === sample.name)?.one;
      if (!one) continue;
      marks.push({ x: placeOf(one, sample.step), y: number(sample.value), onclick: () => showSample(id, sample),
        label: `${nameOf(id)}: samples of step ${sample.step}, ${sample.name} ${exact(sample.value)}` });
    }
    this.chart.setMarks(marks);
  }
}
