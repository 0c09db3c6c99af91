"use strict";
// The animation and everything around it.
const data = JSON.parse(document.getElementById("data").textContent);
const by = (id) => document.getElementById(id);
const times = doublesOf(data.times), last = times.length - 1;
for (const shape of data.drawing) {
  shape.points = floatsOf(shape.points);
  if (shape.radius) shape.radius = floatsOf(shape.radius);
  if (shape.shade) shape.shade = floatsOf(shape.shade);
}

const scene = {
  draw(frame) {
    const [g, w, h] = fitted(by("scene"));
    const [left, bottom, right, top] = data.box;
    const scale = Math.min(w / (right - left), h / (top - bottom));
    const x = (v) => w / 2 + (v - (left + right) / 2) * scale, y = (v) => h / 2 - (v - (bottom + top) / 2) * scale;
    for (const s of data.drawing) {
      const start = 2 * s.n * Math.min(frame, s.frames - 1);
      this[s.kind](g, s, (i) => [x(s.points[start + 2 * i]), y(s.points[start + 2 * i + 1])], scale, Math.min(frame, s.frames - 1));
    }
  },
  line(g, s, at) {
    g.strokeStyle = g.fillStyle = colour(s.colour);
    g.lineWidth = s.width;
    g.lineJoin = g.lineCap = "round";
    g.setLineDash(s.dashed ? [6, 6] : []);
    g.beginPath();
    let open = false;
    for (let i = 0; i < s.n; i++) {
      const [px, py] = at(i);
      if (isNaN(px)) { open = false; continue; }
      open ? g.lineTo(px, py) : g.moveTo(px, py);
      open = true;
    }
    if (s.fill) { g.globalAlpha = +colour("fill"); g.fill(); g.globalAlpha = 1; }
    g.stroke();
    g.setLineDash([]);
  },
  circles(g, s, at, scale, frame) {
    const ink = colour(s.colour), hot = colour("orange");
    for (let i = 0; i < s.n; i++) {
      const [px, py] = at(i);
      g.beginPath();
      g.arc(px, py, Math.max(s.radius[i] * scale, 1), 0, 2 * Math.PI);
      g.strokeStyle = ink;
      g.lineWidth = s.fill && s.radius[i] * scale < 4 ? 0.5 : 1.5;
      if (s.fill) {
        g.fillStyle = ink;
        g.globalAlpha = s.shade ? 0.25 : 0.85;
        g.fill();
        if (s.shade) { g.fillStyle = hot; g.globalAlpha = Math.min(1, s.shade[frame * s.n + i]); g.fill(); }
        g.globalAlpha = 1;
      }
      g.stroke();
    }
  },
  spring(g, s, at) {
    const [[ax, ay], [bx, by_]] = [at(0), at(1)], length = Math.hypot(bx - ax, by_ - ay) || 1;
    const ux = (bx - ax) / length, uy = (by_ - ay) / length, size = Math.min(9, length / 3 + 3), n = 2 * s.coils;
    g.strokeStyle = colour(s.colour);
    g.lineWidth = s.width;
    g.beginPath();
    g.moveTo(ax, ay);
    for (let i = 1; i < n; i++) {
      const along = length * (0.12 + (0.76 * i) / n), across = i % 2 ? size : -size;
      g.lineTo(ax + ux * along - uy * across, ay + uy * along + ux * across);
    }
    g.lineTo(bx, by_);
    g.stroke();
  },
};

const link = {
  range: [times[0], times[last]],
  time: times[0],
  dark: () => document.documentElement.classList.contains("dark"),
  seek(t) { pause(); show(last * (t - times[0]) / (times[last] - times[0] || 1)); },
  zoom(t, factor) {
    const [a, b] = this.range, low = t - (t - a) * factor, high = t + (b - t) * factor;
    if (high - low < 1e-11 * Math.max(Math.abs(a), Math.abs(b))) return;
    this.range = factor === Infinity || high - low >= times[last] - times[0] ? [times[0], times[last]]
      : [Math.max(low, times[0]), Math.min(high, times[last])];
    plots.forEach((p) => p.draw());
  },
};
const plots = data.plots.map((p) => new Plot(p, by("plots"), link));

let position = 0, playing = false, before = 0;
function show(frame) {
  position = Math.min(Math.max(frame, 0), last);
  const whole = Math.round(position);
  link.time = times[whole];
  by("scrub").value = whole;
  by("clock").textContent = `t = ${link.time.toPrecision(4)} ${data.time_unit || ""}`;
  tellModes();
  scene.draw(whole);
  plots.forEach((p) => p.draw());
}
// Under the drawing: which contact is closed, sticks or slips now.
function tellModes() {
  const laws = plots.find((p) => p.kind === "modes");
  if (!laws) return;
  by("modes").replaceChildren(...laws.at(link.time).slice(0, 12).map(([name, mode]) => {
    const span = document.createElement("span"), dot = document.createElement("b");
    dot.style.background = colour(MODE_HUES[mode] || "red");
    span.append(dot, `${name} ${laws.words[mode]}`);
    return span;
  }));
}
function pause() { playing = false; by("play").textContent = "▶"; }
function play() {
  if (position >= last) position = 0;
  playing = true;
  before = performance.now();
  by("play").textContent = "❚❚";
  requestAnimationFrame(tick);
}
function tick(now) {
  if (!playing) return;
  // the whole run takes ten seconds at speed 1
  position += ((now - before) / 10000) * last * by("speed").value;
  before = now;
  show(position);
  position >= last ? pause() : requestAnimationFrame(tick);
}

function table(place, rows, names) {
  const row = (cells, tag) => {
    const tr = place.insertRow();
    for (const cell of cells) { const td = document.createElement(tag); td.textContent = cell; tr.append(td); }
    return tr;
  };
  if (names) row(names, "th");
  rows.forEach((cells) => row(cells, "td"));
  return row;
}
by("title").textContent = data.title;
by("subtitle").textContent = data.subtitle;
by("caption").textContent = data.caption;
table(by("evidence"), data.evidence);
table(by("provenance"), data.provenance);
for (const [name, text] of data.again) {
  const head = document.createElement("h3"), button = document.createElement("button"), code = document.createElement("pre");
  head.textContent = name;
  button.textContent = "copy";
  code.textContent = text;
  button.addEventListener("click", () => {
    getSelection().selectAllChildren(code);
    button.textContent = document.execCommand("copy") ? "copied" : "copy: Ctrl-C";
  });
  head.append(button);
  by("again").append(head, code);
}
if (data.events) {
  by("events-card").hidden = false;
  const row = table(by("events"), data.events.rows, data.events.names), more = data.events.count - data.events.rows.length;
  if (more > 0) row([`and ${more} more`], "td");
}

function theme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  plots.forEach((p) => p.key());
  show(position);
}
by("scrub").max = last;
by("scrub").addEventListener("input", () => { pause(); show(+by("scrub").value); });
by("play").addEventListener("click", () => (playing ? pause() : play()));
by("theme").addEventListener("click", () => theme(!link.dark()));
window.addEventListener("resize", () => show(position));
document.addEventListener("keydown", (e) => {
  if (e.target.tagName === "SELECT") return;
  if (e.key === " " && e.target.tagName !== "BUTTON") { e.preventDefault(); playing ? pause() : play(); }
});
theme(window.matchMedia("(prefers-color-scheme: dark)").matches);
