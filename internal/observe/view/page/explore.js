"use strict";
// What helps to read a field: contours, a profile along a line, and the picture as a file.

// drawContours draws n lines, whose levels divide the range of a frame on its scale equally. A cell has the size dx, dy.
function drawContours(c, f, bar, n, dx, dy) {
  let low = Infinity, high = -Infinity;
  const at = Float64Array.from(f.values, (v) => Number.isFinite(v) ? bar.at(v) : NaN);
  for (const v of at) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  if (!(high > low)) return;
  const path = new Path2D(), slack = 1e-9;
  const part = (v) => Math.min(n, Math.floor((v - low) / (high - low) * (n + 1) + slack));
  for (let j = 0; j + 1 < f.rows; j++) {
    for (let i = 0; i + 1 < f.cols; i++) {
      const k = j * f.cols + i, v = [at[k], at[k + 1], at[k + f.cols + 1], at[k + f.cols]]; // clockwise
      const parts = v.map(part), first = Math.min(...parts), last = Math.max(...parts);
      for (let p = first + 1; p <= last; p++) { // not with a NaN
        const level = low + (high - low) * p / (n + 1), ends = [];
        for (let e = 0; e < 4; e++) { // the sides that the line crosses
          const g = (e + 1) % 4;
          if ((parts[e] < p) === (parts[g] < p)) continue;
          const t = Math.min(1, Math.max(0, (level - v[e]) / (v[g] - v[e])));
          const x = [0, 1, 1, 0], y = [0, 0, 1, 1];
          ends.push([(i + 0.5 + x[e] + (x[g] - x[e]) * t) * dx, (j + 0.5 + y[e] + (y[g] - y[e]) * t) * dy]);
        }
        for (let e = 0; e + 1 < ends.length; e += 2) {
          path.moveTo(...ends[e]);
          path.lineTo(...ends[e + 1]);
        }
      }
    }
  }
  haloed(c, path);
}

// haloed strokes a path in black with a white halo, which can be seen on every colour.
function haloed(c, path) {
  c.lineCap = "square"; // the lines of an outline meet at their ends
  for (const [colour, width] of [["#ffffffb0", 2.5], ["#000000", 1]]) {
    c.strokeStyle = colour;
    c.lineWidth = width;
    c.stroke(path);
  }
}

// Profile shows the values along a line, which is kept in points of the mesh. changed is called when it moves.
class Profile {
  constructor(field, changed) {
    this.field = field;
    this.on = false; // a drag draws the line
    this.line = null; // [x, y] of both ends
    byId("line").addEventListener("click", (e) => {
      this.on = !this.on;
      e.currentTarget.setAttribute("aria-pressed", String(this.on));
      byId("profile-box").hidden = !this.on;
      if (this.on && !this.line && field.window) this.set([0, 0.5], [1, 0.5]);
      this.draw();
      changed();
    });
  }

  // set takes the ends of the line in the picture, from 0 to 1 along both sides.
  set(from, to) {
    const w = this.field.window;
    const point = ([x, y]) => [Math.min(Math.max(w.x0 + x * (w.x1 - w.x0) - 0.5, w.x0), w.x1 - 1),
      Math.min(Math.max(w.y0 + y * (w.y1 - w.y0) - 0.5, w.y0), w.y1 - 1)];
    this.line = [point(from), point(to)];
    this.draw();
  }

  // mark draws the line on the picture, or the one that is being drawn.
  mark(c, drag) {
    const f = this.field, [width, height] = f.size, w = f.window;
    if (!this.on || !drag && !this.line) return;
    const ends = drag || this.line.map(([x, y]) => [(x + 0.5 - w.x0) / (w.x1 - w.x0), (y + 0.5 - w.y0) / (w.y1 - w.y0)]);
    const path = new Path2D();
    path.moveTo(f.left + ends[0][0] * width, ends[0][1] * height);
    path.lineTo(f.left + ends[1][0] * width, ends[1][1] * height);
    c.save();
    c.beginPath();
    c.rect(f.left, 0, width, height);
    c.clip();
    haloed(c, path);
    c.restore();
  }

