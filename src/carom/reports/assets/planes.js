"use strict";
// Plots of one number over another: points of a run, phase portraits and sections, spectra, work and precision.
class Plane extends Plot {
  constructor(given, place) {
    super(given, place);
    this.view = null; // ends of both axes, where the reader chose them
    this.scales = this.scales || ["linear", "linear"];
  }
  curves() { return this.series; }
  hueOf(i) { return hue(i, this.curves().length); }
  state() { return [link.range, this.view]; }

  to(value, axis) { return this.scales[axis] === "log" ? Math.log10(value) : value; }
  ranges() {
    if (this.view) return this.view;
    return [0, 1].map((axis) => {
      let low = Infinity, high = -Infinity;
      for (const c of this.found) for (const v of axis ? c.y : c.x) {
        if (!isFinite(this.to(v, axis))) continue;
        if (v < low) low = v;
        if (v > high) high = v;
      }
      return padded(low, high, this.scales[axis] === "log");
    });
  }
  vertical() {
    this.found = this.curves().filter((c) => !this.hidden.has(c.name));
    this.shownRanges = this.ranges();
    const [low, high] = this.shownRanges[1];
    return { low, high, marks: this.scales[1] === "log" ? logTicks(low, high) : ticks(low, high, 4) };
  }
  xOf(v) { const [a, b] = this.shownRanges[0], { left, right } = this.area; return left + ((this.to(v, 0) - a) / (b - a)) * (right - left); }
  yOf(v) { const [a, b] = this.shownRanges[1], { top, bottom } = this.area; return bottom - ((this.to(v, 1) - a) / (b - a)) * (bottom - top); }
  horizontal(g, w, h) {
    const [a, b] = this.shownRanges[0], marks = this.scales[0] === "log" ? logTicks(a, b) : ticks(a, b, Math.max(2, w / 110));
    this.marksBelow(g, marks, (v) => this.xOf(v), h);
  }
  paint(g, area) {
    g.textAlign = "right";
    for (const v of this.axis.marks) {
      g.beginPath(); g.moveTo(area.left, this.yOf(v)); g.lineTo(area.right, this.yOf(v)); g.stroke();
      g.fillText(label(v), area.left - 5, this.yOf(v) + 4);
    }
    this.clip(g);
    const names = this.curves().map((c) => c.name);
    for (const c of this.found) {
      g.strokeStyle = g.fillStyle = this.hueOf(names.indexOf(c.name));
      g.lineWidth = 1.2;
      if (c.line) {
        g.beginPath();
        for (let i = 0; i < c.x.length; i++) i && isFinite(c.y[i - 1]) ? g.lineTo(this.xOf(c.x[i]), this.yOf(c.y[i])) : g.moveTo(this.xOf(c.x[i]), this.yOf(c.y[i]));
        g.stroke();
      } else for (let i = 0; i < c.x.length; i++) { g.beginPath(); g.arc(this.xOf(c.x[i]), this.yOf(c.y[i]), this.dot || 2.5, 0, 7); g.fill(); }
    }
    g.fillStyle = colour("faint");
    if (this.axes) {
      g.fillText(this.axes[0], area.right - 4, area.bottom - 5);
      g.textAlign = "left";
      g.fillText(this.axes[1], area.left + 5, area.top + 10);
    }
  }
  // The point of the current time.
  now() { return null; }
  cursor(g) {
    const here = this.now(link.hover === null ? link.time : link.hover);
    if (!here || !here.every(isFinite)) return;
    g.fillStyle = colour("red");
    g.beginPath(); g.arc(this.xOf(here[0]), this.yOf(here[1]), 4, 0, 7); g.fill();
  }

