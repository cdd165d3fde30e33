// stdlib/apps/dashboard/page/run_view.js: one run: what it is, how it stands, its metrics and checkpoints.
import { notice, post } from "./api.js";
import { facts, fill, h, table } from "./dom.js";
import { labels } from "./labels.js";
import { bytes, exact, moment, seconds } from "./numbers.js";
import { about, detail } from "./runs.js";
import { badge } from "./run_list.js";
import { set, state } from "./state.js";

const KILLED = "Its process is gone without having said why: it was killed (by the system when memory "
  + "ran out, by a scheduler), or the machine went down. What it had written is shown.";

function control(one) {
  if (!about.control || one.status !== "running") return null;
  const said = h("span", { class: "dim", role: "status" });
  const button = (text, what, done, sure) => h("button", { type: "button", class: what,
    disabled: !one.control, onclick: async () => {
      if (sure && !confirm(sure)) return;
      said.textContent = "…";
      try {
        await post(`/api/run/${one.id}/${what}`);
        said.textContent = done;
      } catch (error) {
        said.textContent = error.message;
      }
    } }, text);
  return h("div", { class: "row" }, button("Save a checkpoint", "save", "A checkpoint is being saved."),
    button("Stop", "stop", "It ends after this batch.", `Stop ${one.name} after its batch?`), said,
    !one.control && h("span", { class: "dim" }, "It does not listen."));
}

const number = (text) => ({ text, class: "number" });

function metrics(one) {
  if (!one.metrics?.length) return h("p", { class: "dim" }, "None have been logged.");
  return table(["name", number("last"), number("best"), number("at step"), number("values")],
    one.metrics.map((m) => [m.name, exact(m.last), exact(m.best), exact(m.best_step),
      exact(m.count)]), { class: "metrics" });
}

function checkpoints(one) {
  if (!one.checkpoints?.length) return h("p", { class: "dim" }, "None have been saved.");
  return table(["file", number("size"), "saved", ""], one.checkpoints.map((file) => [file.file,
    bytes(file.bytes), moment(file.modified), [file.best && "best", file.last && "last"]
      .filter(Boolean).join(", ")]), { class: "checkpoints" });
}

function loops(one) {
  const list = one.info?.loops || [];
  if (list.length < 2 && !list[0]?.resumed_from) return null;
  return [h("h3", {}, "Loops"), table(["loop", "status", "began", "took", "resumed from"],
    list.map((loop) => [loop.loop, loop.status, moment(loop.started), loop.ended !== undefined
      ? seconds(loop.ended - loop.started) : "", loop.resumed_from || ""]))];
}

function head(one) {
  return [h("header", { class: "run-head" }, h("h2", {}, one.name), badge(one.status),
    h("button", { type: "button", class: "small", onclick: () => set({ a: one.id, view: "diff" }) },
      "Compare …")),
  control(one)];
}

function wrong(one) {
  const text = one.info?.error || one.error;
  return [one.problem && h("pre", { class: "error" }, one.problem),
    one.status === "killed" && h("p", { class: "error" }, KILLED),
    one.status === "unknown" && one.info?.status === "running" && h("p", { class: "error interrupted" },
      `It says that it is running on ${one.info.process?.host || "another machine"}, but has written `
      + "nothing for ten minutes: it was killed there, or copied from there while it went on."),
    text && h("pre", { class: `error ${one.status}` }, text)];
}

function about_it(one) {
  const info = one.info || {};
  return facts([["started", moment(one.started)], ["took", seconds(one.seconds)],
    ["epoch", one.epoch], ["step", one.step], ["command", info.command?.join(" ")],
    ["script", info.script], ["folder", one.path],
    ["ran on", info.process && `${info.process.host}, process ${info.process.pid}`],
    ["ranks", info.ranks], ["threads", info.threads],
    ["seed", info.seed !== undefined ? exact(info.seed) : null],
    ["ltrain", info.version], ["script's SHA-256", info.script_sha256]]
    .map(([name, value]) => [name, value === undefined || value === null ? null : String(value)]));
}

function options(one) {
  const list = Object.entries(one.hparams || {});
  return [h("h3", {}, "Hyper-parameters"),
    list.length > 0 ? facts(list.map(([name, value]) => [name, exact(value)]))
      : h("p", { class: "dim" }, "None have been saved.")];
}

// Each part with what it is drawn of: it is drawn again when that has changed, so that a button
// keeps the focus, and a text its selection, while the run goes on.
const PARTS = [
  [(one) => [one.id, one.name, one.status, one.control], head],
  [(one) => [one.tags, one.note, about.control], labels],
  [(one) => [one.problem, one.status, one.info?.error, one.error], wrong],
  [(one) => [one.info, one.seconds, one.epoch, one.step, one.path], about_it],
  [(one) => one.info?.loops, loops],
  [(one) => one.hparams, options],
  [(one) => one.metrics, (one) => [h("h3", {}, "Metrics"), metrics(one)]],
  [(one) => one.checkpoints, (one) => [h("h3", {}, "Checkpoints"), checkpoints(one)]],
];

export function start(element) {
  const parts = PARTS.map(([of, draw]) => ({ of, draw, element: h("div", {}), shown: null }));
  fill(element, parts.map((part) => part.element));
  async function draw() {
    const id = state.run;
    try {
      const one = await detail(id);
      if (id !== state.run) return;
      for (const part of parts) {
        const key = JSON.stringify([one.id, part.of(one)]);
        if (key === part.shown) continue;
        part.shown = key;
        fill(part.element, part.draw(one));
      }
    } catch (error) {
      notice(error.message);
    }
  }
  draw();
  return { update: (changed) => { if (!changed || changed.has("run")) draw(); }, refresh: draw };
}
