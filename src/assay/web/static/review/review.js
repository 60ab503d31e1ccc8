// The review page: shows the next item at once, before the last decision has reached the server.
//
// The trail holds every item of this tab in display order; `at` is the current one. Items are fetched ahead, and stay after
// the decision, so that the reviewer can go back. A decision goes to the outbox, and the next item is shown in the same
// frame. The server's answer is shown when it arrives; a refused decision brings its item back.

import "../frame/page.js";
import { boot, button, byId, call, fill, fresh, h, painted, storage, t } from "../frame/dom.js";
import { drawHeading, drawJudgement, drawReason, drawResponses, formOf, light, missingWords, rowOf, shownScore, what, worded } from "./item.js";
import { bindKeys, isField, withOwnKeys } from "../frame/keys.js";
import { BOX, Outbox, Shelf } from "./outbox.js";
import { askReason, openDialog } from "./panel.js";

const { single } = boot;
const BUFFER = 5;
const LOW = 3;
const KEPT = 60;
const UNDOABLE = 50;
const LOOK_AGAIN_MS = 4000;
const IDLE_MS = 120_000;
const REACTION_MS = 400; // nobody reads a new item and presses a key within this time

boot.keys = withOwnKeys(boot.keys);
let desk = fresh();
try {
  desk = sessionStorage.getItem("assay.desk") ?? desk;
  sessionStorage.setItem("assay.desk", desk);
} catch {
  /* a reload creates a new desk; the leases of the old one expire */
}

const records = new Map();
const trail = [];
let at = -1;
let fetching = null;
let exhausted = false; // the server had no more items
let spent = false; // the current item is decided, and the next has not arrived
let dry = false; // and this tab had no items left
let progress = null;
let elsewhere = 0;
let lookAgain = null;
let shownAt = 0;
const durations = [];
const sitting = {}; // decisions of this session, by kind
const skipped = new Set();

const itemBox = byId("item");
let [left, right] = itemBox.children;
/** The next item's two sides, drawn ahead while idle, and their item. */
let behind = [left, right].map((side) => side.cloneNode());
let ahead = null;
for (const side of behind) side.classList.add("behind");
behind[0].ariaLabel = null; // only the item in front is a landmark
itemBox.append(...behind);
const wide = matchMedia("(min-width: 1000px) and (min-height: 34rem)");
const forgetAhead = () => { ahead = null; };
addEventListener("resize", forgetAhead);
const DECIDED = new Set(["approved", "corrected", "graded", "rejected"]);
const fieldAt = (row, pane) => right.querySelector(`[data-field="${row}.${pane}"]`);
const warn = (text) => say(text, { alert: true });
const alertOf = (error) => warn(error.said?.problem ?? error.message);

const badge = (action) => boot.keys.find((key) => key.action === action).badge;
const current = () => records.get(trail[at]);
const isOpen = (record) => record && record.decided === null && !skipped.has(record.item.id) && record.item.state === "pending";
const undoShelf = () => new Shelf(`assay.undo.2.${boot.store}.${boot.reviewer.length}.${boot.reviewer}.`);
const undos = () => undoShelf().all();
/** Removes the matching decisions, which can no longer be undone here. */
const forget = (is) => { for (const one of undos().filter(is)) storage.remove(one.at); };
const asStored = (id) => call(`/api/assessments/${id}`);
const focusItem = () => byId("thing").focus({ preventScroll: true });
const emptyForm = () => ({ values: {}, reason: "", note: "" });
/** Keys of a draft are `row.pane`; row -1 is the overall score. */
const cellOf = (key) => key.split(".").map(Number);
const draftKey = (id) => `assay.draft.${boot.store}.${boot.reviewer}.${id}`;

// --- the current item ----------------------------------------------------------------------------------------------

