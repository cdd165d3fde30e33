// stdlib/apps/dashboard/page/media.js: images, texts, histograms and failing samples that a run has logged.
import { get, notice, query } from "./api.js";
import { fill, h } from "./dom.js";
import { histogram } from "./histogram.js";
import { exact } from "./numbers.js";
import { detail } from "./runs.js";
import { sampleFigures } from "./samples.js";
import { set, state } from "./state.js";

const MOST = 200; // entries of one name, the newest

const KINDS = { image: "Images", text: "Texts", histogram: "Histograms", sample: "Failing samples" };

const BODIES = {
  image: (entry) => h("div", { class: "images" }, entry.files.map((file, i) => h("a", { href: file,
    target: "_blank", rel: "noopener" }, h("img", { src: file,
    alt: `${entry.name}, step ${exact(entry.step)}, ${i + 1} of ${entry.files.length}` })))),
  text: (entry) => h("pre", {}, entry.text),
  sample: (entry) => [h("p", {}, `${entry.name} was ${exact(entry.value)}`, entry.usual !== undefined
    && `, usual before it: ${exact(entry.usual)}`), sampleFigures(entry)],
};

// One at a time, the newest first, with a slider over the steps.
function stepped(entries, body) {
  const place = h("div", {}), said = h("output", {}), last = entries.length - 1;
  const show = () => {
    const entry = entries[Number(slider.value)];
    said.textContent = `step ${exact(entry.step)}`;
    fill(place, body(entry));
  };
  const slider = h("input", { type: "range", min: "0", max: String(last), step: "1",
    value: String(last), "aria-label": "Step", oninput: show });
  show();
  return [place, h("div", { class: "row" }, last > 0 && slider, said)];
}

function block(kind, entries) {
  if (entries.length === 0) return h("p", { class: "dim" }, "None any more.");
  return kind === "histogram" ? histogram(entries) : stepped(entries, BODIES[kind]);
}

export function start(element) {
  const shown = new Map(); // "kind name" -> {count, card}

  async function card(id, one) {
    const key = `${one.kind} ${one.name}`;
    if (shown.get(key)?.count === one.count) return shown.get(key).card;
    const answer = await get(`/api/run/${id}/media` + query({ kind: one.kind, name: one.name,
      offset: -MOST, limit: MOST }));
    const made = h("article", { class: `card ${one.kind}`, "data-media": one.name }, h("header", {},
      h("h3", {}, one.name), h("span", { class: "dim" }, `${exact(one.count)} logged`)),
    block(one.kind, answer.entries));
    shown.set(key, { count: one.count, card: made });
    return made;
  }

  async function draw() {
    const id = state.run;
    try {
      const one = await detail(id), list = one.media || [];
      const kinds = Object.keys(KINDS).filter((kind) => list.some((entry) => entry.kind === kind));
      if (kinds.length === 0) {
        fill(element, h("div", { class: "empty" }, h("p", {}, "This run has logged no images, texts ",
          "or histograms: in a hook of the model"), h("pre", {}, 'self:log_image("digits", images)')));
        return;
      }
      const chosen = kinds.includes(state.media) ? state.media : kinds[0];
      const cards = await Promise.all(list.filter((entry) => entry.kind === chosen)
        .map((entry) => card(id, entry)));
      if (id !== state.run) return;
      fill(element, h("div", { class: "toolbar" }, kinds.map((kind) => h("button", { type: "button",
        "aria-pressed": String(kind === chosen), onclick: () => set({ media: kind }) },
      KINDS[kind]))), h("div", { class: "cards" }, cards));
    } catch (error) {
      notice(error.message);
    }
  }

  draw();
  return {
    update(changed) {
      if (!changed || changed.has("run")) shown.clear();
      if (!changed || changed.has("run") || changed.has("media")) draw();
    },
    refresh: (what) => { if (what.has("media")) draw(); },
  };
}
