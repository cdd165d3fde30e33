// stdlib/apps/dashboard/page/console.js: what a run has printed, its end first.
import { get, notice, query } from "./api.js";
import { fill, h } from "./dom.js";
import { bytes } from "./numbers.js";
import { state } from "./state.js";

const END = 64 * 1024; // bytes shown at first
const MOST = 4 * 1024 * 1024; // characters kept

// Progress bars end their states by carriage returns: the last state of a line stands.
const plain = (text) => text.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, "").replace(/\r\n/g, "\n")
  .replace(/[^\n]*\r(?=[^\n])/g, "").replace(/\r/g, "");

export function start(element) {
  const text = h("pre", { class: "console", tabindex: "0", "aria-label": "What the run has printed" });
  const said = h("span", { class: "dim", role: "status" });
  const follow = h("input", { type: "checkbox", checked: true });
  const all = h("button", { type: "button", class: "small", onclick: () => restart(0) },
    "From the start");
  fill(element, h("div", { class: "toolbar" }, h("label", {}, follow, "Follow"), all, said), text);
  let id = null, to = 0, raw = "", busy = false, again = false, generation = 0;

  async function more() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    const mine = generation;
    try {
      let answer;
      do {
        answer = await get(`/api/run/${id}/console` + query({ from: to }));
        if (mine !== generation) break;
        if (answer.size < to) {
          raw = "";
          to = 0;
          continue;
        }
        if (to < 0) all.hidden = answer.from === 0;
        raw = (raw + answer.text).slice(-MOST);
        to = answer.to;
        said.textContent = bytes(answer.size);
      } while (to < answer.size);
      if (mine === generation) {
        const there = text.scrollTop;
        text.textContent = plain(raw) || "It has printed nothing.";
        text.scrollTop = follow.checked ? text.scrollHeight : there;
      }
    } catch (error) {
      notice(error.message);
    }
    busy = false;
    if (again || mine !== generation) {
      again = false;
      more();
    }
  }

  function restart(from) {
    generation++;
    id = state.run;
    to = from;
    raw = "";
    all.hidden = from === 0;
    more();
  }

  restart(-END);
  return {
    update: (changed) => { if (!changed || changed.has("run")) restart(-END); },
    refresh: (what) => { if (what.has("console")) more(); },
  };
}
