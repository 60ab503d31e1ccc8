// The own verdict before the judge's grades, scores by single keys, second opinions: fetched when first needed.

import { boot, call, fresh, storage, t } from "./dom.js";
import { shownRaw, shownScore } from "./item.js";

/** The own verdict; the judge's grades come as the answer to it, and not before. */
export async function sendVerdict(page, record, scores) {
  const { item } = record;
  try {
    record.item = await call("/api/review/verdict", { key: fresh(), id: item.id, reviewer: boot.reviewer, scores });
    record.own = ownValues(record.item);
    storage.remove(page.draftKey(item.id));
    if (page.current() === record) page.show();
    page.say(t("said.verdict"));
  } catch (error) {
    page.alertOf(error);
  }
}

/** A digit scores the selected criterion of an open form; the next one is selected. */
export function scoreByKey(page, text) {
  const { view } = page;
  if (!view.draft) return;
  const { criteria, panes } = page.current().item;
  const field = page.fieldAt(view.row, view.pane);
  field.value = text ?? String(criteria[view.row].high);
  page.changeScore(view.row, view.pane, field.value);
  if (view.row + 1 < criteria.length) page.select(view.row + 1, view.pane);
  else if (view.pane + 1 < panes.length) page.select(0, view.pane + 1);
  else page.say(t("said.all_set", { key: page.badge("commit") }));
}

/** Have two people decide the item on the page. */
export async function second(page) {
  const record = page.decidable();
  if (!record) return;
  try {
    await call("/api/review/second", { key: fresh(), id: record.item.id, reviewer: boot.reviewer });
    record.item.second = true;
    if (page.current() === record) page.drawHeading();
    page.say(t("said.second"));
  } catch (error) {
    page.alertOf(error);
  }
}

/** A correction after an own verdict begins with it. */
function ownValues(item) {
  const found = {};
  for (const [pane, criterion, score] of item.own ?? []) {
    const row = item.criteria.findIndex((one) => one.name === criterion);
    const { low, high } = item.criteria[row] ?? { low: 0, high: 100 };
    const text = row < 0 ? shownScore(score) : shownRaw(low + score * (high - low));
    if (text !== (row < 0 ? shownScore(item.panes[pane].judged) : shownRaw(item.criteria[row].cells[pane]?.judged))) found[`${row}.${pane}`] = text;
  }
  return found;
}
