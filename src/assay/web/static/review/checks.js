// Draws if the final answers match the task's. Loaded only for items whose final answers were verified.

import { glyph, h, t, visible } from "../frame/dom.js";
import { calledBy } from "./item.js";

export function draw({ panes }) {
  return h("ul", { class: "checks", "aria-label": t("review.checks") }, panes.filter(({ check }) => check).map(({ check, ...pane }) =>
    h("li", { class: check.verified === false ? "bad" : null }, glyph(check.verified ? "✓" : check.verified === false ? "✗" : "–"),
      visible(`${panes.length > 1 ? `${calledBy(pane)}: ` : ""}${check.message.replace(/\.$/, "")} (${check.scorer})`))));
}
