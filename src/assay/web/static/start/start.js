// Starts a run: the form sends only differences from the file, and fetches the cost after each change.

import "../frame/page.js";
import { boot, byId, fresh, h, storage, t } from "../frame/dom.js";
import { asAddress, chosenProtocol, fromAddress, sameProtocol, shown, showReview } from "./protocol.js";
import { number, rubricEditor } from "./rubric.js";

const SETTLE_MS = 350;
const DRAFT = "assay.draft.set.1";
const NUMBERS = ["temperature", "top_p", "max_tokens", "frequency_penalty", "presence_penalty", "seed"];

const TERMINAL = /\x60(assay |--)/; // remedies that need a terminal
/** Problems that continue the name of their field, which the form shows above them. */
const GOES_ON = /^(is|are|has|have|holds|needs|names|must|cannot)\b/;

/** Shows each problem at its field, and lists those without a field. */
function complain(problems, list) {
  for (const place of document.querySelectorAll("[data-error]")) place.textContent = "";
  for (const input of document.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
  const rest = [];
  for (const one of problems) {
    const sentence = [one.problem, TERMINAL.test(one.remedy) ? "" : one.remedy].filter(Boolean).join(" ");
    const said = GOES_ON.test(sentence) ? t("start.this", { is: sentence }) : sentence.charAt(0).toUpperCase() + sentence.slice(1);
    const input = nearest(one.field, "path");
    const place = nearest(one.field, "error");
    if (input) input.setAttribute("aria-invalid", "true");
    if (place) place.textContent = [place.textContent, said].filter(Boolean).join(" ");
    else rest.push(h("li", {}, one.field ? h("code", {}, one.field, " ") : null, one.field ? sentence : said));
  }
  list.replaceChildren(...rest);
}

/** Returns the element of a field, or of the nearest field that contains it. */
function nearest(path, kind) {
  let rest = path;
  while (rest) {
    const found = document.querySelector(`[data-${kind}="${CSS.escape(rest)}"]`);
    if (found) return found;
    const cut = Math.max(rest.lastIndexOf("."), rest.lastIndexOf("["));
    rest = cut > 0 ? rest.slice(0, cut) : "";
  }
  return null;
}

/** Returns the problems with their fields. A value of the wrong type has its field in `where`. */
function problemsOf(error) {
  if (error.problems) return error.problems.map((one) => ({ field: one.where?.replace(/^body\./, ""), ...one }));
  return [{ field: "", problem: error.status ? error.message : t("start.offline"), remedy: error.said?.remedy ?? "" }];
}

/** Sends a request like `call`; a refusal also has its list of problems. */
async function ask(path, body) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  }).catch(() => null);
  const said = await response?.json().catch(() => null);
  if (response?.ok) return said;
  const problem = said?.error?.problem ?? t("start.offline");
  throw Object.assign(new Error(problem), { status: response?.status ?? 0, said: said?.error, problems: said?.problems });
}

// ---- a run from a file

const form = byId("start");
const suite = boot.suite;
let key = fresh();
let asked = 0;
let rubric = null;

const checked = (name) => [...form.querySelectorAll(`input[name=${name}]:checked`)];
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
  return body;
}

const usd = (amount) => (amount >= 0.1 || amount === 0 ? `$${amount.toFixed(2)}` : `$${amount.toFixed(4)}`);

function showEstimate(said) {
  const { calls, likely_usd: likely, most_usd: most, unpriced } = said.estimate;
  const cost = unpriced.length ? t("start.unpriced", { models: unpriced.join(", ") }) : t("start.cost", { likely: usd(likely), most: usd(most) });
  byId("estimate").replaceChildren(h("div", { class: "figures" },
    h("p", {}, h("b", {}, t("start.calls", { n: calls }))),
    h("p", {}, cost),
    h("p", {}, t(said.reviews.at_most ? "start.reviews_most" : "start.reviews", { n: said.reviews.n })),
    h("p", { class: "soft small" }, `${t("start.n_tasks", { n: said.tasks })}, ${t("start.n_trials", { n: said.trials })}`),
    said.notes.map((note) => h("p", { class: "soft small" }, note))));
}

