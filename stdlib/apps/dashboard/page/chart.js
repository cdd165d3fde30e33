// stdlib/apps/dashboard/page/chart.js: lines drawn by dygraphs, with a readout at the pointer and by keys.
//
// A line is {label, color, points = [[x, y or null], ...], lost = [[x, y], ...] that is not finite,
// faint = points behind it, dash = lengths of a broken line, or null, read(x) = what the readout says there, or null}.
import { ticks } from "./axis.js";
import { faint, style } from "./colors.js";
import { h } from "./dom.js";
import { seconds } from "./numbers.js";
import { showReadout } from "./readout.js";
import { middle, span, visible } from "./spans.js";

const { Dygraph } = window;
// Axes and grid alone: the legend of dygraphs is made of HTML with inline styles.
if (Dygraph) Dygraph.PLUGINS = [Dygraph.Plugins.Axes, Dygraph.Plugins.Grid];

const BOLD = 8; // lines up to which they are thicker than a pixel, which costs twice the time
const all = new Set(); // the charts of the page: they share the place of the pointer

// Every line has an x of its own: dygraphs is given the span, and the lines through its handler.
function handlerOf(chart) {
  return class extends Dygraph.DataHandlers.DefaultHandler {
    extractSeries(_, i) { return chart.drawn[i - 1].shown; }
  };
}

// Only the mouse: a finger on a chart scrolls the page.
function interaction() {
  const { mousedown, mousemove, mouseup, mouseout } = Dygraph.defaultInteractionModel;
  return { mousedown, mousemove, mouseup, mouseout };
}

export class Chart {
  // o: {label, height, time = whether x is in seconds, onZoom(range), format(y), binary = whether y is
  // in bytes}
  constructor(o) {
    this.o = o;
    this.lines = [];
    this.plot = h("div", { class: "plot", style: { height: `${o.height || 220}px` } });
    this.cursor = h("div", { class: "cursor", hidden: true });
    this.tip = h("div", { class: "tip", hidden: true });
    this.marks = h("div", { class: "marks" });
    this.said = h("p", { class: "unseen", role: "status" });
    this.element = h("div", { class: "chart", tabindex: "0", role: "group", "aria-label":
      `${o.label}: arrow keys move from value to value, plus and minus zoom, 0 shows all` },
    this.plot, this.cursor, this.marks, this.tip, this.said);
    this.listen();
    all.add(this);
  }

  listen() {
    const { element } = this;
    element.addEventListener("pointermove", (e) => {
      if (e.buttons === 0) this.hover(e.clientX - element.getBoundingClientRect().left, e);
      else this.leave();
    });
    // dygraphs looks for the nearest row itself, of rows that it does not have here.
    element.addEventListener("mousemove", (e) => { if (!e.buttons) e.stopPropagation(); }, true);
    element.addEventListener("pointerleave", () => this.leave());
    element.addEventListener("blur", () => this.leave());
    element.addEventListener("dblclick", () => this.o.onZoom?.(null));
    element.addEventListener("keydown", (e) => this.key(e));
  }

  // lines, and {logx, logy, range}.
  set(lines, options = {}) {
    this.lines = lines;
    this.options = options;
    this.drawn = [...lines.filter((one) => one.faint)
      .map((one) => ({ points: one.faint, color: faint(one.color, 0.25), width: 1 })),
    ...lines.map((one) => ({ points: one.points, color: one.pointed === false
      ? faint(one.color, 0.2) : one.color, dash: one.dash, width: one.pointed ? 2.4 : lines.length > BOLD ? 1 : 1.6 }))]
      .sort((a, b) => (a.width === 2.4) - (b.width === 2.4));
    const none = !this.drawn.some((one) => one.points.length > 0);
    this.element.classList.toggle("blank", none);
    if (!Dygraph || none) return;
    if (this.plot.clientWidth > 0) this.paint();
  }

  describe() {
    const { logx, logy, range } = this.options, whole = span(this.drawn);
    const nothing = this.drawn.map(() => null), grid = style("--grid");
    const labels = ["x", ...this.drawn.map((_, i) => `line ${i}`)];
    // Axes of numbers have ticks of their own; times and bytes those of dygraphs.
    const ticker = (pixels, log) => (low, high, size) => ticks(low, high,
      Math.max(2, Math.floor(size / pixels)), log);
    const [from, to] = range || whole;
    const low = logx && from <= 0 ? Math.min(whole[0] > 0 ? whole[0] : 1, to / 10) : from;
    for (const line of this.drawn) {
      line.shown = visible(line.points, [low, to], this.plot.clientWidth, logx);
    }
    return { file: [[whole[0], ...nothing], [whole[1], ...nothing]], labels,
      colors: this.drawn.map((one) => one.color), logscale: Boolean(logy),
      series: Object.fromEntries(this.drawn.map((one, i) => [labels[i + 1],
        { strokeWidth: one.width, strokePattern: one.dash || null }])),
      dateWindow: [low, to], valueRange: this.options.clip
        ? middle(this.lines, [low, to], logy) : null, gridLineColor: grid, axisLineColor: grid,
      axes: {
        x: { logscale: Boolean(logx), pixelsPerLabel: 70, drawGrid: false,
          ...this.o.time ? { axisLabelFormatter: seconds } : { ticker: ticker(80, logx) } },
        y: { axisLabelWidth: 70, pixelsPerLabel: 32, labelsKMG2: Boolean(this.o.binary),
          ...this.o.format ? { axisLabelFormatter: this.o.format }
            : { ticker: ticker(30, logy) } },
      } };
  }

