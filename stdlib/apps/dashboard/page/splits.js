// stdlib/apps/dashboard/page/splits.js: train/loss and val/loss as one chart: names without the part of the
// data that they are of.

const SPLITS = ["train", "training", "val", "valid", "validation", "test"];
const DASHES = { train: null, training: null, val: [7, 4], valid: [7, 4], validation: [7, 4],
  test: [2, 3] };

// {name: "loss", split: "val"} of "val/loss", "val_loss", "loss/val", "loss_val"; split null: none.
export function splitOf(name) {
  const parts = name.split(/([/_.-])/);
  const at = parts.findIndex((part) => SPLITS.includes(part.toLowerCase()));
  if (at < 0 || parts.length < 3) return { name, split: null };
  const split = parts[at].toLowerCase();
  parts.splice(at === 0 ? 0 : at - 1, 2);
  return { name: parts.join(""), split };
}

export const dashOf = (name) => DASHES[splitOf(name).split] ?? null;

// {title, names}: charts of these names, each of one name, or of all splits of one.
export function chartsOf(names, joined) {
  const charts = new Map();
  for (const name of names) {
    const title = joined ? splitOf(name).name : name;
    if (!charts.has(title)) charts.set(title, []);
    charts.get(title).push(name);
  }
  return [...charts].map(([title, list]) => ({ title: list.length > 1 ? title : list[0],
    names: list }));
}
