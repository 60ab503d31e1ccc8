// Draws the structure of a response: the parts that the judge saw. Loaded only for runs that structure responses.

import { h, t, visible } from "../frame/dom.js";

const PARTS = ["assumptions", "steps", "intermediate_results", "final_answer", "format_notes"];

export function draw({ structured }) {
  const shown = (part) => (Array.isArray(part) ? h("ol", {}, part.map((one) => h("li", {}, visible(one)))) : h("p", {}, visible(part)));
  return h("details", { class: "card structure" }, h("summary", {}, t("review.structure")),
    h("div", { class: "prose", tabindex: 0, role: "group", "aria-label": t("review.structure") }, PARTS.filter((name) => structured[name].length).map((name) => [h("h3", { class: "quiet" }, t(`review.structure.${name}`)), shown(structured[name])])));
}
