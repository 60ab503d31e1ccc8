// What the candidates were told, fetched when first asked for.

import { h, t, visible } from "./dom.js";

const prose = (text) => h("p", { class: "prose" }, visible(text));

export function draw(item) {
  const parts = [
    item.context ? [h("h3", {}, t("review.rules.context")), prose(item.context)] : null,
    item.prompt.length ? [h("h3", {}, t("review.rules.prompt")), item.prompt.map(([role, text]) => h("div", { class: "turn" }, h("b", {}, role), prose(text)))] : null,
    item.expected ? [h("h3", {}, t("review.rules.expected")), prose(item.expected)] : null,
  ];
  return h("div", { class: "task" }, parts.some(Boolean) ? parts : h("p", { class: "soft" }, t("review.rules.none")));
}
