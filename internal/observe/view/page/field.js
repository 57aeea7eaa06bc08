"use strict";
// The heat map: what a frame holds, how values become colours, and the picture.

// Bar turns values into colours as internal/observe/output/colours.go does. shades holds 2 x 1024 colours of 3 bytes.
// map is "auto", "unsigned", "signed" or "grey".
class Bar {
  constructor(bar, shades, map) {
    Object.assign(this, bar);
    const signed = map === "signed" || map === "auto" && bar.diverging;
    this.table = map === "grey" ? Uint8Array.from({ length: 3072 }, (_, i) => Math.floor(i / 12)) :
      shades.subarray(signed ? 3072 : 0, signed ? 6144 : 3072);
    this.low = this.warp(bar.min);
    this.span = this.warp(bar.max) - this.low;
  }

  warp(v) {
    const half = v / 2 - this.centre / 2;
    if (this.scale === "sqrt") return Math.sign(half) * Math.sqrt(Math.abs(half));
    if (this.scale === "log") {
      let d = Math.abs(half) / (this.near / 2);
      if (d > 1) d = 1 + Math.log10(d);
      return Math.sign(half) * d;
    }
    return half;
  }

  at(v) { return Math.min(Math.max((this.warp(v) - this.low) / this.span, 0), 1); }

  // colour returns the place in table of the colour of v, or -1 for no number.
  colour(v) { return Number.isFinite(v) ? 3 * Math.round(this.at(v) * 1023) : -1; }
}

// Frame is a message with values of the field; see encode in frame.go.
class Frame {
  constructor(buffer) {
    const length = new DataView(buffer).getUint32(0, true);
    Object.assign(this, JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))));
    this.values = this.bytes === 4 ? new Float32Array(buffer, 4 + length) : new Float64Array(buffer, 4 + length);
  }

  column(i) { return this.x0 + spread(this.x1 - this.x0, this.cols, i); }

  row(i) { return this.y0 + spread(this.y1 - this.y0, this.rows, i); }

  value(i, j) { return this.values[j * this.cols + i]; }

  shows(w) { return this.x0 === w.x0 && this.x1 === w.x1 && this.y0 === w.y0 && this.y1 === w.y1; }
}

// spread is that of frame.go.
function spread(n, count, i) {
  return count === 1 ? 0 : Math.floor((2 * i * (n - 1) + count - 1) / (2 * (count - 1)));
}

const maxCells = 512; // columns and rows of a frame that a page asks for
const outside = 0xb4; // the grey of points that have no value, being outside the material
const maxAspect = 8; // of a picture to scale, as in internal/observe/output/scale.go

// Field shows a window of the mesh. ask(window) is called when it needs another frame.
class Field {
  constructor(shades, ask) {
    this.shades = shades;
    this.ask = ask;
    this.run = null;
    this.window = null; // x0, x1, y0, y1
    this.frame = null; // the newest one, perhaps of another window
    this.wholeBar = null; // of the newest frame of the whole field
    this.sameColours = true;
    this.map = "auto";
    this.contours = 0;
    this.size = [0, 0];
    this.painted = document.createElement("canvas");
  }

  setRun(run) {
    if (this.run && this.run.nx === run.nx && this.run.ny === run.ny) { this.run = run; return; }
    this.run = run;
    this.frame = this.wholeBar = null;
    this.window = this.wholeWindow();
    this.layOut();
    this.want(0);
  }

  wholeWindow() { return { x0: 0, x1: this.run.nx, y0: 0, y1: this.run.ny }; }

  isWhole() { return this.window.x1 - this.window.x0 === this.run.nx && this.window.y1 - this.window.y0 === this.run.ny; }

  setWindow(x0, x1, y0, y1) {
    this.window = { x0, x1, y0, y1 };
    this.layOut();
    this.want(0);
  }

  // want asks for a frame of the window that is newer than the one with the number after.
  want(after) {
    if (!this.run) return;
    const [width, height] = this.size, ratio = window.devicePixelRatio || 1, w = this.window;
    const cells = (points, pixels) => Math.max(1, Math.min(points, maxCells, Math.round(pixels * ratio)));
    this.ask({ ...w, cols: cells(w.x1 - w.x0, width), rows: cells(w.y1 - w.y0, height), after });
  }

  setFrame(frame) {
    if (!this.frame || frame.shows(this.window)) this.frame = frame;
    if (frame.x1 - frame.x0 === this.run.nx && frame.y1 - frame.y0 === this.run.ny) {
      this.wholeBar = frame.bar;
    }
    this.paint();
    this.want(frame.shows(this.window) ? frame.number : 0);
  }

  bar() {
    if (!this.frame) return null;
    return new Bar(this.sameColours && this.wholeBar || this.frame.bar, this.shades, this.map);
  }

  // layOut chooses the size of the picture for the room that there is.
  layOut() {
    if (!this.run) return;
    const stack = byId("stack"), w = this.window, hx = this.run.hx || 1, hy = this.run.hy || 1;
    const room = stack.clientWidth, axis = 24, most = Math.max(260, Math.min(620, window.innerHeight * 0.72));
    const natural = ((w.y1 - w.y0) * hy) / ((w.x1 - w.x0) * hx);
    const ratio = Math.min(Math.max(natural, 1 / maxAspect), maxAspect);
    this.stretch = ratio / natural; // of y against x
    const guess = Math.min(most, room * ratio);
    this.rowTicks = this.ticksOf(w.y0, w.y1, hy, guess / 70);
    this.left = 10 + widest(this.rowTicks.map(([, text]) => text), 24);
    const width = room - this.left - 1;
    const fit = Math.min(1, most / (width * ratio));
    this.size = [Math.max(40, Math.floor(width * fit)), Math.max(40, Math.floor(width * fit * ratio))];
    this.height = this.size[1] + axis;
    stack.style.height = `${this.height}px`;
    this.draw();
  }

