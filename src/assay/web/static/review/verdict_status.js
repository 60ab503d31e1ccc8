// Handles answers of the server: refusals, undone decisions, reruns. Loaded when first needed.
//
// An answer may arrive at any time. It never replaces the item in use; its item comes next instead.

import { boot, button, t } from "../frame/dom.js";
import { what } from "./item.js";

/** Updates an item to its state in the store. */
function renew(page, record, item) {
  const here = page.current() === record;
  if (here && page.stateOf(record) === "pending" && page.busy()) return page.say(t("said.changed", { what: what(item) }), { alert: true });
  const decided = item.state === "pending" ? null : item.person && item.state === "corrected" ? "graded" : item.state;
  Object.assign(record, { item, decided, revealed: decided !== null });
  return here && page.show(0, { focus: false });
}

/** Queues an item from the store as the next one. */
function putNext(page, item) {
  page.takeOut(item.id);
  const record = page.put(item, page.next());
  if (page.itemBox.hidden) page.show(1);
  return record;
}

/** Shows a message about an item, with a link to it if another one is on the page. */
function tell(page, id, message, alert) {
  page.say(message, { alert, action: page.current()?.item.id === id ? null : button("link", () => page.visit(id), {}, t("said.refused_show")) });
}

/** Shows an item that was not loaded; if the reviewer is typing or has moved on by then, it comes next. */
export async function visited(page, id, from) {
  try {
    const item = await page.asStored(id);
    page.put(item, page.next());
    if (page.current() === from && !page.writing()) return page.visit(id);
    page.say(t("said.comes_next", { what: what(item) }));
  } catch (error) {
    page.alertOf(error);
  }
  return false;
}

/** Fetches a decided item again, whose names may now be shown, or one that was changed elsewhere. */
export async function reveal(page, record, changed) {
  try {
    const item = await page.asStored(record.item.id);
    if (item.state !== (changed ? page.stateOf(record) : "pending")) renew(page, record, item);
  } catch {
    /* the old item stays on the page */
  }
}

/** Brings back the item of a refused decision in its current state, as the next one, never replacing another. */
export async function refused(page, entry, record, why, words = "said.refused") {
  const item = await page.asStored(entry.id).catch(() => record?.item);
  const told = t(words, { what: entry.what, why });
  if (!item) return page.say(told, { alert: true });
  if (record && page.current() === record) renew(page, record, item);
  else putNext(page, item);
  tell(page, entry.id, told, true);
  page.drawProgress();
  page.drawActions();
}

/** Shows the item of an undone decision again, unless the reviewer has moved on since. */
export async function undone(page, entry, record) {
  try {
    const item = await page.asStored(entry.id);
    if (item.state !== "pending" || page.travels(entry.id)) return; // decided again in the meantime
    if (record && page.current() === record) renew(page, record, item);
    else if (!boot.single) record = putNext(page, item);
    const here = page.current();
    if (record && !page.busy() && (here === record || here.item.id === entry.from)) page.bringBack(record);
    page.drawProgress();
    if (page.current() === record || boot.single) page.say(t("said.undone", { what: entry.what }));
    else tell(page, entry.id, t("said.undone_next", { what: entry.what }));
  } catch {
    page.refill();
  }
}

export function rerun(page, entry, result, record) {
  if (!result.ok) {
    if (record) record.decided = null;
    const { where, problem, remedy } = result.error;
    if (where === "rerun") return refused(page, entry, record, [problem, remedy].filter(Boolean).join(" "), "said.rerun_why");
    return refused(page, entry, record, [where, problem].filter(Boolean).join(": "), "said.rerun_failed");
  }
  const go = () => location.assign(`/assessments/${result.new_id}`);
  const stays = boot.single && page.busy();
  page.say(t("said.rerun_done", { what: entry.what, n: result.attempt }), { action: stays ? button("link", go, {}, t("said.refused_show")) : null });
  if (!boot.single) page.refill();
  else if (!stays) go();
  return undefined;
}
