// stdlib/apps/dashboard/page/layers.js: statistics of weights and gradients, layer by layer.
import { get, notice } from "./api.js";
import { onTheme } from "./colors.js";
import { fill, h } from "./dom.js";
import { histogram } from "./histogram.js";
import { exact, number, short } from "./numbers.js";
import { followWidth, plainChart } from "./plain_chart.js";
import { set, state } from "./state.js";

const last = (list) => list?.length > 0 ? list[list.length - 1] : undefined;

// The size of the gradient beside that of the weights: what one step can change.
function ratio({ weight, grad }) {
  const size = weight && number(last(weight.norm) ?? null);
  return grad && size > 0 ? number(last(grad.norm) ?? null) / size : undefined;
}

function row(layer, chosen) {
  const of = (side, what) => layer[side] ? short(last(layer[side][what]) ?? "") : "";
  const lost = (side) => last(layer[side]?.nonfinite) || 0;
  const share = ratio(layer), wrong = lost("weight") || lost("grad");
  const kinds = [layer.name === chosen && "current", wrong && "wrong"].filter(Boolean);
  return h("tr", { class: kinds.join(" ") || null, "data-layer": layer.name },
  h("th", { scope: "row" }, h("button", { type: "button", class: "link", "aria-current":
    layer.name === chosen ? "true" : null, onclick: () => set({ layer: layer.name }) }, layer.name)),
  h("td", {}, `[${(layer.shape || []).map(exact).join(", ")}]`),
  [["weight", "mean"], ["weight", "std"], ["weight", "norm"], ["grad", "std"], ["grad", "norm"]]
    .map(([side, what]) => h("td", { class: "number" }, of(side, what))),
  h("td", { class: "number" }, share === undefined ? "" : short(share)),
  h("td", {}, [["weight", "weights"], ["grad", "gradients"]].filter(([side]) => lost(side))
    .map(([side, text]) => `${exact(lost(side))} ${text} not finite`).join(", ")));
}

function summary(answer, chosen) {
  return h("div", { class: "scroll" }, h("table", { class: "layers sticky" },
    h("thead", {}, h("tr", {}, ["layer", "shape", "weights: mean", "std", "norm", "gradients: std",
      "norm", "gradient / weight", ""].map((text, i) => h("th", { scope: "col",
      class: i > 1 ? "number" : null }, text)))),
    h("tbody", {}, answer.layers.map((layer) => row(layer, chosen)))));
}

function histograms(layer) {
  const list = layer.histograms || [];
  return ["weight", "grad"].map((of) => {
    const those = list.filter((one) => one.of === of);
    return those.length > 0 && h("article", { class: "card" }, h("header", {},
      h("h3", {}, of === "weight" ? "Weights" : "Gradients", ", distribution")), histogram(those));
  });
}

export function start(element) {
  const top = h("div", {}), charts = h("div", { class: "cards" }), below = h("div", { class: "cards" });
  const heading = h("h3", {});
  let answer = null, shown = null, end = () => {};

  function draw() {
    const layer = answer.layers.find((one) => one.name === state.layer) || answer.layers[0];
    fill(top, h("p", { class: "dim" }, "The last values; choose a layer to see how they came about."),
      summary(answer, layer.name));
    heading.textContent = layer.name;
    if (!shown) {
      const step = (x) => `step ${x}`;
      const chart = (title) => plainChart({ title, group: "layers", x: step });
      shown = { norm: chart("Norm"), std: chart("Standard deviation"), mean: chart("Mean"),
        range: chart("Lowest and highest") };
      fill(charts, Object.values(shown).map((one) => one.element));
      fill(element, top, heading, charts, below);
      end = followWidth(element, Object.values(shown));
    }
    const sides = [["weight", "weights"], ["grad", "gradients"]].filter(([side]) => layer[side]);
    for (const what of ["norm", "std", "mean"]) {
      shown[what].set(sides.map(([side, label]) => ({ label, xs: layer.step,
        ys: layer[side][what] })));
    }
    shown.range.set(sides.flatMap(([side, label]) => ["min", "max"].map((what) =>
      ({ label: `${label}, ${what}`, xs: layer.step, ys: layer[side][what] }))));
    fill(below, histograms(layer));
  }

  async function load() {
    const id = state.run;
    try {
      const got = await get(`/api/run/${id}/layers?points=500`);
      if (id !== state.run) return;
      answer = got;
    } catch (error) {
      notice(error.message);
      return;
    }
    if (answer.layers.length > 0) {
      draw();
      return;
    }
    end();
    shown = null;
    fill(element, h("div", { class: "empty" }, h("p", {},
      "This run has no statistics of its layers. They are recorded with"),
    h("pre", {}, "callbacks = {lt.callbacks.LayerMonitor()}")));
  }

  load();
  const theme = onTheme(() => { if (shown) draw(); });
  return {
    update(changed) {
      if (!changed || changed.has("run")) load();
      else if (changed.has("layer") && answer?.layers.length > 0) draw();
    },
    refresh: (what) => { if (what.has("layers")) load(); },
    stop: () => { theme(); end(); },
  };
}
