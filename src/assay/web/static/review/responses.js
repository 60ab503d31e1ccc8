// Gets responses as the server draws them, and changes how they are shown. Loaded after the first item, or before the first text.

import { call, storage } from "../frame/dom.js";

let last = Promise.resolve();
const load = (file) => import(`./${file}.js`);

/**
 * Gets Markdown as trees and the colours of code, one item after the other, and draws them if they are on the page; without an
 * answer they stay source.
 */
export const dress = (page, item, whole = "") => (last = last.then(() => get(page, item, whole)));

async function get(page, item, whole) {
  if (item.dressed && !whole) return;
  item.dressed = true;
  try {
    const drawn = await call(`/api/assessments/${item.id}/drawn${whole}`);
    if (item.panes.some(({ form }) => form !== "code")) page.view.reading ??= await load("reading");
    await page.view.reading?.prepare(drawn);
    drawn.forEach((one, place) => Object.assign(item.panes[place], one));
    const box = () => page.itemBox.querySelector(".left:not(.behind) [data-pane]");
    const at = box()?.scrollTop;
    page.redraw(item);
    if (at) box().scrollTop = at;
  } catch {
    item.dressed = false;
  }
}

/** Changes how responses are shown: rendered or as source, two or one, wrapped or not. */
export async function turn(page, way) {
  const { view } = page;
  if (way === "both" && page.current().item.panes.length < 2) return;
  view.reading ??= await load("reading");
  view[way] = !view[way];
  view.rules = false;
  page.itemBox.classList.toggle("wrapped", view.wrap);
  storage.set("assay.wrap", view.wrap);
  page.forgetAhead();
  page.drawLeft();
  page.drawSelectedReason();
}
