// stdlib/apps/dashboard/page/plain_chart.js: a chart of lists of numbers that are there already.
import { Chart } from "./chart.js";
import { palette } from "./colors.js";
import { h } from "./dom.js";
import { exact, number, short } from "./numbers.js";

// o: {title, group, time, format(y), binary, x(x) -> text, height}; set([{label, xs, ys, color}]).
export function plainChart(o) {
  const chart = new Chart({ label: o.title, group: o.group, time: o.time, format: o.format,
    binary: o.binary, height: o.height || 180, onZoom: (range) => { zoom = range; draw(); } });
  let zoom = null, lines = [];
  const legend = h("ul", { class: "legend" });
  const text = o.format || ((y) => short(y));
  const last = (ys) => ys.findLast((y) => y !== null && y !== undefined);

  function draw() {
    chart.set(lines.map((line, k) => ({ label: line.label, color: line.color || palette(k),
      points: line.points, lost: line.lost, read: (i) => ({ value: o.format ? text(line.ys[i]) : exact(line.ys[i]),
        at: o.x ? o.x(line.xs[i]) : short(line.xs[i], 6) }) })), { range: zoom, logy: o.logy });
  }

  return {
    chart,
    element: h("article", { class: "card" }, h("header", {}, h("h3", {}, o.title)), chart.element,
      legend),
    set(list) {
      lines = list.map((line) => {
        const ys = line.ys.map(number);
        return { ...line, points: line.xs.map((x, i) => [x, Number.isFinite(ys[i]) ? ys[i] : null]),
          lost: line.xs.map((x, i) => [x, ys[i]]).filter(([, y], i) => line.ys[i] !== null
            && line.ys[i] !== undefined && !Number.isFinite(y)) };
      });
      legend.replaceChildren(...list.map((line, k) => h("li", {}, h("span", { class: "swatch",
        style: { background: line.color || palette(k) } }), h("span", { class: "text" }, line.label),
      h("span", { class: "number value", title: exact(last(line.ys)) }, last(line.ys) === undefined ? "" : text(last(line.ys))))));
      draw();
    },
  };
}

// Charts that are shown follow the width of their element; returns what ends them.
export function followWidth(element, charts) {
  const seen = new ResizeObserver(() => { for (const one of charts) one.chart.resize(); });
  seen.observe(element);
  return () => {
    seen.disconnect();
    for (const one of charts) one.chart.destroy();
  };
}
