// Responses as texts: Markdown drawn from the server's tree, conversations by turns, JSON that folds, and two responses side
// by side with their differences. Loaded when the first text comes.
//
// Evidence and differences are highlighted as ranges of the browser, so that no element is added, and a quotation may begin
// in one paragraph and end in another.

import { button, h, t, visible } from "../frame/dom.js";
import { calledBy, drawResponse, paint, quotedLines, quotesOf } from "./item.js";
import { formula, hasFormula, ready } from "./formulas.js";

const TAGS = new Set("p br hr h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong del a table thead tbody tr th td section".split(" "));
const TURNS = new Set(["user", "assistant", "tool_call", "tool_result", "tool_error"]);
const OPEN_LEVELS = 2;
const SIMILAR = 0.5;
const MAX_WORDS = 3_000;
const MAX_ENTRIES = 1_000;
const DEEPEST = 50;

const ranges = (name) => {
  if (!CSS.highlights.has(name)) CSS.highlights.set(name, new Highlight());
  return CSS.highlights.get(name);
};
/** Removes the ranges within an element, and those whose element is gone. */
function clear(name, root) {
  for (const range of ranges(name)) if (!range.startContainer.isConnected || root.contains(range.startContainer)) ranges(name).delete(range);
}
const spanOf = (text) => text.split("-").map(Number);

// --- one response --------------------------------------------------------------------------------------------------

/** Draws a response as a text. */
export function drawText(item, view, place) {
  const pane = item.panes[place];
  const json = pane.form === "json" ? parsed(pane.text) : undefined; // undefined also if the text is cut
  const inside = json !== undefined ? [h("div", { class: "json" }, value(json, 0))] : pane.tree?.length ? nodes(pane.tree) : [h("p", { class: "plain" }, visible(pane.text))];
  const article = h("article", { class: "reading", tabindex: 0, "data-pane": place, "aria-label": calledBy(pane), on: { click: (event) => choose(event, item, view, place) } },
    h("div", { class: "measure", dir: "auto" }, inside,
      pane.text ? null : h("p", { class: "soft" }, t("review.empty_response")),
      pane.cut ? button("more", () => view.onWhole(), {}, t("review.show_chars", { n: pane.chars })) : null,
      pane.truncated ? h("p", { class: "cut" }, t("review.truncated")) : null,
      pane.structured ? view.later("structure", pane) : null));
  const quoted = quotedLines(item, place);
  for (const block of leaves(article)) {
    const [from, to] = spanOf(block.dataset.at);
    for (let n = from; n <= to; n += 1) if (quoted.has(n)) block.classList.add("quoted");
  }
  return article;
}

/** Fetches what drawing these responses needs. */
export const prepare = (drawn) => (drawn.some(({ tree }) => hasFormula(tree)) ? ready() : undefined);

/** Returns the blocks that hold no other block. */
const leaves = (root) => [...root.querySelectorAll("[data-at]")].filter((block) => !block.querySelector("[data-at]"));

/** Lets the browser paint blocks only near what is visible: painting all of a long text delays it. */
export function skipFar(root) {
  const heights = [...root.querySelectorAll(".measure > :not(pre)")].map((block) => [block, block.getBoundingClientRect().height]);
  for (const [block, height] of heights) if (height) block.style = `content-visibility: auto; contain-intrinsic-height: auto ${height}px; overflow-clip-margin: 3rem`;
}

function nodes(tree) {
  return tree.flatMap((node) => {
    if (typeof node === "string") return visible(node);
    const [tag, attributes, ...children] = node;
    if (!TAGS.has(tag)) return nodes(children);
    if (tag === "code" && attributes["data-tex"]) return [formula(children.join(""), attributes["data-tex"] === "block")];
    const shown = attributes["data-at"] ? { "data-at": attributes["data-at"] } : {};
    if (tag === "section") {
      const role = TURNS.has(attributes.role) ? attributes.role : "assistant";
      return [h("section", { class: `turn-of ${role}` }, h("h3", { class: "quiet" }, t(`review.turn.${role}`)), nodes(children))];
    }
    if (tag === "code" && attributes["data-marks"]) return [h("code", shown, paint(children.join(""), attributes["data-marks"]).map((line) => [...line.map(([kind, piece]) => h("span", { class: kind || null }, visible(piece))), "\n"]))];
    if (tag === "a" && /^https?:\/\//.test(attributes.href ?? "")) Object.assign(shown, { href: attributes.href, rel: "noopener noreferrer nofollow", target: "_blank" });
    if (tag === "ol" && attributes.start) shown.start = attributes.start;
    if (tag === "pre") shown.tabindex = 0;
    const level = /^h([1-6])$/.exec(tag);
    const element = h(level ? `h${Math.min(6, +level[1] + 2)}` : tag, shown, nodes(children)); // below the page's own headings
    if (tag === "table") return [h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t("review.table") }, element)];
    return shown.href ? [element, h("span", { class: "host" }, ` (${new URL(shown.href).host})`)] : [element];
  });
}

