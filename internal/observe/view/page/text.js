"use strict";
// Numbers and elements.

// shortest returns the shortest decimal that stands for v among the values of its type, of 4 or 8 bytes.
function shortest(v, bytes) {
  if (bytes === 4 && Number.isFinite(v)) {
    for (let digits = 6; digits < 9; digits++) {
      const near = Number(v.toPrecision(digits));
      if (Math.fround(near) === v) return String(near);
    }
    return String(Number(v.toPrecision(9)));
  }
  return String(v);
}

// brief returns v with few digits.
function brief(v, digits = 4) {
  if (v === null || v === undefined || !Number.isFinite(v)) return "–";
  if (v === 0) return "0";
  const size = Math.abs(v);
  return size >= 1e5 || size < 1e-3 ? v.toExponential(digits - 1) : String(Number(v.toPrecision(digits)));
}

const whole = new Intl.NumberFormat("en");

function count(n) { return whole.format(n); }

function seconds(s) {
  if (s < 1) return `${brief(s, 3)} s`;
  if (s < 60) return `${s.toFixed(1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${String(Math.floor(s % 60)).padStart(2, "0")}s`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)}h${String(Math.floor(s % 3600 / 60)).padStart(2, "0")}m`;
  return `${Math.round(s / 86400)} days`;
}

function bytesText(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${brief(n, 3)} ${units[i]}`;
}

const byId = (id) => document.getElementById(id);

// make returns an element with a class and a text.
function make(tag, text = "", className = "") {
  const e = document.createElement(tag);
  e.textContent = text;
  if (className) e.className = className;
  return e;
}

// pairs fills a list of definitions with names and texts. It keeps what is the same, so that a selection stays.
function pairs(list, lines) {
  const key = JSON.stringify(lines);
  if (list.dataset.lines === key) return;
  list.dataset.lines = key;
  list.replaceChildren(...lines.map(([name, text]) => {
    const group = document.createElement("div");
    group.append(make("dt", name), make("dd", text));
    return group;
  }));
}

// styleOf returns a colour of the style sheet.
function styleOf(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

// prepare gives a canvas its size in CSS pixels, and returns its context, in CSS pixels too.
function prepare(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const c = canvas.getContext("2d");
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, width, height);
  c.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return c;
}

// widest returns the width of the widest of these texts, and least at least.
function widest(texts, least) {
  const c = document.createElement("canvas").getContext("2d");
  c.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return Math.ceil(Math.max(least, ...texts.map((text) => c.measureText(text).width)));
}

// roundTicks returns round values from lo to hi, about n of them.
function roundTicks(lo, hi, n) {
  const raw = (hi - lo) / n, unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= raw * (1 - 1e-9));
  const list = [];
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi + step * 1e-9; i++) list.push(i * step + 0); // no -0
  return list;
}

// ticks returns roundTicks with labels of equal precision, as [value, label]: what tells one from the next, after an
// exponent where values are large or small.
function ticks(lo, hi, n) {
  const decade = (v) => Math.floor(Math.log10(v) + 1e-9), largest = Math.max(Math.abs(lo), Math.abs(hi));
  const list = roundTicks(lo, hi, n), step = list.length > 1 ? list[1] - list[0] : largest;
  const short = largest >= 1e6 || largest < 1e-3;
  const digits = Math.min(Math.max((short ? decade(largest) : 0) - decade(step), 0), 15);
  return list.map((v) => [v, v === 0 ? "0" : short ? v.toExponential(digits) : v.toFixed(digits)]);
}
