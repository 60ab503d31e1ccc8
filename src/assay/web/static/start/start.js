// Starts a run: the form sends only differences from the file, and fetches the cost after each change.

import "../frame/page.js";
import { boot, byId, fresh, h, t } from "../frame/dom.js";
import { asAddress, chosenProtocol, fromAddress, sameProtocol, shown, showReview } from "./protocol.js";
import { ask, complain, problemsOf } from "./problems.js";
import { number, rubricEditor } from "./rubric.js";
import "./drop_zone.js";
import "./set_editor.js";

const SETTLE_MS = 350;
const NUMBERS = ["temperature", "top_p", "max_tokens", "frequency_penalty", "presence_penalty", "seed"];

// ---- a run from a file

const form = byId("start");
const suite = boot.suite;
let key = fresh();
let asked = 0;
let rubric = null;

const checked = (name) => [...form.querySelectorAll(`input[name=${name}]:checked`)];
const inBatch = () => checked("asking").some((choice) => choice.value === "batch");
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

function wish() {
  const body = { suite: boot.path };
  const trials = form.querySelector("input[name=trials]:checked")?.value;
  const n = trials === "own" || !trials ? number(byId("f-trials").value) : Number(trials);
  if (n !== null && n !== suite.trials) body.trials = n;
  const candidates = checked("candidate").map((box) => box.value);
  if (!same(candidates, suite.candidates.map((one) => one.name))) body.candidates = candidates;
  const judges = checked("judge").map((box) => box.value);
  const mode = byId("f-mode")?.value;
  if (judges.length && (mode || !same(judges, suite.judges.map((one) => one.ref)) || byId("f-rotate").checked)) body.judges = judges;
  if (mode) body.mode = mode;
  if (judges.length > 1 && byId("f-rotate").checked) body.rotate = true;
  const review = byId("f-review")?.value;
  if (review && review !== suite.review) body.review = review;
  if (byId("protocol")) {
    const wished = chosenProtocol();
    byId("protocol-changed").hidden = sameProtocol(wished, suite.protocol);
    if (!sameProtocol(wished, suite.protocol)) body.protocol = wished;
  }
  const parameters = { ...suite.parameters };
  for (const name of NUMBERS) {
    const value = number(byId(`f-parameters.${name}`).value);
    if (value === null) delete parameters[name];
    else parameters[name] = value;
  }
  const otherParameters = NUMBERS.some((name) => parameters[name] !== suite.parameters[name]);
  byId("parameters-changed").hidden = !otherParameters;
  if (otherParameters) body.parameters = Object.fromEntries(NUMBERS.filter((name) => name in parameters).map((name) => [name, parameters[name]]));
  if (rubric) {
    const other = rubric.differs();
    byId("rubric-changed").hidden = !other;
    if (other) body.rubric = rubric.written();
  }
  if (byId("f-benchmark").checked) body.benchmark = true;
  for (const name of ["budget", "limit"]) {
    const value = number(byId(`f-${name}`).value);
    if (value !== null) body[name] = value;
  }
  const batch = byId("f-batch_id").value.trim();
  if (batch) body.batch_id = batch;
  if (inBatch()) body.provider_batch = true;
  return body;
}

const usd = (amount) => (amount >= 0.1 || amount === 0 ? `$${amount.toFixed(2)}` : `$${amount.toFixed(4)}`);

function showEstimate(plan) {
  const { calls, likely_usd: likely, most_usd: most, unpriced } = plan.estimate;
  const byPerson = checked("judge").map((box) => box.value).join() === "human";
  const reviews = byPerson ? "start.grades" : plan.reviews.at_most ? "start.reviews_most" : "start.reviews";
  const cost = !calls ? "" : unpriced.length ? t("start.unpriced", { models: unpriced.join(", ") }) : t("start.cost", { likely: usd(likely), most: usd(most) });
  byId("estimate").replaceChildren(h("div", { class: "figures" },
    h("p", {}, h("b", {}, calls ? t("start.calls", { n: calls }) : t("start.no_calls"))),
    cost && h("p", {}, cost),
    h("p", {}, t(reviews, { n: plan.reviews.n })),
    h("p", { class: "soft small" }, `${t("start.n_tasks", { n: plan.tasks })}, ${t("start.n_trials", { n: plan.trials })}`),
    plan.notes.map((note) => h("p", { class: "soft small" }, note))));
}

/** Offers a provider batch if one of the models has a batch API, and says which have none. */
function showAsking({ batched, called }) {
  const choice = byId("asking");
  if (!choice) return;
  choice.hidden = !(batched.length + called.length);
  choice.querySelector(".choices").hidden = !batched.length;
  if (!batched.length) choice.querySelector("[value=now]").checked = true;
  const about = [batched.length && inBatch() && t("start.batch"), called.length && (!batched.length || inBatch())
    && t(batched.length ? "start.batch_called" : "start.no_batch", { models: called.join(", ") })];
  byId("a-asking").textContent = about.filter(Boolean).join(" ");
}

/** True if a number may be put into the address, which must stay valid for a reload. */
const sound = (name, value) => (name === "budget" ? value > 0 : Number.isInteger(value) && value >= 1 && value <= 1e9);

/** Replaces the problems that only say that no judge is chosen by one at the judge field. */
function placed(problems) {
  if (!byId("judges") || checked("judge").length) return problems;
  const rest = problems.filter((one) => one.field !== "" && !/^tasks\[\d+\]$/.test(one.field));
  return rest.length < problems.length ? [...rest, { field: "judge", problem: t("start.needs_judge"), remedy: "" }] : rest;
}

