"use strict";
// Play, keys, tables, and the address of what is shown.
const GROUPS = { planes: "planes", course: "course" };
const MAKERS = { lines: Lines, modes: Modes, image: Picture, points: Plane };
const plots = data.plots.map((p) => new MAKERS[p.kind](p, by(GROUPS[p.group] || "plots")));

// Phase portrait and spectrum of what moves.
const moving = plots.filter((p) => p.kind === "lines" && ["coordinates", "velocities"].includes(p.title));
const series = moving.flatMap((p) => p.series.map((s) => ({ ...s, told: `${p.title === "velocities" ? "velocity" : "coordinate"}: ${s.name}` })));
if (series.length && series[0].t.length > 3) plots.push(new Portrait(series, by("planes")), new Spectrum(series, by("planes")));
for (const id of ["planes", "course"]) by(`${id}-card`).hidden = !by(id).children.length;
link.views.push(scene);

let playing = false, clock = 0, told = 0;
function showAt(t) {
  link.time = Math.min(Math.max(t, whole[0]), whole[1]);
  by("scrub").value = link.time;
  by("scrub").setAttribute("aria-valuetext", `t = ${number(link.time)} ${unit}`);
  by("clock").textContent = `t = ${link.time.toPrecision(5)} ${unit}`;
  tellModes();
  link.draw();
  if (!playing || performance.now() - told > 150) tellValues();
}
function tellValues() { told = performance.now(); for (const p of plots) p.tell(); }
// Under the drawing: which contact is closed, sticks or slips now.
function tellModes() {
  const laws = plots.find((p) => p.kind === "modes");
  if (!laws) return;
  const now = laws.at(link.time).slice(0, 12), text = now.map(([name, mode]) => `${name} ${laws.words[mode]}`);
  if (by("modes").dataset.now === text.join()) return;
  by("modes").dataset.now = text.join();
  by("modes").replaceChildren(...now.map(([, mode], i) => {
    const dot = el("b");
    dot.style.background = colour(MODE_HUES[mode] || "red");
    return el("span", {}, dot, text[i]);
  }));
}

// Seconds of the run per second of the reader: the shown range in ten seconds, or as in reality.
function pace() {
  const chosen = by("speed").value;
  return chosen === "real" ? 1 : ((link.range[1] - link.range[0]) / 10) * chosen;
}
function tellPace() { by("pace").textContent = by("speed").value === "real" ? "" : `1 s shows ${number(pace(), 3)} ${unit || "of time"}`; }
function pause() {
  if (playing) remember();
  playing = false;
  by("play").textContent = "▶";
  by("play").setAttribute("aria-label", "play");
}
function play() {
  const [a, b] = link.range;
  if (link.time >= b || link.time < a) link.time = a;
  playing = true;
  clock = performance.now();
  by("play").textContent = "❚❚";
  by("play").setAttribute("aria-label", "pause");
  requestAnimationFrame(tick);
}
function tick(now) {
  if (!playing) return;
  const [a, b] = link.range, next = link.time + (Math.max(now - clock, 0) / 1000) * pace();
  clock = now;
  if (next >= b && !by("loop").checked) { showAt(b); pause(); tellValues(); return; }
  showAt(next >= b ? a : next);
  requestAnimationFrame(tick);
}
// The scrubber spans the shown range, with a mark for every event in it.
function ranged() {
  [by("scrub").min, by("scrub").max] = link.range;
  by("scrub").value = link.time;
  by("all").hidden = link.range[0] === whole[0] && link.range[1] === whole[1];
  tellPace();
  const [g, w, h] = fitted(by("marks")), [a, b] = link.range;
  g.fillStyle = colour("purple");
  if (data.events) for (const t of data.events.times) if (t >= a && t <= b) g.fillRect(8 + ((t - a) / (b - a)) * (w - 16) - 0.5, 0, 1.2, h);
}
function toEvent(way) {
  if (!data.events) return;
  const found = way > 0 ? data.events.times.find((t) => t > link.time) : data.events.times.findLast((t) => t < link.time);
  if (found !== undefined) { link.seek(found); if (found < link.range[0] || found > link.range[1]) link.pan(found - (link.range[0] + link.range[1]) / 2); }
}

// The address: #t=0.5&from=0.2&to=0.8, and the view of a drawing in space.
function remember() {
  const parts = { t: link.time };
  if (!by("all").hidden) [parts.from, parts.to] = link.range;
  if (data.in_space) parts.view = [eye.turn, eye.lift, eye.zoom].map((v) => v.toFixed(3));
  try { history.replaceState(null, "", "#" + Object.entries(parts).map(([k, v]) => `${k}=${v}`).join("&")); } catch { /* pages in frames without an address */ }
}
function recall() {
  const found = new URLSearchParams(location.hash.slice(1)), at = (name) => parseFloat(found.get(name));
  if (found.get("view")) [eye.turn, eye.lift, eye.zoom] = found.get("view").split(",").map(Number);
  if (isFinite(at("from")) && isFinite(at("to"))) link.window(at("from"), at("to"));
  showAt(isFinite(at("t")) ? at("t") : link.range[0]);
}