/** Returns the value of a JSON text, undefined if it is none. */
function parsed(text) {
  try {
    // Numbers keep their spelling: 1.0 is not 1, and long ones would lose digits.
    return JSON.parse(text, (_, one, { source } = {}) => (typeof one === "number" && source ? Object.assign(Object(one), { source }) : one));
  } catch {
    return undefined;
  }
}

function value(content, depth, name = null) {
  const label = name === null ? null : [h("span", { class: "f" }, visible(JSON.stringify(name))), ": "];
  if (content === null || typeof content !== "object" || content instanceof Number || depth > DEEPEST) {
    const kind = content instanceof Number ? "n" : typeof content === "string" ? "s" : "w";
    return h("div", { class: "entry" }, label, h("span", { class: kind }, depth > DEEPEST ? "…" : visible(content?.source ?? JSON.stringify(content))));
  }
  const entries = Array.isArray(content) ? content.map((one) => [null, one]) : Object.entries(content);
  const [open, close] = Array.isArray(content) ? ["[", "]"] : ["{", "}"];
  if (!entries.length) return h("div", { class: "entry" }, label, `${open}${close}`);
  return h("details", { class: "entry", open: depth < OPEN_LEVELS }, h("summary", {}, label, open, h("span", { class: "soft" }, ` ${entries.length} `), close),
    h("div", { class: "inside" }, entries.slice(0, MAX_ENTRIES).map(([key, one]) => value(one, depth + 1, key)),
      entries.length > MAX_ENTRIES ? h("p", { class: "soft" }, t("review.more_entries", { n: entries.length - MAX_ENTRIES })) : null));
}

// --- evidence ------------------------------------------------------------------------------------------------------

/** Highlights the quotations of the selected grade, or those at some lines; returns the first block with one. */
export function light(root, item, view, only = null) {
  const article = root.querySelector(`article[data-pane="${view.pane}"]`);
  clear("evidence", root);
  for (const block of root.querySelectorAll("article .lit")) block.classList.remove("lit");
  if (!article) return null;
  const quotes = quotesOf(item.criteria[view.row]?.cells[view.pane]).filter(({ at }) => at && (!only || (at[0] === only[0] && at[1] === only[1])));
  const words = wordsIn(article);
  let first = null;
  for (const { text, at } of quotes) {
    const range = rangeOf(words, text);
    const block = range ? range.startContainer.parentElement : leaves(article).find((leaf) => { const [from, to] = spanOf(leaf.dataset.at); return from <= at[1] && to >= at[0]; });
    if (range) ranges("evidence").add(range);
    else block?.classList.add("lit"); // a formula, or a passage with marks of Markdown inside
    if (block && (!first || block.compareDocumentPosition(first) & Node.DOCUMENT_POSITION_FOLLOWING)) first = block;
  }
  return first;
}

const known = new WeakMap();

/** Returns the text of an element without white space and marks of Markdown, and its text nodes with their starts in it. */
function wordsIn(root) {
  if (known.has(root)) return known.get(root);
  // A formula has its text twice, for eyes and for screen readers, and no piece of it as it was written.
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT, (node) => (node.parentElement.closest(".katex") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
  const nodes = [];
  let text = "";
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    nodes.push([text.length, node]);
    text += pressed(node.data);
  }
  known.set(root, { text, nodes });
  return { text, nodes };
}

/** Returns the text node and the offset in it of a character without white space and marks. */
function placeOf(nodes, at) {
  const [start, node] = nodes.findLast(([first]) => first <= at);
  let offset = -1;
  for (let left = at - start; left >= 0; left -= pressed(node.data[offset]).length) offset += 1;
  return [node, offset];
}

