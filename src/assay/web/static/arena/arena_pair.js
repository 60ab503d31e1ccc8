// A pair in the arena: two responses without names, a vote, then the authors; the next pair is fetched ahead.
//
// A vote has an idempotency key and is sent until the server answers, so that it counts once.
// A page runs in a frame only while it is switched on; removing the frame from the document ends it.

import "../frame/page.js";
import { boot, byId, call, fresh, h, painted, t, visible } from "../frame/dom.js";
import { bindKeys, withOwnKeys } from "../frame/keys.js";

const IDLE_MS = 120_000;
const LOOK_AGAIN_MS = 4000;
const RETRY_MS = [400, 1500, 4000];
const GRABS = 5; // times that a page may take the keyboard unasked before it is stopped
const MESSAGES = 200; // messages that a page may send before it is stopped
const SIDES = ["A", "B"];
const CHOICES = { better_a: "a", better_b: "b", equal: "equal", both_bad: "both_bad" };

boot.keys = withOwnKeys(boot.keys);
const api = `/api/arena/${encodeURIComponent(boot.run)}`;
const sides = [byId("side-0"), byId("side-1")];

let item = boot.item;
let upcoming = null; // a promise of the pair after this one
let busy = false; // something about this pair is on its way
let ready = false; // the pair is painted
let cast = 0; // votes of this sitting
const view = [];
const running = [null, null];
const grabs = [0, 0];
const told = [0, 0];

function say(text, { alert = false } = {}) {
  byId("said").replaceChildren(h("span", { class: alert ? "alert" : "" }, text));
}
const complain = (error) => say(error.said?.problem ?? error.message, { alert: true });
const pairOf = (one = item) => ({ task: one.task, trial: one.trial, pair: one.pair, reviewer: one.reviewer });

// --- active time: the page is in front and in use

let activeMs = 0;
let since = null;
let lastSign = 0;
const counts = () => document.visibilityState === "visible" && document.hasFocus();
function settle(now = performance.now()) {
  if (since !== null) activeMs += Math.max(0, Math.min(now, lastSign + IDLE_MS) - since);
  since = counts() ? now : null;
}
function sign() {
  const now = performance.now();
  settle(now);
  lastSign = now;
}
for (const name of ["keydown", "pointerdown", "pointermove", "wheel", "scroll"]) document.addEventListener(name, sign, { passive: true, capture: true });
document.addEventListener("visibilitychange", () => settle());

// --- drawing

function draw() {
  ready = false;
  byId("bout").hidden = !item;
  byId("empty").hidden = Boolean(item);
  if (!item) {
    byId("empty-about").textContent = cast ? `${t("arena.done_about")} ${t("arena.own", { n: cast })}` : byId("empty-about").textContent;
    byId("empty-title").focus();
    return drawButtons();
  }
  document.title = `${item.thing} · ${t("arena.title")} · Assay`;
  byId("thing").replaceChildren(...visible(item.thing));
  byId("trial").textContent = t("arena.trial", { k: item.trial, of: item.trials });
  byId("asked-text").replaceChildren(
    ...(item.context ? [h("h3", {}, t("arena.rules")), h("p", { class: "prose" }, visible(item.context))] : []),
    ...item.prompt.map((turn) => h("div", { class: "turn" }, item.prompt.length > 1 ? h("b", {}, turn.role) : null, h("p", { class: "prose" }, visible(turn.content)))),
  );
  byId("asked").hidden = !item.context && !item.prompt.length;
  sides.forEach((_, side) => {
    stop(side);
    grabs[side] = 0;
    told[side] = 0;
    view[side] = item.panes[side].page ? "page" : "source";
    drawSide(side);
  });
  drawReveal();
  drawButtons();
  painted().then(() => {
    ready = true;
    activeMs = 0;
    since = null;
    lastSign = performance.now();
    settle(lastSign);
  });
}

