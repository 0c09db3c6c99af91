"use strict";
// What everything on the page shares: the data, colours, canvases, round numbers, and one time.
const by = (id) => document.getElementById(id);

function bytesOf(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}
const KINDS = { f8: Float64Array, f4: Float32Array, u1: Uint8Array };
function readData(text) {
  const found = JSON.parse(text), arrays = found.arrays.map(([kind, code]) => new KINDS[kind](bytesOf(code).buffer));
  const revived = (value) => {
    if (value === null || typeof value !== "object") return value;
    if ("$" in value) return arrays[value.$];
    for (const key of Object.keys(value)) value[key] = revived(value[key]);
    return value;
  };
  delete found.arrays;
  return revived(found);
}
const data = readData(by("data").textContent);
const unit = data.time_unit || "";

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) name in node ? (node[name] = value) : node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const palette = new Map();
function colour(name) {
  if (!palette.has(name)) palette.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
  return palette.get(name);
}
const isDark = () => document.documentElement.classList.contains("dark");
const HUES = ["blue", "orange", "green", "purple", "red", "cyan", "ink"];
const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]]; // viridis
// One of n colours: named ones for few lines, viridis for many, without its end that the background swallows.
function hue(i, n) {
  if (n <= HUES.length) return colour(HUES[i]);
  const part = (i / (n - 1)) * 0.8 + (isDark() ? 0.2 : 0), at = Math.min(part * 4, 3.999), k = Math.floor(at);
  return `rgb(${RAMP[k].map((c, j) => Math.round(c + (at - k) * (RAMP[k + 1][j] - c))).join(", ")})`;
}

// A canvas fitted to its box (or to that of another) and to the density of the screen; its context counts CSS pixels.
function fitted(canvas, like = canvas) {
  const ratio = window.devicePixelRatio || 1, w = like.clientWidth, h = like.clientHeight;
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
  }
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, w, h);
  return [g, w, h];
}

const FINEST = 1e-13;
// Round numbers between low and high, about n of them; each is the very number that its label spells.
function ticks(low, high, n) {
  const raw = (high - low) / n;
  if (!(raw > FINEST * Math.max(Math.abs(low), Math.abs(high))) || !isFinite(raw)) return [];
  const between = (digit, power) => {
    const step = Number(`${digit}e${power}`), found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(Number(`${digit * i}e${power}`));
    return found;
  };
  const power = Math.floor(Math.log10(raw)) - 1, steps = [[2, power], [5, power]];
  for (const p of [power + 1, power + 2]) steps.push([1, p], [2, p], [5, p]);
  const at = steps.findIndex(([digit, p]) => Number(`${digit}e${p}`) >= raw), round = between(...steps[at]);
  return round.length < 3 ? between(...steps[at - 1]) : round;
}
// Powers of ten between 10^low and 10^high, with 2 and 5 times them where few fit.
function logTicks(low, high) {
  const every = Math.max(1, Math.ceil((high - low) / 6)), digits = high - low < 2.5 ? [1, 2, 5] : [1], found = [];
  for (let p = Math.floor(low); p <= high; p++) {
    if (p % every) continue;
    for (const digit of digits) {
      const value = Number(`${digit}e${p}`), place = Math.log10(value);
      if (place >= low - 1e-9 && place <= high + 1e-9) found.push(value);
    }
  }
  return found;
}
const small = (x) => Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3;
const number = (x, digits = 5) => (x === 0 ? "0" : !isFinite(x) ? String(x) : small(x) ? x.toExponential(digits - 1) : String(+x.toPrecision(digits)));
const label = (x) => (x === 0 ? "0" : small(x) ? x.toExponential() : String(x));

// One range and one time for all; what shows them is entered in `views`.
const times = data.times, last = times.length - 1, whole = [times[0], times[last]];
const link = {
  range: [...whole], time: whole[0], hover: null, views: [],
  draw() { for (const view of this.views) view.draw(); },
  seek(t) { pause(); showAt(t); },
  point(t) { this.hover = t; this.draw(); tellValues(); },
  window(low, high) {
    if (!(high - low > 1e-11 * Math.max(Math.abs(low), Math.abs(high)))) return;
    const length = Math.min(high - low, whole[1] - whole[0]), start = Math.max(whole[0], Math.min(low, whole[1] - length));
    this.range = [start, start + length];
    ranged();
    this.draw();
  },
  zoom(t, factor) {
    const [a, b] = this.range;
    factor === Infinity ? this.window(...whole) : this.window(t - (t - a) * factor, t + (b - t) * factor);
  },
  pan(dt) { this.window(this.range[0] + dt, this.range[1] + dt); },
};