  paint() {
    const options = this.describe();
    if (!this.graph || this.columns !== options.labels.length) {
      this.graph?.destroy();
      this.columns = options.labels.length;
      const { file, ...rest } = options;
      this.graph = new Dygraph(this.plot, file, { ...rest, dataHandler: handlerOf(this),
        interactionModel: interaction(), highlightCircleSize: 0, pointSize: 2.5,
        axisLabelFontSize: 11, xRangePad: 4, rightGap: 8, yRangePad: 8, connectSeparatedPoints: false,
        drawCallback: (g) => this.after(g), zoomCallback: (from, to) => this.zoomed(from, to) });
    } else {
      this.graph.updateOptions(options);
    }
  }

  zoomed(from, to) {
    this.o.onZoom?.([from, to]);
  }

  // What dygraphs does not draw: where values are not finite, and the marks of samples.
  after(g) {
    this.graph = g; // it is drawn before its constructor returns
    const area = g.getArea(), context = g.hidden_ctx_, [from, to] = g.xAxisRange();
    context.font = "11px sans-serif";
    context.textAlign = "center";
    for (const line of this.lines) {
      context.fillStyle = line.color;
      for (const [x, y] of line.lost || []) {
        if (x < from || x > to) continue;
        const at = g.toDomXCoord(x), up = y === Infinity;
        context.fillText(up ? "▲" : y === -Infinity ? "▼" : "×", at,
          up ? area.y + 10 : area.y + area.h - 2);
      }
    }
    this.placeMarks();
  }

  // marks: [{x, y, label, onclick}]: buttons on the chart. Those that are there already stay, with
  // the focus that one of them may have.
  setMarks(marks) {
    const before = new Map((this.marked || []).map((mark) => [mark.label, mark.element]));
    this.marked = marks.map((mark) => ({ ...mark, element: before.get(mark.label)
      || h("button", { type: "button", class: "mark", title: mark.label, "aria-label": mark.label,
        onclick: mark.onclick }, "!") }));
    const elements = this.marked.map((mark) => mark.element);
    if (elements.some((one, i) => one !== this.marks.children[i])
      || elements.length !== this.marks.children.length) this.marks.replaceChildren(...elements);
    this.placeMarks();
  }

  placeMarks() {
    if (!this.graph || !this.marked) return;
    const area = this.graph.getArea();
    for (const { x, y, element } of this.marked) {
      const left = this.graph.toDomXCoord(x), top = this.graph.toDomYCoord(y);
      element.hidden = !(left >= area.x && left <= area.x + area.w);
      element.style.left = `${left}px`;
      const within = Number.isFinite(top) ? top : area.y;
      element.style.top = `${Math.min(Math.max(within, area.y + 8), area.y + area.h)}px`;
    }
  }

  // The readout.

  hover(left, event) {
    if (!this.graph) return;
    const area = this.graph.getArea();
    if (left < area.x || left > area.x + area.w) return this.leave();
    const top = event ? event.clientY - this.element.getBoundingClientRect().top : null;
    this.point(this.graph.toDataXCoord(left), top);
  }

  // The cursor at x, here with what the lines have there, on the other charts alone.
  point(x, top) {
    this.at = showReadout(this, x, top) ?? x;
    for (const chart of all) {
      if (chart.o.group === this.o.group) chart.placeCursor(this.at);
    }
  }

  placeCursor(x) {
    if (!this.graph || !this.element.isConnected) return;
    const left = this.graph.toDomXCoord(x), area = this.graph.getArea();
    this.cursor.hidden = !(left >= area.x && left <= area.x + area.w);
    this.cursor.style.left = `${left}px`;
    this.cursor.style.height = `${area.h}px`;
  }

  leave() {
    this.tip.hidden = true;
    this.at = null;
    for (const chart of all) {
      if (chart.o.group === this.o.group) chart.cursor.hidden = true;
    }
  }

  key(e) {
    if (!this.graph || e.target !== this.element || e.ctrlKey || e.metaKey || e.altKey) return;
    const [from, to] = this.graph.xAxisRange();
    const middle = this.at ?? (from + to) / 2;
    if (e.key === "ArrowLeft" || e.key === "ArrowRight") this.move(e.key === "ArrowLeft" ? -1 : 1);
    else if (e.key === "Home") this.move(-Infinity);
    else if (e.key === "End") this.move(Infinity);
    else if (e.key === "+") this.o.onZoom?.([middle - (middle - from) / 2, middle + (to - middle) / 2]);
    else if (e.key === "-") this.o.onZoom?.([from - (to - from) / 2, to + (to - from) / 2]);
    else if (e.key === "0") this.o.onZoom?.(null);
    else if (e.key === "Escape") this.leave();
    else return;
    e.preventDefault();
  }

  // To the next x at which a line has a value.
  move(by) {
    const [from, to] = this.graph.xAxisRange();
    let best = null;
    for (const { points } of this.lines) {
      for (const [x] of points) {
        if (x < from || x > to) continue;
        if (by === -Infinity) best = best === null ? x : Math.min(best, x);
        else if (by === Infinity || this.at === null && by < 0) best = Math.max(best ?? x, x);
        else if (this.at === null || this.at === undefined) best = Math.min(best ?? x, x);
        else if (by > 0 ? x > this.at : x < this.at) {
          best = best === null ? x : by > 0 ? Math.min(best, x) : Math.max(best, x);
        }
      }
    }
    if (best === null) return;
    this.point(best, null);
    this.said.textContent = this.tip.innerText;
  }

  resize() {
    if (this.graph) this.graph.resize();
    else if (this.drawn) this.set(this.lines, this.options);
  }

  destroy() {
    all.delete(this);
    this.graph?.destroy();
    this.graph = null;
  }
}
