// Starts a run from a prompt: saves it as a suite, shows the cost, and uses the requests of the start page.

import "../frame/page.js";
import { byId, call, fresh, h, t } from "../frame/dom.js";

const form = byId("begin");
let looked = null; // the request whose cost is shown
let key = fresh();

const number = (id) => {
  const text = byId(id).value.trim();
  return text === "" ? null : Number.isFinite(Number(text)) ? Number(text) : text;
};
const models = () => [...form.querySelectorAll("input[name=model]:checked")].map((box) => box.value);

/** Returns a short hash of a text, so that each prompt gets its own file. */
function mark(text) {
  let hash = 0x811c9dc5;
  for (const letter of text) hash = Math.imul(hash ^ letter.codePointAt(0), 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, "0");
}

function suite() {
  const prompt = byId("f-prompt").value.trim();
  const judge = byId("f-judge").value.trim();
  const kind = form.querySelector("input[name=kind]:checked").value;
  const judges = kind === "none" ? { judge: "human", score: "judge" }
    : kind === "pairwise" ? { judge: { model: judge, mode: "pairwise" }, score: "judge" }
      : { judge, score: "code_arena" };
  const document_ = { tasks: [{ id: "prompt", thing: prompt.split("\n")[0].slice(0, 80), prompt }], candidates: models(), ...judges };
  const name = `arena-${prompt.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 32).replace(/^-|-$/g, "")}-${mark(JSON.stringify(document_))}`;
  return { name: `${name}.json`, text: `${JSON.stringify({ name, ...document_ }, null, 2)}\n` };
}

function wish(path) {
  const parameters = {};
  for (const name of ["temperature", "max_tokens"]) if (number(`f-${name}`) !== null) parameters[name] = number(`f-${name}`);
  return { suite: path, trials: Number(form.querySelector("input[name=trials]:checked").value), ...(Object.keys(parameters).length ? { parameters } : {}) };
}

function complain(lines) {
  byId("problems").replaceChildren(...lines.map((line) => h("li", {}, line)));
  byId("problems").querySelector("li")?.scrollIntoView({ block: "nearest" });
}
const sentence = (one) => [one.problem, one.remedy].filter(Boolean).join(" ");

const usd = (amount) => (amount >= 0.1 || amount === 0 ? `$${amount.toFixed(2)}` : `$${amount.toFixed(4)}`);

async function look() {
  byId("cost").replaceChildren();
  byId("go").hidden = true;
  if (!byId("f-prompt").value.trim()) return complain([t("arena.begin.needs_prompt")]);
  if (models().length < 2) return complain([t("arena.begin.needs_two")]);
  if (form.querySelector("input[name=kind]:checked").value !== "none" && !byId("f-judge").value.trim()) return complain([t("arena.begin.needs_judge")]);
  complain([]);
  try {
    const saved = await call("/api/suites", suite());
    const body = wish(saved.suite);
    const answer = await call("/api/start/look", body);
    if (answer.problems.length) return complain(answer.problems.map(sentence));
    const { calls, likely_usd: likely, most_usd: most, unpriced } = answer.estimate;
    const cost = unpriced.length ? t("start.unpriced", { models: unpriced.join(", ") }) : t("start.cost", { likely: usd(likely), most: usd(most) });
    byId("cost").replaceChildren(h("p", {}, h("b", {}, t("start.calls", { n: calls })), " ", cost), h("p", { class: "soft small" }, t("arena.begin.saved", { path: saved.suite })));
    looked = body;
    key = fresh();
    byId("go").hidden = false;
    byId("go").focus();
  } catch (error) {
    complain([error.status ? [error.message, error.said?.remedy].filter(Boolean).join(" ") : t("start.offline")]);
  }
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (event.submitter?.id !== "go" || !looked) return look();
  byId("go").disabled = true;
  try {
    const started = await call("/api/start", { ...looked, key });
    location.assign(`/arena/${encodeURIComponent(started.run_id)}`);
  } catch (error) {
    byId("go").disabled = false;
    complain([error.status ? error.message : t("start.offline")]);
  }
});
form.addEventListener("input", () => {
  byId("go").hidden = true; // what is started is what was costed
  byId("judge-field").hidden = form.querySelector("input[name=kind]:checked").value === "none";
});
byId("add-model-go").addEventListener("click", () => {
  const ref = byId("add-model").value.trim();
  if (!ref) return byId("add-model").focus();
  byId("models").append(h("label", { class: "pick" }, h("input", { type: "checkbox", name: "model", value: ref, checked: true }), h("span", {}, ref)));
  byId("add-model").value = "";
  byId("go").hidden = true;
});
