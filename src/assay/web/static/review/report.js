// Draws the judge's report. Loaded when a report is first opened.

import { h, quoteButton, t, visible } from "../frame/dom.js";
import { shortLabel, soft } from "./item.js";

const TAGS = new Set(
  "p br hr h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong del a table thead tbody tr th td".split(" "),
);

export function draw(item, { view }) {
  const report = item.report.length ? fromTree(item.report, (pane, from, to) => view.onQuote([from, to], pane)) : h("p", { class: "soft" }, t("review.no_report"));
  return h("div", {}, h("div", { class: "prose" }, report),
    item.ranking.length ? soft(t("review.ranking", { list: item.ranking.map((pane) => shortLabel(item.panes[pane])).join(", ") })) : null,
    soft(t(item.judge ? "review.judge" : "review.no_names", { name: item.judge })));
}

/** Creates the nodes of a report; `onCode(pane, from, to)` is called when quoted code is clicked. */
export function fromTree(nodes, onCode) {
  return nodes.flatMap((node) => {
    if (typeof node === "string") return visible(node);
    const [tag, attributes, ...children] = node;
    if (!TAGS.has(tag)) return fromTree(children, onCode);
    if (tag === "code" && attributes.pane !== undefined) {
      return [quoteButton(children[0], () => onCode(+attributes.pane, +attributes.from, +attributes.to))];
    }
    const heading = /^h[1-6]$/.test(tag) ? "h4" : tag; // below the page's own headings
    const properties = {};
    if (tag === "a" && /^https?:\/\//.test(attributes.href ?? "")) {
      Object.assign(properties, { href: attributes.href, rel: "noopener noreferrer nofollow", target: "_blank" });
    }
    if (tag === "ol" && attributes.start) properties.start = attributes.start;
    const element = h(heading, properties, fromTree(children, onCode));
    if (tag === "table") return [h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "table" }, element)];
    return properties.href ? [element, h("span", { class: "host" }, ` (${new URL(properties.href).host})`)] : [element];
  });
}
