// stdlib/apps/dashboard/page/readout.js: what the lines of a chart have at the pointer.
import { byId, fill, h } from "./dom.js";

const ROWS = 12;

// The index of the point whose x is nearest; points are sorted by x.
export function nearest(points, x) {
  let low = 0, high = points.length - 1;
  if (high < 0) return -1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] < x) low = middle + 1;
    else high = middle;
  }
  return low > 0 && x - points[low - 1][0] < points[low][0] - x ? low - 1 : low;
}

function found(chart, x) {
  const list = [];
  for (const line of chart.lines) {
    const i = nearest(line.points, x);
    if (i >= 0) list.push({ line, i, x: line.points[i][0], y: line.points[i][1] });
  }
  return list;
}

// Shows it; top: the height of the pointer in the chart, or null. Returns the x it stands for.
export function showReadout(chart, x, top) {
  const { tip, graph } = chart, area = graph.getArea();
  let list = found(chart, x);
  tip.hidden = list.length === 0;
  if (list.length === 0) return null;
  const near = list.reduce((a, b) => Math.abs(b.x - x) < Math.abs(a.x - x) ? b : a);
  for (const one of list) {
    one.far = top === null || one.y === null ? 0 : Math.abs(graph.toDomYCoord(one.y) - top);
  }
  const first = list.reduce((a, b) => b.far < a.far ? b : a);
  if (list.length > ROWS) list = list.sort((a, b) => a.far - b.far).slice(0, ROWS);
  list.sort((a, b) => (b.y ?? -Infinity) - (a.y ?? -Infinity));
  const left_out = chart.lines.length - list.length;
  fill(tip, h("table", {}, list.map(({ line, i }) => {
    const said = line.read(i);
    return h("tr", { class: line === first.line && chart.lines.length > 1 ? "near" : null },
      h("td", {}, h("span", { class: "swatch", style: { background: line.color } })),
      h("td", { class: "label" }, line.label), h("td", { class: "number value" }, said.value),
      said.smooth ? h("td", { class: "number dim" }, said.smooth) : null,
      h("td", { class: "dim" }, said.at));
  })), left_out > 0 ? h("p", { class: "dim" }, `and ${left_out} more`) : null);
  const at = graph.toDomXCoord(near.x), width = chart.element.clientWidth, own = tip.offsetWidth;
  const beside = at + 14 + own <= width ? at + 14 : at - 14 - own >= 0 ? at - 14 - own : 0;
  tip.style.left = `${Math.max(beside, 0)}px`;
  tip.style.top = `${beside === 0 || own > width ? area.y + area.h + 4 : area.y + 4}px`;
  const below = tip.getBoundingClientRect().bottom - Math.min(window.innerHeight,
    byId("main").parentElement.getBoundingClientRect().bottom);
  if (below > 0) tip.style.top = `${parseFloat(tip.style.top) - below - 4}px`;
  return near.x;
}
