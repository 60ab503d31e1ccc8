// Send one small test request to a model when its button is pressed, and show the result beside it.

import "../frame/page.js";
import { call, t } from "../frame/dom.js";

const places = (model) => document.querySelectorAll(`[data-outcome="${CSS.escape(model)}"]`);

async function check(button) {
  const model = button.dataset.check;
  const buttons = document.querySelectorAll(`[data-check="${CSS.escape(model)}"]`);
  for (const one of buttons) one.setAttribute("aria-disabled", "true");
  for (const place of places(model)) {
    place.classList.remove("ok");
    place.textContent = t("models.checking");
  }
  let message = "";
  let ok = false;
  try {
    const outcome = await call("/api/models/check", { model });
    [message, ok] = [outcome.said, outcome.ok];
  } catch (error) {
    message = error.status ? [error.message, error.said?.remedy].filter(Boolean).join(" ") : t("models.checked.offline");
  }
  for (const place of places(model)) {
    place.classList.toggle("ok", ok);
    place.textContent = message;
  }
  for (const one of buttons) one.removeAttribute("aria-disabled");
}

addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-check]");
  if (button && button.getAttribute("aria-disabled") !== "true") check(button);
});