const SAME = { "“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "−": "-", "–": "-", "ς": "σ" };
const pressed = (text) => text.replace(/[\s*_\x60#|>~\\$-]+/g, "").toLowerCase().replace(/[“”„‘’−–ς]/g, (mark) => SAME[mark]);

/** Returns the range of a quotation, as it is or without quotation marks around it; pieces between dots may be apart. */
const rangeOf = (words, quotation) => rangeAs(words, quotation, /$^/) ?? rangeAs(words, quotation, /^["']|["'.,;:]+$/g);

function rangeAs({ text, nodes }, quotation, around) {
  const pieces = quotation.split(/\.{3,}|…/).map((piece) => pressed(piece.replace(/\[[^\]]*\]\([^)]*\)/g, (link) => link.slice(1, link.indexOf("]")))).replace(around, "")).filter((piece) => piece.length > 1);
  let start = -1;
  let end = 0;
  for (const piece of pieces) {
    const at = text.indexOf(piece, end);
    if (at < 0) return null;
    start = start < 0 ? at : start;
    end = at + piece.length;
  }
  if (start < 0) return null;
  const range = document.createRange();
  range.setStart(...placeOf(nodes, start));
  const [last, offset] = placeOf(nodes, end - 1);
  range.setEnd(last, offset + 1);
  return range;
}

/** Selects the first grade that quotes a clicked block; selecting text in it does nothing. */
function choose(event, item, view, place) {
  const block = event.target.closest?.(".quoted");
  if (!block || String(getSelection()) || event.target.closest("a, summary")) return;
  const [from, to] = spanOf(block.dataset.at);
  const row = item.criteria.findIndex((criterion) => quotesOf(criterion.cells[place]).some(({ at }) => at && at[0] <= to && at[1] >= from));
  if (row >= 0) view.onCell(row, place);
}

// --- two responses -------------------------------------------------------------------------------------------------

/** Draws the selected response beside another one; differences are marked if they are similar. */
export function drawBoth(item, view) {
  const pair = item.panes.length === 2 ? [0, 1] : [view.pane, (view.pane + 1) % item.panes.length];
  const sides = pair.map((place) => h("section", { class: `half${place === view.pane ? " on" : ""}` },
    h("h3", { class: "quiet" }, visible(calledBy(item.panes[place]))), drawResponse(item, view, place)));
  const both = h("div", { class: "both" }, sides);
  clear("different", both);
  const [one, other] = sides.map((side) => tokens(side.querySelector("article, pre")));
  if (areSimilar(one, other)) {
    for (const range of differing(one, other)) ranges("different").add(range);
    both.prepend(h("p", { class: "soft small legend" }, t("review.differences")));
  }
  return both;
}

/** True if the texts share at least half of the longer one's words, and are short enough to compare. */
function areSimilar(one, other) {
  const words = Math.max(one.length, other.length);
  if (!words || words > MAX_WORDS) return false;
  const counts = new Map();
  for (const { word } of one) counts.set(word, (counts.get(word) ?? 0) + 1);
  let shared = 0;
  for (const { word } of other) {
    const left = counts.get(word) ?? 0;
    if (left) shared += 1;
    counts.set(word, left - 1);
  }
  return shared >= SIMILAR * words;
}

/** Returns the words of an element, each with its range; a formula is one word. */
function tokens(root) {
  if (!root) return [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const words = [];
  let formula = null;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const inside = node.parentElement.closest(".formula");
    if (inside && inside !== formula) {
      const range = new StaticRange({ startContainer: inside, startOffset: 0, endContainer: inside, endOffset: inside.childNodes.length });
      words.push(Object.assign(range, { word: `$${inside.dataset.tex}$` }));
    }
    formula = inside;
    if (inside) continue;
    for (const match of node.data.matchAll(/[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu)) {
      const range = new StaticRange({ startContainer: node, startOffset: match.index, endContainer: node, endOffset: match.index + match[0].length });
      words.push(Object.assign(range, { word: match[0] }));
    }
  }
  return words;
}

/** Returns the words of both texts that are not in their longest common sequence. */
function differing(one, other) {
  let start = 0;
  while (start < one.length && start < other.length && one[start].word === other[start].word) start += 1;
  let end = 0;
  while (end < one.length - start && end < other.length - start && one.at(-1 - end).word === other.at(-1 - end).word) end += 1;
  const a = one.slice(start, one.length - end);
  const b = other.slice(start, other.length - end);
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] = a[i].word === b[j].word ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const apart = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i].word === b[j].word) [i, j] = [i + 1, j + 1];
    else apart.push(lengths[i * width + j + 1] > lengths[(i + 1) * width + j] ? b[j++] : a[i++]);
  }
  return [...apart, ...a.slice(i), ...b.slice(j)];
}
