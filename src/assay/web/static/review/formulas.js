// Draws TeX formulas with KaTeX, which is fetched when the first formula comes. A formula that KaTeX does not understand in
// full stays as its exact source, marked, because reviewers grade what they see.

import { h, t, visible } from "../frame/dom.js";

const FOLDER = new URL("../vendor/katex/", import.meta.url);
const LONGEST = 5_000; // characters; longer texts between dollar signs are no formulas that anybody reads
const WIDE = 60; // characters from which a formula within a line may be wider than the column, and scrolls
const DEEPEST = 100; // nested groups; KaTeX reads them recursively

// A line break in a formula of one line, and letters such as é, are drawn as they were meant. Signs without a width in the
// fonts are not.
const MEANT = new Set(["newLineInDisplayMode", "unicodeTextInMathMode"]);
// What would be drawn as nothing, as something else, or could be made unreadable, although a judge reads it.
const COMMANDS = [
  "[hv]?phantom", "(?:text|math)?color", "f?colorbox", "smash", "(?:math)?[lrc]lap", "raisebox", // unseen, or over others
  "m?kern", "[hm]?skip", "hspace", "neg(?:thin|med|thick)space",
  "[egx]?def", "let", "futurelet", "global", "long", "(?:re|provide)?newcommand", // other meanings of known commands
  "(?:err)?message", "show", "mathchoice", "TextOrMath", // one of several texts, or none
  "href", "url", "includegraphics", "html[a-zA-Z]*", // some are drawn as their name, and `trust` is not asked
];
const HIDDEN = new RegExp(
  String.raw`(?<!\\)(?:\\\\)*%|\\(?:${COMMANDS.join("|")})(?![a-zA-Z])|\\[a-zA-Z]*@|(?:\\!\s*){3}|-\s*\.?\d[\d.]*\s*(?:em|ex|mu|pt|mm|cm|in|bp|pc|dd|cc|nd|nc|sp|px)\b`,
  "u",
);
const refuse = ({ command }) => { throw new Error(t("review.formula_reaches", { command })); };
const OPTIONS = {
  throwOnError: true,
  trust: refuse, // with `false`, KaTeX draws the name of the command in red
  maxSize: 20,
  maxExpand: 200,
  strict: (kind) => (MEANT.has(kind) ? "ignore" : "error"),
};

let katex = null;
let fetched = null;

/** Fetches KaTeX and its style once; formulas are shown as their source until then, or if it cannot be fetched. */
export function ready() {
  fetched ??= load().catch(() => (fetched = null));
  return fetched;
}

async function load() {
  const style = h("link", { rel: "stylesheet", href: new URL("katex.min.css", FOLDER).pathname });
  const styled = new Promise((resolve, reject) => Object.assign(style, { onload: resolve, onerror: reject }));
  document.head.append(style);
  await Promise.all([styled, import(new URL("katex.min.js", FOLDER).pathname)]);
  katex = globalThis.katex;
}

/** True if a tree of the server has a formula. */
export const hasFormula = (tree) => Array.isArray(tree) && (tree[1]?.["data-tex"] !== undefined || tree.some(hasFormula));

/** Creates the element of a formula; `block` stands on a line of its own. */
export function formula(tex, block) {
  const element = h("span", { class: `formula ${block ? "block" : tex.length > WIDE ? "long" : ""}`.trim() });
  element.dataset.tex = tex;
  if (katex) draw(element, tex, block);
  else {
    element.append(source(tex));
    ready().then(() => katex && draw(element, tex, block));
  }
  return element;
}

function draw(element, tex, block) {
  try {
    if (tex.length > LONGEST) throw new Error(t("review.formula_long", { n: LONGEST }));
    const [hidden] = HIDDEN.exec(tex) ?? [];
    if (hidden) throw new Error(t("review.formula_hides", { command: hidden }));
    if (depth(tex) > DEEPEST) throw new Error(t("review.formula_deep", { n: DEEPEST }));
    const tree = katex.__renderToDomTree(tex, { ...OPTIONS, displayMode: block });
    styleLater(tree);
    element.replaceChildren(tree.toNode());
  } catch (error) {
    element.replaceChildren(source(tex, error.rawMessage ?? error.message));
  }
}

/** Lets nodes set their styles as properties: the policy of the page refuses the attribute, which some nodes would set. */
function styleLater(node) {
  const style = node.attributes?.style;
  if (style) {
    delete node.attributes.style;
    const make = node.toNode.bind(node);
    node.toNode = () => {
      const made = make();
      made.style.cssText += style;
      return made;
    };
  }
  node.children?.forEach(styleLater);
}

function depth(tex) {
  let deepest = 0;
  let now = 0;
  for (const [sign] of tex.matchAll(/\\.|[{}]/gsu)) {
    if (sign === "{") deepest = Math.max(deepest, (now += 1));
    else if (sign === "}") now -= 1;
  }
  return deepest;
}

const source = (tex, why = "") => h("code", { class: "tex", title: why ? t("review.formula_source", { why }) : null }, visible(tex));