const view = {
  row: 0, pane: 0, rules: false, whole: false, draft: null,
  wrap: storage.get("assay.wrap", false),
  reportOpen: storage.get("assay.report", false),
  badge,
  onPane(pane) { view.onCell(view.row, pane); },
  onRules: toggleRules,
  onCell(row, pane) { view.rules = false; select(row, pane); },
  onQuote: (lines, pane = view.pane) => around("showLines", lines, pane),
  onLine: (event, item) => around("chooseLine", event, item),
  onWhole: () => own("showWhole"),
  onWay: (action) => actions[action](),
  onReport(open) { if (view.reportOpen !== open) ahead = null; view.reportOpen = open; storage.set("assay.report", open); },
  onTrial(event, trial) {
    if (single || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    visit(trial.id);
  },
  onField(row, pane) { if (row >= 0) { view.row = row; if (pane !== view.pane) { view.pane = pane; view.rules = false; drawLeft(); } drawSelectedReason(); } },
  onScore: changeScore,
  onWords(part, text) { if (view.draft) { view.draft[part] = text; keepDraft(); } },
  onSave: saveCorrection,
  onDiscard: discardDraft,
  derivedReason,
  trialState: (trial) => trialState(trial),
  later(name, item) {
    const place = h("div", {});
    load(name).then((part) => place.replaceWith(part.draw(item, page)), (error) => place.append(error.message));
    return place;
  },
};

/** Active time of an item: page visible, window focused, and used within two minutes. */
let beatAt = 0;
let watched = false;
function beat() {
  const now = performance.now();
  const record = current();
  if (record && watched && now - beatAt < IDLE_MS) record.active = (record.active ?? 0) + now - beatAt;
  beatAt = now;
  watched = !document.hidden && document.hasFocus();
}
for (const kind of ["keydown", "pointerdown", "pointermove", "wheel", "visibilitychange"]) document.addEventListener(kind, beat, { passive: true, capture: true });
for (const kind of ["focus", "blur"]) addEventListener(kind, beat);

function say(text, { alert = false, action = null } = {}) {
  fill(byId("said"), h("span", { class: alert ? "alert" : null }, text), action);
}

/** Shows an item. One that came unasked takes no decision for a moment: a key pressed now was meant for the item before. */
function show(index, { focus = true, unasked = false } = {}) {
  beat();
  at = index;
  const record = current();
  if (!record) return;
  const { item } = record;
  clearTimeout(lookAgain);
  spent = dry = false;
  record.ready = false;
  itemBox.ariaBusy = "true";
  Object.assign(view, beginning(record));
  byId("empty").hidden = true;
  itemBox.hidden = false;
  const other = itemBox.dataset.id !== item.id;
  itemBox.dataset.id = item.id;
  itemBox.dataset.state = stateOf(record);
  drawTop();
  drawActions();
  if (ahead === item && !view.draft && waits(record)) {
    turn();
    if (!wide.matches) center(left.querySelector(".lit"));
  } else {
    drawRight();
    drawLeft(); // last, because measuring a line forces a layout
    right.scrollTop = 0;
  }
  ahead = null;
  if (other && !wide.matches) byId("heading").scrollIntoView({ block: "nearest", behavior: "instant" });
  remember();
  document.title = `${what(item)} · Assay`;
  if (item.own) own("recall", record);
  dress(item);
  const seen = unasked ? painted().then(() => new Promise((open) => setTimeout(open, REACTION_MS))) : painted();
  seen.then(() => {
    if (current() !== record) return;
    record.ready = true;
    itemBox.ariaBusy = null;
    shownAt = performance.now();
    if (focus) focusItem();
    if (record.pressed) performance.measure("assay:key-to-next", { start: record.pressed, end: shownAt });
    record.pressed = null;
    refill();
    setTimeout(prepare);
  });
  if (record.decided !== null && record.delivered && !record.revealed) reveal(record);
}

/** True if the item starts as an empty form: blind first, or graded only by people. */
const isForm = (record) => (record.item.blind || record.item.person) && waits(record);

const stateOf = (record) => record.decided ?? record.item?.state;
const waits = (record) => stateOf(record) === "pending";
const asShown = (record = current()) => ({ ...record.item, state: stateOf(record) });
/** Returns the state of a trial in the strip; what happened to it on this page is newer than the item. */
const trialState = (trial) => stateOf(records.get(trial.id) ?? {}) ?? trial.state;
const drawTop = () => fill(byId("heading"), drawHeading(asShown(), view));
const drawRight = () => fill(right, drawJudgement(asShown(), view));

function drawLeft(side = left, item = current().item) {
  const inTabs = side.querySelector(".tabs:focus-within");
  side.replaceChildren(...drawResponses(item, view));
  if (inTabs) side.querySelector("[aria-selected=true]").focus({ preventScroll: true });
  if (!view.rules) center(light(side, item, view), side);
}

/** Gets responses rendered or coloured. */
const dress = (item, ...places) => item.dressed && !places.length ? null : load("responses").then((part) => part.dress(page, item, ...places), () => {});
/** Draws the responses of an item again, if they are drawn. */
function redraw(item) {
  if (ahead === item) prepare();
  if (current()?.item === item && !itemBox.hidden) drawLeft();
}

/** Sets an item's initial state: its first flagged grade, and a saved draft. */
function beginning(record) {
  const { item } = record;
  const flag = item.flags.find((one) => one.pane !== null);
  const kept = waits(record) ? storage.get(draftKey(item.id), null) : null;
  const draft = kept ? { ...kept, kept: true } : isForm(record) ? emptyForm() : null;
  return { rules: false, whole: false, row: Math.max(0, rowOf(item, flag?.criterion)), pane: flag?.pane ?? 0, draft };
}

function prepare() {
  const record = records.get(openAhead()[0]);
  if (!record || record.item.attempts.length) return;
  const now = { ...view };
  Object.assign(view, beginning(record));
  if (!view.draft) {
    ahead = record.item;
    fill(behind[1], drawJudgement(ahead, view));
    drawLeft(behind[0], ahead);
    behind[1].scrollTop = 0;
    view.reading?.skipFar(behind[0]);
    for (const side of behind) {
      rename(side, "id", "data-as");
      side.lastElementChild.getBoundingClientRect(); // forces the layout
    }
  }
  Object.assign(view, now);
}

/** Sets element ids on the visible item only. */
function rename(side, from, to) {
  for (const one of side.querySelectorAll(`[${from}]`)) {
    one.setAttribute(to, one.getAttribute(from));
    one.removeAttribute(from);
  }
}

/** Shows the sides that were drawn ahead. */
function turn() {
  [left, right, ...behind] = [...behind, left, right];
  for (const side of itemBox.children) side.classList.toggle("behind");
  left.ariaLabel = behind[0].ariaLabel;
  behind[0].ariaLabel = null;
  for (const side of behind) rename(side, "id", "data-as");
  for (const side of [left, right]) rename(side, "data-as", "id");
}

const boxIn = (side) => side.querySelector(`[data-pane="${view.pane}"]`);

/** Scrolls a line to the middle of its pane without scrolling the page. */
function center(line, side = left) {
  const box = boxIn(side);
  if (!line || !box) return;
  const top = line.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
  if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 30) box.scrollTop = top - box.clientHeight / 3;
}

