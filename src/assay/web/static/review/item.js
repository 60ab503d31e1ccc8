// Draws one assessment: heading, responses, grades. Reports clicks through callbacks.

import { boot, button, glyph, h, quoteButton, t, visible } from "../frame/dom.js";

const MAX_LINES = 1500;
const BREAKS = /\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]/g;

export const shownScore = (score) => (score === null ? "–" : String(Math.round(score * 1000) / 10));
export const shownRaw = (raw) => (raw === null || raw === undefined ? "–" : String(Math.round(raw * 100) / 100));
/** Returns a raw score, as its label if the criterion's scale has labels. */
export const worded = (criterion, raw) => criterion?.labels.find((one) => Math.abs(one[1] - raw) < 1e-6 && raw !== null)?.[0] ?? shownRaw(raw);
export const what = (item) => `${item.thing} · ${t("review.trial", item)}`;
export const shortLabel = (pane) => pane.label.replace(/^Candidate (?=[A-Z]{1,2}$)/, "");
/** Returns the row of a criterion, -1 if there is none of that name. */
export const rowOf = (item, name) => item.criteria.findIndex((criterion) => criterion.name === name);
const isOwn = (item) => item.blind || item.person;
export const calledBy = (pane) => (pane.name ? `${pane.label} · ${pane.name}` : pane.label);

export function stateMark(state, text) {
  return h("span", { class: `state ${state}` }, glyph(boot.glyphs[state] ?? "·"), text);
}

/** Draws the heading: title, trials, state. */
export function drawHeading(item, view) {
  const strip = item.trials.map((trial) => {
    const now = trial.k === item.k;
    const kept = view.trialState(trial);
    const state = kept === "pending" && !trial.id ? "planned" : kept;
    const word = boot.texts[trial.id ? `state.${state}` : `trial.${kept}`] ?? state;
    const inside = [String(trial.k), glyph(boot.glyphs[state] ?? "", state)];
    const name = `${t("review.trial", { k: trial.k, of: item.of })}, ${word}`;
    return h("li", {}, trial.id && !now
      ? h("a", { href: `/assessments/${trial.id}`, class: "trial", "aria-label": name, title: name, on: { click: (event) => view.onTrial(event, trial) } }, inside)
      : h("span", { class: `trial${now ? " now" : ""}`, "aria-current": now && "true", "aria-label": name, role: "img", title: name }, inside));
  });
  return [
    h("div", { class: "named" },
      h("h1", { id: "thing", tabindex: -1 }, visible(item.thing)),
      h("p", { class: "of" }, t("review.trial", item), item.attempt > 1 ? ` · ${t("review.attempt", { n: item.attempt })}` : "", item.second || item.closed ? ` · ${t(`review.closed.${item.closed || "second"}`)}` : "",
        item.state === "pending" ? null : [" · ", stateMark(item.state, t(`state.${item.person && item.state === "corrected" ? "graded" : item.state}`))])),
    item.of > 1 && h("ol", { class: "strip", "aria-label": t("review.trials") }, strip),
  ];
}

/** Draws the responses, of which one is visible at a time, and the task. */
export function drawResponses(item, view) {
  const tab = (name, kind, on, run, ...children) =>
    button(kind, run, { role: "tab", id: `tab-${name}`, "aria-selected": String(on), "aria-controls": "pane", tabindex: on ? 0 : -1 }, children);
  const tabs = item.panes.map((pane, place) =>
    tab(place, "tab", view.pane === place && !view.rules, () => view.onPane(place), h("span", {}, visible(calledBy(pane))), isText(item, place) || item.panes.length > 2 ? null : h("small", {}, t("review.lines", { n: pane.lines }))));
  const rules = tab("rules", "tab rules", view.rules, () => view.onRules(), t("review.rules"), h("kbd", {}, view.badge("rules")));
  const body = h("div", { id: "pane", role: "tabpanel", "aria-labelledby": view.rules ? "tab-rules" : `tab-${view.pane}`, class: "pane" },
    view.rules ? view.later("task", item) : view.both ? view.reading.drawBoth(item, view) : drawResponse(item, view));
  const way = (action, on, text) => button("way-of", () => view.onWay(action), { "aria-pressed": String(on) }, t(text), h("kbd", {}, view.badge(action)));
  const ways = view.rules ? null : h("div", { class: "ways-of" },
    isText(item, view.pane) ? way("source", view.source, "review.source") : way("wrap", view.wrap, "review.wrap"),
    item.panes.length > 1 && way("both", view.both, "review.both"));
  return [h("div", { class: "tabs-row" }, h("div", { class: "tabs", role: "tablist", "aria-label": t("review.code") }, tabs, rules), ways), body];
}

