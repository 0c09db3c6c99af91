"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const by = (id) => document.getElementById(id);
const root = document.documentElement;
const MARGIN = { left: 62, right: 14, top: 10, bottom: 40 };
const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]]; // viridis
const NAMED = ["blue", "orange", "green", "red", "purple", "cyan"];
let chosen = data.first;

const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`);
const text = (x) => (x === null ? "NaN" : String(Number(x.toPrecision(6))));
const count = data.sizes.reduce((a, b) => a * b, 1);
const block = count / data.sizes[0]; // cells that have the first parameter in common
const many = data.axes.length === 1 && !data.groups && block > 1;

// The place of a cell along every dimension, and back; the last dimension varies fastest.
function place(cell) {
  const at = new Array(data.sizes.length);
  for (let d = data.sizes.length - 1; d >= 0; d--) { at[d] = cell % data.sizes[d]; cell = Math.floor(cell / data.sizes[d]); }
  return at;
}
const cellOf = (at) => at.reduce((cell, i, d) => cell * data.sizes[d] + i, 0);
const parameters = (cell) => { const at = place(cell); return data.parameters.map((p) => [p.name, p.values[at[p.dim]]]); };

function ramp(x) {
  const s = Math.min(Math.max(x, 0), 1) * (RAMP.length - 1), i = Math.min(Math.floor(s), RAMP.length - 2), f = s - i;
  return `rgb(${RAMP[i].map((a, k) => Math.round(a + f * (RAMP[i + 1][k] - a))).join(",")})`;
}

function range(values) {
  let low = Infinity, high = -Infinity;
  for (const x of values) if (x !== null) { if (x < low) low = x; if (x > high) high = x; }
  if (!(low <= high)) return [0, 1];
  return [low, high];
}
function padded([low, high]) {
  const pad = 0.04 * (high - low) || 0.5 * Math.abs(high) || 0.5;
  return [low - pad, high + pad];
}

// An axis: logarithmic where that makes positive numbers more even, else linear; cells reach half way to their neighbours.
function axis(values) {
  const known = [...new Set(values.filter((x) => x !== null))].map(Number).sort((a, b) => a - b);
  const gaps = (all) => all.slice(1).map((x, i) => x - all[i]), uneven = (all) => Math.max(...gaps(all)) / Math.min(...gaps(all));
  const logs = known.map(Math.log10), log = known.length > 2 && known[0] > 0 && uneven(known) > 3 && uneven(logs) < uneven(known);
  const at = log ? logs : known, n = at.length, mids = gaps(at).map((gap, i) => at[i] + gap / 2);
  const low = n > 1 ? 2 * at[0] - mids[0] : (at[0] ?? 0) - 0.5, high = n > 1 ? 2 * at[n - 1] - mids[n - 2] : (at[0] ?? 0) + 0.5;
  const borders = [low, ...mids, high], to = log ? Math.log10 : Number;
  return { log, to, ends: [low, high], cell: (x) => borders.slice(known.indexOf(Number(x)), known.indexOf(Number(x)) + 2) };
}

function steps(low, high) {
  const raw = (high - low) / 5, power = 10 ** Math.floor(Math.log10(raw));
  const size = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw), found = [];
  for (let k = Math.ceil(low / size); k * size <= high; k++) found.push(k * size);
  return found;
}
// Ticks of an axis, as numbers: of a logarithmic one powers of ten, or more where these are few.
function ticks(along) {
  if (!along.log) return steps(...along.ends);
  const [low, high] = along.ends, found = [];
  for (let k = Math.floor(low); k <= high; k++) for (const m of high - low > 2 ? [1] : [1, 2, 5]) found.push(m * 10 ** k);
  return found.filter((x) => Math.log10(x) >= low && Math.log10(x) <= high);
}

// One diagram: points over the first parameter, or a map over two.
class Diagram {
  constructor(spec) {
    this.spec = spec;
    const card = document.createElement("section");
    card.className = "card plot";
    const head = document.createElement("h2");
    this.map = data.axes.length === 2;
    head.textContent = this.map && spec.per > 1 ? `${spec.name}, the last` : spec.name;
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${spec.name} over ${data.axes.map((p) => p.name).join(" and ")}; arrow keys choose a cell`);
    this.legend = document.createElement("div");
    this.legend.className = "legend";
    card.append(head, this.canvas, this.legend);
    by("diagrams").append(card);
    this.canvas.addEventListener("click", (event) => choose(this.nearest(event.offsetX, event.offsetY)));
    this.canvas.addEventListener("keydown", moved);
    const x = data.axes[this.map ? 1 : 0], y = this.map ? data.axes[0] : null;
    this.x = axis(x.values);
    this.y = y ? axis(y.values) : { log: false, to: Number, ends: padded(range(spec.values)) };
    if (!y) this.x.ends = padded(range(x.values.map((value) => (value === null ? null : this.x.to(value)))));
    this.z = range(spec.values.filter((_, i) => (i + 1) % spec.per === 0));
  }
  scale() {
    const w = this.canvas.clientWidth, h = this.canvas.clientHeight, m = MARGIN;
    return {
      w, h,
      across: (x) => m.left + ((x - this.x.ends[0]) / (this.x.ends[1] - this.x.ends[0])) * (w - m.left - m.right),
      up: (y) => h - m.bottom - ((y - this.y.ends[0]) / (this.y.ends[1] - this.y.ends[0])) * (h - m.top - m.bottom),
      px(x) { return this.across(this.x.to(x)); },
      py(y) { return this.up(this.y.to(y)); },
      x: this.x, y: this.y,
    };
  }
  // Pixels of all samples of a cell.
  pixels(cell, s) {
    const at = place(cell);
    const x = data.axes[this.map ? 1 : 0], y = data.axes[0], own_x = x.values[at[x.dim]], own_y = y.values[at[y.dim]];
    if (own_x === null || own_y === null) return [];
    const px = s.px(own_x);
    if (this.map) return [[px, s.py(own_y)]];
    const own = this.spec.values.slice(cell * this.spec.per, (cell + 1) * this.spec.per);
    return own.filter((y) => y !== null).map((y) => [px, s.py(y)]);
  }
  nearest(x, y) {
    const s = this.scale();
    let best = chosen, least = Infinity;
    for (let cell = 0; cell < count; cell++) for (const [a, b] of this.pixels(cell, s)) {
      const away = (a - x) ** 2 + (b - y) ** 2;
      if (away < least) { least = away; best = cell; }
    }
    return best;
  }
  draw() {
    const s = this.scale(), ratio = window.devicePixelRatio || 1, g = this.canvas.getContext("2d"), m = MARGIN;
    this.canvas.width = s.w * ratio;
    this.canvas.height = s.h * ratio;
    g.scale(ratio, ratio);
    g.font = "12px system-ui, sans-serif";
    this.frame(g, s);
    if (this.map) this.cells(g, s); else this.points(g, s);
    g.strokeStyle = colour("red");
    g.lineWidth = 2;
    for (const [x, y] of this.pixels(chosen, s).slice(0, 400)) { g.beginPath(); g.arc(x, y, 5, 0, 7); g.stroke(); }
    if (!this.map) { const [x] = this.pixels(chosen, s)[0] || []; if (x) { g.globalAlpha = 0.4; g.fillStyle = colour("red"); g.fillRect(x - 0.5, m.top, 1, s.h - m.top - m.bottom); g.globalAlpha = 1; } }
  }
  frame(g, s) {
    const m = MARGIN, x = data.axes[this.map ? 1 : 0];
    g.strokeStyle = colour("line");
    g.fillStyle = colour("faint");
    g.textAlign = "center";
    for (const t of ticks(this.x)) { const p = s.px(t); g.beginPath(); g.moveTo(p, m.top); g.lineTo(p, s.h - m.bottom); g.stroke(); g.fillText(text(t), p, s.h - m.bottom + 16); }
    g.fillText(x.name, (m.left + s.w - m.right) / 2, s.h - 6);
    g.textAlign = "right";
    for (const t of ticks(this.y)) { const p = s.py(t); g.beginPath(); g.moveTo(m.left, p); g.lineTo(s.w - m.right, p); g.stroke(); g.fillText(text(t), m.left - 6, p + 4); }
    if (this.map) { g.save(); g.translate(12, (m.top + s.h - m.bottom) / 2); g.rotate(-Math.PI / 2); g.textAlign = "center"; g.fillText(data.axes[0].name, 0, 0); g.restore(); }
  }
  points(g, s) {
    const groups = data.groups;
    for (let cell = 0; cell < count; cell++) {
      const group = groups ? place(cell)[groups.dim] : Number(many && cell % block === chosen % block);
      g.fillStyle = colour(NAMED[group % NAMED.length]);
      const size = groups ? 3 - group : 2.4 * (1 + group);
      for (const [x, y] of this.pixels(cell, s)) g.fillRect(x - size / 2, y - size / 2, size, size);
    }
    if (groups) this.keys(groups.values.map((name, i) => [colour(NAMED[i % NAMED.length]), name]));
    if (many) this.keys([[colour(NAMED[1]), `like the chosen cell but for ${data.axes[0].name}`]]);
  }
  cells(g, s) {
    const [rows, columns] = data.axes, per = this.spec.per;
    const whole = this.spec.labels;
    for (let cell = 0; cell < count; cell++) {
      const value = this.spec.values[(cell + 1) * per - 1];
      if (value === null || (whole && value < 0)) continue;
      g.fillStyle = whole ? colour(NAMED[value % NAMED.length]) : ramp((value - this.z[0]) / (this.z[1] - this.z[0] || 1));
      const at = place(cell), x = columns.values[at[columns.dim]], y = rows.values[at[rows.dim]];
      if (x === null || y === null) continue;
      const [left, right] = this.x.cell(x).map(s.across), [bottom, top] = this.y.cell(y).map(s.up);
      g.fillRect(left - 0.3, top - 0.3, right - left + 0.6, bottom - top + 0.6);
    }
    const ends = [this.z[0], this.z[1]].map((z, i) => [ramp(i), text(z)]);
    this.keys(whole ? [...new Set(this.spec.values)].filter((k) => k >= 0).sort().slice(0, 6).map((k) => [colour(NAMED[k % NAMED.length]), String(k)]) : ends);
  }
  keys(pairs) {
    this.legend.replaceChildren(...pairs.map(([background, name]) => {
      const key = document.createElement("span"), bar = document.createElement("b");
      bar.style.background = background;
      key.append(bar, name);
      return key;
    }));
  }
}

