// stdlib/apps/dashboard/page/histogram.js: histograms over steps: one as bars, with a slider for the step.
import { fill, h, s } from "./dom.js";
import { exact, number, short } from "./numbers.js";

const WIDTH = 400, HEIGHT = 120;

function bars({ edges, counts }) {
  const x = edges.map(number), c = counts.map(number);
  const low = x[0], wide = x[x.length - 1] - low || 1;
  // Bins may differ in width: heights are densities.
  const density = c.map((n, i) => n / (x[i + 1] - x[i] || 1)), most = Math.max(...density) || 1;
  const svg = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none",
    class: "bars", role: "img", "aria-label": `${c.length} bins from ${short(low)} to ${
      short(x[x.length - 1])}` });
  c.forEach((n, i) => {
    const left = (x[i] - low) / wide * WIDTH, right = (x[i + 1] - low) / wide * WIDTH;
    const high = density[i] / most * (HEIGHT - 4);
    svg.append(s("rect", { x: left, y: HEIGHT - high, width: Math.max(right - left - 0.5, 0.5),
      height: high }, s("title", {}, `${short(x[i])} to ${short(x[i + 1])}: ${exact(counts[i])}`)));
  });
  return [svg, h("div", { class: "row spread dim" }, h("span", {}, short(low)),
    h("span", {}, short(x[x.length - 1])))];
}

// list: [{step, edges, counts}], the newest last.
export function histogram(list) {
  const body = h("div", {}), said = h("output", {});
  const slider = h("input", { type: "range", min: "0", max: String(list.length - 1), step: "1",
    value: String(list.length - 1), "aria-label": "Step", oninput: () => show() });
  function show() {
    const one = list[Number(slider.value)];
    const total = one.counts.reduce((sum, n) => sum + number(n), 0);
    said.textContent = `step ${exact(one.step)}, ${total} values`;
    fill(body, one.counts.length > 0 ? bars(one) : h("p", { class: "dim" }, "no finite values"));
  }
  show();
  return h("div", { class: "histogram" }, body, h("div", { class: "row" },
    list.length > 1 && slider, said));
}
