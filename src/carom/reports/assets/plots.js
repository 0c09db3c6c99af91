"use strict";
// Plots on canvases. What does not move with time is painted once on a layer behind; the cursor comes over it.
const MODE_HUES = { 0: "blue", 1: "line", 2: "green", 3: "orange", 4: "purple", "-1": "purple" };

class Plot {
  constructor(given, place) {
    Object.assign(this, given);
    this.hidden = new Set();
    this.ends = null; // of the vertical axis, where the reader chose them
    this.layer = document.createElement("canvas");
    this.canvas = el("canvas", { tabIndex: 0, role: "img" });
    this.legend = el("div", { className: "legend" });
    this.tools = el("span", { className: "tools" });
    for (const [name, told, go] of this.exports()) this.tools.append(el("button", { type: "button", textContent: name, "aria-label": `${told} of ${this.title}`, title: told, onclick: go }));
    this.entries = [];
    const heading = el("h2", {}, this.heading(), this.tools);
    this.card = el("section", { className: "card plot" }, heading, this.canvas, this.legend);
    place.append(this.card);
    this.listen();
    link.views.push(this);
  }

  exports() {
    return [["png", "picture", () => saved(`${this.title}.png`, asPng(this))], ["svg", "drawing", () => saved(`${this.title}.svg`, asSvg(this))], ["csv", "numbers", () => saved(`${this.title}.csv`, "data:text/csv," + encodeURIComponent(this.csv()))]];
  }
  csv() { return ""; }
  heading() { return this.unit ? `${this.title} [${this.unit}]` : this.title; }

  // The place of a pointer as a time, and back.
  timeAt(px) { const [a, b] = link.range; return a + ((px - this.area.left) / (this.area.right - this.area.left)) * (b - a); }
  x(t) { const [a, b] = link.range; return this.area.left + ((t - a) / (b - a || 1)) * (this.area.right - this.area.left); }

