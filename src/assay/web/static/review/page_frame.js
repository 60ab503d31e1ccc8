// Moves between quotations and between trials. Loaded when first needed.

import { boot, t } from "../frame/dom.js";
import { light, quotesOf } from "./item.js";

let quoteAt = -1;
let quotedIn = null;

/** Shows the lines of a quotation, and highlights only these. */
export async function showLines(page, span, pane) {
  const { view } = page;
  if (pane !== view.pane || view.rules) {
    view.rules = false;
    view.pane = pane;
    page.drawLeft();
    page.drawSelectedReason();
  }
  let first = page.lit(span);
  if (!first && !view.whole) { // not in the loaded part
    if (!(await view.onWhole())) return;
    first = page.lit(span);
  }
  page.center(first);
  if (first && !page.wide.matches) first.scrollIntoView({ block: "center" });
}

/** Shows the next quotation of the selected grade, beginning with the first. */
export function nextEvidence(page) {
  const { view } = page;
  const cell = page.current().item.criteria[view.row]?.cells[view.pane];
  const places = quotesOf(cell).map((quote) => quote.at).filter(Boolean);
  const spans = [...new Map(places.map((span) => [span.join("-"), span])).values()]; // repeated quotations count once
  if (!spans.length) return page.say(t("said.no_quote"));
  if (cell !== quotedIn) quoteAt = -1;
  quotedIn = cell;
  quoteAt = (quoteAt + 1) % spans.length;
  return showLines(page, spans[quoteAt], view.pane);
}

/** Selects the first grade that quotes a clicked line; selecting text on it does nothing. */
export function chooseLine(page, event, item) {
  const line = event.target.closest?.(".line.quoted");
  if (!line || String(getSelection())) return;
  const n = +line.dataset.n;
  const { view } = page;
  const row = item.criteria.findIndex((criterion) => quotesOf(criterion.cells[view.pane]).some((quote) => quote.at && quote.at[0] <= n && n <= quote.at[1]));
  if (row >= 0) view.onCell(row, view.pane);
}

/** Opens the trial before or after this one. */
export function visitTrial(page, by) {
  const { item } = page.current();
  const trial = item.trials.find((one) => one.k === item.k + by);
  if (!trial?.id) page.say(t("said.end"));
  else if (boot.single) location.assign(`/assessments/${trial.id}`);
  else page.visit(trial.id);
}
