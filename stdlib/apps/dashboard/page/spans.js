// stdlib/apps/dashboard/page/spans.js: what of the points of lines is to be seen.

// The lowest and highest x of lines.
export function span(lines) {
  let low = Infinity, high = -Infinity;
  for (const { points } of lines) {
    if (points.length === 0) continue;
    low = Math.min(low, points[0][0]);
    high = Math.max(high, points[points.length - 1][0]);
  }
  if (low > high) return [0, 1];
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

// What is to be seen of points on so many pixels: the lowest and the highest of each column, gaps, and
// one point beyond either end. Strokes are most of the time that a repaint takes.
export function visible(points, [from, to], width, logx) {
  if (points.length <= 2 * width) return points;
  const place = logx ? Math.log : (x) => x, scale = width / (place(to) - place(from));
  const kept = [];
  let column = null, low = null, high = null, before = null;
  const flush = () => {
    if (low !== null) {
      kept.push(points[Math.min(low, high)]);
      if (low !== high) kept.push(points[Math.max(low, high)]);
    }
    low = high = null;
  };
  for (let i = 0; i < points.length; i++) {
    const [x, y] = points[i];
    if (x < from) {
      before = points[i];
      continue;
    }
    if (before) kept.push(before);
    before = null;
    const at = Math.floor((place(x) - place(from)) * scale);
    if (at !== column || y === null) flush();
    column = at;
    if (y === null || x > to) kept.push(points[i]);
    else if (low === null) low = high = i;
    else if (y < points[low][1]) low = i;
    else if (y > points[high][1]) high = i;
    if (x > to) break;
  }
  flush();
  return kept;
}

// From the 1st to the 99th of 100 values, with a margin; null where there are few.
export function middle(lines, [from, to], logy) {
  const values = [];
  for (const { points } of lines) {
    for (const [x, y] of points) {
      if (y !== null && x >= from && x <= to) values.push(y);
    }
  }
  if (values.length < 20) return null;
  values.sort((a, b) => a - b);
  const low = values[Math.floor(values.length * 0.01)];
  const high = values[Math.ceil(values.length * 0.99) - 1];
  if (!(high > low)) return null;
  return logy ? [low / 1.1, high * 1.1] : [low - (high - low) * 0.08, high + (high - low) * 0.08];
}
