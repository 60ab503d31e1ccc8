// Outbox: keeps decisions in the browser until the server has answered, and sends them in order. Each counts once.
//
// An entry is removed when the server accepts it, or refuses it (then the page is notified). Without an answer, or after a
// server error, it is sent again. A rerun stays until it has ended, because repeating the request returns its state.
// Each store has its own outbox: several projects may use one address, and the ids of their items are the same.

import { boot, call, fresh, storage } from "../frame/dom.js";

export const BOX = `assay.outbox.3.${boot.store}.`;
const WAITS_MS = [500, 1000, 2000, 4000, 8000, 15000];
const RERUN_LOOK_MS = 1200;
const AT_ONCE = 20;
const SLOW_MS = 5000; // a notice appears after this time without an answer
const PATIENCE_MS = 45_000; // the store waits 30 s for another process's lock
const AGAIN = new Set([0, 401, 403, 408, 421, 425, 429]);

let last = 0;

/** Entries shared by all tabs, in order of time. Each has its own key, so that tabs never overwrite each other's entries. */
export class Shelf {
  constructor(start) {
    this.start = start;
  }

  all() {
    return storage.keys(this.start).map((at) => ({ ...storage.get(at), at })).filter((one) => one.id);
  }

  add(one) {
    last = Math.max(last + 1, Date.now() * 1000);
    storage.set(`${this.start}${last}.${one.key}`, one);
  }
}

export class Outbox {
  /** Calls `onResult(entry, result)` for each result, `onState({unsent, trouble})` on every change, `onElsewhere(before)` if another tab made it. */
  constructor(heard) {
    Object.assign(this, heard);
    this.failures = 0;
    this.trouble = this.slow = null;
    this.foreign = new Set(); // they belong to a run of another store
    this.dropped = new Set();
    this.shelf = new Shelf(BOX);
    this.timer = null;
    addEventListener("online", () => this.pump());
    addEventListener("beforeunload", (event) => storage.kept || !this.entries().length || event.preventDefault());
    addEventListener("storage", ({ key, oldValue, newValue }) => {
      if (!key?.startsWith(BOX)) return;
      const now = JSON.parse(newValue) ?? {};
      if (this.dropped.delete(now.key) && now.tried) this.add({ ...now, key: fresh(), verb: "undo", tried: false }); // another tab has sent it
      this.tell();
      if (oldValue) this.onElsewhere(JSON.parse(oldValue));
    });
    document.addEventListener("visibilitychange", () => document.hidden || this.pump());
  }

  entries() {
    return this.shelf.all().filter(({ key }) => !this.foreign.has(key));
  }

  add(...entries) {
    for (const entry of entries) this.shelf.add(entry);
    this.tell();
    this.pump();
  }

  /** Removes an entry that was not sent yet; true if it was there. */
  drop(key) {
    const entry = this.entries().find((one) => one.key === key && !one.tried && !one.asked);
    if (!entry) return false;
    storage.remove(entry.at);
    this.dropped.add(key);
    this.tell();
    return true;
  }

  tell() {
    const unsent = this.entries().filter((entry) => !(entry.verb === "rerun" && entry.accepted)).length;
    this.onState({ unsent, trouble: this.trouble ?? this.slow, kept: storage.kept });
  }

  /** Sends unsent entries. One tab sends at a time; without locks, idempotency keys make duplicates harmless. */
  async pump() {
    clearTimeout(this.timer);
    if (this.pumping) {
      this.again = true;
      return;
    }
    this.pumping = true;
    try {
      const run = () => this.send();
      await (navigator.locks ? navigator.locks.request("assay-outbox", run) : run());
    } finally {
      this.pumping = false;
    }
    const left = this.entries();
    const soon = this.again || left.some((entry) => entry.verb !== "rerun") ? 0 : RERUN_LOOK_MS;
    const wait = this.trouble === null ? soon : WAITS_MS[Math.min(this.failures, WAITS_MS.length) - 1] ?? WAITS_MS[0];
    if (this.trouble !== null || left.length || !soon) this.timer = setTimeout(() => this.pump(), wait);
    this.again = false;
  }

  async send() {
    this.trouble = null;
    const entries = this.entries();
    const decisions = entries.filter((entry) => entry.verb !== "rerun").slice(0, this.single ? 1 : AT_ONCE);
    if (decisions.length && !(await this.sendDecisions(decisions))) return;
    for (const entry of entries) {
      if (entry.verb === "rerun" && !(await this.sendRerun(entry))) return;
    }
    this.tell();
  }

  async sendDecisions(decisions) {
    this.mark(decisions, { tried: true });
    const body = {
      ...boot.filters,
      decisions: decisions.map(({ key, id, run, verb, reviewer, reason, note, corrections, active_ms }) => ({ key, id, run, verb, reviewer, reason, note, corrections, active_ms })),
    };
    try {
      const answer = await this.ask("/api/decisions", body, JSON.stringify(body).length < 60000);
      this.failures = 0;
      this.single = false;
      this.finish(answer.results.map((result) => [decisions.find((entry) => entry.key === result.key), result]), answer.progress);
      return true;
    } catch (error) {
      if (this.isTrouble(error)) return false;
      if (decisions.length > 1) {
        this.single = true; // one is malformed: send them one by one
        this.again = true;
        return true;
      }
      this.finish([[decisions[0], { ok: false, error: error.said }]], null);
      return true;
    }
  }

  async sendRerun(entry) {
    const { key, id, run, attempt, reviewer, reason, note } = entry;
    try {
      if (!entry.asked) {
        await this.ask("/health"); // while this fails, the rerun was certainly not sent
        if (!this.entries().some((one) => one.key === key)) return true; // withdrawn in the meantime
        this.mark([entry], { asked: true });
      }
      const answer = await this.ask("/api/rerun", { key, id, run, attempt, reviewer, reason, note });
      this.failures = 0;
      if (answer.status === "running") this.mark([entry], { accepted: true });
      else this.finish([[entry, { ok: answer.status === "done", ...answer }]], null);
      return true;
    } catch (error) {
      if (error.status && error.status < 500) this.mark([entry], { asked: entry.asked }); // answered with a refusal
      if (this.isTrouble(error)) return false;
      this.finish([[entry, { ok: false, error: error.said }]], null);
      return true;
    }
  }

  /** Returns the server's answer; shows a notice if it takes long. */
  async ask(path, body, keepalive = false) {
    const slow = setTimeout(() => {
      this.slow = "unsent";
      this.tell();
    }, SLOW_MS);
    try {
      return await call(path, body, { keepalive, signal: AbortSignal.timeout(PATIENCE_MS) });
    } finally {
      clearTimeout(slow);
      this.slow = null;
    }
  }

  isTrouble(error) {
    const elsewhere = error.said?.where === "store";
    if (!elsewhere && error.status < 500 && !AGAIN.has(error.status)) return false;
    this.failures += 1;
    this.trouble = elsewhere ? "store" : error.status === 401 || error.status === 403 ? "signin" : "unsent";
    this.tell();
    return true;
  }

  mark(which, marks) {
    for (const { at } of which) {
      const now = storage.get(at);
      if (now) storage.set(at, { ...now, ...marks });
    }
  }

  finish(results, progress) {
    for (const [entry, { error }] of results) {
      if (error?.where === "run") this.foreign.add(entry?.key);
      else storage.remove(entry?.at);
    }
    this.tell();
    for (const [entry, result] of results) if (entry) this.onResult(entry, result, progress);
  }
}
