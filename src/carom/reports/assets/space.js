"use strict";
// Bodies in space, seen along parallel rays: what is farther from the eye is drawn first. z points upward.
const space = {
  draw(g, w, h, k, part) {
    const [x0, y0, z0, x1, y1, z1] = data.box, across = Math.hypot(x1 - x0, y1 - y0);
    scene.scale = Math.min(w / across, h / (z1 - z0 + 0.5 * across)) * eye.zoom; // fits from every side
    const [right, up, toward] = this.frame(), centre = [(x0 + x1) / 2, (y0 + y1) / 2, (z0 + z1) / 2];
    const dot = (a, x, y, z) => a[0] * x + a[1] * y + a[2] * z;
    this.project = (x, y, z) => {
      x -= centre[0]; y -= centre[1]; z -= centre[2];
      return [w / 2 + (dot(right, x, y, z) - eye.x) * scene.scale, h / 2 - (dot(up, x, y, z) - eye.y) * scene.scale, dot(toward, x, y, z)];
    };
    this.toward = toward;
    const items = [];
    for (const s of data.drawing) this[s.kind](items, s, k, part);
    items.sort((a, b) => a.depth - b.depth);
    for (const item of items) item.paint(g);
    this.compass(g, w, [right, up]);
  },
  // Directions to the right, upward and to the eye.
  frame() {
    const c = Math.cos(eye.turn), s = Math.sin(eye.turn), a = Math.sin(eye.lift), b = Math.cos(eye.lift);
    return [[c, s, 0], [-s * a, c * a, b], [s * b, -c * b, a]];
  },
  points(s, values, k, part) {
    const p = placed(s, values, k, part), found = [];
    for (let i = 0; i < s.n; i++) found.push(this.project(p[3 * i], p[3 * i + 1], p[3 * i + 2]));
    return found;
  },
  circles(items, s, k, part) {
    const from = s.n * Math.min(k, s.frames - 1), ink = colour(s.colour);
    this.points(s, s.points, k, part).forEach(([x, y, depth], i) => {
      const alpha = s.alpha ? s.alpha[from + i] : 1, r = Math.max(s.radius[i] * scene.scale, 1);
      if (!isNaN(x) && alpha > 0.01) items.push({ depth: depth + s.radius[i], paint: (g) => {
        g.globalAlpha = alpha;
        s.fill ? g.drawImage(ball(ink), x - r, y - r, 2 * r, 2 * r) : circle(g, x, y, r, ink);
        g.globalAlpha = 1;
      } });
    });
  },
  line(items, s, k, part) {
    const ink = colour(s.colour), p = this.points(s, s.points, k, part), path = s.frames === 1 && s.n === times.length;
    for (let i = 0; i + 1 < s.n; i++) {
      const [a, b] = [p[i], p[i + 1]];
      if (isNaN(a[0]) || isNaN(b[0])) continue;
      items.push({ depth: (a[2] + b[2]) / 2, paint: (g) => {
        g.globalAlpha = path && i > k ? 0.3 : 1;
        g.strokeStyle = ink; g.lineWidth = s.width; g.lineCap = "round"; g.setLineDash(s.dashed ? [6, 6] : []);
        g.beginPath(); g.moveTo(a[0], a[1]); g.lineTo(b[0], b[1]); g.stroke();
        g.setLineDash([]); g.globalAlpha = 1;
      } });
    }
  },
  spring(items, s, k, part) {
    const [a, b] = this.points(s, s.points, k, part);
    items.push({ depth: (a[2] + b[2]) / 2, paint: (g) => coil(g, s, a[0], a[1], b[0], b[1]) });
  },
  // Arrows lie over what they act on.
  arrows(items, s, k, part) {
    const p = this.points(s, s.points, k, part), tips = this.points(s, s.tips, k, part);
    p.forEach((a, i) => items.push({ depth: 1e300, paint: (g) => arrow(g, a[0], a[1], tips[i][0], tips[i][1], s) }));
  },
  solid(items, s, k, part) {
    const pose = this.pose(s, k, part), corners = [], ink = colour(s.colour);
    for (let i = 0; i < s.corners.length; i += 3) corners.push(turned(pose, s.corners[i], s.corners[i + 1], s.corners[i + 2]));
    const seen = corners.map((c) => this.project(...c));
    for (const face of s.faces) {
      const light = lit(corners, face, this.toward);
      if (light === null) continue;
      const depth = face.reduce((sum, i) => sum + seen[i][2], 0) / face.length;
      items.push({ depth, paint: (g) => {
        g.beginPath();
        for (const i of face) g.lineTo(seen[i][0], seen[i][1]);
        g.closePath();
        g.fillStyle = shaded(ink, light);
        g.strokeStyle = shaded(ink, 0.75 * light);
        g.lineWidth = 1; g.lineJoin = "round";
        g.fill(); g.stroke();
      } });
    }
  },
  // Position and quaternion between two frames; of q and -q the nearer one.
  pose(s, k, part) {
    const a = 7 * Math.min(k, s.frames - 1), b = 7 * Math.min(k + 1, s.frames - 1), p = s.poses, out = [];
    let along = 0;
    for (let i = 3; i < 7; i++) along += p[a + i] * p[b + i];
    for (let i = 0; i < 7; i++) out.push(p[a + i] + part * ((i > 2 && along < 0 ? -p[b + i] : p[b + i]) - p[a + i]));
    const length = Math.hypot(out[3], out[4], out[5], out[6]) || 1;
    return out.map((v, i) => (i < 3 ? v : v / length));
  },
  compass(g, w, [right, up]) {
    g.font = "11px system-ui, sans-serif";
    g.textAlign = "center";
    g.fillStyle = g.strokeStyle = colour("faint");
    g.lineWidth = 1.2;
    ["x", "y", "z"].forEach((name, i) => {
      const x = 24 * right[i], y = -24 * up[i];
      g.beginPath(); g.moveTo(w - 44, 44); g.lineTo(w - 44 + x, 44 + y); g.stroke();
      g.fillText(name, w - 44 + 1.4 * x, 48 + 1.4 * y);
    });
  },
};
function turned([px, py, pz, w, a, b, c], x, y, z) {
  const u = 2 * (b * z - c * y), v = 2 * (c * x - a * z), t = 2 * (a * y - b * x);
  return [px + x + w * u + b * t - c * v, py + y + w * v + c * u - a * t, pz + z + w * t + a * v - b * u];
}
// How bright a face is, or null if it looks away.
function lit(corners, face, toward) {
  const [a, b, c] = [corners[face[0]], corners[face[1]], corners[face[2]]];
  const u = b.map((v, i) => v - a[i]), v = c.map((x, i) => x - b[i]);
  const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]], size = Math.hypot(...n) || 1;
  const facing = (n[0] * toward[0] + n[1] * toward[1] + n[2] * toward[2]) / size;
  return facing <= 0 ? null : 0.62 + 0.28 * facing + 0.14 * Math.max(n[2] / size, 0);
}
// A colour made darker or brighter, in steps of a fortieth.
const shades = new Map();
function shaded(ink, light) {
  const step = Math.round(40 * light), key = ink + step;
  if (!shades.has(key)) {
    const parts = [1, 3, 5].map((i) => Math.round(Math.min(255, (parseInt(ink.slice(i, i + 2), 16) * step) / 40)));
    shades.set(key, `rgb(${parts.join(" ")})`);
  }
  return shades.get(key);
}
function circle(g, x, y, r, ink) { g.strokeStyle = ink; g.lineWidth = 1.5; g.beginPath(); g.arc(x, y, r, 0, 7); g.stroke(); }
// A ball of a colour, painted once.
const balls = new Map();
function ball(ink) {
  if (!balls.has(ink)) {
    const canvas = el("canvas", { width: 96, height: 96 }), g = canvas.getContext("2d"), glow = g.createRadialGradient(34, 30, 4, 48, 48, 48);
    glow.addColorStop(0, shaded(ink, 1.45)); glow.addColorStop(0.5, ink); glow.addColorStop(1, shaded(ink, 0.6));
    g.fillStyle = glow;
    g.beginPath(); g.arc(48, 48, 47.5, 0, 7); g.fill();
    balls.set(ink, canvas);
  }
  return balls.get(ink);
}
