// Sends the forms of the start page, and shows each problem at its field.

import { h, t } from "../frame/dom.js";

const TERMINAL = /\x60(assay |--)/; // remedies that need a terminal
/** Problems that continue the name of their field, which the form shows above them. */
const GOES_ON = /^(is|are|has|have|holds|needs|names|must|cannot)\b/;

/** Shows each problem at its field, and lists those without a field. */
export function complain(problems, list) {
  for (const place of document.querySelectorAll("[data-error]")) place.textContent = "";
  for (const input of document.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
  const rest = [];
  for (const one of problems) {
    const sentence = [one.problem, TERMINAL.test(one.remedy) ? "" : one.remedy].filter(Boolean).join(" ");
    const text = GOES_ON.test(sentence) ? t("start.this", { is: sentence }) : sentence.charAt(0).toUpperCase() + sentence.slice(1);
    const input = nearest(one.field, "path");
    const place = nearest(one.field, "error");
    if (input) input.setAttribute("aria-invalid", "true");
    if (place) place.textContent = [place.textContent, text].filter(Boolean).join(" ");
    else rest.push(h("li", {}, one.field ? h("code", {}, one.field, " ") : null, one.field ? sentence : text));
  }
  for (const input of document.querySelectorAll("details:not([open]) [aria-invalid=true]")) input.closest("details").open = true;
  list.replaceChildren(...rest);
}

/** Returns the element of a field, or of the nearest field that contains it. */
function nearest(path, kind) {
  let rest = path;
  while (rest) {
    const field = document.querySelector(`[data-${kind}="${CSS.escape(rest)}"]`);
    if (field) return field;
    const cut = Math.max(rest.lastIndexOf("."), rest.lastIndexOf("["));
    rest = cut > 0 ? rest.slice(0, cut) : "";
  }
  return null;
}

/** Returns the problems with their fields. A value of the wrong type has its field in `where`. */
export function problemsOf(error) {
  if (error.problems) return error.problems.map((one) => ({ field: one.where?.replace(/^body\./, ""), ...one }));
  return [{ field: "", problem: error.status ? error.message : t("start.offline"), remedy: error.said?.remedy ?? "" }];
}

/** Sends a request like `call`; a refusal also has its list of problems. */
export async function ask(path, body) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  }).catch(() => null);
  const answer = await response?.json().catch(() => null);
  if (response?.ok) return answer;
  const problem = answer?.error?.problem ?? t("start.offline");
  throw Object.assign(new Error(problem), { status: response?.status ?? 0, said: answer?.error, problems: answer?.problems });
}