  listen() {
    const c = this.canvas, held = new Map();
    let gesture = "";
    c.addEventListener("pointerdown", (e) => {
      c.setPointerCapture(e.pointerId);
      held.set(e.pointerId, e.offsetX);
      gesture = held.size > 1 ? "pinch" : e.shiftKey ? "pan" : e.altKey ? "rule" : "seek";
      this.rule = gesture === "rule" ? [[e.offsetX, e.offsetY], [e.offsetX, e.offsetY]] : null;
      if (gesture === "seek") this.seek(e);
    });
    c.addEventListener("pointermove", (e) => {
      this.pointer = [e.offsetX, e.offsetY];
      if (!held.has(e.pointerId)) return this.point(e);
      const from = held.get(e.pointerId), other = [...held].find(([id]) => id !== e.pointerId);
      held.set(e.pointerId, e.offsetX);
      if (gesture === "seek") this.seek(e);
      if (gesture === "pan") this.pan(from, e.offsetX);
      if (gesture === "pinch" && other) this.zoom(other[1], Math.abs(from - other[1]) / Math.max(Math.abs(e.offsetX - other[1]), 1));
      if (gesture === "rule") { this.rule[1] = [e.offsetX, e.offsetY]; this.draw(); }
    });
    for (const name of ["pointerup", "pointercancel"]) c.addEventListener(name, (e) => held.delete(e.pointerId));
    c.addEventListener("pointerleave", () => { this.pointer = null; link.point(null); });
    c.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && document.activeElement !== c) return;
      e.preventDefault();
      const factor = e.deltaY > 0 ? 1.25 : 0.8;
      e.offsetX < this.area.left ? this.stretch(e.offsetY, factor) : this.zoom(e.offsetX, factor, e.offsetY);
    }, { passive: false });
    c.addEventListener("dblclick", () => { this.ends = null; this.all(); });
  }
  seek(e) { link.seek(this.timeAt(e.offsetX)); }
  point(e) { link.point(this.timeAt(e.offsetX)); }
  pan(from, to) { link.pan(this.timeAt(from) - this.timeAt(to)); }
  zoom(px, factor) { link.zoom(this.timeAt(px), factor); }
  all() { link.zoom(0, Infinity); }
  stretch(py, factor) {
    if (!this.axis) return;
    const { low, high } = this.axis, { top, bottom } = this.area, v = low + ((bottom - py) / (bottom - top)) * (high - low);
    this.ends = [v - (v - low) * factor, v + (high - v) * factor];
    this.draw();
  }

  // What the layer depends on; the layer is painted anew when it changes.
  state() { return [link.range, this.ends]; }
  draw() {
    if (!this.canvas.clientWidth) return;
    const key = JSON.stringify([this.canvas.clientWidth, this.canvas.clientHeight, devicePixelRatio, isDark(), [...this.hidden], this.state()]);
    if (key !== this.painted) { this.painted = key; this.paintLayer(); }
    const [g, w, h] = fitted(this.canvas);
    g.drawImage(this.layer, 0, 0, w, h);
    this.cursor(g);
  }

  paintLayer() {
    this.paintOn(...fitted(this.layer, this.canvas));
    this.canvas.setAttribute("aria-label", this.described());
  }
  paintOn(g, w, h) {
    g.font = "11px system-ui, sans-serif";
    this.axis = this.vertical();
    this.area = { left: this.margin(g), right: w - 10, top: 6, bottom: h - 20 };
    g.strokeStyle = colour("line");
    g.fillStyle = colour("faint");
    this.horizontal(g, w, h);
    g.save();
    this.paint(g, this.area);
    g.restore();
  }
  vertical() { return null; }
  margin(g) { return Math.max(54, ...(this.axis ? this.axis.marks.map((v) => g.measureText(label(v)).width + 12) : [])); }
  horizontal(g, w, h) {
    this.marksBelow(g, ticks(...link.range, Math.max(2, w / 90)), (t) => this.x(t), h);
    g.textAlign = "left";
    g.fillText(unit ? `t [${unit}]` : "t", 4, h - 6);
  }
  // Labels under the axis, those left out that would run into their neighbours.
  marksBelow(g, marks, x, h) {
    let free = 34;
    for (const v of marks) {
      g.beginPath(); g.moveTo(x(v), this.area.top); g.lineTo(x(v), this.area.bottom); g.stroke();
      const half = g.measureText(label(v)).width / 2, centre = Math.min(x(v), this.area.right + 8 - half);
      if (centre - half < free) continue;
      g.textAlign = "center";
      g.fillText(label(v), centre, h - 6);
      free = centre + half + 6;
    }
  }
  clip(g) { const { left, right, top, bottom } = this.area; g.beginPath(); g.rect(left, top, right - left, bottom - top); g.clip(); }
  upright(g, t, ink, dash) {
    const px = this.x(t);
    if (!(px >= this.area.left && px <= this.area.right)) return;
    g.strokeStyle = ink; g.lineWidth = 1; g.setLineDash(dash);
    g.beginPath(); g.moveTo(px, this.area.top); g.lineTo(px, this.area.bottom); g.stroke();
    g.setLineDash([]);
  }
  cursor(g) {
    this.upright(g, link.time, colour("red"), []);
    if (link.hover !== null) this.upright(g, link.hover, colour("faint"), [3, 3]);
  }
  described() { return this.title; }
  tell() {}

  // A legend whose entries are buttons where they can be hidden.
  key(entries) {
    this.values = {};
    this.entries = entries;
    this.legend.replaceChildren(...entries.map(([ink, name, hides]) => {
      const value = el("span", { className: "value" }), mark = el("b");
      mark.style.background = ink;
      this.values[name] = value;
      if (!hides) return el("span", {}, mark, name, value);
      const off = this.hidden.has(name);
      return el("button", { type: "button", className: "key", "aria-pressed": String(!off), title: "show or hide", onclick: () => {
        off ? this.hidden.delete(name) : this.hidden.add(name);
        this.restyle();
        this.draw();
      } }, mark, name, value);
    }));
  }
  restyle() { this.key([]); this.painted = ""; }
}

class Lines extends Plot {
  hueOf(i) { return this.hues && this.hues.length ? colour(this.hues[i]) : hue(i, this.series.length); }
  restyle() { this.key(this.series.map((s, i) => [this.hueOf(i), s.name, this.series.length > 1])); this.painted = ""; this.tell(); }
  shown() { return this.series.filter((s) => !this.hidden.has(s.name)); }