function drawSide(side) {
  const pane = item.panes[side];
  const name = SIDES[side];
  const names = item.reveal?.names;
  const choose = (what) => h("button", { type: "button", "aria-pressed": String(view[side] === what), on: { click: () => show(side, what) } }, t(what === "page" ? "arena.preview" : "arena.source"));
  const head = h("div", { class: "side-head" },
    h("h2", {}, name, names ? h("span", { class: "who-wrote" }, visible(names[side])) : null),
    pane.page ? h("div", { class: "switch" }, choose("page"), choose("source")) : null,
    running[side] ? h("button", { type: "button", class: "button small", "data-stop": side, on: { click: () => { stop(side); drawSide(side); drawButtons(); refocus(side); } } }, t("arena.stop_page")) : null);
  sides[side].classList.toggle("chosen", item.reveal?.choice === name.toLowerCase());
  const onPage = view[side] === "page";
  const notes = [pane.truncated && t("arena.truncated"), onPage && pane.page_cut && t("arena.page_cut"), !onPage && pane.cut && t("arena.cut"), !onPage && pane.names_hidden && t("arena.hidden")].filter(Boolean);
  if (running[side]?.isConnected && onPage) {
    sides[side].firstChild.replaceWith(head); // a frame that is moved begins anew
    return;
  }
  const body = onPage ? h("div", { class: "stage" }, running[side] ?? inert(side)) : source(pane);
  sides[side].replaceChildren(head, body, ...notes.map((text) => h("p", { class: "note" }, text)));
}

function source(pane) {
  const looksLikeCode = pane.page || /[{};<>]|^\s{2,}\S/m.test(pane.text);
  return h("div", { class: looksLikeCode ? "source" : "source is-prose", dir: looksLikeCode ? null : "auto", tabindex: 0, role: "region", "aria-label": t("arena.source") }, visible(pane.text));
}

function inert(side) {
  return h("div", { class: "inert" }, h("p", {}, t("arena.inert")),
    item.panes[side].names_hidden ? h("p", { class: "names" }, t("arena.inert_names")) : null,
    h("button", { type: "button", class: "button", "data-start": side, on: { click: () => start(side) } }, t("arena.run_page"), h("span", { class: "sr" }, ` ${SIDES[side]}`)));
}

function drawReveal() {
  const box = byId("reveal");
  const reveal = item.reveal;
  box.hidden = !reveal;
  if (!reveal) return box.replaceChildren();
  const score = (value) => String(Math.round(value * 1000) / 10);
  const agrees = (one) => (one.agrees === null ? h("span", { class: "soft" }, t("arena.no_order")) : h("span", { class: one.agrees ? "yes" : "no" }, one.agrees ? "✓ " : "✕ ", t(one.agrees ? "arena.agrees" : "arena.disagrees")));
  const table = h("div", { class: "scroll" }, h("table", {}, h("caption", { class: "sr" }, t("arena.judges")),
    h("thead", {}, h("tr", {}, ["arena.judge", null, null, "arena.says", "arena.with_you"].map((key, place) => h("th", { scope: "col" }, key ? t(key) : SIDES[place - 1])))),
    h("tbody", {}, reveal.judges.map((one) => h("tr", {},
      h("th", { scope: "row" }, visible(one.judge), one.waits ? h("span", { class: "soft small" }, ` (${t("arena.waits")})`) : null),
      h("td", {}, score(one.a)), h("td", {}, score(one.b)), h("td", {}, t(`arena.says.${one.says}`)), h("td", {}, agrees(one)))))));
  box.replaceChildren(
    h("h2", { id: "reveal-title", tabindex: -1 }, t("arena.voted", { choice: t(`arena.choice.${reveal.choice}`) }), reveal.names ? [" ", visible(t("arena.names", { a: reveal.names[0], b: reveal.names[1] }))] : null),
    ...(reveal.judges.length ? [table] : [h("p", { class: "soft" }, t("arena.judge_none"))]),
    ...reveal.telling.flatMap((words, side) => (words.length ? [h("p", { class: "small soft" }, visible(t("arena.telling", { side: SIDES[side], words: words.join(", ") })))] : [])),
  );
}

