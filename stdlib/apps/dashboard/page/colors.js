// stdlib/apps/dashboard/page/colors.js: a colour for each run that is drawn, kept while it is drawn.

const LIGHT = ["#1f6fd6", "#d9480f", "#2b8a3e", "#c2255c", "#7048e8", "#0c8599", "#b87503", "#5f3dc4",
  "#66800b", "#495057", "#4a9be8", "#f0705a", "#40b35a", "#e06aa0", "#9775fa", "#22b8cf", "#e8a33d",
  "#a61e4d", "#94a80f", "#868e96"];
const DARK = ["#6cb0ff", "#ff8f5c", "#62d07c", "#ff7eb0", "#a992ff", "#4ad3e6", "#ffc25c", "#c9a0ff",
  "#bcd64a", "#c3c9cf", "#3d86dd", "#dd6240", "#3b9e54", "#d0558c", "#7f64e0", "#1f9fb3", "#c48a26",
  "#d94a7a", "#8b9f22", "#8a929a"];

const dark = matchMedia("(prefers-color-scheme: dark)");
const slots = []; // slot -> id

export const isDark = () => dark.matches;
export function onTheme(fn) {
  dark.addEventListener("change", fn);
  return () => dark.removeEventListener("change", fn);
}

export const palette = (k) => (dark.matches ? DARK : LIGHT)[k % LIGHT.length];

// The runs that are drawn now: others give their colours back.
export function assign(ids) {
  const kept = new Set(ids);
  slots.forEach((id, k) => { if (id && !kept.has(id)) slots[k] = null; });
  for (const id of ids) {
    if (slots.includes(id)) continue;
    let free = 0;
    while (slots[free]) free++;
    slots[free] = id;
  }
}

export const color = (id) => palette(Math.max(slots.indexOf(id), 0));

// "#rrggbb" with an alpha.
export function faint(hex, alpha) {
  const n = parseInt(hex.slice(1), 16);
  return `rgba(${n >> 16},${n >> 8 & 255},${n & 255},${alpha})`;
}

// A colour of the page's style sheet.
export const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name)
  .trim();
