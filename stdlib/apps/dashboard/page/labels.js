// stdlib/apps/dashboard/page/labels.js: tags and the note of a run: shown, and written where control is on.
import { post, query } from "./api.js";
import { h } from "./dom.js";
import { about, forget, refresh } from "./runs.js";

export const chips = (tags) => (tags || []).map((tag) => h("span", { class: "tag" }, tag));

function editor(one) {
  const said = h("span", { class: "dim", role: "status" });
  const tags = h("input", { type: "search", value: (one.tags || []).join(", "),
    placeholder: "baseline, good", spellcheck: "false" });
  const note = h("input", { type: "search", class: "long", value: one.note || "", maxlength: "2000" });
  const save = async (event) => {
    event.preventDefault();
    try {
      await post(`/api/run/${one.id}/labels` + query({ tags: tags.value, note: note.value }));
      said.textContent = "Saved.";
      forget(one.id);
      refresh();
    } catch (error) {
      said.textContent = error.message;
    }
  };
  return h("form", { class: "row labels", onsubmit: save }, h("label", {}, "Tags", tags),
    h("label", {}, "Note", note), h("button", { type: "submit", class: "small" }, "Save"), said);
}

export function labels(one) {
  if (about.control) return editor(one);
  if (!one.tags?.length && !one.note) return null;
  return h("p", { class: "row labels" }, chips(one.tags), one.note && h("span", {}, one.note));
}