function moved(event) {
  const axis = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowDown: [1, -1], ArrowUp: [1, 1] }[event.key];
  if (!axis) return;
  event.preventDefault();
  if (many && axis[0]) {
    const first = chosen - (chosen % block);
    choose(Math.min(Math.max(chosen + axis[1], first), first + block - 1));
    return;
  }
  const along = data.axes.length === 2 ? [data.axes[1], data.axes[0]][axis[0]] : axis[0] ? data.groups : data.axes[0];
  if (!along) return;
  const at = place(chosen);
  at[along.dim] = Math.min(Math.max(at[along.dim] + axis[1], 0), data.sizes[along.dim] - 1);
  choose(cellOf(at));
}

function rows(table, pairs) {
  const caption = table.querySelector("caption");
  table.replaceChildren(caption, ...pairs.map(([name, value]) => {
    const row = document.createElement("tr"), head = document.createElement("th"), cell = document.createElement("td");
    head.scope = "row";
    head.textContent = name;
    cell.textContent = value;
    row.append(head, cell);
    return row;
  }));
}

function snippet(cell) {
  const own = parameters(cell).filter(([name]) => name !== "direction");
  const written = (x) => (x === null ? 'float("nan")' : typeof x === "boolean" ? (x ? "True" : "False") : JSON.stringify(x));
  const named = own.map(([name, value]) => `${name}=${written(value)}`).join(", ");
  const given = data.given ? `${data.given}, ${named}` : named;
  const asked = {};
  if (data.ends) asked.t1 = data.ends[cell] ?? "...";
  if (data.steps) asked.h = data.steps[cell] ?? "...";
  const more = Object.entries(asked).map(([name, value]) => `, ${name}=${value}`).join("");
  const stepping = data.stepping ? `, stepping=${data.stepping}` : "";
  const start = data.groups ? "  # followed runs begin where the one before ended" : "";
  return `import carom\n\nsystem, state = ${data.build}(${given})${start}\nsol = carom.simulate(system, state, ${data.method}${more || ", t1=..."}${stepping})`;
}

