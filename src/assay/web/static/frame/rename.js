// Saves the reviewer's name. Loaded when the form is submitted.

import { boot, byId, call } from "./dom.js";

export async function rename() {
  const input = byId("reviewer-name");
  const name = input.value.trim();
  if (!name) return input.focus();
  const answer = await call("/api/reviewer", { name }).catch((error) => {
    input.setCustomValidity(error.message);
    input.addEventListener("input", () => input.setCustomValidity(""), { once: true });
    input.reportValidity();
  });
  if (!answer) return;
  boot.reviewer = answer.reviewer;
  byId("reviewer-shown").textContent = answer.reviewer;
  byId("reviewer").close();
  dispatchEvent(new Event("assay:reviewer"));
}