function drawSelectedReason() {
  if (byId("reason")) fill(byId("reason"), drawReason(current().item, view));
  for (const cell of right.querySelectorAll("[data-cell], [data-field]")) {
    const on = (cell.dataset.cell ?? cell.dataset.field) === `${view.row}.${view.pane}`;
    cell.classList.toggle("on", on);
    if (!cell.dataset.cell) continue;
    cell.setAttribute("aria-pressed", String(on));
    cell.tabIndex = on ? 0 : -1;
  }
  right.querySelectorAll(".grades:first-of-type thead th").forEach((head, place) => head.classList.toggle("on", place - 1 === view.pane));
}

function select(row, pane) {
  const { item } = current();
  const changed = pane !== view.pane || byId("tab-rules")?.getAttribute("aria-selected") === "true";
  view.row = Math.min(Math.max(row, 0), item.criteria.length - 1);
  view.pane = Math.min(Math.max(pane, 0), item.panes.length - 1);
  if (changed) {
    view.whole = false;
    drawLeft();
  } else center(light(left, item, view));
  drawSelectedReason();
  const on = right.querySelector(".grades .on:is(button, input)");
  for (const one of [byId("reason"), on]) one?.scrollIntoView({ block: "nearest" });
  if (document.activeElement?.matches("[data-cell]")) on?.focus();
  remember();
}

function toggleRules() {
  view.rules = !view.rules;
  drawLeft();
}

/** Puts the current item into the address. */
function remember() {
  const { item } = current();
  const query = new URLSearchParams(single ? {} : { ...boot.filters, item: item.id });
  if (view.pane) query.set("candidate", view.pane + 1);
  if (view.row) query.set("criterion", view.row + 1);
  const search = query.size ? `?${query}` : "";
  if (search !== location.search) {
    clearTimeout(remember.timer);
    remember.timer = setTimeout(() => history.replaceState(null, "", `${location.pathname}${search}`), 50);
  }
}

