// stdlib/apps/dashboard/page/diff.js: what two runs have that is not the same.
import { get, query } from "./api.js";
import { fill, h, table } from "./dom.js";
import { exact } from "./numbers.js";
import { drawn, nameOf, runs } from "./runs.js";
import { set, state } from "./state.js";

const number = (text) => ({ text, class: "number" });

const show = (value) => value === undefined || value === null ? h("span", { class: "dim" }, "–")
  : typeof value === "object" && !(value instanceof Number) ? JSON.stringify(value) : exact(value);

function pairs(list, a, b) {
  return table(["", a, b], list.map((one) => [one.name, show(one.a), show(one.b)]));
}

function data(one) {
  if (!one || one.same === undefined) {
    return h("p", { class: "dim" }, "It is not known what data they were trained on.");
  }
  return h("p", {}, one.same ? "The same." : h("strong", {}, "They were trained on different data."),
    h("span", { class: "dim" }, ` ${(one.a || "").slice(0, 12)}`, !one.same
      && ` and ${(one.b || "").slice(0, 12)}`));
}

const MARKS = { " ": "same", "-": "less", "+": "more", "@": "gap" };

function title(file, a, b) {
  if (file.was) return `${file.was} → ${file.file}${file.lines.length === 0 ? ": renamed" : ""}`;
  return file.only ? `${file.file}: only in ${file.only === "a" ? a : b}` : file.file;
}

function code(one, a, b) {
  if (!one || one.same === undefined) {
    return h("p", { class: "dim" }, "At least one of them has not kept its code.");
  }
  return [one.same && h("p", {}, "The same."), (one.files || []).map((file) => [
    h("h4", {}, title(file, a, b)), file.lines.length > 0 && h("pre", { class: "code" },
    file.lines.map((line) => h("span", { class: MARKS[line.kind] || "same" },
      line.kind === "@" ? "⋯\n" : `${line.kind} ${line.text ?? ""}\n`)))])];
}

function metrics(list, a, b) {
  if (list.length === 0) return h("p", { class: "dim" }, "None.");
  const best = (one) => one?.best === undefined ? "" : `${exact(one.best)} at ${exact(one.best_step)}`;
  return table(["", number(`${a}: last`), number(`${b}: last`), number(`${a}: best`),
    number(`${b}: best`)], list.map((one) => [one.name, exact(one.a?.last), exact(one.b?.last),
    best(one.a), best(one.b)]), { class: "metrics" });
}

function describe(answer) {
  const a = answer.a.name, b = answer.b.name;
  return [
    h("h3", {}, "Options"),
    answer.options.length > 0 ? pairs(answer.options, a, b) : h("p", {}, "The same."),
    answer.same_options > 0 && answer.options.length > 0
      && h("p", { class: "dim" }, `${exact(answer.same_options)} more are the same.`),
    h("h3", {}, "Code"), code(answer.code, a, b),
    h("h3", {}, "Data"), data(answer.data),
    h("h3", {}, "Metrics"), metrics(answer.metrics || [], a, b),
    answer.run?.length > 0 && [h("h3", {}, "Run"), pairs(answer.run, a, b)],
  ];
}

function choice(name, label) {
  const ids = [...new Set([...drawn(), ...runs.list.map((one) => one.id)])];
  if (state[name] && !ids.includes(state[name])) ids.unshift(state[name]);
  const select = h("select", { onchange: () => set({ [name]: select.value }) },
    ids.map((id) => h("option", { value: id }, nameOf(id))));
  return { element: h("label", {}, label, select), select };
}

export function start(element) {
  const body = h("div", { class: "diff-body" });
  let shown = "";
  async function draw(again) {
    const [first, second] = [...drawn(), ...runs.list.map((one) => one.id)]
      .filter((id, i, list) => list.indexOf(id) === i);
    const a = state.a || (state.b === first ? second : first);
    const b = state.b || (a === first ? second : first);
    if (!a || !b) {
      fill(element, h("p", { class: "empty" }, "Two runs are needed to compare them."));
      return;
    }
    const key = `${a} ${b}`;
    if (key === shown && !again) return;
    shown = key;
    const left = choice("a", ""), right = choice("b", "with");
    left.select.value = a;
    right.select.value = b;
    left.select.setAttribute("aria-label", "First run");
    fill(element, h("div", { class: "toolbar" }, left.element, right.element,
      h("button", { type: "button", class: "small", onclick: () => set({ a: b, b: a }) }, "Swap")),
    body);
    try {
      const answer = await get("/api/diff" + query({ a, b }));
      if (shown === key) fill(body, describe(answer));
    } catch (error) {
      fill(body, h("p", { class: "error" }, error.message));
    }
  }
  draw();
  return {
    update: (changed) => {
      if (!changed || ["a", "b", "drawn"].some((name) => changed.has(name))) draw();
    },
    refresh: () => draw(true),
  };
}