/** True if a number may be put into the address, which must stay valid for a reload. */
const sound = (name, value) => (name === "budget" ? value > 0 : Number.isInteger(value) && value >= 1 && value <= 1e9);

/** Moves a problem of the whole file to the judge field if no judge is ticked. */
function placed(problems) {
  const judged = byId("judges") && !checked("judge").length;
  const needed = { field: "judge", problem: t("start.needs_judge"), remedy: "" };
  return problems.map((one) => (one.field === "" && judged ? needed : one));
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
  if (body.rotate) state.set("rotate", "1");
  if (body.protocol) state.set("protocol", asAddress(body.protocol));
  history.replaceState(null, "", `/start?${state}`);
  try {
    const said = await ask("/api/start/look", body);
    if (mine !== asked) return;
    if (byId("protocol")) showReview(said.review);
    if (said.estimate) showEstimate(said);
    else byId("estimate").replaceChildren(h("p", { class: "soft" }, t("start.no_estimate")));
    const found = placed(said.problems);
    const begins = !touched && found.length === 1 && found[0].field === "judge" && !checked("judge").length;
    if (begins) byId("estimate").replaceChildren(h("p", { class: "soft" }, `${t("start.not_yet")} ${t("start.needs_judge")}`));
    complain(begins ? [] : found, byId("problems"));
    if (byId("protocol")) shown();
  } catch (error) {
    if (mine !== asked) return;
    byId("estimate").replaceChildren(h("p", { class: "soft" }, t("start.no_estimate")));
    complain(problemsOf(error), byId("problems"));
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
  const said = await (await fetch("/api/models/names").catch(() => null))?.json().catch(() => null);
  byId("models").replaceChildren(...(said?.names ?? []).map((value) => h("option", { value })));
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
      const said = await ask("/api/start", { ...wish(), key });
      location.assign(`/runs/${encodeURIComponent(said.run_id)}`);
    } catch (error) {
      touched = true;
      complain(placed(problemsOf(error)), byId("problems"));
      byId("go").disabled = false;
      document.querySelector("[aria-invalid=true]")?.focus();
    }
  });
  look();
}

// ---- a set written here

const write = byId("write");
const emptyThing = () => ({ thingName: "", context: "", snippets: {} });
let set = { name: "", language: "", names: ["", ""], things: [emptyThing()] };

function keep() {
  storage.set(DRAFT, set);
  byId("draft").textContent = storage.kept ? t("start.draft") : "";
}

function drawNames() {
  byId("names").replaceChildren(...set.names.map((name, place) => {
    const said = t("start.name_of", { n: place + 1 });
    const input = h("input", { value: name, "aria-label": said, placeholder: said, autocomplete: "off", "data-name": place, on: {
      input: (event) => {
        set.names[place] = event.target.value;
        for (const label of document.querySelectorAll(`[data-label="${place}"]`)) label.textContent = event.target.value || said;
        keep();
      },
    } });
    if (set.names.length < 3) return input;
    const label = t("start.remove_name", { name: name || said });
    return h("span", { class: "named-one" }, input, h("button", { type: "button", class: "button small", "aria-label": label, title: label, on: { click: () => removeName(place) } }, "✕"));
  }));
}

/** Removes a candidate; the texts of the following ones move up. */
function removeName(place) {
  set.names.splice(place, 1);
  for (const thing of set.things) thing.snippets = Object.fromEntries(set.names.map((_, who) => [who, thing.snippets[who < place ? who : who + 1] ?? ""]));
  drawNames();
  drawThings();
  keep();
  document.querySelector(`[data-name="${Math.min(place, set.names.length - 1)}"]`).focus();
}

