"use strict";
// Modes of contact laws as strips over time, and many numbers over place and time as a picture.
class Modes extends Plot {
  margin(g) { return Math.max(54, ...this.names.map((name) => Math.min(g.measureText(name).width + 12, 150))); }
  paint(g, area) {
    const row = (area.bottom - area.top) / this.strips.length;
    g.textAlign = "right";
    this.names.forEach((name, i) => g.fillText(name, area.left - 6, area.top + (i + 0.5) * row + 4, 140));
    this.clip(g);
    this.strips.forEach((strip, i) => strip.forEach(([from, to, mode]) => {
      g.fillStyle = colour(MODE_HUES[mode] || "red");
      g.fillRect(this.x(from), area.top + i * row + 0.14 * row, Math.max(this.x(to) - this.x(from), 0.5), 0.72 * row);
    }));
  }
  // What each law does at a time: pairs of its name and its mode.
  at(t) {
    return this.strips.map((strip, i) => [this.names[i], (strip.find(([, to]) => t < to) || strip[strip.length - 1])[2]]);
  }
  restyle() {
    const there = new Set(this.strips.flat().map((s) => String(s[2])));
    this.key(Object.keys(MODE_HUES).filter((mode) => there.has(mode)).map((mode) => [colour(MODE_HUES[mode]), this.words[mode], false]));
    this.painted = "";
  }
  described() { return `${this.title}: ${this.names.join(", ")}`; }
  csv() {
    const rows = this.strips.flatMap((strip, i) => strip.map(([from, to, mode]) => `"${this.names[i]}",${from},${to},${this.words[mode]}`));
    return ["law,from,to,mode", ...rows].join("\n");
  }
}

class Picture extends Plot {
  exports() { return super.exports().slice(0, 2); }
  paint(g, area) {
    if (!this.bitmap || this.bitmapDark !== isDark()) this.fill();
    g.textAlign = "right";
    g.fillText("1", area.left - 6, area.bottom);
    g.fillText(String(this.of), area.left - 6, area.top + 10);
    this.clip(g);
    g.imageSmoothingEnabled = false;
    g.drawImage(this.bitmap, this.x(this.span[0]), area.top, this.x(this.span[1]) - this.x(this.span[0]), area.bottom - area.top);
  }
  fill() {
    this.bitmapDark = isDark();
    this.bitmap = el("canvas", { width: this.columns, height: this.rows });
    const g = this.bitmap.getContext("2d"), image = g.createImageData(this.columns, this.rows);
    const zero = this.bitmapDark ? [22, 27, 34] : [255, 255, 255], ends = [colour("orange"), colour("blue")].map((ink) => [1, 3, 5].map((i) => parseInt(ink.slice(i, i + 2), 16)));
    for (let r = 0; r < this.rows; r++) for (let c = 0; c < this.columns; c++) {
      const value = (this.pixels[r * this.columns + c] - 127) / 127, end = ends[value < 0 ? 0 : 1];
      const part = Math.sqrt(Math.abs(value)), k = 4 * ((this.rows - 1 - r) * this.columns + c);
      for (let j = 0; j < 3; j++) image.data[k + j] = zero[j] + part * (end[j] - zero[j]);
      image.data[k + 3] = 255;
    }
    g.putImageData(image, 0, 0);
  }
  place(py) { const { top, bottom } = this.area; return 1 + ((bottom - py) / (bottom - top)) * (this.of - 1); }
  // A ruler drawn with Alt: places per time along it.
  cursor(g) {
    super.cursor(g);
    if (!this.rule) return;
    const [[ax, ay], [bx, by_]] = this.rule, speed = (this.place(by_) - this.place(ay)) / (this.timeAt(bx) - this.timeAt(ax));
    g.strokeStyle = g.fillStyle = colour("ink");
    g.lineWidth = 1.5;
    g.beginPath(); g.moveTo(ax, ay); g.lineTo(bx, by_); g.stroke();
    g.font = "12px system-ui, sans-serif";
    g.textAlign = bx > this.area.right - 120 ? "right" : "left";
    if (isFinite(speed)) g.fillText(`${number(speed, 4)} places per ${unit || "time"}`, bx + (g.textAlign === "left" ? 6 : -6), by_ - 4);
  }
  tell() {
    const here = this.values[this.reading];
    if (!here) return;
    if (!this.pointer || link.hover === null) { here.textContent = ""; return; }
    const place = Math.round(this.place(this.pointer[1])), row = Math.round(((place - 1) / Math.max(this.of - 1, 1)) * (this.rows - 1));
    const column = Math.round(((link.hover - this.span[0]) / (this.span[1] - this.span[0])) * (this.columns - 1));
    const inside = row >= 0 && row < this.rows && column >= 0 && column < this.columns;
    here.textContent = inside ? `place ${place}: ${number(((this.pixels[row * this.columns + column] - 127) / 127) * this.limit, 2)}` : "";
  }
  restyle() {
    this.reading = `down to ${number(-this.limit, 3)}`;
    this.key([[colour("blue"), `up to ${number(this.limit, 3)}`, false], [colour("orange"), this.reading, false]]);
    this.painted = "";
  }
  described() { return `${this.title}: ${this.of} places, values between ${number(-this.limit, 3)} and ${number(this.limit, 3)}`; }
}
