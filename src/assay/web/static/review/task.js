// Draws the task that the candidates were given. Loaded when first opened.

import { button, call, h, t, visible } from "../frame/dom.js";
import { calledBy } from "./item.js";

const prose = (text) => h("p", { class: "prose" }, visible(text));

const turns = (messages) => messages.map(([role, text]) => h("div", { class: "turn" }, h("b", {}, role), prose(text)));

export function draw(item) {
  const parts = [
    item.context ? [h("h3", {}, t("review.rules.context")), prose(item.context)] : null,
    item.prompt.length ? [h("h3", {}, t("review.rules.prompt")), turns(item.prompt)] : null,
    item.images?.map(([address, caption]) => h("figure", {}, h("img", { src: address, alt: caption || t("review.rules.image") }), caption ? h("figcaption", { class: "soft small" }, visible(caption)) : null)),
    item.panes.filter((pane) => pane.sent.length).map((pane) => h("details", {}, h("summary", {}, t("review.rules.sent", { name: calledBy(pane) })), turns(pane.sent))),
    ...["expected", "ideal", "final_answer"].map((name) => item[name] && [h("h3", {}, t(`review.rules.${name}`)), prose(item[name])]),
  ];
  const whole = (event) => call(`/api/assessments/${item.id}?whole=1`).then(
    (task) => box.replaceWith(draw(task)),
    (error) => event.target.after(h("p", { class: "error", role: "alert" }, error.message)));
  const box = h("div", { class: "task" }, parts.flat().some(Boolean) ? parts : h("p", { class: "soft" }, t("review.rules.none")),
    item.told_cut ? button("more", whole, {}, t("review.rules.whole")) : null);
  if (item.images === null) whole({ target: box }); // pictures come only with the whole item
  return box;
}
