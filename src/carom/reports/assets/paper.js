"use strict";
// Plots on paper: a pen that takes what plots draw on a canvas and writes it as SVG; plots with their title and legend.
class Pen {
  constructor(w, h) {
    Object.assign(this, { w, h, parts: [], d: "", groups: [0], clips: 0, font: "", fillStyle: "", strokeStyle: "", lineWidth: 1, textAlign: "left", dash: [] });
    this.ruler = document.createElement("canvas").getContext("2d");
  }
  beginPath() { this.d = ""; }
  way(letter, ...numbers) { if (numbers.every(isFinite)) this.d += letter + numbers.map((x) => +x.toFixed(2)).join(" "); }
  moveTo(x, y) { this.way("M", x, y); }
  lineTo(x, y) { this.way("L", x, y); }
  rect(x, y, w, h) { this.moveTo(x, y); this.way("h", w); this.way("v", h); this.way("h", -w); this.d += "z"; }
  arc(x, y, r) { this.moveTo(x - r, y); for (const s of [1, -1]) this.way("a", r, r, 0, 1, 0, 2 * r * s, 0); }
  put(tag, attributes, text) {
    const safe = (x) => String(x).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
    const given = Object.entries(attributes).map(([name, value]) => ` ${name}="${safe(value)}"`).join("");
    this.parts.push(text === undefined ? `<${tag}${given}/>` : `<${tag}${given}>${safe(text)}</${tag}>`);
  }
  stroke() { if (this.d) this.put("path", { d: this.d, fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth, "stroke-dasharray": this.dash.join(" ") || "none" }); }
  fill() { if (this.d) this.put("path", { d: this.d, fill: this.fillStyle }); }
  fillRect(x, y, width, height) { if ([x, y, width, height].every(isFinite)) this.put("rect", { x, y, width, height, fill: this.fillStyle }); }
  fillText(text, x, y) { this.put("text", { x, y, fill: this.fillStyle, style: `font: ${this.font}`, "text-anchor": { left: "start", center: "middle", right: "end" }[this.textAlign] }, text); }
  measureText(text) { this.ruler.font = this.font; return this.ruler.measureText(text); }
  setLineDash(dash) { this.dash = dash; }
  drawImage(image, x, y, width, height) { this.put("image", { href: image.toDataURL(), x, y, width, height, preserveAspectRatio: "none", style: "image-rendering: pixelated" }); }
  group(attributes) { this.parts.push(`<g ${attributes}>`); this.groups[this.groups.length - 1]++; }
  translate(x, y) { this.group(`transform="translate(${x} ${y})"`); }
  clip() { const id = `part${this.clips++}`; this.parts.push(`<clipPath id="${id}"><path d="${this.d}"/></clipPath>`); this.group(`clip-path="url(#${id})"`); }
  save() { this.groups.push(0); }
  restore() { this.parts.push("</g>".repeat(this.groups.pop())); }
  text() {
    const space = el("div", { innerHTML: "<svg></svg>" }).firstChild.namespaceURI;
    return `<svg xmlns="${space}" width="${this.w}" height="${this.h}" viewBox="0 0 ${this.w} ${this.h}">${this.parts.join("")}</svg>`;
  }
}

const PAPER = { head: 28, row: 18, edge: 12 };
// Where the entries of a legend go, as many as fit into a row, and how many rows there are.
function legendPlaces(g, names, w) {
  let x = PAPER.edge, row = 0;
  const found = names.map((name) => {
    const wide = g.measureText(name).width + 36;
    if (x + wide > w && x > PAPER.edge) { x = PAPER.edge; row++; }
    x += wide;
    return [x - wide, row];
  });
  return [found, row + 1];
}
// A plot with its title and legend, drawn by the canvas or the pen that `make` returns for a size.
function onPaper(plot, make) {
  const w = plot.canvas.clientWidth, h = plot.canvas.clientHeight, shown = plot.entries.filter(([, name]) => !plot.hidden.has(name));
  const ruler = new Pen(w, h);
  ruler.font = "12px sans-serif";
  const [places, rows] = legendPlaces(ruler, shown.map(([, name]) => name), w), g = make(w, PAPER.head + h + rows * PAPER.row + 6);
  g.fillStyle = colour("card");
  g.fillRect(0, 0, w, PAPER.head + h + rows * PAPER.row + 6);
  g.fillStyle = colour("text");
  g.textAlign = "left";
  g.font = "600 14px sans-serif";
  g.fillText(plot.heading(), PAPER.edge, 19);
  g.save();
  g.translate(0, PAPER.head);
  plot.paintOn(g, w, h);
  g.restore();
  g.font = "12px sans-serif";
  g.textAlign = "left";
  shown.forEach(([ink, name], i) => {
    const [x, y] = [places[i][0], PAPER.head + h + places[i][1] * PAPER.row + 14];
    g.fillStyle = ink;
    g.fillRect(x, y - 6, 14, 3);
    g.fillStyle = colour("text");
    g.fillText(name, x + 20, y);
  });
  return g;
}
function asSvg(plot) { return "data:image/svg+xml;charset=utf-8," + encodeURIComponent(onPaper(plot, (w, h) => new Pen(w, h)).text()); }
function asPng(plot) {
  const canvas = el("canvas");
  onPaper(plot, (w, h) => {
    const ratio = Math.max(2, devicePixelRatio);
    Object.assign(canvas, { width: w * ratio, height: h * ratio });
    const g = canvas.getContext("2d");
    g.scale(ratio, ratio);
    return g;
  });
  return canvas.toDataURL();
}
