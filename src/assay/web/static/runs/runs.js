// Live pages of runs: server-sent events, or polling every few seconds if these do not arrive.

import "../frame/page.js";
import { duration, money } from "../frame/amounts.js";
import { ask } from "../frame/ask.js";
import { boot, button, byId, call, count, h, t } from "../frame/dom.js";
import { whileSeen } from "../frame/live_updates.js";

const ASK_MS = 3000;
const UNSEEN_MS = 15_000;
const PATIENCE_MS = 6000;
const status = byId("live");

/** True if the page has input that redrawing would discard. */
export const unsaved = { now: false };

function usd(row) {
  if (row.cost_usd === null) return t("queue.cost_unknown");
  const text = money(row.cost_usd);
  return row.unpriced_calls ? t("queue.cost_partly", { usd: text }) : text;
}

/** Updates the elements of one run from its row. */
export function fill(root, row) {
  const now = row.at_provider ? t("queue.at_provider", row.at_provider) : row.under_way ? t("queue.now", row.under_way) : "";
  const left = row.left_s === null ? "" : t("queue.left", { time: duration(row.left_s) });
  const texts = {
    state: t(row.ending ? "run.ending" : `run.${row.state}`),
    trials: t("queue.trials", { n: row.trials.total, done: count(row.judged), total: count(row.trials.total) }),
    now: [now, left].filter(Boolean).join(" · "),
    waiting: count(row.waiting),
    cost: usd(row),
    verdict: row.verdict ?? undefined, // what the page shows stays until the new one is computed
    error: row.error ?? "",
  };
  for (const place of root.querySelectorAll("[data-field]")) {
    const text = texts[place.dataset.field];
    if (text !== undefined && place.textContent !== text) place.textContent = text;
    if (text !== undefined) place.classList.remove("asked");
  }
  for (const place of root.querySelectorAll('[data-field="error"]')) place.hidden = !row.error || place.dataset.listed !== undefined;
  for (const place of root.querySelectorAll("[data-tally]")) {
    place.replaceChildren(...row.tally_words.map(([state, words]) => h("span", { class: state }, words)));
  }
  if (boot.page === "runs") nextStep(root, row);
  else for (const move of root.querySelectorAll("[data-steer]")) move.hidden = !row.moves.includes(move.dataset.steer);
  for (const mark of root.querySelectorAll("[data-run-state]")) {
    mark.dataset.runState = row.state;
    if (boot.page === "runs") mark.hidden = row.state === "finished";
  }
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

/** Updates the one action of a row: a link, or a button that sends a request. */
function nextStep(root, row) {
  const link = root.querySelector("[data-do]");
  if (!link || root.dataset.reads !== undefined) return;
  const posts = row.action === "retry" || row.action === "resume";
  const step = root.querySelector('[data-steer="resume"]');
  step.hidden = !posts;
  link.hidden = posts;
  if (posts) step.textContent = t(`do.${row.action}`, { n: count(row.failed) });
  else {
    link.firstChild.textContent = t(`do.${row.action === "open" && row.not_graded ? "grade" : row.action}`, { n: count(row.waiting) });
    link.classList.toggle("go", row.action === "review");
    const run = encodeURIComponent(row.id);
    link.href = row.action === "open" ? `/runs/${run}` : `/${row.action}?run=${run}`;
  }
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

let clicked = -Infinity;
document.addEventListener("click", (event) => event.target.closest("a[href]") && (clicked = performance.now()), true);

function drawAnew() {
  const rest = clicked + 5000 - performance.now();
  if (rest > 0) return setTimeout(drawAnew, rest); // a reload would discard the click on a link
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
  const body = t(key, { suite: row.suite, state: t(`run.${row.state}`), n: row.waiting, failed: row.failed });
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
  const permission = Notification.permission;
  asker.textContent = t(permission === "granted" ? "notice.on" : permission === "denied" ? "notice.off" : "notice.ask");
  asker.disabled = permission !== "default";
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
    const sure = { title: t("steer.ask"), text: t("steer.confirm"), act: t("steer.cancel"), keep: t("steer.keep") };
    if (wish === "cancel" && !(await ask(sure))) return;
    button.disabled = true;
    try {
      const budget = (wish === "resume" && byId("budget")?.value.trim()) || null;
      const answer = await call(`/api/runs/${encodeURIComponent(root.dataset.run)}/steer`, { wish, ...(budget && { budget: Number(budget) || budget }) });
      fill(root, answer.run);
    } catch (error) {
      const place = root.querySelector('[data-field="error"]');
      place.hidden = false;
      place.textContent = [error.message, error.said?.remedy].filter(Boolean).join(" ");
    }
    button.disabled = false;
  });
}

const REMOVED = "assay.removed";
const OFFERED_MS = 60_000; // a page that draws itself anew still offers it

/** Deletes, archives or restores a run; the list then offers to undo it. */
async function remove(source, act, archived) {
  const root = document.querySelector("main[data-run]");
  const run = root.dataset.run;
  try {
    await call(`/api/runs/${encodeURIComponent(run)}/${act}`, { archived });
    if (act === "delete") sessionStorage.setItem(REMOVED, JSON.stringify({ run, archived, suite: source.dataset.suite, at: Date.now() }));
    location.assign(act === "delete" ? "/runs" : `/runs/${encodeURIComponent(run)}`);
  } catch (error) {
    const place = root.querySelector('[data-field="error"]');
    place.hidden = false;
    place.textContent = [error.message, error.said?.remedy].filter(Boolean).join(" ");
  }
}
for (const [id, act, archived] of [["delete-run", "delete", false], ["archive-run", "delete", true], ["restore-run", "restore", true]]) {
  byId(id)?.addEventListener("click", ({ currentTarget }) => remove(currentTarget, act, archived));
}

