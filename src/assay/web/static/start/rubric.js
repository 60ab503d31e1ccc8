// Edits the criteria that answers are graded by, on the start form and beside pasted texts.

import { boot, byId, h, t } from "../frame/dom.js";

/** Returns the input as a number; other text is returned unchanged, so that the server reports the error. */
export const number = (text) => (text.trim() === "" ? null : Number.isFinite(Number(text)) ? Number(text) : text.trim());

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const plain = (rows) => rows.map(({ name, weight, scale, guidance, labels }) => ({ name, weight, scale, guidance: guidance ?? "", labels: labels ?? [] }));

/**
 * Draws the criteria into #rubric and returns functions on them. `before` are the criteria of the file, `changed` hears of edits.
 * Ready-made rubrics are chosen in #f-rubric.
 */
export function rubricEditor(before, changed) {
  const list = byId("rubric");
  const select = byId("f-rubric");
  const original = plain(before);
  const readyMade = (name) => boot.rubrics.find((one) => one.name === name)?.criteria ?? before;
  let standing = original; // the criteria that hold without a change

  const rows = () => [...list.querySelectorAll(".criterion")].map((row) => {
    const part = (name) => row.querySelector(`[data-part=${name}]`).value;
    return { name: part("name"), weight: number(part("weight")), scale: [number(part("low")), number(part("high"))], guidance: part("guidance"), labels: JSON.parse(row.dataset.labels) };
  });

  function draw(criteria) {
    list.replaceChildren(...criteria.map(row));
  }

  function row(one, place) {
    const field = (name, label, value, attributes = {}) =>
      h("div", { class: `field ${attributes.wide ? "wide-field" : ""}` },
        h("label", { for: `r-${place}-${name}` }, label),
        attributes.wide
          ? h("textarea", { id: `r-${place}-${name}`, "data-path": `rubric[${place}].${name}`, "data-part": name, rows: 2 }, value)
          : h("input", { id: `r-${place}-${name}`, "data-path": `rubric[${place}].${name}`, "data-part": name, value, autocomplete: "off", inputmode: attributes.inputmode }));
    const remove = h("button", { type: "button", class: "button small", "aria-label": t("start.remove_criterion", { name: one.name }), on: { click: () => {
      draw(rows().filter((_, other) => other !== place));
      edited();
    } } }, "×");
    return h("li", { class: "criterion", "data-labels": JSON.stringify(one.labels ?? []) },
      field("name", t("start.criterion"), one.name),
      field("weight", t("start.weight"), one.weight, { inputmode: "decimal" }),
      field("low", t("start.low"), one.scale[0], { inputmode: "decimal" }),
      field("high", t("start.high"), one.scale[1], { inputmode: "decimal" }),
      remove,
      field("guidance", t("start.guidance"), one.guidance ?? "", { wide: true }),
      h("p", { class: "error", "data-error": `rubric[${place}]` }));
  }

  /** Shows the ready-made rubric whose criteria these are, if there is one. */
  function edited() {
    const now = plain(rows());
    const known = boot.rubrics.find((one) => same(plain(one.criteria), now));
    select.value = same(now, original) && before.length ? "file" : known?.name ?? "own";
    changed();
  }

  /** Returns a criterion as in a suite file; labels are kept unless the ends of the scale were changed. */
  function written(one) {
    const known = [...before, ...boot.rubrics.flatMap((each) => each.criteria)].find((each) => each.name === one.name);
    const scale = one.labels.length && known && same(known.scale, one.scale) ? one.labels : one.scale;
    return { name: one.name, weight: one.weight ?? 1, scale, ...(one.guidance ? { guidance: one.guidance } : {}) };
  }

  list.addEventListener("input", edited);
  select.addEventListener("change", () => {
    if (select.value !== "own") draw(readyMade(select.value));
    changed();
  });
  byId("add-criterion").addEventListener("click", () => {
    draw([...rows(), { name: "", weight: 1, scale: [0, 10], guidance: "", labels: [] }]);
    byId(`r-${list.children.length - 1}-name`).focus();
    edited();
  });
  draw(before);
  select.value = before.length ? "file" : "own";
  return {
    /** Chooses a ready-made rubric; `asChange` if it differs from what holds without a change. */
    choose(name, asChange = true) {
      select.value = name;
      draw(readyMade(name));
      if (!asChange) standing = plain(rows());
    },
    differs: () => !same(plain(rows()), standing),
    written: () => rows().map(written),
  };
}
