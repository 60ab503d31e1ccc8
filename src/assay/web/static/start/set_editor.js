// Writes a set, or a new version of one: the texts of each candidate for each task. The draft stays in this browser.

import { boot, byId, h, storage, t } from "../frame/dom.js";
import { ask, complain, problemsOf } from "./problems.js";

export const DRAFT = "assay.draft.set.1";

const write = byId("write");
const emptyThing = () => ({ thingName: "", context: "", snippets: {} });
const key = boot.edit ? `${DRAFT}.${boot.edit.path}` : DRAFT;
let set = boot.edit ? fromFile(JSON.parse(boot.edit.text)) : { name: "", language: "", names: ["", ""], things: [emptyThing()] };

/** Returns a set file's content for the editor; keys that it does not show are kept. */
function fromFile(content) {
  const things = content.things ?? (Array.isArray(content) ? content : [content]);
  const names = [...new Set(things.flatMap((thing) => thing.snippets.map((snippet) => snippet.name)))];
  const languages = new Set(things.map((thing) => thing.language ?? ""));
  return {
    name: content.name ?? boot.edit.path.split("/").at(-1).replace(/(-\d+)?\.json$/, ""),
    language: languages.size === 1 ? [...languages][0] : "",
    names,
    things: things.map(({ thingName, context, snippets, ...kept }) => ({
      thingName, context: context ?? "", kept,
      snippets: Object.fromEntries(names.map((name, who) => [who, snippets.find((snippet) => snippet.name === name)?.content ?? ""])),
    })),
  };
}

function keep() {
  storage.set(key, set);
  byId("draft").textContent = storage.kept ? t("start.draft") : "";
}

function drawNames() {
  byId("names").replaceChildren(...set.names.map((name, place) => {
    const placeholder = t("start.name_of", { n: place + 1 });
    const input = h("input", { value: name, "aria-label": placeholder, placeholder: placeholder, autocomplete: "off", "data-name": place, on: {
      input: (event) => {
        set.names[place] = event.target.value;
        for (const label of document.querySelectorAll(`[data-label="${place}"]`)) label.textContent = event.target.value || placeholder;
        keep();
      },
    } });
    if (set.names.length < 3) return input;
    const label = t("start.remove_name", { name: name || placeholder });
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
    ...thing.kept,
    thingName: thing.thingName.trim(),
    ...(thing.context.trim() ? { context: thing.context } : {}),
    ...(set.language.trim() ? { language: set.language.trim() } : {}),
    snippets: set.names.map((name, who) => ({ name: name.trim(), content: thing.snippets[who] ?? "" })).filter((one) => !thing.kept || one.content),
  }));
}

if (write) {
  set = storage.get(key, set);
  byId("f-name").value = set.name;
  byId("f-language").value = set.language;
  for (const name of ["name", "language"]) byId(`f-${name}`).addEventListener("input", (event) => ((set[name] = event.target.value), keep()));
  const brought = set.things.filter((thing) => Object.values(thing.snippets).some(Boolean)).length;
  if (brought && !boot.edit) {
    byId("brought").hidden = false;
    byId("brought").textContent = t("start.brought", { n: brought, names: set.names.join(", ") });
  }
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
      const file = boot.edit ? boot.edit.path.split("/").at(-1) : `${set.name.trim()}.json`;
      const answer = await ask("/api/suites", { name: file, title: set.name.trim(), text: `${JSON.stringify(asFile(), null, 2)}\n`, as_version: true });
      storage.remove(key);
      location.assign(`/start?suite=${encodeURIComponent(answer.suite)}`);
    } catch (error) {
      complain(problemsOf(error), byId("problems"));
      document.querySelector("[aria-invalid=true]")?.focus();
    }
  });
}
