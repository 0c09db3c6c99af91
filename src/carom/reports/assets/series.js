"use strict";
// Series over time: what to draw of them, values between their points, crossings, spectra.

// The last place whose time is not after x; -1 if there is none.
function before(t, x) {
  let low = 0, high = t.length;
  while (low < high) { const middle = (low + high) >> 1; t[middle] <= x ? (low = middle + 1) : (high = middle); }
  return low - 1;
}
const between = (u, v, part, log) => (log && u > 0 && v > 0 ? u * Math.pow(v / u, part) : u + part * (v - u));
function valueAt({ t, y }, x, log = false) {
  const i = before(t, x);
  if (!t.length || i < 0 || (i === t.length - 1 && x > t[i])) return NaN;
  return t[i] === x || i === t.length - 1 ? y[i] : between(y[i], y[i + 1], (x - t[i]) / (t[i + 1] - t[i]), log);
}

// Places to draw between times a and b: all of them, or of each column of pixels the first, the ends and the last.
function toDraw({ t, y }, [a, b], columns) {
  const first = Math.max(before(t, a), 0), end = Math.min(before(t, b) + 2, t.length), found = [];
  if (end - first <= 4 * columns) { for (let i = first; i < end; i++) found.push(i); return found; }
  const column = (i) => Math.floor(((t[i] - a) / (b - a)) * columns);
  for (let i = first; i < end;) {
    const here = column(i), start = i;
    let low = i, high = i, gap = -1;
    for (; i < end && column(i) === here; i++) {
      if (!isFinite(y[i])) gap = i;
      if (y[i] < y[low] || !isFinite(y[low])) low = i;
      if (y[i] > y[high] || !isFinite(y[high])) high = i;
    }
    const kept = [start, low, high, i - 1];
    if (gap >= 0) kept.push(gap);
    found.push(...[...new Set(kept)].sort((p, q) => p - q));
  }
  return found;
}

// Times between a and b at which a series rises through a level.
function crossings({ t, y }, level, [a, b]) {
  const found = [];
  for (let i = Math.max(before(t, a), 0); i + 1 < t.length && t[i] < b; i++) {
    if (!(y[i] < level && y[i + 1] >= level)) continue;
    const when = t[i] + ((level - y[i]) / (y[i + 1] - y[i])) * (t[i + 1] - t[i]);
    if (when >= a && when <= b) found.push(when);
  }
  return found;
}

// Amplitudes over frequency of what is between a and b: evenly sampled, without its mean, under Hann's window.
function spectrum(series, [a, b]) {
  const rows = before(series.t, b) - before(series.t, a), n = 2 ** Math.min(13, Math.max(4, Math.ceil(Math.log2(rows + 1))));
  const re = new Float64Array(n), im = new Float64Array(n);
  let mean = 0;
  for (let i = 0; i < n; i++) { re[i] = valueAt(series, a + ((b - a) * i) / n) || 0; mean += re[i] / n; }
  for (let i = 0; i < n; i++) re[i] = (re[i] - mean) * (1 - Math.cos((2 * Math.PI * i) / n));
  transform(re, im);
  const f = [], amplitude = [];
  for (let k = 1; k < n / 2; k++) { f.push(k / (b - a)); amplitude.push((2 * Math.hypot(re[k], im[k])) / n); }
  return { x: f, y: amplitude };
}
// Fourier's transform in place, the length a power of two.
function transform(re, im) {
  const n = re.length;
  for (let i = 1, j = 0; i < n; i++) {
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) { [re[i], re[j]] = [re[j], re[i]]; [im[i], im[j]] = [im[j], im[i]]; }
  }
  for (let size = 2; size <= n; size *= 2) {
    for (let k = 0; k < size / 2; k++) {
      const c = Math.cos((2 * Math.PI * k) / size), s = -Math.sin((2 * Math.PI * k) / size);
      for (let i = k; i < n; i += size) {
        const j = i + size / 2, u = re[j] * c - im[j] * s, w = re[j] * s + im[j] * c;
        re[j] = re[i] - u; im[j] = im[i] - w; re[i] += u; im[i] += w;
      }
    }
  }
}
