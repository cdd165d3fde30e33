// stdlib/apps/dashboard/page/toolbar.js: how curves are drawn: smoothing, axes, which metrics.
import { h, later } from "./dom.js";
import { set, state } from "./state.js";

const AXES = ["step", "epoch", "time"];
const CHECKS = { logx: "log x", logy: "log y", clip: "ignore outliers",
  join: "join train and val" };

// {element, show() = after a change of the state}
export function toolbar() {
  const filter = h("input", { type: "search", placeholder: "filter metrics", spellcheck: "false",
    "aria-label": "Filter of metrics", oninput: later(150, () => set({ metrics: filter.value })) });
  const smooth = h("input", { type: "range", min: "0", max: "0.99", step: "0.01",
    oninput: () => set({ smooth: Number(smooth.value) }) });
  const said = h("output", {});
  const x = h("select", { onchange: () => set({ x: x.value, range: null }) },
    AXES.map((value) => h("option", { value }, value)));
  const boxes = Object.entries(CHECKS).map(([name, text]) => {
    const box = h("input", { type: "checkbox", onchange: () => set({ [name]: box.checked }) });
    return { name, box, label: h("label", {}, box, text) };
  });
  const whole = h("button", { type: "button", class: "small", onclick: () => set({ range: null }) },
    "Show all");

  function show() {
    if (document.activeElement !== filter) filter.value = state.metrics;
    smooth.value = state.smooth;
    said.textContent = state.smooth.toFixed(2);
    x.value = state.x;
    for (const { name, box } of boxes) box.checked = state[name];
    whole.hidden = !state.range;
  }
  show();
  return { show, element: h("div", { class: "toolbar" }, filter, h("label", {}, "Smoothing", smooth,
    said), h("label", {}, "by", x), boxes.map((one) => one.label), whole) };
}