const isText = (item, place) => item.panes[place].form !== "code";
/** Draws one response: text rendered, unless its source is wanted or the script for texts is missing, and code by lines. */
export const drawResponse = (item, view, place = view.pane) => (view.reading && isText(item, place) && !view.source ? view.reading.drawText(item, view, place) : drawCode(item, view, place));

/** Returns lines of tokens `[class or "", text]`, coloured by marks such as `3w1_5f` from the server. */
export function paint(text, marks = "") {
  const lines = [[]];
  let rest = 0;
  for (const [, length, kind] of [...marks.matchAll(/(\d+)(\w)/g), [0, Infinity, "_"]]) {
    const [first, ...others] = text.slice(rest, rest += +length).split("\n");
    const token = (piece) => (piece ? [[kind === "_" ? "" : kind, piece]] : []);
    lines.at(-1).push(...token(first));
    lines.push(...others.map(token));
  }
  if (text.endsWith("\n")) lines.pop();
  return lines;
}

function drawCode(item, view, at) {
  const pane = item.panes[at];
  const text = pane.text.replace(BREAKS, "\n");
  if (!text) return h("p", { class: "soft inset" }, t("review.empty_response"));
  const lines = paint(text, pane.marks);
  const shown = view.whole ? lines : lines.slice(0, MAX_LINES);
  const code = h("code", {});
  const quoted = quotedLines(item, at);
  shown.forEach((tokens, place) => {
    const n = place + 1;
    const line = h("span", { class: quoted.has(n) ? "line quoted" : "line", "data-n": n, dir: isText(item, at) && "auto" });
    for (const [kind, piece] of tokens) {
      if (!kind) line.append(...visible(piece));
      else {
        const span = document.createElement("span");
        span.className = kind;
        span.append(...visible(piece));
        line.append(span);
      }
    }
    line.append("\n");
    code.append(line);
  });
  return [
    h("pre", { class: `code d${String(shown.length).length}`, tabindex: 0, "data-pane": at, "aria-label": calledBy(pane), on: { click: (event) => view.onLine(event, item) } }, code),
    pane.cut || shown.length < lines.length ? button("more", () => view.onWhole(), {}, shown.length < pane.lines ? t("review.show_all", { n: pane.lines - shown.length }) : t("review.show_chars", { n: pane.chars })) : null,
    pane.truncated && h("p", { class: "cut" }, t("review.truncated")),
    pane.structured && view.later("structure", pane),
  ];
}

/** Returns the quotations of a cell, evidence first. */
export const quotesOf = (cell) => (cell ? [...cell.evidence, ...cell.reason.filter((part) => typeof part === "object")] : []);

export function quotedLines(item, pane) {
  const lines = new Set();
  for (const criterion of item.criteria) {
    for (const { at } of quotesOf(criterion.cells[pane])) for (let n = at?.[0] ?? 1; n <= (at?.[1] ?? 0); n += 1) lines.add(n);
  }
  return lines;
}

/** Highlights the lines that the selected grade quotes, or only one quotation. */
export function light(root, item, view, only = null) {
  if (root.querySelector("article")) return view.reading.light(root, item, view, only);
  for (const line of root.querySelectorAll(".line.lit")) line.classList.remove("lit");
  const cell = item.criteria[view.row]?.cells[view.pane];
  const spans = only ? [only] : quotesOf(cell).map((quote) => quote.at).filter(Boolean);
  let first = null;
  for (const [from, to] of spans) {
    for (let n = from; n <= to; n += 1) {
      const line = root.querySelector(`[data-pane="${view.pane}"] .line[data-n="${n}"]`);
      line?.classList.add("lit");
      if (line && (first === null || n < +first.dataset.n)) first = line;
    }
  }
  return first;
}

export const card = (name, ...children) => h("section", { class: "card", "aria-labelledby": `${name}-title` }, h("h2", { id: `${name}-title`, class: "quiet" }, t(`review.${name}`)), children);
export const soft = (...children) => h("p", { class: "soft small" }, children);

/** Draws flags, grades, the selected reason, attempts and the report. */
export function drawJudgement(item, view) {
  return [
    drawFlags(item, view),
    card("grades", item.blind && soft(t(view.draft ? "review.blind" : "review.unseen")), soft(item.person && view.draft ? t("review.person") : item.stamp), drawTable(item, view), item.panes.some((pane) => pane.check) && view.later("checks", item)),
    h("section", { class: `card reason${isText(item, 0) ? " text" : ""}`, id: "reason", "aria-label": t("review.said") }, drawReason(item, view)),
    view.draft && drawCorrection(item, view),
    item.attempts.length ? view.later("attempts", item) : null,
    isOwn(item) ? null : drawReport(item, view),
  ];
}

