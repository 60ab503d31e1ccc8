// Live queue and run pages: server-sent events, or polling every few seconds if these do not arrive.

import "../frame/page.js";
import { boot, byId, call, count, t } from "../frame/dom.js";
import { whileSeen } from "../frame/live_updates.js";

const ASK_MS = 3000;
const UNSEEN_MS = 15_000;
const PATIENCE_MS = 6000;
const status = byId("live");

/** True if the page has input that redrawing would discard. */
export const unsaved = { now: false };

function duration(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

const money = (usd) => (usd >= 0.1 || usd === 0 ? `$${usd.toFixed(2)}` : `$${usd.toFixed(4)}`);

function usd(row) {
  if (row.cost_usd === null) return t("queue.cost_unknown");
  const text = money(row.cost_usd);
  return row.unpriced_calls ? t("queue.cost_partly", { usd: text }) : text;
}

/** Updates the elements of one run from its row. */
export function fill(root, row) {
  const now = row.under_way ? t("queue.now", row.under_way) : "";
  const left = row.left_s === null ? "" : t("queue.left", { time: duration(row.left_s) });
  const texts = {
    state: t(row.ending ? "run.ending" : `run.${row.state}`),
    trials: t("queue.trials", { n: row.trials.total, done: count(row.judged), total: count(row.trials.total) }),
    now: [now, left].filter(Boolean).join(" · "),
    judged: count(row.judged - (row.not_graded ?? 0)),
    waiting: count(row.waiting),
    approved: count(row.assessments.approved),
    corrected: count(row.corrected_are === "graded" ? 0 : row.assessments.corrected),
    graded: count(row.corrected_are === "graded" ? row.assessments.corrected : 0),
    rejected: count(row.assessments.rejected),
    failed: count(row.failed),
    cost: usd(row),
    error: row.error ?? "",
  };
  for (const place of root.querySelectorAll("[data-field]")) {
    const text = texts[place.dataset.field];
    if (text !== undefined && place.textContent !== text) place.textContent = text;
    if (place.dataset.zero !== undefined) place.classList.toggle("zero", text === "0");
  }
  for (const place of root.querySelectorAll('[data-field="error"]')) place.hidden = !row.error;
  for (const button of root.querySelectorAll("[data-steer]")) button.hidden = !row.moves.includes(button.dataset.steer);
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

/** Shows a notification when a run ends or its first assessments await review. */
const ENDS = new Set(["finished", "interrupted", "cancelled"]); // a planned run has not begun, a paused one goes on
const KEPT = "assay.seen";
const kept = sessionStorage.getItem(KEPT); // by a page that had to draw itself anew
sessionStorage.removeItem(KEPT);
const seen = new Map(JSON.parse(kept ?? "[]"));
let opened = kept !== null;
function notice(row) {
  const before = seen.get(row.id) ?? (opened ? { state: "running", waiting: 0 } : null);
  seen.set(row.id, { state: row.state, waiting: row.waiting });
  if (!before) return; // as it was when the page was opened
  if (ENDS.has(row.state) && !ENDS.has(before.state)) show("notice.ended", row);
  else if (row.waiting && !before.waiting) show("notice.waits", row);
}

function drawAnew() {
  if (unsaved.now || document.querySelector("details.add[open]")) {
    const place = byId("begun");
    if (place) place.hidden = false;
    return;
  }
  sessionStorage.setItem(KEPT, JSON.stringify([...seen]));
  location.reload();
}

function show(key, row) {
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  const body = t(key, { suite: row.suite, state: t(`run.${row.state}`), n: row.waiting, waiting: count(row.waiting), failed: row.failed });
  const shown = new Notification("Assay", { body, tag: `${row.id} ${key} ${row.state}` });
  shown.onclick = () => {
    window.focus();
    location.assign(row.waiting ? `/review?run=${encodeURIComponent(row.id)}` : `/runs/${encodeURIComponent(row.id)}`);
  };
}

/** Shows the number of pending assessments in the tab's title and on the icon of an installed page. */
const title = document.title;
function badge(waiting) {
  document.title = waiting ? `(${count(waiting)}) ${title}` : title;
  navigator.setAppBadge?.(waiting).catch(() => {}); // only an icon
}

const asker = byId("notice");
function showAsker() {
  if (!asker || !("Notification" in window)) return;
  asker.hidden = false;
  const said = Notification.permission;
  asker.textContent = t(said === "granted" ? "notice.on" : said === "denied" ? "notice.off" : "notice.ask");
  asker.disabled = said !== "default";
}
asker?.addEventListener("click", async () => {
  await Notification.requestPermission();
  showAsker();
});
showAsker();

for (const button of document.querySelectorAll("[data-steer]")) {
  button.addEventListener("click", async () => {
    const root = button.closest("[data-run]");
    const wish = button.dataset.steer;
    if (wish === "cancel" && !confirm(t("steer.confirm"))) return;
    button.disabled = true;
    try {
      const budget = (wish === "resume" && byId("budget")?.value.trim()) || null;
      const said = await call(`/api/runs/${encodeURIComponent(root.dataset.run)}/steer`, { wish, ...(budget && { budget: Number(budget) || budget }) });
      fill(root, said.run);
    } catch (error) {
      const place = root.querySelector('[data-field="error"]');
      place.hidden = false;
      place.textContent = [error.message, error.said?.remedy].filter(Boolean).join(" ");
    }
    button.disabled = false;
  });
}

byId("delete-run")?.addEventListener("click", async (event) => {
  const root = event.currentTarget.closest("[data-run]");
  if (!confirm(t("run.delete_confirm"))) return;
  try {
    await call(`/api/runs/${encodeURIComponent(root.dataset.run)}/delete`, {});
    location.assign("/runs");
  } catch (error) {
    const place = root.querySelector('[data-field="error"]');
    place.hidden = false;
    place.textContent = [error.message, error.said?.remedy].filter(Boolean).join(" ");
  }
});

const extend = byId("extend");
function extension() {
  const more = byId("more").value.trim();
  const join = byId("join").value.trim();
  return { trials: more === "" ? 0 : Number.isInteger(Number(more)) ? Number(more) : more, candidates: join ? [join] : [] };
}
/** Shows a problem at its field, under the form's name for it; without a problem, clears both. */
function wrong(name, said = "") {
  for (const one of ["more", "join"]) {
    byId(`${one}-wrong`).textContent = one === name ? said : "";
    byId(one).setAttribute("aria-invalid", one === name);
  }
}

const IN_FORM = { trials: "more", "body.trials": "more", candidates: "join" };

async function sendExtension(onlyLook, replacing = 0) {
  const run = extend.closest("[data-run]").dataset.run;
  const place = byId("extend-said");
  const { trials, candidates } = extension();
  place.textContent = "";
  wrong(null);
  if (trials === 0 && !candidates.length) {
    wrong("more", t("steer.nothing"));
    return null;
  }
  try {
    const said = await call(`/api/runs/${encodeURIComponent(run)}/extend`, { ...extension(), only_look: onlyLook, replacing });
    const { calls, likely_usd: likely, most_usd: most, unpriced } = said.estimate;
    const cost = unpriced.length || likely === null ? t("steer.unpriced") : t("steer.cost", { likely: money(likely), most: money(most) });
    place.className = "small";
    const replaces = onlyLook && said.replaces ? t("steer.replaces", { n: said.replaces }) : "";
    place.textContent = [t("steer.asked", { n: calls, cost }), replaces].filter(Boolean).join(". ");
    return said.replaces;
  } catch (error) {
    const field = IN_FORM[error.said?.where];
    const said = [error.said?.problem ?? error.message, error.said?.remedy].filter(Boolean).join(" ");
    if (field) wrong(field, /^(is|would) /.test(said) ? t("steer.this", { is: said }) : said);
    else {
      place.className = "small error";
      place.textContent = said;
    }
    return null;
  }
}
extend?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const replaces = await sendExtension(true);
  if (replaces === null || (replaces && !confirm(t("steer.replaces_confirm", { n: replaces })))) return;
  if ((await sendExtension(false, replaces)) !== null) location.reload();
});
byId("extend-look")?.addEventListener("click", () => sendExtension(true));

