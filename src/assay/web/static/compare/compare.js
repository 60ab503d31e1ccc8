// Keys of the list of tasks: j and k open the next and the previous one.
//
// Panes of a row scroll together, in proportion to their length, if the box is ticked. The address stores this choice.

import { boot } from "../frame/dom.js";
import { bindKeys, withOwnKeys } from "../frame/keys.js";

const together = document.getElementById("together");
let leading = null;

/** Returns an address of these pages with the state of the box. */
export function asTicked(address) {
  const changed = new URL(address, location.href);
  if (together?.checked ?? true) changed.searchParams.delete("together");
  else changed.searchParams.set("together", "no");
  return changed.href;
}

together?.addEventListener("change", () => {
  together.defaultChecked = together.checked;
  history.replaceState(history.state, "", asTicked(location.href));
  for (const box of document.querySelectorAll('input[name="together"]')) box.disabled = together.checked;
  for (const link of document.querySelectorAll('main a[href^="/compare"][href*="?"]')) link.href = asTicked(link.href);
});

for (const row of document.querySelectorAll(".abreast")) {
  const panes = [...row.querySelectorAll(".text")];
  for (const pane of panes) {
    pane.addEventListener("scroll", () => {
      if (!together.checked || (leading && leading !== pane)) return;
      leading = pane;
      const share = pane.scrollTop / Math.max(1, pane.scrollHeight - pane.clientHeight);
      for (const other of panes) {
        if (other !== pane) other.scrollTop = share * (other.scrollHeight - other.clientHeight);
      }
      requestAnimationFrame(() => requestAnimationFrame(() => (leading = null)));
    });
  }
}

/** Opens the task after or before the one shown; after the last one, the next page. */
export function stepTask(by) {
  const links = [...document.querySelectorAll(".task-list li a")];
  const here = links.findIndex((link) => link.ariaCurrent);
  const link = links[here + by] ?? (by > 0 ? document.querySelector(".task-list a[rel=next]") : null);
  if (!link) return false;
  link.click();
  return undefined;
}

/** Moves the focus to the pane after or before the focused one. */
export function stepPane(by, panes) {
  if (!panes.length) return false;
  const here = panes.findIndex((pane) => pane.contains(document.activeElement));
  panes[here < 0 ? 0 : (here + by + panes.length) % panes.length].focus();
  return undefined;
}

/** Chooses the next way to mark differences. */
function turnDifferences() {
  const select = document.querySelector("select[name=by]");
  select.selectedIndex = (select.selectedIndex + 1) % select.options.length;
  select.form.requestSubmit();
}

document.querySelector(".task-list [aria-current]")?.scrollIntoView({ block: "nearest" });

const texts = () => [...document.querySelectorAll(".abreast .text")];
if (boot.page === "compare" && boot.keys) {
  bindKeys(withOwnKeys(boot.keys), {
    next: () => stepTask(1),
    previous: () => stepTask(-1),
    pane_left: () => stepPane(-1, texts()),
    pane_right: () => stepPane(1, texts()),
    differences: turnDifferences,
    open: () => document.activeElement?.closest(".pane")?.querySelector(".facts a")?.click() ?? false,
    help: () => false,
  });
}