function drawButtons() {
  const open = Boolean(item) && !item.reveal && !busy;
  const can = { better_a: open, better_b: open, equal: open, both_bad: open, skip: open, undo: !busy, next: Boolean(item?.reveal), preview: Boolean(item?.panes.some((pane) => pane.page)), help: true };
  for (const button of document.querySelectorAll("footer [data-action]")) button.setAttribute("aria-disabled", String(!can[button.dataset.action]));
  document.querySelector("footer [data-action=preview] span").textContent = t(running.some(Boolean) ? "arena.do.preview_stop" : "arena.do.preview");
}

// --- voting

/** Repeats a request until the server answers; a refusal is an answer. */
async function surely(path, body) {
  for (let tried = 0; ; tried += 1) {
    try {
      return await call(path, body);
    } catch (error) {
      if (error.status > 0 && error.status < 500) throw error;
      say(t("arena.said.offline"), { alert: true });
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(tried, RETRY_MS.length - 1)]));
    }
  }
}

async function vote(choice) {
  if (!item || busy || !ready) return;
  if (item.reveal) return say(t("arena.said.voted_already"));
  settle();
  const voted = item;
  busy = true;
  say(t("arena.said.sending"));
  drawButtons();
  try {
    const answer = await surely(`${api}/votes`, { ...pairOf(voted), key: fresh(), choice, active_ms: Math.round(activeMs) });
    voted.reveal = answer.reveal;
    voted.panes = answer.panes ?? voted.panes;
    cast += 1;
  } catch (error) {
    busy = false;
    drawButtons();
    return complain(error);
  }
  busy = false;
  drawSide(0);
  drawSide(1);
  drawReveal();
  drawButtons();
  byId("said").replaceChildren();
  byId("reveal-title").focus();
  byId("reveal").scrollIntoView({ block: "nearest" });
  fetchNext();
}

const address = (one) => new URLSearchParams({ task: one.task, trial: one.trial, pair: one.pair });

function fetchNext() {
  const wanted = call(`${api}/next?${address(item)}`);
  wanted.catch(() => {});
  upcoming = wanted;
}

async function next() {
  if (!item || busy) return;
  if (!item.reveal) return say(t("arena.said.vote_first"));
  busy = true;
  if (!upcoming) fetchNext();
  try {
    const answer = await upcoming;
    goTo(answer.pair);
  } catch (error) {
    complain(error);
  }
  upcoming = null;
  busy = false;
  drawButtons();
}

function goTo(pair, { push = true } = {}) {
  item = pair;
  upcoming = null;
  if (push) history.pushState(null, "", pair ? pair.address : location.pathname);
  draw();
  if (!item) return lookAgain();
  say(t("arena.said.next", { thing: item.thing, k: item.trial }));
  byId("thing").focus();
  scrollTo(0, 0);
}

async function skip() {
  if (!item || busy || !ready) return;
  if (item.reveal) return next();
  busy = true;
  drawButtons();
  try {
    const answer = await surely(`${api}/skip`, pairOf());
    if (answer.pair) goTo(answer.pair);
    say(t("arena.said.skipped"));
  } catch (error) {
    complain(error);
  }
  busy = false;
  drawButtons();
}

async function undo() {
  if (busy) return;
  busy = true;
  drawButtons();
  try {
    const answer = await surely(`${api}/undo`, { key: fresh(), reviewer: item?.reviewer ?? boot.reviewer, ...(item?.reveal ? { vote: item.reveal.vote } : {}) });
    cast = Math.max(0, cast - 1);
    goTo(answer.pair, { push: answer.pair.address !== item?.address });
    say(t("arena.said.undone"));
  } catch (error) {
    if (error.status === 409) say(t("arena.said.nothing_to_undo"));
    else complain(error);
  }
  busy = false;
  drawButtons();
}

/** Checks again while the run continues, because it may produce a pair. */
async function lookAgain() {
  if (item) return;
  try {
    const answer = await call(`${api}/next`);
    if (answer.pair && !item) return goTo(answer.pair);
  } catch {
    /* repeated soon */
  }
  setTimeout(lookAgain, LOOK_AGAIN_MS);
}

