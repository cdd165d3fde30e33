// stdlib/apps/dashboard/page/axis.js: round numbers beside charts, with the digits that tell them apart (as
// stdlib/apps/views/axis.lua has them).

const LARGE = 6, DECIMALS = 4; // digits up to which a label has no exponent
const FEW = 3, LONG = 12; // decades: labels at 1, 2, 5; minor ticks

const placeOf = (value) => Math.floor(Math.log10(Math.abs(value)) + 1e-9);
const strip = (text) => text.replace(/(\.\d*?)0+(e|$)/, "$1$2").replace(/\.(e|$)/, "$1")
  .replace("e+", "e").replace(/^-0$/, "0");
const within = (digits) => Math.max(0, Math.min(digits, 17));

// Texts of values that are `step` apart, with as many digits as tell them apart.
export function labels(values, step) {
  const place = placeOf(step);
  const plain = values.map((v) => strip(v.toFixed(within(-place))));
  const largest = Math.max(...values.filter((v) => v !== 0).map(placeOf), -Infinity);
  if (largest < LARGE && place >= -DECIMALS) return plain;
  const scientific = values.map((v) => v === 0 ? "0"
    : strip(v.toExponential(within(placeOf(v) - place))));
  const width = (texts) => Math.max(...texts.map((text) => text.length));
  return width(plain) <= width(scientific) && largest < 21 ? plain : scientific;
}

// The next of 1, 2, 5, 10, ... times a power of 10.
function roundStep(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return power * ([1, 2, 5].find((factor) => factor * power >= step * 0.999) ?? 10);
}

function linear(from, to, count) {
  const step = roundStep((to - from) / count), values = [];
  if (!(step > 0)) return [{ v: from, label: String(from) }];
  const first = Math.ceil(from / step - 1e-9);
  for (let k = first; k <= first + 4 * count && k * step <= to + step * 1e-9; k++) values.push(k * step);
  const texts = labels(values, step);
  return values.map((v, i) => ({ v, label: texts[i] }));
}

function logarithmic(from, to, count) {
  const low = Math.log10(from), high = Math.log10(to), list = [];
  const every = Math.max(1, Math.ceil((high - low) / (2 * count)));
  let labelled = 0;
  for (let power = Math.floor(low); power <= Math.ceil(high); power++) {
    for (let k = 1; k < 10; k++) {
      const v = k * 10 ** power;
      if (v < from * (1 - 1e-9) || v > to * (1 + 1e-9)) continue;
      const major = k === 1 ? power % every === 0 : high - low <= FEW && (k === 2 || k === 5);
      if (!major && high - low > LONG) continue;
      if (major) labelled++;
      list.push({ v, label: major ? labels([v], v)[0] : "" });
    }
  }
  return labelled >= 2 ? list : null;
}

// Ticks from one value to another, about `count` of them with a label.
export function ticks(from, to, count, log) {
  return log && from > 0 && logarithmic(from, to, count) || linear(from, to, count);
}
