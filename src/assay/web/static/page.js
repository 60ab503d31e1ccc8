// What every page has: colours, the reviewer's name, dialogs.

import { boot, byId, call } from "./dom.js";
import { keysAreOff, turnKeys } from "./keys.js";

const THEMES = ["auto", "light", "dark"];

byId("theme")?.addEventListener("click", (event) => {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  document.documentElement.dataset.theme = next;
  document.cookie = `assay_theme=${next}; path=/; max-age=31536000; samesite=strict`;
  event.currentTarget.setAttribute("aria-label", event.currentTarget.dataset[next]);
  event.currentTarget.title = event.currentTarget.dataset[next];
});

for (const button of document.querySelectorAll("[data-dialog]")) {
  button.addEventListener("click", () => byId(button.dataset.dialog).showModal());
}
for (const button of document.querySelectorAll("dialog [data-close]")) {
  button.addEventListener("click", () => button.closest("dialog").close());
}
for (const dialog of document.querySelectorAll("dialog")) {
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // its backdrop
}

byId("reviewer-form")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = byId("reviewer-name").value.trim();
  if (!name) return byId("reviewer-name").focus();
  const said = await call("/api/reviewer", { name });
  boot.reviewer = said.reviewer;
  byId("reviewer-shown").textContent = said.reviewer;
  byId("reviewer").close();
  dispatchEvent(new Event("assay:reviewer"));
});

const single = byId("single-keys");
if (single) {
  single.checked = !keysAreOff();
  single.addEventListener("change", () => turnKeys(single.checked));
}