function drawActions() {
  const record = current();
  const item = record?.item;
  const open = record && waits(record) && !item.closed;
  document.body.classList.toggle("scoring", Boolean(view.draft)); // narrow windows show Save in the bar
  document.body.classList.toggle("own-scores", Boolean(open && isForm(record)));
  const off = {
    approve: !open || item.missing.length > 0,
    correct: !open,
    reject: !open,
    second: !open || item?.second,
    rerun: !item || item.no_rerun || item.rerun_problem || (record.decided !== null && !DECIDED.has(record.decided)),
    skip: !open || single,
    undo: !undoable(),
  };
  for (const one of document.querySelectorAll("[data-action]")) one.setAttribute("aria-disabled", String(Boolean(off[one.dataset.action])));
  document.querySelector("[data-action=rerun]").title = item?.rerun_problem ?? "";
  byId("approve-why").textContent = open && item.missing.length ? whyNot(item) : "";
}

const whyNot = (item) => t(item.blind ? "review.own_first" : item.person ? "review.by_hand" : "review.blocked", { what: missingWords(item) });

function drawProgress() {
  if (!progress || single) return;
  const others = progress.others ?? 0;
  const total = progress.waiting + progress.decided + others;
  const typical = durations.length >= 5 ? [...durations].sort((a, b) => a - b)[durations.length >> 1] : null;
  byId("progress-text").textContent = [
    t("review.decided", { n: progress.decided, total }),
    typical === null || !progress.waiting ? t("review.waiting", { n: progress.waiting }) : t("review.left", { n: Math.max(1, Math.round((typical * progress.waiting) / 60000)) }),
    others && t("review.others_wait", { n: others }),
  ].filter(Boolean).join(" · ");
  byId("progress-bar").max = Math.max(1, total);
  byId("progress-bar").value = progress.decided;
}

function drawEmpty() {
  itemBox.hidden = true;
  byId("empty").hidden = false;
  drawActions();
  apart("empty", "draw", { progress, elsewhere, skipped: skipped.size, sitting });
}

// --- the trail -----------------------------------------------------------------------------------------------------

function put(item, index = trail.length) {
  const known = records.get(item.id);
  if (known && trail.includes(item.id)) return known;
  const record = { item, decided: null, delivered: false, revealed: false, ready: false, pressed: null };
  records.set(item.id, record);
  trail.splice(index, 0, item.id);
  if (index <= at) at += 1;
  while (at > KEPT) {
    records.delete(trail.shift());
    at -= 1;
  }
  return record;
}

function takeOut(id) {
  records.delete(id);
  const index = trail.indexOf(id);
  if (index < 0) return;
  trail.splice(index, 1);
  if (index <= at) at -= 1;
}

const openAhead = () => trail.filter((id, index) => index > at && isOpen(records.get(id)));

async function refill(first = null) {
  if (single || fetching || (exhausted && !first) || openAhead().length >= LOW) return;
  fetching = fetchMore(first);
  const came = await fetching;
  fetching = null;
  if (!came) return;
  if (byId("said").textContent === t("said.no_next")) say("");
  follow();
}

/** Shows the next item if the current one is decided, unless a dialog about it is open. */
function follow() {
  if (!spent && current() && !itemBox.hidden) return;
  if (current() && document.querySelector("dialog[open]")) setTimeout(follow, 300);
  else advance(null, { unasked: Boolean(current()) && !itemBox.hidden });
}

async function fetchMore(first) {
  const query = new URLSearchParams({ ...boot.filters, desk, limit: BUFFER });
  const holding = trail.filter((id) => isOpen(records.get(id)));
  const travelling = outbox.entries().filter((entry) => entry.verb !== "undo").map((entry) => entry.id);
  query.set("after", [...new Set([...holding, ...travelling])].join(","));
  if (first) query.set("first", first);
  try {
    const answer = await call(`/api/review/next?${query}`);
    if (!outbox.entries().some((entry) => entry.verb !== "rerun")) progress = answer.progress;
    elsewhere = answer.elsewhere;
    const before = trail.length;
    const items = first ? answer.items.toSorted((a, b) => (b.id === first) - (a.id === first)) : answer.items;
    for (const item of items) {
      const known = records.get(item.id);
      if (known && known.decided !== null) continue; // decided here, and not sent yet
      skipped.delete(item.id);
      put(item);
    }
    const coming = items.map((item) => dress(item));
    if (!current()) await coming[0];
    exhausted = trail.length === before;
    dry = exhausted && !holding.length;
    drawProgress();
    return true;
  } catch (error) {
    if (spent && !error.status) warn(t("said.no_next"));
    else if (!current() || itemBox.hidden) alertOf(error);
    exhausted = false;
    later(LOOK_AGAIN_MS);
    return false;
  }
}

