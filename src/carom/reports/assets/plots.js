"use strict";
// Linked plots on canvases: one time range and one cursor shared by all.
const MODE_HUES = { 0: "blue", 1: "line", 2: "green", 3: "orange", 4: "purple", "-1": "purple" };
const HUES = ["blue", "orange", "green", "purple", "red", "cyan", "ink"];

function bytesOf(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}
const floatsOf = (text) => new Float32Array(bytesOf(text).buffer);
const doublesOf = (text) => new Float64Array(bytesOf(text).buffer);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// A canvas fitted to its box and to the density of the screen; returns its context in CSS pixels.
function fitted(canvas) {
  const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
  }
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, w, h);
  return [g, w, h];
}

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
const FINEST = 1e-13;
const number = (x) => (x === 0 ? "0" : Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3 ? x.toExponential(1) : String(+x.toPrecision(4)));
const label = (x) => (x === 0 ? "0" : Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3 ? x.toExponential() : String(x));

class Plot {
  constructor(data, place, link) {
    Object.assign(this, data);
    this.link = link;
    this.hidden = new Set();
    const card = document.createElement("section");
    card.className = "card plot";
    const heading = document.createElement("h2");
    heading.textContent = this.unit ? `${this.title} [${this.unit}]` : this.title;
    this.canvas = document.createElement("canvas");
    this.legend = document.createElement("div");
    this.legend.className = "legend";
    card.append(heading, this.canvas, this.legend);
    place.append(card);
    if (this.kind === "lines") this.series = this.series.map((s) => ({ name: s.name, t: doublesOf(s.t), y: doublesOf(s.y) }));
    if (this.kind === "image") this.pixels = bytesOf(this.pixels);
    this.listen();
  }

  listen() {
    const time = (event) => {
      const [a, b] = this.link.range, left = this.left, right = this.canvas.clientWidth - 8;
      return a + ((event.offsetX - left) / (right - left)) * (b - a);
    };
    let pressed = false;
    this.canvas.addEventListener("pointerdown", (e) => { pressed = true; this.link.seek(time(e)); });
    this.canvas.addEventListener("pointermove", (e) => { if (pressed) this.link.seek(time(e)); });
    window.addEventListener("pointerup", () => { pressed = false; });
    this.canvas.addEventListener("wheel", (e) => { e.preventDefault(); this.link.zoom(time(e), e.deltaY > 0 ? 1.25 : 0.8); }, { passive: false });
    this.canvas.addEventListener("dblclick", () => this.link.zoom(0, Infinity));
  }

  // Lowest and highest end of the vertical axis; on a log axis as powers of ten, of what is positive.
  heights() {
    let low = Infinity, high = -Infinity;
    const [a, b] = this.link.range, log = this.scale === "log";
    this.zeros = false;
    const see = (v) => {
      if (!isFinite(v)) return;
      if (log && v <= 0) { this.zeros = true; return; }
      if (v < low) low = v;
      if (v > high) high = v;
    };
    const between = (u, v, part) => (log && u > 0 && v > 0 ? u * Math.pow(v / u, part) : u + part * (v - u));
    for (const { name, t, y } of this.series) {
      if (this.hidden.has(name)) continue;
      for (let i = 0; i < t.length; i++) {
        if (t[i] >= a && t[i] <= b) see(y[i]);
        for (const edge of i ? [a, b] : []) {
          if (t[i - 1] < edge && edge < t[i]) see(between(y[i - 1], y[i], (edge - t[i - 1]) / (t[i] - t[i - 1])));
        }
      }
    }
    if (!(low <= high)) return [0, 1];
    if (log) {
      const p = Math.log10(low), q = Math.log10(high), pad = Math.max(0.05 * (q - p), (1.2 - (q - p)) / 2);
      return [p - pad, q + pad];
    }
    const size = Math.max(Math.abs(low), Math.abs(high)), pad = high - low > 100 * FINEST * size ? 0.06 * (high - low) : 0.1 * size || 1;
    return [low - pad, high + pad];
  }

  draw() {
    const [g, w, h] = fitted(this.canvas);
    g.font = "11px system-ui, sans-serif";
    const axis = this.kind === "lines" ? this.axis() : null;
    this.left = this.kind === "modes" ? 70 : Math.max(54, ...(axis ? axis.marks.map((v) => g.measureText(label(v)).width + 12) : []));
    const area = { left: this.left, right: w - 8, top: 6, bottom: h - 20 };
    const [a, b] = this.link.range;
    const x = (t) => area.left + ((t - a) / (b - a || 1)) * (area.right - area.left);
    g.fillStyle = colour("faint");
    g.strokeStyle = colour("line");
    for (const t of ticks(a, b, Math.max(2, w / 90))) {
      g.beginPath(); g.moveTo(x(t), area.top); g.lineTo(x(t), area.bottom); g.stroke();
      g.textAlign = x(t) > w - 24 ? "right" : "center";
      g.fillText(label(t), Math.min(x(t), w - 2), h - 6);
    }
    g.save();
    if (this.kind === "lines") this.drawLines(g, area, x, axis);
    if (this.kind === "modes") this.drawModes(g, area, x);
    if (this.kind === "image") this.drawImage(g, area, x);
    g.restore();
    const now = x(this.link.time);
    if (now >= area.left && now <= area.right) {
      g.strokeStyle = colour("red");
      g.beginPath(); g.moveTo(now, area.top); g.lineTo(now, area.bottom); g.stroke();
    }
  }

  axis() {
    const [low, high] = this.heights();
    return { low, high, marks: this.scale === "log" ? logTicks(low, high) : ticks(low, high, 4) };
  }

