// Ways to a first run: the demo, two pasted texts, or a file. The page also notices runs started elsewhere.

import { byId, call, fresh, t } from "../frame/dom.js";
import { unsaved } from "../runs/runs.js";
import { rubricEditor } from "./rubric.js";
import "./drop_zone.js";

const words = (error) => (error.status ? [error.said?.problem ?? error.message, error.said?.remedy].filter(Boolean).join(" ") : t("first.offline"));

/** Sends a request once; opens the next page on success, else shows the error at its field. */
async function send(button, place, path, body, leads) {
  for (const one of [place, ...document.querySelectorAll("[data-error]")]) one.textContent = "";
  for (const one of document.querySelectorAll("[aria-invalid]")) one.removeAttribute("aria-invalid");
  button.disabled = unsaved.now = true;
  try {
    const answer = await call(path, body);
    location.assign(leads(answer));
  } catch (error) {
    const problem = words(error);
    const where = CSS.escape(error.said?.where ?? "");
    const field = document.querySelector(`[data-path="${where}"]`);
    const beside = document.querySelector(`[data-error="${where}"]`) ?? place;
    beside.textContent = problem.charAt(0).toUpperCase() + problem.slice(1);
    field?.setAttribute("aria-invalid", "true");
    button.disabled = false;
    field?.focus();
  }
}

const key = fresh();
byId("demo").addEventListener("click", (event) =>
  send(event.currentTarget, byId("demo-error"), "/api/demo", { key }, () => "/"));

const paste = byId("paste");
paste.addEventListener("submit", (event) => {
  event.preventDefault();
  const fields = new FormData(paste);
  const contents = fields.getAll("content");
  const snippets = fields.getAll("name").map((name, place) => [name, contents[place]]);
  const body = { thing: fields.get("thing"), context: fields.get("context"), snippets, rubric: rubric.written() };
  send(event.submitter, byId("paste-error"), "/api/pasted", body, ({ run_id }) => `/review?run=${encodeURIComponent(run_id)}`);
});

// The proposal follows the texts until the reader has chosen.
let chosen = false;
let settling = null;
let asked = 0;
const rubric = rubricEditor([], () => ((chosen = true), sum()));
const sum = () => (byId("rubric-now").textContent = rubric.written().map(({ name }) => name).join(", "));
rubric.choose("quality");
sum();
async function propose() {
  const texts = new FormData(paste).getAll("content").filter((text) => text.trim()).map((text) => text.slice(0, 20_000));
  const mine = ++asked;
  if (chosen || !texts.length) return;
  const answer = await call("/api/start/rubric", { texts }).catch(() => null);
  if (!answer || chosen || mine !== asked) return;
  rubric.choose(answer.rubric);
  sum();
  byId("rubric-why").textContent = t(`start.fits.${answer.rubric}`);
}
paste.addEventListener("input", (event) => {
  if (event.target.name !== "content") return;
  clearTimeout(settling);
  settling = setTimeout(propose, 250);
});

// A notice of the imported run must not reload this page before the answer leads to the page of the run.
byId("drop").addEventListener("click", (event) => event.target.id === "import" && (unsaved.now = true));
paste.addEventListener("input", () => (unsaved.now = [...new FormData(paste).values()].some(Boolean)));

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(byId(button.dataset.copy).textContent.trim());
    button.textContent = t("first.copied");
    setTimeout(() => (button.textContent = t("first.copy")), 1500);
  });
}
