"use strict";
// The cursor on the heat map, by mouse, touch and keys, and the zoom.

class Pointer {
  constructor(field) {
    this.field = field;
    this.at = null; // cell of the frame
    this.from = null; // where a drag began, in pixels of the picture
    this.to = null;
    this.canvas = byId("overlay");
    this.profile = new Profile(field, () => this.draw());
    const c = this.canvas;
    c.addEventListener("pointermove", (e) => this.move(e));
    c.addEventListener("pointerdown", (e) => this.down(e));
    c.addEventListener("pointerup", (e) => this.up(e));
    c.addEventListener("pointercancel", () => { this.from = this.to = null; this.draw(); });
    c.addEventListener("pointerleave", () => { if (!this.from) { this.at = null; this.draw(); } });
    c.addEventListener("dblclick", () => this.whole());
    c.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.metaKey) return; // the page scrolls
      e.preventDefault();
      this.zoom(e.deltaY < 0 ? 0.5 : 2);
    }, { passive: false });
    c.addEventListener("keydown", (e) => this.key(e));
    byId("closer").addEventListener("click", () => this.zoom(0.5));
    byId("farther").addEventListener("click", () => this.zoom(2));
    byId("whole").addEventListener("click", () => this.whole());
    byId("keep").addEventListener("click", (e) => {
      field.sameColours = !field.sameColours;
      e.currentTarget.setAttribute("aria-pressed", String(field.sameColours));
      field.paint();
    });
    byId("contours").addEventListener("click", (e) => {
      field.contours = field.contours ? 0 : 12;
      e.currentTarget.setAttribute("aria-pressed", String(field.contours > 0));
      field.draw();
    });
    byId("map").addEventListener("change", (e) => { field.map = e.currentTarget.value; field.paint(); });
    byId("save").addEventListener("click", () => savePicture(field));
    field.onDraw = () => { this.draw(); this.profile.draw(); };
  }

  // place returns where an event is in the picture, from 0 to 1 along both sides.
  place(e) {
    const box = this.canvas.getBoundingClientRect(), [width, height] = this.field.size;
    const part = (v, n) => Math.min(Math.max(v / n, 0), 1);
    return [part(e.clientX - box.left - this.field.left, width), part(e.clientY - box.top, height)];
  }

  cell([x, y]) {
    const f = this.field.frame;
    if (!f || !f.shows(this.field.window)) return null;
    return [Math.min(Math.floor(x * f.cols), f.cols - 1), Math.min(Math.floor(y * f.rows), f.rows - 1)];
  }

  move(e) {
    const place = this.place(e);
    if (this.from) this.to = place;
    this.at = this.cell(place);
    this.draw();
  }

  down(e) {
    if (e.button !== 0) return;
    this.at = this.cell(this.place(e));
    if (e.pointerType !== "touch") {
      this.from = this.place(e);
      this.canvas.setPointerCapture(e.pointerId);
    }
    this.draw();
  }

  up(e) {
    const from = this.from, to = this.place(e), [width, height] = this.field.size;
    this.from = this.to = null;
    if (from && this.profile.on) {
      if (Math.hypot((to[0] - from[0]) * width, (to[1] - from[1]) * height) > 6) this.profile.set(from, to);
    } else if (from && Math.abs(to[0] - from[0]) * width > 6 && Math.abs(to[1] - from[1]) * height > 6) {
      const w = this.field.window, nx = w.x1 - w.x0, ny = w.y1 - w.y0;
      this.show(w.x0 + Math.min(from[0], to[0]) * nx, w.x0 + Math.max(from[0], to[0]) * nx,
        w.y0 + Math.min(from[1], to[1]) * ny, w.y0 + Math.max(from[1], to[1]) * ny);
    }
    this.draw();
  }

  key(e) {
    const f = this.field.frame, step = e.shiftKey ? 10 : 1;
    const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[e.key];
    if (by && f) {
      this.shift(by, f);
    } else if (e.key === "+" || e.key === "=") {
      this.zoom(0.5);
    } else if (e.key === "-") {
      this.zoom(2);
    } else if (e.key === "0" || e.key === "Escape") {
      this.whole();
    } else {
      return;
    }
    e.preventDefault();
  }

  // shift moves the cursor; at the edge of the picture it moves the window.
  shift([dx, dy], f) {
    const at = this.at || [Math.floor(f.cols / 2), Math.floor(f.rows / 2)], w = this.field.window;
    const to = [at[0] + dx, at[1] + dy];
    const over = to[0] < 0 || to[0] >= f.cols || to[1] < 0 || to[1] >= f.rows;
    this.at = [Math.min(Math.max(to[0], 0), f.cols - 1), Math.min(Math.max(to[1], 0), f.rows - 1)];
    if (over && !this.field.isWhole()) {
      const mx = Math.sign(dx) * (w.x1 - w.x0) / 4, my = Math.sign(dy) * (w.y1 - w.y0) / 4;
      this.show(w.x0 + mx, w.x1 + mx, w.y0 + my, w.y1 + my);
    }
    this.draw();
  }

  // zoom multiplies the sides of the window, around the cursor.
  zoom(by) {
    const w = this.field.window, f = this.field.frame;
    if (!w) return;
    const nx = w.x1 - w.x0, ny = w.y1 - w.y0;
    const part = this.at && f ? [(this.at[0] + 0.5) / f.cols, (this.at[1] + 0.5) / f.rows] : [0.5, 0.5];
    const x = w.x0 + part[0] * nx, y = w.y0 + part[1] * ny;
    this.show(x - part[0] * nx * by, x + (1 - part[0]) * nx * by, y - part[1] * ny * by, y + (1 - part[1]) * ny * by);
  }

  whole() {
    const run = this.field.run;
    if (run) this.show(0, run.nx, 0, run.ny);
  }

  // show shows a window, moved and widened so that it has 8 points a side at least and lies in the mesh.
  show(x0, x1, y0, y1) {
    const side = (from, to, n) => {
      const size = Math.min(Math.max(Math.round(to - from), Math.min(8, n)), n);
      const lo = Math.min(Math.max(Math.round((from + to - size) / 2), 0), n - size);
      return [lo, lo + size];
    };
    const { nx, ny } = this.field.run;
    this.field.setWindow(...side(x0, x1, nx), ...side(y0, y1, ny));
  }

  draw() {
    const field = this.field, f = field.frame;
    if (!field.run || !field.window) return;
    const [width, height] = field.size;
    byId("whole").disabled = byId("farther").disabled = field.isWhole();
    byId("closer").disabled = Math.max(field.window.x1 - field.window.x0, field.window.y1 - field.window.y0) <= 8;
    const c = prepare(this.canvas, field.left + width + 1, field.height);
    this.profile.mark(c, this.from && this.to ? [this.from, this.to] : null);
    if (this.from && this.to && !this.profile.on) {
      c.strokeStyle = "#ffffff";
      c.lineWidth = 3;
      const box = [field.left + this.from[0] * width, this.from[1] * height, (this.to[0] - this.from[0]) * width,
        (this.to[1] - this.from[1]) * height];
      c.strokeRect(...box);
      c.strokeStyle = "#000000";
      c.lineWidth = 1;
      c.strokeRect(...box);
    }
    const shown = f && f.shows(field.window);
    if (shown && this.at) {
      this.at = [Math.min(this.at[0], f.cols - 1), Math.min(this.at[1], f.rows - 1)];
      const x = field.left + (this.at[0] + 0.5) / f.cols * width, y = (this.at[1] + 0.5) / f.rows * height;
      for (const [colour, line] of [["#ffffffb0", 3], ["#000000", 1]]) {
        c.strokeStyle = colour;
        c.lineWidth = line;
        c.beginPath();
        c.moveTo(x - 9, y);
        c.lineTo(x + 9, y);
        c.moveTo(x, y - 9);
        c.lineTo(x, y + 9);
        c.stroke();
      }
    }
    this.read(shown ? f : null);
  }

  // read writes the value at the cursor.
  read(f) {
    const out = byId("readout"), run = this.field.run;
    if (run.no_field && !this.field.frame) { out.textContent = `There is no picture: ${run.no_field}`; return; }
    if (!f || !this.at) {
      out.textContent = f ? `Point at the picture for values; drag to ${this.profile.on ? "draw a line" : "zoom"}.` : "Waiting for the field …";
      this.onRow?.(-1);
      return;
    }
    const ix = f.column(this.at[0]), iy = f.row(this.at[1]), v = f.value(...this.at);
    const where = run.hx ? `x ${brief(ix * run.hx, 6)}  y ${brief(iy * run.hy, 6)}  ` : "";
    const rank = this.onRow ? this.onRow(iy) : "";
    out.replaceChildren(make("b", Number.isNaN(v) ? "outside the material" : shortest(v, f.bytes)), ` at ${where}(column ${ix}, row ${iy}${rank})`);
    out.dataset.column = ix;
    out.dataset.row = iy;
    out.dataset.value = shortest(v, f.bytes);
  }
}