  // On a log axis what is zero has a row of its own, under the axis.
  drawLines(g, area, x, { low, high, marks }) {
    const log = this.scale === "log", floor = area.bottom - (log && this.zeros ? 16 : 0);
    const at = (v) => floor - ((v - low) / (high - low)) * (floor - area.top);
    const y = (v) => (!log ? at(v) : v > 0 ? at(Math.log10(v)) : area.bottom - 3);
    g.textAlign = "right";
    for (const v of log && this.zeros ? [0, ...marks] : marks) {
      g.beginPath(); g.moveTo(area.left, y(v)); g.lineTo(area.right, y(v)); g.stroke();
      g.fillText(label(v), area.left - 5, y(v) + 4);
    }
    g.beginPath();
    g.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
    g.clip();
    g.lineWidth = 1.4;
    const kind = (v) => (!isFinite(v) ? 0 : log && v <= 0 ? 1 : 2);
    this.series.forEach((s, i) => {
      if (this.hidden.has(s.name)) return;
      g.strokeStyle = g.fillStyle = this.hue(i);
      g.beginPath();
      s.y.forEach((v, k) => {
        const here = kind(v), px = x(s.t[k]), py = y(v);
        if (!here) return;
        if (k && here === kind(s.y[k - 1])) return g.lineTo(px, py);
        g.moveTo(px, py);
        if (k + 1 === s.y.length || here !== kind(s.y[k + 1])) g.fillRect(px - 1, py - 1, 2, 2);
      });
      g.stroke();
    });
  }

  hue(i) { if (this.hues && this.hues.length) return colour(this.hues[i]); return this.series.length > HUES.length ? `hsl(${215 + (300 * i) / this.series.length} 65% ${this.link.dark() ? 65 : 42}%)` : colour(HUES[i]); }

  drawModes(g, area, x) {
    const row = (area.bottom - area.top) / this.strips.length;
    g.textAlign = "right";
    this.strips.forEach((strip, i) => {
      g.fillStyle = colour("faint");
      g.fillText(this.names[i], area.left - 6, area.top + (i + 0.5) * row + 4);
    });
    g.beginPath(); g.rect(area.left, area.top, area.right - area.left, area.bottom - area.top); g.clip();
    this.strips.forEach((strip, i) => strip.forEach(([from, to, mode]) => {
      g.fillStyle = colour(MODE_HUES[mode] || "red");
      g.fillRect(x(from), area.top + i * row + 0.14 * row, Math.max(x(to) - x(from), 0.5), 0.72 * row);
    }));
  }

  drawImage(g, area, x) {
    if (!this.bitmap || this.bitmapDark !== this.link.dark()) this.paint();
    g.textAlign = "right";
    g.fillText("1", area.left - 6, area.bottom);
    g.fillText(String(this.of), area.left - 6, area.top + 10);
    g.beginPath(); g.rect(area.left, area.top, area.right - area.left, area.bottom - area.top); g.clip();
    g.imageSmoothingEnabled = false;
    g.drawImage(this.bitmap, x(this.span[0]), area.top, x(this.span[1]) - x(this.span[0]), area.bottom - area.top);
  }

  paint() {
    this.bitmapDark = this.link.dark();
    this.bitmap = document.createElement("canvas");
    this.bitmap.width = this.columns; this.bitmap.height = this.rows;
    const g = this.bitmap.getContext("2d"), image = g.createImageData(this.columns, this.rows);
    const zero = this.bitmapDark ? [22, 27, 34] : [255, 255, 255], ends = this.bitmapDark ? [[240, 136, 62], [88, 166, 255]] : [[217, 104, 10], [11, 98, 196]];
    for (let r = 0; r < this.rows; r++) for (let c = 0; c < this.columns; c++) {
      const value = (this.pixels[r * this.columns + c] - 127) / 127, end = ends[value < 0 ? 0 : 1];
      const part = Math.sqrt(Math.abs(value)), k = 4 * ((this.rows - 1 - r) * this.columns + c);
      for (let j = 0; j < 3; j++) image.data[k + j] = zero[j] + part * (end[j] - zero[j]);
      image.data[k + 3] = 255;
    }
    g.putImageData(image, 0, 0);
  }

  // What each law does at a time: pairs of its name and its mode.
  at(t) {
    return this.strips.map((strip, i) => [this.names[i], (strip.find(([, to]) => t < to) || strip[strip.length - 1])[2]]);
  }

  key() {
    this.legend.textContent = "";
    const entry = (hue, name, toggle) => {
      const span = document.createElement("span"), mark = document.createElement("b");
      mark.style.background = hue;
      span.append(mark, name);
      if (this.hidden.has(name)) span.className = "off";
      if (toggle) span.onclick = () => { this.hidden.has(name) ? this.hidden.delete(name) : this.hidden.add(name); this.key(); this.draw(); };
      this.legend.append(span);
    };
    if (this.kind === "lines" && (this.series.length > 1 || ![this.title, ""].includes(this.series[0]?.name))) this.series.forEach((s, i) => entry(this.hue(i), s.name, true));
    if (this.kind === "modes") {
      const there = new Set(this.strips.flat().map((s) => String(s[2])));
      for (const mode of Object.keys(MODE_HUES)) if (there.has(mode)) entry(colour(MODE_HUES[mode]), this.words[mode], false);
    }
    if (this.kind === "image") { entry(colour("blue"), `up to ${number(this.limit)}`, false); entry(colour("orange"), `down to ${number(-this.limit)}`, false); }
  }
}
