// The review protocol on the start form and on a run's page, and its cost in words.

import { boot, byId, call, h, t } from "../frame/dom.js";

const NAMES = ["blind", "plants", "rereview", "second", "gap_items", "gap_hours"];
const PLAIN = { blind: 0, plants: 0, rereview: 0, second: 0 };
const whole = (name) => (name.startsWith("gap") ? 1 : 100);
const field = (name) => byId(`f-protocol.${name}`);

/** Returns the choice for the server, on 0 to 1; other text is unchanged, so that the server reports it. */
export function chosenProtocol() {
  const way = document.querySelector("input[name=protocol]:checked")?.value;
  if (way === "plain") return { ...PLAIN };
  if (way === "suggested") return { ...boot.suggested };
  const shares = {};
  for (const name of NAMES) {
    const text = field(name).value.trim();
    const number = Number(text.replace("%", "").replace(",", "."));
    if (text !== "") shares[name] = Number.isFinite(number) ? Number((number / whole(name)).toFixed(6)) : text;
  }
  return shares;
}

/** True if two protocols are equal; missing numbers have their defaults. */
export function sameProtocol(a, b) {
  const standard = { ...PLAIN, gap_items: 50, gap_hours: 24 };
  const full = (one) => ({ ...standard, ...one });
  const names = (one) => (full(one).rereview ? NAMES : NAMES.slice(0, 4));
  return names(a).every((name) => full(a)[name] === full(b)[name]) && names(b).every((name) => full(a)[name] === full(b)[name]);
}

/** Returns the choice for the address: nothing, a word, or the numbers. */
export function asAddress(wished) {
  if (sameProtocol(wished, PLAIN)) return "plain";
  if (sameProtocol(wished, boot.suggested)) return "suggested";
  return NAMES.filter((name) => wished[name] !== undefined).map((name) => `${name}:${wished[name]}`).join(",");
}

export function fromAddress(text) {
  const known = document.querySelector(`input[name=protocol][value="${CSS.escape(text)}"]`);
  (known ?? document.querySelector("input[name=protocol][value=own]")).checked = true;
  if (!known) {
    for (const part of text.split(",")) {
      const [name, value] = part.split(":");
      if (NAMES.includes(name)) field(name).value = Number.isFinite(Number(value)) ? Number((Number(value) * whole(name)).toFixed(4)) : value;
    }
  }
  byId("protocol").closest("details").open = true;
  shown();
}

/** Shows the numbers if they are chosen, each with its error in the units of the form. */
export function shown() {
  const own = document.querySelector("input[name=protocol]:checked")?.value === "own";
  byId("protocol-own").hidden = !own;
  let wrong = false;
  for (const name of NAMES) {
    const number = Number(field(name).value.trim().replace("%", "").replace(",", "."));
    const bad = own && !(number >= 0 && number <= Number(field(name).dataset.most));
    field(name).toggleAttribute("aria-invalid", bad);
    if (bad) field(name).setAttribute("aria-invalid", "true");
    document.querySelector(`[data-error="protocol.${name}"]`).textContent = bad ? t("protocol.range", { most: field(name).dataset.most }) : "";
    wrong ||= bad;
  }
  return !wrong;
}

/** Returns the cost of reviewing in words. */
export function showReview(review) {
  const place = byId("protocol-cost");
  if (!review) return place.replaceChildren();
  if (!review.items) return place.replaceChildren(h("p", { class: "soft" }, t("protocol.cost_none")));
  const plain = review.decisions === review.keys && review.decisions === review.items;
  const cost = t(plain ? "protocol.cost_plain" : "protocol.cost", { n: review.decisions, ...review });
  place.replaceChildren(...[
    h("p", {}, review.most ? t("protocol.cost_most", { cost }) : cost),
    plain ? null : h("p", { class: "soft" }, t("protocol.parts", review)),
    review.second ? h("p", { class: "soft" }, t("protocol.nobody")) : null,
  ].filter(Boolean));
}

const form = byId("protocol-form");
let asked = 0;

async function send(only_look) {
  const mine = ++asked;
  if (!shown()) return showReview(null);
  const error = document.querySelector('[data-error="protocol"]');
  try {
    const answer = await call(`/api/runs/${encodeURIComponent(boot.run)}/protocol`, { ...chosenProtocol(), only_look, reviewer: boot.reviewer });
    if (!only_look) return location.reload();
    if (mine === asked) error.textContent = "", showReview(answer.review);
  } catch (problem) {
    error.textContent = [problem.said?.where, problem.said?.problem ?? problem.message, problem.said?.remedy].filter(Boolean).join(" ");
  }
}

if (form) {
  let settling = null;
  form.addEventListener("input", () => {
    shown();
    clearTimeout(settling);
    settling = setTimeout(send, 250, true);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(false);
  });
  form.closest("details").addEventListener("toggle", () => send(true), { once: true });
}