function table(place, rows, names) {
  const row = (cells, tag) => {
    const tr = place.insertRow();
    cells.forEach((cell, i) => tr.append(el(names || i ? tag : "th", names ? (tag === "th" ? { scope: "col" } : {}) : i ? {} : { scope: "row" }, cell)));
    return tr;
  };
  if (names) row(names, "th");
  rows.forEach((cells) => row(cells, "td"));
  return row;
}
by("title").textContent = data.title;
by("subtitle").textContent = data.subtitle;
by("caption").textContent = data.caption;
by("thinned").textContent = data.thinned || "";
table(by("evidence"), data.evidence);
table(by("provenance"), data.provenance);
const own = location.pathname.split("/").pop(); // empty inside a notebook
const embedded = /\.html?$/.test(own) ? [["this report in a page of yours", el("iframe", { src: own, title: data.title, width: "100%", height: "700" }).outerHTML]] : [];
for (const [name, text] of [...data.again, ...embedded]) {
  const code = el("pre", { textContent: text, tabIndex: 0 }), button = el("button", { type: "button", textContent: "copy", "aria-label": `copy ${name}` });
  button.addEventListener("click", () => {
    getSelection().selectAllChildren(code);
    button.textContent = document.execCommand("copy") ? "copied" : "copy: Ctrl-C";
  });
  by("again").append(el("h3", {}, name, button), code);
}
by("again-card").hidden = !by("again").childElementCount;
if (data.runs) {
  by("runs-card").hidden = false;
  table(by("runs"), data.runs.rows, data.runs.names);
}
if (data.events) {
  by("events-card").hidden = false;
  const goes = (row) => [el("button", { type: "button", className: "plain", textContent: row[0], onclick: () => { link.seek(+row[0]); by("stage").scrollIntoView({ block: "nearest" }); } }), ...row.slice(1)];
  const rows = data.events.rows.map((row, i) => goes([data.events.times[i], ...row.slice(1)]).map((cell, j) => (j ? cell : (cell.textContent = row[0], cell))));
  const row = table(by("events"), rows, data.events.names), more = data.events.count - data.events.rows.length;
  if (more > 0) row([`and ${more} more`], "td");
}

function theme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  palette.clear();
  balls.clear();
  delete by("modes").dataset.now;
  for (const p of plots) p.restyle();
  ranged();
  showAt(link.time);
}
by("scrub").addEventListener("input", () => link.seek(+by("scrub").value));
by("scrub").addEventListener("change", remember);
by("play").addEventListener("click", () => (playing ? pause() : play()));
by("theme").addEventListener("click", () => theme(!isDark()));
by("speed").addEventListener("change", tellPace);
by("all").addEventListener("click", () => link.window(...whole));
by("speed").querySelector("[value=real]").hidden = by("speed").querySelector("[value=real]").disabled = unit !== "s";
for (const id of ["planes", "course"]) by(`${id}-card`).addEventListener("toggle", () => link.draw());
addEventListener("pointerup", () => remember());
addEventListener("hashchange", recall);
addEventListener("resize", () => { scene.height(); ranged(); showAt(link.time); });
let wasDark = false;
addEventListener("beforeprint", () => { wasDark = isDark(); theme(false); });
addEventListener("afterprint", () => theme(wasDark));

const KEYS = {
  " ": () => (playing ? pause() : play()),
  ArrowLeft: (e) => link.seek(link.time - ((link.range[1] - link.range[0]) * (e.shiftKey ? 0.001 : 0.01))),
  ArrowRight: (e) => link.seek(link.time + ((link.range[1] - link.range[0]) * (e.shiftKey ? 0.001 : 0.01))),
  Home: () => link.seek(link.range[0]),
  End: () => link.seek(link.range[1]),
  n: () => toEvent(1),
  p: () => toEvent(-1),
  "+": () => link.zoom(link.time, 0.8),
  "-": () => link.zoom(link.time, 1.25),
  ",": () => link.pan(-0.1 * (link.range[1] - link.range[0])),
  ".": () => link.pan(0.1 * (link.range[1] - link.range[0])),
  0: () => link.window(...whole),
};
document.addEventListener("keydown", (e) => {
  const own = ["SELECT", "TEXTAREA"].includes(e.target.tagName) || (e.target.tagName === "INPUT" && e.target.type !== "range");
  if (own || e.ctrlKey || e.metaKey || e.altKey || !(e.key in KEYS) || ([" ", "Enter"].includes(e.key) && ["BUTTON", "SUMMARY", "INPUT"].includes(e.target.tagName))) return;
  e.preventDefault();
  KEYS[e.key](e);
  remember();
});

scene.height();
by("speed").value = "1";
theme(matchMedia("(prefers-color-scheme: dark)").matches);
recall();
