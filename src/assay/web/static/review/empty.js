// The page without pending items. Loaded when the server has none left.

import { byId, fill, h, t } from "../frame/dom.js";

export function draw(page, { progress, elsewhere, skipped, sitting }) {
  document.title = `${t("review.done.title")} · Assay`;
  byId("empty-title").textContent = t("review.done.title");
  fill(byId("heading"));
  const lines = [progress?.others ? t("review.done.others", { n: progress.others }) : t("review.done.lead")];
  if (progress?.waiting && elsewhere) lines[0] = t("review.done.elsewhere", { n: elsewhere });
  if (skipped) lines.push(t("review.done.skipped", { n: skipped }));
  const tally = Object.entries(sitting).filter(([, n]) => n > 0).map(([state, n]) => t(`review.done.${state}`, { n }));
  if (tally.length) lines.push(t("review.done.tally", { tally: tally.join(", ") }));
  fill(byId("empty-lines"), lines.map((line) => h("p", {}, line)));
  byId("empty").querySelector('[href^="/results"]')?.classList.toggle("go", tally.length > 0 && !progress?.waiting);
  byId("empty-title").focus({ preventScroll: true });
}