function drawFlags(item, view) {
  const blocked = item.state === "pending" && item.missing.length && formOf(item) === "about" ? t("review.blocked", { what: missingWords(item) }) : null;
  if (!item.flags.length && !blocked) return null;
  return h("section", { class: "card flags", "aria-labelledby": "flags-title" },
    h("h2", { id: "flags-title" }, glyph("▲"), t("review.flags", { n: item.flags.length || 1 })),
    blocked && h("p", { class: "blocked" }, blocked),
    h("ul", {}, item.flags.map((flag) => {
      const row = rowOf(item, flag.criterion);
      return h("li", {}, flag.pane === null ? h("span", {}, visible(flag.detail))
        : button("link", () => view.onCell(row < 0 ? view.row : row, flag.pane), {}, visible(flag.detail)));
    })));
}

export function missingWords({ missing, panes }) {
  const words = missing.slice(0, 2).map(([pane, criterion]) => t(criterion === null ? "review.blocked.pane" : "review.blocked.cell", { criterion, candidate: panes[pane].label }));
  const n = missing.length - 2;
  return [...words, n > 0 && t("review.blocked.more", { n })].filter(Boolean).join("; ");
}

function drawTable(item, view) {
  const head = h("tr", {}, h("th", { scope: "col" }, t("review.criterion")),
    item.panes.map((pane, place) => h("th", { scope: "col", class: place === view.pane && "on", title: calledBy(pane) }, visible(item.panes.length > 6 || !pane.name ? shortLabel(pane) : `${shortLabel(pane)} ${pane.name}`))));
  const rows = item.criteria.map((criterion, row) => h("tr", {},
    h("th", { scope: "row" }, h("span", { title: criterion.guidance || null }, visible(criterion.name)), criterion.weight !== 1 && h("small", { title: t("review.weight", { n: criterion.weight }) }, `×${criterion.weight}`),
      view.draft && h("small", { class: "scale" }, visible(criterion.scale))),
    criterion.cells.map((cell, pane) => h("td", {}, view.draft ? scoreField(item, view, row, pane) : item.blind ? "–" : gradeButton(item, view, criterion, cell, row, pane)))));
  const total = h("tr", { class: "total" }, h("th", { scope: "row" }, t("review.total")),
    item.panes.map((pane, place) => h("td", {}, view.draft ? scoreField(item, view, -1, place) : [h("span", {}, shownScore(pane.score)), was(pane.score, pane.judged, shownScore), own(item, place, null), pane.verdict && h("small", { class: "verdict" }, pane.verdict)])));
  return h("div", { class: "scroll" }, h("table", { class: "grades" }, h("thead", {}, head), h("tbody", {}, rows), h("tfoot", {}, total)));
}

function was(now, before, shown) {
  return now === before || shown(now) === shown(before) ? null : h("small", { class: "was" }, t("review.was", { n: shown(before) }));
}

/** Draws the reviewer's blind score beside the judge's. */
function own(item, pane, criterion) {
  const score = item.own?.find((one) => one[0] === pane && one[1] === (criterion?.name ?? null));
  return score && h("small", { class: "own" }, t("review.own", { n: criterion ? worded(criterion, criterion.low + score[2] * (criterion.high - criterion.low)) : shownScore(score[2]) }));
}

function gradeButton(item, view, criterion, cell, row, pane) {
  const on = row === view.row && pane === view.pane;
  const flagged = item.flags.some((flag) => flag.pane === pane && flag.criterion === criterion.name);
  const lost = quotesOf(cell).some((quote) => !quote.at);
  const raw = cell === null || cell.raw === null ? t("review.no_grade") : worded(criterion, cell.raw);
  const name = `${criterion.name}, ${item.panes[pane].label}: ${raw}`;
  return button(`cell${on ? " on" : ""}${cell?.score === null || !cell ? " none" : ""}`, () => view.onCell(row, pane),
    { "aria-pressed": String(on), "aria-label": name, tabindex: on ? 0 : -1, "data-cell": `${row}.${pane}` },
    (flagged || lost) && glyph("▲", "mark"), raw, cell && was(cell.raw, cell.judged, (raw) => worded(criterion, raw)), own(item, pane, criterion));
}

