"use strict";
// The connection to the program, and what is not a picture.

const token = new URLSearchParams(location.search).get("token");

class App {
  constructor(shades) {
    this.field = new Field(shades, (want) => { this.want = want; this.send(); });
    this.pointer = new Pointer(this.field);
    this.ranks = new Ranks(this.field, this.pointer);
    this.chart = new Chart();
    this.run = this.progress = this.socket = this.want = null;
    this.tries = 0;
    const size = new ResizeObserver(() => this.layOut());
    size.observe(byId("stack"));
    size.observe(byId("history").parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.layOut());
    document.addEventListener("visibilitychange", () => this.awake());
    this.awake();
  }

  over() { return this.progress && (this.progress.state === "ended" || this.progress.state === "failed"); }

  // awake holds a connection while the page can be seen: the ranks give no frames that nobody sees.
  awake() {
    if (document.hidden) {
      this.socket?.close();
    } else if (!this.socket) {
      this.connect();
    }
  }

  connect() {
    const s = new WebSocket(`ws://${location.host}/socket?token=${encodeURIComponent(token)}`);
    s.binaryType = "arraybuffer";
    this.socket = s;
    s.addEventListener("open", () => {
      this.tries = 0;
      this.lost = false;
      this.status();
      if (this.want) this.send({ ...this.want, after: 0 });
    });
    s.addEventListener("message", (e) => this.receive(e.data));
    s.addEventListener("close", () => {
      this.socket = null;
      if (document.hidden || this.over()) return;
      this.lost = true;
      this.status();
      setTimeout(() => this.awake(), Math.min(10000, 500 * 2 ** this.tries++));
    });
  }

  send(want = this.want) {
    if (this.socket && this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(want));
  }

  receive(data) {
    if (typeof data !== "string") {
      const frame = new Frame(data);
      requestAnimationFrame(() => this.field.setFrame(frame));
      return;
    }
    const { topic, data: state } = JSON.parse(data);
    switch (topic) {
      case "run": this.setRun(state); break;
      case "progress": this.progress = state; this.chart.set({ progress: state }); this.status(); break;
      case "history": this.chart.set({ points: state.points }); break;
      case "ranks": this.ranks.set(state); break;
      case "warnings": this.warn(state); break;
      case "fault": byId("readout").textContent = state; break;
    }
  }

  setRun(run) {
    this.run = run;
    document.title = `${run.title} – jacobi`;
    byId("title").textContent = run.title;
    const words = [`${count(run.nx)} × ${count(run.ny)} points`, run.dtype];
    if (run.method) words.push(run.method);
    if (run.id) words.push(`run ${run.id.slice(0, 8)}`);
    byId("subtitle").textContent = words.join(" · ");
    this.field.setRun(run);
    this.chart.set({ run });
    this.ranks.set(this.ranks.list); // its heads say what an iteration is
    this.status();
    this.facts();
  }

  warn(list) {
    const box = byId("warnings");
    box.hidden = !list || !list.length;
    box.firstElementChild.replaceChildren(...(list || []).map((text) => make("li", text)));
  }

  // status writes the state of the run and its figures.
  status() {
    const p = this.progress, badge = byId("state");
    if (this.lost && !this.over()) {
      badge.className = "state lost";
      badge.textContent = "no connection";
      return;
    }
    if (!p) return;
    badge.className = `state ${p.state === "ended" ? (p.good ? "good" : "other") : p.state}`;
    badge.textContent = p.state === "ended" && p.good ? "converged" : p.state;
    byId("message").hidden = !p.text;
    byId("message").textContent = p.text;
    const done = byId("bar");
    done.hidden = !p.share || this.over();
    done.setAttribute("aria-valuenow", String(Math.round(100 * p.share)));
    byId("done").style.width = `${100 * p.share}%`;
    const step = this.run && this.run.step === "cycle" ? "Cycles" : "Sweeps", tiles = [];
    if (p.norm !== null || p.sweeps) {
      const of = p.state === "running" && p.end ? ` of ${p.end < this.run?.max ? "about " : ""}${count(p.end)}` : "";
      tiles.push([step, count(p.sweeps) + of], ["Norm", brief(p.norm, 5)], ["Speed", `${brief(p.glups, 4)} GLUP/s`],
        ["Time", seconds(p.elapsed)]);
      if (p.left > 0 && p.state === "running") tiles.push(["Left", seconds(p.left)]);
    }
    pairs(byId("tiles"), tiles);
    this.facts();
  }

  facts() {
    const lines = this.over() && this.progress.results ? this.progress.results : (this.run && this.run.facts) || [];
    byId("facts-heading").textContent = this.over() ? "Result" : "Run";
    byId("facts-card").hidden = !lines.length;
    pairs(byId("facts"), lines);
  }

  layOut() {
    this.field.layOut();
    this.chart.draw();
  }
}

fetch(`shades?token=${encodeURIComponent(token)}`)
  .then((answer) => answer.arrayBuffer())
  .then((shades) => { window.app = new App(new Uint8Array(shades)); });
