"use strict";
// The ranks, as a table and as stripes beside the picture.

const maxRows = 256; // of the table; more ranks than stripes are not drawn either

const columns = [
  ["Rank", (k) => String(k.rank), true],
  ["Host", (k) => k.host, true, "text"],
  ["Device", (k) => k.device, true, "text"],
  ["Rows", (k) => `${count(k.stripe[0])} – ${count(k.stripe[1] - 1)}`, true],
  ["Iterations", (k) => known(k.sweeps, count)],
  ["GLUP/s", (k) => known(k.glups, (v) => brief(v, 4))],
  ["Compute", (k) => known(k.compute, seconds)],
  ["Halo wait", (k) => known(k.halo_wait, seconds)],
  ["Norm wait", (k) => known(k.norm_wait, seconds)],
  ["Halos", (k) => known(k.bytes, bytesText)],
  ["Memory", (k) => known(k.memory, bytesText)],
  ["°C", (k) => known(k.temperature, (v) => v.toFixed(0))],
];

function known(v, text) { return v === null || v === undefined ? "" : text(v); }

class Ranks {
  constructor(field, pointer) {
    this.field = field;
    this.pointer = pointer;
    this.list = [];
    this.rows = [];
    this.shapes = "";
    this.here = -1;
    pointer.onRow = (row) => this.point(row);
    const draw = field.onDraw;
    field.onDraw = () => { draw(); this.stripes(); };
  }

  set(list) {
    this.list = list;
    byId("ranks-card").hidden = !list.length;
    byId("ranks-heading").textContent = list.length > maxRows ? `Ranks (the first ${maxRows} of ${list.length})` :
      "Ranks";
    this.table();
    this.stripes();
  }

  table() {
    const shown = this.list.slice(0, maxRows);
    const texts = shown.map((k) => columns.map(([, text]) => text(k)));
    const used = columns.map((c, i) => c[2] || texts.some((row) => row[i] !== ""));
    const step = this.field.run && this.field.run.step === "cycle" ? "Cycles" : "Sweeps";
    const key = used.join() + shown.length + step;
    if (this.shape !== key) { // the cells stay while only their texts change, so that a selection does too
      this.shape = key;
      const line = document.createElement("tr");
      columns.forEach(([name, , , kind], i) => {
        if (!used[i]) return;
        const head = make("th", name === "Iterations" ? step : name, kind);
        head.scope = "col";
        line.append(head);
      });
      const top = document.createElement("thead"), body = document.createElement("tbody");
      top.append(line);
      this.rows = shown.map(() => {
        const row = document.createElement("tr");
        columns.forEach(([, , , kind], i) => { if (used[i]) row.append(make("td", "", kind)); });
        body.append(row);
        return row;
      });
      byId("ranks").replaceChildren(top, body);
    }
    texts.forEach((row, r) => {
      row.filter((_, i) => used[i]).forEach((text, i) => {
        const cell = this.rows[r].cells[i];
        if (cell.textContent !== text) cell.textContent = text;
      });
    });
  }

  // stripes draws the part of each rank's stripe that the window shows.
  stripes() {
    const field = this.field, box = byId("stripes");
    if (!field.window || this.list.length > maxRows) { box.replaceChildren(); return; }
    const w = field.window, height = field.size[1];
    box.style.height = `${height}px`;
    const shapes = this.list.map((k) => {
      // The rows of the walls belong to the first and the last rank.
      const lo = k.stripe[0] <= 1 ? 0 : k.stripe[0];
      const hi = k.stripe[1] >= field.run.ny - 1 ? field.run.ny : k.stripe[1];
      const top = Math.max(lo, w.y0), bottom = Math.min(hi, w.y1);
      return { k, lo, hi, top: (top - w.y0) / (w.y1 - w.y0) * height, high: (bottom - top) / (w.y1 - w.y0) * height };
    }).filter((s) => s.high > 0);
    const key = shapes.map((s) => `${s.k.rank} ${s.top} ${s.high}`).join();
    if (key !== this.shapes) {
      this.shapes = key;
      box.replaceChildren(...shapes.map((s) => {
        const b = make("button", s.high >= 12 ? String(s.k.rank) : "", "stripe");
        b.style.top = `${s.top}px`;
        b.style.height = `${Math.max(1, s.high - 1)}px`;
        b.addEventListener("click", () => this.pointer.show(w.x0, w.x1, s.lo, s.hi));
        return b;
      }));
    }
    shapes.forEach((s, i) => { box.children[i].title = box.children[i].ariaLabel = describe(s.k); });
    this.mark();
  }

  // point marks the rank that owns a row, and names it; -1 is no row.
  point(row) {
    const ny = this.field.run.ny;
    this.here = row < 0 ? -1 : this.list.findIndex((k) => (k.stripe[0] <= row || k.stripe[0] <= 1) &&
      (row < k.stripe[1] || k.stripe[1] >= ny - 1));
    this.mark();
    return this.here < 0 ? "" : `, rank ${this.list[this.here].rank}`;
  }

  mark() {
    this.rows.forEach((row, i) => row.classList.toggle("here", i === this.here));
    const rank = this.here < 0 ? "" : String(this.list[this.here].rank);
    for (const b of byId("stripes").children) b.classList.toggle("here", rank !== "" && b.textContent === rank);
  }
}

// describe returns a rank in words.
function describe(k) {
  const words = [`Rank ${k.rank}`, `${k.host}, ${k.device}`, `rows ${k.stripe[0]} to ${k.stripe[1] - 1}`];
  if (k.sweeps !== null) words.push(`${count(k.sweeps)} done`);
  if (k.glups !== null) words.push(`${brief(k.glups, 4)} GLUP/s`);
  if (k.halo_wait !== null) words.push(`waited ${seconds(k.halo_wait)} for halos`);
  if (k.norm_wait !== null) words.push(`${seconds(k.norm_wait)} for norms`);
  if (k.temperature !== null) words.push(`${k.temperature.toFixed(0)} °C`);
  return words.join("\n");
}