  at(px, py) {
    const [[a, b], [c, d]] = this.shownRanges, { left, right, top, bottom } = this.area;
    return [a + ((px - left) / (right - left)) * (b - a), c + ((bottom - py) / (bottom - top)) * (d - c)];
  }
  nearest(e) {
    let best = null, least = 400;
    for (const c of this.found) for (let i = 0; i < c.x.length; i++) {
      const d = (this.xOf(c.x[i]) - e.offsetX) ** 2 + (this.yOf(c.y[i]) - e.offsetY) ** 2;
      if (d < least) { least = d; best = { x: c.x[i], y: c.y[i], t: c.t ? c.t[i] : NaN, name: c.name }; }
    }
    return best;
  }
  seek(e) { const near = this.nearest(e); if (near && isFinite(near.t)) link.seek(near.t); }
  point(e) {
    const near = this.nearest(e), place = Object.values(this.values || {})[0];
    if (place) place.textContent = near ? `(${number(near.x)}, ${number(near.y)})` : "";
  }
  zoom(px, factor, py) {
    const at = this.at(px, py), both = this.shownRanges;
    this.view = both.map(([a, b], i) => [at[i] - (at[i] - a) * factor, at[i] + (b - at[i]) * factor]);
    this.draw();
  }
  stretch(py, factor) { this.zoom(this.area.left, factor, py); }
  pan(from, to) { const d = this.at(from, 0)[0] - this.at(to, 0)[0]; this.view = [this.shownRanges[0].map((v) => v + d), this.shownRanges[1]]; this.draw(); }
  all() { this.view = null; this.draw(); }
  restyle() { this.key(this.curves().map((c, i) => [this.hueOf(i), c.name, this.curves().length > 1])); this.painted = ""; }
  described() { return `${this.title}: ${(this.axes || ["x", "y"]).join(" and ")} of ${this.found.map((c) => `${c.name} (${c.x.length} points)`).join(", ")}`; }
  csv() { return ["series,x,y", ...this.found.flatMap((c) => [...c.x].map((x, i) => `"${c.name}",${x},${c.y[i]}`))].join("\n"); }
}

function choice(told, names, chosen, changed) {
  const select = el("select", { "aria-label": told, onchange: changed }, ...names.map((name, i) => el("option", { value: String(i), textContent: name })));
  select.value = String(chosen);
  return select;
}

// Any series over any other: the path, where a third rises through a level (Poincaré), once per period, or at events.
class Portrait extends Plane {
  constructor(all, place) {
    super({ title: "phase portrait", all }, place);
    const names = all.map((s) => s.told), redo = () => { this.view = null; this.restyle(); this.draw(); };
    const first = all[0].told.split(":")[1], rate = all.findIndex((s, i) => i && s.told.split(":")[1] === first);
    this.choices = [choice("to the right", names, 0, redo), choice("upward", names, rate < 0 ? Math.min(1, all.length - 1) : rate, redo)];
    this.which = choice("which points", ["path", "events", "each period of", ...names.map((name) => `${name} rises through`)], 0, redo);
    this.level = el("input", { type: "number", step: "any", value: "0", "aria-label": "level or period", onchange: redo });
    this.card.insertBefore(el("div", { className: "controls small" }, this.choices[0], this.choices[1], this.which, this.level), this.canvas);
    this.restyle();
  }
  pair() { return this.choices.map((c) => this.all[+c.value]); }
  when() {
    const kind = +this.which.value, level = +this.level.value;
    if (kind === 1) return data.events ? [...data.events.times] : [];
    if (kind === 2) return level > 0 ? Array.from({ length: Math.min(1e5, Math.floor((whole[1] - whole[0]) / level)) }, (_, k) => whole[0] + k * level) : [];
    return crossings(this.all[kind - 3], level, link.range);
  }
  curves() {
    if (!this.choices) return [];
    const [x, y] = this.pair(), path = this.which.value === "0", [a, b] = link.range;
    this.axes = [x.told, y.told];
    const t = path ? x.t.subarray(Math.max(before(x.t, a), 0), before(x.t, b) + 2) : this.when().filter((t) => t >= a && t <= b);
    const some = t.length > 40000 ? t.filter((_, i) => i % Math.ceil(t.length / 40000) === 0) : t, name = path ? "path" : `${some.length} points`;
    const values = (s) => (path && s === x && some === t ? x.y.subarray(Math.max(before(x.t, a), 0), before(x.t, b) + 2) : Array.from(some, (u) => valueAt(s, u)));
    return [{ name, x: values(x), y: values(y), t: some, line: path }];
  }
  state() { return [link.range, this.view, this.choices && [...this.choices, this.which, this.level].map((c) => c.value)]; }
  now(t) { return this.pair().map((s) => valueAt(s, t)); }
}

class Spectrum extends Plane {
  constructor(all, place) {
    super({ title: "spectrum of the shown range", all, scales: ["linear", "log"], axes: [unit ? "frequency [Hz]" : "frequency", "amplitude"] }, place);
    this.of = choice("of", all.map((s) => s.told), 0, () => { this.view = null; this.restyle(); this.draw(); });
    this.card.insertBefore(el("div", { className: "controls small" }, this.of), this.canvas);
    this.restyle();
  }
  curves() {
    const s = this.of && this.all[+this.of.value];
    return s ? [{ name: s.told, line: true, ...spectrum(s, link.range) }] : [];
  }
  state() { return [link.range, this.view, this.of && this.of.value]; }
}