function later(ms) {
  clearTimeout(lookAgain);
  lookAgain = setTimeout(() => {
    exhausted = false;
    refill();
  }, ms);
}

/** Shows the next open item; the time of the key press is passed on to measure the delay until it is painted. */
function advance(pressed = null, how = {}) {
  let next = trail.findIndex((id, index) => index > at && isOpen(records.get(id)));
  if (next < 0) next = trail.findIndex((id) => isOpen(records.get(id)));
  if (next >= 0) {
    records.get(trail[next]).pressed = pressed;
    return show(next, how);
  }
  if (single) return;
  spent = true;
  if (!dry) {
    exhausted = false; // skipped items come last
    return void refill();
  }
  drawEmpty();
  later(LOOK_AGAIN_MS);
}

function step(by) {
  if (trail[at + by]) return show(at + by);
  if (by > 0) refill();
  say(t("said.end"));
}

/** Shows an item; returns true on success. */
function visit(id) {
  const known = trail.indexOf(id);
  if (known < 0) return status("visited", id, current());
  show(known);
  return true;
}

/** If the server cannot be reached, the old item stays on the page. */
const reveal = (record, changed) => load("verdict_status").then((part) => part.reveal(page, record, changed), () => {});

// --- deciding ------------------------------------------------------------------------------------------------------

/** Returns the current item if it may be decided now; else shows the reason. */
function decidable() {
  const record = current();
  if (!record || itemBox.hidden) return null;
  if (!record.ready) {
    say(t("said.too_soon"));
    return null;
  }
  const state = stateOf(record);
  const why = state !== "pending" ? "not_pending" : record.wished ? "wished" : record.item.closed;
  if (why) {
    say(t(spent && state !== "pending" ? "said.no_next" : `said.${why}`, { state: t(`state.${state}`) }));
    return null;
  }
  return record;
}

const entryOf = (verb, { id, run, what: called }, more = {}) => ({ key: fresh(), id, run, verb, reviewer: boot.reviewer, what: called, ...more });
const named = (item) => ({ id: item.id, run: item.run_id, what: what(item) });

function decide(record, verb, state, more = {}, pressed = null) {
  const { item } = record;
  const draft = begun();
  record.before = record.decided;
  record.decided = state;
  record.delivered = false;
  storage.remove(draftKey(item.id));
  view.draft = null;
  const kinds = (record.tallied ??= []);
  tally(kinds.at(-1), -1); // a rerun replaces the decision before it
  kinds.push(item.second ? "opinion" : state);
  tally(kinds.at(-1), 1);
  if (performance.now() - shownAt < IDLE_MS) durations.push(performance.now() - shownAt);
  if (durations.length > 20) durations.shift();
  if (progress && state !== "rerun") {
    progress.waiting = Math.max(0, progress.waiting - 1);
    progress.decided += 1;
  }
  beat();
  const entry = entryOf(verb, named(item), { ...more, draft, active_ms: Math.round(record.active ?? 0) });
  undoLater({ ...named(item), key: entry.key, verb, draft });
  say(t(item.second ? "said.opinion" : `said.${state}`, { what: what(item) }));
  if (single) show(at, { focus: false });
  else advance(pressed);
  drawProgress();
  queueMicrotask(() => outbox.add(entry)); // show the next item first
}

/** Changes the number of decisions of one kind in this session. */
function tally(kind, by) {
  if (kind) sitting[kind] = (sitting[kind] ?? 0) + by;
}

/** Takes an item's last decision out of the session's numbers, and returns its kind. */
function untally(record) {
  const kind = record?.tallied?.pop();
  tally(kind, -1);
  tally(record?.tallied?.at(-1), 1);
  return kind;
}

function undoLater(one) {
  undoShelf().add(one);
  for (const { at: old } of undos().slice(0, -UNDOABLE)) storage.remove(old);
}

function undoable() {
  return undos().length || (single && DECIDED.has(stateOf(current() ?? {})));
}

function approve(event) {
  const record = decidable();
  if (!record) return;
  if (record.item.missing.length) return warn(whyNot(record.item));
  if (begun()) return warn(t("said.unsaved", { save: badge("commit"), leave: badge("leave") }));
  decide(record, "approve", "approved", {}, event?.timeStamp);
}

