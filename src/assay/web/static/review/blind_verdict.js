// Forms: a blind verdict before the judge's grades, scoring by keys, and the resulting total. Also second opinions and long
// responses. Loaded when first needed.

import { boot, byId, call, fresh, h, storage, t, visible } from "../frame/dom.js";
import { missingWords, shownScore, what, worded } from "./item.js";
import * as all from "./blind_verdict.js";

const AGAIN_MS = 3000;
const LOOK_MS = 300;

/** Repeats a request until the server answers; null if the item has left the page. */
async function insist(page, record, path, more, waits) {
  const body = { key: fresh(), id: record.item.id, run: record.item.run_id, reviewer: boot.reviewer };
  for (;;) {
    try {
      return await call(path, { ...body, ...more() });
    } catch (error) {
      if (error.status && error.status < 500) throw error;
    }
    page.say(t(waits), { alert: true });
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    if (page.current() !== record) return null;
  }
}

/** Sends the reviewer's verdict; the answer has the judge's grades. Until then the scores stay a draft. */
export async function sendVerdict(page, record, scores) {
  const { item } = record;
  const asking = Boolean(record.verdict);
  record.verdict = scores;
  if (asking) return; // the request in progress will send the newest scores
  try {
    const graded = await insist(page, record, "/api/review/verdict", () => ({ scores: record.verdict }), "said.verdict_waits");
    if (!graded) return;
    while (page.current() === record && page.writing()) {
      page.say(t("said.verdict_there"));
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    graded.panes = graded.panes.map((pane, place) => ({ ...pane, tree: item.panes[place].tree, marks: item.panes[place].marks }));
    graded.dressed = item.dressed;
    record.item = graded;
    storage.remove(page.draftKey(item.id));
    if (page.current() === record) page.show();
    page.say(t("said.verdict"));
  } catch (error) {
    page.alertOf(error);
  } finally {
    record.verdict = null;
  }
}

/** Returns the meaning of a digit on a scale: a score (up to ten, except 1), the choice of a word, or the start of a number. */
function wayOf({ labels, low, high }) {
  if (labels.length) return labels.length > 9 ? "number" : "word";
  if (!Number.isInteger(low) || !Number.isInteger(high) || low < 0 || high > 10 || high - low < 2) return "number";
  return high === 10 ? "ten" : "digit";
}

let shown = null; // the page that has the form

/** Returns the help on keys for this form's scales. */
export function draw(item, page) {
  shown = page;
  page.own = all;
  for (const key of Object.keys(page.view.draft?.values ?? {})) foresee(page, key.split(".")[1]);
  const ways = new Map();
  for (const criterion of item.criteria) ways.set(wayOf(criterion), (ways.get(wayOf(criterion)) ?? new Set()).add(criterion.scale));
  return h("div", { class: "ways soft" }, h("p", {}, t("form.current", { key: page.badge("top") })),
    h("ul", {}, [...ways].map(([way, scales]) => h("li", {}, h("b", {}, visible([...scales].join(", "))), ": ", t(`form.${way}`)))));
}

/** The field with a number that was started by a digit. */
let typed = null;

/** Scores the current criterion with a digit, or starts its score; without a digit, gives the highest score. */
export function scoreByKey(page, digit) {
  const { view } = page;
  if (!view.draft) return;
  const { row, pane } = view;
  const criterion = page.current().item.criteria[row];
  const field = page.fieldAt(row, pane);
  const way = wayOf(criterion);
  if (digit !== null && (way === "number" || (way === "ten" && digit === "1"))) return begin(page, field, digit, row, pane);
  const best = criterion.labels.reduce((one, other) => (other[1] > one[1] ? other : one), ["", -Infinity]);
  const text = digit === null ? best[0] || String(criterion.high) : way === "word" ? criterion.labels[digit - 1]?.[0] : digit;
  if (!fits(page, criterion, text)) return;
  field.value = text;
  page.changeScore(row, pane, text);
  goOn(page, row + 1, pane);
}

/** Returns the field below or above, wrapping around at the ends. */
export function stepField(page, row, pane, down) {
  const rows = page.current().item.criteria.length;
  const order = [...Array(rows).keys(), -1];
  page.fieldAt(order[(order.indexOf(row) + (down ? 1 : rows)) % order.length], pane)?.focus();
}

/** True if a text is a score of this scale; else shows an error. */
function fits(page, criterion, text) {
  const raw = page.numberIn(text ?? "", criterion);
  const [low, high] = [Math.min(criterion.low, criterion.high), Math.max(criterion.low, criterion.high)];
  if (raw >= low && raw <= high) return true;
  page.say(criterion.labels.length ? t("form.words", { criterion: criterion.name, scale: criterion.scale })
    : t("correct.outside", { criterion: criterion.name, low, high }), { alert: true });
  return false;
}

function begin(page, field, digit, row, pane) {
  const more = typed?.field === field ? field.value : ""; // two digits were typed before this script had loaded
  field.focus();
  field.value = more + digit;
  typed = { page, field, row, pane };
  field.addEventListener("blur", () => { typed = null; }, { once: true });
  page.changeScore(row, pane, field.value);
}

/** Moves to the next cell of the form, and ends typing of a number. */
function goOn(page, row, pane) {
  const { criteria, panes } = page.current().item;
  if (row < criteria.length) page.select(row, pane);
  else if (pane + 1 < panes.length) page.select(0, pane + 1);
  else page.say(t("said.all_set", { key: page.badge("commit") }));
}

const STEPS = { Enter: [1, 0], Tab: [1, 0], ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };

// Runs before the page's own handlers: Enter ends a number that was started by a digit, and does not save.
document.addEventListener("keydown", (event) => {
  const step = STEPS[event.key];
  if (!typed || event.target !== typed.field || !step || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  const { page, field, row, pane } = typed;
  if (event.repeat || !fits(page, page.current().item.criteria[row], field.value)) return;
  field.blur();
  byId("thing").focus({ preventScroll: true });
  if (event.key === "Enter" || (event.key === "Tab" && !event.shiftKey)) goOn(page, row + 1, pane);
  else if (event.key === "Tab") page.select(row - 1, pane);
  else page.select(row + step[0], pane + step[1]);
}, { capture: true });

// A digit typed into the field of a scale with labels becomes the label.
document.addEventListener("change", ({ target }) => {
  const [row, pane] = (target.dataset?.field ?? "-1.0").split(".").map(Number);
  const criterion = shown?.current()?.item.criteria[row];
  const raw = criterion?.labels.length ? shown.numberIn(target.value, criterion) : NaN;
  if (Number.isNaN(raw) || target !== shown.fieldAt(row, pane)) return;
  target.value = worded(criterion, raw);
  shown.changeScore(row, pane, target.value);
});

/** Saves the scores of the form as a correction, or as the reviewer's own verdict; a wrong number is marked and selected. */
export function save(page, event) {
  const { view } = page;
  const record = page.decidable();
  if (!record || !view.draft) return;
  const { item } = record;
  const corrections = [];
  const wrong = (text, key) => {
    byId("correct-error").textContent = text;
    page.say(text, { alert: true });
    const field = page.fieldAt(...key.split("."));
    field?.setAttribute("aria-invalid", "true");
    field?.setAttribute("aria-describedby", "correct-error");
    field?.focus();
    field?.select();
  };
  for (const [key, text] of Object.entries(view.draft.values)) {
    const [row, pane] = key.split(".").map(Number);
    const criterion = item.criteria[row];
    const { low, high } = criterion ?? { low: 0, high: 100 };
    const raw = page.numberIn(text, criterion);
    if (Number.isNaN(raw)) return wrong(t("correct.number"), key);
    const score = (raw - low) / (high - low); // low is the worst, which may be the higher end
    if (score < 0 || score > 1) return wrong(t("correct.outside", { criterion: criterion?.name ?? t("review.total"), low: Math.min(low, high), high: Math.max(low, high) }), key);
    corrections.push({ pane, criterion: criterion?.name ?? null, score });
  }
  if (!corrections.length) return wrong(t("correct.nothing"), `${view.row}.${view.pane}`);
  const whole = new Set(corrections.filter((one) => !one.criterion).map((one) => one.pane));
  const both = corrections.find((one) => one.criterion !== null && whole.has(one.pane));
  if (both) return wrong(t("correct.both", { candidate: item.panes[both.pane].label }), `-1.${both.pane}`);
  const lacks = item.missing.filter(([pane, criterion]) => !whole.has(pane) && !corrections.some((one) => one.pane === pane && one.criterion === criterion));
  if (lacks.length) return wrong(missingWords({ ...item, missing: lacks }), `${item.criteria.findIndex(({ name }) => name === lacks[0][1])}.${lacks[0][0]}`);
  page.focusItem(); // before the next script: then a note may be under way
  if (item.blind) return sendVerdict(page, record, corrections);
  page.decide(record, "correct", item.person ? "graded" : "corrected", { corrections, reason: t(view.draft.reason || page.derivedReason()), note: view.draft.note.trim() }, event?.timeStamp);
}

/** Shows the weighted score that would result. */
export function foresee(page, pane) {
  const { values } = page.view.draft ?? {};
  const field = page.fieldAt(-1, pane);
  if (!field || !values || `-1.${pane}` in values) return;
  let sum = 0;
  let weights = 0;
  for (const [row, criterion] of page.current().item.criteria.entries()) {
    if (criterion.weight === 0) continue;
    const value = values[`${row}.${pane}`];
    const raw = value === undefined ? criterion.cells[pane]?.judged : page.numberIn(value, criterion);
    if (Number.isNaN(raw ?? NaN)) return;
    sum += (criterion.weight * (raw - criterion.low)) / (criterion.high - criterion.low);
    weights += criterion.weight;
  }
  if (weights) field.value = shownScore(sum / weights);
}

/** Loads the rest of a long response; returns true if it is on the page now. */
export async function showWhole(page) {
  const { view } = page;
  const { item } = page.current();
  const { pane } = view;
  try {
    if (item.panes[pane].cut) item.panes[pane] = await page.asStored(`${item.id}/panes/${pane}`);
  } catch (error) {
    page.alertOf(error);
    return false;
  }
  if (page.current()?.item !== item || view.pane !== pane || view.rules) return false;
  view.whole = true;
  await page.dress(item, "?whole=1");
  page.drawLeft();
  return true;
}

/** Requests a second, independent decision on an item. */
export async function second(page, record) {
  try {
    const asked = await insist(page, record, "/api/review/second", () => ({}), "said.second_waits");
    if (!asked) return page.say(t("said.second_lost", { what: what(record.item) }), { alert: true });
    record.item.second = true;
    page.undoLater({ ...page.named(record.item), key: fresh(), verb: "second" });
    if (page.current() !== record) return page.say(t("said.second_of", { what: what(record.item) }));
    page.drawHeading();
    page.drawActions();
    page.say(t("said.second"));
  } catch (error) {
    page.alertOf(error);
  }
}

/** Withdraws the request for a second opinion; if the server refuses, the item stays as it is. */
export async function withdraw(page, { id, run, what: called }, record) {
  try {
    await call("/api/review/second", { key: fresh(), id, run, reviewer: boot.reviewer, withdraw: true });
    if (record) record.item.second = false;
    page.say(t("said.second_withdrawn", { what: called }));
  } catch (error) {
    if (!error.status) page.undoLater({ id, run, what: called, key: fresh(), verb: "second" });
    page.alertOf(error);
  }
  page.drawHeading();
  page.drawActions();
}

/** Starts a correction with the reviewer's own verdict, also after a reload. */
export function recall(_, record) {
  const { item } = record;
  const scores = {};
  for (const [pane, criterion, score] of item.own ?? []) {
    const row = item.criteria.findIndex((one) => one.name === criterion);
    const { low, high } = item.criteria[row] ?? { low: 0, high: 100 };
    const text = row < 0 ? shownScore(score) : worded(item.criteria[row], low + score * (high - low));
    if (text !== (row < 0 ? shownScore(item.panes[pane].judged) : worded(item.criteria[row], item.criteria[row].cells[pane]?.judged))) scores[`${row}.${pane}`] = text;
  }
  record.own = scores;
}
