"use strict";
// The moving picture: shapes between two frames, seen by an eye that can be moved.
const eye = { zoom: 1, x: 0, y: 0, turn: -0.6, lift: 0.35, follow: false };
const scratch = new Map();

// Points of a shape at the current time, on straight lines between frames; what is held jumps.
function placed(shape, values, k, part) {
  const size = shape.n * shape.dim, here = Math.min(k, shape.frames - 1) * size, next = Math.min(k + 1, shape.frames - 1) * size;
  const key = values === shape.points ? size : -size;
  if (!scratch.has(key)) scratch.set(key, new Float64Array(size));
  const out = scratch.get(key);
  if (shape.held || part === 0) for (let i = 0; i < size; i++) out[i] = values[here + i];
  else for (let i = 0; i < size; i++) out[i] = values[here + i] + part * (values[next + i] - values[here + i]);
  return out;
}

const scene = {
  canvas: by("scene"),
  height() {
    const [left, bottom, right, top] = data.box, w = this.canvas.clientWidth;
    const wanted = data.in_space ? 430 : Math.min(Math.max((w * (top - bottom)) / (right - left), 150), 430);
    this.canvas.style.height = `${Math.round(Math.min(wanted, 0.6 * Math.max(innerHeight, 400)))}px`;
  },
  draw() {
    const k = Math.min(Math.max(before(times, link.time), 0), last), length = k < last ? times[k + 1] - times[k] : 1;
    this.k = k;
    this.part = Math.min(Math.max((link.time - times[k]) / length, 0), 1);
    const [g, w, h] = fitted(this.canvas);
    data.in_space ? space.draw(g, w, h, k, this.part) : this.flat(g, w, h);
    if (data.to_scale) this.ruler(g, h);
  },
  flat(g, w, h) {
    const [left, bottom, right, top] = data.box;
    this.scale = Math.min(w / (right - left), h / (top - bottom)) * eye.zoom;
    const [cx, cy] = eye.follow ? this.middle() : [(left + right) / 2, (bottom + top) / 2];
    this.ox = w / 2 - (cx + eye.x) * this.scale;
    this.oy = h / 2 + (cy + eye.y) * this.scale;
    for (const s of data.drawing) this[s.kind](g, s, this.onScreen(placed(s, s.points, this.k, this.part), s.n));
  },
  onScreen(points, n) {
    for (let i = 0; i < n; i++) { points[2 * i] = this.ox + points[2 * i] * this.scale; points[2 * i + 1] = this.oy - points[2 * i + 1] * this.scale; }
    return points;
  },
  // The middle of the first thing that moves.
  middle() {
    const s = data.drawing.find((shape) => shape.frames > 1 && shape.kind === "circles") || data.drawing.find((shape) => shape.frames > 1), p = placed(s, s.points, this.k, this.part);
    let x = 0, y = 0, n = 0;
    for (let i = 0; i < s.n; i++) if (!isNaN(p[2 * i])) { x += p[2 * i]; y += p[2 * i + 1]; n++; }
    return [x / n, y / n];
  },
  line(g, s, p) {
    g.strokeStyle = g.fillStyle = colour(s.colour);
    g.lineWidth = s.width;
    g.lineJoin = g.lineCap = "round";
    g.setLineDash(s.dashed ? [6, 6] : []);
    const path = s.frames === 1 && s.n === times.length; // the whole path faintly, the way so far over it
    if (path) g.globalAlpha = 0.5;
    this.polyline(g, p, s.n);
    if (s.fill) { g.globalAlpha = +colour("fill"); g.fill(); g.globalAlpha = 1; }
    g.stroke();
    g.globalAlpha = 1;
    if (path) { this.polyline(g, p, this.k + 1); g.stroke(); }
    g.setLineDash([]);
  },
  polyline(g, p, n) {
    g.beginPath();
    for (let i = 0, open = false; i < n; i++) {
      const here = !isNaN(p[2 * i]);
      if (here) open ? g.lineTo(p[2 * i], p[2 * i + 1]) : g.moveTo(p[2 * i], p[2 * i + 1]);
      open = here;
    }
  },
  circles(g, s, p) {
    const ink = colour(s.colour), from = s.n * Math.min(this.k, s.frames - 1), apart = s.shade || s.alpha;
    g.strokeStyle = g.fillStyle = ink;
    const ring = (i) => { const r = Math.max(s.radius[i] * this.scale, 1); g.moveTo(p[2 * i] + r, p[2 * i + 1]); g.arc(p[2 * i], p[2 * i + 1], r, 0, 2 * Math.PI); };
    const paint = (strength) => {
      g.lineWidth = s.fill && s.radius[0] * this.scale < 4 ? 0.5 : 1.5;
      if (s.fill) { g.globalAlpha = 0.85 * strength; g.fill(); }
      g.globalAlpha = strength;
      g.stroke();
      g.globalAlpha = 1;
    };
    if (!apart) { g.beginPath(); for (let i = 0; i < s.n; i++) ring(i); return paint(1); }
    const hot = colour("orange");
    for (let i = 0; i < s.n; i++) {
      const alpha = s.alpha ? s.alpha[from + i] : 1;
      if (!(alpha > 0.01)) continue;
      g.beginPath();
      ring(i);
      if (!s.shade) { paint(alpha); continue; }
      g.globalAlpha = 0.25; g.fill();
      g.fillStyle = hot; g.globalAlpha = Math.min(1, s.shade[from + i]); g.fill();
      g.fillStyle = ink; g.globalAlpha = 1; g.lineWidth = 1; g.stroke();
    }
  },
  arrows(g, s, p) {
    const tips = this.onScreen(placed(s, s.tips, this.k, this.part), s.n);
    for (let i = 0; i < s.n; i++) arrow(g, p[2 * i], p[2 * i + 1], tips[2 * i], tips[2 * i + 1], s);
  },
  spring(g, s, p) { coil(g, s, p[0], p[1], p[2], p[3]); },
  // A bar of round length.
  ruler(g, h) {
    const length = ticks(0, 130 / this.scale, 1.5).filter((v) => v > 0 && v * this.scale <= 130).pop();
    if (!length) return;
    g.strokeStyle = g.fillStyle = colour("faint");
    g.lineWidth = 1.5;
    g.beginPath(); g.moveTo(8, h - 12); g.lineTo(8, h - 8); g.lineTo(8 + length * this.scale, h - 8); g.lineTo(8 + length * this.scale, h - 12); g.stroke();
    g.font = "11px system-ui, sans-serif";
    g.textAlign = "left";
    g.fillText(`${label(length)} ${data.length_unit || ""}`, 12, h - 13);
  },
};
function arrow(g, ax, ay, bx, by_, s) {
  const length = Math.hypot(bx - ax, by_ - ay), head = Math.min(9, 0.5 * length);
  if (!(length > 2)) return;
  const ux = (bx - ax) / length, uy = (by_ - ay) / length, nx = bx - head * ux, ny = by_ - head * uy;
  g.strokeStyle = g.fillStyle = colour(s.colour);
  g.lineWidth = s.width;
  g.lineCap = "butt";
  g.beginPath(); g.moveTo(ax, ay); g.lineTo(nx, ny); g.stroke();
  g.beginPath(); g.moveTo(bx, by_); g.lineTo(nx - 0.45 * head * uy, ny + 0.45 * head * ux); g.lineTo(nx + 0.45 * head * uy, ny - 0.45 * head * ux); g.fill();
}
function coil(g, s, ax, ay, bx, by_) {
  const length = Math.hypot(bx - ax, by_ - ay) || 1, ux = (bx - ax) / length, uy = (by_ - ay) / length;
  const size = Math.min(9, length / 3 + 3), n = 2 * s.coils;
  g.strokeStyle = colour(s.colour);
  g.lineWidth = s.width;
  g.lineJoin = "round";
  g.beginPath();
  g.moveTo(ax, ay);
  for (let i = 1; i < n; i++) {
    const along = length * (0.12 + (0.76 * i) / n), across = i % 2 ? size : -size;
    g.lineTo(ax + ux * along - uy * across, ay + uy * along + ux * across);
  }
  g.lineTo(bx, by_);
  g.stroke();
}
