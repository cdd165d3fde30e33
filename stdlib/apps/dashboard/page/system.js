// stdlib/apps/dashboard/page/system.js: what the process of a run has measured of itself and its ranks.
import { get, notice } from "./api.js";
import { onTheme } from "./colors.js";
import { facts, fill, h, table } from "./dom.js";
import { bytes, exact, percent, seconds, short } from "./numbers.js";
import { followWidth, plainChart } from "./plain_chart.js";
import { state } from "./state.js";

const CHARTS = [
  { title: "Steps per second", columns: { steps_per_second: "steps/s" } },
  { title: "Memory", columns: { memory: "process", device_memory: "device" }, format: bytes,
    binary: true },
  { title: "Share of the time that it waited", columns: { data_wait: "for batches",
    rank_wait: "for other ranks" }, format: percent },
  { title: "Time of a step without waiting for other ranks", columns: { step_time: "s" } },
];
const SLOW = 2; // times the median of the other ranks, as in runs/step_times.lua
const KNOWN = new Set(["time", "step", "epoch", ...CHARTS.flatMap((one) => Object.keys(one.columns))]);

// Columns that were added to the contract since: a chart each.
function chartsOf(columns) {
  const others = columns.filter((name) => !KNOWN.has(name))
    .map((name) => ({ title: name.replaceAll("_", " "), columns: { [name]: name } }));
  return [...CHARTS, ...others];
}

function ranks(list) {
  if (list.length === 0) return null;
  const slowest = Math.min(...list.map((one) => Number(one.wait ?? Infinity)));
  const columns = [["rank", (one) => exact(one.rank)],
    ["waits", (one) => h("span", { class: list.length > 1 && Number(one.wait) === slowest ? "slowest" : null },
      percent(one.wait))],
    ["s a step", (one) => one.step_time === undefined ? "" : h("span",
      { class: Number(one.slowness) >= SLOW ? "slowest" : null }, short(one.step_time))],
    ["steps/s", (one) => one.steps_per_second === undefined ? "" : short(one.steps_per_second)],
    ["memory", (one) => bytes(one.memory)], ["host", (one) => one.host || ""],
    ["process", (one) => exact(one.pid)]].filter(([, cell]) => list.some((one) => cell(one) !== ""));
  return [h("h3", {}, "Ranks"), list.length > 1 && h("p", { class: "dim" },
    "Over the last minute. The rank that waits least is the one that the others wait for; a step is timed without waiting."),
  table(columns.map(([text]) => ({ text, class: text === "host" ? null : "number" })),
    list.map((one) => columns.map(([, cell]) => cell(one))))];
}

export function start(element) {
  let shown = [], end = () => {}, layout = null, answer = null;

  function draw() {
    const at = (name) => answer.columns.indexOf(name);
    const first = answer.rows.length > 0 ? answer.rows[0][at("time")] : 0;
    const xs = answer.rows.map((row) => row[at("time")] - first);
    for (const { chart, columns } of shown) {
      chart.set(Object.entries(columns).filter(([name]) => answer.rows.some((row) =>
        row[at(name)] !== null && row[at(name)] !== undefined)).map(([name, label]) =>
        ({ label, xs, ys: answer.rows.map((row) => row[at(name)] ?? null) })));
    }
  }

  async function load() {
    const id = state.run;
    try {
      const got = await get(`/api/run/${id}/system`);
      if (id !== state.run) return;
      answer = got;
    } catch (error) {
      notice(error.message);
      return;
    }
    if (answer.rows.length === 0 && !answer.ranks?.length) {
      end();
      layout = null;
      fill(element, h("p", { class: "empty" }, "This run has measured nothing of its process yet."));
      return;
    }
    const there = chartsOf(answer.columns).filter((one) => Object.keys(one.columns).some((name) =>
      answer.rows.some((row) => (row[answer.columns.indexOf(name)] ?? null) !== null)));
    const key = JSON.stringify([id, there]);
    const below = h("div", { class: "below" }, ranks(answer.ranks || []),
      facts([["devices", answer.devices?.join(", ")], ["host", answer.host],
        ["threads", answer.threads !== undefined ? exact(answer.threads) : null]]));
    if (key === layout) {
      element.querySelector(".below").replaceWith(below);
    } else {
      end();
      layout = key;
      shown = there.map((one) => ({ ...one, chart: plainChart({ title: one.title, group: "system",
        time: true, format: one.format, binary: one.binary, x: (x) => seconds(x) }) }));
      fill(element, h("div", { class: "cards" }, shown.map((one) => one.chart.element)), below);
      end = followWidth(element, shown.map((one) => one.chart));
    }
    draw();
  }

  load();
  const theme = onTheme(() => { if (layout) draw(); });
  return {
    update: (changed) => { if (!changed || changed.has("run")) load(); },
    refresh: (what) => { if (what.has("system")) load(); },
    stop: () => { theme(); end(); },
  };
}
