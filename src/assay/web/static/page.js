// What every page has: colours, the reviewer's name, dialogs.

import { byId } from "./dom.js";
import { keysAreOff, turnKeys } from "./keys.js";

byId("theme")?.addEventListener("click", ({ currentTarget }) => {
  import("./theme.js").then((found) => found.next(currentTarget));
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

byId("reviewer-form")?.addEventListener("submit", (event) => {
  event.preventDefault();
  import("./rename.js").then((found) => found.rename());
});

const single = byId("single-keys");
if (single) {
  single.checked = !keysAreOff();
  single.addEventListener("change", () => turnKeys(single.checked));
}
