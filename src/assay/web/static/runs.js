// The queue and a run as they change: server-sent events, and asking every few seconds where these do not come.

import "./page.js";
import { boot, byId, call, t } from "./dom.js";

const ASK_MS = 3000;
const PATIENCE_MS = 6000;
const status = byId("live");

let pasting = false;
byId("paste")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const said = new FormData(event.target);
  pasting = true;
  const contents = said.getAll("content");
  try {
    const { run_id } = await call("/api/pasted", { thing: said.get("thing"), context: said.get("context"), snippets: said.getAll("name").map((name, place) => [name, contents[place]]) });
    location.assign(`/review?run=${encodeURIComponent(run_id)}`);
  } catch (error) {
    pasting = false;
    byId("paste-error").textContent = [error.said?.problem ?? error.message, error.said?.remedy].filter(Boolean).join(" ");
  }
});

export const count = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");

function duration(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function usd(row) {
  if (row.cost_usd === null) return t("queue.cost_unknown");
  const text = row.cost_usd >= 0.1 || row.cost_usd === 0 ? `$${row.cost_usd.toFixed(2)}` : `$${row.cost_usd.toFixed(4)}`;
  return row.unpriced_calls ? t("queue.cost_partly", { usd: text }) : text;
}

/** Fill the places of one run from its row. */
export function fill(root, row) {
  const now = row.under_way ? t("queue.now", row.under_way) : "";
  const left = row.left_s === null ? "" : t("queue.left", { time: duration(row.left_s) });
  const texts = {
    state: t(`run.${row.state}`),
    trials: t("queue.trials", { done: count(row.judged), total: count(row.trials.total) }),
    now: [now, left].filter(Boolean).join(" · "),
    judged: count(row.judged),
    waiting: count(row.waiting),
    approved: count(row.assessments.approved),
    corrected: count(row.assessments.corrected),
    rejected: count(row.assessments.rejected),
    failed: count(row.failed),
    cost: usd(row),
  };
  for (const place of root.querySelectorAll("[data-field]")) {
    const text = texts[place.dataset.field];
    if (text !== undefined && place.textContent !== text) place.textContent = text;
    if (place.dataset.zero !== undefined) place.classList.toggle("zero", text === "0");
  }
  for (const mark of root.querySelectorAll("[data-run-state]")) mark.dataset.runState = row.state;
  let start = 0;
  const shares = new Map(row.shares);
  for (const part of root.querySelectorAll("[data-share]")) {
    const width = shares.get(part.dataset.share) ?? 0;
    part.setAttribute("x", start);
    part.setAttribute("width", width);
    start += width;
  }
  for (const link of root.querySelectorAll("[data-review]")) link.hidden = row.waiting === 0;
}

function take(rows) {
  let waiting = 0;
  for (const row of rows) {
    const root = document.querySelector(`[data-run="${CSS.escape(row.id)}"]`);
    if (root) fill(root, row);
    else if (boot.page === "queue") return pasting || location.reload(); // a run this page has never seen
    const cells = root?.querySelector("[data-cells]");
    if (cells && cells.dataset.cells !== Object.values(row.trials).join(" ")) return pasting || location.reload();
  }
  known = new Map([...known, ...rows.map((row) => [row.id, row.waiting])]);
  for (const n of known.values()) waiting += n;
  const lead = byId("waiting");
  if (lead && rows.length) lead.textContent = waiting ? t("queue.lead", { n: count(waiting) }) : t("queue.lead.none");
}

let known = new Map();
let source = null;
let asking = null;
let heard = 0;

function say(key) {
  if (!status) return;
  status.dataset.now = key;
  status.textContent = t(key);
}

function listen() {
  source = new EventSource("/api/live");
  source.addEventListener("runs", (event) => {
    heard = performance.now();
    clearInterval(asking);
    asking = null;
    say("queue.live");
    take(JSON.parse(event.data));
  });
  source.addEventListener("open", () => {
    heard = performance.now();
    clearInterval(asking);
    asking = null;
    say("queue.live");
  });
  source.addEventListener("error", () => {
    if (asking === null && performance.now() - heard > 0) asking = setInterval(ask, ASK_MS);
    setTimeout(() => source.readyState === EventSource.CLOSED && listen(), PATIENCE_MS);
  });
}

async function ask() {
  try {
    const { runs } = await call("/queue.json");
    say("queue.polling");
    take(runs);
  } catch {
    say("queue.offline");
  }
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(byId(button.dataset.copy).textContent.trim());
    button.textContent = t("first.copied");
    setTimeout(() => (button.textContent = t("first.copy")), 1500);
  });
}

if (boot.live) listen();
addEventListener("pagehide", () => source?.close());
