"use strict";
// The norms on a logarithmic axis, with the tolerance and the forecast.

class Chart {
  constructor() {
    this.points = []; // [iteration, norm]
    this.run = null;
    this.progress = null;
    this.at = null; // index of the point under the cursor
    this.canvas = byId("history");
    this.canvas.addEventListener("pointermove", (e) => this.hover(e.clientX - this.canvas.getBoundingClientRect().left));
    this.canvas.addEventListener("pointerleave", () => { this.at = null; this.draw(); });
    this.canvas.addEventListener("keydown", (e) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key], n = this.points.length;
      if (!by || !n) return;
      const far = by * (e.shiftKey ? Math.ceil(n / 20) : 1);
      this.at = Math.min(Math.max((this.at ?? n - 1) + far, 0), n - 1);
      this.draw();
      e.preventDefault();
    });
  }

  set(part) {
    Object.assign(this, part);
    this.draw();
  }

  // end returns the iteration at which the forecast ends, or 0.
  end() {
    const p = this.progress;
    return p && p.state === "running" && p.end > p.sweeps ? p.end : 0;
  }

  draw() {
    const box = this.canvas.parentElement, width = box.clientWidth - 28, height = 240;
    if (width < 40) return;
    const c = prepare(this.canvas, width, height);
    const list = this.points.filter((p) => p[1] > 0), goal = this.run ? this.run.tolerance : 0;
    const step = this.run ? this.run.step : "sweep";
    this.legend(goal);
    if (!list.length) {
      c.fillStyle = styleOf("--muted");
      c.fillText(this.progress && this.progress.state !== "ended" ? "No norm yet." : "No history.", 8, 20);
      this.box = null;
      return;
    }
    const last = list[list.length - 1], end = this.end();
    let lo = Infinity, hi = -Infinity;
    for (const [, norm] of list) { lo = Math.min(lo, norm); hi = Math.max(hi, norm); }
    if (goal > 0) { lo = Math.min(lo, goal); hi = Math.max(hi, goal); }
    const low = Math.floor(Math.log10(lo) - 0.02), high = Math.max(Math.ceil(Math.log10(hi) + 0.02), low + 1);
    const left = 48, top = 8, w = width - left - 8, h = height - top - 36;
    const xMax = Math.max(last[0], end, 1);
    const x = (i) => left + i / xMax * w, y = (v) => top + (high - Math.log10(v)) / (high - low) * h;
    this.box = { left, w, xMax };
    c.fillStyle = styleOf("--muted");
    c.textAlign = "right";
    c.textBaseline = "middle";
    const every = Math.max(1, Math.ceil((high - low) / 7));
    for (let e = low; e <= high; e += every) {
      c.fillStyle = styleOf("--line");
      c.fillRect(left, y(10 ** e), w, 1);
      c.fillStyle = styleOf("--muted");
      c.fillText(`1e${e}`, left - 7, y(10 ** e));
    }
    c.textAlign = "center";
    c.textBaseline = "top";
    const ticks = roundTicks(0, xMax, Math.max(2, Math.floor(w / 110))).filter((v) => Number.isInteger(v));
    for (const v of ticks) {
      const text = v >= 1e7 ? brief(v, 3) : count(v), half = c.measureText(text).width / 2;
      c.fillRect(x(v), top + h, 1, 4);
      c.fillText(text, Math.min(x(v), left + w - half), top + h + 7);
    }
    c.fillText(`${step}s`, left + w / 2, top + h + 22);
    const line = (colour, dash, points) => {
      c.strokeStyle = colour;
      c.lineWidth = 2;
      c.setLineDash(dash);
      c.beginPath();
      points.forEach(([px, py], i) => (i ? c.lineTo(px, py) : c.moveTo(px, py)));
      c.stroke();
      c.setLineDash([]);
    };
    if (goal > 0) line(styleOf("--goal"), [6, 5], [[left, y(goal)], [left + w, y(goal)]]);
    if (end && goal > 0 && last[1] > goal && end < this.progress.max) {
      line(styleOf("--muted"), [2, 4], [[x(last[0]), y(last[1])], [x(end), y(goal)]]);
    }
    line(styleOf("--curve"), [], list.map(([i, v]) => [x(i), y(v)]));
    c.fillStyle = styleOf("--curve");
    c.beginPath();
    c.arc(x(last[0]), y(last[1]), 3, 0, 7);
    c.fill();
    const at = this.at !== null && this.points[this.at];
    if (at && at[1] > 0) {
      c.strokeStyle = styleOf("--muted");
      c.lineWidth = 1;
      c.strokeRect(x(at[0]), top, 0.01, h);
      c.beginPath();
      c.arc(x(at[0]), y(at[1]), 4, 0, 7);
      c.fill();
    }
    const [i, norm] = at || last;
    const text = `${brief(norm, 6)} at ${step} ${count(i)}`;
    byId("norm-readout").replaceChildren(make("b", brief(norm, 6)), ` at ${step} ${count(i)}`);
    this.canvas.setAttribute("aria-label",
      `Norms on a logarithmic axis: ${text}${goal > 0 ? `, tolerance ${brief(goal, 3)}` : ""}`);
  }

  legend(goal) {
    const entries = [["norm", "norm"]];
    if (goal > 0) entries.push(["goal", `tolerance ${brief(goal, 3)}`]);
    if (this.end() && this.end() < this.progress.max) entries.push(["ahead", "forecast"]);
    byId("legend").replaceChildren(...entries.map(([name, text]) => {
      const e = make("span", "", name);
      e.append(document.createElement("i"), text);
      return e;
    }));
  }

  hover(px) {
    if (!this.box || !this.points.length) return;
    const i = (px - this.box.left) / this.box.w * this.box.xMax;
    let best = 0;
    this.points.forEach((p, k) => { if (Math.abs(p[0] - i) < Math.abs(this.points[best][0] - i)) best = k; });
    this.at = best;
    this.draw();
  }
}