async function reject() {
  const record = decidable();
  if (!record) return;
  const reason = await askReason({ title: t("reject.title"), about: t(`reject.${formOf(record.item)}`), reasons: boot.reject_reasons[+record.item.person], noteLabel: t("panel.note") });
  if (reason && current() === record && waits(record)) decide(record, "reject", "rejected", reason);
}

async function rerun() {
  const record = current();
  if (!record || itemBox.hidden || !record.ready) return;
  const { item } = record;
  if (item.no_rerun) return warn(t(`rerun.${item.no_rerun}`, { n: item.attempt }));
  if (item.rerun_problem) return warn(t("rerun.problem", { why: item.rerun_problem }));
  if (record.decided === "rerun") return;
  const reason = await askReason({ title: t("rerun.title"), about: t("rerun.about"), reasons: boot.rerun_reasons, noteLabel: t("panel.note_judge") });
  if (reason && current() === record) decide(record, "rerun", "rerun", { ...reason, attempt: item.attempt });
}

function skip(event) {
  const record = decidable();
  if (!record || single) return;
  const { item } = record;
  skipped.add(item.id);
  takeOut(item.id);
  call("/api/review/skip", { desk, id: item.id }).catch(() => {}); // the lease expires
  say(t("said.skipped", { what: what(item) }));
  exhausted = false;
  advance(event?.timeStamp);
}

async function undo() {
  let last = undos().pop();
  const here = current();
  if (single && last?.id !== here?.item.id) last = DECIDED.has(stateOf(here)) ? { ...named(here.item), key: null } : undefined;
  else if (last) storage.remove(last.at);
  if (!last) return say(t("said.nothing_to_undo"));
  if (last.draft) storage.set(draftKey(last.id), last.draft);
  if (last.verb === "second") return own("withdraw", last, records.get(last.id));
  if (last.key === undefined) {
    return (await visit(last.id)) && say(t("said.draft_back", last));
  }
  const unsent = last.key !== null && outbox.drop(last.key);
  const isRerun = last.verb === "rerun";
  if (isRerun && !unsent) return say(t("said.no_undo_rerun", { what: last.what, key: badge("undo") }));
  const record = records.get(last.id);
  const tallied = untally(record);
  if (progress && !isRerun) {
    progress.waiting += 1;
    progress.decided -= 1;
  }
  if (!unsent) outbox.add(entryOf("undo", last, { from: here?.item.id, tallied }));
  const back = unsent || record?.item.state === "pending";
  if (record && back) {
    record.decided = unsent ? record.before ?? null : null;
    bringBack(record);
  }
  if (unsent && !record && !isRerun) return status("undone", { ...last, from: here?.item.id });
  say(t(isRerun ? "said.rerun_dropped" : back ? "said.undone" : "said.undoing", { what: last.what }));
}

/** Shows this item again; the one on the page comes next. */
function bringBack(record) {
  if (single) show(at);
  else {
    takeOut(record.item.id);
    records.set(record.item.id, record);
    trail.splice(at + 1, 0, record.item.id);
    show(at + 1);
  }
  drawProgress();
}

function onResult(entry, result, counted) {
  const record = records.get(entry.id);
  if (counted && !outbox.entries().some((one) => one.verb !== "rerun")) progress = counted;
  const why = [result.error?.problem, result.error?.remedy].filter(Boolean).join(" ");
  if (result.error?.where === "run") return warn(t("said.kept", { what: entry.what, why }));
  if (entry.verb === "rerun") {
    if (!result.ok) untally(record);
    exhausted = false;
    forget((one) => one.key !== entry.key && result.ok && one.id === entry.id); // superseded items cannot be undone
    return status("rerun", entry, result, record);
  }
  if (result.ok) {
    if (entry.verb === "undo") {
      if (record?.item.state !== "pending") status("undone", entry, record);
    } else if (record) {
      record.delivered = true;
      if (single) reveal(record);
    }
    drawProgress();
    return;
  }
  forget((one) => one.key === entry.key);
  if (entry.verb === "undo") tally(entry.tallied, 1);
  else untally(record);
  if (entry.draft) storage.set(draftKey(entry.id), entry.draft);
  status("refused", entry, record, why);
}

// --- correcting ----------------------------------------------------------------------------------------------------

function correct() {
  const record = decidable();
  if (!record) return;
  if (!view.draft) {
    view.draft = { ...emptyForm(), values: { ...record.own } };
    drawRight();
  }
  const wanted = record.item.missing[0];
  const row = wanted ? rowOf(record.item, wanted[1]) : view.row;
  fieldAt(row, wanted ? wanted[0] : view.pane)?.focus();
}

