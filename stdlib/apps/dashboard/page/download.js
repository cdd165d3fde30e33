// stdlib/apps/dashboard/page/download.js: a chart as a file: its values as CSV, its picture as PNG.
import { get, query } from "./api.js";
import { style } from "./colors.js";
import { h } from "./dom.js";
import { exact } from "./numbers.js";
import { nameOf } from "./runs.js";
import { state } from "./state.js";

const POINTS = 20000; // of a run: as many as the server gives at once
const LINE = 18; // of the legend

function save(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = h("a", { href: address, download: name.replace(/[^\w.-]+/g, "_") });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

const field = (text) => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

// run,metric,step,epoch or time,value: a row for each value of the range that is shown.
export async function asCsv(title, names, ids) {
  const [from, to] = state.range || [], byTime = state.x !== "step";
  const rows = [["run", "metric", "step", byTime && state.x, "value"].filter(Boolean)];
  for (const id of ids) {
    const answer = await get(`/api/run/${id}/metrics` + query({ name: names, x: state.x,
      points: POINTS, from, to }));
    for (const one of answer.series) {
      one.y.forEach((y, i) => rows.push([nameOf(id), one.name, exact(one.step[i]),
        ...byTime ? [exact(one.x[i])] : [], exact(y)]));
    }
  }
  const text = rows.map((row) => row.map((cell) => field(String(cell))).join(",")).join("\n") + "\n";
  save(`${title}.csv`, new Blob([text], { type: "text/csv" }));
  return text;
}

// What dygraphs has drawn, with the labels of its axes, a title and a legend.
export async function asPng(title, chart) {
  const { graph, plot, lines } = chart;
  if (!graph) throw new Error("This chart has not been drawn yet");
  const scale = window.devicePixelRatio || 1, top = 30, box = plot.getBoundingClientRect();
  const legend = lines.length > 1 ? lines.length * LINE + 8 : 0;
  const canvas = h("canvas", {});
  canvas.width = box.width * scale;
  canvas.height = (box.height + top + legend) * scale;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.fillStyle = style("--back");
  context.fillRect(0, 0, box.width, box.height + top + legend);
  context.drawImage(graph.hidden_, 0, top, box.width, box.height);
  context.fillStyle = style("--text");
  context.font = "600 14px sans-serif";
  context.fillText(title, 8, 20);
  context.font = "11px sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "center";
  for (const label of plot.querySelectorAll(".dygraph-axis-label")) {
    const at = label.getBoundingClientRect(), right = label.classList.contains("dygraph-axis-label-y");
    context.textAlign = right ? "right" : "center";
    context.fillText(label.textContent, (right ? at.right : (at.left + at.right) / 2) - box.left,
      (at.top + at.bottom) / 2 - box.top + top);
  }
  context.textAlign = "left";
  lines.forEach((line, k) => {
    const y = box.height + top + k * LINE + 8;
    context.fillStyle = line.color;
    context.fillRect(8, y - 2, 14, 4);
    context.fillStyle = style("--text");
    context.fillText(line.label, 30, y);
  });
  return new Promise((done) => canvas.toBlob((blob) => {
    save(`${title}.png`, blob);
    done(blob.size);
  }));
}