const removed = byId("removed");
const gone = removed && JSON.parse(sessionStorage.getItem(REMOVED));
if (gone && Date.now() - gone.at < OFFERED_MS) {
  const back = async () => {
    sessionStorage.removeItem(REMOVED);
    try {
      await call(`/api/runs/${encodeURIComponent(gone.run)}/restore`, { archived: gone.archived });
      location.reload();
    } catch (error) {
      removed.textContent = [error.message, error.said?.remedy].filter(Boolean).join(" ");
    }
  };
  removed.replaceChildren(t(gone.archived ? "run.archived_now" : "run.removed", gone), button("button small", back, {}, t("run.undo")));
  removed.hidden = false;
}

const finder = byId("find");
if (finder) {
  finder.parentElement.classList.add("scripted");
  for (const choice of finder.querySelectorAll("select")) choice.addEventListener("change", () => finder.requestSubmit());
  // An empty choice need not be in an address that somebody keeps.
  finder.addEventListener("formdata", ({ formData }) => {
    for (const [name, value] of [...formData]) if (!value) formData.delete(name);
  });
}

/** Two ticked runs can be compared; a third takes the place of the first. */
const ticked = [];
const comparer = byId("compare-ticked");
function offer() {
  if (comparer) comparer.disabled = ticked.length !== 2;
}
for (const box of document.querySelectorAll(".pick input")) {
  box.addEventListener("change", () => {
    if (!box.checked) ticked.splice(ticked.indexOf(box), 1);
    else if (ticked.push(box) > 2) ticked.shift().checked = false;
    offer();
  });
}
offer();

const extend = byId("extend");
function extension() {
  const more = byId("more").value.trim();
  const join = byId("join").value.trim();
  return { trials: more === "" ? 0 : Number.isInteger(Number(more)) ? Number(more) : more, candidates: join ? [join] : [] };
}
/** Shows a problem at its field, under the form's name for it; without a problem, clears both. */
function wrong(name, problem = "") {
  for (const one of ["more", "join"]) {
    byId(`${one}-wrong`).textContent = one === name ? problem : "";
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
    const answer = await call(`/api/runs/${encodeURIComponent(run)}/extend`, { ...extension(), only_look: onlyLook, replacing });
    const { calls, likely_usd: likely, most_usd: most, unpriced } = answer.estimate;
    const cost = unpriced.length || likely === null ? t("steer.unpriced") : t("steer.cost", { likely: money(likely), most: money(most) });
    place.className = "small";
    const replaces = onlyLook && answer.replaces ? t("steer.replaces", { n: answer.replaces }) : "";
    place.textContent = [t("steer.asked", { n: calls, cost }), replaces].filter(Boolean).join(". ");
    return answer.replaces;
  } catch (error) {
    const field = IN_FORM[error.said?.where];
    const problem = [error.said?.problem ?? error.message, error.said?.remedy].filter(Boolean).join(" ");
    if (field) wrong(field, /^(is|would) /.test(problem) ? t("steer.this", { is: problem }) : problem);
    else {
      place.className = "small error";
      place.textContent = problem;
    }
    return null;
  }
}
extend?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const replaces = await sendExtension(true);
  const sure = { title: t("steer.replaces_ask"), text: t("steer.replaces_confirm", { n: replaces }), act: t("steer.replaces_do"), keep: t("cancel") };
  if (replaces === null || (replaces && !(await ask(sure)))) return;
  if ((await sendExtension(false, replaces)) !== null) location.reload();
});
byId("extend-look")?.addEventListener("click", () => sendExtension(true));

/** Returns the next step towards a first verdict. */
const stage = (row) => (row.waiting ? "review" : row.judged ? "verdict" : "begin");

function take(news) {
  const rows = news.filter((row) => row.id !== gone?.run); // read before the run was taken out
  for (const row of rows) notice(row);
  opened = true;
  for (const row of rows) {
    const [root, ...further] = document.querySelectorAll(`[data-run="${CSS.escape(row.id)}"]`);
    if (root) for (const one of [root, ...further]) fill(one, row);
    else if (boot.whole) return drawAnew(); // a run this page has never seen
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
  if (lead && known.size) lead.textContent = count(waiting);
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
    if (asking === null && performance.now() - heard > 0) asking = setInterval(poll, ASK_MS);
    setTimeout(() => !document.hidden && source.readyState === EventSource.CLOSED && listen(), PATIENCE_MS);
  });
}

async function poll() {
  try {
    const { runs, waiting } = await call(boot.twin ?? "/runs.json");
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
  asking = setInterval(poll, UNSEEN_MS); // for the notice that a run has ended
}

if (boot.live) whileSeen(listen, listenNoMore);
if (boot.twin && document.querySelector(".verdict.asked")) {
  call(boot.twin).then(({ runs }) => runs.forEach((row) => {
    for (const root of document.querySelectorAll(`[data-run="${CSS.escape(row.id)}"]`)) fill(root, row);
  }), () => {}); // the stream brings them too
}
addEventListener("pagehide", () => source?.close());