const keepDraft = () => storage.set(draftKey(current().item.id), { ...view.draft, kept: undefined });
/** Returns the draft, if it is not empty. */
const begun = () => (view.draft && (view.draft.note || Object.keys(view.draft.values).length) ? view.draft : undefined);
const writing = () => document.querySelector("dialog[open]") || (view.draft && isField(document.activeElement));

function beforeOf(row, pane) {
  const { item } = current();
  return row < 0 ? shownScore(item.panes[pane].judged) : worded(item.criteria[row], item.criteria[row].cells[pane]?.judged);
}

function changeScore(row, pane, text) {
  if (!view.draft) return; // decided, and the next has not arrived
  const key = `${row}.${pane}`;
  const same = text.trim() === beforeOf(row, pane) || (text.trim() === "" && beforeOf(row, pane) === "–");
  if (same) delete view.draft.values[key];
  else view.draft.values[key] = text;
  const field = fieldAt(row, pane);
  field?.classList.toggle("changed", !same);
  field?.removeAttribute("aria-invalid");
  if (row >= 0) own("foresee", pane);
  const first = byId("correct-reason")?.options[0];
  if (first) first.textContent = t(derivedReason());
  byId("correct-error").textContent = "";
  keepDraft();
}

/** Accepts a digit or a word on a scale with labels. */
const numberIn = (text, scale) => scale?.labels.find(([word], place) => [word.toLowerCase(), `${place + 1}`].includes(text.trim().toLowerCase()))?.[1] ?? (/^\s*[-+]?\d+([.,]\d+)?\s*$/.test(text) ? Number(text.replace(",", ".")) : NaN);

function derivedReason() {
  const { item } = current();
  const seen = new Set();
  for (const [key, text] of Object.entries(view.draft?.values ?? {})) {
    const [row, pane] = cellOf(key);
    const before = row < 0 ? item.panes[pane].judged : item.criteria[row].cells[pane]?.judged;
    const now = numberIn(text, item.criteria[row]) / (row < 0 ? 100 : 1);
    seen.add((before ?? null) === null ? "missing" : Math.sign(now - before));
  }
  if (item.person) return "correct.graded";
  if (seen.has(1)) return seen.has(-1) ? "correct.both_ways" : "correct.too_low";
  return seen.has(-1) || !seen.has("missing") ? "correct.too_high" : "correct.missing";
}

function saveCorrection(event) {
  return own("save", event);
}

/** Loads a script of this folder when it is first needed. */
const load = (file) => import(`./${file}.js`).catch((cause) => {
  throw new Error(document.body.dataset.offline, { cause });
});
/** Calls a function of such a script. */
const apart = (file, name, ...said) => load(file).then((part) => part[name](page, ...said), alertOf);
/** Handles answers of the server other than a plain success. */
const status = (name, ...said) => apart("verdict_status", name, ...said);
/** Calls a function of a script, unless another item is shown when the script has loaded. */
const here = (file, name, ...said) => {
  const record = current();
  return load(file).then((part) => record && current() === record && part[name](page, ...said), alertOf);
};
const turnWay = (way) => void here("responses", "turn", way);
const around = (name, ...said) => here("page_frame", name, ...said);
/** For blind items, forms and long responses; called directly once loaded. */
const own = (name, ...said) => (page.own ? page.own[name](page, ...said) : here("blind_verdict", name, ...said));
const page = { wide, travels: (id) => outbox.entries().some((entry) => entry.id === id), asStored, drawLeft, drawSelectedReason, dress, redraw, forgetAhead, decidable, decide, undoLater, named, derivedReason, focusItem, center, lit: (span) => light(left, current().item, view, span), put, takeOut, bringBack, writing, busy: () => writing() || begun(), visit, refill, drawProgress, drawActions, view, current, numberIn, say, fieldAt, changeScore, select, alertOf, badge, show: (by = 0, how = {}) => show(at + by, how), next: () => at + 1, stateOf, itemBox, draftKey, drawHeading: drawTop };

function discardDraft() {
  if (!view.draft) return;
  if (begun()) {
    undoLater({ ...named(current().item), draft: view.draft });
    drawActions();
    say(t("said.discarded", { key: badge("undo") }));
  }
  storage.remove(draftKey(current().item.id));
  view.draft = isForm(current()) ? emptyForm() : null;
  drawRight();
  focusItem();
}