  // paint makes the pixels of the frame.
  paint() {
    const f = this.frame, bar = this.bar();
    if (!f) return;
    this.painted.width = f.cols;
    this.painted.height = f.rows;
    const c = this.painted.getContext("2d"), image = c.createImageData(f.cols, f.rows), data = image.data;
    for (let i = 0; i < f.values.length; i++) {
      const at = bar.colour(f.values[i]);
      for (let k = 0; k < 3; k++) data[4 * i + k] = at < 0 ? outside : bar.table[at + k];
      data[4 * i + 3] = 255;
    }
    c.putImageData(image, 0, 0);
    this.draw();
  }

  draw() {
    if (!this.run) return;
    const [width, height] = this.size, room = this.left + width + 1;
    const c = prepare(byId("picture"), room, this.height);
    prepare(byId("overlay"), room, this.height);
    c.imageSmoothingEnabled = false;
    const f = this.frame, w = this.window;
    if (f) {
      const sx = width / (w.x1 - w.x0), sy = height / (w.y1 - w.y0);
      c.save();
      c.beginPath();
      c.rect(this.left, 0, width, height);
      c.clip();
      c.drawImage(this.painted, this.left + (f.x0 - w.x0) * sx, (f.y0 - w.y0) * sy, (f.x1 - f.x0) * sx,
        (f.y1 - f.y0) * sy);
      if (this.contours) {
        c.translate(this.left + (f.x0 - w.x0) * sx, (f.y0 - w.y0) * sy);
        drawContours(c, f, this.bar(), this.contours, (f.x1 - f.x0) * sx / f.cols, (f.y1 - f.y0) * sy / f.rows);
        c.translate(-this.left - (f.x0 - w.x0) * sx, -(f.y0 - w.y0) * sy);
      }
      if (this.run.outlines) {
        const path = new Path2D(), x = (v) => this.left + (v + 0.5 - w.x0) * sx, y = (v) => (v + 0.5 - w.y0) * sy;
        for (const [x0, y0, x1, y1] of this.run.outlines) {
          path.moveTo(x(x0), y(y0));
          path.lineTo(x(x1), y(y1));
        }
        haloed(c, path);
      }
      c.restore();
    }
    this.axes(c, width, height);
    this.drawBar(height);
    this.onDraw?.();
  }

  axes(c, width, height) {
    const w = this.window, hx = this.run.hx || 1, hy = this.run.hy || 1;
    c.strokeStyle = styleOf("--line");
    c.strokeRect(this.left + 0.5, 0.5, width - 1, height - 1);
    c.fillStyle = styleOf("--muted");
    c.strokeStyle = styleOf("--muted");
    const place = (v, from, to, h, pixels) => (v / h - from + 0.5) / (to - from) * pixels;
    c.textAlign = "center";
    c.textBaseline = "top";
    for (const [v, text] of this.ticksOf(w.x0, w.x1, hx, width / 90)) {
      const at = place(v, w.x0, w.x1, hx, width), half = c.measureText(text).width / 2;
      c.fillRect(this.left + at, height, 1, 4);
      c.fillText(text, Math.min(Math.max(this.left + at, half), this.left + width - half), height + 7);
    }
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (const [v, text] of this.rowTicks) {
      const at = place(v, w.y0, w.y1, hy, height);
      c.fillRect(this.left - 4, at, 4, 1);
      c.fillText(text, this.left - 7, Math.min(Math.max(at, 6), height - 6));
    }
  }

  // ticksOf returns about n ticks for the points [from, to) of a side with the spacing h.
  ticksOf(from, to, h, n) {
    return to - from < 2 ? [] : ticks(from * h, (to - 1) * h, Math.max(2, Math.floor(n)));
  }

  drawBar(height) {
    const bar = this.bar(), thick = 14;
    const wide = widest(bar ? bar.ticks.map((t) => t.label) : [], 34) + thick + 9;
    const c = prepare(byId("scale"), wide, height + 8);
    if (!bar) return;
    for (let y = 0; y < height; y++) {
      const at = 3 * Math.round((1 - y / (height - 1)) * 1023);
      c.fillStyle = `rgb(${bar.table[at]},${bar.table[at + 1]},${bar.table[at + 2]})`;
      c.fillRect(0, y, thick, 1.5);
    }
    c.fillStyle = styleOf("--muted");
    c.textBaseline = "middle";
    let last = Infinity;
    for (const t of bar.ticks) {
      const y = (1 - bar.at(t.value)) * (height - 1);
      if (last - y < 12) continue; // no room for its label
      last = y;
      c.fillRect(thick, y, 4, 1);
      c.fillText(t.label, thick + 7, Math.min(Math.max(y, 6), height - 2));
    }
    const after = `after ${count(this.frame.sweeps)} ${this.run.step || "sweep"}s`;
    const parts = [after, bar.caption, this.stretch > 1.05 ? `not to scale: y stretched ${brief(this.stretch, 3)} times` :
      this.stretch < 0.95 ? `not to scale: x stretched ${brief(1 / this.stretch, 3)} times` : ""];
    byId("caption").textContent = parts.filter((part) => part).join(" · ");
  }
}
