// Settles disputes: one form per item, removed once the server has accepted the decision.

import "../frame/page.js";
import { boot, byId, call, fresh, t } from "../frame/dom.js";

for (const form of document.querySelectorAll("[data-settle]")) {
  const key = fresh();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const fields = new FormData(form);
    const id = form.dataset.settle;
    try {
      await call("/api/adjudicate", { key, id, choice: fields.get("choice"), reason: fields.get("reason"), kind: fields.get("kind"), confidence: fields.get("confidence"), together: fields.has("together"), reviewer: boot.reviewer });
      form.closest("section").remove();
      byId("said").textContent = document.querySelector("[data-settle]") ? t("adjudication.done") : t("adjudication.all_done");
    } catch (error) {
      byId("said").textContent = [error.said?.problem ?? error.message, error.said?.remedy].filter(Boolean).join(" ");
    }
  });
}