function scoreField(item, view, row, pane) {
  const key = `${row}.${pane}`;
  const criterion = item.criteria[row];
  const cell = criterion?.cells[pane];
  const before = row < 0 ? shownScore(item.panes[pane].judged) : worded(criterion, cell?.judged);
  const value = view.draft.values[key];
  const { label } = item.panes[pane];
  const name = row < 0 ? `${t("review.total")}, ${label}` : `${criterion.name}, ${label}, ${criterion.scale}`;
  return h("input", { class: `score${value === undefined ? "" : " changed"}${row === view.row && pane === view.pane ? " on" : ""}`, inputmode: "decimal", autocomplete: "off", spellcheck: "false", "aria-label": name, "data-field": key,
    value: value ?? (before === "–" ? "" : before), on: {
      input: (event) => view.onScore(row, pane, event.target.value),
      focus: (event) => { event.target.select(); view.onField(row, pane); },
    } });
}

export const formOf = (item) => (item.blind ? "blind" : item.person ? "person" : "about");

function drawCorrection(item, view) {
  const reason = h("select", { id: "correct-reason", on: { change: (event) => view.onWords("reason", event.target.value) } },
    ["", "correct.too_high", "correct.too_low", "correct.both_ways", "correct.missing"].map((key) =>
      h("option", { value: key, selected: view.draft.reason === key }, key ? t(key) : t(view.derivedReason()))));
  return h("section", { class: "card correction", "aria-label": t(`do.save.${formOf(item)}`) },
    h("p", { class: "soft small" }, t(`correct.${formOf(item)}`), view.draft.kept ? ` ${t("correct.draft")}` : ""),
    view.later("blind_verdict", item),
    h("div", { class: "fields" },
      isOwn(item) ? null : h("label", {}, t("correct.reason"), reason),
      h("label", { class: "grow" }, t("panel.note"), h("input", { id: "correct-note", value: view.draft.note, on: { input: (event) => view.onWords("note", event.target.value) } }))),
    h("p", { class: "error", id: "correct-error", role: "alert" }),
    h("div", { class: "buttons" },
      button("go", () => view.onSave(), {}, t(`do.save.${formOf(item)}`), h("kbd", {}, view.badge("commit"))),
      button(null, () => view.onDiscard(), {}, t("do.leave"))));
}

/** Draws the reason of the selected grade, with its quotations. */
export function drawReason(item, view) {
  const criterion = item.criteria[view.row];
  const pane = item.panes[view.pane];
  if (!criterion) return null;
  const cell = criterion.cells[view.pane];
  const score = cell?.raw != null ? t("review.of", { n: shownRaw(cell.raw), max: Math.max(criterion.low, criterion.high) }) : t("review.no_grade");
  const guidance = soft(t("review.guidance"), visible(`${criterion.guidance || t("review.no_guidance")} (${criterion.scale})`));
  if (isOwn(item)) return [h("h3", { class: "quiet" }, visible(`${criterion.name} · ${pane.label}`)), guidance];
  const where = (...said) => h("span", { class: "at" }, t(...said));
  const quote = ({ text, at }) => at
    ? quoteButton(text, () => view.onQuote(at), pane.form !== "code" && !view.source ? "" : where(at[0] === at[1] ? "review.at_line" : "review.at_lines", { n: at[0], m: at[1] }))
    : h("span", { class: "quote lost" }, h("code", {}, visible(text)), where("review.nowhere"));
  const reason = cell?.reason ?? [];
  return [
    h("h3", { class: "quiet" }, visible(`${criterion.name} · ${pane.label} · ${score}`)),
    h("p", { class: "said" }, reason.length ? reason.map((part) => (typeof part === "string" ? visible(part) : quoteButton(part.text, () => view.onQuote(part.at)))) : h("span", { class: "soft" }, t("review.no_reason"))),
    cell?.evidence.length
      ? h("ul", { class: "evidence", "aria-label": t("review.evidence") }, cell.evidence.map((one) => h("li", {}, quote(one))))
      : soft(t("review.no_evidence")),
    guidance,
    cell?.confidence != null && soft(t("review.confidence", { n: Math.round(cell.confidence * 100) })),
  ];
}

function drawReport(item, view) {
  const toggle = ({ target }) => {
    view.onReport(target.open);
    if (target.open) target.replaceChildren(target.firstChild, view.later("report", item));
  };
  return h("details", { class: "card report", open: view.reportOpen, on: { toggle } }, h("summary", {}, t("review.report"), h("kbd", {}, view.badge("report"))));
}