/** Says that the run cannot be started, and points to marked fields only if there are any. */
function showNoEstimate() {
  const marked = [...document.querySelectorAll("[data-error]")].some((place) => place.textContent);
  byId("estimate").replaceChildren(h("p", { class: "soft" }, t(marked ? "start.no_estimate" : "start.not_yet")));
}

async function look() {
  const mine = ++asked;
  byId("rotate-pick") && (byId("rotate-pick").hidden = checked("judge").length < 2);
  const state = new URLSearchParams({ suite: boot.path });
  const body = wish();
  for (const name of ["trials", "limit", "budget"]) if (sound(name, body[name])) state.set(name, body[name]);
  for (const name of ["mode", "review", "batch_id"]) if (body[name] !== undefined) state.set(name, body[name]);
  if (body.benchmark) state.set("benchmark", "1");
  for (const name of ["candidates", "judges"]) for (const one of body[name] ?? []) state.append(name.slice(0, -1), one);
  for (const name of ["rotate", "provider_batch"]) if (body[name]) state.set(name, "1");
  if (body.protocol) state.set("protocol", asAddress(body.protocol));
  history.replaceState(null, "", `/start?${state}`);
  try {
    const answer = await ask("/api/start/look", body);
    if (mine !== asked) return;
    if (byId("protocol")) showReview(answer.review);
    if (answer.estimate) showEstimate(answer);
    if (answer.models) showAsking(answer.models);
    const problems = placed(answer.problems);
    const begins = !touched && problems.length === 1 && problems[0].field === "judge" && !checked("judge").length;
    if (begins) byId("estimate").replaceChildren(h("p", { class: "soft" }, `${t("start.not_yet")} ${t("start.needs_judge")}`));
    complain(begins ? [] : problems, byId("problems"));
    if (!answer.estimate && !begins) showNoEstimate();
    if (byId("protocol")) shown();
  } catch (error) {
    if (mine !== asked) return;
    complain(problemsOf(error), byId("problems"));
    showNoEstimate();
    if (byId("protocol")) shown();
  }
}

let settling = null;
let touched = false; // what is only not chosen yet is no mistake before anything was done
function changed() {
  touched = true;
  key = fresh();
  byId("f-trials").hidden = form.querySelector("input[name=trials]:checked")?.value !== "own";
  clearTimeout(settling);
  settling = setTimeout(look, SETTLE_MS);
}

/** Returns the choices to put into the address, so that the page can be shared. */
function restore() {
  const state = new URLSearchParams(location.search);
  const trials = state.get("trials");
  if (trials) {
    const known = form.querySelector(`input[name=trials][value="${CSS.escape(trials)}"]`);
    (known ?? form.querySelector("input[name=trials][value=own]")).checked = true;
    if (!known) byId("f-trials").value = trials;
    byId("f-trials").hidden = Boolean(known);
  }
  for (const [id, name] of [["f-mode", "mode"], ["f-review", "review"], ["f-batch_id", "batch_id"], ["f-limit", "limit"], ["f-budget", "budget"]]) {
    if (state.get(name) && byId(id)) byId(id).value = state.get(name);
  }
  if (state.has("protocol") && byId("protocol")) fromAddress(state.get("protocol"));
  if (state.has("benchmark")) byId("f-benchmark").checked = true;
  byId("advanced").open = ["benchmark", "limit", "batch_id"].some((name) => state.has(name));
  if (state.has("provider_batch")) form.querySelector("input[name=asking][value=batch]")?.click();
  if (state.has("rotate") && byId("f-rotate")) byId("f-rotate").checked = true;
  for (const name of ["candidate", "judge"]) {
    if (!state.has(name) || !byId(`${name}s`)) continue;
    for (const one of state.getAll(name)) pick(name, one);
    for (const box of form.querySelectorAll(`input[name=${name}]`)) box.checked = state.getAll(name).includes(box.value);
  }
}

/** Ticks a model, and adds it to the list if it is new. */
function pick(name, ref) {
  const known = [...form.querySelectorAll(`input[name=${name}]`)].find((box) => box.value === ref);
  if (known) known.checked = true;
  else byId(`${name}s`).append(h("label", { class: "pick" }, h("input", { type: "checkbox", name, value: ref, checked: true }), h("span", {}, ref)));
}

let named = false;
/** Fetches the names of known models when they are first needed; reading the price data takes the server a second. */
async function nameModels() {
  if (named) return;
  named = true;
  const answer = await (await fetch("/api/models/names").catch(() => null))?.json().catch(() => null);
  byId("models").replaceChildren(...(answer?.names ?? []).map((value) => h("option", { value })));
}

if (form) {
  if (byId("rubric")) rubric = rubricEditor(suite.rubric, changed);
  // Grading by the default of a suite without a rubric needs no change to the file.
  if (rubric && suite.default_rubric) rubric.choose(suite.default_rubric, false);
  if (rubric && suite.fitting) rubric.choose(suite.fitting);
  restore();
  form.addEventListener("input", changed);
  form.addEventListener("change", changed);
  for (const button of form.querySelectorAll("[data-add]")) {
    const name = button.dataset.add;
    const input = byId(`add-${name}`);
    const add = () => {
      const ref = input.value.trim();
      if (!ref) return input.focus();
      pick(name, ref);
      input.value = "";
      changed();
    };
    button.addEventListener("click", add);
    input.addEventListener("focus", nameModels);
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") event.preventDefault(), add();
    });
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    byId("go").disabled = true;
    try {
      const answer = await ask("/api/start", { ...wish(), key });
      location.assign(`/runs/${encodeURIComponent(answer.run_id)}`);
    } catch (error) {
      touched = true;
      complain(placed(problemsOf(error)), byId("problems"));
      byId("go").disabled = false;
      document.querySelector("[aria-invalid=true]")?.focus();
    }
  });
  look();
}