  // values returns pairs of the distance from the first end and the value there, between points of the frame: NaN
  // outside it.
  values(n = 400) {
    const f = this.field.frame, { hx, hy } = this.spacing(), [[x0, y0], [x1, y1]] = this.line;
    const cell = (v, lo, hi, count) => hi - lo > 1 ? (v - lo) / (hi - 1 - lo) * (count - 1) : 0;
    const value = (x, y) => {
      const i = cell(x, f.x0, f.x1, f.cols), j = cell(y, f.y0, f.y1, f.rows);
      if (!(i > -1e-9 && i < f.cols - 1 + 1e-9 && j > -1e-9 && j < f.rows - 1 + 1e-9)) return NaN;
      const a = Math.max(0, Math.min(Math.floor(i), f.cols - 2)), b = Math.max(0, Math.min(Math.floor(j), f.rows - 2));
      const mix = (p, q, t) => t < 1e-9 ? p : t > 1 - 1e-9 ? q : p + (q - p) * t;
      const next = Math.min(a + 1, f.cols - 1), below = Math.min(b + 1, f.rows - 1);
      return mix(mix(f.value(a, b), f.value(next, b), i - a), mix(f.value(a, below), f.value(next, below), i - a), j - b);
    };
    const length = Math.hypot((x1 - x0) * hx, (y1 - y0) * hy);
    return Array.from({ length: n + 1 }, (_, k) => {
      const t = k / n;
      return [t * length, value(x0 + (x1 - x0) * t, y0 + (y1 - y0) * t)];
    });
  }

  spacing() {
    const run = this.field.run;
    return { hx: run.hx || 1, hy: run.hy || 1 };
  }

  draw() {
    if (!this.on || !this.line || !this.field.frame) return;
    const canvas = byId("profile"), width = canvas.parentElement.clientWidth, height = 170;
    const c = prepare(canvas, width, height), points = this.values(), { hx, hy } = this.spacing();
    const known = points.map(([, v]) => v).filter(Number.isFinite);
    let low = Math.min(...known), high = Math.max(...known);
    if (!(high > low)) [low, high] = [low - (Math.abs(low) || 1) / 2, low + (Math.abs(low) || 1) / 2];
    const levels = known.length ? ticks(low, high, 4) : [];
    const left = 10 + widest(levels.map(([, text]) => text), 24);
    const right = width - 8, top = 8, bottom = height - 22, length = points.at(-1)[0];
    const x = (d) => left + (right - left) * d / (length || 1), y = (v) => bottom - (bottom - top) * (v - low) / (high - low);
    c.fillStyle = styleOf("--muted");
    c.strokeStyle = styleOf("--line");
    c.strokeRect(left + 0.5, top + 0.5, right - left - 1, bottom - top - 1);
    c.textAlign = "center";
    c.textBaseline = "top";
    if (length > 0) for (const [d, text] of ticks(0, length, Math.max(2, (right - left) / 110))) {
      c.fillRect(x(d), bottom, 1, 4);
      c.fillText(text, Math.min(x(d), width - c.measureText(text).width / 2), bottom + 7);
    }
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (const [v, text] of levels) {
      c.fillRect(left - 4, y(v), 4, 1);
      c.fillText(text, left - 7, y(v));
    }
    c.strokeStyle = styleOf("--curve");
    c.lineWidth = 1.5;
    c.beginPath();
    let pen = false;
    for (const [d, v] of points) {
      if (pen && Number.isFinite(v)) c.lineTo(x(d), y(v));
      else if (Number.isFinite(v)) c.moveTo(x(d), y(v));
      pen = Number.isFinite(v);
    }
    c.stroke();
    const end = ([px, py]) => `(${brief(px * hx, 5)}, ${brief(py * hy, 5)})`;
    byId("profile-text").textContent = `from ${end(this.line[0])} to ${end(this.line[1])}, length ${brief(length, 5)}`;
  }
}

// savePicture has the browser save the picture, its colour bar and its title as a PNG file.
function savePicture(field) {
  const { run } = field, picture = byId("picture"), scale = byId("scale"), ratio = window.devicePixelRatio || 1;
  const gap = Math.round(12 * ratio), head = Math.round(44 * ratio), canvas = document.createElement("canvas");
  canvas.width = picture.width + scale.width + 3 * gap;
  canvas.height = head + Math.max(picture.height, scale.height) + gap;
  const c = canvas.getContext("2d"), face = getComputedStyle(document.body).fontFamily;
  c.fillStyle = styleOf("--card");
  c.fillRect(0, 0, canvas.width, canvas.height);
  c.fillStyle = styleOf("--ink");
  c.font = `600 ${15 * ratio}px ${face}`;
  c.fillText(run.title, gap, 20 * ratio, canvas.width - 2 * gap);
  c.fillStyle = styleOf("--muted");
  c.font = `${12 * ratio}px ${face}`;
  c.fillText(byId("caption").textContent, gap, 38 * ratio, canvas.width - 2 * gap);
  c.drawImage(picture, gap, head);
  c.drawImage(scale, 2 * gap + picture.width, head);
  const link = document.createElement("a");
  link.download = "field.png";
  link.href = canvas.toDataURL("image/png");
  link.click();
}