// --- pages

function show(side, what) {
  if (what === "source") stop(side);
  view[side] = what;
  drawSide(side);
  drawButtons();
  sides[side].querySelector("[aria-pressed=true]")?.focus();
}

async function start(side) {
  const shown = item;
  if (!shown?.panes[side].page || running[side]) return;
  try {
    const answer = await call(`${api}/previews`, { ...pairOf(shown), side });
    if (item !== shown || running[side]) return;
    const asked = sides[side].contains(document.activeElement);
    running[side] = h("iframe", { sandbox: boot.sandbox, src: answer.address, title: t("arena.frame", { side: SIDES[side] }), referrerpolicy: "no-referrer", allow: "" });
    view[side] = "page";
    drawSide(side);
    drawButtons();
    if (asked) refocus(side);
  } catch (error) {
    complain(error);
  }
}

/** Moves the focus to the opposite button, because the pressed one is gone. */
const refocus = (side) => sides[side].querySelector("[data-stop], [data-start]")?.focus();

function stop(side) {
  running[side]?.remove();
  running[side] = null;
}

function preview() {
  if (!item?.panes.some((pane) => pane.page)) return say(t("arena.said.no_preview"));
  if (running.some(Boolean)) {
    for (const side of [0, 1]) {
      if (!running[side]) continue;
      stop(side);
      drawSide(side);
    }
    return drawButtons();
  }
  return Promise.all([start(0), start(1)]);
}

// A page must not take the keyboard focus by itself: without a click on it, the focus returns.
let pointedAt = null;
document.addEventListener("pointerover", (event) => { pointedAt = event.target instanceof HTMLIFrameElement ? event.target : null; }, true);
addEventListener("blur", () => setTimeout(() => {
  const side = running.indexOf(document.activeElement);
  if (side < 0) return;
  if (pointedAt === running[side]) return say(t("arena.in_frame"));
  grabs[side] += 1;
  running[side].blur();
  byId("thing").focus({ preventScroll: true });
  if (grabs[side] < GRABS) return;
  stop(side);
  drawSide(side);
  drawButtons();
  say(t("arena.greedy"), { alert: true });
}));

// A page has no reason to send messages; one that keeps sending is stopped.
addEventListener("message", (event) => {
  const side = running.findIndex((frame) => frame !== null && frame.contentWindow === event.source);
  if (side < 0 || (told[side] += 1) < MESSAGES) return;
  stop(side);
  drawSide(side);
  drawButtons();
  say(t("arena.noisy"), { alert: true });
});

function source_() {
  if (!item) return;
  const to = view.includes("page") ? "source" : "page";
  for (const side of [0, 1]) if (item.panes[side].page) show(side, to);
}

const actions = {
  better_a: () => vote(CHOICES.better_a),
  better_b: () => vote(CHOICES.better_b),
  equal: () => vote(CHOICES.equal),
  both_bad: () => vote(CHOICES.both_bad),
  skip,
  undo,
  preview,
  source: source_,
  pane_left: () => sides[0].focus(),
  pane_right: () => sides[1].focus(),
  next,
  go_arena: () => location.assign("/arena"),
  go_ranking: () => location.assign(`/arena/${encodeURIComponent(boot.run)}/ranking`),
  go_runs: () => location.assign("/runs"),
  help: () => byId("help").showModal(),
};
bindKeys(boot.keys, actions);
for (const button of document.querySelectorAll("footer [data-action]")) {
  const key = boot.keys.find((one) => one.action === button.dataset.action);
  button.querySelector("kbd").textContent = key.badge;
  button.addEventListener("click", () => button.getAttribute("aria-disabled") === "true" || actions[button.dataset.action]());
}
addEventListener("popstate", () => location.reload());
addEventListener("assay:reviewer", () => location.reload()); // sides belong to a person

draw();
if (item) item.reveal && fetchNext();
else lookAgain();
