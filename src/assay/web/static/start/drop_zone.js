// The drop zone: files are looked at by the server, shown, and imported or saved only after that.

import { byId, call, count, h, storage, t } from "../frame/dom.js";
import { DRAFT } from "./set_editor.js";
import { isText, setOfTexts } from "./text_files.js";

const MAX_BYTES = 22 * 2 ** 20; // base64 in a body of 32 MB
const zone = byId("drop");
const place = byId("dropped");
let asked = 0;

const message = (text, ...more) => place.replaceChildren(h("p", { class: "error", role: "alert" }, text), ...more);
const problem = (error) => (error.status ? [error.said?.problem ?? error.message, error.said?.remedy].filter(Boolean).join(" ") : t("start.offline"));

/** Returns the files of a drop, those in folders too, each with its path. */
async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const files = [];
  async function walk(entry, path) {
    if (files.length > 500 || entry.name.startsWith(".")) return;
    if (entry.isFile) return void files.push({ name: `${path}${entry.name}`, file: await new Promise((done, fail) => entry.file(done, fail)) });
    const reader = entry.createReader();
    for (let some; (some = await new Promise((done, fail) => reader.readEntries(done, fail))).length; ) for (const one of some) await walk(one, `${path}${entry.name}/`);
  }
  for (const entry of entries) await walk(entry, "");
  return entries.length ? files : chosen(transfer.files);
}

const chosen = (list) => [...list].map((file) => ({ name: file.webkitRelativePath || file.name, file }));

const encoded = (file) => new Promise((done, fail) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
  reader.onerror = () => fail(reader.error);
  reader.readAsDataURL(file);
});

async function take(files) {
  const mine = ++asked;
  if (!files.length) return;
  if (files.length > 500 || files.reduce((sum, { file }) => sum + file.size, 0) > MAX_BYTES) return message(t("drop.too_large"));
  const texts = files.filter(({ name }) => isText(name));
  if (texts.length >= 2 && texts.length === files.length) return toEditor(texts);
  place.replaceChildren(h("p", { class: "soft", role: "status" }, t("drop.reading", { n: files.length })));
  try {
    const body = { files: await Promise.all(files.map(async ({ name, file }) => ({ name, content: await encoded(file) }))) };
    const preview = await call("/api/uploads/look", body);
    if (mine === asked) show(preview, body);
  } catch (error) {
    if (mine === asked) message(problem(error));
  }
}

/** Puts texts into the editor of sets, where the reader checks who answered what. */
async function toEditor(texts) {
  const set = setOfTexts(await Promise.all(texts.map(async ({ name, file }) => ({ name, text: await file.text() }))));
  if (set.names.length < 2) return message(t("drop.one_text"));
  storage.set(DRAFT, set);
  if (location.pathname === "/start" && !location.search) location.reload();
  else location.assign("/start#editor");
}

const points = (mean) => (mean === null ? "–" : (100 * mean).toFixed(1));

function runTable(runs) {
  const head = ["col_suite", "candidate", "scores", "mean"].map((name) => h("th", { scope: "col", class: name === "mean" || name === "scores" ? "n" : null }, t(`drop.${name}`)));
  const rows = runs.flatMap((run) => run.candidates.map((one, at) => h("tr", {},
    h("td", {}, at ? "" : run.suite), h("th", { scope: "row" }, one.name), h("td", { class: "n" }, count(one.scores)), h("td", { class: "n" }, points(one.mean)))));
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("drop.candidate") }, h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)));
}

const listed = (title, lines, more = 0) => (lines.length ? h("details", { open: lines.length < 4 }, h("summary", {}, t(title, { n: lines.length + more })),
  h("ul", {}, lines.map((line) => h("li", {}, line)), more ? h("li", {}, t("drop.more", { n: more })) : null)) : null);

function show(preview, body) {
  const { runs, suites } = preview;
  const waiting = runs.reduce((sum, run) => sum + run.waiting, 0);
  const known = Object.entries(preview.known).map(([name, ids]) => t("drop.known", { name, runs: ids.join(", ") }));
  const wrong = suites.some((suite) => suite.problems.length);
  const parts = [];
  if (runs.length) {
    parts.push(h("h3", {}, t("drop.results", { formats: preview.formats.join(", "), tasks: count(preview.tasks), responses: count(preview.responses) })), runTable(runs),
      h("p", {}, waiting ? t("drop.waiting", { n: waiting }) : t("drop.none_waits")));
  }
  for (const suite of suites) {
    parts.push(h("h3", {}, suite.file), suite.problems.length
      ? h("ul", { class: "wrongs" }, suite.problems.map((line) => h("li", {}, line)))
      : h("p", {}, t("drop.suite", { n: suite.tasks, candidates: suite.candidates.join(", ") || t("drop.no_candidates") }), " ", t(suite.exists ? "drop.version" : "drop.saved", { path: suite.path })));
  }
  parts.push(listed("drop.already", known), listed("drop.notes", preview.notes), listed("drop.skipped", preview.skipped, preview.skipped_more));
  const fresh = suites.length || known.length < runs.length;
  const useful = (runs.length || suites.length) && !wrong && fresh;
  if (!runs.length && !suites.length) parts.unshift(h("p", { class: "error", role: "alert" }, t("drop.nothing")));
  parts.push(h("div", { class: "buttons" },
    useful ? h("button", { type: "button", class: "go", id: "import", on: { click: (event) => keep(event.currentTarget, body) } }, t(runs.length ? "drop.import" : "drop.save")) : null,
    h("button", { type: "button", on: { click: () => place.replaceChildren() } }, t("drop.discard"))));
  place.replaceChildren(h("div", { class: "found", role: "status" }, parts.filter(Boolean)));
  byId("import")?.focus();
}

async function keep(button, body) {
  button.disabled = true;
  try {
    const answer = await call("/api/uploads", body);
    if (answer.run_ids.length === 1) return location.assign(`/runs/${encodeURIComponent(answer.run_ids[0])}`);
    if (answer.run_ids.length) return location.assign("/");
    if (answer.suites.length) return location.assign(`/start?suite=${encodeURIComponent(answer.suites[0])}`);
    place.replaceChildren(h("p", { role: "status" }, t("drop.unchanged")));
  } catch (error) {
    message(problem(error));
  }
}

if (zone) {
  for (const id of ["files", "folder"]) byId(id)?.addEventListener("change", (event) => take(chosen(event.target.files)).finally(() => (event.target.value = "")));
  for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, (event) => (event.preventDefault(), zone.classList.add("over")));
  for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
  zone.addEventListener("drop", async (event) => {
    event.preventDefault();
    take(await dropped(event.dataTransfer));
  });
}