function leave() {
  const field = document.activeElement;
  if (field?.matches("input, select, textarea")) {
    if (view.draft && !isForm(current()) && !begun()) return discardDraft();
    field.blur();
    focusItem();
    return undefined;
  }
  if (view.draft && !isForm(current())) return discardDraft();
  return false;
}

function moveCell(rows, panes) {
  if (itemBox.hidden) return false;
  select(view.row + rows, view.pane + panes);
  return undefined;
}

itemBox.addEventListener("keydown", (event) => {
  const key = event.target.dataset?.field;
  if (!key || event.isComposing) return;
  const [row, pane] = cellOf(key);
  if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    if (!event.repeat) saveCorrection(event);
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    own("stepField", row, pane, event.key === "ArrowDown");
  }
});

// --- start ---------------------------------------------------------------------------------------------------------

const outbox = new Outbox({
  onResult,
  onElsewhere({ id, verb, tried }) { // undone or rerun by another tab
    const record = records.get(id);
    if (record && (verb === "undo" || !tried) && !page.travels(id)) reveal(record, true);
  },
  onState({ unsent, trouble, kept }) {
    const place = byId("unsent");
    place.hidden = !(trouble && unsent) && kept;
    place.textContent = kept ? t(`said.${trouble ?? "unsent"}`, { n: unsent }) : t("said.no_storage");
    place.dataset.unsent = unsent;
  },
});

const actions = {
  approve, correct, reject, rerun, skip, undo,
  second() {
    const record = decidable();
    if (!record) return;
    record.wished = true;
    apart("blind_verdict", "second", record).finally(() => { record.wished = false; });
  },
  score: (event) => (view.draft ? own("scoreByKey", event.key) : false),
  top: () => (view.draft ? own("scoreByKey", null) : false),
  commit: (event) => (view.draft ? saveCorrection(event) : false),
  row_down: () => moveCell(1, 0),
  row_up: () => moveCell(-1, 0),
  pane_right: () => moveCell(0, 1),
  pane_left: () => moveCell(0, -1),
  both: () => turnWay("both"),
  source: () => turnWay("source"),
  wrap: () => turnWay("wrap"),
  evidence: () => around("nextEvidence"),
  rules: toggleRules,
  report: () => { const report = right.querySelector("details.report"); if (report) report.open = !report.open; },
  next: () => step(1),
  previous: () => step(-1),
  trial_next: () => around("visitTrial", 1),
  trial_previous: () => around("visitTrial", -1),
  go_runs: () => location.assign("/runs"),
  go_run: () => current() && location.assign(`/runs/${encodeURIComponent(current().item.run_id)}`),
  note: () => (view.draft ? byId("correct-note").focus() : false),
  leave,
  help: () => openDialog("help"),
};
bindKeys(boot.keys, actions);

for (const one of document.querySelectorAll("[data-action]")) {
  const { action } = one.dataset;
  const mark = one.querySelector("kbd");
  if (mark) mark.textContent = badge(action);
  one.addEventListener("click", (event) => actions[action](event));
}
byId("remap")?.addEventListener("click", () => apart("custom_keys", "open", boot.keys));
byId("again").addEventListener("click", () => {
  exhausted = false;
  skipped.clear();
  refill();
});
addEventListener("pagehide", () => {
  navigator.sendBeacon?.("/api/review/leave", new Blob([JSON.stringify({ desk })], { type: "application/json" }));
});
addEventListener("pageshow", (event) => event.persisted && location.reload());
addEventListener("assay:reviewer", () => current() && show(at, { focus: false }));

async function begin() {
  const asked = new URLSearchParams(location.search);
  const start = { pane: +asked.get("candidate") - 1, row: +asked.get("criterion") - 1 };
  if (single) {
    const item = await asStored(single);
    const record = put(item);
    record.revealed = !item.hidden;
    await dress(item);
    show(0, { focus: false });
  } else {
    const unsent = new Set(outbox.entries().map((entry) => entry.id));
    let first = asked.get("item");
    if (first && unsent.has(first)) first = null;
    await refill(first).catch(() => {});
    if (first && !records.has(first)) await visit(first);
  }
  if (start.pane > 0 || start.row > 0) select(Math.max(0, start.row), Math.max(0, start.pane));
  outbox.tell();
  outbox.pump();
  itemBox.classList.toggle("wrapped", view.wrap);
  if (storage.keys("assay.outbox").some((key) => !key.startsWith(BOX))) apart("dialogs", "look", outbox);
}
begin().catch(alertOf);
