// stdlib/apps/dashboard/page/dom.js: makes elements. Text is only ever set as text, never as HTML.

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "selected", "open", "min",
  "max", "htmlFor", "colSpan", "tabIndex", "indeterminate"]);

// h("td", {class: "number", onclick: fn, style: {left: "3px"}}, "text", element, [more]): nil, false
// and undefined among the children are left out.
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (PROPERTIES.has(name)) element[name] = value;
    else if (value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) add(element, child);
    else if (child !== undefined && child !== null && child !== false) element.append(child);
  }
}

export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

export const byId = (id) => document.getElementById(id);

// Elements of SVG; attributes only.
export function s(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// A table: columns are texts, or {text, class}; rows are lists of texts or elements.
export function table(columns, rows, props) {
  const cells = columns.map((c) => typeof c === "object" ? c : { text: c });
  return h("div", { class: "scroll" }, h("table", props,
    h("thead", {}, h("tr", {}, cells.map((c) => h("th", { class: c.class, scope: "col" }, c.text)))),
    h("tbody", {}, rows.map((row) => h("tr", {},
      row.map((cell, i) => h("td", { class: cells[i].class }, cell)))))));
}

// Names and values in two columns; those without a value are left out.
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs
    .filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

// fn at most once in ms, the last call counts.
export function later(ms, fn) {
  let timer = null;
  return () => {
    if (timer === null) timer = setTimeout(() => { timer = null; fn(); }, ms);
  };
}