function choose(cell) {
  chosen = cell;
  by("chosen").textContent = `${data.numbered ? `cell ${cell}: ` : ""}${parameters(cell).map(([name, value]) => `${name} = ${typeof value === "number" ? text(value) : value}`).join(", ")}`;
  const kept = data.diagrams.map((d) => {
    const own = d.values.slice(cell * d.per, (cell + 1) * d.per);
    return [d.name, own.slice(-8).map(text).join(", ") + (own.length > 8 ? ` (the last 8 of ${own.length})` : "")];
  });
  rows(by("numbers"), [["status", data.messages[cell] || "ran to its end"], ...kept]);
  by("snippet").textContent = snippet(cell);
  const run = data.runs[cell];
  if (run) {
    const frame = document.createElement("iframe");
    frame.title = `the run of cell ${cell}`;
    frame.srcdoc = run;
    by("run").replaceChildren(frame);
  } else by("run").replaceChildren();
  diagrams.forEach((d) => d.draw());
}

by("title").textContent = data.title;
by("summary").textContent = data.summary;
by("hint").textContent = data.hint;
rows(by("facts"), data.facts);
const failures = Object.entries(data.messages).slice(0, 200);
by("failed-card").hidden = !failures.length;
rows(by("failed"), failures.map(([cell, told]) => [parameters(Number(cell)).map(([name, value]) => `${name} = ${value}`).join(", "), told]));
by("copy").addEventListener("click", () => navigator.clipboard.writeText(by("snippet").textContent));
by("theme").addEventListener("click", () => { root.classList.toggle("dark"); diagrams.forEach((d) => d.draw()); });
if (window.matchMedia("(prefers-color-scheme: dark)").matches) root.classList.add("dark");
const diagrams = data.diagrams.map((spec) => new Diagram(spec));
window.addEventListener("resize", () => diagrams.forEach((d) => d.draw()));
choose(chosen);
