// Keyboard control of compared grades: rows, panes, and the marking of differences.

import { boot, byId, t } from "../frame/dom.js";
import { asTicked, stepPane, stepTask } from "./compare.js";
import { bindKeys, withOwnKeys } from "../frame/keys.js";

const rows = [...document.querySelectorAll("article.answer")];
const links = [...document.querySelectorAll(".task-list li a")];
const shown = () => Math.max(0, rows.findIndex((row) => `#${row.id}` === location.hash));

/** Marks the row that is shown in the list; only this one is on the page. */
function mark() {
  for (const [place, link] of links.entries()) link.ariaCurrent = place === shown() ? "true" : null;
  links[shown()]?.scrollIntoView({ block: "nearest" });
}
addEventListener("hashchange", mark);
mark();

function go(step) {
  const next = shown() + step;
  if (!rows[next]) return step > 0 ? stepTask(Infinity) : false;
  location.replace(`#${rows[next].id}`); // a key makes no entry to go back to
  rows[next].focus({ preventScroll: true });
  return undefined;
}

const look = (step) => stepPane(step, [...(rows[shown()]?.querySelectorAll(".words") ?? [])]);

const openKeys = () => byId("keys").showModal();
byId("help")?.addEventListener("click", openKeys);

if (boot.diffs) {
  const names = Object.keys(boot.diffs);
  const now = names.indexOf(document.querySelector("select[name=diff]").value);
  bindKeys(withOwnKeys(boot.keys), {
    next: () => go(1),
    previous: () => go(-1),
    pane_left: () => look(-1),
    pane_right: () => look(1),
    differences: () => location.assign(asTicked(boot.diffs[names[(now + 1) % names.length]]) + location.hash),
    open: () => (document.activeElement?.closest(".pane") ?? rows[shown()])?.querySelector(".facts a")?.click() ?? false,
    help: openKeys,
  });
}

// A long run's figures are computed while its first rows are shown. The page then offers them without moving anything.
async function whenRead(address) {
  const asked = await fetch(address).catch(() => null);
  if (asked?.ok && !(await asked.json()).reading) {
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = t("grades.read_open");
    return byId("said").replaceChildren(`${t("grades.read")} `, link);
  }
  setTimeout(() => whenRead(address), 1500);
}

if (boot.reading) setTimeout(() => whenRead(boot.reading), 1500);
