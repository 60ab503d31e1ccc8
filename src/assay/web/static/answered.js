// What the server answered where it was more than yes: refusals, decisions taken back, reruns. Fetched when first needed.

import { boot, button, t } from "./dom.js";

/** A decision was not accepted: its item comes back as the store has it now, next in line, and never in place of another. */
export async function refused(page, entry, record, why, words = "said.refused") {
  const item = await page.asStored(entry.id).catch(() => record?.item);
  const told = t(words, { what: entry.what, why });
  if (!item) return page.say(told, { alert: true });
  if (record && page.current() === record) page.renew(record, item);
  else page.putNext(item);
  const action = page.current().item.id === entry.id ? null : button("link", () => page.visit(entry.id), {}, t("said.refused_show"));
  page.say(told, { alert: true, action });
  page.drawProgress();
  page.drawActions();
}

/** A decision of before was taken back: its item is the one on the page again. */
export async function undone(page, entry, record) {
  try {
    const item = await page.asStored(entry.id);
    if (record) page.renew(record, item);
    else if (!boot.single) record = page.putNext(item);
    if (record) page.bringBack(record);
    page.say(t("said.undone", { what: entry.what }));
  } catch {
    page.refill();
  }
}

export function rerun(page, entry, result, record) {
  if (!result.ok) {
    if (record) record.decided = null;
    return refused(page, entry, record, [result.error.where, result.error.problem].filter(Boolean).join(": "), "said.rerun_failed");
  }
  page.say(t("said.rerun_done", { what: entry.what, n: result.attempt }));
  if (boot.single) location.assign(`/assessments/${result.new_id}`);
  else page.refill();
  return undefined;
}