  // Ends of the vertical axis; on a log axis as powers of ten, of what is positive.
  heights() {
    let low = Infinity, high = -Infinity;
    const [a, b] = link.range, log = this.scale === "log";
    this.zeros = false;
    const see = (v) => {
      if (!isFinite(v)) return;
      if (log && v <= 0) { this.zeros = true; return; }
      if (v < low) low = v;
      if (v > high) high = v;
    };
    for (const s of this.shown()) {
      for (let i = before(s.t, a) + 1, end = before(s.t, b); i <= end; i++) see(s.y[i]);
      see(valueAt(s, a, log));
      see(valueAt(s, b, log));
    }
    return padded(low, high, log);
  }
  vertical() {
    const [low, high] = this.ends || this.heights();
    return { low, high, marks: this.scale === "log" ? logTicks(low, high) : ticks(low, high, 4) };
  }

  // On a log axis what is zero has a row of its own, under the axis.
  y(v) {
    const log = this.scale === "log", { low, high } = this.axis, { top, bottom } = this.area, floor = bottom - (log && this.zeros ? 16 : 0);
    if (log && v <= 0) return bottom - 3;
    return floor - (((log ? Math.log10(v) : v) - low) / (high - low)) * (floor - top);
  }
  paint(g, area) {
    const log = this.scale === "log";
    g.textAlign = "right";
    for (const v of log && this.zeros ? [0, ...this.axis.marks] : this.axis.marks) {
      g.beginPath(); g.moveTo(area.left, this.y(v)); g.lineTo(area.right, this.y(v)); g.stroke();
      g.fillText(label(v), area.left - 5, this.y(v) + 4);
    }
    this.clip(g);
    g.lineWidth = 1.4;
    const kind = (v) => (!isFinite(v) ? 0 : log && v <= 0 ? 1 : 2);
    this.series.forEach((s, i) => {
      if (this.hidden.has(s.name)) return;
      g.strokeStyle = g.fillStyle = this.hueOf(i);
      g.beginPath();
      const drawn = toDraw(s, link.range, area.right - area.left);
      drawn.forEach((k, j) => {
        const v = s.y[k], here = kind(v), px = this.x(s.t[k]), py = this.y(v);
        if (!here) return;
        if (j && here === kind(s.y[drawn[j - 1]])) return g.lineTo(px, py);
        g.moveTo(px, py);
        if (j + 1 === drawn.length || here !== kind(s.y[drawn[j + 1]])) g.fillRect(px - 1, py - 1, 2, 2);
      });
      g.stroke();
    });
  }
  cursor(g) {
    super.cursor(g);
    if (link.hover === null) return;
    this.series.forEach((s, i) => {
      const v = this.hidden.has(s.name) ? NaN : valueAt(s, link.hover, this.scale === "log");
      if (!isFinite(v)) return;
      g.fillStyle = this.hueOf(i);
      g.beginPath(); g.arc(this.x(link.hover), this.y(v), 3, 0, 7); g.fill();
    });
  }
  tell() {
    const t = link.hover === null ? link.time : link.hover;
    for (const s of this.series) {
      const v = valueAt(s, t, this.scale === "log");
      if (this.values[s.name]) this.values[s.name].textContent = isNaN(v) ? "" : number(v);
    }
  }
  described() {
    const ends = this.shown().slice(0, 12).map((s) => {
      const seen = s.y.filter(isFinite);
      return `${s.name} from ${number(seen.reduce((a, b) => Math.min(a, b), Infinity))} to ${number(seen.reduce((a, b) => Math.max(a, b), -Infinity))}`;
    });
    return `${this.title} over time: ${ends.join(", ")}`;
  }
  csv() {
    const rows = this.shown().flatMap((s) => [...s.t].map((t, i) => `"${s.name.replaceAll('"', '""')}",${t},${s.y[i]}`));
    return ["series,t,value", ...rows].join("\n");
  }
}
function padded(low, high, log) {
  if (!(low <= high)) return [0, 1];
  if (log) {
    const p = Math.log10(low), q = Math.log10(high), pad = Math.max(0.05 * (q - p), (1.2 - (q - p)) / 2);
    return [p - pad, q + pad];
  }
  const size = Math.max(Math.abs(low), Math.abs(high)), pad = high - low > 100 * FINEST * size ? 0.06 * (high - low) : 0.1 * size || 1;
  return [low - pad, high + pad];
}
function saved(name, address) {
  const anchor = el("a", { href: address, download: name.replace(/[^\w.]+/g, "_") });
  anchor.click();
}