function drawThing(thing, place) {
  const id = (name) => `t-${place}-${name}`;
  const tied = (name, attributes) => ({ id: id(name), "data-path": `[${place}].${name}`, on: { input: (event) => ((thing[name] = event.target.value), keep()) }, ...attributes });
  const context = h("textarea", tied("context", { class: "prose", rows: 3 }));
  context.value = thing.context;
  return h("section", { class: "thing", "aria-label": t("start.thing_n", { n: place + 1 }) },
    h("div", { class: "thing-head" },
      h("div", { class: "field" }, h("label", { for: id("thingName") }, t("start.thing_n", { n: place + 1 })), h("input", tied("thingName", { value: thing.thingName, autocomplete: "off" })), h("p", { class: "error", "data-error": `[${place}].thingName` })),
      h("div", { class: "buttons" },
        h("button", { type: "button", class: "button small", on: { click: () => duplicate(place) } }, t("start.duplicate")),
        h("button", { type: "button", class: "button small", on: { click: () => remove(place) } }, t("start.remove")))),
    h("div", { class: "field" }, h("label", { for: id("context") }, t("start.context")), context, h("p", { class: "error", "data-error": `[${place}].context` })),
    h("div", { class: "snips" }, set.names.map((name, who) => {
      const text = h("textarea", { id: id(`s${who}`), rows: 7, spellcheck: "false", "data-path": `[${place}].snippets[${who}]`, on: { input: (event) => ((thing.snippets[who] = event.target.value), keep()) } });
      text.value = thing.snippets[who] ?? "";
      return h("div", { class: "field" }, h("label", { for: id(`s${who}`), "data-label": who }, name || t("start.name_of", { n: who + 1 })), text, h("p", { class: "error", "data-error": `[${place}].snippets[${who}]` }));
    })),
    h("p", { class: "error", "data-error": `[${place}].snippets` }),
    h("p", { class: "error", "data-error": `[${place}]` }));
}

const drawThings = () => byId("things").replaceChildren(...set.things.map(drawThing));

function duplicate(place) {
  const copy = structuredClone(set.things[place]);
  copy.thingName = copy.thingName ? t("start.copy_of", { name: copy.thingName }) : "";
  set.things.splice(place + 1, 0, copy);
  drawThings();
  keep();
  byId(`t-${place + 1}-thingName`).focus();
}

function remove(place) {
  set.things.splice(place, 1);
  if (!set.things.length) set.things.push(emptyThing());
  drawThings();
  keep();
}

function asFile() {
  return set.things.map((thing) => ({
    thingName: thing.thingName.trim(),
    ...(thing.context.trim() ? { context: thing.context } : {}),
    ...(set.language.trim() ? { language: set.language.trim() } : {}),
    snippets: set.names.map((name, who) => ({ name: name.trim(), content: thing.snippets[who] ?? "" })),
  }));
}

if (write) {
  set = storage.get(DRAFT, set);
  byId("f-name").value = set.name;
  byId("f-language").value = set.language;
  for (const name of ["name", "language"]) byId(`f-${name}`).addEventListener("input", (event) => ((set[name] = event.target.value), keep()));
  drawNames();
  drawThings();
  byId("add-name").addEventListener("click", () => {
    set.names.push("");
    drawNames();
    drawThings();
    document.querySelector(`[data-name="${set.names.length - 1}"]`).focus();
  });
  byId("add-thing").addEventListener("click", () => {
    set.things.push(emptyThing());
    drawThings();
    keep();
    byId(`t-${set.things.length - 1}-thingName`).focus();
  });
  write.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!set.name.trim()) return complain([{ field: "name", problem: t("start.needs_name"), remedy: "" }], byId("problems"));
    try {
      const said = await ask("/api/suites", { name: `${set.name.trim()}.json`, title: set.name.trim(), text: `${JSON.stringify(asFile(), null, 2)}\n` });
      storage.remove(DRAFT);
      location.assign(`/start?suite=${encodeURIComponent(said.suite)}`);
    } catch (error) {
      complain(problemsOf(error), byId("problems"));
      document.querySelector("[aria-invalid=true]")?.focus();
    }
  });
  byId("bring").addEventListener("submit", async (event) => {
    event.preventDefault();
    const file = byId("file").files[0];
    if (!file) return byId("file").focus();
    try {
      const said = await ask("/api/suites", { name: file.name, text: await file.text() });
      location.assign(`/start?suite=${encodeURIComponent(said.suite)}`);
    } catch (error) {
      byId("bring-problems").replaceChildren(...problemsOf(error).map((one) => h("li", {}, one.field ? h("code", {}, one.field, " ") : null, [one.problem, one.remedy].filter(Boolean).join(" "))));
    }
  });
}
