// stdlib/apps/dashboard/page/numbers.js: numbers as text: those of metrics exactly as metrics.csv has
// them, others short.

// The shortest text that reads back as the same number, laid out as %.15g to %.17g do it.
function written(value) {
  const plain = String(value);
  if (plain.length <= 15 && !plain.includes("e") && !/^-?0\.0000/.test(plain)) {
    return Object.is(value, -0) ? "-0" : plain;
  }
  const [mantissa, power] = value.toExponential().split("e");
  const digits = mantissa.replace(/[-.]/g, ""), exponent = Number(power);
  if (exponent >= -4 && exponent < Math.max(15, digits.length)) {
    const sign = value < 0 ? "-" : "";
    if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
    const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
    const rest = digits.slice(exponent + 1);
    return sign + whole + (rest ? "." + rest : "");
  }
  const size = String(Math.abs(exponent)).padStart(2, "0");
  return `${mantissa}e${exponent < 0 ? "-" : "+"}${size}`;
}

// A number that was written in another way keeps its text.
class Kept extends Number {
  constructor(value, text) { super(value); this.text = text; }
}

function revive(_, value, context) {
  if (typeof value !== "number" || !context) return value;
  return written(value) === context.source ? value : new Kept(value, context.source);
}

export const parse = (text) => JSON.parse(text, revive);

// What metrics.csv says: "nan", "inf" and "-inf" are texts.
export function exact(value) {
  if (value === undefined || value === null) return "";
  if (typeof value === "number") return written(value);
  return value instanceof Kept ? value.text : String(value);
}

// As a number; "nan" and "inf" as such.
export function number(value) {
  if (typeof value !== "string") return value === null ? NaN : Number(value);
  return value === "inf" ? Infinity : value === "-inf" ? -Infinity : NaN;
}

export function short(value, digits = 5) {
  const v = number(value);
  if (!Number.isFinite(v)) return exact(value);
  if (v === 0) return "0";
  const size = Math.abs(v);
  if (size >= 1e6 || size < 1e-4) {
    return v.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e");
  }
  return String(Number(v.toPrecision(Math.max(digits, Math.ceil(Math.log10(size + 1))))));
}

export function bytes(value) {
  if (!(Number(value) >= 0)) return "";
  let size = Number(value);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (size < 1024) return `${unit === "B" ? size : size.toFixed(1)} ${unit}`;
    size /= 1024;
  }
  return `${size.toFixed(1)} TiB`;
}

export function percent(value) {
  if (value === null || value === undefined) return "";
  const share = number(value);
  return Number.isFinite(share) ? `${short(100 * share, 3)} %` : exact(value);
}

export function seconds(value) {
  if (value === undefined || value === null || !Number.isFinite(Number(value))) return "";
  const v = Number(value);
  if (v < 10) return `${Number(v.toPrecision(2))} s`;
  if (v < 60) return `${Math.round(v)} s`;
  if (v < 3600) return `${Math.floor(v / 60)} min ${Math.floor(v % 60)} s`;
  if (v < 86400) return `${Math.floor(v / 3600)} h ${Math.floor(v % 3600 / 60)} min`;
  return `${Math.floor(v / 86400)} d ${Math.floor(v % 86400 / 3600)} h`;
}

export const moment = (time) => time === undefined ? ""
  : new Date(Number(time) * 1000).toLocaleString();

export function ago(time) {
  if (time === undefined) return "";
  const passed = Date.now() / 1000 - Number(time);
  if (passed < 60) return "just now";
  if (passed < 3600) return `${Math.floor(passed / 60)} min ago`;
  if (passed < 86400) return `${Math.floor(passed / 3600)} h ago`;
  if (passed < 30 * 86400) return `${Math.floor(passed / 86400)} d ago`;
  return new Date(Number(time) * 1000).toLocaleDateString();
}
