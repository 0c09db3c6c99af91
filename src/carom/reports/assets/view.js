"use strict";
// The eye of the moving picture: drag to move (or to turn bodies in space), pinch or wheel to come nearer.
{
  const c = scene.canvas, held = new Map();
  const redraw = () => { scene.draw(); by("fit").hidden = eye.zoom === 1 && !eye.x && !eye.y && !eye.follow; };
  const nearer = (factor) => { eye.zoom = Math.min(Math.max(eye.zoom * factor, 0.2), 1e4); redraw(); };
  c.addEventListener("pointerdown", (e) => { c.setPointerCapture(e.pointerId); held.set(e.pointerId, [e.offsetX, e.offsetY]); });
  c.addEventListener("pointermove", (e) => {
    if (!held.has(e.pointerId)) return;
    const [x, y] = held.get(e.pointerId), other = [...held].find(([id]) => id !== e.pointerId);
    held.set(e.pointerId, [e.offsetX, e.offsetY]);
    const dx = e.offsetX - x, dy = e.offsetY - y;
    if (other) {
      const far = (px, py) => Math.max(Math.hypot(px - other[1][0], py - other[1][1]), 1);
      return nearer(far(e.offsetX, e.offsetY) / far(x, y));
    }
    if (data.in_space && !e.shiftKey) {
      eye.turn -= dx / 150;
      eye.lift = Math.min(Math.max(eye.lift + dy / 150, -1.57), 1.57);
    } else { eye.x -= dx / scene.scale; eye.y += dy / scene.scale; }
    redraw();
  });
  for (const name of ["pointerup", "pointercancel"]) c.addEventListener(name, (e) => held.delete(e.pointerId));
  c.addEventListener("wheel", (e) => {
    if (!e.ctrlKey && document.activeElement !== c) return;
    e.preventDefault();
    nearer(e.deltaY > 0 ? 0.85 : 1.18);
  }, { passive: false });
  const reset = () => { Object.assign(eye, { zoom: 1, x: 0, y: 0, follow: false }); by("follow").checked = false; redraw(); };
  c.addEventListener("dblclick", reset);
  by("fit").addEventListener("click", reset);
  by("nearer").addEventListener("click", () => nearer(1.25));
  by("farther").addEventListener("click", () => nearer(0.8));
  by("follow").addEventListener("change", () => { eye.follow = by("follow").checked; redraw(); });
  by("follow").parentElement.hidden = data.in_space || !data.drawing.some((s) => s.frames > 1);
  c.addEventListener("keydown", (e) => {
    const way = { ArrowLeft: [0.1, 0], ArrowRight: [-0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[e.key];
    if (!way || !data.in_space) return;
    e.preventDefault();
    e.stopPropagation();
    eye.turn += way[0];
    eye.lift = Math.min(Math.max(eye.lift + way[1], -1.57), 1.57);
    redraw();
  });
  redraw();
}