/** Returns the next step towards a first verdict. */
const stage = (row) => (row.waiting ? "review" : row.judged ? "verdict" : "begin");

function take(rows) {
  for (const row of rows) notice(row);
  opened = true;
  for (const row of rows) {
    const [root, ...further] = document.querySelectorAll(`[data-run="${CSS.escape(row.id)}"]`);
    if (root) for (const one of [root, ...further]) fill(one, row);
    else if (boot.page === "runs") return drawAnew(); // a run this page has never seen
    if (root?.dataset.stage && root.dataset.stage !== stage(row)) return drawAnew();
    const cells = root?.querySelector("[data-cells]");
    if (cells && cells.dataset.cells !== Object.values(row.trials).join(" ")) return drawAnew();
  }
  known = new Map([...known, ...rows.map((row) => [row.id, row.waiting])]);
  tell();
}

/** Returns the number of pending assessments: the server's total, else the sum of the runs on this page. */
function tell() {
  const waiting = total ?? [...known.values()].reduce((sum, n) => sum + n, 0);
  const own = document.querySelector("[data-run]")?.dataset.run;
  badge(boot.page === "runs" ? waiting : (known.get(own) ?? 0));
  const lead = byId("waiting");
  if (lead && known.size) lead.textContent = waiting ? t("queue.lead", { n: count(waiting) }) : t("queue.lead.none");
}

let total = null;
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
  source.addEventListener("waiting", (event) => {
    total = Number(event.data);
    tell();
  });
  source.addEventListener("open", () => {
    heard = performance.now();
    clearInterval(asking);
    asking = null;
    say("queue.live");
  });
  source.addEventListener("error", () => {
    if (asking === null && performance.now() - heard > 0) asking = setInterval(ask, ASK_MS);
    setTimeout(() => !document.hidden && source.readyState === EventSource.CLOSED && listen(), PATIENCE_MS);
  });
}

async function ask() {
  try {
    const { runs, waiting } = await call("/queue.json");
    say("queue.polling");
    total = waiting;
    take(runs);
  } catch {
    say("queue.offline");
  }
}

function listenNoMore() {
  source?.close();
  clearInterval(asking);
  asking = setInterval(ask, UNSEEN_MS); // for the notice that a run has ended
}

if (boot.live) whileSeen(listen, listenNoMore);
addEventListener("pagehide", () => source?.close());
