// stdlib/apps/dashboard/page/samples.js: the samples of a batch whose value made a curve jump.
import { get, query } from "./api.js";
import { byId, fill, h } from "./dom.js";
import { exact } from "./numbers.js";
import { detail, nameOf } from "./runs.js";

const MOST = 100; // of a run and a metric

const cache = new Map(); // "id name count" -> a promise of entries

function fetchSamples(id, name, count) {
  const key = `${id} ${name} ${count}`;
  if (!cache.has(key)) {
    cache.set(key, get(`/api/run/${id}/media` + query({ kind: "sample", name, offset: -MOST,
      limit: MOST })).then((answer) => answer.entries, () => []));
  }
  return cache.get(key);
}

// [{id, sample}]: what the runs have beside this metric.
export async function samplesOf(ids, name) {
  const found = await Promise.all(ids.map(async (id) => {
    const one = await detail(id).catch(() => null);
    const there = one?.media?.find((entry) => entry.kind === "sample" && entry.name === name);
    if (!there) return [];
    return (await fetchSamples(id, name, there.count)).map((sample) => ({ id, sample }));
  }));
  return found.flat();
}

export function sampleFigures(sample) {
  return h("div", { class: "samples" }, (sample.samples || []).map((one, i) => h("figure", {},
    sample.files?.[i] && h("img", { src: sample.files[i], alt: `sample ${one.index ?? i}` }),
    one.text !== undefined && h("pre", {}, one.text),
    h("figcaption", {}, one.index !== undefined ? `sample ${one.index} of the batch` : `the ${i + 1}. of the batch`,
      one.loss !== undefined ? `, loss ${exact(one.loss)}` : ""))));
}

export function showSample(id, sample) {
  const dialog = byId("dialog");
  const close = h("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const title = h("h2", { tabIndex: -1 }, `${sample.name} at step ${sample.step}`);
  fill(dialog, title, h("p", {}, nameOf(id), `: ${exact(sample.value)}`, sample.usual !== undefined
      && `, usual before it: ${exact(sample.usual)}`), sampleFigures(sample), close);
  dialog.showModal();
  title.focus(); // not the button at the end of what may be long
  dialog.scrollTop = 0;
}
